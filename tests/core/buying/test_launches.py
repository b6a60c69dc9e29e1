"""Who is made: machines for jobs without room, machines for a minimum, and what each launch is called."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.annexworlds import annex
from tests.rigs.snapshots import (
    DOWN,
    NOW,
    group,
    instance,
    offer,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
    worker,
)
from updraft.core.buying.launches import PlannedLaunch, intended, launches, minimum
from updraft.core.buying.shopping import Purchase, Shopping
from updraft.core.limits.budget import budget
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.cooldowns import image_key
from updraft.core.machines.entries import Entry
from updraft.core.model import (
    Known,
    Launch,
    LaunchState,
    Offer,
    Reason,
    ScheddView,
    Snapshot,
    Unknown,
    variant,
)
from updraft.core.plan import plan
from updraft.core.settings import CloudRule, Limits, Policy

NOTHING = Shopping()
ODD = variant("x")
PROVEN = frozenset({image_key("default", "img", "c1"), image_key("default", "img", "c2")})


def wished(
    shown: Snapshot, rules: Policy, promised: int = 0, shopping: Shopping = NOTHING
) -> list[tuple[str, int]]:
    """The offers and counts that a minimum asks for."""
    cache = MachineCache()
    cache.look(shown, rules)
    staying: list[Entry] = list(cache.entries.values())
    money = budget(cache, (), (), PROVEN, shown, rules)
    found = minimum(staying, {"default": promised}, shopping, shown, rules, money)
    return [(wish.offer.key, wish.count) for wish in found]


def one_there(**changes: object) -> Snapshot:
    return snapshot(
        instances=[instance("i-1")],
        slots=[slot("i-1")],
        records=[record("i-1", joined_at=NOW - 3500, last_claimed_at=NOW)],
        **changes,  # type: ignore[arg-type]
    )


SMALL, LARGE = offer().key, offer("large").key
FIVE = policy(worker(min_machines=5))


@pytest.mark.parametrize(
    ("shown", "rules", "promised", "shopping", "expected"),
    [
        (one_there(), FIVE, 0, NOTHING, [(SMALL, 4)]),
        (one_there(), FIVE, 1, NOTHING, [(SMALL, 3)]),
        (one_there(), FIVE, 0, Shopping((Purchase(offer("large"), 2, {}),)), [(SMALL, 2)]),
        (one_there(), FIVE, 0, Shopping((Purchase(offer(variant=ODD), 2, {}),)), [(SMALL, 4)]),
        (one_there(), FIVE, 4, NOTHING, []),
        (one_there(), policy(), 0, NOTHING, []),
        (one_there(), replace(FIVE, closing=True), 0, NOTHING, []),
        (one_there(collector=Unknown(DOWN, NOW)), FIVE, 0, NOTHING, []),
        (one_there(), replace(FIVE, limits=Limits(machines=3)), 0, NOTHING, [(SMALL, 2)]),
        (one_there(offers=[offer(left=3), offer("large")]), FIVE, 0, NOTHING, [(SMALL, 3), (LARGE, 1)]),
        (one_there(offers=[offer(price=None), offer("large")]), FIVE, 0, NOTHING, [(LARGE, 4)]),
        (one_there(offers=[offer(price=None), offer("large", price=None)]), FIVE, 0, NOTHING, [(SMALL, 4)]),
        (one_there(offers=[offer(variant=ODD)]), FIVE, 0, NOTHING, []),
        (one_there(offers=[offer(worker_class="other")]), FIVE, 0, NOTHING, []),
    ],
)  # fmt: skip
def test_a_minimum_is_filled_up_with_the_cheapest_that_may_be_bought(
    shown: Snapshot, rules: Policy, promised: int, shopping: Shopping, expected: list[tuple[str, int]]
) -> None:
    assert wished(shown, rules, promised, shopping) == expected


def test_a_minimum_is_kept_where_the_priority_is_best_though_it_is_dearer() -> None:
    shown = one_there(offers=[offer(price=0.5), offer(cloud="c2", price=0.1)])
    shown = replace(shown, clouds={**shown.clouds, "c2": snapshot().clouds["c1"]})
    first = replace(FIVE, clouds={"c2": CloudRule(priority=1)})
    assert wished(shown, first) == [(offer().key, 4)]
    assert wished(shown, FIVE) == [(offer(cloud="c2").key, 4)]


def test_machines_of_variants_count_towards_no_minimum() -> None:
    shown = one_there()
    odd = replace(shown.ledger.machines[0], variant=variant("image=other"))
    assert wished(replace(shown, ledger=replace(shown.ledger, machines=(odd,))), FIVE) == [(SMALL, 5)]


def reason_of(holds: dict[str, int], owners: dict[str, str]) -> Reason:
    """Why a machine is bought for so many jobs of these groups, which belong to these owners."""
    shown = snapshot(groups=[group(key, owner=owner) for key, owner in owners.items()])
    (launch,) = launches(Shopping((Purchase(offer(), 1, holds),)), (), shown)
    return launch.reason


@pytest.mark.parametrize(
    ("holds", "owners", "text"),
    [
        ({"g": 1}, {"g": "ann"}, "a waiting job of ann has no room"),
        ({"g": 2, "h": 3}, {"g": "ann", "h": "ann"}, "5 waiting jobs of ann have no room"),
        ({"g": 1, "h": 1}, {"g": "bob", "h": "ann"}, "2 waiting jobs of ann, bob have no room"),
        (
            dict.fromkeys("abcd", 1),
            {"a": "dan", "b": "cid", "c": "bob", "d": "ann"},
            "4 waiting jobs of ann, bob, cid and others have no room",
        ),
    ],
)
def test_a_launch_says_whose_jobs_it_is_for(holds: dict[str, int], owners: dict[str, str], text: str) -> None:
    assert reason_of(holds, owners) == Reason("demand", text)


def test_of_a_silent_schedds_jobs_no_owner_is_named() -> None:
    view = Known(ScheddView((group("g", owner="ann"),), ()), NOW - 60)
    shown = replace(snapshot(), schedds={"schedd": Unknown(DOWN, NOW - 60, view)})
    (launch,) = launches(Shopping((Purchase(offer(), 1, {"g": 2}),)), (), shown)
    assert "ann" not in launch.reason.text


def test_purchases_come_first_then_wishes_each_with_a_key_of_its_own() -> None:
    mine, kept = annex(), Reason("annex", "a test wants it")
    shopping = Shopping((Purchase(offer("large"), 2, {}), Purchase(offer(), 0, {})))
    made = launches(shopping, (PlannedLaunch(offer(), 3, kept, mine),), snapshot())
    stamp = f"{int(NOW * 1000):x}"
    assert made == [
        Launch(f"default-{stamp}-0", offer("large"), 2, made[0].reason),
        Launch(f"default-{stamp}-1", offer(), 3, kept, mine),
    ]


def test_another_moment_gives_other_keys() -> None:
    shopping = Shopping((Purchase(offer(), 1, {}),))
    keys: Callable[[float], set[str]] = lambda now: {  # noqa: E731
        launch.key for launch in launches(shopping, (), replace(snapshot(), now=now))
    }
    assert keys(NOW).isdisjoint(keys(NOW + 0.001))


@given(snapshots(), policies())
def test_every_launch_of_a_plan_has_a_key_of_its_own_and_is_for_some_machines(
    shown: Snapshot, rules: Policy
) -> None:
    made = [action for action in plan(shown, rules).actions if isinstance(action, Launch)]
    assert len({launch.key for launch in made}) == len(made)
    assert all(launch.count > 0 for launch in made)


@given(snapshots(), policies(), st.integers(0, 3))
def test_a_minimum_never_asks_for_more_than_is_missing(shown: Snapshot, rules: Policy, promised: int) -> None:
    got = wished(shown, rules, promised)
    assert sum(count for _, count in got) <= max(0, rules.classes["default"].min_machines - promised)
    assert not (got and (rules.closing or not isinstance(shown.collector, Known)))


@given(
    st.sampled_from([offer(), offer("large", cloud="c2", variant=variant("x"), price=None)]),
    st.integers(1, 9),
)
def test_what_is_intended_is_the_offer(bought: Offer, count: int) -> None:
    made = intended("K", bought, count, NOW)
    assert (made.key, made.count, made.asked_at, made.state) == ("K", count, NOW, LaunchState.INTENDED)
    place = ("cloud", "zone", "flavor", "market", "resources", "price")
    for name in (*place, "worker_class", "image", "generation", "variant"):
        assert getattr(made, name) == getattr(bought, name)
    assert (made.ids, made.error) == ((), None)
