"""What is made of an observation before anything is decided about it."""

from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given

from tests.rigs.annexworlds import annex
from tests.rigs.snapshots import (
    ASK,
    LARGE,
    NOW,
    PACED,
    SMALL,
    group,
    policies,
    policy,
    prepared,
    record,
    slot,
    snapshot,
    snapshots,
    worker,
)
from updraft.core.limits.pace import after_look
from updraft.core.model import (
    PLAIN,
    CloudOffer,
    CollectorLoad,
    CollectorView,
    Kind,
    Known,
    Learned,
    Observation,
    Reason,
    Snapshot,
    Unknown,
)
from updraft.core.prepare import answers, apart, prepare, to_learn, unjudged, waiting
from updraft.core.settings import Policy, Spare
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import kind_key
from updraft.core.slots.offers import OfferCatalogue
from updraft.core.sparing import why_spared

SMALL_KIND = kind_key("default", "g1", "c1", "small")


def observed(**parts: object) -> Observation:
    """A pool in which every source has answered, and whose cloud sells two flavors."""
    return replace(prepared(snapshot(), policy()).observation, **parts)  # type: ignore[arg-type]


def known(**parts: object) -> Learned:
    return replace(prepared(snapshot(), policy()).learned, **parts)  # type: ignore[arg-type]


@given(seen=snapshots(), rules=policies())
def test_with_a_catalogue_that_remembers_it_is_the_same(seen: Snapshot, rules: Policy) -> None:
    found = prepared(seen, rules)
    catalogue = OfferCatalogue()
    other = replace(rules, classes={})
    for by in (rules, other, rules):
        made = prepare(found.observation, found.learned, by)
        again = prepare(found.observation, found.learned, by, catalogue)
        assert {one.key for one in made.offers} == {one.key for one in again.offers}
        assert made.kinds.keys() == again.kinds.keys()
        assert replace(made, kinds={}) == replace(again, kinds={})


def test_what_was_said_stays_and_the_time_is_that_of_the_last_answer() -> None:
    odd = Reason("odd-offer", "x")
    seen = observed(jumped_at=NOW - 9, launching=frozenset({"k"}), awake_since=NOW - 5, left_out=(odd,))
    made = prepare(seen, known(at=NOW + 3), policy())
    assert (made.now, made.jumped_at, made.launching, made.awake_since) == (NOW + 3, NOW - 9, {"k"}, NOW - 5)
    assert (made.schedds, made.clouds, made.ledger) == (seen.schedds, seen.clouds, seen.ledger)
    assert made.left_out == (odd,)


def test_what_is_on_sale_are_the_clouds_offers_for_each_class_with_the_kinds_of_their_slots() -> None:
    some = worker("some", flavors=("large",))
    kinds = {key: Kind(key, "", SMALL) for key in (SMALL_KIND, kind_key("some", "g1", "c1", "large"))}
    made = prepare(observed(), known(kinds=kinds), policy(worker(), some))
    assert {(one.worker_class, one.flavor, one.kind) for one in made.offers} == {
        ("default", "small", SMALL_KIND),
        ("some", "large", kind_key("some", "g1", "c1", "large")),
    }, "what nobody could make a kind of is not on sale"


def test_the_machines_of_annexes_are_on_sale_and_room_is_kept_ready() -> None:
    seen = answers(observed(annexes=(annex(machines=2),)))
    rules = policy(worker(spare=(Spare(3, ASK, zone=UTC),)))
    made = unjudged(seen, rules, {}, {}, OfferCatalogue(), apart=False)
    assert {one.variant for one in made.offers} == {PLAIN, annex(machines=2).variant}
    assert [one.idle for one in made.spare] == [3]
    assert unjudged(seen, replace(rules, closing=True), {}, {}, OfferCatalogue(), apart=False).spare == ()


