"""Settings to compare: values in the place of what a policy says, and what clouds sell."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.clouds.base import LaunchRequest
from updraft.clouds.fake import FakeCloud
from updraft.config import load
from updraft.core.model import CloudOffer, Resources
from updraft.core.settings import Policy, WorkerClass
from updraft.errors import UsageError
from updraft.sim.conditions import Conditions, example_clouds, example_policy
from updraft.sim.sites import site_of
from updraft.sim.sweep import Setting, axis, front, swept
from updraft.sim.world.agenda import START
from updraft.sim.world.stock import bought, clouds_of, on_saved, read_offers, slots_of

POLICY = Policy(
    "p", {"small": WorkerClass("small", "1", ("cloud",)), "large": WorkerClass("large", "1", ("cloud",))}
)
BASE = Setting("base", POLICY, example_clouds())


def test_a_key_of_all_classes_and_of_one() -> None:
    every = [change(POLICY) for _, change in axis("idle_limit=2m,1h", POLICY).values]
    assert [policy.classes["large"].idle_limit for policy in every] == [120, 3600]
    assert [policy.classes["small"].idle_limit for policy in every] == [120, 3600]
    (_, change), *_ = axis("classes.small.max=7", POLICY).values
    assert (change(POLICY).classes["small"].max_machines, change(POLICY).classes["large"].max_machines) == (
        7,
        None,
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("limits.machines=5", lambda policy: policy.limits.machines),
        ("limits.cost_per_hour=5", lambda policy: policy.limits.cost_per_hour),
        ("clouds.cloud.limits.cores=5", lambda policy: policy.cloud_limits["cloud"].cores),
        ("clouds.cloud.billing_minimum=5s", lambda policy: policy.rule("cloud").billing.least),
        ("timings.trial=5", lambda policy: policy.timings.trial),
        ("timings.settle=5s", lambda policy: policy.timings.settle),
        ("slots=5", lambda policy: policy.classes["small"].static_slots),
        ("wait_target=5s", lambda policy: policy.classes["small"].wait_target),
    ],
)
def test_keys_are_those_of_the_configuration(text: str, value: object) -> None:
    ((name, change),) = axis(text, POLICY).values
    assert name == text
    assert value(change(POLICY)) == 5  # type: ignore[operator]


def test_lists_and_none() -> None:
    values = axis("markets=on-demand,spot,on-demand+spot", POLICY).values
    assert [change(POLICY).classes["small"].markets for _, change in values] == [
        ("on-demand",),
        ("spot",),
        ("on-demand", "spot"),
    ]
    values = axis("clouds.cloud.billing=second,minute,hour", POLICY).values
    assert [change(POLICY).rule("cloud").billing.period for _, change in values] == [0, 60, 3600]
    ((_, change),) = axis("limits.machines=none", POLICY).values
    assert change(POLICY).limits.machines is None


def test_axes_are_combined_and_named() -> None:
    axes = [axis("idle_limit=2m,10m", POLICY), axis("limits.machines=5,9", POLICY)]
    found = swept(BASE, axes)
    assert [one.name for one in found] == [
        "idle_limit=2m, limits.machines=5",
        "idle_limit=2m, limits.machines=9",
        "idle_limit=10m, limits.machines=5",
        "idle_limit=10m, limits.machines=9",
    ]
    assert {(one.policy.classes["small"].idle_limit, one.policy.limits.machines) for one in found} == {
        (120, 5), (120, 9), (600, 5), (600, 9),
    }  # fmt: skip
    assert swept(BASE, []) == [BASE]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("idle_limits=2m", r'"idle_limits" is no setting .*; did you mean idle_limit\?'),
        ("machines=2", r"did you mean limits\.machines"),
        ("image=a", r'"image" is no setting that a simulation knows'),
        ("classes.tiny.max=2", r"did you mean classes\."),
        ("cycle=5s", r"--cycle 60s"),
        ("idle_limit=2", r'idle_limit: 2: .*has no unit; write "2m"'),
        ("idle_limit=0s", r"idle_limit: 0s: input should be greater than 0"),
        ("max=-1", r"max: -1: input should be greater than or equal to 0"),
        ("max=1.5", r"max: 1\.5: "),
        ("markets=cheap", r"markets: cheap: "),
        ("idle_limit", "is no sweep; write it as in idle_limit=2m,10m,40m"),
        ("idle_limit=", "is no sweep"),
        ("idle_limit=2m,,3m", "is no sweep"),
        ("=2m", "is no sweep"),
        ("idle_limit=2m,2m", "2m is there twice"),
    ],
)
def test_an_impossible_sweep_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        axis(text, POLICY)
    assert "\n" not in str(caught.value)


def test_impossible_combinations_are_named() -> None:
    with pytest.raises(UsageError, match="at least 5 and at most 2 machines"):
        swept(BASE, [axis("min=1,5", POLICY), axis("max=2", POLICY)])
    with pytest.raises(UsageError, match="is there twice"):
        swept(BASE, [axis("max=1", POLICY), axis("max=2", POLICY)])
    numbers = ",".join(map(str, range(1, 10)))
    with pytest.raises(UsageError, match="makes 81 settings; at most 64"):
        swept(BASE, [axis(f"max={numbers}", POLICY), axis(f"limits.cores={numbers}", POLICY)])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    found = front(points)
    for index, (cost, wait) in enumerate(points):
        beaten = any(c <= cost and w <= wait and (c, w) != (cost, wait) for c, w in points)
        assert not (index in found and beaten)
        if not beaten:
            assert (cost, wait) in [points[one] for one in found]


# ------------------------------------------------------------------------------------------------- clouds


CONFIG = """\
[pool]
name = "p"
[clouds.here]
driver = "fake"
zones = ["a"]
quota_cores = 40
prices = {{ small = 7.0 }}
[clouds.here.flavors.small]
cpus = 2
memory = "4GiB"
price = 0.1
[clouds.here.flavors.big]
cpus = 16
memory = "64GiB"
price = 0.9
spot_price = 0.3
[classes.default]
image = "w"
flavors = [{flavors}]
markets = [{markets}]
"""


def site(folder: Path, flavors: str = '"*"', markets: str = '"on-demand"', more: str = "") -> Path:
    path = folder / "updraft.toml"
    path.write_text(CONFIG.format(flavors=flavors, markets=markets) + more)
    return path


def test_a_fake_cloud_sells_what_its_settings_say_at_the_sites_prices(tmp_path: Path) -> None:
    settings = load(site(tmp_path))
    clouds = clouds_of(settings, {})
    assert clouds["here"].cores == 40
    prices = {(o.flavor, o.market): o.price for o in clouds["here"].offers}
    assert prices == {("small", "on-demand"): 7.0, ("big", "on-demand"): 0.9, ("big", "spot"): 0.3}
    assert {o.flavor for o in bought(settings.policy(), clouds)} == {"small", "big"}


def test_a_class_buys_only_its_flavors_and_markets(tmp_path: Path) -> None:
    settings = load(site(tmp_path, flavors='"b*"', markets='"spot"'))
    clouds = clouds_of(settings, {})
    assert [(o.flavor, o.market) for o in bought(settings.policy(), clouds)] == [("big", "spot")]
    (slot,) = slots_of(settings.policy(), clouds)
    assert slot.cpus == 16
    assert 60 * 1024 < slot.memory < 64 * 1024  # the machine keeps some for itself


def test_the_local_cloud_sells_what_it_does_by_default(tmp_path: Path) -> None:
    text = (
        '[pool]\nname = "p"\n[clouds.l]\ndriver = "local"\nendpoint = "unix:/x"\n[classes.d]\nimage = "w"\n'
    )
    path = tmp_path / "updraft.toml"
    path.write_text(text)
    clouds = clouds_of(load(path), {})
    assert {o.flavor for o in clouds["l"].offers} == {"small", "medium", "large", "xlarge"}
    assert clouds["l"].boots is not None


def test_a_cloud_that_would_have_to_be_asked_needs_saved_offers(tmp_path: Path) -> None:
    path = tmp_path / "updraft.toml"
    path.write_text('[pool]\nname = "p"\n[clouds.amazon]\ndriver = "ec2"\n[classes.d]\nimage = "w"\n')
    with pytest.raises(UsageError, match=r"what cloud amazon sells isn't known here.*updraft offers --json"):
        clouds_of(load(path), {})
    saved = tmp_path / "offers.json"
    row = {
        "cloud": "amazon", "zone": "z", "flavor": "m5.large", "market": "on-demand", "price": 0.096,
        "left": None, "arch": "X86_64", "resources": {"cpus": 2, "memory": 8192, "disk": 8388608, "gpus": 0},
    }  # fmt: skip
    saved.write_text(json.dumps({"version": 1, "offers": [row], "errors": []}))
    clouds = clouds_of(load(path), read_offers(saved))
    assert clouds["amazon"].offers[0].resources == Resources(2, 8192, 8388608)
    with pytest.raises(UsageError, match="the offers are of amazon, and the configuration has here"):
        clouds_of(load(site(tmp_path)), read_offers(saved))


def test_a_cloud_that_told_what_is_left_of_an_offer_tells_it_all_the_while(tmp_path: Path) -> None:
    """Only a cloud that tells has ever told: what it said once isn't what is left from then on."""
    sold = CloudOffer("here", "a", "small", "on-demand", Resources(2, 8192, 8388608), 0.1, left=3)
    settings = load(site(tmp_path))
    for clouds in (clouds_of(settings, {"here": (sold,)}), on_saved(settings.policy(), {"here": (sold,)})[1]):
        made = site_of("here", clouds["here"], Conditions(), lambda: START)
        cloud = FakeCloud(made, "p")
        cloud.launch(LaunchRequest("k", 2, "w", "small", "a", "on-demand", b""))
        assert [offer.left for offer in cloud.offers()] == [1]
    silent = clouds_of(settings, {"here": (replace(sold, left=None),)})["here"]
    assert not silent.tells_left


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"offers": [{"cloud": "a"}]}', '{"offers": 3}', '{"offers": []}']
)
def test_a_file_that_holds_no_offers_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "o.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"o\.json .*updraft offers"):
        read_offers(path)


def test_the_example_sells_something() -> None:
    assert max(slot.cpus for slot in slots_of(example_policy(), example_clouds())) >= 16
