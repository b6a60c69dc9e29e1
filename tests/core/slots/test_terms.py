"""The condition that machines hold jobs to: the same in ClassAds as in the words of the terms."""

from dataclasses import replace

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from tests.rigs.snapshots import worker
from updraft.condor.demand.terms import terms_of
from updraft.core.matching.match import judge
from updraft.core.model import PLAIN, CloudOffer, JobGroup, Kind, Resources, Terms, Variant
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.terms import RESTRICTIVE, TAKES, requirements, takes

GIB = 1024 * 1024
CLOUDS, FLAVORS, LAYERS = ("c1", "c.2", "cx2"), ("m1", "m1.large"), ("a", "b")
IMAGES = ("alma9", "a.b+(c)", "al")
NONSENSE = ('{ "a" }', "5 + error", "[ a = 1 ]", 'strcat("/etc/", "passwd")', '"a\\"b"')
SMALL = CloudOffer("c1", "z", "m1", "spot", Resources(4, 8192, 50 * GIB), 0.1)
VARIANTS = (
    *(PLAIN, Variant(image="alma9"), Variant(network="lab"), Variant(user="eve"), Variant(layers="a,b")),
    *(Variant(image="al", user="bob", layers="b"), Variant(label="atlas"), Variant(keep_alive="60")),
    Variant(user="eve", annex="burst"),
)


def choices(values: tuple[str, ...]) -> st.SearchStrategy[str]:
    pairs = st.dictionaries(st.sampled_from((*CLOUDS, "default")), st.sampled_from(values), min_size=1)
    joined = pairs.map(lambda some: ",".join(f"{cloud}:{value}" for cloud, value in some.items()))
    return st.sampled_from(values) | joined | joined.map(lambda text: text.replace(",", " , ")) | st.just("")


def lists(values: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3).map(",".join)


numbers = st.sampled_from((0, 1, 2, 4))
SAID: dict[str, st.SearchStrategy[object]] = {
    "UpdraftImage": choices(IMAGES),
    "VMAMI": choices(IMAGES),
    "VMLoc": choices(IMAGES),
    "UpdraftFlavor": choices(FLAVORS),
    "VMInstanceType": choices(FLAVORS),
    "UpdraftNetwork": choices(("lab", "campus")),
    "UpdraftClouds": lists(CLOUDS),
    "TargetClouds": lists(CLOUDS),
    "UpdraftLayers": lists(LAYERS),
    "VMAMIConfig": lists(LAYERS),
    "UpdraftMaxPrice": st.sampled_from((0.1, "0.2", 1)),
    "VMMaximumPrice": st.sampled_from((0, 10, "20")),
    "UpdraftSpot": st.booleans(),
    "VMCPUCores": numbers | numbers.map(str),
    "VMMem": st.sampled_from((1024, "4096", 8192)),
    "VMStorage": st.sampled_from((0, "10", 100)),
    "VMUserData": st.just(""),
    "VMKeepAlive": numbers,
}


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, object]:
    """A job with a few terms: with many, hardly any machine would do."""
    names = draw(st.lists(st.sampled_from(sorted(SAID)), max_size=3, unique=True))
    return {"Owner": draw(st.sampled_from(("eve", "bob"))), **{name: draw(SAID[name]) for name in names}}


OFFERS = st.builds(
    CloudOffer,
    cloud=st.sampled_from(CLOUDS),
    zone=st.just("z"),
    flavor=st.sampled_from(FLAVORS),
    market=st.sampled_from(("spot", "on-demand")),
    resources=st.builds(
        Resources, st.sampled_from((1, 2, 4)), st.sampled_from((1024, 8192)), st.sampled_from((GIB, 50 * GIB))
    ),
    price=st.sampled_from((None, 0.0, 0.1, 0.15, 0.5)),
)


def machine(offer: CloudOffer, variant: Variant, image: str = "alma9") -> Kind:
    """What the planner imagines; a machine says the same of itself (see the tests of the bootstrap)."""
    return imagine(worker(), offer, variant.image or image, "pool", variant=variant)


def taken(terms: Terms, owner: str, offer: CloudOffer, variant: Variant, image: str) -> bool:
    """Whether this machine is what the terms ask for: the rules in other words."""

    def chosen(by_cloud: dict[str, str], own: str) -> bool:
        return not by_cloud or by_cloud.get(offer.cloud, by_cloud.get("")) == own

    return all(
        (
            chosen(dict(terms.images), variant.image or image),
            chosen(dict(terms.flavors), offer.flavor),
            chosen(dict(terms.networks), variant.network or "no network"),
            not terms.clouds or offer.cloud in terms.clouds,
            set(terms.layers) <= set(variant.layers.split(",")),
            terms.max_price is None or (offer.price is not None and offer.price <= terms.max_price),
            terms.spot is None or terms.spot == (offer.market == "spot"),
            terms.cpus <= offer.resources.cpus,
            terms.memory <= offer.resources.memory,
            terms.disk <= offer.resources.disk,
            not variant.image or terms.images,
            not variant.network or terms.networks,
            not variant.layers or set(terms.layers) == set(variant.layers.split(",")),
            variant.user in ("", owner),
        )
    )


