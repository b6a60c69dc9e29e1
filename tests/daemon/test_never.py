"""What must never happen and the core can't see to alone: rules 6, 9 and 10, as properties of controllers."""

from binascii import hexlify
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rigs.pools.virtualpool import Clock, VirtualPool
from tests.rigs.rig import POOL, Rig, nothing
from updraft.app import serving
from updraft.clouds.fake import Fault
from updraft.condor.base import ControllerAd
from updraft.core.model import Plan, Snapshot
from updraft.core.plan import plan
from updraft.core.settings import Policy
from updraft.daemon import Daemon, LeaderElection
from updraft.daemon.election import Rhythm
from updraft.errors import PoolTimeout

# ------------------------------------ 6: a crash at any point neither leaks a machine nor makes one too many


class Killed(BaseException):
    """kill -9."""


class Fuse:
    """Ends the controller when it comes by a step for the so-manieth time from now."""

    def __init__(self, step: str, time: int) -> None:
        self.step, self.left = step, time

    def __call__(self, name: str) -> None:
        self.left -= name == self.step
        if self.left == 0:
            raise Killed(name)


@dataclass(frozen=True)
class Death:
    """A controller's end: at which of its steps, what became of its ledger, and when the next one came."""

    step: str
    time: int
    ledger_lost: bool
    pause: float
    jobs_end: bool


STEPS = (
    "plan: before the records", "plan: recorded",
    "launch: before the intent", "launch: intended", "launch: prepared", "launch: asked", "launch: recorded",
    "launch: failed", "drain: before the tag", "drain: tagged", "drain: recorded", "drain: asked",
    "drain: accepted", "terminate: before the record", "terminate: recorded", "terminate: asked",
)  # fmt: skip
deaths = st.builds(
    Death,
    st.sampled_from(STEPS),
    st.sampled_from([1, 1, 2, 9]),
    st.sampled_from([False, False, True]),
    st.sampled_from([0.0, 1.0, 90.0]),
    st.booleans(),
)


def live(rig: Rig, steps: Callable[[str], None], *, finish: bool) -> Daemon:
    """A controller that grows the pool to its queue and, where the jobs end, shrinks it."""
    daemon = rig.start(steps)
    rig.turn(daemon, 24, each=4.0)
    if finish:
        rig.pool.finish()
        rig.turn(daemon, 90, each=6.0)
    return daemon


@cache
def undisturbed(jobs: int) -> int:
    """How many cores a controller that never dies ever buys for so many jobs of one core."""
    with TemporaryDirectory() as folder, closing(Rig(Path(folder))) as rig:
        rig.pool.queues["schedd"].idle = jobs
        live(rig, nothing, finish=False)
        return cores(rig)


def cores(rig: Rig) -> int:
    return sum(one.resources.cpus for one in rig.site.of_pool(POOL))


