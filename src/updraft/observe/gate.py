"""How fast machines may join, kept from look to look, and over a restart by a note in the ledger."""

from collections.abc import Mapping
from typing import Any

from updraft.core.limits.pace import FIRST, paced
from updraft.core.model import CollectorView, JoinPace, Known, LaunchState, LedgerView, Source

PACE = "join-pace"
"""The key of the note."""

_UNDER_WAY = (LaunchState.INTENDED, LaunchState.UNKNOWN)


class Gate:
    """The pace that the collectors' words have led to. `note` is what one before it has left, None if none.

    The limit is noted, since a head that restarts while machines drown its collectors would otherwise begin
    with another burst; what collectors said is not: they are heard again soon.
    """

    def __init__(self, note: Mapping[str, Any] | None) -> None:
        self._pace = _read(note or {})

    @property
    def note(self) -> dict[str, Any]:
        """What the next one has to know."""
        return {"most": self._pace.most, "why": self._pace.why, "since": self._pace.since}

    def look(self, collector: Source[CollectorView], ledger: LedgerView, now: float) -> JoinPace:
        """The pace after this look; as it was while no collector answers."""
        if isinstance(collector, Known):
            self._pace = paced(self._pace, collector.value.loads, _coming(ledger), now)
        return self._pace


def _coming(ledger: LedgerView) -> bool:
    """Whether any machine is on its way."""
    if any(launch.state in _UNDER_WAY for launch in ledger.launches):
        return True
    return any(record.joined_at is None and record.ended_at is None for record in ledger.machines)


def _read(note: Mapping[str, Any]) -> JoinPace:
    most, why, since = note.get("most"), note.get("why"), note.get("since")
    if not (isinstance(most, int) and isinstance(why, str) and isinstance(since, int | float)):
        return JoinPace()
    return JoinPace(max(FIRST, most), why, float(since))
