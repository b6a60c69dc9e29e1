"""Limits and quotas: what may still be bought counts all that is there and all that was asked for.

Covers `budget` and `ceilings`.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    DOWN,
    LARGE,
    NOW,
    PACED,
    SMALL,
    gone,
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
from updraft.core.limits.budget import Budget, budget
from updraft.core.limits.ceilings import Use
from updraft.core.limits.pace import joins_left
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.cooldowns import image_key, outstanding
from updraft.core.model import (
    CloudView,
    CollectorView,
    Cooldown,
    DrainMode,
    DrainRecord,
    Known,
    LaunchRecord,
    LaunchState,
    Offer,
    Quota,
    Reason,
    Snapshot,
    Unknown,
)
from updraft.core.plan import plan
from updraft.core.settings import CloudRule, Limits, Policy

IMAGE = image_key("default", "img", "c1")
PROVEN = frozenset({IMAGE, image_key("default", "img", "c2")})
CLOSED = Reason("cloud-disabled", "as a test says")
REFUSED = Reason("no-capacity", "the cloud has none")
ASKED = LaunchRecord(
    "K",
    "c1",
    "z1",
    "large",
    "on-demand",
    "default",
    "img",
    "g1",
    3,
    LARGE,
    0.36,
    NOW - 1,
    LaunchState.UNKNOWN,
)


def of(
    shown: Snapshot, rules: Policy, rests: tuple[Cooldown, ...] = (), proven: frozenset[str] = PROVEN
) -> Budget:
    """The budget of a decision about this snapshot."""
    cache = MachineCache()
    waiting = outstanding(shown.ledger, cache.look(shown, rules).machines)
    return budget(cache, waiting, rests, proven, shown, rules)


def two_there(**changes: object) -> Snapshot:
    """Two small machines, of 2 cores and 4096 MiB at 0.1 each, and what changes about the rest."""
    names = ("i-1", "i-2")
    return snapshot(
        instances=[instance(name) for name in names],
        slots=[slot(name) for name in names],
        records=[record(name, joined_at=NOW - 3500, last_claimed_at=NOW) for name in names],
        **changes,  # type: ignore[arg-type]
    )


def with_quota(shown: Snapshot, quota: Quota) -> Snapshot:
    return replace(shown, clouds={"c1": replace(shown.clouds["c1"], quota=Known(quota, NOW))})


@pytest.mark.parametrize(
    ("rules", "bought", "most", "code"),
    [
        (policy(), offer(), 100, ""),
        (policy(limits=Limits(machines=5)), offer(), 3, "limit-machines"),
        (policy(limits=Limits(machines=1)), offer(), 0, "limit-machines"),
        (policy(limits=Limits(cores=13)), offer(), 4, "limit-cores"),
        (policy(limits=Limits(cores=13)), offer("large"), 1, "limit-cores"),
        (policy(limits=Limits(memory=5 * 4096 + 1)), offer(), 3, "limit-memory"),
        (policy(limits=Limits(memory=4096)), offer(), 0, "limit-memory"),
        (policy(cloud_limits={"c1": Limits(memory=6 * 4096, machines=9)}), offer("large"), 1, "limit-memory"),
        (policy(limits=Limits(cost_per_hour=1.0)), offer(), 8, "limit-cost"),
        (policy(limits=Limits(cost_per_hour=1.0)), offer("large"), 2, "limit-cost"),
        (policy(limits=Limits(cost_per_hour=0.2)), offer(price=0.0), 100, ""),
        (policy(limits=Limits(cost_per_hour=99.0)), offer(price=None), 0, "price-unknown"),
        (policy(limits=Limits(machines=9, cores=8)), offer(), 2, "limit-cores"),
        (policy(cloud_limits={"c1": Limits(machines=3)}), offer(), 1, "limit-machines"),
        (policy(cloud_limits={"c2": Limits(machines=0)}), offer(), 100, ""),
        (policy(worker(max_machines=4)), offer(), 2, "limit-class"),
        (policy(worker(max_cores=11)), offer(), 3, "limit-class"),
        (policy(worker(max_machines=9, max_cores=6)), offer(), 1, "limit-class"),
        (policy(clouds={"c1": CloudRule(closed=CLOSED)}), offer(), 0, "cloud-disabled"),
        (policy(), offer(left=7), 7, "no-capacity"),
        (policy(), offer(left=-1), 0, "no-capacity"),
        (policy(), offer(cloud="c2"), 0, "cloud-silent"),
    ],
)
def test_what_may_be_bought_beside_what_is_there(rules: Policy, bought: Offer, most: int, code: str) -> None:
    granted, stop = of(two_there(), rules).allow(bought, 100)
    assert (granted, "" if stop is None else stop.code) == (most, code)


@pytest.mark.parametrize(
    ("quota", "most", "text"),
    [
        (Quota(machines=4), 4, "4 machines"),
        (Quota(cores=9), 4, "9 cores"),
        (Quota(memory=3 * 4096 + 1), 3, "MiB of memory"),
        (Quota(machines=9, cores=4, memory=10**6), 2, "4 cores"),
        (Quota(machines=0), 0, "0 machines"),
        (Quota(), 100, ""),
    ],
)
def test_a_quota_is_what_is_left_and_what_is_not_known_of_it_is_no_limit(
    quota: Quota, most: int, text: str
) -> None:
    granted, stop = of(with_quota(two_there(), quota), policy()).allow(offer(), 100)
    assert granted == most
    assert text in ("" if stop is None else stop.text)


def test_a_quota_that_was_asked_for_before_a_launch_does_not_know_of_it() -> None:
    """Two machines that the quota's answer counts, one launched since, and three that may still show."""
    shown = with_quota(two_there(), Quota(machines=9))
    young = replace(shown.ledger.machines[1], requested_at=NOW + 1)
    ledger = replace(shown.ledger, machines=(shown.ledger.machines[0], young), launches=(ASKED,))
    assert of(replace(shown, ledger=ledger), policy()).allow(offer(), 100)[0] == 9 - 1 - 3


