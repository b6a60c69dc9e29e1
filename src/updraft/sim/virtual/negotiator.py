"""Matching idle jobs to slots as HTCondor's negotiator does, in outline.

Users take turns, the one with the least (what he has, weighed with past usage) first; of a user's groups the
oldest comes first; of the slots that match, the fullest is taken. A group that found nothing waits for the
next cycle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from updraft.core.model import Resources, Shares, Verdict
from updraft.sim.virtual.machine import SimMachine, SimSlot
from updraft.sim.virtual.schedd import SimGroup, SimSchedd

HALF_LIFE = 86400.0  # PRIORITY_HALFLIFE
LEAST_PRIORITY = 0.5
PRIORITY_FACTOR = 1000.0  # DEFAULT_PRIO_FACTOR

Judge = Callable[[SimGroup, SimSlot], Verdict]


@dataclass(frozen=True, slots=True)
class Match:
    """A group's next job goes to this slot and gets this share of it."""

    group: SimGroup
    machine: SimMachine
    slot: SimSlot
    share: Resources


class Negotiator:
    """Keeps users' priorities between cycles.

    `factors` are the users' priority factors: who has twice another's gets half as much. Who has none has
    the usual one, as has everybody where there are no factors.
    """

    def __init__(self, judge: Judge, factors: Mapping[str, float] | None = None) -> None:
        self._judge = judge
        self._factors = {} if factors is None else factors
        self._priority: dict[str, float] = {}
        self._cycle_at: float | None = None

    def cycle(
        self, schedds: Iterable[SimSchedd], machines: Iterable[SimMachine], now: float
    ) -> Iterator[Match]:
        """Matches, one after the other; whoever iterates carries each out before the next is asked for."""
        members = list(machines)
        held = _held(members)
        self._age(held, now)
        waiting = _waiting(schedds)
        room = [(machine, slot) for machine in members if machine.open for slot in machine.slots]
        while waiting and room:
            owner = min(waiting, key=lambda name: (self._weight(name, held), name))
            group = waiting[owner][0]
            best = self._best(group, room)
            if best is None:
                waiting[owner].pop(0)
            else:
                held[owner] = held.get(owner, 0) + max(1, best.share.cpus)
                yield best
                if not group.idle:
                    waiting[owner].remove(group)
            if not waiting[owner]:
                del waiting[owner]

    def _best(self, group: SimGroup, room: list[tuple[SimMachine, SimSlot]]) -> Match | None:
        best: Match | None = None
        least: tuple[int, int] | None = None
        for machine, slot in room:
            if slot.free.cpus < 1:
                continue
            rank = (slot.free.cpus, slot.free.memory)
            if least is not None and rank >= least:
                continue
            verdict = self._judge(group, slot)
            share = slot.share(verdict.asks, group.arrival.request) if verdict.copies else None
            if share is not None:
                best, least = Match(group, machine, slot, share), rank
        return best

    def shares(self) -> Shares | None:
        """What the collector is told of this: effective priorities; None where no factors are set."""
        names = {*self._priority, *self._factors}
        return Shares({name: self._effective(name) for name in sorted(names)}) if self._factors else None

    def _effective(self, owner: str) -> float:
        return self._priority.get(owner, LEAST_PRIORITY) * self._factors.get(owner, PRIORITY_FACTOR)

    def _weight(self, owner: str, held: dict[str, int]) -> float:
        return (1 + held.get(owner, 0)) * self._effective(owner)

    def _age(self, held: dict[str, int], now: float) -> None:
        """Real user priority: it follows the cores in use, with the half-life of a day."""
        beta = 1.0 if self._cycle_at is None else 0.5 ** ((now - self._cycle_at) / HALF_LIFE)
        self._cycle_at = now
        for owner in {*self._priority, *held}:
            before = self._priority.get(owner, LEAST_PRIORITY)
            self._priority[owner] = max(LEAST_PRIORITY, beta * before + (1 - beta) * held.get(owner, 0))


def _held(machines: Iterable[SimMachine]) -> dict[str, int]:
    held: dict[str, int] = {}
    for machine in machines:
        for _, claim in machine.claims():
            held[claim.owner] = held.get(claim.owner, 0) + max(1, claim.resources.cpus)
    return held


def _waiting(schedds: Iterable[SimSchedd]) -> dict[str, list[SimGroup]]:
    waiting: dict[str, list[SimGroup]] = {}
    for schedd in schedds:
        for group in schedd.groups.values():
            if group.idle:
                waiting.setdefault(group.owner, []).append(group)
    for groups in waiting.values():
        groups.sort(key=lambda group: group.idle[0].submitted_at)
    return waiting
