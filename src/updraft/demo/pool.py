"""A real pool on the local cloud: a head made by user-data, with the controller running on it.

What a site has on a cloud, in small: the cloud's process, one machine that is the head, and whatever the
controller on it launches.
"""

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from updraft.act.consoles import boot_failure
from updraft.bootstrap import HeadSpec, Layer, head_user_data, quick
from updraft.clouds.local import process
from updraft.clouds.local.config import DOMAIN, LocalCloudConfig, Quotas
from updraft.clouds.local.images import image as images
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.process import LocalCloud
from updraft.errors import ProblemFound

USER = "alice"
POOL = "demo"
CLOUD = "here"
HEAD_KEY = "head"
UP = 2
QUIET = 90.0
LONGEST = 900.0
Say = Callable[[str], None]

SETTINGS = """\
# Written by `updraft demo`: a pool whose patience is short, so that there is something to see.
[pool]
name = "{pool}"
job_lease = "5m"
announce = "2s"

[clouds.{cloud}]
driver = "local"
endpoint = "{endpoint}"

[classes.worker]
image = "{image}"
flavors = ["small", "medium", "large"]
idle_limit = "15s"
boot_deadline = "3m"
lifetime = "12h"
head_gone_after = "5m"
{class_settings}

[limits]
machines = 12
cores = 40
{limits}

[timings]
cycle = "1s"
cooldown_first = "10s"
{timings}
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a pool of this kind may want changed: lines for the three tables, other images, how it is tied.

    `tied` True ends the cloud with this process, however it ends. `broker` is for workers behind NAT.
    """

    class_settings: str = ""
    limits: str = ""
    timings: str = ""
    more_images: Mapping[str, Image] = field(default_factory=dict)
    tied: bool = True
    quotas: Quotas = field(default_factory=lambda: Quotas(machines=40, cores=160))
    controller: bool = True
    head_layers: tuple[Layer, ...] = ()
    head_settings: Mapping[str, str] = field(default_factory=dict)
    settings: str | None = None
    broker: bool = False


