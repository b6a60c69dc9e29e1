"""`updraft run`: the daemon of a configuration, its desk for users' requests for annexes, and its log."""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import structlog

from updraft.act import Actor
from updraft.app.log import start_log
from updraft.app.wiring import (
    access,
    ended_tokens,
    make_observer,
    make_parts,
    make_preparer,
    own_tokens,
    shown,
)
from updraft.bootstrap.worker.handover import PORT
from updraft.clouds.cloud import Cloud
from updraft.clouds.counted import CallTally
from updraft.condor.base import Pool
from updraft.condor.collector.handover import key_at, seal
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.children import expect_sudden_death
from updraft.condor.process.judge import Judge
from updraft.condor.support.history import RECORDED, JobReader
from updraft.condor.tokens.workers import whose
from updraft.config import RECORD_FILE, load
from updraft.config.model import Settings
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy
from updraft.daemon import Cycle, Daemon, LeaderElection, Parts, Rhythm, StateLock, Switch
from updraft.daemon.annex_requests.desk import Desk
from updraft.daemon.annex_requests.server import Server
from updraft.daemon.clockwatch import this_boot
from updraft.daemon.election import WATCHES
from updraft.daemon.figures.counting import TurnCounter
from updraft.daemon.handover import Handover
from updraft.daemon.loop import Seen
from updraft.daemon.records.keeper import RecordKeeper, opened
from updraft.daemon.tokens import TokenKeeper
from updraft.errors import CloudError, ConfigError, LedgerError, PoolError
from updraft.garbage import look_seldom
from updraft.ledger import Ledger
from updraft.ledger.identity import Identity, controller_in, elsewhere, found, kept, this_host, well_formed
from updraft.recording import Planner, Recorder


def run_daemon(file: Path, log_form: str, record: Path | None = None) -> None:
    """The daemon of this configuration, until it is told to stop; its decisions are kept in `record`."""
    settings = load(file)
    start_log(log_form)
    look_seldom()
    expect_sudden_death()
    recorder = None if record is None else Recorder(record, warn=_tell_of_recording)
    closing: list[Callable[[], None]] = []

    lock = StateLock(settings.pool.state_dir)
    with lock, Ledger(settings.pool.ledger) as ledger, Judge() as judge:
        judge.begin()
        known = _identity(settings)
        calls = CallTally()
        counter = TurnCounter(ledger, calls)
        handover = Handover(ledger, call=partial(key_at, port=PORT), seal=seal, whose=whose)

        def parts_now() -> Parts:
            new = load(file)
            same_manner(settings, new)
            parts = make_parts(new, _tell_of_cloud, calls)
            closing.append(parts.close)
            hands = own_tokens(new) and new.pool.act
            handover.reconfigure(cast(HTCondorPool, parts.pool) if hands else None, shown(new))
            return replace(parts, policy=replace(parts.policy, identity=known.pool))

        switch = Switch()
        switch.install()
        try:
            with (
                annex_desk(settings, ledger) as desk,
                token_keeper(settings, ledger, handover) as keeper,
                record_keeper(settings) as recorded,
            ):

                def seen(cycle: Cycle, policy: Policy, clouds: Mapping[str, Cloud]) -> None:
                    desk.watch(cycle, policy, clouds)
                    keeper.watch(cycle, policy, clouds)
                    counter.watch(cycle, policy, clouds)
                    recorded(cycle)

                decide = Planning(_tell_of_fault)
                make_daemon(
                    settings, ledger, judge, switch, parts_now, known, decide, seen, lock.held, recorder
                ).run()
        finally:
            if recorder is not None:
                recorder.close()
            for close in closing:
                close()
            switch.close()


def same_manner(old: Settings, new: Settings) -> None:
    """Raises ConfigError where one acts and the other only watches: a reload doesn't change that."""
    if new.pool.act is not old.pool.act:
        raise ConfigError("[pool] act is read at the start: restart updraft to have it in force")


def _identity(settings: Settings) -> Identity:
    """The pool's identity and this controller's name, made at the first start.

    Another controller that shares the collector, such as the one that this is to stand in for, has said the
    identity there; so has this one before all that it had was lost.
    """
    state_dir = settings.pool.state_dir
    said = "" if found(state_dir) is not None else _announced(settings)
    return kept(state_dir, this_host(), said)


