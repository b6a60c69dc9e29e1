"""One look: what is known, what is not and since when, and in which order it is asked."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.rigs.pools.virtualpool import Queue
from tests.rigs.rig import Rig, policy
from updraft.core.demand.left_out import ODD_OFFER, UNREAD_BOOT
from updraft.core.model import (
    Known,
    LaunchState,
    Reason,
    ScheddView,
    Unknown,
)
from updraft.core.plan import Planning
from updraft.errors import AuthFailed, PoolTimeout
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Asking, Deadlines, Observer
from updraft.observe.schedds import ANY, Schedds
from updraft.observe.sources import BRIEFLY, Asker


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def observer(rig: Rig, asking: Asking = VIRTUAL, **deadlines: float) -> Observer:
    rig.start()
    assert rig.ledger is not None
    return Observer(
        policy=policy(), pool=rig.pool, clouds={"c1": rig.cloud}, ledger=rig.ledger,
        deadlines=Deadlines(**deadlines), asking=asking,
    )  # fmt: skip


def test_a_look_in_threads_is_the_same_as_one_in_line(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 3
    one = observer(rig).look(rig.clock())
    other = observer(rig, Asking(stopwatch=lambda: 0.0)).look(rig.clock())
    assert (one.schedds, one.collector, one.clouds) == (other.schedds, other.collector, other.clouds)
    assert isinstance(one.clouds["c1"].offers, Known)
    assert isinstance(other.schedds["schedd"], Known)


def test_slots_before_demand_and_the_ledger_last(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    look = observer(rig, Asking())

    def noting(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: object, **named: object) -> object:
            found = original(*arguments, **named)
            order.append(name)
            return found

        monkeypatch.setattr(owner, name, call)

    noting(rig.pool, "slots")
    noting(rig.pool, "demand")
    noting(rig.driver, "machines")
    noting(rig.ledger, "view")
    look.look(rig.clock())
    assert order.index("slots") < order.index("demand")
    assert order.index("machines") < order.index("demand")
    assert order[-1] == "view"


def test_a_silent_source_is_unknown_with_its_last_word(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    look = observer(rig)
    first = look.look(rig.clock())
    asked = rig.clock()

    def fail() -> None:
        raise AuthFailed("wrong key")

    monkeypatch.setattr(rig.driver, "machines", fail)
    rig.pool.queues["schedd"].silent = True
    for _ in range(3):
        rig.clock.forward(2)
        snapshot = look.look(rig.clock())
    machines = snapshot.clouds["c1"].machines
    assert isinstance(machines, Unknown)
    assert (machines.error.code, machines.since) == ("auth-failed", asked + 2)
    assert machines.last == first.clouds["c1"].machines
    schedd = snapshot.schedds["schedd"]
    assert isinstance(schedd, Unknown)
    assert schedd.error.code == "pool-timeout"
    assert schedd.last is not None
    assert isinstance(snapshot.collector, Known)


def test_a_hanging_cloud_costs_its_deadline_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    original = rig.driver.machines
    monkeypatch.setattr(rig.driver, "machines", lambda: gate.wait(60) and original())
    in_vain: list[float] = []

    def wait(done: threading.Event, seconds: float) -> bool:
        if done.wait(60 if gate.is_set() else seconds):
            return True
        in_vain.append(seconds)
        return False

    look = observer(rig, Asking(stopwatch=lambda: 0.0, wait=wait), cloud=0.3)
    for _ in range(2):
        machines = look.look(rig.clock()).clouds["c1"].machines
        assert isinstance(machines, Unknown)
        assert machines.error.code == "timeout"
    assert in_vain == [0.3, 0.0]
    gate.set()
    assert isinstance(look.look(rig.clock()).clouds["c1"].machines, Known)


def test_a_schedd_that_left_the_list_is_unknown_until_patience_ends(rig: Rig) -> None:
    rig.pool.queues["other"] = Queue(idle=5)
    look = observer(rig)
    look.look(rig.clock())
    del rig.pool.queues["other"]
    rig.clock.forward(2)
    gone = look.look(rig.clock()).schedds["other"]
    assert isinstance(gone, Unknown)
    assert gone.error.code == "schedd-vanished"
    assert gone.last is not None
    assert gone.last.value.idle_total == 5
    rig.clock.forward(1700)
    assert "other" in look.look(rig.clock()).schedds
    rig.clock.forward(200)
    assert "other" not in look.look(rig.clock()).schedds


def test_a_restart_remembers_which_schedds_there_were(rig: Rig) -> None:
    rig.pool.queues["other"] = Queue()
    daemon = rig.start()
    daemon.cycle()
    del rig.pool.queues["other"]
    rig.clock.forward(2)
    snapshot = rig.look()
    assert isinstance(snapshot.schedds["other"], Unknown)


def test_no_schedd_is_no_demand_only_where_the_collector_can_know(rig: Rig) -> None:
    rig.pool.queues.clear()
    assert observer(rig).look(rig.clock()).schedds == {}
    rig.pool.started = rig.clock() - 10
    assert isinstance(observer(rig).look(rig.clock()).schedds[ANY], Unknown)
    rig.pool.down = True
    assert isinstance(observer(rig).look(rig.clock()).schedds[ANY], Unknown)


def test_running_jobs_are_asked_for_only_where_a_plan_has_to_know(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    rig.turn(daemon, 30)
    asked = rig.pool.queues["schedd"].asked_running
    assert not any(asked)
    rig.site.kill(rig.alive()[0])
    rig.turn(daemon, 6)
    assert any(asked)


@pytest.mark.parametrize("alone", [False, True])
def test_offers_are_asked_for_at_their_own_pace_also_where_clouds_are_asked_alone(
    rig: Rig, alone: bool
) -> None:
    look = observer(rig)
    for _ in range(31):
        seen = look.look_at_clouds(rig.clock()) if alone else look.look(rig.clock()).clouds
        rig.clock.forward(2)
    calls = rig.site.calls_by_name()
    assert (calls["machines"], calls["offers"], calls["quota"]) == (31, 2, 4)
    assert isinstance(seen["c1"].machines, Known)


def test_a_quota_that_can_not_be_had_is_known_by_its_last_answer_for_a_while(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = observer(rig)
    first = look.look(rig.clock()).clouds["c1"].quota
    assert isinstance(first, Known)

    def refused() -> None:
        raise AuthFailed("no")

    monkeypatch.setattr(rig.driver, "quota", refused)
    rig.clock.forward(60)
    assert look.look(rig.clock()).clouds["c1"].quota == first
    rig.clock.forward(900)
    assert isinstance(look.look(rig.clock()).clouds["c1"].quota, Unknown)


def test_a_cloud_that_left_the_configuration_is_unknown_not_empty(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(), 30)
    look = observer(rig)
    look.reconfigure(policy(), rig.pool, {})
    machines = look.look(rig.clock()).clouds["c1"].machines
    assert isinstance(machines, Unknown)
    assert machines.error.code == "cloud-not-configured"


def test_a_launch_made_during_the_look_is_in_its_ledger(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    look = observer(rig)
    ledger = rig.ledger
    assert isinstance(ledger, Ledger)
    original = rig.pool.demand

    def meanwhile(schedd: str, *, running: bool, deadline: float) -> object:
        rig.pool.queues["schedd"].idle = 0
        from tests.ledger.test_ledger import launch

        ledger.intend(launch("meanwhile", asked_at=rig.clock(), state=LaunchState.INTENDED))
        return original(schedd, running=running, deadline=deadline)

    monkeypatch.setattr(rig.pool, "demand", meanwhile)
    assert [row.key for row in look.look(rig.clock()).ledger.launches] == ["meanwhile"]


class Watch:
    """A stopwatch that runs only while somebody waits; once `open` is set, answers are really waited for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.open = threading.Event()

    def __call__(self) -> float:
        return self.now

    def take(self, seconds: float) -> None:
        """What an answer in line does with its time."""
        self.now += seconds

    def wait(self, done: threading.Event, seconds: float) -> bool:
        if self.open.is_set():
            return done.wait(60)
        self.now += seconds
        return False

    @property
    def in_line(self) -> Asking:
        return Asking(inline=True, stopwatch=self)

    @property
    def in_threads(self) -> Asking:
        return Asking(stopwatch=self, wait=self.wait)

    def answered(self, value: int) -> int:
        """The answer of a source that hangs until the watch is opened."""
        assert self.open.wait(60)
        return value


