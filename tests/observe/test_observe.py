"""One look: what is known, what is not and since when, and in which order it is asked."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.rigs.rig import Rig, policy
from tests.rigs.virtualpool import KINDS, Everything, Queue
from updraft.condor.base import PoolSlots
from updraft.core.demand.left_out import ODD_OFFER, UNREAD_BOOT
from updraft.core.model import (
    CloudOffer,
    CollectorLoad,
    JobGroup,
    Kind,
    Known,
    Launch,
    LaunchState,
    Reason,
    Resources,
    ScheddView,
    Unknown,
    Verdicts,
)
from updraft.core.plan import Planning
from updraft.core.settings import WorkerClass
from updraft.core.sparing import AGAIN
from updraft.errors import AuthFailed, PoolTimeout
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Asking, Deadlines, Kinds, Observer
from updraft.observe.offers import Shelf
from updraft.observe.schedds import ANY, Schedds
from updraft.observe.sources import BRIEFLY, Asker


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def observer(rig: Rig, asking: Asking = VIRTUAL, *, kinds: Kinds = KINDS, **deadlines: float) -> Observer:
    rig.start()
    assert rig.ledger is not None
    return Observer(
        policy=policy(), pool=rig.pool, drivers={"c1": rig.driver}, ledger=rig.ledger, kinds=kinds,
        matcher=Everything(), deadlines=Deadlines(**deadlines), asking=asking,
    )  # fmt: skip


def test_a_look_in_threads_is_the_same_as_one_in_line(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 3
    one = observer(rig).look(rig.clock())
    other = observer(rig, Asking()).look(rig.clock())
    assert (one.offers, one.kinds, one.verdicts) == (other.offers, other.kinds, other.verdicts)
    assert one.offers
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


def test_the_pace_is_kept_from_look_to_look_and_over_a_restart(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 3
    daemon = rig.start()
    assert daemon.cycle().snapshot.pace.most is None  # whose machines are on their way from here on
    load = CollectorLoad(rig.clock(), rig.clock() - 500, busy=5.0, joined=100)
    for busy, joined, most in ((5.0, 100, None), (15.0, 180, 40), (16.0, 180, 40)):
        rig.pool.loads = {"c": replace(load, told=rig.clock(), busy=busy, joined=joined)}
        assert daemon.cycle().snapshot.pace.most == most
        rig.clock.forward(10)
    rig.pool.down = True
    assert daemon.cycle().snapshot.pace.most == 40
    again = rig.look()
    assert (again.pace.most, again.pace.why) == (40, "c was busy 100% of the time")


def test_a_note_of_the_pace_that_makes_no_sense_is_none(rig: Rig) -> None:
    rig.start()
    assert rig.ledger is not None
    rig.ledger.note("join-pace", {"most": "many", "why": 3, "since": None}, rig.clock())
    assert rig.look().pace.most is None


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


def test_offers_are_asked_for_at_their_own_pace(rig: Rig) -> None:
    look = observer(rig)
    for _ in range(31):
        look.look(rig.clock())
        rig.clock.forward(2)
    calls = rig.site.calls_by_name()
    assert (calls["machines"], calls["offers"]) == (31, 2)
    assert calls["quota"] <= 5


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


def test_offers_are_what_a_class_may_take(rig: Rig) -> None:
    worker = WorkerClass(
        "big", "g1", ("c1",), flavors=("l*", "medium"), images={"c1": "img"}, markets=("on-demand",)
    )
    elsewhere = WorkerClass("else", "g1", ("c2",))
    look = observer(rig)
    look.policy = replace(policy(), classes={"big": worker, "else": elsewhere})
    offers = look.look(rig.clock()).offers
    assert {offer.flavor for offer in offers} == {"large", "medium"}
    assert {offer.worker_class for offer in offers} == {"big"}
    assert {offer.image for offer in offers} == {"img"}


def test_the_shelf_is_stocked_anew_only_when_something_of_it_changed() -> None:
    made: list[str] = []

    def key(*words: str) -> str:
        made.append("/".join(words))
        return KINDS.key(*words)

    shelf = Shelf(replace(KINDS, key=key))
    sold = [
        CloudOffer("c1", "z1", name, "on-demand", Resources(2, 4096, 1 << 20), 0.1) for name in ("s", "m")
    ]
    templates: dict[str, str] = {}
    first = shelf.stock(policy(), sold, templates)
    count = len(made)
    assert shelf.stock(policy(), list(sold), dict(templates)) == first
    assert len(made) == count
    dearer = [replace(item, price=0.2) for item in sold]
    assert [offer.price for offer in shelf.stock(policy(), dearer, templates)[0]] == [0.2, 0.2]
    assert len(made) == 2 * count
    # What is learned goes into the same mapping: a change of it is seen.
    one = next(iter(first[1].values()))
    templates[one.key] = one.ad
    assert shelf.stock(policy(), dearer, templates)[1][one.key].learned


def test_a_kind_is_learned_from_own_machines_only(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    rig.turn(daemon, 30)
    [machine] = rig.alive()
    assert rig.ledger is not None
    [key] = rig.ledger.learned()
    assert rig.look().kinds[key].learned
    # The same slot under a launch that we know nothing of teaches nothing.
    rig.lose_ledger()
    rig.site.instances[machine].key = "made-up"
    look = observer(rig)
    look.look(rig.clock())
    assert look.fresh == {}


def test_an_ad_that_can_not_be_read_is_no_kind(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(), 30)

    def unreadable(*_arguments: object) -> object:
        raise SyntaxError("not a ClassAd")

    snapshot = observer(rig, kinds=replace(KINDS, learned=unreadable)).look(rig.clock())  # type: ignore[arg-type]
    assert snapshot.offers  # imagined instead


@pytest.mark.parametrize("text", ["\ud800", "no [ ad", "\0", ""])
def test_a_kind_of_which_nothing_can_be_learned_costs_no_cycle(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    sane = rig.pool.slots

    def slots(deadline: float) -> PoolSlots:
        seen = sane(deadline)
        return replace(seen, templates=dict.fromkeys(seen.templates, text))

    monkeypatch.setattr(rig.pool, "slots", slots)
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start(decide=Planning())
    rig.turn(daemon, 30)
    assert rig.ledger is not None
    assert list(rig.ledger.learned()) == ["default/g1/c1/small"]
    assert "default/g1/c1/small" in rig.look().kinds
    doc = rig.ledger.last_cycle()
    assert doc is not None
    assert [one["phase"] for one in doc["machines"]] == ["joined"]


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


# --------------------------------------------------------------------- one that nothing can be made of


def odd_group(rig: Rig) -> None:
    """Beside alice's jobs those of eve, at whose ad everything that reads it chokes."""
    rig.pool.queues["schedd"].idle = 2
    rig.pool.queues["other"] = Queue(idle=3, owner="eve", ad=None)  # type: ignore[arg-type]