def test_what_was_asked_for_and_has_not_shown_itself_counts_against_every_limit() -> None:
    shown = two_there()
    shown = replace(shown, ledger=replace(shown.ledger, launches=(ASKED,)))
    made = of(shown, policy())
    assert made.pool == Use(
        5, 2 * 2 + 3 * 8, 2 * SMALL.memory + 3 * LARGE.memory, pytest.approx(0.2 + 3 * 0.36)
    )
    assert made.per_cloud["c1"] == made.pool
    assert (made.per_class, made.class_cores) == ({"default": 5}, {"default": 28})
    assert made.on_the_way == {IMAGE: 3}
    assert of(shown, policy(limits=Limits(machines=7))).allow(offer(), 9)[0] == 2


YOUNG, ESTABLISHED = NOW - 60, NOW - 100_000
EMPTIED = DrainRecord(DrainMode.EMPTY, NOW - 70, Reason("idle-limit", "as a test says"), NOW - 69)


@pytest.mark.parametrize(
    ("started", "jumped_at", "changes", "most"),
    [
        (ESTABLISHED, None, {}, 1),
        (YOUNG, None, {}, 0),
        (None, None, {}, 0),
        (ESTABLISHED, NOW - 60, {}, 0),
        (YOUNG, None, {"joined_at": None}, 1),
        (YOUNG, None, {"drain": EMPTIED}, 1),
        (YOUNG, None, {"terminate_asked_at": NOW - 30}, 1),
    ],
    ids=["pool says so too", "young", "silent", "clock jumped", "never joined", "closed empty", "by us"],
)
def test_one_that_its_cloud_has_no_more_counts_until_the_pool_bears_it_out(
    started: float | None, jumped_at: float | None, changes: dict[str, object], most: int
) -> None:
    """A collector that doesn't answer, or has forgotten its machines, can't say that it heard of none."""
    shown = snapshot(records=[gone("i-1", **changes)], found={"i-1": None}, jumped_at=jumped_at)
    pool = Unknown(DOWN, NOW) if started is None else Known(CollectorView((), started, NOW - 5), NOW)
    rules = policy(limits=Limits(machines=1))
    shown = replace(shown, collector=pool)
    assert of(shown, rules).allow(offer(), 1)[0] == most
    made = plan(shown, rules)
    assert [one.ended_at for one in made.records if one.ended_at] == [NOW] * most