@pytest.mark.slow
@settings(max_examples=max(10, settings.default.max_examples // 3))  # type: ignore[union-attr]
@given(st.integers(1, 9), st.lists(deaths, min_size=1, max_size=3), st.booleans(), st.booleans())
@example(4, [Death("launch: failed", 1, False, 0.0, False)], True, True)
@example(4, [Death("launch: asked", 1, False, 0.0, False)], False, True)
@example(2, [Death("terminate: recorded", 1, False, 1.0, True)], False, False)
@example(1, [Death("launch: intended", 1, False, 0.0, False)], False, False)
def test_6_a_crash_at_any_point_neither_leaks_nor_doubles(
    jobs: int, story: list[Death], answer_lost: bool, slow: bool
) -> None:
    """Rule 6: however often it dies, and wherever: every job ran, no more was bought, and all of it ends.

    Where no ledger is lost the cloud may also be slow to show what it has made, and lose its first answer.
    """
    kept = not any(death.ledger_lost for death in story)
    lag = {"shows_after": "10s"} if slow and kept else {}
    with TemporaryDirectory() as folder, closing(Rig(Path(folder), lag)) as rig:
        if answer_lost and kept:
            rig.site.faults.add(Fault("cloud-unavailable", times=1, after=True))
        rig.pool.queues["schedd"].idle = jobs
        for death in story:
            with suppress(Killed):
                live(rig, Fuse(death.step, death.time), finish=death.jobs_end)
            if death.ledger_lost:
                rig.lose_ledger()
            rig.clock.forward(death.pause)
            rig.pool.negotiate()
        daemon = live(rig, nothing, finish=True)
        rig.pool.finish()  # also what began late: a launch without an answer was waited for first
        rig.turn_to_zero(daemon, 600, each=6.0)
        assert (rig.alive(), rig.standing()) == ([], [])
        assert rig.pool.killed_jobs == 0
        assert rig.pool.queues["schedd"].idle == 0
        assert cores(rig) <= undisturbed(jobs)


# ------------------------------------- 9: no secret reaches what others read; job ads are untrusted input

base64url = st.text(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", min_size=8, max_size=60
)
tokens = st.builds(lambda *parts: "eyJ" + ".".join(parts), base64url, base64url, base64url)
PLACES = ("cloud", "unexpected", "pool", "console", "bug")


@contextmanager
def logging(form: str) -> Iterator[StringIO]:
    """What the daemon logs meanwhile, as it does on a head."""
    with redirect_stderr(StringIO()) as said:
        serving.start_log(form)
        try:
            yield said
        finally:
            structlog.reset_defaults()


def tell(rig: Rig, place: str, token: str) -> None:
    """From now on a part that isn't ours says this token where it should not."""
    said = f"refused: Authorization: Bearer {token} is not known here"

    def unexpected(request: object) -> object:
        raise ValueError(f"cannot send {request!r} with {token}")

    def silent(*_: object, **__: object) -> object:
        raise PoolTimeout(said)

    match place:
        case "cloud":
            rig.site.faults.add(Fault("cloud-unavailable", call="*", times=6, message=said))
        case "unexpected":
            rig.driver.launch = unexpected  # type: ignore[method-assign, assignment]
        case "pool":
            rig.pool.drain = rig.pool.demand = silent  # type: ignore[method-assign, assignment]
        case "console":
            rig.driver.console = lambda _machine: f"boot\nupdraft-boot: FAILED: {token}\n"  # type: ignore[method-assign]


def buggy(token: str) -> Callable[[Snapshot, Policy], Plan]:
    """The third decision fails by a fault of our own, whose message quotes what it was about."""
    calls = count()

    def decide(snapshot: Snapshot, policy: Policy) -> Plan:
        if next(calls) == 2:
            raise KeyError(token)
        return plan(snapshot, policy)

    return decide


@pytest.mark.slow
@settings(max_examples=max(10, settings.default.max_examples // 5))  # type: ignore[union-attr]
@given(
    tokens,
    st.dictionaries(st.sampled_from(PLACES), st.sampled_from([0, 1, 5, 20]), min_size=1, max_size=3),
    st.sampled_from(["text", "json"]),
)
@example("eyJhbGci.eyJzdWIi.c2lnbmF0", {"unexpected": 0}, "text")
def test_9_no_secret_reaches_a_log_a_row_or_an_error(token: str, places: dict[str, int], form: str) -> None:
    """Rule 9: whoever says a token aloud, and when: neither log nor ledger holds it, or any user-data."""
    boots = {"boots": [{"start": "4s", "join": "4s", "never_joins": 1.0 if "console" in places else 0.0}]}
    hidden = hexlify(
        token.encode()
    ).decode()  # as a user-data that is compressed: not to be known by its form
    with TemporaryDirectory() as folder, logging(form) as log, closing(Rig(Path(folder), boots)) as rig:
        rig.pool.mint_token = lambda *_: token  # type: ignore[method-assign]
        rig.user_data = lambda _launch, _token: hidden.encode()
        rig.pool.queues["schedd"].idle = 3
        daemon, turns = rig.start(decide=buggy(token) if "bug" in places else plan), count(1)

        def speak(now: int) -> None:
            for place, turn in places.items():
                if now == turn:
                    tell(rig, place, token)

        def each() -> None:
            rig.pool.negotiate()
            now = next(turns)
            speak(now)
            rig.switch.stop = now == 60
            if now == 30:
                rig.pool.finish()
                rig.pool.queues["schedd"].idle += 12

        rig.switch.each = each
        speak(0)
        daemon.run()
        rig.close()
        kept = b"".join(file.read_bytes() for file in Path(folder).iterdir()).decode(errors="replace")
    for text in (log.getvalue(), kept):
        assert "started" in text
        assert token not in text
        assert hidden not in text


# ------------------------------------------------------- 10: two controllers never act for one pool

RHYTHM = Rhythm(interval=5, lifetime=40)
HOSTS = ("one", "two", "three")


class Line:
    """One host's way to the collector, which may be cut."""

    def __init__(self, pool: VirtualPool) -> None:
        self.pool = pool
        self.cut = False

    def _through(self) -> VirtualPool:
        if self.cut:
            raise PoolTimeout("the collector does not answer")
        return self.pool

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        return self._through().controllers(deadline)

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        self._through().announce(ad, lifetime, deadline)

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        self._through().retract(ad, deadline)


@dataclass
class Controller:
    """One host's controller: it looks, acts for `busy` seconds where it may, and looks again."""

    name: str
    line: Line
    clock: Callable[[], float]
    busy: float
    election: LeaderElection | None = None
    looks_at: float = 0.0
    beats_at: float = 0.0
    acts_until: float = field(default=float("-inf"))

    def start(self, now: float) -> None:
        if self.election is None:
            self.election = LeaderElection(self.line, f"c@{self.name}", self.name, self.clock, RHYTHM)  # type: ignore[arg-type]
            self.looks_at, self.beats_at = now, now + RHYTHM.interval

    def die(self) -> None:
        """As by kill -9: it acts no more, and its ad stays."""
        self.election, self.acts_until = None, float("-inf")

    def stop(self) -> None:
        if self.election is not None:
            self.election.stop()
            self.die()

    def stall(self, until: float) -> None:
        """Its host does nothing for a while, between two cycles."""
        self.looks_at = max(self.looks_at, until)
        self.beats_at = max(self.beats_at, until)
        self.acts_until = float("-inf")

    def turn(self, now: float, started: float | None) -> bool:
        """What it does at this second; true if it begins to act now."""
        if self.election is None:
            return False
        if now >= self.beats_at:
            self.beats_at = now + RHYTHM.interval
            with suppress(PoolTimeout):
                self.election.beat()
        if now < max(self.looks_at, self.acts_until):
            return False
        self.looks_at = now + 2
        acts = self.election.standing(None if self.line.cut else started) is None
        self.acts_until = now + self.busy if acts else float("-inf")
        return acts


class Hosts:
    """Three hosts of one pool. Not two of their controllers may act at any time."""

    def __init__(self, skews: tuple[float, ...], busy: tuple[float, ...]) -> None:
        self.clock = Clock()
        self.pool = VirtualPool(self.clock)
        self.all = {
            name: Controller(name, Line(self.pool), self._skewed(skew), work)
            for name, skew, work in zip(HOSTS, skews, busy, strict=True)
        }

    def _skewed(self, skew: float) -> Callable[[], float]:
        return lambda: self.clock() + skew

    def happen(self, what: str, host: str, seconds: float) -> None:
        one, now = self.all[host], self.clock()
        match what:
            case "start":
                one.start(now)
            case "kill" | "restart":
                one.die()
                if what == "restart":
                    one.start(now)
            case "stop":
                one.stop()
            case "stall":
                one.stall(now + seconds)
            case "cut" | "mend":
                one.line.cut = what == "cut"
            case "new collector":
                self.pool.ads.clear()
                self.pool.started = now

    def pass_time(self, seconds: float) -> set[str]:
        """Who acted in so long. Each second, whoever's turn it is in an order that changes."""
        acted: set[str] = set()
        for _ in range(int(seconds)):
            self.clock.forward(1.0)
            now = self.clock()
            turn = int(now) % len(HOSTS)
            for name in (*HOSTS[turn:], *HOSTS[:turn]):
                if self.all[name].turn(now, self.pool.started):
                    acted.add(name)
                    others = {other for other, one in self.all.items() if one.acts_until > now} - {name}
                    assert not others, f"{name} and {others} act at once"
        return acted


HAPPENINGS = ("start", "stop", "kill", "restart", "stall", "cut", "mend", "new collector")
PAUSES = (0, 1, 3, 7, 14, 20, 60)
happenings = st.tuples(
    st.sampled_from(HAPPENINGS), st.sampled_from((*HOSTS, *HOSTS[:2])), st.sampled_from(PAUSES)
)


@given(
    st.tuples(*[st.sampled_from([0.0, -5000.0, 3.0, 5000.0])] * 3),
    st.tuples(*[st.sampled_from([0.5, 4.0, 12.0])] * 3),
    st.lists(st.tuples(happenings, st.sampled_from(PAUSES)), min_size=3, max_size=12),
)
@example((0.0,) * 3, (4.0,) * 3, [(("restart", "two", 0), 20), (("new collector", "two", 0), 0)])
@example((0.0,) * 3, (4.0,) * 3, [(("new collector", "two", 0), 3), (("restart", "two", 0), 0)])
@example((0.0,) * 3, (4.0,) * 3, [(("stall", "one", 20), 0), (("new collector", "two", 0), 0)])
@example(
    (0.0,) * 3,
    (4.0,) * 3,
    [(("cut", "one", 0), 0), (("new collector", "two", 0), 20), (("mend", "one", 0), 0)],
)
def test_10_two_controllers_never_act_for_one_pool(
    skews: tuple[float, ...], busy: tuple[float, ...], story: list[tuple[tuple[str, str, int], int]]
) -> None:
    """Rule 10: whatever happens to hosts and collector, one acts at a time; and once it is over, one does.

    Two hosts have theirs up, and the first acts, when the story begins.
    """
    hosts = Hosts(skews, busy)
    for name in HOSTS[:2]:
        hosts.happen("start", name, 0)
        hosts.pass_time(21)
    for (what, host, seconds), pause in story:
        hosts.happen(what, host, seconds)
        hosts.pass_time(pause)
    for one in hosts.all.values():
        one.line.cut = False
    hosts.happen("start", "one", 0)
    hosts.pass_time(120)
    assert len(hosts.pass_time(30)) == 1
