"""Which of a slot's GPUs are left when jobs have taken some."""

import numpy as np

from updraft.core.matching.grid import Grid
from updraft.core.matching.match import DEVICES
from updraft.core.matching.pairs import Query
from updraft.core.matching.tables import BOOL, EXPRESSION, INT, PENDING, REAL, Side

_SUITS = "countMatches(MY.RequireGPUs, TARGET.AvailableGPUs)"


class Devices:
    """The GPUs of slots by name, those first that a job would be given first."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._orders: dict[tuple[object, object], list[str] | None] = {}

    def after(self, row: int, column: int, taken: int, asks: int) -> str | None:
        """The list of what is left after `taken` of them; empty where the slot has no such list, or the job
        asks for none; None where it isn't known yet which of them suit the job."""
        source = self._grid.slots.facts[column].sources.get("availablegpus")
        if not asks or source is None or self._grid.slots.lexicon.cell(source)[0] != EXPRESSION:
            return ""
        if "".join(source.split()) == "{}":
            return ""
        order = self._order(row, column, source)
        return None if order is None else "{ " + ", ".join(order[taken:]) + " }"

    def _order(self, row: int, column: int, source: str) -> list[str] | None:
        devices = "".join(source.split()).strip("{}").split(",")
        job, slot = self._grid.jobs.facts[row], self._grid.slots.facts[column]
        if "requiregpus" not in job.sources or len(devices) > DEVICES:
            return devices
        pair = self._pair(row, column)
        names = pair.closure(_SUITS)
        order = sorted(names)
        mine = tuple(job.sources.get(name) for name in order)
        theirs = tuple(slot.sources.get(name) for name in order)
        if (mine, theirs) not in self._orders:
            self._orders[mine, theirs] = self._asked(pair, names, mine, theirs, devices)
        return self._orders[mine, theirs]

    def _pair(self, row: int, column: int) -> Grid:
        jobs = self._grid.jobs.part(np.array([row], dtype=np.intp))
        slots = self._grid.slots.part(np.array([column], dtype=np.intp))
        return Grid(jobs, Side(slots.lexicon, slots.facts), self._grid.oracle, self._grid.now)

    def _asked(
        self,
        pair: Grid,
        names: frozenset[str],
        mine: tuple[str | None, ...],
        theirs: tuple[str | None, ...],
        devices: list[str],
    ) -> list[str] | None:
        at = sorted(names).index("availablegpus")
        each = [(*theirs[:at], f"{{ {device} }}", *theirs[at + 1 :]) for device in devices]
        codes, numbers = pair.ask(Query(_SUITS, False, names), mine, each, np.ones(1, dtype=bool))
        if (codes == PENDING).any():
            return None
        good = np.isin(codes, (BOOL, INT, REAL)) & (numbers != 0)
        return [d for d, fine in zip(devices, good, strict=True) if fine] + [
            d for d, fine in zip(devices, good, strict=True) if not fine
        ]
