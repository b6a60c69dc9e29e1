"""Machines that a cloud's listing has no more, asked for by their ids: some at a time, and none too often."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from updraft.clouds.base import Found
from updraft.core.model import Instance, Known
from updraft.observe.sources import BRIEFLY, Asker, Asking

AGAIN = 10.0  # seconds between two questions about the same machine
AT_ONCE = 200  # machines: a cloud may take a call for each


class LooksUp(Protocol):
    """The part of a cloud's driver that is asked: see `clouds.base.Driver`."""

    def look_up(self, ids: Iterable[str]) -> Found:
        """What the cloud says of these instances."""


class ById:
    """One cloud's answers about single machines, each with the time of its question.

    What the cloud can't say leaves the last answer as it is; whoever reads it sees how old that is.
    """

    def __init__(self, cloud: str, stale_after: float, asking: Asking) -> None:
        self._asker: Asker[Found] = Asker(cloud, stale_after=stale_after, hurried=True, asking=asking)
        self._asked: dict[str, float] = {}
        self._found: dict[str, Known[Instance | None]] = {}

    def found(
        self, driver: LooksUp, wanted: Sequence[str], patience: float, clock: Callable[[], float]
    ) -> Mapping[str, Known[Instance | None]]:
        """What is known of the `wanted` ones, after waiting for a moment, `patience` seconds at the most."""
        if not wanted:
            self._asked, self._found = {}, {}
            return {}
        now = clock()
        # A clock that was set back makes nothing wait until it is as late again.
        due = [id_ for id_ in wanted if not 0 <= now - self._asked.get(id_, math.inf) < AGAIN]
        if due:
            due = sorted(due, key=lambda id_: self._asked.get(id_, 0.0))[:AT_ONCE]
            self._ask(driver, due, now)
        answer = self._asker.answer(min(patience, BRIEFLY), clock())
        if isinstance(answer, Known):
            self._found.update({id_: Known(one, answer.at) for id_, one in answer.value.items()})
        self._asked = {id_: self._asked[id_] for id_ in wanted if id_ in self._asked}
        self._found = {id_: self._found[id_] for id_ in wanted if id_ in self._found}
        return dict(self._found)

    def _ask(self, driver: LooksUp, due: Sequence[str], now: float) -> None:
        before = self._asker.asked_at
        self._asker.ask(lambda: driver.look_up(due), now)
        if self._asker.asked_at != before:  # else an earlier question is still under way
            self._asked.update(dict.fromkeys(due, now))