def test_a_machine_whose_price_is_not_known_stops_all_purchases_under_a_limit_of_cost() -> None:
    shown = two_there()
    dear = replace(shown.ledger.machines[0], price=None)
    shown = replace(shown, ledger=replace(shown.ledger, machines=(dear, shown.ledger.machines[1])))
    granted, stop = of(shown, policy(limits=Limits(cost_per_hour=99.0))).allow(offer(), 1)
    assert granted == 0
    assert stop is not None
    assert stop.code == "price-unknown"
    elsewhere = policy(cloud_limits={"c2": Limits(cost_per_hour=99.0)})
    assert of(shown, elsewhere).allow(offer(), 1) == (1, None)


def seen_oddly(shown: Snapshot, *ids: str) -> Snapshot:
    """The same, and of these nothing can be made."""
    return replace(shown, clouds={"c1": replace(shown.clouds["c1"], odd=frozenset(ids))})


def test_what_is_listed_oddly_and_not_in_the_ledger_may_be_ours_and_as_large_as_any() -> None:
    offers = (offer(), offer("large", resources=LARGE, price=0.36))
    shown = replace(two_there(), offers=offers)
    there = shown.ledger.machines[0].id
    made = of(seen_oddly(shown, there, "i-8", "i-9"), policy())
    assert made.per_cloud["c1"] == Use(
        4, 2 * 2 + 2 * 8, 2 * SMALL.memory + 2 * LARGE.memory, pytest.approx(0.2 + 2 * 0.36)
    )
    assert made.pool == made.per_cloud["c1"]
    assert made.per_class == {"default": 2}, "of which class it is nobody can say"
    assert of(seen_oddly(shown, "i-9"), policy(limits=Limits(machines=4))).allow(offer(), 9)[0] == 1


def test_what_is_listed_oddly_by_a_cloud_that_sells_nothing_has_no_known_price() -> None:
    shown = replace(two_there(), offers=())
    assert of(seen_oddly(shown, "i-9"), policy()).pool.price_unknown


@pytest.mark.parametrize(
    ("rest", "bought", "most", "code"),
    [
        (Cooldown("cloud", "c1", NOW + 9, 1, False, REFUSED), offer(), 0, "cooling-down"),
        (Cooldown("cloud", "c2", NOW + 9, 1, False, REFUSED), offer(), 5, ""),
        (Cooldown("image", IMAGE, NOW + 9, 1, False, REFUSED), offer("large"), 0, "cooling-down"),
        (Cooldown("offer", "c1/z1/small/on-demand", NOW + 9, 1, False, REFUSED), offer(), 0, "cooling-down"),
        (Cooldown("offer", "c1/z1/small/on-demand", NOW + 9, 1, False, REFUSED), offer("large"), 5, ""),
        (Cooldown("offer", "c1/z1/small/on-demand", NOW, 3, True, REFUSED), offer(), 1, "probing"),
        (Cooldown("offer", "c1/z1/small/on-demand", NOW, 2, False, REFUSED), offer(), 5, ""),
        (Cooldown("offer", "c1/z1/small/on-demand?x", NOW + 9, 1, False, REFUSED), offer(), 5, ""),
    ],
)
def test_what_failed_rests_and_is_tried_with_one_machine(
    rest: Cooldown, bought: Offer, most: int, code: str
) -> None:
    granted, stop = of(two_there(), policy(), (rest,)).allow(bought, 5)
    assert (granted, "" if stop is None else stop.code) == (most, code)


def test_one_probe_is_out_at_a_time() -> None:
    made = of(two_there(), policy(), (Cooldown("image", IMAGE, NOW, 3, True, REFUSED),))
    assert made.allow(offer(), 1)[0] == 1
    granted, stop = made.allow(offer("large"), 1)
    assert granted == 0
    assert stop is not None
    assert stop.code == "probing"


