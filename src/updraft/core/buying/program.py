"""Which patterns, and how many of each, cover a demand at the least price, when machines may be cut up.

A linear program over the patterns known so far, solved by HiGHS. Its duals say what a job of each item is
worth now, and a pattern that is worth more than its price is what the list lacks (column generation). It is
bound by simplex iterations, never by seconds: the same input gives the same answer.

From it to whole machines leads a *dive*: what the program takes whole is settled, the program is solved again
for the rest with patterns made for the rest, and so on; where nothing is whole, what is nearest to it is
settled. Nothing else here needs the solver: `listing` asks for a list that is `improved`.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from updraft.core.buying.market import Floats, Ints, Lots
from updraft.core.buying.patterns import Patterns, Ranking, Taste, fill
from updraft.core.buying.rounding import ALMOST, NEARLY, Effort, Lines, LotSearch, Remainder, around, greedy

_ITERATIONS = 20_000
_MOSTLY = 0.7
_FLAT = 0.2  # of disk; all else counts as one


class Master:
    """The program for one market. `need` may shrink from solution to solution, and patterns are added."""

    def __init__(self, market: Lots, need: Floats) -> None:
        # Here and not above: those who only look at a pool shall not wait for the solver to be loaded.
        import highspy

        self._market = market
        self._rows = len(need)
        self._known: set[bytes] = set()
        self.patterns: list[tuple[int, Ints, Ints]] = []
        self.worth = np.zeros(self._rows)
        self.fees = np.zeros(len(market.offer))
        self.amount = np.zeros(0)
        self.objective = float("inf")
        self._infinite = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        # Its stubs don't know what it can.
        self._solver: Any = cast(Any, highspy).Highs()
        scarce = np.flatnonzero(market.stock < need.sum())
        self._stock_row = np.full(len(market.offer), -1, dtype=np.int64)
        self._stock_row[scarce] = self._rows + np.arange(len(scarce))
        self._begin(need, market.stock[scarce])

    def _begin(self, need: Floats, stock: Floats) -> None:
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("simplex_iteration_limit", _ITERATIONS),
        ):
            self._solver.setOptionValue(name, value)
        infinite, rows = self._infinite, self._rows
        # A column for each item that buys nothing: jobs that no pattern and no stock holds.
        fine = 10.0 * float(self._market.price.max(initial=0.0)) + 1.0
        unit = np.arange(rows, dtype=np.int32)
        self._solver.passModel(
            rows, rows + len(stock), rows, 1, 1, 0.0,
            np.full(rows, fine), np.zeros(rows), np.full(rows, infinite),
            np.concatenate([need, np.full(len(stock), -infinite)]),
            np.concatenate([np.full(rows, infinite), stock]),
            unit, unit, np.ones(rows), np.zeros(rows, dtype=np.int32),
        )  # fmt: skip

    def add(self, found: Patterns) -> int:
        """Add the patterns that aren't known yet; returns how many those were."""
        added: list[tuple[int, Ints, Ints]] = []
        order = np.argsort(found.item, axis=1, kind="stable")
        items = np.take_along_axis(found.item, order, axis=1)
        numbers = np.take_along_axis(found.number, order, axis=1).astype(np.int64)
        some = numbers > 0
        for row, lot in enumerate(found.lot.tolist()):
            item, number = items[row][some[row]], numbers[row][some[row]]
            name = lot.to_bytes(4, "big") + item.tobytes() + number.tobytes()
            if len(item) and name not in self._known:
                self._known.add(name)
                added.append((lot, item, number))
        if added:
            self._append(added)
        return len(added)

    def _append(self, added: list[tuple[int, Ints, Ints]]) -> None:
        self.patterns.extend(added)
        lots = np.array([lot for lot, _, _ in added])
        index, value = [], []
        for lot, item, number in added:
            scarce = self._stock_row[lot]
            index.append(item if scarce < 0 else np.append(item, scarce))
            value.append(number if scarce < 0 else np.append(number, 1))
        ends = np.cumsum([len(each) for each in index])
        self._solver.addCols(
            len(added), self._market.price[lots], np.zeros(len(added)), np.full(len(added), self._infinite),
            int(ends[-1]), np.concatenate([[0], ends[:-1]]).astype(np.int32),
            np.concatenate(index).astype(np.int32), np.concatenate(value).astype(np.float64),
        )  # fmt: skip

    def cover(self, need: Floats, stock: Floats) -> None:
        """From now on this is what has to be covered, and what there is of each lot."""
        rows = np.arange(self._rows, dtype=np.int32)
        self._solver.changeRowsBounds(self._rows, rows, need, np.full(self._rows, self._infinite))
        scarce = np.flatnonzero(self._stock_row >= 0)
        if len(scarce):
            self._solver.changeRowsBounds(
                len(scarce), self._stock_row[scarce].astype(np.int32),
                np.full(len(scarce), -self._infinite), stock[scarce],
            )  # fmt: skip

    def solve(self) -> bool:
        """Solve with the patterns known now; False where the solver gave up (nothing has changed then)."""
        self._solver.run()
        if self._solver.getModelStatus() != self._optimal:
            return False
        solution = self._solver.getSolution()
        duals = np.array(solution.row_dual)
        self.worth = np.maximum(duals[: self._rows], 0.0)
        held = self._stock_row >= 0
        self.fees = np.zeros(len(self.fees))
        self.fees[held] = np.maximum(-duals[self._stock_row[held]], 0.0)
        self.amount = np.array(solution.col_value)[self._rows :]
        lots = np.array([lot for lot, _, _ in self.patterns], dtype=np.int64)
        self.objective = float(self._market.price[lots] @ self.amount)
        return True


