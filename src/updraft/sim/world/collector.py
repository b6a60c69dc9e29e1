"""A simulated collector: joins and updates are work, done one after the other, that can pile up."""

from collections.abc import Callable

from updraft.core.model import CollectorLoad
from updraft.sim.world.agenda import Agenda

PATIENCE = 20.0
"""Seconds after which a machine gives an update up: it is lost."""

UPDATE_EVERY = 60.0
UPDATE_COSTS = 0.05  # of a join, which needs a fresh session


class SimCollector:
    """It takes `joins_per_second` and `staying()` machines send it their updates.

    Joins wait for as long as it takes; updates that would wait longer than `PATIENCE` are lost.
    """

    def __init__(self, agenda: Agenda, joins_per_second: float, staying: Callable[[], int]) -> None:
        self._agenda = agenda
        self._cost = 1.0 / joins_per_second
        self._staying = staying
        self._started = self._free_at = agenda()
        self._spent = 0.0
        self._joined = 0
        self._lost = 0.0
        agenda.every(1.0, self._updates)

    def join(self) -> float:
        """When a machine that knocks now will have joined."""
        at = self._work(self._cost)
        self._agenda.at(at, self._took)
        return at

    def load(self) -> CollectorLoad:
        """What it says of itself."""
        now = self._agenda()
        busy = self._spent - max(0.0, self._free_at - now)
        return CollectorLoad(now, self._started, busy, self._joined, int(self._lost))

    def _work(self, seconds: float) -> float:
        self._free_at = max(self._free_at, self._agenda()) + seconds
        self._spent += seconds
        return self._free_at

    def _took(self) -> None:
        self._joined += 1

    def _updates(self) -> None:
        """Those of one second."""
        count = self._staying() / UPDATE_EVERY
        if self._free_at - self._agenda() > PATIENCE:
            self._lost += count
        else:
            self._work(count * self._cost * UPDATE_COSTS)