def _announced(settings: Settings) -> str:
    """The identity in the ad of the oldest controller of this pool; "" where none says one."""
    pool, until = HTCondorPool(access(settings)), time.monotonic() + _FIRST_ANSWER
    try:
        while True:
            try:
                ads = pool.controllers(_FIRST_ANSWER / 4)
            except PoolError:  # a head that boots has its collector within seconds
                if time.monotonic() >= until:
                    return ""
                time.sleep(0.5)
            else:
                said = [(ad.since, ad.identity) for ad in ads if well_formed(ad.identity)]
                return min(said)[1] if said else ""
    finally:
        pool.close()


_FIRST_ANSWER = 20.0  # seconds for a collector to say who acts for the pool, at the very first start


def _tell_of_fault(error: Exception) -> None:
    text = "planning failed by a fault of updraft itself, and was done without what it failed for"
    structlog.get_logger("updraft").error(text, code="plan-failed", exc_info=error)


def _tell_of_recording(why: str) -> None:
    structlog.get_logger("updraft").warning(why, code="recording-failed")


def _tell_of_cloud(name: str, error: CloudError | None) -> None:
    log = structlog.get_logger("updraft")
    if error is None:
        log.info(f"cloud {name} can be asked now", code="cloud-ready")
    else:
        log.warning(f"cloud {name} can't be asked, and is waited for: {error}", code=error.code)


def make_daemon(
    settings: Settings,
    ledger: Ledger,
    judge: Judge,
    switch: Switch,
    parts_now: Callable[[], Parts],
    known: Identity,
    decide: Planner = plan,
    seen: Seen | None = None,
    holds: Callable[[], bool] = lambda: True,
    recorder: Recorder | None = None,
) -> Daemon:
    """The daemon with everything plugged in; `parts_now` makes the parts of the configuration as it is.

    `holds` says whether its state directory is its own still. On another host than the one that the pool's
    identity was made for it only reports.
    """
    parts = parts_now()
    actor = Actor(
        policy=parts.policy,
        pool=parts.pool,
        clouds=parts.clouds,
        user_data=parts.user_data,
        ledger=ledger,
        clock=time.time,
    )
    return Daemon(
        parts=parts,
        ledger=ledger,
        observer=make_observer(parts, ledger),
        preparer=make_preparer(ledger, judge, _tell_of_fault),
        actor=actor,
        plan=decide,
        clock=time.time,
        switch=switch,
        boot=this_boot(),
        election=_election(settings, parts.pool, known, holds),
        reload=parts_now,
        seen=seen,
        recorder=recorder,
    )


def _election(settings: Settings, pool: Pool, known: Identity, holds: Callable[[], bool]) -> LeaderElection:
    host = socket.getfqdn()
    return LeaderElection(
        pool,
        f"{controller_in(settings.pool.state_dir, known)}@{host}",
        host,
        time.time,
        Rhythm(settings.pool.announce, 8 * settings.pool.announce),
        stopwatch=partial(time.clock_gettime, time.CLOCK_BOOTTIME),
        identity=known.pool,
        barred=elsewhere(known, this_host()) if settings.pool.act else WATCHES,
        holds=holds,
    )


@contextmanager
def annex_desk(settings: Settings, ledger: Ledger) -> Iterator[Desk]:
    """The desk, with a socket where some users may have annexes when the daemon starts.

    Without the socket the daemon works on: jobs are worth more than requests.
    """
    desk = Desk(ledger, time.time)
    if not settings.policy().annex_allowances or not settings.pool.act:
        yield desk
        return
    server = Server(settings.annexes.socket, desk.answer)
    try:
        server.start()
    except LedgerError as error:
        structlog.get_logger("updraft").error(str(error), code="no-annex-socket")
    try:
        yield desk
    finally:
        server.stop()


@contextmanager
def record_keeper(settings: Settings) -> Iterator[Callable[[Cycle], None]]:
    """What writes down what really is, for `updraft report`, while the daemon runs; it is shown each turn."""

    def tell(why: str) -> None:
        structlog.get_logger("updraft").warning(f"nothing is recorded for reports: {why}", code="no-record")

    record = opened(settings.pool.state_dir / RECORD_FILE, tell)
    if record is None:
        yield lambda _cycle: None
        return
    every = settings.pool.record_every
    keeper = RecordKeeper(record, JobReader(access(settings)), RECORDED, time.time, every)
    keeper.start()
    try:
        yield keeper.watch
    finally:
        keeper.stop()
        record.close()


@contextmanager
def token_keeper(settings: Settings, ledger: Ledger, handover: Handover) -> Iterator[TokenKeeper]:
    """What looks after the workers' tokens while the daemon runs; after none where updraft only watches."""
    ended = ended_tokens(settings) if settings.pool.act else None
    keeper = TokenKeeper(ledger, ended, handover=handover)
    keeper.start()
    try:
        yield keeper
    finally:
        keeper.stop()
