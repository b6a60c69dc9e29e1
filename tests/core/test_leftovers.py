"""What is left over: nothing that isn't proven ours, in use, named or young ever goes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.core.leftovers import (
    SPARED,
    Belonging,
    Judged,
    Kind,
    KnownSite,
    LeftoverState,
    chosen,
    judged,
    unknown,
)

NOW, MINE, OTHER = 1e9, "0123456789ab", "ba9876543210"
OLD = NOW - 30 * 86400
SITE = KnownSite("demo", MINE, NOW)


def thing(kind: Kind = Kind.SNAPSHOT, **changes: object) -> Belonging:
    plain = Belonging("lab", kind, "x-1", pool="demo", identity=MINE, made_at=OLD)
    return replace(plain, **changes)  # type: ignore[arg-type]


def fate(one: Belonging, site: KnownSite = SITE) -> tuple[LeftoverState, str]:
    (found,) = judged([one], site)
    return found.fate, found.reason.code


@pytest.mark.parametrize("kind", [Kind.SNAPSHOT, Kind.VOLUME, Kind.MACHINE, Kind.ADDRESS, Kind.PORT])
def test_what_nothing_uses_is_left(kind: Kind) -> None:
    assert fate(thing(kind)) == (LeftoverState.LEFT, "left-over")


@pytest.mark.parametrize("kind", [Kind.IMAGE, Kind.GROUP, Kind.KEY_PAIR])
def test_what_people_make_to_keep_is_only_unused(kind: Kind) -> None:
    assert fate(thing(kind)) == (LeftoverState.UNUSED, "unused")


def test_an_image_that_failed_or_was_never_finished_is_left() -> None:
    assert fate(thing(Kind.IMAGE, broken=True, made_at=NOW)) == (LeftoverState.LEFT, "half-made")
    assert fate(thing(Kind.IMAGE, unfinished=True)) == (LeftoverState.LEFT, "half-made")
    assert fate(thing(Kind.IMAGE, unfinished=True, made_at=NOW - 60)) == (LeftoverState.KEPT, "young")
    assert fate(thing(Kind.IMAGE, unfinished=True, made_at=None)) == (LeftoverState.KEPT, "age-unknown")


def test_what_is_used_or_named_stays() -> None:
    assert fate(thing(used_by="image ami-1")) == (LeftoverState.KEPT, "in-use")
    for word in ("x-1", "mine"):
        site = replace(SITE, named={("lab", word): "class default"})
        assert fate(thing(Kind.IMAGE, name="mine"), site) == (LeftoverState.KEPT, "named")
    elsewhere = replace(SITE, named={("far", "x-1"): "class default"})
    assert fate(thing(Kind.IMAGE), elsewhere)[0] is LeftoverState.UNUSED


def test_an_age_that_nobody_tells_is_not_old() -> None:
    assert fate(thing(made_at=None)) == (LeftoverState.UNUSED, "age-unknown")


def test_a_name_alone_proves_nothing() -> None:
    assert fate(thing(identity="")) == (LeftoverState.REFUSED, "not-proven")
    assert fate(thing(identity=OTHER)) == (LeftoverState.REFUSED, "another-pool")
    assert fate(thing(), replace(SITE, identity="")) == (LeftoverState.REFUSED, "another-pool")
    noted = replace(SITE, noted=frozenset({("lab", "snapshot", "x-1")}))
    assert fate(thing(identity=""), noted) == (LeftoverState.LEFT, "left-over")
    assert fate(thing(identity=OTHER), noted) == (LeftoverState.REFUSED, "another-pool")
    assert judged([thing(pool="other"), thing(pool="", identity="")], SITE) == ()


def test_what_is_in_use_stays_whoever_made_it() -> None:
    assert fate(thing(identity="", used_by="machine i")) == (LeftoverState.KEPT, "in-use")
    assert fate(thing(identity=OTHER, used_by="machine i")) == (LeftoverState.REFUSED, "another-pool")


def test_ids_choose_and_what_may_not_go_is_refused() -> None:
    left, unused = thing(id="a"), thing(Kind.IMAGE, id="b", name="mine")
    kept, strange = thing(id="c", used_by="image i"), thing(id="d", identity="")
    found = judged([left, unused, kept, strange], SITE)
    assert [one.thing.id for one in chosen(found)[0]] == ["a"]
    going, refused = chosen(found, ["mine", "c", "d"])
    assert [one.thing.id for one in going] == ["b"]
    assert [one.thing.id for one in refused] == ["c", "d"]
    assert unknown(found, ["a", "mine", "nobody"]) == ("nobody",)


_THINGS = st.builds(
    Belonging,
    cloud=st.sampled_from(["lab", "far"]),
    kind=st.sampled_from(list(Kind)),
    id=st.sampled_from(["x-1", "x-2", "x-3"]),
    name=st.sampled_from(["", "mine", "x-2"]),
    pool=st.sampled_from(["demo", "other", ""]),
    identity=st.sampled_from([MINE, OTHER, ""]),
    used_by=st.sampled_from(["", "", "machine i"]),
    made_at=st.one_of(st.none(), st.floats(NOW - 2 * max(SPARED.values()), NOW + 10)),
    unfinished=st.booleans(),
    broken=st.booleans(),
)
_SITES = st.builds(
    KnownSite,
    pool=st.just("demo"),
    identity=st.sampled_from([MINE, ""]),
    now=st.just(NOW),
    noted=st.frozensets(st.tuples(st.just("lab"), st.sampled_from([str(k) for k in Kind]), st.just("x-1"))),
    named=st.dictionaries(
        st.tuples(st.sampled_from(["lab", "far"]), st.sampled_from(["x-1", "mine"])), st.just("class c")
    ),
)


def _may_go(one: Judged, site: KnownSite) -> bool:
    thing = one.thing
    ours = (thing.identity == site.identity != "") or (thing.identity == "" and thing.key in site.noted)
    named = {(thing.cloud, thing.id), (thing.cloud, thing.name)} & site.named.keys()
    return ours and not thing.used_by and not named


@given(st.lists(_THINGS, max_size=6), _SITES, st.lists(st.sampled_from(["x-1", "x-2", "mine"])))
def test_only_what_is_ours_and_unused_goes(things: list[Belonging], site: KnownSite, ids: list[str]) -> None:
    found = judged(things, site)
    assert judged(reversed(judged_things(found)), site) == found, "the order says nothing"
    for one in found:
        assert one.reason.code
        assert one.reason.text
    going, refused = chosen(found, ids)
    assert all(_may_go(one, site) for one in going)
    if not ids:
        assert all(one.fate is LeftoverState.LEFT for one in going)
        young = [
            one
            for one in going
            if one.thing.made_at and NOW - one.thing.made_at < SPARED.get(one.thing.kind, 0)
        ]
        assert all(one.thing.broken for one in young)
    else:
        named = {one.thing.key for one in found if {one.thing.id, one.thing.name} & set(ids)}
        assert {one.thing.key for one in (*going, *refused)} == named


def judged_things(found: tuple[Judged, ...]) -> list[Belonging]:
    return [one.thing for one in found]
