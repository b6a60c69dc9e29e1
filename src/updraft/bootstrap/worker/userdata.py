"""The user-data of a worker: it joins the pool, does its work, and ends itself when it is alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from updraft.bootstrap import condor_config as cc
from updraft.bootstrap import machine
from updraft.bootstrap.layers import EC2_LIMIT, Layer, compose
from updraft.bootstrap.worker import accounts
from updraft.bootstrap.worker.agent import agent_files, guard_settings, lease_settings, notice_settings
from updraft.bootstrap.worker.cvmfs import SharedSoftware, cvmfs_files
from updraft.bootstrap.worker.door import door_files, drive_files
from updraft.bootstrap.worker.handover import handover_files
from updraft.bootstrap.worker.install import Install, install_files, universe_macros
from updraft.bootstrap.worker.reach import Reach, reach_files, reach_settings
from updraft.core.machines.handover import ABSENCE
from updraft.core.model import NOTHING, PLAIN, CloudOffer, Resources, Variant
from updraft.core.slots.terms import TAKES, annex_says, says, takes
from updraft.errors import BootstrapError

DAY = 86400.0

# The last file that HTCondor reads: what an image or a layer of the class says of START holds as well.
START = f"START = ($(START:True)) && MY.{TAKES}\n"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """All that a worker of one launch is told; times in seconds.

    `collectors` are `host[:port]`, at least one; `token` is HTCondor's, a secret. `sold` is what the cloud
    sells the machine as, `price` (per hour) for how much, where that is known. `attributes` are extra
    machine attributes (name to ClassAd expression), `resources` custom resources and how many of each.
    `static_slots` None is one partitionable slot. `cpus` and
    `memory` (MiB) make the machine as large as its flavor says where it can't see that itself.
    `vacate_time` is what a job that is evicted gets to save its work.
    `head_gone_after` is never less than `job_lease`. `boot_deadline` is for HTCondor's first start, from the
    last stage of cloud-init; `startd_gone_after` is how long a startd may be away (a restart) before the
    machine ends; `failed_boot_after` how long a failed boot is left on for its console to be read.
    `update_interval` is how often a startd advertises itself, and the longest time from drained to gone: a
    pool of thousands wants more (`sizing.update_interval`). `children` is how many child collectors the head
    has, one of which each machine reports to. `install` is what the first boot installs, `software` what it
    mounts, `reach` how it is reached.
    `spot_interval` is how often a spot machine asks whether it is to be taken back, `spot_least` how long it
    reckons with where that isn't said legibly. `cernvm` makes the user-data of a form that
    CernVM's own contextualisation can read too. `lease` is when the machine was asked for and when it ends
    whatever happens, in epoch seconds; None without a lease. `asks` is whether it asks for a token of its own
    with this one.
    """

    pool: str
    collectors: tuple[str, ...]
    trust_domain: str
    uid_domain: str
    token: str = field(repr=False)
    worker_class: str
    cloud: str
    zone: str
    image: str
    flavor: str
    market: str
    launch_key: str
    generation: str
    sold: Resources = NOTHING
    price: float | None = None
    variant: Variant = PLAIN
    attributes: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    static_slots: int | None = None
    cpus: int | None = None
    memory: int | None = None
    lifetime: float = 7 * DAY
    drain_deadline: float = 3600.0
    vacate_time: float = 120.0
    job_lease: float = 2400.0
    head_gone_after: float = 3600.0
    boot_deadline: float = 1800.0
    startd_gone_after: float = 300.0
    failed_boot_after: float = 300.0
    update_interval: float = 5.0
    children: int = 0
    guard_interval: float = 15.0
    spot_interval: float = 5.0
    spot_least: float = 30.0
    install: Install = field(default_factory=Install)
    software: SharedSoftware = field(default_factory=SharedSoftware)
    reach: Reach = field(default_factory=Reach)
    cernvm: bool = False
    layers: tuple[Layer, ...] = ()
    lease: tuple[float, float] | None = None
    identity: str = ""
    asks: bool = False


def worker_user_data(spec: WorkerSpec, *, limit: int = EC2_LIMIT) -> bytes:
    """The user-data of every machine of one launch.

    Raises BootstrapError for a value that can't be what it should be, for layers that contradict each other,
    and for more than `limit` bytes.
    """
    return compose(worker_layers(spec), limit=limit, cernvm=spec.cernvm)


def worker_layers(spec: WorkerSpec) -> tuple[Layer, ...]:
    """The layers in their order: updraft's own, the site's, and the start of HTCondor as the last."""
    _check(spec)
    own: dict[str, Any] = {
        "bootcmd": machine.early_steps(spec.children),
        "write_files": [
            machine.file(f"{machine.CONFIG_DIR}/01-updraft-security.conf", cc.SECURITY),
            machine.file(f"{machine.CONFIG_DIR}/90-updraft.conf", worker_config(spec)),
            machine.file(f"{machine.CONFIG_DIR}/zz-updraft-start.conf", START),
            machine.file("/etc/condor/tokens.d/updraft", spec.token.strip() + "\n", "0600"),
            *door_files(),
            *drive_files(),
            *accounts.account_files(),
            *agent_files(_watchers(spec)),
            *handover_files(spec.pool, spec.launch_key, spec.boot_deadline, spec.reach, asks=spec.asks),
            *install_files(spec.install),
            *cvmfs_files(spec.software),
            *reach_files(spec.reach, asks=spec.asks),
            *machine.boot_files({"EXPECT": "condor_startd"}),
        ],
    }
    return (
        Layer("updraft's worker", own),
        *spec.layers,
        Layer("updraft's start of HTCondor", {"runcmd": machine.boot_steps()}),
    )


def worker_config(spec: WorkerSpec) -> str:
    """HTCondor's configuration of a worker. Holds no secret."""
    settings: dict[str, str | int | bool] = {
        "DAEMON_LIST": "MASTER STARTD",
        "CONDOR_HOST": ", ".join(spec.collectors),
        "TRUST_DOMAIN": spec.trust_domain,
        "UID_DOMAIN": spec.uid_domain,
        # With the instance id in it: the ad goes with the machine, not with the next one of its host name.
        "MASTER_NAME": "$(STARTD_NAME)",
        # Accounts of submitters don't exist here, and must not be needed.
        "STARTER_ALLOW_RUNAS_OWNER": False,
        **accounts.SETTINGS,
        # Without it a graceful drain evicts at once. It counts from the start of a job, not of the drain, and
        # a drain evicts as soon as no more than the time to vacate is left of it: so it covers all the time
        # that a job can have run here, and that.
        "MAXJOBRETIREMENTTIME": math.ceil(spec.lifetime + spec.drain_deadline + spec.vacate_time),
        "MachineMaxVacateTime": math.ceil(spec.vacate_time),
        # A benchmark under way delays the end of a drained machine by half a minute.
        "RUNBENCHMARKS": 0,
        # Also how long an emptied startd waits until it exits: it looks only then.
        "UPDATE_INTERVAL": math.ceil(spec.update_interval),
        "MASTER_UPDATE_INTERVAL": max(60, math.ceil(spec.update_interval)),
    }
    if spec.cpus is not None:
        settings["NUM_CPUS"] = spec.cpus
    if spec.memory is not None:
        settings["MEMORY"] = spec.memory
    settings |= universe_macros(spec.install.universes) | reach_settings(spec.reach)
    return cc.lines(settings | _slots(spec.static_slots) | _resources(spec) | _attributes(spec))


