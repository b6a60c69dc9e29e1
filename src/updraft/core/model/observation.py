"""What a look brings back before anything is made of it, and what is known besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.core.model.joins import JoinPace
from updraft.core.model.observed import Kind
from updraft.core.model.remembered import Observed, Snapshot, Verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Observed):
    """What every source said at one look, which ended at `now`.

    `templates` are the ads of whole, empty slots that the collector has shown, one for each kind.
    """

    templates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Learned:
    """The facts known beyond an observation: from earlier looks, and by asking the judge.

    `at` is when the judge had answered. `templates` are the ads learned from machines of our own, by kind,
    and `pace` is how fast machines could join up to this look. `kinds` are the kinds of slots that the judge
    was asked about, and `verdicts` what it said; with `apart` they are told apart by zone and market.
    `spared` is what was left out (its sort and its key), since nothing could be made of it, as `why` says.
    """

    at: float
    templates: Mapping[str, str] = field(default_factory=dict)
    pace: JoinPace = JoinPace()  # noqa: RUF009 - frozen
    apart: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=dict)
    spared: frozenset[tuple[str, str]] = frozenset()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The snapshot that a decision is made about, and what it was made of."""

    observation: Observation
    learned: Learned
    snapshot: Snapshot
