"""Counting what happened in a turn: calls to the clouds, and jobs that ended with a machine that we end."""

from collections.abc import Iterator, Mapping, Sequence

import structlog

from updraft.clouds.cloud import Cloud
from updraft.clouds.counted import CallTally, CloudCall
from updraft.core.machines.annex_leaving import LEASE_OVER
from updraft.core.machines.leaving import OPERATOR
from updraft.core.model import Known, MachineId, Slot, Snapshot, Terminate
from updraft.core.settings import Policy
from updraft.daemon.reporting import Cycle
from updraft.errors import LedgerError
from updraft.ledger import Ledger
from updraft.ledger.counters import Count

_DEADLINE = "deadline"  # of a drain: see `leaving._draining`
NAMED = frozenset({OPERATOR, _DEADLINE, LEASE_OVER})
"""The codes of ends that come with a person's order, or a deadline that the policy names."""


class TurnCounter:
    """Adds each turn to the ledger's counters: what the clouds were asked, and which jobs ended with it."""

    def __init__(self, ledger: Ledger, calls: CallTally) -> None:
        self._ledger, self._calls = ledger, calls

    def watch(self, cycle: Cycle, _policy: Policy, _clouds: Mapping[str, Cloud]) -> None:
        """Count this turn. Raises nothing: figures are worth less than what they are of."""
        counts = [*calls(self._calls.taken()), *jobs(cycle)]
        try:
            if counts:
                self._ledger.count(counts)
        except LedgerError as error:
            structlog.get_logger("updraft").error(f"what happened isn't counted: {error}", code="not-counted")


def calls(found: Mapping[CloudCall, tuple[int, float]]) -> Iterator[Count]:
    """What these calls to clouds add."""
    for call, (number, seconds) in found.items():
        labels = {"cloud": call.cloud, "call": call.method}
        yield Count("cloud_calls", labels, number)
        yield Count("cloud_call_seconds", labels, seconds)
        if call.failure:
            yield Count("cloud_call_errors", {**labels, "reason": call.failure}, number)


def jobs(cycle: Cycle) -> Iterator[Count]:
    """The jobs that run on machines that this turn ends, by the reason for that.

    With an order or a deadline that is what was asked for. Without one they are lost: the pool had heard of
    them since the cloud was asked, so that nothing may be ended there. That would be a fault of updraft.
    """
    if cycle.standing is not None:
        return
    ends = [one for one in cycle.plan.actions if isinstance(one, Terminate)]
    if not ends:
        return
    snapshot, slots = cycle.snapshot, _slots(cycle.snapshot)
    asked = {one.key for one in snapshot.ledger.machines if one.terminate_asked_at is not None}
    named = NAMED | {one.stopped.code for one in snapshot.annexes if one.kill_jobs and one.stopped}
    for end in ends:
        for key in end.keys:
            if key in asked:  # once is enough: it may be asked for again until it is gone
                continue
            own = slots.get(key, ())
            if end.reason.code in named:
                yield from _counted(own, "jobs_cut_short", {"reason": end.reason.code})
            else:
                heard = _asked_at(snapshot, end.cloud)
                yield from _counted([one for one in own if one.heard > heard], "jobs_lost", {})


def _counted(slots: Sequence[Slot], name: str, labels: Mapping[str, str]) -> Iterator[Count]:
    number = sum(map(_running, slots))
    if number:
        yield Count(name, labels, number)


def _running(slot: Slot) -> int:
    """How many jobs run in a slot: one that is claimed between two jobs has none."""
    parts = slot.children if slot.partitionable else (slot,)
    return sum(one.state == "Claimed" and one.activity == "Busy" for one in parts)


def _slots(snapshot: Snapshot) -> Mapping[MachineId, list[Slot]]:
    found: dict[MachineId, list[Slot]] = {}
    for slot in snapshot.collector.value.slots if isinstance(snapshot.collector, Known) else ():
        found.setdefault(slot.machine_id, []).append(slot)
    return found


def _asked_at(snapshot: Snapshot, cloud: str) -> float:
    """When the cloud was asked for what it shows; never, where it doesn't answer."""
    view = snapshot.clouds.get(cloud)
    return view.machines.at if view is not None and isinstance(view.machines, Known) else float("-inf")
