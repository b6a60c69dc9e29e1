"""`updraft report`: what the record, the ledger and the settings say of some days, put together."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from updraft.app.call import Call
from updraft.app.simulation import time_of
from updraft.config.model import Settings
from updraft.core.annexes.progress import REPLACED
from updraft.core.model import LaunchState
from updraft.errors import LedgerError, ProblemFound, UsageError
from updraft.ledger.reader import Event, Reader
from updraft.ledger.usage_reading import records
from updraft.recording.pool_record import RecordReader
from updraft.sim.conditions import Boots, Conditions
from updraft.sim.reports import really
from updraft.sim.reports.month import Found, failures_of, would_be
from updraft.sim.reports.month_document import ReportedFailure
from updraft.sim.world.stock import Saved, clouds_of, offers_of
from updraft.usage import report as usage_report
from updraft.usage.period import ReportPeriod, midnight, period

FAILED = ("failed", "drain-failed", "gone", f"launch-{LaunchState.REFUSED}", f"launch-{LaunchState.UNKNOWN}")
MOST_EVENTS = 50_000
LOOKS = 15.0  # seconds from one look of the simulated controller to the next: the real one looks more often
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """The call as it was made: the days, and how long machines take to join, if it says so."""

    month: str | None
    first: str | None
    last: str | None
    boot: str | None
    replay: bool


def found(call: Call, asked: ReportAsked, tell: Tell = lambda _text: None) -> Found:
    """All that a report says; `tell` hears what takes its time.

    Raises UsageError for a wrong call, ProblemFound where there is no record of these days.
    """
    days = period(asked.month, asked.first, asked.last, datetime.now(UTC).date())
    boots = _boots(asked.boot)
    settings, place = call.settings, call.place
    first, last = midnight(days.days[0]), midnight(days.days[1] + 1)
    if not place.record.exists():
        raise ProblemFound(
            f"{place.record}: there is no record yet: it begins when the daemon of this updraft is started"
        )
    with RecordReader(place.record) as reader:
        past = really.read(reader, first, min(last, time.time() + 1))
        if past is None:
            raise ProblemFound(f"there is no record of {days.first} to {days.last}{_known(reader)}")
        waits = tuple(reader.waits(*days.days))
        saved = _saved(reader)
    jobs, would, why_not = list(past.jobs), None, ""
    if past.watched or asked.replay:
        tell(f"simulating {len(past.jobs)} jobs")
        try:
            clouds = clouds_of(settings, saved)
            if asked.boot is not None:  # it goes before what a cloud's settings say
                clouds = {name: replace(sold, boots=boots) for name, sold in clouds.items()}
            jobs, would = would_be(past, settings.policy(), clouds, Conditions(cycle=LOOKS, boots=boots))
        except UsageError as error:
            why_not = str(error)
    failures, paid, notes = _of_ledger(call, settings, days, past)
    return Found(
        pool=place.pool,
        period=days,
        past=past,
        jobs=tuple(jobs),
        really=really.outcome(past, jobs),
        would=would,
        why_not=why_not,
        waits=waits,
        currency=settings.usage.currency,
        failures=failures,
        paid=paid,
        notes=notes,
    )


def _of_ledger(
    call: Call, settings: Settings, days: ReportPeriod, past: really.Past
) -> tuple[tuple[ReportedFailure, ...], usage_report.UsageReport | None, tuple[str, ...]]:
    """What failed, and what updraft's own machines cost; what the ledger can't say is a note."""
    place, notes = call.place, list[str]()
    failures: tuple[ReportedFailure, ...] = ()
    paid = None
    try:
        with Reader(place.ledger) as reader:
            events = reader.events(limit=MOST_EVENTS, kinds=FAILED)
            failures = failures_of(filter(_is_failure, events), past.first, past.last)
            with records(reader, *days.days) as found_records:
                if found_records is not None and found_records.at is not None:
                    paid = usage_report.document(found_records, place.pool, days, "user", settings.usage)
    except LedgerError as error:
        notes.append(f"what failed and what machines cost isn't known: {error}")
    return failures, paid, tuple(notes)


def _is_failure(event: Event) -> bool:
    return event.kind != "gone" or event.code in REPLACED


def _boots(text: str | None) -> Boots:
    if text is None:
        return Boots()
    median = time_of("--boot", text)
    if median < 1:
        raise UsageError(f"--boot {text}: a machine takes its time; at least 1s")
    return replace(Boots(), median=median)


def _known(reader: RecordReader) -> str:
    span = reader.span()
    if span is None:
        return ": the daemon has written nothing down yet; it does so each minute"
    since, until = (datetime.fromtimestamp(at, UTC).date() for at in span)
    return f"; there is one of {since} to {until}"


def _saved(reader: RecordReader) -> Saved:
    """What each cloud sold when it answered last."""
    return {name: offers_of(json.loads(doc)) for name, doc in reader.offers().items()}