def pauses_of(lasts: Iterable[float]) -> list[float]:
    """The pause between two looks after each answer of a schedd that takes so many seconds to answer."""
    watch = Watch()
    lasting = list(lasts)
    schedds = Schedds(5.0, 0.1, {}, watch.in_line)
    pool = SimpleNamespace(
        demand=lambda *_a, **_k: watch.take(lasting[len(pauses)]), schedds=lambda _d: ("s",)
    )
    pauses: list[float] = []
    for now in range(len(lasting)):
        look_at(schedds, pool, float(now))
        pauses.append(schedds.pause)
    return pauses


def look_at(schedds: Schedds, pool: SimpleNamespace, now: float, wanted: float = 10) -> None:
    schedds.ask_names(pool, 5, now)  # type: ignore[arg-type]
    schedds.answers(
        pool, wanted=wanted, running=False, collector=Unknown(None, 0), young=1, clock=lambda: now  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_dear_schedd_is_asked_less_often() -> None:
    first, second = pauses_of([0.05, 0.05])
    assert first == 0, "the process that asks was only starting"
    assert second == pytest.approx(0.5)


def test_one_slow_answer_does_not_make_a_schedd_dear() -> None:
    assert pauses_of([0.0, 0.05, 0.0, 0.05, 0.05]) == pytest.approx([0, 0, 0, 0, 0.5])


def test_a_schedd_that_is_silent_for_a_moment_is_soon_asked_again() -> None:
    asked: list[float] = []
    watch, now = Watch(), 0.0

    def silent(*_arguments: object, **_named: object) -> ScheddView:
        asked.append(now)
        watch.take(0.02)  # a thousandth of its time is to be spent so: twenty seconds of rest
        raise PoolTimeout("no answer")

    schedds = Schedds(5.0, 0.001, {}, watch.in_line)
    pool = SimpleNamespace(demand=silent, schedds=lambda _d: ("s",))
    while now < 100:
        look_at(schedds, pool, now, wanted=1000)
        now += 1
    assert asked == [0, 1, 2, 4, 8, 16, 32, 52, 72, 92]


def test_one_that_was_silent_is_waited_for_only_briefly() -> None:
    watch = Watch()
    asker: Asker[int] = Asker("x", stale_after=100, asking=watch.in_line)
    asker.ask(lambda: 1 // 0, 0.0)
    assert isinstance(asker.answer(5, 1.0), Unknown)
    asker = Asker("x", stale_after=100, asking=watch.in_threads)
    asker.ask(lambda: watch.answered(1), 2.0)
    assert isinstance(asker.answer(5, 3.0), Unknown)
    assert watch.now == 5, "the first time it is waited for as long as there is"
    assert isinstance(asker.answer(5, 4.0), Unknown)
    assert watch.now == 5, "a question that was waited for is only looked at"
    watch.open.set()
    assert asker.answer(0, 5.0) == Known(1, 2.0)


def test_the_next_question_to_one_that_was_silent_is_waited_for_briefly() -> None:
    watch = Watch()
    asker: Asker[int] = Asker("x", stale_after=100, asking=watch.in_threads)
    asker.ask(lambda: 1 // 0, 0.0)
    watch.open.set()
    assert isinstance(asker.answer(5, 1.0), Unknown)
    watch.open.clear()
    asker.ask(lambda: watch.answered(1), 2.0)
    assert isinstance(asker.answer(30, 3.0), Unknown)
    assert watch.now == BRIEFLY
    watch.open.set()


def hurried(watch: Watch, usual: float) -> Asker[int]:
    """A source that usually answers within so many seconds, and now hangs."""
    asker: Asker[int] = Asker("x", stale_after=100, hurried=True, asking=watch.in_threads)
    watch.open.set()
    asker.ask(lambda: watch.take(usual) or 1, 0.0)
    assert asker.answer(30, 1.0) == Known(1, 0.0)
    watch.open.clear()
    watch.now = 0.0
    asker.ask(lambda: watch.answered(2), 2.0)
    return asker


@pytest.mark.parametrize(
    ("usual", "patience", "waited"),
    [
        (0.0, 30, BRIEFLY),
        (3.0, 30, 6.0),
        (0.1, 0.3, 0.3),  # there is less than what it takes briefly
        (20.0, 30, BRIEFLY),  # twice what it takes is more than there is: waiting is of no use
    ],
)
def test_one_in_a_hurry_is_waited_for_as_long_as_it_usually_takes(
    usual: float, patience: float, waited: float
) -> None:
    watch = Watch()
    asker = hurried(watch, usual)
    assert asker.answer(patience, 3.0) == Unknown(asker.state.error, 2.0, Known(1, 0.0))  # type: ignore[union-attr]
    assert watch.now == pytest.approx(waited)
    watch.open.set()
    assert asker.answer(0, 32.0) == Known(2, 2.0)


def test_an_answer_that_comes_much_too_late_is_no_answer() -> None:
    asker: Asker[int] = Asker("x", stale_after=10, asking=VIRTUAL)
    asker.ask(lambda: 1, 100.0)
    assert isinstance(asker.answer(0, 120.0), Unknown)
    asker.ask(lambda: 2, 121.0)
    assert asker.answer(0, 122.0) == Known(2, 121.0)


@pytest.mark.parametrize("price", [float("nan"), "dear", -1.0])
def test_what_a_cloud_sells_oddly_is_left_out_and_told_of_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, price: object
) -> None:
    sold = tuple(replace(one, price=price) if one.flavor == "small" else one for one in rig.site.offers)
    monkeypatch.setattr(rig.site, "offers", sold)
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start(decide=Planning())
    for _ in range(3):
        cycle = daemon.cycle()
        rig.clock.forward(2)
    assert cycle.snapshot.offers
    assert "small" not in {one.flavor for one in cycle.snapshot.offers}
    said = {one.text for one in cycle.plan.warnings if one.code == ODD_OFFER}
    assert all(one.startswith("cloud c1 sells ") and "/small/" in one for one in said)
    assert said
    assert rig.ledger is not None
    told = [one.text for one in rig.ledger.events() if one.code == ODD_OFFER]
    assert sorted(told) == sorted(said), "once each"


def test_a_boot_that_cannot_read_its_user_data_is_told_within_a_minute_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, {"boots": [{"start": "4s", "join": "1h"}]})
    line = "url_helper.py[WARNING]: Calling 'http://169.254.169.254/x' failed [0/30s]: 401 Client Error"
    monkeypatch.setattr(rig.driver, "console", lambda _machine: line)
    rig.pool.queues["schedd"].idle = 1
    daemon = rig.start(decide=Planning())
    launched = rig.clock()
    said: list[Reason] = []
    while not said and rig.clock() <= launched + 60:
        cycle = daemon.cycle()
        said = [one for one in cycle.plan.warnings if one.code == UNREAD_BOOT]
        rig.clock.forward(2)
    assert "can't read its user-data" in said[0].text
    daemon.cycle()
    assert rig.ledger is not None
    assert [one.text for one in rig.ledger.events() if one.code == UNREAD_BOOT] == [said[0].text]
    rig.close()