@given(job=jobs(), offer=OFFERS, variant=st.sampled_from(VARIANTS), image=st.sampled_from(IMAGES))
def test_a_machine_takes_what_the_terms_say(
    job: dict[str, object], offer: CloudOffer, variant: Variant, image: str
) -> None:
    ad, terms = classad2.ClassAd(job), terms_of(classad2.ClassAd(job))
    assert not terms.faults
    slot = classad2.ClassAd(machine(offer, variant, image).ad)
    expected = bool(taken(terms, str(job["Owner"]), offer, variant, image))
    assert (slot.lookup("Start").eval(slot, ad) is True) == expected
    if variant == PLAIN:  # what a machine was made for is its own to say; the rest the job says as well
        assert (classad2.ExprTree(requirements()).eval(ad, slot) is True) == expected


@pytest.mark.parametrize(
    ("job", "cloud", "variant", "takes_it"),
    [
        ({}, "c1", PLAIN, True),
        ({}, "c1", Variant(image="al"), False),
        ({}, "c1", Variant(label="x", keep_alive="1"), True),
        ({"VMAMI": "alma9"}, "c1", PLAIN, True),
        ({"VMAMI": "alma"}, "c1", PLAIN, False),
        ({"VMAMI": "c1:alma9,c2:al"}, "c1", PLAIN, True),
        ({"VMAMI": "c1:alma9-2,c2:al"}, "c1", PLAIN, False),
        ({"VMAMI": "default:alma9-2,c2:al"}, "c1", PLAIN, False),
        ({"VMAMI": "c2:al,c1:alma9"}, "c2", PLAIN, False),
        ({"VMAMI": "c2:al,c1:alma9"}, "c2", Variant(image="al"), True),
        ({"VMAMI": "c1:al,default:alma9"}, "c2", PLAIN, True),
        ({"VMAMI": "c1:al, default:alma9"}, "c1", PLAIN, False),  # it said what it wants there
        ({"VMAMI": "bc1:al,default:alma9"}, "c1", PLAIN, True),
        ({"VMAMI": "cx2:al,default:alma9"}, "c.2", PLAIN, True),  # a dot in a name is a dot
        ({"UpdraftImage": "al"}, "c1", Variant(image="al", user="eve"), True),
        ({"UpdraftImage": "al"}, "c1", Variant(image="al", user="bob"), False),
        ({"VMMaximumPrice": 11}, "c1", PLAIN, True),
        ({"VMMaximumPrice": 9}, "c1", PLAIN, False),
        ({"UpdraftLayers": "b,a"}, "c1", Variant(layers="a,b"), True),
        ({"UpdraftLayers": "a"}, "c1", Variant(layers="a,b"), False),
        ({"UpdraftLayers": "a"}, "c1", PLAIN, False),
        ({"VMNetwork": "lab"}, "c1", PLAIN, False),
        ({"VMNetwork": "lab"}, "c1", Variant(network="lab"), True),
        ({"VMCPUCores": "4", "VMMem": 8192, "VMStorage": "50"}, "c1", PLAIN, True),
        ({"VMStorage": "51"}, "c1", PLAIN, False),
        ({"UpdraftSpot": True, "TargetClouds": "c2, c1"}, "c1", PLAIN, True),
        ({"UpdraftSpot": False}, "c1", PLAIN, False),
    ],
)
def test_who_takes_whom(job: dict[str, object], cloud: str, variant: Variant, takes_it: bool) -> None:
    slot = classad2.ClassAd(machine(replace(SMALL, cloud=cloud), variant).ad)
    found = slot.lookup("Start").eval(slot, classad2.ClassAd({"Owner": "eve", **job})) is True
    assert found == takes_it


@pytest.mark.parametrize("name", RESTRICTIVE)
@pytest.mark.parametrize("value", NONSENSE)
def test_a_restrictive_name_with_nonsense_is_taken_by_no_machine(name: str, value: str) -> None:
    slot = classad2.ClassAd(machine(SMALL, PLAIN).ad)
    job = classad2.ClassAd(f"[ {name} = {value} ]")
    assert slot.lookup("Start").eval(slot, job) is not True


def test_a_class_sets_start_and_the_terms_hold_as_well() -> None:
    choosy = replace(worker(), attributes={"Start": 'TARGET.Owner == "eve"', "VMType": '"wn"'})
    kind = imagine(choosy, SMALL, "alma9", "pool")

    def runs(owner: str, more: str = "") -> bool:
        asks = 'RequestCpus = 1; RequestMemory = 1; RequestDisk = 1; Requirements = TARGET.VMType =?= "wn"'
        group = JobGroup(
            "g", "s", owner, owner, f'[ Owner = "{owner}"; {asks}; {more} ]', Resources(1, 1, 1), 1
        )
        return judge(group, kind, 0.0).copies > 0

    assert runs("eve")
    assert not runs("bob")
    assert runs("eve", 'UpdraftImage = "alma9"')
    assert not runs("eve", 'UpdraftImage = "alma8"')


def test_the_condition_is_short_and_one_for_all_plain_machines() -> None:
    assert len(takes()) < 1600
    offers = [CloudOffer(c, "z", f, "spot", Resources(1, 1, 1)) for c in CLOUDS for f in FLAVORS]
    ads = [classad2.ClassAd(machine(offer, PLAIN).ad) for offer in offers]
    assert len({str(ad.lookup(TAKES)) for ad in ads}) == 1
