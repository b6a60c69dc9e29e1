"""The records of what was used, written as the day goes on: each look adds what it has seen since the last.

They decide nothing. What can't be recorded costs one look of the records, is said in the log, and is no
reason to leave a machine unlooked at.
"""

from collections.abc import Iterable
from dataclasses import replace

import structlog

from updraft.core.model import MachineId, Plan, Reason, Snapshot
from updraft.core.model.used import Booking, Meters, Sighting
from updraft.core.settings import Policy
from updraft.core.usage.booking import turn
from updraft.core.usage.sightings import SightingReader
from updraft.ledger import Ledger


class UsageKeeper:
    """What is in the records up to now, and what a look adds."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sightings = SightingReader()
        self._meters: Meters | None = None
        self._next: Meters | None = None
        self._failed = False

    def look(self, snapshot: Snapshot, plan: Plan, policy: Policy) -> Booking | None:
        """What this look adds; None where that can't be made out. `plan` is what was carried out."""
        try:
            books = self._look(snapshot, plan, policy)
        except Exception:
            if not self._failed:
                structlog.get_logger("updraft").exception("what was used can't be recorded", code="no-usage")
            self._failed, self._next = True, None
            return None
        self._failed = False
        return books

    def _look(self, snapshot: Snapshot, plan: Plan, policy: Policy) -> Booking:
        meters = self._meters
        if meters is None:
            meters = self._meters = self._ledger.meters()
        seen = self._sightings.of(snapshot, plan, policy, meters.machines)
        seen.update(self._ended(meters.machines.keys() - seen.keys(), meters))
        jumped = snapshot.jumped_at is not None and meters.at is not None and snapshot.jumped_at > meters.at
        booked = self._ledger.booked(seen.keys() - meters.machines.keys())
        self._next, books = turn(meters, seen, snapshot.now, jumped=jumped, booked=booked)
        return books

    def _ended(self, keys: Iterable[MachineId], meters: Meters) -> dict[MachineId, Sighting]:
        """Machines that ended so long ago that no look shows them, as the ledger's records say it."""
        found = {}
        for key in keys:
            record = self._ledger.record(*key)
            if record is not None and record.ended_at is not None:
                end = record.end or Reason("ended", "its record says no more")
                old = meters.machines[key].sighting
                found[key] = replace(old, lives=None, pool=None, ended=(record.ended_at, end))
        return found

    def written(self) -> None:
        """What the last look added is in the ledger."""
        self._meters, self._next = self._next or self._meters, None