def guard_limits(spec: WorkerSpec) -> dict[str, float]:
    """The limits by which a machine of it is ended, in seconds."""
    return {
        "interval": spec.guard_interval,
        "lifetime": spec.lifetime,
        "drain_deadline": spec.drain_deadline,
        "head_gone_after": spec.head_gone_after,
        # One that waits for a controller hasn't failed yet.
        "boot_deadline": spec.boot_deadline + (ABSENCE if spec.asks else 0.0),
        "startd_gone_after": spec.startd_gone_after,
        "failed_boot_after": spec.failed_boot_after,
    }


def _watchers(spec: WorkerSpec) -> dict[str, dict[str, Any]]:
    """What each watcher of its agent is told; one that has nothing to watch there isn't told anything."""
    heads = [cc.split_address(address) for address in spec.collectors]
    told = {"guard": guard_settings(heads, guard_limits(spec))}
    if spec.lease is not None:
        told["lease"] = lease_settings(*spec.lease, spec.boot_deadline, spec.guard_interval)
    if spec.market == "spot":
        told["notice"] = notice_settings(spec.spot_interval, spec.spot_least)
    return told


def _slots(static: int | None) -> dict[str, str | int | bool]:
    if static is None:
        # Whose jobs are in its children: a schedd that flocks here may be in nobody's list.
        rolled_up = "$(STARTD_PARTITIONABLE_SLOT_ATTRS) GlobalJobId"
        return {
            "NUM_SLOTS_TYPE_1": 1,
            "SLOT_TYPE_1": "100%",
            "SLOT_TYPE_1_PARTITIONABLE": True,
            "STARTD_PARTITIONABLE_SLOT_ATTRS": rolled_up,
        }
    return {
        "NUM_SLOTS_TYPE_1": static,
        "SLOT_TYPE_1": f"1/{static}",
        "SLOT_TYPE_1_PARTITIONABLE": False,
    }


