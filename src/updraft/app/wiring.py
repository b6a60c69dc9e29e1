"""From the settings to working parts: the one place that knows which room is plugged into which."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from updraft.act import UserData
from updraft.app.poolsize import children, heard_every, largest
from updraft.app.variables import filled
from updraft.bootstrap.head.identities import ENDED_SETTING, OWN_SETTING, WORKER_USER
from updraft.bootstrap.head.transforms import GROUPS_SETTING
from updraft.bootstrap.head.userdata import SIGNING_KEY
from updraft.bootstrap.layers import parse_layer
from updraft.bootstrap.sizing import update_interval
from updraft.bootstrap.worker.cvmfs import Repository, SharedSoftware
from updraft.bootstrap.worker.install import Install
from updraft.bootstrap.worker.reach import BROKER, BROKER_KEY, BROKER_KEYS, METADATA, Reach
from updraft.bootstrap.worker.userdata import WorkerSpec, worker_user_data
from updraft.clouds.awaited import Awaited
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.cloud import Cloud, Owner, cloud_of
from updraft.clouds.counted import CallTally, Counted
from updraft.clouds.paced import Paced
from updraft.clouds.watched import watched
from updraft.clouds.wrapping import Priced
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.judge import Judge
from updraft.condor.process.tools import Tools
from updraft.condor.tokens.revoking import EndedTokens
from updraft.condor.tokens.workers import life
from updraft.condor.watched import WatchedPool
from updraft.config.model import CloudTable, Settings
from updraft.config.tables.worker import Layer, WorkerClass
from updraft.core.model import Launch, Variant
from updraft.daemon import Parts
from updraft.daemon.handover import KeyPlace
from updraft.daemon.preparing import Preparer, Remembers
from updraft.errors import CloudError, PoolError
from updraft.ledger.annexes import layer_text
from updraft.ledger.identity import found
from updraft.ledger.reader import Queries
from updraft.ledger.spending import SpendingRecords
from updraft.observe import Observer, Remembered

Say = Callable[[str, CloudError | None], None]


def make_parts(
    settings: Settings,
    say: Say = lambda _name, _error: None,
    calls: CallTally | None = None,
    *,
    watches: bool = False,
) -> Parts:
    """The policy, the pool, the clouds and the user-data that the settings lead to.

    Where the settings say that updraft only watches, or `watches` does, neither pool nor clouds are acted on.
    A cloud that can't be asked yet is asked again until it can, and `say` is told of it (its name, and why;
    None once it can). `calls` counts what the clouds are asked. Raises UsageError for a driver that isn't
    there, and ConfigError for wrong settings.
    """
    watches = watches or not settings.pool.act
    make = _make_watched if watches else make_cloud
    made = {
        name: _cloud_or_wait(name, partial(make, settings, name, cloud, calls), say)
        for name, cloud in settings.clouds.items()
    }
    pool = HTCondorPool(replace(access(settings), own_tokens=own_tokens(settings)))
    policy = settings.policy()
    timings = replace(policy.timings, update_interval=heard_every(settings, asker(settings)))
    policy = replace(
        policy, identity=identity(settings), timings=timings, groups_trusted=groups_trusted(settings)
    )
    port = WatchedPool(pool) if watches else pool
    return Parts(policy, port, made, user_data(settings, pool), pool.close)


def identity(settings: Settings) -> str:
    """What tells this pool from others of its name; "" before its controller has first run."""
    known = found(settings.pool.state_dir)
    return "" if known is None else known.pool


def labels(settings: Settings) -> dict[str, str]:
    """The tags by which what is made for this pool is known, as far as it has an identity yet."""
    own = identity(settings)
    return {TAG_POOL: settings.pool.name, **({TAG_IDENTITY: own} if own else {})}


def make_observer(parts: Parts, ledger: Remembered, path: Path | None = None) -> Observer:
    """What looks at all of it; `path` is the ledger's file, where `ledger` doesn't say it itself."""
    path = ledger.path if path is None and isinstance(ledger, Queries) else path

    read = None if path is None else SpendingRecords(path)
    return Observer(policy=parts.policy, pool=parts.pool, clouds=parts.clouds, ledger=ledger, spending=read)


def make_preparer(
    ledger: Remembers, judge: Judge, tell: Callable[[Exception], None] = lambda _error: None
) -> Preparer:
    """What makes snapshots of what is seen; `tell` is told, once, for what error something is left out."""
    return Preparer(ledger=ledger, matcher=judge, tell=tell)


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


def _make_watched(settings: Settings, name: str, table: CloudTable, calls: CallTally | None) -> Cloud:
    return watched(make_cloud(settings, name, table, calls))


def _cloud_or_wait(name: str, make: Callable[[], Cloud], say: Say) -> Cloud:
    try:
        return make()
    except CloudError:  # most often for want of credentials: they may still come
        return Awaited(name, make, partial(say, name)).cloud


def make_cloud(settings: Settings, name: str, table: CloudTable, calls: CallTally | None = None) -> Cloud:
    """One cloud of the settings, with the site's prices over its own; `calls` counts what it is asked."""
    owner = Owner(settings.pool.name, identity(settings))
    made = cloud_of(name, table.driver, owner, table.settings)
    machines = made.machines if calls is None else Counted(made.machines, calls)
    machines = Priced(machines, table.prices) if table.prices else machines
    if made.traits.pace is None:
        return replace(made, machines=machines)
    paced = Paced(machines, made.traits.pace)
    return replace(made, machines=paced, memory=paced)


