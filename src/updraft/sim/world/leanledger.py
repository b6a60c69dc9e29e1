"""A ledger in memory that forgets what no look asks for: it doesn't grow with the time that is simulated."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from updraft.core.model import LaunchRecord, LaunchState, LedgerView, MachineId, MachineRecord, Reason
from updraft.core.settings import DAY
from updraft.sim.world.memory import MemoryLedger

_OPEN = (LaunchState.INTENDED, LaunchState.UNKNOWN)


class LeanLedger(MemoryLedger):
    """Live machines, launches that may still bring some, both of the last day, and boots. No events."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: deque[tuple[float, MachineId]] = deque()
        self._asked: deque[tuple[float, str]] = deque()
        self._launches: tuple[LaunchRecord, ...] | None = None
        self._machines: tuple[MachineRecord, ...] | None = None

    def view(self, now: float) -> LedgerView:
        """What a look asks for; machines stand in the order in which they were made."""
        since = now - DAY
        while self._ended and self._ended[0][0] < since:
            self.machines.pop(self._ended.popleft()[1], None)
            self._machines = None
        while self._asked and self._asked[0][0] < since:
            if self.launches[self._asked[0][1]].state in _OPEN:
                break
            del self.launches[self._asked.popleft()[1]]
            self._launches = None
        if self._launches is None:
            self._launches = tuple(self.launches.values())
        if self._machines is None:
            self._machines = tuple(self.machines.values())
        return LedgerView(self._launches, self._machines, dict(self._boots), self.at_work, self.untaken)

    def intend(self, record: LaunchRecord) -> None:
        """Write down a launch before the cloud is asked."""
        super().intend(record)
        self._launches = None
        self._asked.append((record.asked_at, record.key))

    def outcome(
        self,
        key: str,
        state: LaunchState,
        ids: Iterable[str] = (),
        error: Reason | None = None,
        failed_at: float | None = None,
    ) -> None:
        """Write down what the cloud said."""
        super().outcome(key, state, ids, error, failed_at)
        self._launches = None

    def remember(self, records: Iterable[MachineRecord]) -> None:
        """Write down machines as they are now known, and the boot of each that has just joined."""
        machines = self.machines
        for record in records:
            self._machines = None
            key = record.key
            before = machines.get(key)
            if before is not None and before.joined_at is None and record.joined_at is not None:
                super().remember((record,))
            machines[key] = record
            if record.ended_at is not None:
                self._ended.append((record.ended_at, key))

    def event(
        self, at: float, kind: str, subject: str, reason: Reason, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Nobody reads what happened: the outcome tells it."""