def test_kinds_that_the_judge_was_not_asked_about_are_not_on_sale() -> None:
    """As where an instance was adopted after the judge had been asked."""
    seen, catalogue = observed(), OfferCatalogue()
    asked = unjudged(answers(seen), policy(), {}, {}, catalogue, apart=False)
    learned = known(kinds={SMALL_KIND: asked.kinds[SMALL_KIND]})
    made = prepare(seen, learned, policy(), catalogue)
    assert {one.flavor for one in made.offers} == {"small"}
    assert list(made.kinds) == [SMALL_KIND]
    assert made == prepare(seen, learned, policy())


def test_kinds_apart_are_those_of_zone_and_market() -> None:
    zoned = group("g", ad='[ Requirements = TARGET.UpdraftZone == "z1" ]')
    seen = observed(schedds=prepared(snapshot(groups=[zoned]), policy()).observation.schedds)
    assert not apart(answers(observed()), policy())
    assert apart(answers(seen), policy())
    made = unjudged(answers(seen), policy(), {}, {}, OfferCatalogue(), apart=True)
    assert {one.kind for one in made.offers} == {
        f"{kind_key('default', 'g1', 'c1', flavor)}@z1/on-demand" for flavor in ("small", "large")
    }


def test_what_is_left_out_is_left_out_again_and_named() -> None:
    why = why_spared(ValueError())
    one, other = group("g"), group("h")
    seen = observed(schedds=prepared(snapshot(groups=[one, other]), policy()).observation.schedds)
    spared = frozenset({("jobs", "g"), ("sold", "c1/z1/large/on-demand")})
    made = prepare(seen, known(spared=spared, why=why), policy())
    assert [(found.key, found.evaluable) for found in waiting(made)] == [("g", False), ("h", True)]
    assert {found.flavor for found in made.offers} == {"small"}
    assert [found.code for found in made.left_out] == ["left-out-offer"]


def test_the_pace_goes_on_from_the_one_before_and_stays_while_no_collector_answers() -> None:
    load = CollectorLoad(NOW, NOW - 500, busy=200.0, joined=90)
    seen = observed(collector=Known(CollectorView((), NOW - 500, loads={"c": load}), NOW))
    made = prepare(seen, known(pace=PACED, at=NOW), policy())
    assert made.pace == after_look(PACED, seen.collector, seen.ledger, NOW) != PACED
    silent = replace(seen, collector=Unknown(Reason("timeout", "x"), NOW))
    assert prepare(silent, known(pace=PACED), policy()).pace == PACED


AD = imagine(worker(), CloudOffer("c1", "z1", "small", "on-demand", SMALL, 0.1), "img", "test", SMALL_KIND).ad


@pytest.mark.parametrize(
    ("records", "before", "learned"),
    [
        ([record("i-1")], {}, {SMALL_KIND: AD}),
        ([record("i-1")], {SMALL_KIND: "[]"}, {}),  # the first ad of a kind is kept
        ([record("i-1", launch_key="made-up")], {}, {}),  # it only claims to be ours
        ([record("i-1", ended_at=NOW)], {}, {}),
        ([], {}, {}),
    ],
)
def test_a_kind_is_learned_once_and_from_machines_of_our_own(
    records: list[object], before: dict[str, str], learned: dict[str, str]
) -> None:
    seen = snapshot(slots=[slot("i-1")], records=records)  # type: ignore[arg-type]
    shown = {SMALL_KIND: AD, "site/x": "[]"}
    found = observed(collector=seen.collector, ledger=seen.ledger, templates=shown)
    assert to_learn(found, before) == learned


def test_the_ad_of_a_stranger_is_never_what_is_bought() -> None:
    seen = answers(observed())
    made = unjudged(
        seen, policy(), {SMALL_KIND: AD.replace("Cpus", "Odd")}, {}, OfferCatalogue(), apart=False
    )
    assert not made.kinds[SMALL_KIND].learned
    made = unjudged(seen, policy(), {}, {SMALL_KIND: AD}, OfferCatalogue(), apart=False)
    assert made.kinds[SMALL_KIND].learned
    assert made.kinds[kind_key("default", "g1", "c1", "large")].resources.cpus == LARGE.cpus
