"""What is known of how collectors bear joins, and how fast machines are let in."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CollectorLoad:
    """The load that a collector's own ad said at `told`, a time of its own clock; all numbers since it
    `started`.

    `busy` are the seconds in which it was at work, `joined` machines whose first ad it took, `lost` ads of
    machines that never came (their numbers have gaps), `dropped` questions that it left unanswered, `queued`
    the most questions that have ever waited at once.
    """

    told: float
    started: float
    busy: float
    joined: int = 0
    lost: int = 0
    dropped: int = 0
    queued: int = 0


@dataclass(frozen=True, slots=True)
class JoinPace:
    """How many machines may be asked for in any `joining.WINDOW` seconds: `most`, None for any number.

    `why` is the trouble that a collector had, `since` when `most` was last changed. `seen` is the last word
    of each collector that was compared with an earlier one, `calm` what part of the time each of those was at
    work that have had room since then.
    """

    most: int | None = None
    why: str = ""
    since: float = 0.0
    seen: Mapping[str, CollectorLoad] = field(default_factory=dict)
    calm: Mapping[str, float] = field(default_factory=dict)
