"""A whole controller in virtual time: real plan, real ledger, fake cloud, virtual pool."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.rigs.pools.virtualpool import KINDS, Clock, Everything, VirtualPool
from updraft.act import Actor, Lanes, UserData
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.core.model import Launch, Plan, Snapshot
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Timings, WorkerClass
from updraft.daemon import Daemon, LeaderElection, Parts
from updraft.daemon.preparing import Preparer
from updraft.ledger import Ledger
from updraft.ledger.identity import Host, kept
from updraft.ledger.spending import spent
from updraft.observe import VIRTUAL, Observer
from updraft.recording import Recorder

POOL = "test"
HOST = Host(dmi="0a1b")  # whose cloud says no instance id, from which the identity could be made anew
TIMINGS = Timings(settle=20, missing_confirm=4, end_patience=10, boot_floor=40)


def nothing(_name: str) -> None:
    """No crash."""


class VirtualSwitch:
    """Waiting lets the time pass."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stop = False
        self.reload = False
        self.each: Callable[[], None] = lambda: None

    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)
        self.each()


def policy(**changes: object) -> Policy:
    worker = WorkerClass("default", "g1", ("c1",), images={"c1": "img"}, idle_limit=60, boot_deadline=120)
    told = {"limits": Limits(machines=10), **changes}
    return Policy(POOL, {"default": worker}, timings=TIMINGS, **told)  # type: ignore[arg-type]


class Rig:
    """One world (clock, cloud, pool) in which controllers come and go.

    `observer`, `preparer` and `actor` are those of the controller that was started last.
    """

    observer: Observer
    preparer: Preparer
    actor: Actor

    def __init__(self, state: Path, cloud: Mapping[str, object] | None = None) -> None:
        self.state = state
        self.clock = Clock()
        self.site = Site(
            "c1", site_settings("c1", {"boots": [{"start": "4s", "join": "4s"}], **(cloud or {})}), self.clock
        )
        self.pool = VirtualPool(self.clock, [self.site])
        self.driver = FakeCloud(self.site, POOL)
        self.switch = VirtualSwitch(self.clock)
        self.ledger: Ledger | None = None
        self.user_data: UserData = _user_data
        self.matcher = Everything()
        self.using = policy()
        self._set_by = 0.0

    @property
    def cloud(self) -> Cloud:
        return Cloud("c1", self.driver)

    @property
    def queue(self) -> object:
        return self.pool.queues["schedd"]

    def start(
        self,
        step: Callable[[str], None] = nothing,
        *,
        election: LeaderElection | None = None,
        using: Policy | None = None,
        decide: Callable[[Snapshot, Policy], Plan] = plan,
        reload: Callable[[], Parts] | None = None,
        clock: Callable[[], float] | None = None,
        recorder: Recorder | None = None,
    ) -> Daemon:
        """A controller on the ledger that is there; the one before it is gone. `clock`: its own, if any."""
        if self.ledger is not None:
            self.ledger.close()
        self.ledger = ledger = Ledger(self.state / "ledger.db")
        self.using = using or policy()
        parts = Parts(self.using, self.pool, {"c1": self.cloud}, self.user_data)
        self.observer = Observer(
            policy=parts.policy, pool=self.pool, clouds=parts.clouds, ledger=ledger, asking=VIRTUAL,
            spending=lambda now, people: spent(self.state / "ledger.db", now, people=people),
        )  # fmt: skip
        self.preparer = Preparer(
            ledger=ledger, matcher=self.matcher, kinds=KINDS, stopwatch=VIRTUAL.stopwatch
        )
        self.actor = Actor(
            policy=parts.policy, pool=self.pool, clouds=parts.clouds, user_data=parts.user_data,
            ledger=ledger, clock=clock or self.clock, lanes=Lanes(width=0), step=step,
        )  # fmt: skip
        return Daemon(
            parts=parts, ledger=ledger, observer=self.observer, preparer=self.preparer, actor=self.actor,
            plan=decide, clock=clock or self.clock, switch=self.switch, election=election, reload=reload,
            stopwatch=self.steady, notify=lambda _s: None, boot="this boot", recorder=recorder,
        )  # fmt: skip

    def steady(self) -> float:
        """The clock that nobody sets."""
        return self.clock() - self._set_by

    def set_clock(self, by: float) -> None:
        """Set the clock on the wall, of the host and of all that it asks."""
        self.clock.forward(by)
        self._set_by += by

    def look(self) -> Snapshot:
        """What a new controller sees."""
        self.start()
        return self.preparer.at_once(self.observer.look(self.clock()), self.using).snapshot

    def turn(self, daemon: Daemon, seconds: float, each: float = 2.0) -> None:
        """Cycles for so long, with the negotiator at work in between."""
        until = self.clock() + seconds
        while self.clock() < until:
            daemon.cycle()
            self.clock.forward(each)
            self.pool.negotiate()

    def turn_to_zero(self, daemon: Daemon, seconds: float, each: float = 2.0) -> None:
        """Cycles until no machine is left and the ledger knows of none, and three more; so long at most."""
        until = self.clock() + seconds
        while self.clock() < until and (self.alive() or self.standing()):
            self.turn(daemon, each, each)
        self.turn(daemon, 3 * each, each)

    def one_busy(self) -> tuple[Daemon, str]:
        """A controller, and one machine on which two jobs run."""
        self.pool.queues["schedd"].idle = 2
        daemon = self.start()
        self.turn(daemon, 30)
        [machine] = self.alive()
        return daemon, machine

    def standing(self) -> list[str]:
        """The machines that the ledger doesn't know to have ended."""
        assert self.ledger is not None
        return [row.id for row in self.ledger.view(self.clock()).machines if row.ended_at is None]

    def identity(self) -> str:
        """The pool's identity as a controller finds or makes it when it starts on this state directory."""
        return kept(self.state, HOST).pool

    def lose_ledger(self) -> None:
        """The file is gone."""
        if self.ledger is not None:
            self.ledger.close()
            self.ledger = None
        for file in self.state.glob("ledger.db*"):
            file.unlink()

    def alive(self) -> list[str]:
        return [instance.id for instance in self.site.alive(POOL)]

    def close(self) -> None:
        if self.ledger is not None:
            self.ledger.close()


def _user_data(launch: Launch, token: str) -> bytes:
    return f"{launch.key} {token}".encode()
