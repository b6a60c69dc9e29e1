"""The record of what really was: each minute the pool, every few minutes the jobs, in a thread of its own.

It decides nothing, and reads only. What can't be recorded costs that much of the record, and is said once.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import structlog

from updraft.core.model import GroupOutlook, JobGroup, Known, MachineId, MachineRecord, Reason, Slot, Snapshot
from updraft.core.usage.days import day_of
from updraft.daemon.election import WATCHES
from updraft.daemon.reporting import Cycle
from updraft.errors import LedgerError, UpdraftError
from updraft.ledger.secrets import scrub
from updraft.recording.pool_record import Fields, PoolLook, PoolRecord, SeenMachine, Waited

LOOK_EVERY = 60.0
PRUNE_EVERY = 3600.0
LONGEST_GAP = 5 * LOOK_EVERY
"""Seconds between two looks of the record for which the second one holds: longer ones say nothing of it."""
MOST_QUEUED = 100_000
DEADLINE = 60.0
_CLAIMED = frozenset({"Claimed", "Preempting"})
ROOM = Reason("room", "there is room for them in the pool, and the negotiator has not given it yet")
COMING = Reason("coming", "machines for them are on their way")
BOUGHT = Reason("new", "machines for them are being asked for")
WOULD_BUY = Reason("would-launch", "updraft only watches: it would have asked for machines for them")
NO_OFFER = Reason("no-offer", "nothing that is on sale runs them")


class JobRecords(Protocol):
    """Who is asked for the pool's jobs: `condor.support.history.JobReader`."""

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """The names of all schedds."""

    def jobs(
        self, schedd: str, since: float, most: int, deadline: float
    ) -> tuple[Sequence[Fields], Sequence[Fields]]:
        """Those that have ended since, some of before among them, and those in the queue."""

    def close(self) -> None:
        """Ask nobody any more; a call that is under way fails."""


class RecordKeeper:
    """Writes down what each look has shown, and what the schedds say of their jobs every `every` seconds."""

    def __init__(
        self,
        record: PoolRecord,
        jobs: JobRecords,
        names: Sequence[str],
        clock: Callable[[], float],
        every: float,
    ) -> None:
        self._record, self._jobs, self._names = record, jobs, tuple(names)
        self._clock, self._every = clock, every
        self._last: float | None = None
        self._pruned = float("-inf")
        self._offers: dict[str, object] = {}
        self._said: dict[str, str] = {}
        self._told: dict[str, frozenset[tuple[object, ...]]] = {}
        self._log = structlog.get_logger("updraft")
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="updraft-record")

    def start(self) -> None:
        """Ask for jobs from now on, until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; what is under way is cut short."""
        self._quit.set()
        self._jobs.close()
        self._thread.join(DEADLINE)

    def watch(self, cycle: Cycle) -> None:
        """Write down what this turn of the loop has seen, if a minute has passed."""
        now, last = cycle.snapshot.now, self._last
        if last is not None and 0 <= now - last < LOOK_EVERY:
            return
        self._last = now
        gap = 0.0 if last is None or not 0 < now - last <= LONGEST_GAP else now - last
        self._try("the pool", lambda: self._look(cycle, gap))

    def _run(self) -> None:
        while True:
            self.ask()
            if self._quit.wait(self._every):
                return

    def ask(self) -> None:
        """Write down each schedd's jobs as they are now."""
        found: list[str] = []
        self._try("the schedds", lambda: found.extend(self._jobs.schedds(DEADLINE)))
        for schedd in found:
            if self._quit.is_set():
                return
            self._try(f"the jobs of {schedd}", lambda one=schedd: self._ask(one))  # type: ignore[misc]

    def _ask(self, schedd: str) -> None:
        now = self._clock()
        known = self._record.asked_until(schedd)
        since = now - self._every if known is None else known
        ended, queued = self._jobs.jobs(schedd, since, MOST_QUEUED, DEADLINE)
        before = self._told.get(schedd, frozenset())
        fresh = [one for one in ended if tuple(one) not in before]
        self._record.add_jobs(schedd, self._names, _scrubbed(fresh), _scrubbed(queued), now)
        self._told[schedd] = frozenset(map(tuple, ended))

    def _look(self, cycle: Cycle, gap: float) -> None:
        snapshot = cycle.snapshot
        acts = cycle.standing is None or cycle.standing.code != WATCHES.code  # to wait isn't to watch only
        machines = tuple(_machines(snapshot))
        look = _look(snapshot, machines, acts=acts)
        waits = _waits(cycle, gap, acts=acts) if gap else ()
        self._record.add_look(look, machines, waits, self._new_offers(snapshot))
        if abs(snapshot.now - self._pruned) >= PRUNE_EVERY:
            self._record.prune(snapshot.now)
            self._pruned = snapshot.now

    def _new_offers(self, snapshot: Snapshot) -> dict[str, str]:
        """What clouds sell that sold something else at the look before."""
        new = {}
        for name, view in snapshot.clouds.items():
            if isinstance(view.offers, Known) and self._offers.get(name) != view.offers.value:
                self._offers[name] = view.offers.value
                new[name] = scrub(json.dumps([asdict(offer) for offer in view.offers.value]))
        return new

    def _try(self, what: str, do: Callable[[], None]) -> None:
        try:
            do()
        except (UpdraftError, OSError) as error:
            if self._said.get(what) != str(error) and not self._quit.is_set():
                self._log.warning(f"{what}: not in the record: {error}", code="no-record")
            self._said[what] = str(error)
        except Exception:
            if what not in self._said:
                self._log.exception(f"{what}: not in the record", code="no-record")
            self._said[what] = "a fault"
        else:
            self._said.pop(what, None)


