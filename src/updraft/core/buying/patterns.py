"""What one machine could hold: many machines at a time, each filled up job by job with what it lacks least.

A *pattern* is a lot with how many jobs of each item one machine of it holds. Given what a job of each item is
worth, a machine takes the item next that brings most for the room it takes. Room is weighed by what is still
free: the closer a quantity is to its end, the dearer it becomes, so that all of them run out together.
"""

from dataclasses import dataclass

import numpy as np

from updraft.core.buying.market import Floats, Ints, Lots

_STEPS = 48
_LITTLE = 1e-9
_BLOCK = 160


@dataclass(frozen=True, slots=True)
class Patterns:
    """Row by row: a machine of `lot` with `number[r, t]` jobs of `item[r, t]`; a number may be zero."""

    lot: Ints
    item: Ints
    number: Floats

    def pick(self, rows: Ints) -> "Patterns":
        """Only these rows."""
        return Patterns(self.lot[rows], self.item[rows], self.number[rows])

    def value(self, worth: Floats) -> Floats:
        """What the jobs in each are worth together."""
        total: Floats = (worth[self.item] * self.number).sum(axis=1)
        return total


@dataclass(frozen=True, slots=True)
class Taste:
    """What guides the filling: the `worth` of a job of each item, and how much the whole of each quantity of
    each lot weighs in the room that a job takes (as `size`).
    """

    worth: Floats
    scarce: Floats


def room_of(market: Lots, scarce: Floats) -> Floats:
    """The room that a job of each item takes on each lot: its shares of the quantities, weighed."""
    size = np.where(market.size > 0, market.size, 1.0)
    room = np.full(market.copies.shape, _LITTLE)
    for d in range(len(size)):
        room += market.asks[d] * (scarce[d] / size[d])
    return room


class Ranking:
    """For each lot the items in the order of what they bring for their room, those that it refuses last.

    Of all items, or of `items` only; `room` is what `room_of` says, if that is known already.
    """

    def __init__(
        self, market: Lots, taste: Taste, items: Ints | None = None, room: Floats | None = None
    ) -> None:
        every = np.arange(len(market.need)) if items is None else items
        room = room_of(market, taste.scarce) if room is None else room
        usable = (market.copies[every] > 0) & (taste.worth[every] > 0)[:, None]
        loss = np.where(usable, -taste.worth[every][:, None] / room[every], 1.0)
        self._order = every[np.argsort(loss.T, axis=1, kind="stable")]

    def top(self, need: Floats, depth: int) -> Ints:
        """The first `depth` items of each lot that are still needed; `need` must only shrink."""
        alive = need > 0
        count = int(alive[self._order[0]].sum()) if len(self._order) else 0
        if count < self._order.shape[1]:
            # Each item is in each row once, so that all rows lose the same ones.
            self._order = self._order[alive[self._order]].reshape(len(self._order), count)
        return self._order[:, :depth]


def fill(
    market: Lots, tastes: list[Taste], lot: Ints, item: Ints, most: Floats, led: bool = False
) -> Patterns:
    """Machines of these lots, each filled with the items of its row, up to `most` of each.

    The rows are in as many equal parts as there are tastes, each part filled to its own. With `led` the first
    item of each row goes in first, as many as there may be. Where an item is named twice, `most` goes for
    each time.
    """
    part = len(lot) // len(tastes)
    worth = np.concatenate([t.worth[item[n * part : (n + 1) * part]] for n, t in enumerate(tastes)])
    scarce = np.concatenate(
        [t.scarce[:, lot[n * part : (n + 1) * part]] for n, t in enumerate(tastes)], axis=1
    )
    number = np.zeros(item.shape)
    for slot in range(int(market.slots[lot].max(initial=1))):
        rows = np.flatnonzero(market.slots[lot] > slot)
        for begin in range(0, len(rows), _BLOCK):
            some = rows[begin : begin + _BLOCK]
            left = most[some] - number[some]
            filling = _PatternFilling(market, lot[some], item[some], left, worth[some], scarce[:, some])
            number[some] += filling.run(led)
    return Patterns(lot, item, number)


class _PatternFilling:
    """One slot of each row, while it is filled. Rows that are full are left out when they are many."""

    def __init__(
        self, market: Lots, lot: Ints, item: Ints, most: Floats, worth: Floats, scarce: Floats
    ) -> None:
        pair = item * len(market.offer) + lot[:, None]
        least = [each.take(pair) for each in market.least.reshape(len(market.least), -1)]
        # A quantity that none of these jobs asks for is none that can be short.
        used = [d for d in range(len(least)) if d == 0 or least[d].any()]
        self.least = np.stack([least[d] for d in used])
        # A quarter keeps whole quotients whole although an inverse is used, below 1e14.
        self.least -= 0.25
        every = market.asks.reshape(len(market.asks), -1)
        self.asks = np.stack([every[d].take(pair) for d in used])
        self.most = np.minimum(most, market.copies.ravel().take(pair))
        self.free = market.size[used][:, lot]
        self.worth = worth
        # A quantity that nobody pays for still decides between equals.
        self.weight = self.asks * (scarce[used] + 1e-4)[:, :, None]
        # A job that takes nothing of a quantity: any number where `least` is free, none where it isn't.
        self.inverse = 1.0 / np.maximum(self.asks, _LITTLE)
        self.number = np.zeros(item.shape)
        self.work = np.empty(self.asks.shape)

    def run(self, led: bool) -> Floats:
        whole, alive = self.number, np.arange(len(self.number))
        rows = alive
        for step in range(_STEPS):
            room = self._room()
            if led and step == 0:
                chosen = np.zeros(len(rows), dtype=np.int64)
                put = np.maximum(room[:, 0], 0.0)
            else:
                gain = np.where(room > 0, self.worth, -1.0)
                gain /= self._heavy()
                chosen = gain.argmax(axis=1)
                put = np.ceil(np.maximum(room[rows, chosen], 0.0) / 2.0)
            self.number[rows, chosen] += put
            self.most[rows, chosen] -= put
            self.free = np.maximum(self.free - put * self.asks[:, rows, chosen], 0.0)
            going = np.flatnonzero(put > 0)
            if len(going) < 0.7 * len(put):
                whole[alive] = self.number
                if not len(going):
                    return whole
                alive = alive[going]
                rows = np.arange(len(alive))
                self._keep(going)
        whole[alive] = self.number
        return whole

    def _keep(self, rows: Ints) -> None:
        self.number, self.most, self.worth = self.number[rows], self.most[rows], self.worth[rows]
        self.asks, self.weight, self.free = self.asks[:, rows], self.weight[:, rows], self.free[:, rows]
        self.least, self.inverse = self.least[:, rows], self.inverse[:, rows]
        self.work = np.empty(self.asks.shape)

    def _room(self) -> Floats:
        """How many more of each item, or less than one for none; see `market.held`."""
        many = np.subtract(self.free[:, :, None], self.least, out=self.work)
        many *= self.inverse
        room: Floats = many[0].copy()
        for each in many[1:]:
            np.minimum(room, each, out=room)
        np.floor(room, out=room)
        room += 1.0
        np.minimum(room, self.most, out=room)
        return room

    def _heavy(self) -> Floats:
        """What the room of one job weighs, given what is free."""
        each = np.multiply(self.weight, (1.0 / np.maximum(self.free, _LITTLE))[:, :, None], out=self.work)
        heavy: Floats = each[0] + _LITTLE
        for more in each[1:]:
            heavy += more
        return heavy
