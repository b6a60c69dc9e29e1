"""From an observation to a snapshot: what is learned, what is asked, and what nothing can be made of."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pools.virtualpool import KINDS, Everything, Queue
from tests.rigs.rig import Rig, policy
from updraft.condor.base import PoolSlots
from updraft.core.model import (
    CloudOffer,
    CollectorLoad,
    Drain,
    JobGroup,
    Kind,
    Known,
    Launch,
    Resources,
    ScheddView,
    Snapshot,
    Terminate,
    Unknown,
    Verdicts,
)
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy, Spare, WorkerClass
from updraft.core.slots.offers import Kinds
from updraft.core.sparing import AGAIN
from updraft.daemon import Daemon
from updraft.daemon.preparing import Matcher, Preparer
from updraft.ledger import RequestKind
from updraft.observe import VIRTUAL, Observer
from updraft.recording import Recorder, decisions, replay


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


class Seeing:
    """A new controller's observer and preparer, on the ledger that is there."""

    def __init__(
        self,
        rig: Rig,
        rules: Policy | None = None,
        *,
        kinds: Kinds = KINDS,
        matcher: Matcher | None = None,
        tell: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        rig.start()
        assert rig.ledger is not None
        self._rig = rig
        self._rules = rules or policy()
        self._observer = Observer(
            policy=self._rules, pool=rig.pool, clouds={"c1": rig.cloud}, ledger=rig.ledger, asking=VIRTUAL
        )
        self.preparer = Preparer(
            ledger=rig.ledger,
            matcher=matcher or Everything(),
            kinds=kinds,
            stopwatch=VIRTUAL.stopwatch,
            tell=tell,
        )

    def look(self) -> Snapshot:
        """What it would decide about now."""
        seen = self._observer.look(self._rig.clock())
        return self.preparer.at_once(seen, self._rules).snapshot


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


def test_at_once_it_is_what_is_learned_and_then_prepared(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = CloudOffer("c1", "z1", None, "on-demand", Resources(2, 4096, 1 << 20), 0.1)  # type: ignore[arg-type]
    monkeypatch.setattr(rig.driver, "offers", Sold(rig, odd))
    seeing = Seeing(rig)
    for idle in (2, 3):
        rig.pool.queues["schedd"].idle = idle
        seen, preparer = seeing._observer.look(rig.clock()), seeing.preparer
        before = preparer.prepare(seen, preparer.learn(seen, policy()), policy())
        at_once = preparer.at_once(seen, policy())
        assert at_once.snapshot == before.snapshot
        assert at_once.snapshot.offers
        assert at_once.snapshot.left_out
        rig.clock.forward(2)


def test_offers_are_what_a_class_may_take(rig: Rig) -> None:
    worker = WorkerClass(
        "big", "g1", ("c1",), flavors=("l*", "medium"), images={"c1": "img"}, markets=("on-demand",)
    )
    elsewhere = WorkerClass("else", "g1", ("c2",))
    offers = Seeing(rig, replace(policy(), classes={"big": worker, "else": elsewhere})).look().offers
    assert {offer.flavor for offer in offers} == {"large", "medium"}
    assert {offer.worker_class for offer in offers} == {"big"}
    assert {offer.image for offer in offers} == {"img"}


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
    seeing = Seeing(rig)
    seeing.look()
    assert seeing.preparer.fresh == {}


def test_an_ad_that_can_not_be_read_is_no_kind(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(), 30)

    def unreadable(*_arguments: object) -> object:
        raise SyntaxError("not a ClassAd")

    snapshot = Seeing(rig, kinds=replace(KINDS, learned=unreadable)).look()  # type: ignore[arg-type]
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
    told: list[Exception] = []
    seeing = Seeing(rig, matcher=Picky(), tell=told.append)
    for _ in range(3):
        snapshot = seeing.look()
        other = snapshot.schedds["other"]
        assert isinstance(other, Known)
        assert [one.evaluable for one in other.value.groups] == [False]
        assert any(group == "schedd-g" for group, _ in snapshot.verdicts)
        rig.clock.forward(2)
    assert [type(one) for one in told] == [ZeroDivisionError]
    rig.pool.queues["other"].owner = "mended"
    rig.clock.forward(AGAIN)
    other = seeing.look().schedds["other"]
    assert isinstance(other, Known)
    assert [one.evaluable for one in other.value.groups] == [True]


def test_what_fails_whatever_is_left_out_fails_the_look(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    seeing = Seeing(rig)

    def broken(*_: object) -> bool:
        raise ZeroDivisionError("read")

    monkeypatch.setattr("updraft.core.slots.places.read", broken)
    with pytest.raises(ZeroDivisionError):
        seeing.look()


# --------------------------------------------------------------------------- what is prepared again


def zoned(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that ask for a zone, so that kinds are told apart."""
    demand = rig.pool.demand

    def asking(*arguments: Any, **more: Any) -> ScheddView:
        found = demand(*arguments, **more)
        ad = '[ Requirements = TARGET.UpdraftZone == "z" ]'
        return replace(found, groups=tuple(replace(group, ad=ad) for group in found.groups))

    monkeypatch.setattr(rig.pool, "demand", asking)


def slow_collector(rig: Rig) -> None:
    """From the third look on it is at work all the time, and machines join."""
    rig.pool.loads = {"c": CollectorLoad(rig.clock(), rig.clock() - 500, busy=5.0, joined=100)}
    rig.clock.forward(10)
    rig.pool.loads = {"c": CollectorLoad(rig.clock(), rig.clock() - 510, busy=15.0, joined=180)}


def live(rig: Rig, daemon: Daemon, *, adopted: bool) -> None:
    """Machines join, one is let go and taken back if it is to be `adopted`, and in the end all go."""
    slow_collector(rig)
    rig.turn(daemon, 30)
    assert rig.ledger is not None
    [machine, *_] = rig.alive()
    for kind in (RequestKind.DISOWN, RequestKind.ADOPT) if adopted else ():
        rig.ledger.request(rig.clock(), "root", kind, machine)
        rig.turn(daemon, 8)
    rig.pool.finish()
    rig.pool.queues["schedd"].idle = 0
    rig.ledger.request(rig.clock(), "root", RequestKind.DESTROY, "")
    rig.turn(daemon, 60)


@pytest.mark.parametrize("world", ["plain", "zoned", "odd", "adopted", "spare"])
def test_what_a_controller_saw_is_prepared_and_decided_again_from_its_recording(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    rig.pool.queues["schedd"].idle = 2
    rules = policy()
    if world in ("zoned", "adopted"):
        zoned(rig, monkeypatch)
    if world == "odd":
        odd_group(rig)
    if world == "spare":
        ready = replace(rules.classes["default"], spare=(Spare(2, Resources(1, 1024, 1024)),))
        rules = replace(rules, classes={"default": ready})
    with closing(Recorder(tmp_path / "recorded")) as recorder:
        daemon = rig.start(decide=Planning(), using=rules, recorder=recorder)
        seen = [daemon.cycle().snapshot]
        live(rig, daemon, adopted=world == "adopted")
        seen.append(daemon.cycle().snapshot)
    (path,) = (tmp_path / "recorded").iterdir()
    again = list(replay(path, plan))
    assert [one.differs for one in again] == [()] * len(again)
    assert {type(one) for each in again for one in each.made.actions} >= {Launch, Drain, Terminate}
    made = [one.prepared() for one in decisions(path)]
    assert len(made) > 40
    for before, now in zip(seen, (made[0], made[-1]), strict=True):
        assert (now.now, now.offers, now.pace, now.left_out) == (
            before.now, before.offers, before.pace, before.left_out,
        )  # fmt: skip
        assert (now.collector, now.ledger, now.clouds) == (before.collector, before.ledger, before.clouds)