def opened(path: Path, tell: Callable[[str], None]) -> PoolRecord | None:
    """The record of this file; None, once `tell` has heard why, where it can't be used."""
    try:
        return PoolRecord(path)
    except LedgerError as error:
        tell(str(error))
        return None


def _scrubbed(rows: Sequence[Fields]) -> list[list[object]]:
    return [[scrub(value) if isinstance(value, str) else value for value in row] for row in rows]


# --------------------------------------------------------------------------------------------- one look


def _machines(snapshot: Snapshot) -> Iterator[SeenMachine]:
    """The pool's machines: the slots of one startd together."""
    collector = snapshot.collector
    slots = collector.value.slots if isinstance(collector, Known) else ()
    found: dict[tuple[str, float], list[Slot]] = {}
    for slot in slots:
        found.setdefault((scrub(slot.name.rpartition("@")[2])[:200], slot.started), []).append(slot)
    ours = _ours(snapshot.ledger.machines)
    for (name, started), some in found.items():
        own = any(slot.machine_id in ours for slot in some)
        cores = sum(slot.total.cpus for slot in some)
        yield SeenMachine(name, started, cores, own, snapshot.now, snapshot.now)


def _ours(machines: Sequence[MachineRecord]) -> set[MachineId]:
    return {one.key for one in machines if one.ended_at is None}


def _look(snapshot: Snapshot, machines: Sequence[SeenMachine], *, acts: bool) -> PoolLook:
    collector = snapshot.collector
    slots = collector.value.slots if isinstance(collector, Known) else ()
    claimed = sum(map(_claimed, slots))
    groups = _groups(snapshot).values()
    return PoolLook(
        at=snapshot.now,
        acts=acts,
        idle=sum(group.idle for group in groups),
        running=sum(group.running for group in groups),
        wanted=claimed + sum(group.idle * group.request.cpus for group in groups),
        claimed=claimed,
        cores=sum(one.cores for one in machines),
        machines=len(machines),
        others=sum(not one.ours for one in machines),
    )


def _claimed(slot: Slot) -> int:
    if not slot.partitionable:
        return slot.total.cpus if slot.state in _CLAIMED else 0
    return sum(child.resources.cpus for child in slot.children if child.state in _CLAIMED)


def _groups(snapshot: Snapshot) -> Mapping[str, JobGroup]:
    views = (source.value for source in snapshot.schedds.values() if isinstance(source, Known))
    return {group.key: group for view in views for group in view.groups}


def _waits(cycle: Cycle, seconds: float, *, acts: bool) -> Iterator[Waited]:
    """For how long which user's jobs have waited for what since the look before."""
    groups, day = _groups(cycle.snapshot), day_of(cycle.snapshot.now)
    for outlook in cycle.plan.groups:
        group = groups.get(outlook.group)
        if group is None:
            continue
        user = scrub(group.owner)[:200]
        for reason, jobs in _reasons(outlook, acts=acts):
            if jobs > 0:
                yield Waited(day, user, reason.code, jobs * seconds, scrub(reason.text)[:500])


def _reasons(outlook: GroupOutlook, *, acts: bool) -> Iterator[tuple[Reason, int]]:
    yield ROOM, outlook.joined
    yield COMING, outlook.coming
    yield BOUGHT if acts else WOULD_BUY, outlook.new
    refused = next((reason for _, reason in outlook.refused), NO_OFFER)
    yield next(iter(outlook.held_back), refused), outlook.unmet
