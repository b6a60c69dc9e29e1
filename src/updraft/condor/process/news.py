"""A long list from child to parent, of which most is as it was: only what is new is sent.

To pack and unpack thousands of slots takes longer than to find out which of them have changed.
"""

import itertools
import os
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
Mark = tuple[int, int, int]
NOTHING: Mark = (0, 0, 0)
"""Before the first answer."""


@dataclass(frozen=True, slots=True)
class News(Generic[T]):
    """A list against the one that `after` stands for: `places` has for each item where it was in that, or -1
    for the next one of `fresh`. `mark` stands for this list."""

    after: Mark
    mark: Mark
    places: "array[int]"
    fresh: tuple[T, ...]

    def whole(self, last: Sequence[T]) -> tuple[T, ...]:
        """The list; `last` is the one that `after` stands for."""
        fresh = iter(self.fresh)
        return tuple([next(fresh) if place < 0 else last[place] for place in self.places])


class Teller(Generic[T]):
    """The child's side: what it told last. Items are the same only where they are the same objects."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._mark = NOTHING
        self._last: Sequence[T] = ()

    def news(self, found: Sequence[T], known: Mark) -> News[T]:
        """The changes to send to whoever has the list that `known` stands for."""
        # Whoever missed an answer, or had the last one of a child that has died, is told everything.
        told = known == self._mark != NOTHING
        places = {id(one): at for at, one in enumerate(self._last)} if told else {}
        fresh = tuple([one for one in found if id(one) not in places])
        # No other child, and no other answer, has this mark.
        self._mark = (os.getpid(), time.monotonic_ns(), next(self._numbers))
        self._last = found
        where = array("l", [places.get(id(one), -1) for one in found])
        return News(known if told else NOTHING, self._mark, where, fresh)


class Listener(Generic[T]):
    """The parent's side: the last list that arrived, and its mark."""

    def __init__(self) -> None:
        self.mark = NOTHING
        self._last: tuple[T, ...] = ()

    def take(self, news: News[T]) -> tuple[T, ...]:
        """The whole list."""
        self._last = news.whole(self._last)
        self.mark = news.mark
        return self._last
