"""What a snapshot needs besides an observation: what earlier looks have taught, and what the judge says.

It comes back as a value (`Learned`), with which the pure `core.prepare` makes the snapshot, here and wherever
a recorded observation is prepared again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from updraft.core.limits import pace
from updraft.core.model import JobGroup, Kind, Learned, Observation, Prepared, Snapshot, Verdicts
from updraft.core.prepare import answers, apart, finished, prepare, to_learn, unjudged, waiting
from updraft.core.settings import Policy
from updraft.core.slots.offers import CATALOGUE, Kinds, OfferCatalogue
from updraft.core.sparing import LOOKED_AT, Sparing
from updraft.observe.same import SameSources

PACE = "join-pace"
"""The key of the note of how fast machines may join."""

PATIENCE = 10.0
"""Seconds that the judge has for its verdicts."""

_SEARCHES = 2  # times as long, at most, it is looked for what nothing can be made of


class Matcher(Protocol):
    """Which job groups run on which kinds of slot."""

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        """The verdict of each pair that could be evaluated by the deadline (seconds from now)."""


class Remembers(Protocol):
    """What is read of the ledger, once; the writer and the reader both are one."""

    def learned(self) -> dict[str, str]:
        """The ad text learned for each kind."""

    def noted(self, key: str) -> dict[str, Any] | None:
        """A note, by its key."""


class Preparer:
    """Learns what there is to learn of each observation, and makes the snapshot of both.

    What nothing can be made of is left out and named, and `tell` is told once. `stopwatch` says seconds since
    any beginning: for virtual time one that stands still. Raises LedgerError where the ledger can't be read.
    """

    def __init__(
        self,
        *,
        ledger: Remembers,
        matcher: Matcher,
        kinds: Kinds = CATALOGUE,
        stopwatch: Callable[[], float] = time.monotonic,
        tell: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._matcher = matcher
        self._stopwatch = stopwatch
        self._catalogue = OfferCatalogue(kinds)
        self._same = SameSources()
        self._sparing: Sparing[tuple[Snapshot, bool]] = Sparing(tell, LOOKED_AT)
        self._templates = ledger.learned()
        self._pace = pace.read(ledger.noted(PACE) or {})
        self.fresh: dict[str, str] = {}
        """Ads that were learned and aren't written down yet, by kind: whoever writes them takes them out."""

    @property
    def pace_note(self) -> dict[str, Any]:
        """How fast machines may join: noted in the ledger, so that a restart knows."""
        return pace.noted(self._pace)

    def learn(self, observation: Observation, policy: Policy) -> Learned:
        """What is known besides this observation. Of the judge this may take a while: see `PATIENCE`."""
        return self._learn(observation, policy)[0]

    def _learn(self, observation: Observation, policy: Policy) -> tuple[Learned, Snapshot]:
        """The same, and what was made of the observation on the way."""
        begun = self._stopwatch()
        self._take_up(observation)

        def first(some: Snapshot, by: Policy) -> tuple[Snapshot, bool]:
            return self._ask(some, by, observation, PATIENCE)

        def again(some: Snapshot, by: Policy) -> tuple[Snapshot, bool]:
            left = _SEARCHES * PATIENCE - (self._stopwatch() - begun)
            return self._ask(some, by, observation, min(PATIENCE, max(0.0, left)))

        made, told_apart = self._sparing.made(first, again, answers(observation), policy)
        learned = Learned(
            at=observation.now + (self._stopwatch() - begun),
            templates=self._templates,
            pace=self._pace,
            apart=told_apart,
            kinds=made.kinds,
            verdicts=made.verdicts,
            spared=self._sparing.spared,
            why=self._sparing.why,
        )
        return learned, made

    def prepare(self, observation: Observation, learned: Learned, policy: Policy) -> Prepared:
        """The snapshot that is to be decided about, and what it was made of: what `core.prepare` says.

        The observation may be a later one than that of which this was learned, with what was done since.
        """
        return self._prepared(prepare(observation, learned, policy, self._catalogue), observation, learned)

    def at_once(self, observation: Observation, policy: Policy) -> Prepared:
        """The same, with nothing done in between."""
        learned, made = self._learn(observation, policy)
        return self._prepared(finished(made, observation, learned), observation, learned)

    def _prepared(self, snapshot: Snapshot, observation: Observation, learned: Learned) -> Prepared:
        self._pace = snapshot.pace
        collector = self._same.collector(snapshot.collector)
        if collector is not snapshot.collector:
            snapshot = replace(snapshot, collector=collector)
        return Prepared(observation, learned, snapshot)

    def _ask(
        self, some: Snapshot, policy: Policy, observation: Observation, deadline: float
    ) -> tuple[Snapshot, bool]:
        """What is made of some of the answers, and whether its kinds are told apart by zone and market."""
        told_apart = apart(some, policy)
        made = unjudged(
            some, policy, observation.templates, self._templates, self._catalogue, apart=told_apart
        )
        groups = [*waiting(made), *made.spare]
        verdicts = self._matcher.verdicts(groups, list(made.kinds.values()), made.now, deadline)
        return replace(made, verdicts=verdicts), told_apart

    def _take_up(self, observation: Observation) -> None:
        """Take up ads of machines of our own; those that are new go into `fresh`."""
        new = to_learn(observation, self._templates)
        if new:  # what an earlier snapshot was made of stays as it was
            self._templates = {**self._templates, **new}
            self.fresh.update(new)
