"""What a plan warns of: machines, slots and tokens that are odd, and what nobody can look at."""

from collections.abc import Container, Mapping

from updraft.core.annexes.progress import unknown
from updraft.core.limits.pace import slowed
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.census import Census, of_others
from updraft.core.machines.dispositions import Disposition
from updraft.core.model import Known, MachineId, Reason, Slot, Snapshot


def warnings(
    census: Census, dispositions: Mapping[MachineId, Disposition], cache: MachineCache, snapshot: Snapshot
) -> tuple[Reason, ...]:
    known = {one.id for one in census.machines}
    found = [*of_others(census.others), *(_unexplained(slot, known) for slot in census.unexplained)]
    for (_, machine), text in sorted(cache.unread.items()):
        why = f"machine {machine}: {text[:80]!r} is no variant of a class; it is no room until it has joined"
        found.append(Reason("odd-variant", why))
    for one in census.machines:
        if one.instance is not None and one.instance.unknown_state:
            said = f"its cloud says that it is {one.instance.unknown_state!r}, which nobody here knows"
            found.append(Reason("unknown-state", f"machine {one.id}: {said}: it counts as running"))
    for (_, machine), own in sorted(dispositions.items()):
        if own.warn:
            found.append(Reason(own.reason.code, f"machine {machine}: {own.reason.text}"))
    found.extend(
        Reason(one.doubt.code, f"machine {one.machine.id}: {one.doubt.text}")
        for one in cache.others
        if one.doubt is not None and one.key not in dispositions
    )
    found.extend(unknown(census.machines, snapshot.annexes))
    if snapshot.pace.most is not None:
        found.append(slowed(snapshot.pace))
    if isinstance(snapshot.collector, Known) and not snapshot.schedds:
        found.append(Reason("no-schedd", "the collector knows no schedd: there is no queue to look at"))
    return tuple(found)


def _unexplained(slot: Slot, known: Container[str]) -> Reason:
    """The warning about a slot that no machine of ours explains; its token's launch, where that is another.

    Of `known` machines it takes the name. A machine's own token is named as `tokens revoke` takes it.
    """
    name, who = _printable(slot.name), _printable(slot.instance_id) or "a machine of another pool"
    text = f"slot {name} says it is {who}, which is no machine of ours"
    if slot.instance_id in known:
        text = f"slot {name} says it is {who}, and has shown a token that isn't that machine's"
    if not slot.instance_id or "@" in slot.launch_key:
        launch = slot.launch_key.partition("@")[0]
        text += f"; it has a token of launch {launch}: `updraft tokens revoke {launch}` ends that"
    return Reason("unexplained-slot", text)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)
