"""Which patterns, and how many of each, cover a demand at the least price, when machines may be cut up.

A linear program over the patterns known so far, solved by HiGHS. Its duals say what a job of each item is
worth now, and a pattern that is worth more than its price is what the list lacks (column generation). It is
bound by simplex iterations, never by seconds: the same input gives the same answer.
"""

from typing import Any, cast

import numpy as np

from updraft.core.buying.market import Floats, Ints, Lots
from updraft.core.buying.patterns import Patterns

_ITERATIONS = 20_000


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
