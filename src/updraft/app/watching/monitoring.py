"""`updraft metrics`: the process that reads the ledger, answers Prometheus, and tells people of alarms."""

import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from updraft.app.log import start_log
from updraft.config.model import Settings
from updraft.config.tables.monitoring import address
from updraft.errors import UsageError
from updraft.garbage import look_seldom
from updraft.metrics.alarms.receivers import MailSettings, Receiver, receiver
from updraft.metrics.alarms.sending import Sender
from updraft.metrics.alarms.watching import AlarmWatch
from updraft.metrics.exposition import LedgerCollector, serve, text, write
from updraft.metrics.reading import LedgerSource
from updraft.watching.known import daemon_state

WATCH_EVERY = 15.0
"""Seconds between two looks for alarms."""


def source_of(settings: Settings) -> LedgerSource:
    """What reads the ledger of this configuration."""
    pool = settings.pool
    return LedgerSource(pool.ledger, pool.name, daemon_state, pool.token)


def write_once(settings: Settings, file: Path) -> None:
    """Write the metrics into a file for node_exporter. Raises UsageError where that can't be."""
    if file.suffix != ".prom":
        raise UsageError(f'{file}: node_exporter reads files that end in ".prom" only; name it so')
    write(LedgerCollector(source_of(settings).picture), file)


def as_text(settings: Settings) -> str:
    """The metrics as they are now."""
    return text(LedgerCollector(source_of(settings).picture)).decode()


def run_metrics(settings: Settings, listen: str | None, log_form: str) -> None:
    """Answer Prometheus and look for alarms until SIGTERM or Ctrl-C.

    Raises UsageError for an address that can't be had, and for a webhook's file that others can read.
    """
    try:
        host, port = address(listen or settings.monitoring.listen)
    except ValueError as error:
        raise UsageError(f"--listen: {error}") from error
    receivers = receivers_of(settings)
    start_log(log_form)
    look_seldom()
    source, log = source_of(settings), structlog.get_logger("updraft")
    with Sender(receivers) as sender, _stopped() as wait:
        port, end = serve(LedgerCollector(source.picture, sender.outcomes), host, port)
        log.info(f"metrics of pool {settings.pool.name} at http://{host}:{port}/metrics", code="listening")
        watch = AlarmWatch(
            sender.send,
            settings.pool.state_dir,
            pause=settings.monitoring.notify_pause,
            again=settings.monitoring.notify_again,
        )
        try:
            _watch(watch, source, wait)
        finally:
            end()


def _watch(watch: AlarmWatch, source: LedgerSource, wait: Callable[[float], bool]) -> None:
    log = structlog.get_logger("updraft")
    while True:
        try:
            watch.look(source.picture())
        except Exception:  # the figures go on, and so does the next look
            log.exception("looking for alarms failed by a fault of updraft itself", code="alarms-failed")
        if wait(WATCH_EVERY):
            return


def receivers_of(settings: Settings) -> list[Receiver]:
    """Who is told. Raises UsageError for a webhook's file that isn't there, or that others can read."""
    said = settings.monitoring
    for entry in said.notify:
        kind, _, target = entry.partition(":")
        if kind == "webhook" and target.startswith("/"):
            _check_private(Path(target))
    mail = MailSettings(said.server, said.mail_from)
    return [receiver(entry, mail) for entry in said.notify]


def _check_private(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise UsageError(f"{file}, which notify names, can't be read: {error.strerror}") from error
    if not stat.S_ISREG(mode) or mode & 0o077:
        raise UsageError(f"{file} has the address of a webhook, and others can read it: chmod 0600 {file}")


@contextmanager
def _stopped() -> Iterator[Callable[[float], bool]]:
    """What waits so many seconds, and says whether the process was told to stop."""
    told = threading.Event()
    before = {one: signal.signal(one, lambda *_: told.set()) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield told.wait
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
