"""Jobs that ask for a zone or a market: one kind of slot stands for all of them until somebody does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.rig import Rig, policy
from updraft.core.matching.bulk import judge_all
from updraft.core.matching.memory import Memo
from updraft.core.model import CloudOffer, JobGroup, Kind, Known, Resources, ScheddView, Verdicts
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import apart_key, kind_key
from updraft.core.slots.offers import OfferCatalogue
from updraft.core.slots.places import placed, read

SIZE = Resources(2, 4096, 20 << 20)
SOLD = [
    CloudOffer("c1", zone, "m", market, SIZE, 0.1) for zone in ("a", "b") for market in ("on-demand", "spot")
]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def job(wants: str) -> JobGroup:
    ad = f"[ RequestCpus = 1; RequestMemory = 100; RequestDisk = 1000; Requirements = {wants} ]"
    return JobGroup("g", "s", "u", "u", ad, Resources(1, 100, 1000), 3)


def both_markets() -> WorkerClass:
    return WorkerClass("big", "g1", ("c1",), markets=("on-demand", "spot"))


@pytest.mark.parametrize("seen", [False, True], ids=["imagined", "learned"])
def test_a_job_that_wants_a_zone_matches_the_offers_of_that_zone_only(*, seen: bool) -> None:
    wishes = replace(policy(), classes={"big": both_markets()})
    key = kind_key("big", "g1", "c1", "m")
    templates = {key: imagine(both_markets(), SOLD[0], "img", "p", key).ad} if seen else {}
    group = job('TARGET.UpdraftZone == "b" && TARGET.updraftmarket =!= "spot"')
    assert read(wishes, [group.ad])
    offers, kinds = OfferCatalogue().stock(wishes, SOLD, templates, apart=True)
    table = judge_all([group], list(kinds.values()), 0.0, Memo())
    assert all(kind.learned == seen for kind in kinds.values())
    found = {(offer.zone, offer.market) for offer in offers if table["g", offer.kind].copies}
    assert found == {("b", "on-demand")}


def test_one_kind_is_enough_where_nobody_asks() -> None:
    wishes = replace(policy(), classes={"big": both_markets()})
    assert not read(wishes, [job('TARGET.UpdraftCloud == "c1"').ad])
    assert len(OfferCatalogue().stock(wishes, SOLD, {})[1]) == 1
    asking = replace(both_markets(), attributes={"Start": 'UpdraftMarket == "spot" || Owner == "u"'})
    assert read(replace(wishes, classes={"big": asking}), [])


def test_slots_and_what_is_coming_are_of_the_kinds_of_their_places(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(), 30)
    assert rig.ledger is not None
    snapshot = rig.look()
    assert isinstance(snapshot.collector, Known)
    [slot] = snapshot.collector.value.slots
    [record] = [record for record in snapshot.ledger.machines if record.ended_at is None]
    found = placed(snapshot.collector, [record], {slot.kind: "[ Cpus = 1 ]"})
    assert isinstance(found.view, Known)
    [other] = found.view.value.slots
    assert other.kind == apart_key(slot.kind, record.zone, record.market)
    assert replace(other, kind=slot.kind) == slot
    assert found.bought[other.kind].zone == record.zone
    kinds = OfferCatalogue().of_slots([other], found.templates, found.bought)
    assert f'UpdraftMarket = "{record.market}"' in kinds[other.kind].ad
    # A slot that only claims to be ours is not moved.
    stranger = replace(record, launch_key="made-up")
    assert placed(snapshot.collector, [stranger], {}).view == snapshot.collector


def test_who_asks_for_a_place_gets_machines_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine on its way, and then its slot, count as room for the job that asked for the zone."""
    rig.pool.queues["schedd"].idle = 1
    daemon = rig.start()
    demand, asked = rig.pool.demand, []

    def zoned(*arguments: Any, **more: Any) -> ScheddView:
        found = demand(*arguments, **more)
        ad = '[ Requirements = TARGET.UpdraftZone == "z" ]'
        return replace(found, groups=tuple(replace(group, ad=ad) for group in found.groups))

    def verdicts(groups: Any, kinds: Sequence[Kind], *more: Any) -> Verdicts:
        if groups:
            asked.extend(kinds)
        return ask(groups, kinds, *more)

    ask = rig.matcher.verdicts
    monkeypatch.setattr(rig.pool, "demand", zoned)
    monkeypatch.setattr(rig.matcher, "verdicts", verdicts)
    rig.turn(daemon, 40)
    assert asked
    assert all("@" in kind.key for kind in asked)
    assert len(rig.site.instances) == 1