def test_an_image_of_which_no_machine_has_joined_is_tried_with_a_few() -> None:
    made = of(two_there(), policy(), proven=frozenset())
    trial = policy().timings.trial
    assert made.allow(offer(), trial - 2) == (trial - 2, None)
    granted, stop = made.allow(offer("large"), 5)
    assert granted == 2
    assert stop is not None
    assert stop.code == "unproven"


def test_a_slow_collector_lets_so_many_join_whatever_they_are() -> None:
    shown = two_there(pace=PACED)
    left = joins_left(PACED, shown.ledger, NOW)
    assert left is not None
    made = of(shown, policy())
    first, _ = made.allow(offer(), 1)
    rest, stop = made.allow(offer("large"), 100)
    assert first + rest == left
    assert stop is not None
    assert made.allow(offer(), 1)[0] == 0


def test_what_the_cloud_has_left_of_an_offer_is_granted_once() -> None:
    made = of(two_there(), policy())
    few = offer(left=3)
    assert [made.allow(few, 2)[0], made.allow(few, 2)[0], made.allow(few, 2)[0]] == [2, 1, 0]
    assert made.allow(offer("large", left=3), 2)[0] == 2, "another flavor's is its own"


@pytest.mark.parametrize(
    ("rules", "clouds", "most"),
    [
        (policy(limits=Limits(machines=7)), None, 5),
        (policy(worker(max_machines=4)), None, 2),
        (policy(cloud_limits={"c1": Limits(machines=3)}), None, 1),
        (policy(limits=Limits(machines=7)), {"c2"}, 0),
        (policy(limits=Limits(machines=7), clouds={"c1": CloudRule(closed=CLOSED)}), None, 0),
        (policy(limits=Limits(machines=1)), None, 0),
    ],
)
def test_how_many_may_be_bought_at_all(rules: Policy, clouds: set[str] | None, most: int) -> None:
    assert of(two_there(), rules).machines_left(clouds) == most


def test_of_a_cloud_that_rests_or_is_silent_none_may_be_bought_at_all() -> None:
    shown = two_there()
    rest = Cooldown("cloud", "c1", NOW + 9, 1, False, REFUSED)
    assert of(shown, policy(limits=Limits(machines=7)), (rest,)).machines_left() == 0
    silent = replace(
        shown, clouds={"c1": CloudView(Unknown(DOWN, NOW), Unknown(DOWN, NOW), Unknown(DOWN, NOW))}
    )
    assert of(silent, policy(limits=Limits(machines=7))).machines_left() == 0
    assert of(with_quota(shown, Quota(machines=2)), policy()).machines_left() == 2


ASKS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=12)


@given(snapshots(), policies(), ASKS)
def test_nobody_gets_more_than_asked_for_nor_over_a_limit(
    shown: Snapshot, rules: Policy, asks: list[tuple[int, int]]
) -> None:
    """Whatever is asked for in whatever order: what was within a limit before is within it afterwards."""
    made = of(shown, rules)
    before, at_all, granted_in_all = replace(made.pool), made.machines_left(), 0
    for at, count in asks:
        bought = shown.offers[at]
        granted, stop = made.allow(bought, count)
        assert 0 <= granted <= count
        assert (stop is None) == (granted == count)
        granted_in_all += granted
        if granted:
            assert rules.rule(bought.cloud).closed is None
            assert isinstance(shown.clouds[bought.cloud].machines, Known)
            assert bought.price is not None or rules.limits.cost_per_hour is None
    assert granted_in_all <= at_all
    assert made.pool.machines == before.machines + granted_in_all
    limits, default = rules.limits, rules.classes["default"]
    if granted_in_all:
        assert limits.machines is None or made.pool.machines <= limits.machines
        assert limits.cores is None or made.pool.cores <= limits.cores
        assert limits.cost_per_hour is None or made.pool.cost <= limits.cost_per_hour + 1e-6
        assert default.max_machines is None or made.per_class["default"] <= default.max_machines
