"""The ledger's face over plain memory: for simulated time, where a disk would be most of the cost."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from updraft.core.machines.lifecycle import changed
from updraft.core.model import (
    AtWork,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineId,
    MachineRecord,
    Reason,
    Untaken,
)
from updraft.core.settings import DAY
from updraft.errors import LedgerError
from updraft.ledger.reader import BOOTS_KEPT, Event

_OVER = (LaunchState.SETTLED, LaunchState.REFUSED)


class MemoryLedger:
    """Answers what `updraft.ledger.Ledger` answers, as far as observing and acting ask.

    `at_work` is who was busy at the last decision; None where its maker keeps that in the machines' records.
    """

    def __init__(self) -> None:
        self.launches: dict[str, LaunchRecord] = {}
        self.machines: dict[MachineId, MachineRecord] = {}
        self.journal: list[Event] = []
        self.consoles: dict[MachineId, str] = {}
        self._boots: dict[tuple[str, str], tuple[float, ...]] = {}
        self._kinds: dict[str, str] = {}
        self._notes: dict[str, dict[str, Any]] = {}
        self.untaken: Mapping[str, Untaken] = {}
        self.at_work: AtWork | None = AtWork(frozenset(), 0.0)

    # ------------------------------------------------------------------------------------------- reading

    def view(self, now: float) -> LedgerView:
        """Live machines, unsettled launches, both of the last day, and boots."""
        since = now - DAY
        launches = [r for r in self.launches.values() if r.asked_at >= since or r.state not in _OVER]
        machines = [r for r in self.machines.values() if r.ended_at is None or r.ended_at >= since]
        return LedgerView(
            launches=tuple(sorted(launches, key=lambda r: (r.asked_at, r.key))),
            machines=tuple(sorted(machines, key=lambda r: r.key)),
            boots=dict(self._boots),
            at_work=self.at_work,
            untaken=self.untaken,
        )

    def events(self) -> tuple[Event, ...]:
        """All events, oldest first."""
        return tuple(self.journal)

    def annexes(self) -> tuple[()]:
        """None: simulated jobs have no annexes."""
        return ()

    def learned(self) -> dict[str, str]:
        """The ad text learned for each kind."""
        return dict(self._kinds)

    def noted(self, key: str) -> dict[str, Any] | None:
        """The note of this key."""
        return self._notes.get(key)

    # ------------------------------------------------------------------------------------------- writing

    def keep_at_work(self, machines: frozenset[MachineId], at: float) -> None:
        """Write down which machines (cloud and id) had a claim at the decision of a look at that time."""
        if machines or self.at_work is None or self.at_work.machines:
            self.at_work = AtWork(machines, at)

    def keep_untaken(self, groups: Mapping[str, Untaken], at: float) -> None:
        """Write down which job groups don't take the room that there is, in place of those of before."""
        self.untaken = groups

    @contextmanager
    def together(self) -> Iterator[None]:
        """Nothing is ever half written in one thread's memory."""
        yield

    def intend(self, record: LaunchRecord) -> None:
        """Write down a launch before the cloud is asked. Raises LedgerError for a key that is known."""
        if record.key in self.launches:
            raise LedgerError(f"the launch {record.key} is in the ledger already: it isn't made twice")
        self.launches[record.key] = record

    def outcome(
        self,
        key: str,
        state: LaunchState,
        ids: Iterable[str] = (),
        error: Reason | None = None,
        failed_at: float | None = None,
    ) -> None:
        """Write down what the cloud said. A key that isn't known is left alone."""
        record = self.launches.get(key)
        if record is None:
            return
        kept = record.state if record.state is LaunchState.SETTLED else state
        everything = tuple(dict.fromkeys((*record.ids, *ids)))
        told = replace(record, state=kept, ids=everything, error=error or record.error)
        self.launches[key] = replace(told, failed_at=failed_at or record.failed_at)

    def settle(self, keys: Iterable[str]) -> None:
        """Nothing more will come of these launches."""
        for key in keys:
            self.outcome(key, LaunchState.SETTLED)

    def remember(self, records: Iterable[MachineRecord]) -> None:
        """Write down machines as they are now known, and the boot of each that has just joined."""
        for record in records:
            before = self.machines.get(record.key)
            self.machines[record.key] = record
            joins = before is not None and before.joined_at is None and record.joined_at is not None
            if joins and not record.adopted and record.launch_key in self.launches:
                pair = (record.image, record.flavor)
                took = max(0.0, (record.joined_at or 0.0) - record.requested_at)
                self._boots[pair] = (*self._boots.get(pair, ()), took)[-BOOTS_KEPT:]

    def record(self, cloud: str, machine: str) -> MachineRecord | None:
        """The machine of this cloud as it is written down now."""
        return self.machines.get(MachineId(cloud, machine))

    def change(self, cloud: str, machines: Iterable[str], **changes: Any) -> None:
        """Change these fields of machines as they are written down now; one that isn't known is left out."""
        known = [self.record(cloud, machine) for machine in machines]
        self.remember([changed(record, changes) for record in known if record is not None])

    def add(self, records: Iterable[MachineRecord]) -> None:
        """Write down new machines; one that is known already is left as it is."""
        self.remember([one for one in records if self.record(one.cloud, one.id) is None])

    def event(
        self, at: float, kind: str, subject: str, reason: Reason, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Write down that something happened."""
        number = len(self.journal) + 1
        self.journal.append(Event(number, at, kind, subject, reason.code, reason.text, dict(detail or {})))

    def keep_console(self, cloud: str, machine: str, text: str, at: float) -> None:
        """Keep a machine's console output."""
        self.consoles[MachineId(cloud, machine)] = text

    def learn(self, kind: str, text: str, at: float) -> None:
        """Keep the ad text of a kind."""
        self._kinds[kind] = text

    def note(self, key: str, doc: Mapping[str, Any], at: float) -> None:
        """Keep a small document under a key."""
        self._notes[key] = dict(doc)
