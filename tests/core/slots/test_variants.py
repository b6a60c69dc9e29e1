"""Which variants are on sale: golden cases as data, bounds that nobody gets over, and what is bought."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, group, offer, policy, worker
from updraft.core.matching.verdicts import table_of
from updraft.core.model import PLAIN, CloudOffer, Kind, Reason, Resources, Terms, Variant, Verdict, variant
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import kind_key
from updraft.core.slots.variants import (
    LONGEST,
    MOST_EACH,
    TOO_MANY,
    choices,
    constructive,
    idle_limit,
    kept_as_asked,
    most_for,
    not_on_sale,
    refusal,
    wanted,
)

CASES = json.loads((Path(__file__).parents[1] / "cases" / "variants" / "wanted.json").read_text())
ALLOWING = WorkerClass(
    "plain",
    "g1",
    ("c1", "c2"),
    images={"c1": "img", "c2": "img"},
    images_allowed=("alma9-*",),
    networks_allowed=("private",),
    vm_types=("gpu-*",),
    offered_layers=("cvmfs", "root"),
    keep_alive_max=3600.0,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["what"])
def test_wanted(case: dict[str, Any]) -> None:
    one = replace(ALLOWING, **{name: _plain(value) for name, value in case.get("class", {}).items()})
    found = wanted([_group(about) for about in case["groups"]], policy(one))
    assert {
        name: {want.variant.text: sorted(want.clouds) for want in wants} for name, wants in found.items()
    } == case["wanted"]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _group(about: dict[str, Any]) -> Any:
    said = dict(about.get("terms", {}))
    said["faults"] = tuple(Reason(*each) for each in said.get("faults", ()))
    owner = about.get("owner", "alice")
    terms = Terms(**{name: _plain(value) for name, value in said.items()})
    return group(about["key"], about.get("idle", 1), owner=owner, submitter=f"{owner}@pool", terms=terms)


# ------------------------------------------------------------------------------------------------- bounds


def asking(number: int, owner: str = "alice", since: float = 10.0) -> Any:
    terms = Terms(images={"": f"alma9-{number}"})
    return group(f"{owner}-{number}", owner=owner, submitter=f"{owner}@pool", terms=terms, oldest=NOW - since)


def test_a_thousand_names_of_one_user_leave_room_for_the_others() -> None:
    crowd = [asking(number, "mallory", since=9999 - number) for number in range(1000)]
    found = wanted([*crowd, asking(1, "bob", since=1)], policy(ALLOWING), most=20)
    names = [want.variant.image for want in found["plain"]]
    assert names == sorted([*(f"alma9-{number}" for number in range(MOST_EACH))])
    assert (
        wanted([*crowd, asking(777, "bob", since=1)], policy(ALLOWING), most=2)["plain"][1]
        == (wanted([asking(777)], policy(ALLOWING))["plain"][0])
    )


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcdef"), st.integers(1, 99)), max_size=60),
    st.integers(1, 12),
    st.booleans(),
)
def test_there_are_never_more_than_may_be(
    jobs: list[tuple[int, str, int]], most: int, owner_only: bool
) -> None:
    groups = [asking(number, owner, since) for number, owner, since in jobs]
    rules = policy(replace(ALLOWING, owner_only=owner_only))
    found = wanted(groups, rules, most)
    assert sum(len(wants) for wants in found.values()) <= most
    assert found == wanted(list(reversed(groups)), rules, most)
    for want in (want for wants in found.values() for want in wants):
        assert refusal(want.variant, rules.classes["plain"], want.variant.image) is None
    if owner_only:
        for owner in {one.owner for one in groups}:
            assert sum(want.variant.user == owner for want in found["plain"]) <= MOST_EACH


def test_more_offers_leave_fewer_variants() -> None:
    assert [most_for(sold) for sold in (0, 30, 100, 100_000)] == [256, 256, 80, 16]


def test_what_is_not_on_sale_is_told_of() -> None:
    one, other = asking(1), asking(2)
    sold = [offer(worker_class="plain"), offer(worker_class="plain", variant=variant("image=alma9-1"))]
    assert not_on_sale([one, other, group("g")], policy(ALLOWING), sold) == {other.key: (TOO_MANY,)}
    # What no class allows is another matter: there is no machine that could be made for it.
    assert not_on_sale([other], policy(replace(ALLOWING, images_allowed=())), sold) == {}


def test_many_groups_that_ask_for_the_same_are_as_one() -> None:
    alike = [replace(asking(1, since=500), key=f"g{number}") for number in range(300)]
    other = asking(2, since=1)
    found = wanted([*alike, other], policy(ALLOWING))["plain"]
    assert [want.variant.image for want in found] == ["alma9-1", "alma9-2"]
    sold = [offer(worker_class="plain", variant=want.variant) for want in found[:1]]
    assert not_on_sale([*alike, other], policy(ALLOWING), sold) == {other.key: (TOO_MANY,)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alma9-{}", "windows-{}"])
def test_ten_thousand_names_are_not_read_to_the_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [
        replace(asking(number, "mallory"), terms=Terms(images={"": name.format(number)}))
        for number in range(10_000)
    ]
    read_at: list[str] = []

    def counted(one: Any, of: WorkerClass) -> Any:
        read_at.append(one.key)
        return choices(one, of)

    monkeypatch.setattr("updraft.core.slots.variants.choices", counted)
    wanted(crowd, policy(ALLOWING))
    not_on_sale(crowd, policy(ALLOWING), [])
    assert len(read_at) <= 200


def test_jobs_without_terms_ask_for_nothing() -> None:
    assert not constructive(Terms(flavors={"": "m"}, max_price=1.0, spot=True, cpus=3, clouds=("c1",)))
    assert choices(group("g"), ALLOWING) == {PLAIN: ("c1", "c2")}


# --------------------------------------------------------------------------------------- what is launched


@pytest.mark.parametrize(
    ("text", "image", "why"),
    [
        ("image=alma9-1", "alma9-1", ""),
        ("network=private&label=gpu-2&layers=root&keep_alive=30", "img", ""),
        ("", "img", ""),
        ("image=windows", "windows", "doesn't allow the image"),
        ("image=alma9-1", "alma9-2", "doesn't have the image"),
        ("network=secret", "img", "doesn't allow the network"),
        ("label=admin", "img", "doesn't allow the VMType"),
        ("layers=root,../../etc/passwd", "img", "offers no layer"),
        ("user=alice", "img", "for all users"),
        ("user=alice&annex=burst&groups=sg-1,sg-2", "img", ""),
        ("groups=sg-1", "img", "only annexes have security groups"),
        ("image=a&image=b", "a", "is no variant"),
        ("moon=full", "img", "is no variant"),
        ("\x00", "img", "is no variant"),
        ("%", "img", "is no variant"),
    ],
)
def test_a_launch_is_looked_at_again(text: str, image: str, why: str) -> None:
    found = refusal(variant(text), ALLOWING, image)
    assert (found is None) == (not why)
    assert found is None or why in found.text


def test_a_machine_of_a_class_of_one_user_each_is_for_somebody() -> None:
    private = replace(ALLOWING, owner_only=True)
    assert refusal(variant("user=bob"), private, "img") is None
    assert refusal(PLAIN, private, "img") is not None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 600.0),
        ("image=alma9-1", 600.0),
        ("keep_alive=120", 120.0),
        ("keep_alive=99999999999999999999", 3600.0),
        ("keep_alive=-5", 600.0),
        ("keep_alive=nan", 600.0),
        ("keep_alive=%D9%A3", 600.0),
        ("no variant at all", 600.0),
    ],
)
def test_a_machine_idles_as_long_as_its_variant_says(text: str, seconds: float) -> None:
    assert idle_limit(ALLOWING, variant(text)) == seconds


@given(st.text(max_size=300))
@example("user=\ud800")
def test_any_text_is_a_variant_or_unreadable(text: str) -> None:
    found = variant(text)
    assert variant(found.text) == found
    assert bool(found) == bool(text)
    if found.unreadable:
        assert (found, found.text) == (Variant(unreadable=text), text)
    refusal(found, ALLOWING, "img")
    idle_limit(ALLOWING, found)


names = st.text(max_size=20)


@given(st.builds(Variant, *[names] * 8))
def test_a_variant_is_read_as_it_was_written(made: Variant) -> None:
    assert variant(made.text) == made
    assert made.text.isascii()
    assert not set(made.text) & set("/?\"'\\$ \n")


# ------------------------------------------------------------------------------------------ what is bought


def test_machines_are_bought_as_long_lived_as_their_jobs_ask() -> None:
    long = group("long", terms=Terms(keep_alive=3600.0))
    odd = group("odd", terms=Terms(keep_alive=1800.0))
    plain = group("plain")
    sold = [
        offer(kind=f"k{text}", variant=variant(text), worker_class="plain")
        for text in ("", "keep_alive=3600")
    ]
    kinds = [Kind(one.kind, "[]", Resources(2, 4096, 4096)) for one in sold]
    table = table_of(
        {(g.key, k.key): Verdict(2, g.request) for g in (long, odd, plain) for k in kinds},
        [long, odd, plain],
        kinds,
    )
    assert kept_as_asked(table, [long, plain], sold[:1], policy(ALLOWING)) is table
    seen = kept_as_asked(table, [long, odd, plain], sold, policy(ALLOWING)).copies.tolist()
    # What isn't on sale as a group asks for it is no reason to get nothing.
    assert seen == [[0, 2], [2, 2], [2, 0]]


def test_the_kind_of_a_variant_says_what_it_is() -> None:
    made = Variant(image="alma9-1", user="bob", label="gpu-1", network="private")
    sold = CloudOffer("c1", "z1", "m", "on-demand", Resources(4, 8192, 40_000_000), 0.2)
    key = kind_key("plain", "g1", "c1", "m", made.text)
    ad = imagine(worker("plain"), sold, "alma9-1", "test", key, made).ad
    for said in ('UpdraftImage = "alma9-1"', f'UpdraftVariant = "{made.text}"', 'VMType = "gpu-1"'):
        assert said in ad
    assert key == f"{kind_key('plain', 'g1', 'c1', 'm')}?{made.text}"
    assert len(made.text) < LONGEST
