"""What is left out because nothing can be made of it: jobs and slots, named with whose they are."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from updraft.core.demand.doubts import ROOM_IN_DOUBT
from updraft.core.demand.room import Demand
from updraft.core.model import JobGroup, Known, Reason, Snapshot
from updraft.core.reasons import listed
from updraft.core.slots.kinds import problem

LEFT_OUT = "left-out"
LEFT_OUT_OFFER = "left-out-offer"
LEFT_OUT_CLASS = "left-out-class"
LEFT_OUT_ANNEX = "left-out-annex"
LEFT_OUT_CLOUD = "left-out-cloud"
LEFT_OUT_REPORT = "left-out-report"
UNREAD_ANNEX = "unread-annex"
OTHERS = (LEFT_OUT_OFFER, LEFT_OUT_CLASS, LEFT_OUT_ANNEX, LEFT_OUT_CLOUD)
"""Of what isn't jobs or slots, and doesn't say itself that it is left out."""
ODD_SLOT = "odd-slot"
ODD_INSTANCE = "odd-instance"
ODD_OFFER = "odd-offer"
UNREAD_BOOT = "unread-boot"
_NAMED = 50
_EACH = 5


def left_out(queue: Demand, snapshot: Snapshot) -> Iterator[Reason]:
    """A warning for what of each owner is left out for the same cause, and for each slot with an odd ad."""
    found: dict[tuple[str, str, str], list[JobGroup]] = {}
    for group in queue.all:
        if not group.evaluable:
            found.setdefault((group.schedd, group.owner, problem(group.ad)), []).append(group)
    for (schedd, owner, why), groups in sorted(found.items())[:_NAMED]:
        firsts = sorted({group.first_id for group in groups}, key=_in_order)
        names = listed(firsts, _EACH)
        what = f"jobs {names}" if firsts[1:] else f"job {names}"
        whose = f"of {owner or 'an unknown owner'} at schedd {schedd}"
        yield Reason(LEFT_OUT, f"left out: {what} {whose}: {why or 'the ad cannot be evaluated'}")
    if len(found) > _NAMED:
        yield Reason(LEFT_OUT, f"{len(found) - _NAMED} more lots of jobs are left out: see `updraft status`")
    if isinstance(snapshot.collector, Known):
        odd = [slot for slot in snapshot.collector.value.slots if slot.fault]
        for slot in odd[:_NAMED]:
            machine = f" of machine {slot.instance_id}" if slot.instance_id else ""
            yield Reason(ODD_SLOT, f"slot {slot.name}{machine}: {slot.fault}")
        if len(odd) > _NAMED:
            yield Reason(ODD_SLOT, f"{len(odd) - _NAMED} more slots have ads that make no sense")


class Named(NamedTuple):
    """What a machine is called, and what it is of; `annex` is empty for one of none."""

    machine: str
    cloud: str
    worker_class: str
    annex: str


_CONCERNS: Mapping[str, tuple[str, ...]] = {
    ODD_SLOT: ("machine",),
    ROOM_IN_DOUBT: ("machine",),
    ODD_INSTANCE: ("machine",),
    ODD_OFFER: ("cloud",),
    UNREAD_BOOT: ("machine",),
    LEFT_OUT_OFFER: ("cloud", "worker_class"),
    LEFT_OUT_CLASS: ("worker_class",),
    LEFT_OUT_ANNEX: ("annex",),
    UNREAD_ANNEX: ("annex",),
    LEFT_OUT_CLOUD: ("cloud",),
    LEFT_OUT_REPORT: ("machine", "annex"),
}


def concerning(warnings: Iterable[Reason], one: Named) -> tuple[Reason, ...]:
    """Those warnings that say that it, its cloud, its class or its annex is left out, or may be."""
    return tuple(warning for warning in warnings if _concerns(warning, one))


def _concerns(warning: Reason, one: Named) -> bool:
    names = [name for what in _CONCERNS.get(warning.code, ()) if (name := getattr(one, what))]
    if names and warning.code in OTHERS and re.search(r" and \d+ more: ", warning.text):
        return True
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", warning.text) for name in names)


def _in_order(job: str) -> tuple[int, str]:
    """Numbers of one length in their order, longer ones later."""
    return len(job), job