def improved(rest: Remainder, best: Remainder, taste: Taste, effort: Effort, least: float) -> Remainder:
    """The cheapest list that the program leads to for this `rest`, or `best`, if that is cheaper still.

    Ends early with a list that costs no more than `least`.
    """
    master = Master(rest.market, rest.need)
    master.add(patterns_of(best.lines))
    master.add(around_all(rest, taste, effort.depth))
    return dive(master, rest, best, [taste], effort, least)


def columns(master: Master, rest: Remainder, tastes: list[Taste], effort: int, depth: int) -> list[Taste]:
    """Solve and add patterns that the program lacks, up to `effort` times; ends solved.

    Returns the tastes of the last round: the program's own worths, and smoothed ones, which jump less.
    """
    market = rest.market
    scarce, smooth = tastes[0].scarce, tastes[-1].worth
    flat = np.where(market.size > 0, 1.0, 0.0)
    flat[2] *= _FLAT
    lot = np.flatnonzero(rest.stock >= 1)
    for step in range(effort + 1):
        if not master.solve():
            break
        smooth = 0.5 * smooth + 0.5 * master.worth
        tastes = [Taste(master.worth, scarce), Taste(smooth, scarce)]
        if step == effort:
            break
        every = [*tastes, Taste(master.worth, flat), Taste(smooth, flat)]
        item = np.concatenate([Ranking(market, taste).top(rest.need, depth)[lot] for taste in every])
        found = fill(market, every, np.tile(lot, len(every)), item, rest.need[item])
        price = (market.price + master.fees)[found.lot]
        if not master.add(found.pick(np.flatnonzero(found.value(master.worth) > price * (1.0 + ALMOST)))):
            break
    return tastes


def dive(
    master: Master, rest: Remainder, best: Remainder, tastes: list[Taste], effort: Effort, least: float
) -> Remainder:
    """The best complete list seen on the way down; `best` is one that is known already.

    Ends early with a list that costs no more than `least`, or hardly more than the program at the top.
    """
    goal = least
    for step in range(effort.dives):
        tastes = columns(master, rest, tastes, effort.again if step else effort.rounds, effort.depth)
        for taste in tastes:
            full = greedy(rest.copy(), taste, effort.depth)
            best = full if full.better_than(best) else best
        if not step and np.isfinite(master.objective):
            goal = max(least, master.objective * (1.0 + 1e-3))
        if best.price <= goal or not _settle(master, rest):
            break
        if not rest.need.any():
            return rest if rest.better_than(best) else best
        master.cover(rest.need, rest.stock)
    return best


def _settle(master: Master, rest: Remainder) -> bool:
    """Settle what the program takes whole; where nothing is whole, the largest parts of machines."""
    amount = master.amount
    order = np.argsort(-amount, kind="stable")
    before = len(rest.lines)
    for least in (1.0 - ALMOST, _MOSTLY):
        for at in order[amount[order] >= least].tolist():
            lot, item, number = master.patterns[int(at)]
            rest.settle(lot, item, number, max(1.0, float(np.floor(amount[at] + ALMOST))))
        if len(rest.lines) > before:
            return True
    largest = amount[order[0]] if len(order) else 0.0
    for at in order[amount[order] > 0].tolist():
        if amount[at] < NEARLY * largest and len(rest.lines) > before:
            break
        lot, item, number = master.patterns[int(at)]
        rest.settle(lot, item, number, 1.0)
    return len(rest.lines) > before


def patterns_of(lines: Sequence[Lines]) -> Patterns:
    """The patterns that lines are made of."""
    width = max((len(line.item) for line in lines), default=1)
    item = np.zeros((len(lines), width), dtype=np.int64)
    number = np.zeros((len(lines), width))
    for row, line in enumerate(lines):
        item[row, : len(line.item)] = line.item
        number[row, : len(line.item)] = line.number
    return Patterns(np.array([line.lot for line in lines], dtype=np.int64), item, number)


def around_all(rest: Remainder, taste: Taste, depth: int) -> Patterns:
    """Patterns around every item that waits, on the lots where its room costs least."""
    market = rest.market
    shut = (market.copies <= 0) | (rest.stock < 1)
    lead = np.flatnonzero((rest.need > 0) & ~shut.all(axis=1))
    search = LotSearch(market, taste, rest.need)
    leads, lot = search.candidates(lead, shut)
    return around(rest, leads, lot, taste, search.fillers(leads, lot, rest.need, depth))