class Sold:
    """A driver that sells something odd besides."""

    def __init__(self, rig: Rig, odd: CloudOffer) -> None:
        self._offers = rig.driver.offers
        self._odd = odd

    def __call__(self) -> tuple[CloudOffer, ...]:
        return (*self._offers(), self._odd)


def test_a_group_of_which_a_look_can_make_nothing_is_left_out_and_the_rest_is_planned(rig: Rig) -> None:
    odd_group(rig)
    daemon = rig.start(decide=Planning())
    cycle = daemon.cycle()
    assert [one.offer.cloud for one in cycle.plan.actions if isinstance(one, Launch)] == ["c1"]
    assert [one.group for one in cycle.plan.groups if one.new] == ["schedd-g"]
    (warning,) = [one.text for one in cycle.plan.warnings if one.code == "left-out"]
    assert "of eve at schedd other: planning for it fails (AttributeError)" in warning
    other = cycle.snapshot.schedds["other"]
    assert isinstance(other, Known)
    assert [(one.idle, one.evaluable) for one in other.value.groups] == [(3, False)], "it is counted"


def test_a_group_of_which_a_look_can_make_nothing_is_left_out_also_while_its_schedd_is_silent(
    rig: Rig,
) -> None:
    odd_group(rig)
    daemon = rig.start(decide=Planning())
    daemon.cycle()
    rig.pool.queues["other"].silent = True
    rig.clock.forward(2)
    other = daemon.cycle().snapshot.schedds["other"]
    assert isinstance(other, Unknown)
    assert other.last is not None
    assert [(one.idle, one.evaluable) for one in other.last.value.groups] == [(3, False)]


