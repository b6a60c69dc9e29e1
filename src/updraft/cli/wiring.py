"""From the settings to working parts: the one place that knows which room is plugged into which."""

import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import structlog

from updraft.act import Actor, UserData
from updraft.bootstrap.cvmfs import Repository, SharedSoftware
from updraft.bootstrap.head import SIGNING_KEY, WORKER_USER
from updraft.bootstrap.install import Install
from updraft.bootstrap.layers import parse_layer
from updraft.bootstrap.reach import BROKER, BROKER_KEY, BROKER_KEYS, Reach
from updraft.bootstrap.sizing import update_interval
from updraft.bootstrap.worker import WorkerSpec, worker_user_data
from updraft.cli.headfacts import filled
from updraft.cli.poolsize import children, largest
from updraft.clouds.awaited import Awaited
from updraft.clouds.base import Driver, Pace
from updraft.clouds.paced import Paced
from updraft.clouds.prices import Priced
from updraft.condor.access import PoolAccess
from updraft.condor.base import Pool
from updraft.condor.judge import Judge
from updraft.condor.pool import HTCondorPool
from updraft.condor.tools import Tools
from updraft.config import load
from updraft.config.drivers import driver_entry
from updraft.config.model import Cloud, Settings
from updraft.config.worker import Layer, WorkerClass
from updraft.core.catalogue import imagine, learned
from updraft.core.kinds import kind_key
from updraft.core.model import Launch, Variant, variant
from updraft.core.plan import plan
from updraft.daemon import Daemon, Herald, Parts, Rhythm, StateLock, Switch, controller_id
from updraft.errors import CloudError, UsageError
from updraft.garbage import look_seldom
from updraft.ledger import Ledger
from updraft.ledger.rows import scrub
from updraft.observe import Kinds, Observer, Remembered
from updraft.recording import Planner, Recorder

Say = Callable[[str, CloudError | None], None]


def make_parts(settings: Settings, say: Say = lambda _name, _error: None) -> Parts:
    """The policy, the pool, the drivers and the user-data that the settings lead to.

    A cloud that can't be asked yet is asked again until it can, and `say` is told of it (its name, and why;
    None once it can). Raises UsageError for a driver that isn't there, and ConfigError for wrong settings.
    """
    drivers = {name: _driver_or_wait(settings, name, cloud, say) for name, cloud in settings.clouds.items()}
    pool = HTCondorPool(access(settings))
    return Parts(settings.policy(), pool, drivers, user_data(settings, pool), pool.close)


def make_observer(parts: Parts, ledger: Remembered, judge: Judge) -> Observer:
    """What looks at all of it."""
    return Observer(
        policy=parts.policy,
        pool=parts.pool,
        drivers=parts.drivers,
        ledger=ledger,
        kinds=Kinds(kind_key, imagine, learned),
        matcher=judge,
    )


def access(settings: Settings) -> PoolAccess:
    """How the pool is reached. A token's whole directory is HTCondor's token directory."""
    pool = settings.pool
    return PoolAccess(
        name=pool.name,
        collector=pool.collector or None,
        token_dir=None if pool.token is None else pool.token.parent,
        trust_domain=pool.trust_domain,
        condor_config=pool.condor_config,
        broker_keys=BROKER_KEYS,
        broker_key=BROKER_KEY,
        worker_identity=WORKER_USER + "{launch}",  # of the form that the head lets advertise itself
        signing_key=SIGNING_KEY,
    )


def _driver_or_wait(settings: Settings, name: str, cloud: Cloud, say: Say) -> Driver:
    make = partial(make_driver, settings, name, cloud)
    try:
        return make()
    except CloudError:  # most often for want of credentials: they may still come
        return Awaited(name, make, partial(say, name))


def make_driver(settings: Settings, name: str, cloud: Cloud) -> Driver:
    """The driver of one cloud, with the site's prices over its own."""
    entry = driver_entry(cloud.driver)
    if entry is None:
        raise UsageError(
            f'there is no driver "{cloud.driver}" for the cloud {name}; install it, or name another'
        )
    driver = cast(Driver, entry.load()(name, settings.pool.name, cloud.settings))
    pace: Pace | None = getattr(driver, "pace", None)  # of a driver that is not to be asked at each look
    driver = Priced(driver, cloud.prices, name) if cloud.prices else driver
    return driver if pace is None else Paced(driver, pace)


def user_data(settings: Settings, pool: HTCondorPool) -> UserData:
    """What makes the user-data of a launch. What the file leaves open is asked of HTCondor, once."""
    ask = asker(settings)

    def make(launch: Launch, token: str) -> bytes:
        return worker_user_data(with_broker_token(worker_spec(settings, ask, launch, token), pool))

    return make


def with_broker_token(spec: WorkerSpec, pool: HTCondorPool) -> WorkerSpec:
    """The same with a token for the broker, where its machines are reached through one."""
    if not spec.reach.broker:
        return spec
    token = pool.mint_broker_token(spec.launch_key, spec.lifetime + spec.drain_deadline)
    return replace(spec, reach=replace(spec.reach, token=token))


def asker(settings: Settings) -> Callable[[str], str]:
    """What asks HTCondor's configuration for a setting, each once."""
    pool = settings.pool
    environment = {} if pool.condor_config is None else {"CONDOR_CONFIG": str(pool.condor_config)}
    return cache(Tools((), environment, pool.collector or None).setting)


def collectors_of(settings: Settings, ask: Callable[[str], str]) -> tuple[str, ...]:
    """The pool's collectors, each `host[:port]`."""
    return tuple((settings.pool.collector or ask("COLLECTOR_HOST")).replace(",", " ").split())


