"""What is told of the daemon's turns: in the ledger, for `status` and the next start, and in the log."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from updraft.core.model import Plan, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.daemon import report
from updraft.daemon.figures.offers import OffersKeeper
from updraft.daemon.preparing import PACE, Preparer
from updraft.daemon.tallies import tallies
from updraft.daemon.usage import UsageKeeper
from updraft.errors import LedgerError
from updraft.ledger import Ledger, clouds, counters
from updraft.observe import Observer

CLOCK = "clock"
"""The note of how this host's clock went on."""
PRUNE_EVERY = 3600.0
SAVE_EVERY = 10.0
_NUMBER = re.compile(r"(?<![\w-])\d[\w.,:]*")
Note = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of the loop. `standing` is None where this controller acted, else why it did not."""

    snapshot: Snapshot
    plan: Plan
    standing: Reason | None
    late: tuple[str, ...] = ()


class Reporter:
    """Tells what became of each turn: once, when it comes up, and not as long as it lasts.

    `host` is where the controller runs, "" where nobody asks; `started` is when it did.
    """

    def __init__(
        self, ledger: Ledger, observer: Observer, preparer: Preparer, pool: str, host: str, started: float
    ) -> None:
        self._ledger, self._observer, self._preparer = ledger, observer, preparer
        self._log = structlog.get_logger("updraft").bind(pool=pool)
        self._host = host
        self._started = started
        self._usage = UsageKeeper(ledger)
        self._offers = OffersKeeper(ledger)
        self._pruned = float("-inf")
        self._saved: tuple[float, str] = (float("-inf"), "")
        self._told: frozenset[Reason] = frozenset()
        self._silent: frozenset[str] = frozenset()
        self._logged = max((event.id for event in ledger.events(limit=1)), default=0)
        self._stood: str | None = ""
        self._clock_noted: Note = {}

    def remember(
        self, cycle: Cycle, took: Mapping[str, float], policy: Policy, generation: int, clock: Note
    ) -> None:
        """Write down what came of this turn, and tell of it; `clock` is the note of how this host's went on.

        `generation` counts the configurations that were in force.
        """
        now = cycle.snapshot.now
        doc, told = report.document(
            cycle.snapshot, cycle.plan, standing=cycle.standing, timings=took, generation=generation
        )
        used = self._usage.look(cycle.snapshot, cycle.plan if cycle.standing is None else Plan(), policy)
        cycle = replace(cycle, plan=told)
        substance = report.substance(doc) + repr((policy.clouds, policy.cloud_limits))
        with self._ledger.together():
            self._tell(cycle)
            for kind, text in self._preparer.fresh.items():
                self._ledger.learn(kind, text, now)
            self._preparer.fresh.clear()
            self._note_self(now, cycle.standing, clock)
            self._ledger.count(counters.turned(took))
            if used is not None:
                self._ledger.book(used)
            self._offers.look(cycle.snapshot)
            # The document is written when something in it has changed, not each time that it grew older.
            # A clock that was set back must not keep it from that.
            if substance != self._saved[1] or abs(now - self._saved[0]) >= SAVE_EVERY:
                decided = clouds.overrides(self._ledger)
                doc.update(tallies(cycle.snapshot, cycle.plan, policy, decided))
                self._ledger.save_cycle(doc, now)
                self._ledger.note("schedds", {"seen": self._observer.schedds_seen}, now)
                self._ledger.note(PACE, self._preparer.pace_note, now)
                self._saved = (now, substance)
            if abs(now - self._pruned) >= PRUNE_EVERY:
                self._ledger.prune(now)
                self._pruned = now
        self._usage.written()
        self._log_sources(cycle.snapshot)
        self._write_line(cycle, took)
        self._log_outcomes()

    def _note_self(self, now: float, standing: Reason | None, clock: Note) -> None:
        doc = {
            "pid": os.getpid(),
            "host": self._host,
            "started": self._started,
            "last_cycle": now,
            "acting": standing is None,
        }
        self._ledger.note("controller", doc, now)
        if clock != self._clock_noted:
            self._clock_noted = clock
            self._ledger.note(CLOCK, self._clock_noted, now)

    def _tell(self, cycle: Cycle) -> None:
        """Warnings and the standing become events when they come up, not as long as they last."""
        warnings = frozenset(cycle.plan.warnings)
        codes = {(reason.code, _stem(reason.text)) for reason in self._told}
        for warning in cycle.plan.warnings:
            if (warning.code, _stem(warning.text)) not in codes:
                self._ledger.event(cycle.snapshot.now, "warning", "", warning)
                self._log.warning(warning.text, code=warning.code)
        self._told = warnings
        code = None if cycle.standing is None else cycle.standing.code
        if code != self._stood:
            self._stood = code
            reason = cycle.standing or Reason("acting", "this controller acts for the pool")
            self._ledger.event(cycle.snapshot.now, "standing", "", reason)
            self._log.info(reason.text, code=reason.code)

    def _log_sources(self, snapshot: Snapshot) -> None:
        """Who doesn't answer is said when it begins and when it ends, not as long as it lasts."""
        silent = {
            name: source.error
            for name, source in report.sources(snapshot).items()
            if isinstance(source.error, Reason)
        }
        for name in sorted(silent.keys() - self._silent):
            self._log.warning(f"{name}: no answer: {silent[name].text}", code=silent[name].code)
        for name in sorted(self._silent - silent.keys()):
            self._log.info(f"{name}: answers again", code="answers")
        self._silent = frozenset(silent)

    def _log_outcomes(self) -> None:
        """What became of what was begun, also in earlier cycles, is said in the log as in the ledger."""
        for event in self._ledger.events(after=self._logged, kinds=report.OUTCOMES):
            self._logged = event.id
            self._log.info(report.outcome(event), code=event.code)

    def _write_line(self, cycle: Cycle, took: Mapping[str, float]) -> None:
        if cycle.standing is not None or not cycle.plan.actions:
            return
        counts = report.jobs(cycle.snapshot)
        for text, code in report.lines(cycle.snapshot, cycle.plan):
            self._log.info(text, code=code)
        self._log.info(
            "cycle",
            waiting=counts.idle,
            running=counts.running,
            machines=len(cycle.plan.machines),
            actions=len(cycle.plan.actions),
            late=len(cycle.late),
            took=round(sum(took.values()), 2),
        )

    def say(self, kind: str, reason: Reason, at: float) -> None:
        """Tell of something that happened to the controller itself; the log has it in any case."""
        self._log.info(reason.text, code=reason.code)
        try:
            self._ledger.event(at, kind, "", reason)
        except LedgerError as error:
            self._log.error("the ledger can't be written", why=str(error))


def _stem(text: str) -> str:
    """A warning's text without its numbers, which grow while it is the same warning; those in names stay."""
    return _NUMBER.sub("", text)