def test_an_offer_of_which_a_look_can_make_nothing_is_left_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = CloudOffer("c1", "z1", None, "on-demand", Resources(2, 4096, 1 << 20), 0.1)  # type: ignore[arg-type]
    monkeypatch.setattr(rig.driver, "offers", Sold(rig, odd))
    rig.pool.queues["schedd"].idle = 2
    cycle = rig.start(decide=Planning()).cycle()
    assert any(isinstance(one, Launch) for one in cycle.plan.actions)
    (warning,) = [one.text for one in cycle.plan.warnings if one.code == "left-out-offer"]
    assert warning.startswith("left out: offer c1/z1/None/on-demand: planning for it fails (TypeError)")
    assert isinstance(cycle.snapshot.clouds["c1"].machines, Known), "what machines it has is known"


@pytest.mark.parametrize("price", [float("nan"), "dear", -1.0])
def test_what_a_cloud_sells_oddly_is_left_out_and_told_of_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, price: object
) -> None:
    sane = rig.site.price
    monkeypatch.setattr(rig.site, "price", lambda name, *of: price if name == "small" else sane(name, *of))
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


def test_a_class_of_which_a_look_can_make_nothing_is_left_out(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    broken = WorkerClass("odd", "g1", ("c1",), attributes=None)  # type: ignore[arg-type]
    using = replace(policy(), classes={**policy().classes, "odd": broken})
    cycle = rig.start(decide=Planning(), using=using).cycle()
    assert {one.offer.worker_class for one in cycle.plan.actions if isinstance(one, Launch)} == {"default"}
    (warning,) = [one.text for one in cycle.plan.warnings if one.code == "left-out-class"]
    assert warning.startswith("left out: class odd: planning for it fails (AttributeError)")


class Picky(Everything):
    """A matcher that chokes on the jobs of eve."""

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        if any(one.owner == "eve" and one.evaluable for one in groups):
            raise ZeroDivisionError("judged")
        return super().verdicts(groups, kinds, now, deadline)


def test_a_group_that_cannot_be_judged_is_told_of_once_and_tried_again_later(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    rig.pool.queues["other"] = Queue(idle=3, owner="eve")
    rig.start()
    assert rig.ledger is not None
    told: list[Exception] = []
    look = Observer(
        policy=policy(), pool=rig.pool, drivers={"c1": rig.driver}, ledger=rig.ledger, kinds=KINDS,
        matcher=Picky(), asking=VIRTUAL, tell=told.append,
    )  # fmt: skip
    for _ in range(3):
        snapshot = look.look(rig.clock())
        other = snapshot.schedds["other"]
        assert isinstance(other, Known)
        assert [one.evaluable for one in other.value.groups] == [False]
        assert any(group == "schedd-g" for group, _ in snapshot.verdicts)
        rig.clock.forward(2)
    assert [type(one) for one in told] == [ZeroDivisionError]
    rig.pool.queues["other"].owner = "mended"
    rig.clock.forward(AGAIN)
    other = look.look(rig.clock()).schedds["other"]
    assert isinstance(other, Known)
    assert [one.evaluable for one in other.value.groups] == [True]


def test_what_fails_whatever_is_left_out_fails_the_look(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    look = observer(rig)

    def broken(*_: object) -> bool:
        raise ZeroDivisionError("read")

    monkeypatch.setattr("updraft.observe.places.read", broken)
    with pytest.raises(ZeroDivisionError):
        look.look(rig.clock())