def worker_spec(settings: Settings, ask: Callable[[str], str], launch: Launch, token: str) -> WorkerSpec:
    """All that a worker of this launch is told; `ask` says what HTCondor's own configuration has."""
    pool, offer = settings.pool, launch.offer
    worker, made = settings.classes[offer.worker_class], variant(offer.variant)
    trust_domain = pool.trust_domain or ask("TRUST_DOMAIN")
    collectors = collectors_of(settings, ask)
    return WorkerSpec(
        pool=pool.name,
        collectors=collectors,
        trust_domain=trust_domain,
        uid_domain=pool.uid_domain or (trust_domain if pool.collector else ask("UID_DOMAIN")),
        token=token,
        worker_class=offer.worker_class,
        cloud=offer.cloud,
        zone=offer.zone,
        image=offer.image,
        flavor=offer.flavor,
        market=offer.market,
        launch_key=launch.key,
        generation=offer.generation,
        sold=offer.resources,
        price=offer.price,
        variant=made,
        attributes=worker.attributes,
        static_slots=None if worker.slots == "partitionable" else worker.slots,
        lifetime=worker.lifetime,
        drain_deadline=worker.drain_deadline,
        job_lease=pool.job_lease,
        head_gone_after=worker.head_gone_after,
        boot_deadline=worker.boot_deadline,
        update_interval=update_interval(largest(settings)),
        children=children(settings, ask),
        install=installed(worker, ask),
        software=software(worker),
        reach=reach(worker, collectors),
        cernvm=worker.contextualisation == "cernvm",
        layers=tuple(parse_layer(layer.name, filled(layer, pool, ask)) for layer in _layers(worker, made)),
    )


def _layers(worker: WorkerClass, made: Variant) -> tuple[Layer, ...]:
    """The class's own layers, and behind them those that the variant has been asked for with."""
    asked = made.layers.split(",") if made.layers else ()
    return (*worker.layers, *(worker.offered_layers[name] for name in asked))


def installed(worker: WorkerClass, ask: Callable[[str], str]) -> Install:
    """What the first boot of a worker installs; without a version of its own, what the head has."""
    asked, version = worker.condor_version, ""
    if worker.condor == "install":
        version = asked or ask("CONDOR_VERSION")
    return Install(
        version=version,
        exactly=not version or bool(asked),
        repository=worker.condor_repository,
        keys=worker.condor_keys,
        universes=worker.universes,
        cvmfs=worker.cvmfs_client if worker.cvmfs else "",
        cvmfs_source=worker.cvmfs_source,
        cvmfs_pins=worker.cvmfs_pins,
    )


def reach(worker: WorkerClass, collectors: tuple[str, ...]) -> Reach:
    """How its machines are reached; the broker is the head's own unless the class names one."""
    if worker.reach == "ccb":
        # What was named for the collector's own socket is for the broker's, behind the same port.
        return Reach(broker=worker.ccb or f"{collectors[0].partition('?')[0]}?sock={BROKER}")
    return Reach(host=worker.forwarding_host) if worker.reach == "forwarded" else Reach()


def brokers(settings: Settings) -> dict[str, Callable[[], str]]:
    """For each class that is reached through a broker, what finds that broker's address."""
    ask = asker(settings)
    return {
        name: partial(lambda one: reach(one, collectors_of(settings, ask)).broker, worker)
        for name, worker in settings.classes.items()
        if worker.reach == "ccb"
    }


def software(worker: WorkerClass) -> SharedSoftware:
    """What its machines mount below /cvmfs."""
    return SharedSoftware(
        repositories=tuple(Repository(one.name, one.server, one.key_text) for one in worker.cvmfs),
        proxy=worker.cvmfs_proxy,
        client=worker.cvmfs_client,
    )


def run_daemon(file: Path, log_form: str, record: Path | None = None) -> None:
    """The daemon of this configuration, until it is told to stop; its decisions are kept in `record`."""
    settings = load(file)
    start_log(log_form)
    look_seldom()
    decide: Planner = plan if record is None else Recorder(record, plan, warn=_tell_of_recording)
    pools: list[Pool] = []

    def parts_now() -> Parts:
        parts = make_parts(load(file), _tell_of_cloud)
        pools.append(parts.pool)
        return parts

    with StateLock(settings.pool.state_dir), Ledger(settings.pool.ledger) as ledger, Judge() as judge:
        switch = Switch()
        switch.install()
        try:
            make_daemon(settings, ledger, judge, switch, parts_now, decide).run()
        finally:
            if isinstance(decide, Recorder):
                decide.close()
            for pool in pools:
                cast(HTCondorPool, pool).close()
            switch.close()


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
    decide: Planner = plan,
) -> Daemon:
    """The daemon with everything plugged in; `parts_now` makes the parts of the configuration as it is."""
    parts, host = parts_now(), socket.getfqdn()
    actor = Actor(
        policy=parts.policy,
        pool=parts.pool,
        drivers=parts.drivers,
        user_data=parts.user_data,
        ledger=ledger,
        clock=time.time,
    )
    return Daemon(
        parts=parts,
        ledger=ledger,
        observer=make_observer(parts, ledger, judge),
        actor=actor,
        plan=decide,
        clock=time.time,
        switch=switch,
        herald=Herald(
            parts.pool,
            controller_id(settings.pool.state_dir, host),
            host,
            time.time,
            Rhythm(settings.pool.announce, 8 * settings.pool.announce),
        ),
        reload=parts_now,
    )


def _scrubbed(_logger: object, _method: str, line: Any) -> str:
    # Errors quote what a cloud or a daemon has said, and that may be anything.
    return scrub(str(line))


def start_log(form: str) -> None:
    """Log lines to stderr: for people, or one JSON object a line. What looks like a token is left out."""
    shape: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            shape,
            _scrubbed,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