def user_data(settings: Settings, pool: HTCondorPool) -> UserData:
    """What makes the user-data of a launch. What the file leaves open is asked of HTCondor, once."""
    ask, asks = asker(settings), own_tokens(settings)

    def make(launch: Launch, token: str) -> bytes:
        spec = with_layer(worker_spec(settings, ask, launch, token), launch, settings.pool.ledger)
        spec = replace(spec, asks=asks)
        return worker_user_data(spec if asks else with_broker_token(spec, pool))

    return make


def own_tokens(settings: Settings) -> bool:
    """Do machines ask for tokens of their own at their boot? Where the head's configuration knows of it."""
    return _is_set(settings, OWN_SETTING)


def groups_trusted(settings: Settings) -> bool:
    """May jobs' accounting groups be believed? As the file says; else as this head's configuration does."""
    said = settings.pool.trust_groups
    return _is_set(settings, GROUPS_SETTING) if said is None else said


def _is_set(settings: Settings, name: str) -> bool:
    """Is this true in the configuration of the head that this is?"""
    if settings.pool.collector:
        return False
    try:
        return asker(settings)(name).lower() == "true"
    except PoolError:
        return False


def shown(settings: Settings) -> Mapping[str, KeyPlace]:
    """Where the machines of each class show their keys, and whether they need a token for a broker."""
    return {name: _shown(worker) for name, worker in settings.classes.items()}


def _shown(worker: WorkerClass) -> KeyPlace:
    if worker.reach == "direct":
        return KeyPlace()
    fixed = worker.reach == "forwarded" and worker.forwarding_host != METADATA
    return KeyPlace(worker.forwarding_host if fixed else None, broker=worker.reach == "ccb")


def ended_tokens(settings: Settings) -> EndedTokens | None:
    """Where tokens that are over are made known on this head; None where its collector reads no such file."""
    if settings.pool.collector:
        return None
    ask = asker(settings)
    try:
        file, daemons = ask(ENDED_SETTING), ask("DAEMON_LIST").replace(",", " ").split()
    except PoolError:
        return None
    others = [
        one for one in daemons if (one.startswith("COLLECTOR") and one != "COLLECTOR") or one == "BROKER"
    ]
    return EndedTokens(access(settings), Path(file), alone=not others)


def with_layer(spec: WorkerSpec, launch: Launch, ledger: Path) -> WorkerSpec:
    """The same with the user-data that the annex was given which the launch is for, as the last layer."""
    annex = launch.annex
    if annex is None or not annex.layer:
        return spec
    layer = parse_layer(f"user-data of annex {annex.name}", layer_text(ledger, annex.layer))
    return replace(spec, layers=(*spec.layers, layer))


def token_life(spec: WorkerSpec) -> float:
    """For how long a token for such a worker is good, in seconds."""
    return life(lifetime=spec.lifetime, drain_deadline=spec.drain_deadline, boot_deadline=spec.boot_deadline)


def with_broker_token(spec: WorkerSpec, pool: HTCondorPool) -> WorkerSpec:
    """The same with a token for the broker, where its machines are reached through one."""
    if not spec.reach.broker:
        return spec
    token = pool.mint_broker_token(spec.launch_key, token_life(spec))
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
    worker, made = settings.classes[offer.worker_class], offer.variant
    trust_domain = pool.trust_domain or ask("TRUST_DOMAIN")
    collectors = collectors_of(settings, ask)
    return WorkerSpec(
        pool=pool.name,
        identity=identity(settings),
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
        resources=worker.resources,
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
        lease=None if launch.annex is None else (time.time(), launch.annex.until),
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
        version = asked or _heads_version(ask)
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


def _heads_version(ask: Callable[[str], str]) -> str:
    try:
        return ask("CONDOR_VERSION")
    except PoolError as error:
        raise PoolError(
            f"workers get the HTCondor that the head has, and it can't be asked here ({error}); write "
            'condor_version into the class, such as "25.0"'
        ) from error


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
