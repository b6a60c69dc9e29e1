"""A controller of several fake clouds in virtual time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.rigs.pools.virtualpool import KINDS, Clock, Everything, VirtualPool
from tests.rigs.rig import POOL, TIMINGS, VirtualSwitch
from updraft.act import Actor, Lanes
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.clouds.fake.faults import Fault
from updraft.core.model import Snapshot
from updraft.core.plan import plan
from updraft.core.settings import CloudRule, Limits, Policy, WorkerClass
from updraft.daemon import Daemon, Parts
from updraft.daemon.preparing import Preparer
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Observer

SMALL = {"flavors": {"small": {"cpus": 2, "memory": "4GiB", "price": 0.1}}}
QUICK = {"boots": [{"start": "4s", "join": "4s"}]}


class ManyClouds:
    """One pool, its clouds by name (each with its fake settings), and the controller that is at work.

    `limits` and `rules` are by cloud. Every minute that passes is 30 looks; the queue is `idle`.
    """

    def __init__(
        self,
        state: Path,
        clouds: Mapping[str, Mapping[str, Any]],
        *,
        limits: Mapping[str, Limits] | None = None,
        rules: Mapping[str, CloudRule] | None = None,
        pool_limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.state = state
        self.clock = Clock()
        self.sites = {
            name: Site(name, site_settings(name, {**QUICK, **about}), self.clock)
            for name, about in clouds.items()
        }
        self.pool = VirtualPool(self.clock, list(self.sites.values()))
        worker = WorkerClass(
            "default",
            "g1",
            tuple(clouds),
            images=dict.fromkeys(clouds, "img"),
            idle_limit=60,
            boot_deadline=120,
        )
        self.policy = Policy(
            POOL,
            {"default": worker},
            pool_limits,
            limits or {},
            TIMINGS,
            clouds={name: (rules or {}).get(name, CloudRule()) for name in clouds},
        )
        self.ledger: Ledger | None = None
        self.snapshot: Snapshot | None = None
        self.daemon = self.restart()

    def restart(self) -> Daemon:
        """Another controller on the same ledger; the one before is gone."""
        self.close()
        self.ledger = ledger = Ledger(self.state / "ledger.db")
        clouds = {name: FakeCloud(site, POOL).cloud for name, site in self.sites.items()}
        parts = Parts(self.policy, self.pool, clouds, lambda launch, _: launch.key.encode())
        observer = Observer(
            policy=self.policy, pool=self.pool, clouds=clouds, ledger=ledger, asking=VIRTUAL
        )  # fmt: skip
        preparer = Preparer(ledger=ledger, matcher=Everything(), kinds=KINDS, stopwatch=VIRTUAL.stopwatch)
        actor = Actor(
            policy=self.policy, pool=self.pool, clouds=clouds, user_data=parts.user_data, ledger=ledger,
            clock=self.clock, lanes=Lanes(width=0), step=lambda _: None,
        )  # fmt: skip
        self.daemon = Daemon(
            parts=parts, ledger=ledger, observer=observer, preparer=preparer, actor=actor, plan=plan,
            clock=self.clock, switch=VirtualSwitch(self.clock), stopwatch=lambda: 0.0, notify=lambda _: None,
        )  # fmt: skip
        return self.daemon

    @property
    def idle(self) -> int:
        """Jobs that wait."""
        return self.pool.queues["schedd"].idle

    @idle.setter
    def idle(self, number: int) -> None:
        self.pool.queues["schedd"].idle = number

    def turn(self, seconds: float, each: float = 2.0) -> None:
        """Looks for so long, with the negotiator at work in between."""
        until = self.clock() + seconds
        while self.clock() < until:
            self.snapshot = self.daemon.cycle().snapshot
            self.clock.forward(each)
            self.pool.negotiate()

    def alive(self) -> dict[str, int]:
        """How many machines of ours each cloud has now, whatever it says of them."""
        return {name: len(site.alive(POOL)) for name, site in self.sites.items()}

    def fail(self, cloud: str, seconds: float, call: str = "*", error: str = "cloud-unavailable") -> None:
        """This cloud's API answers so for so long, from now on."""
        now = self.clock()
        self.sites[cloud].faults.add(Fault(error, call, start=now, until=now + seconds))

    def close(self) -> None:
        """Let go of the ledger."""
        if self.ledger is not None:
            self.ledger.close()


Make = Callable[..., ManyClouds]
"""Makes one of clouds by name, and the rest as `ManyClouds` has it."""


@contextmanager
def worlds(state: Path) -> Iterator[Make]:
    """What makes them, each with its ledger in this folder; at the end all are closed."""
    made: list[ManyClouds] = []

    def one(*args: Any, **kwargs: Any) -> ManyClouds:
        made.append(ManyClouds(state, *args, **kwargs))
        return made[-1]

    yield one
    for each in made:
        each.close()
