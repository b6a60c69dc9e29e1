"""Instances that an operator gives into the pool's care: looked for in the pool, tagged, and seen as ours.

The one way in which updraft touches what doesn't carry its tag, and so a narrow one: the instance must
already be in the pool, under its own id, as a machine of this pool. One that the pool doesn't know would be
ended as a machine that never joined, whatever runs on it.
"""

from dataclasses import replace

from updraft.core.machines.census import Origins
from updraft.core.machines.witnesses import not_ours
from updraft.core.model import Adopt, Instance, Known, MachineRecord, Observation, Reason, Slot
from updraft.core.settings import Policy
from updraft.core.slots.offers import for_some_class
from updraft.core.sparing import sold
from updraft.ledger import Ledger, Request, RequestKind

ADOPTED = "adopted"


def adoption(request: Request, ledger: Ledger, seen: Observation, policy: Policy, since: float) -> str | None:
    """What became of an adoption, in words; None while the cloud doesn't show the instance as ours yet.

    `since` is when this controller began to act: what waited for it was not tagged before.
    """
    waited = seen.now - max(request.at, since)
    if not isinstance(seen.collector, Known):
        late = waited > policy.timings.settle
        return "refused: the pool does not answer, so nothing is known of it" if late else None
    found = _found(request, seen, policy)
    if isinstance(found, str):
        return found
    live = _record(found, seen)
    if live is not None:
        if live.worker_class == found.worker_class:
            return "done: it is a machine of this pool"
        return f"refused: it is a machine of this pool already, of class {live.worker_class}"
    listed = _listed(found, seen)
    if listed is None:
        if waited <= policy.timings.settle:
            return None
        return (
            f"refused: it was tagged, and {waited:.0f} s later cloud {found.cloud} does not list it as a "
            "live machine of this pool; is the id right, and may updraft write tags there?"
        )
    # Of its past only the tags are known, also where an earlier record of it has ended.
    on_sale = for_some_class((item for view in seen.clouds.values() for item in sold(view)), policy)
    record = Origins(seen.now, seen.ledger.launches, tuple(on_sale)).record(listed)
    ledger.remember((replace(record, adopted=True),))
    return f"done: it is a machine of class {found.worker_class}"


def adoptions(ledger: Ledger, seen: Observation, policy: Policy) -> tuple[Adopt, ...]:
    """The adoptions that are open and can be carried out: writing the same tags again is harmless."""
    if not isinstance(seen.collector, Known):
        return ()
    wanted = [request for request in ledger.requests() if request.kind is RequestKind.ADOPT]
    found = [_found(request, seen, policy) for request in wanted]
    return tuple(action for action in found if isinstance(action, Adopt) and not _record(action, seen))


def _found(request: Request, seen: Observation, policy: Policy) -> Adopt | str:
    """The adoption that a request comes to, or a sentence why it is refused."""
    slots = _slots(request.machine, request.detail.get("cloud", ""), seen)
    clouds = sorted({slot.cloud for slot in slots})
    if not slots:
        where = f" on cloud {request.detail['cloud']}" if request.detail.get("cloud") else ""
        return (
            f"refused: no slot of this pool says that it is {request.machine}{where}; an instance can be "
            "adopted once it has joined as a machine of this pool (docs/howto/adopt.md)"
        )
    if len(clouds) > 1:
        return f"refused: it may be on {' or '.join(clouds)}; say which with --cloud"
    if clouds[0] not in seen.clouds:
        return f"refused: cloud {clouds[0]} is not in the configuration"
    for one in _instances(clouds[0], seen):
        foreign = not_ours(one, policy) if one.id == request.machine else None
        if foreign is not None:
            return f"refused: {foreign.text}; its own pool can let it go with `updraft disown`"
    advertised, generation = _advertised(slots[0])
    name = request.detail.get("class") or advertised
    if name not in policy.classes:
        known = ", ".join(sorted(policy.classes))
        return f"refused: class {name or 'unknown'} is not configured; say --class with one of {known}"
    return Adopt(
        machine=request.machine,
        cloud=clouds[0],
        reason=Reason(ADOPTED, f"{request.who} asked for adopt"),
        worker_class=name,
        launch_key=slots[0].launch_key,
        generation=generation if name == advertised else policy.classes[name].generation,
    )


def _slots(machine: str, cloud: str, seen: Observation) -> tuple[Slot, ...]:
    source = seen.collector
    slots = source.value.slots if isinstance(source, Known) else ()
    return tuple(s for s in slots if s.instance_id == machine and s.cloud and cloud in ("", s.cloud))


def _advertised(slot: Slot) -> tuple[str, str]:
    """The class and the generation that it says it was launched with; empty where it doesn't say."""
    parts = slot.kind.split("/")
    return (parts[0], parts[1]) if len(parts) == 4 else ("", "")


def _record(found: Adopt, seen: Observation) -> MachineRecord | None:
    live = (r for r in seen.ledger.machines if r.ended_at is None)
    return next((r for r in live if r.key == found.key), None)


def _listed(found: Adopt, seen: Observation) -> Instance | None:
    listed = _instances(found.cloud, seen)
    return next((one for one in listed if one.id == found.machine and one.alive), None)


def _instances(cloud: str, seen: Observation) -> tuple[Instance, ...]:
    source = seen.clouds[cloud].machines
    return source.value if isinstance(source, Known) else ()