@dataclass(frozen=True, slots=True)
class RealPool:
    """A pool that runs: its cloud and its head."""

    cloud: LocalCloud
    head: str
    image: Image

    def on_head(
        self, *argv: str, user: str | None = None, stdin: str | None = None, timeout: float = 60.0
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on the head, as root or as `user`."""
        return process.run_in(self.cloud, self.head, argv, user=user, stdin=stdin, timeout=timeout)

    def updraft(self, *argv: str, timeout: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Run `updraft` on the head, as the pool's owner would."""
        return self.on_head("updraft", *argv, timeout=timeout)

    def show(self, *argv: str) -> Any:
        """The document that a verb of updraft shows on the head; raises ProblemFound where it has none."""
        done = self.updraft(*argv, "--json")
        if done.returncode != 0:
            raise ProblemFound(done.stderr.strip() or f"`updraft {' '.join(argv)}` failed on the head")
        return json.loads(done.stdout)

    def events(self, last: int = 1000) -> list[dict[str, Any]]:
        """The latest events of the ledger on the head, oldest first."""
        done = self.updraft("events", "--json", "--last", str(last))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def submit(self, description: str, user: str = USER) -> int:
        """Submit jobs as a user does, and return their cluster's number."""
        done = self.on_head("condor_submit", "-terse", "-", user=user, stdin=description)
        if done.returncode != 0:
            raise ProblemFound(f"condor_submit failed on the head: {done.stderr.strip()}")
        return int(done.stdout.split()[0].split(".")[0])

    def history(self, attributes: Sequence[str]) -> list[dict[str, Any]]:
        """Jobs that have ended, with these attributes."""
        done = self.on_head("condor_history", "-json", "-attributes", ",".join(attributes))
        return list(json.loads(done.stdout or "[]"))

    def queue(self, constraint: str = "true") -> list[dict[str, Any]]:
        """Jobs in the queue that satisfy a constraint."""
        done = self.on_head("condor_q", "-allusers", "-json", "-constraint", constraint)
        return list(json.loads(done.stdout or "[]"))

    def slots(self) -> list[dict[str, Any]]:
        """The partitionable and static slots that the collector shows."""
        done = self.on_head("condor_status", "-json", "-constraint", "DynamicSlot =!= true")
        return list(json.loads(done.stdout or "[]"))

    def workers(self, *states: str) -> list[dict[str, Any]]:
        """Instances of the cloud other than the head; `states` narrows them down (none: all)."""
        found = [m for m in self.cloud.client().machines() if m["id"] != self.head]
        return [m for m in found if not states or m["state"] in states]


def bring_up(
    image: Image,
    state_dir: Path,
    say: Say,
    wishes: Wishes = Wishes(),
    lost: Callable[[RealPool], None] = lambda _pool: None,
) -> RealPool:
    """Start a cloud in `state_dir` and a head on it; returns when the pool and the controller answer.

    `lost` is shown a pool whose head doesn't come up, before it ends.
    """
    say("Starting the local cloud.")
    stacks = {found.name: tuple(map(str, found.layers)) for found in (image, *wishes.more_images.values())}
    config = LocalCloudConfig(images=stacks, quotas=wishes.quotas, listed_after_end=3600.0)
    cloud = process.start(config, state_dir, tie_to_parent=wishes.tied)
    try:
        say("Launching the head: a machine of this cloud, made by its user-data.")
        pool = RealPool(cloud, launch_head(cloud, image, wishes), image)
        try:
            _await_head(pool, wishes.controller)
        except BaseException:
            lost(pool)
            raise
    except BaseException:
        cloud.stop()
        raise
    say("The pool answers.")
    return pool


def launch_head(cloud: LocalCloud, image: Image, wishes: Wishes) -> str:
    """Launch the head; it doesn't carry the pool's tag, so nothing of updraft ever touches it."""
    made = cloud.client().run(
        key=HEAD_KEY,
        count=1,
        image=image.name,
        flavor="medium",
        zone=cloud.config.zones[0].name,
        market="on-demand",
        tags={"Name": "head"},
        role="controller",
        user_data=head_data(cloud, image, wishes),
    )
    return str(made[0]["id"])


def head_data(cloud: LocalCloud, image: Image, wishes: Wishes) -> bytes:
    """The head's user-data: HTCondor, a first user, updraft.toml and the controller's service."""
    text = wishes.settings or SETTINGS
    settings = text.format(
        pool=POOL,
        cloud=CLOUD,
        endpoint=cloud.config.endpoint,
        image=image.name,
        class_settings=wishes.class_settings,
        limits=wishes.limits,
        timings=wishes.timings,
    )
    spec = HeadSpec(
        trust_domain=DOMAIN,
        uid_domain=DOMAIN,
        users=(USER, "bob"),
        controller_config=settings if wishes.controller else None,
        job_lease=300.0,
        settings=dict(wishes.head_settings),
        broker=wishes.broker,
        layers=wishes.head_layers,
    )
    return head_user_data(quick(spec))


def _await_head(
    pool: RealPool,
    controller: bool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the schedd answers and the controller has looked at the pool once.

    A busy host may take its time, as long as something moves: given up are a boot that says that it failed, a
    machine that has ended, QUIET seconds without a sign of progress, and LONGEST in all.
    """
    begun = moved = clock()
    furthest, printed = 0, ""
    while (reached := _reached(pool, controller)) < UP:
        console, now = pool.cloud.client().console(pool.head), clock()
        if reached > furthest or console != printed:
            moved, furthest, printed = now, max(reached, furthest), console
        why = _given_up(pool, console, now - moved, now - begun)
        if why:
            raise ProblemFound(f"The head did not come up: {why}; its console ends with:\n{console[-2000:]}")
        sleep(0.5)


def _given_up(pool: RealPool, console: str, quiet: float, waited: float) -> str:
    """Why a head that isn't up yet won't come up; "" while it may."""
    if failure := boot_failure(console):
        return f"its boot failed ({failure})"
    state = next((m["state"] for m in pool.cloud.client().machines() if m["id"] == pool.head), "gone")
    if state not in ("pending", "running"):
        return f"its machine is {state}"
    if quiet >= QUIET:
        return f"nothing has moved on for {quiet:.0f} s"
    return f"{waited:.0f} s are too long" if waited >= LONGEST else ""


def _reached(pool: RealPool, controller: bool) -> int:
    """How far it has come: 1 once the schedd answers, UP once the controller has looked at the pool too."""
    try:
        if pool.on_head("condor_q", "-totals", timeout=10.0).returncode != 0:
            return 0
    except (ProblemFound, subprocess.TimeoutExpired):
        return 0
    try:
        if controller:
            pool.show("status")
    except (ProblemFound, subprocess.TimeoutExpired):
        return 1
    return UP


def find_or_build(store: Path, say: Say, *, suite: str = "forky", condor: bool = True) -> Image:
    """The machine image, built now if this machine has never done so."""
    return images.build(store, suite=suite, condor=condor, progress=say)
