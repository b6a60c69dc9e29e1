"""What rivals have in common: eyes for a snapshot, and hands for a plan.

Everything here is linear in the machines, slots and job groups of the snapshot.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from updraft.core.model import (
    Action,
    CloudState,
    Drain,
    DrainMode,
    Instance,
    JobGroup,
    Known,
    Launch,
    LaunchState,
    Offer,
    Plan,
    Reason,
    Slot,
    Snapshot,
    Terminate,
)
from updraft.core.settings import DAY, Policy
from updraft.sim.workloads.workload import Arrival

Decide = Callable[[Snapshot, Policy], Plan]
Key = tuple[str, str]
"""A machine: its cloud and its id there."""

NOTHING_TO_DO = Plan()
SETTLE = 60.0  # seconds after which a launch that no listing shows counts no more
REFUSAL = 60.0  # seconds after which a machine that was told to close and is open has refused

_CLAIMED = ("Claimed", "Preempting", "Matched")
_OVER = (CloudState.STOPPING, CloudState.STOPPED, CloudState.TERMINATED)


# -------------------------------------------------------------------------------------------------- eyes


def queue(snapshot: Snapshot) -> tuple[JobGroup, ...] | None:
    """The job groups of every schedd that answers; None where none does."""
    answers = [source.value.groups for source in snapshot.schedds.values() if isinstance(source, Known)]
    return tuple(itertools.chain.from_iterable(answers)) if answers else None


def listed(snapshot: Snapshot) -> list[Instance]:
    """The pool's machines that the clouds show and that are not ended or ending."""
    return [
        one
        for view in snapshot.clouds.values()
        if isinstance(view.machines, Known)
        for one in view.machines.value
        if one.state not in _OVER
    ]


def in_pool(snapshot: Snapshot) -> dict[Key, list[Slot]] | None:
    """The slots of each machine that the collector shows; None where it doesn't answer."""
    if not isinstance(snapshot.collector, Known):
        return None
    found: defaultdict[Key, list[Slot]] = defaultdict(list)
    for slot in snapshot.collector.value.slots:
        if slot.instance_id:
            found[slot.cloud, slot.instance_id].append(slot)
    return dict(found)


def key_of(instance: Instance) -> Key:
    """What a machine is known by here."""
    return instance.cloud, instance.id


def busy(slots: Iterable[Slot]) -> bool:
    """Is anything claimed on them?"""
    for slot in slots:  # as `Slot.busy` says, in the plainest way: this is asked of thousands at each look
        if slot.state in _CLAIMED:
            return True
        for child in slot.children:
            if child.state in _CLAIMED:
                return True
    return False


def open_slots(slots: Iterable[Slot]) -> Iterable[Slot]:
    """Those that take new jobs."""
    return (slot for slot in slots if slot.accepting and not slot.draining)


def refused(snapshot: Snapshot, since: float) -> set[str]:
    """The keys of launches asked for at or after `since` to which a cloud has said no."""
    found: set[str] = set()
    for row in reversed(snapshot.ledger.launches):  # oldest first, so that the end is all that is looked at
        if row.asked_at < since:
            break
        if row.state is LaunchState.REFUSED:
            found.add(row.key)
    return found


class Finish:
    """When a pool that is never quite empty is given back: nothing waits or runs, and nothing more will come.

    Who knows the workload knows when its last job has arrived; without one, a day of quiet is taken for the
    end where `patience` says so, and nothing is where it is None.
    """

    def __init__(self, workload: Sequence[Arrival], patience: float | None = DAY) -> None:
        self._last = max((one.at for one in workload), default=None)
        self._patience = patience
        self._begun: float | None = None
        self._quiet_since: float | None = None

    def over(self, groups: Iterable[JobGroup], slots: Mapping[Key, Sequence[Slot]], now: float) -> bool:
        """To be asked at every look, from the first on."""
        self._begun = now if self._begun is None else self._begun
        if any(group.idle for group in groups) or any(busy(several) for several in slots.values()):
            self._quiet_since = None
            return False
        self._quiet_since = now if self._quiet_since is None else self._quiet_since
        if self._last is not None:
            return now - self._begun > self._last
        return self._patience is not None and now - self._quiet_since >= self._patience


# ------------------------------------------------------------------------------------------------- hands


class Hand:
    """Gathers what a rival does at one look, and numbers its launches. One for each simulation."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._why = Reason(f"rival-{name}", f"what {name} would do")
        self._serial = itertools.count(1)
        self._actions: list[Action] = []
        self._ends: defaultdict[str, list[str]] = defaultdict(list)
        self._asked: dict[str, tuple[float, int, Offer]] = {}

    def launch(self, offer: Offer, count: int, now: float) -> str:
        """Ask for so many machines in one call. Returns the launch key that they will carry."""
        key = f"{self._name}-{next(self._serial)}"
        self._actions.append(Launch(key, offer, count, self._why))
        self._asked[key] = (now, count, offer)
        return key

    def end(self, instance: Instance) -> None:
        """End a machine, whatever runs on it."""
        self._ends[instance.cloud].append(instance.id)

    def close(self, instance: Instance, mode: DrainMode) -> None:
        """Close a machine to new jobs; those on it run on."""
        self._actions.append(Drain(instance.id, instance.cloud, mode, self._why))

    def waiting(self, machines: Iterable[Instance]) -> dict[str, int]:
        """Launch keys of late that no machine carries yet, with how many machines were asked for."""
        if not self._asked:
            return {}
        shown = {one.launch_key for one in machines}
        return {key: count for key, (_, count, _) in self._asked.items() if key not in shown}

    def unseen(self, snapshot: Snapshot, machines: Iterable[Instance]) -> list[tuple[int, Offer]]:
        """Launches of late that the clouds neither list nor have refused: how many of which offer."""
        if self._asked:
            shown = {one.launch_key for one in machines}
            no = refused(snapshot, min(at for at, _, _ in self._asked.values()))
            self._asked = {
                key: asked
                for key, asked in self._asked.items()
                if key not in shown and key not in no and snapshot.now - asked[0] < SETTLE
            }
        return [(count, offer) for _, count, offer in self._asked.values()]

    def plan(self) -> Plan:
        """What was gathered since the last plan."""
        ends = [Terminate(tuple(ids), cloud, self._why) for cloud, ids in self._ends.items()]
        actions = (*ends, *self._actions)
        self._actions, self._ends = [], defaultdict(list)
        return Plan(actions=actions) if actions else NOTHING_TO_DO


class Departures:
    """Machines that were told to close, until nothing runs on them any more and they can be ended."""

    def __init__(self) -> None:
        self._asked: dict[Key, float] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._asked

    def __len__(self) -> int:
        return len(self._asked)

    def close(self, hand: Hand, instance: Instance, mode: DrainMode, now: float) -> None:
        """Tell it to close; again where it was told before."""
        self._asked[key_of(instance)] = now
        hand.close(instance, mode)

    def settle(
        self, hand: Hand, machines: Iterable[Instance], slots: Mapping[Key, Sequence[Slot]], now: float
    ) -> None:
        """End those that have closed and are empty; one that is still open after a while has refused."""
        if not self._asked:
            return
        there = {key_of(one): one for one in machines if key_of(one) in self._asked}
        for key, asked in list(self._asked.items()):
            shown = slots.get(key, ())
            if key not in there:
                del self._asked[key]
            elif not shown or (all(slot.draining for slot in shown) and not busy(shown)):
                hand.end(there[key])
            elif not any(slot.draining for slot in shown) and now - asked >= REFUSAL:
                del self._asked[key]