def _resources(spec: WorkerSpec) -> dict[str, str | int | bool]:
    return {f"MACHINE_RESOURCE_{cc.attribute_name(name)}": n for name, n in spec.resources.items()}


def _attributes(spec: WorkerSpec) -> dict[str, str | int | bool]:
    """The attributes by which the pool says whose machine it is; the instance id is found at boot.

    The names are those of `updraft.condor.base`, which this room doesn't import; a test holds them together.
    """
    own = {
        "UpdraftPool": spec.pool,
        **({"UpdraftIdentity": spec.identity} if spec.identity else {}),
        "UpdraftClass": spec.worker_class,
        "UpdraftCloud": spec.cloud,
        "UpdraftZone": spec.zone,
        "UpdraftImage": spec.image,
        "UpdraftFlavor": spec.flavor,
        "UpdraftMarket": spec.market,
        "UpdraftLaunch": spec.launch_key,
        "UpdraftGeneration": spec.generation,
    }
    offer = CloudOffer(spec.cloud, spec.zone, spec.flavor, spec.market, spec.sold, spec.price)
    more = says(offer, spec.image, spec.worker_class, spec.variant)
    values: dict[str, str | int | bool] = {
        name: cc.classad_string(value) if isinstance(value, str) else repr(value)
        for name, value in {**own, **more}.items()
    }
    values[TAKES] = cc.expression(TAKES, takes(spec.variant))
    for name, value in spec.attributes.items():
        values[cc.attribute_name(name)] = cc.expression(name, value)
    advertised = " ".join(["UpdraftInstance", *values])
    master: dict[str, str | int | bool] = {}
    if spec.variant.annex:
        # By the master's ad, `condor_off -annex` knows whom to turn off.
        master["MASTER_ATTRS"] = f"$(MASTER_ATTRS) {' '.join(annex_says(spec.variant))}"
    return values | {"STARTD_ATTRS": f"$(STARTD_ATTRS) {advertised}"} | master


def _check(spec: WorkerSpec) -> None:
    cc.domain("trust domain", spec.trust_domain)
    cc.domain("UID domain", spec.uid_domain)
    if not spec.collectors:
        raise BootstrapError("a worker needs the address of at least one collector")
    for address in spec.collectors:
        cc.split_address(address)
    if not spec.token.strip() or len(spec.token.split()) != 1:
        raise BootstrapError("a worker needs a token, in one line")
    if spec.head_gone_after < spec.job_lease:
        raise BootstrapError(
            f"head_gone_after ({spec.head_gone_after:g} s) must not be less than the job lease "
            f"({spec.job_lease:g} s): a job whose head comes back within its lease would be lost"
        )
    if not spec.cernvm and any(layer.is_context for layer in spec.layers):
        raise BootstrapError(
            'a layer that begins with "[" is CernVM\'s own: set contextualisation = "cernvm"'
        )
    if spec.static_slots is not None and spec.static_slots < 1:
        raise BootstrapError(f"static slots must be 1 or more, not {spec.static_slots}")
