"""Packing: what fill and buy may never do, whatever the demand and the offers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import pick
from updraft.core.buying.shopping import Shopping, buy
from updraft.core.demand.filling import Bin, fill
from updraft.core.demand.fitting import turns
from updraft.core.matching.match import by_quantity
from updraft.core.model import JobGroup, Kind, Offer, Reason, Resources, Verdict
from updraft.core.model.basics import Custom

World = tuple[
    list[tuple[JobGroup, int]], dict[str, Kind], list[Offer], list[Bin], dict[tuple[str, str], Verdict]
]
ENOUGH = 10_000_000


def job_group(
    key: str, request: Resources, owner: str = "o", priority: int = 0, oldest: float = 0.0
) -> JobGroup:
    return JobGroup(key, "s", owner, owner, "", request, 0, priority=priority, oldest=oldest)


def verdict_of(group: JobGroup, kind: Kind, copies: int = ENOUGH) -> Verdict:
    asks = kind.resources
    if kind.partitionable:
        memory = -(-group.request.memory // 128) * 128
        asks = replace(group.request, memory=memory).only(kind.resources.names)
    most = by_quantity(kind.resources, asks, group.request) if kind.partitionable else 1
    if not kind.resources.holds(group.request):
        most = 0
    return Verdict(min(copies, most), asks)


def offer_of(kind: Kind, price: float | None, cloud: str = "c", left: int | None = None) -> Offer:
    return Offer("w", cloud, "z", kind.key, "on-demand", "i", "g", kind.resources, kind.key, price, left)


def everything(offer: Offer, count: int) -> tuple[int, Reason | None]:
    return count, None


def machine(key: str, cpus: int, memory: int, gpus: int = 0, slots: int = 1, custom: Custom = ()) -> Kind:
    return Kind(key, "", Resources(cpus, memory, 10**6, gpus, custom), partitionable=slots == 1, slots=slots)


ASKED: list[Custom] = [(), (), (("fpgas", 1),), (("fpgas", 2), ("tapes", 1)), (("fpgas", 1), ("unknown", 7))]
THERE: list[Custom] = [(), (("fpgas", 2),), (("fpgas", 5), ("tapes", 1)), (("fpgas", 0), ("tapes", 3))]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    groups = []
    for at in range(draw(st.integers(1, 6))):
        request = Resources(
            draw(st.integers(1, 8)),
            draw(st.integers(1, 9000)),
            1024,
            pick(draw, [0, 0, 0, 1]),
            pick(draw, ASKED),
        )
        group = job_group(
            f"g{at}",
            request,
            pick(draw, "xyz"),
            draw(st.integers(0, 2)),
            float(draw(st.integers(0, 5))),
        )
        groups.append((group, draw(st.integers(0, 60))))
    kinds, offers = {}, []
    for at in range(draw(st.integers(1, 5))):
        slots = pick(draw, [1, 1, 1, 2, 4])
        kind = machine(
            f"k{at}",
            draw(st.integers(1, 32)),
            draw(st.integers(500, 64000)),
            pick(draw, [0, 0, 2]),
            slots,
            pick(draw, THERE),
        )
        kinds[kind.key] = kind
        offers.append(offer_of(kind, draw(st.one_of(st.none(), st.floats(0.01, 5.0)))))
    verdicts = {}
    for group, _ in groups:
        for kind in kinds.values():
            verdict = verdict_of(group, kind, pick(draw, [0, 1, 2, ENOUGH, ENOUGH, ENOUGH]))
            verdicts[group.key, kind.key] = verdict
    bins = []
    for at in range(draw(st.integers(0, 8))):
        kind = pick(draw, sorted(kinds.values(), key=lambda k: k.key))
        free = kind.resources
        if kind.partitionable and draw(st.booleans()):
            free = Resources(
                draw(st.integers(0, free.cpus)),
                draw(st.integers(0, free.memory)),
                free.disk,
                free.gpus,
                tuple((name, draw(st.integers(0, amount))) for name, amount in free.custom),
            )
        bins.append(Bin(f"b{at}", kind.key, free, float(draw(st.integers(0, 3)))))
    return groups, kinds, offers, bins, verdicts


def replay(
    free: Resources, whole: Kind, jobs: Mapping[str, int], groups: Mapping[str, JobGroup], verdicts: Mapping
) -> bool:
    """Whether a slot holds these jobs together, as they were asked for."""
    if not whole.partitionable:
        return sum(jobs.values()) <= 1
    total = Resources()
    for key, number in jobs.items():
        verdict = verdicts[key, whole.key]
        assert verdict.decided
        assert number <= verdict.copies
        total = total + groups[key].request.times(number)
    return bool(free.holds(total))


@given(worlds())
def test_fill_keeps_to_room_and_verdicts_and_loses_nobody(world: World) -> None:
    groups, kinds, _, bins, verdicts = world
    filling = fill(groups, bins, verdicts, kinds)
    by_key = {group.key: group for group, _ in groups}
    for group, count in groups:
        assert filling.left[group.key] + sum(filling.placed.get(group.key, {}).values()) == count
    for item in bins:
        inside = {key: where[item.key] for key, where in filling.placed.items() if item.key in where}
        assert all(number > 0 for number in inside.values())
        assert replay(item.free, kinds[item.kind], inside, by_key, verdicts)


@given(worlds())
def test_fill_leaves_nobody_who_would_fit(world: World) -> None:
    groups, kinds, _, bins, verdicts = world
    filling = fill(groups, bins, verdicts, kinds)
    used = {name for where in filling.placed.values() for name in where}
    for group, _ in groups:
        if filling.left[group.key]:
            for item in bins:
                if item.key not in used and item.free == kinds[item.kind].resources:
                    assert verdicts[group.key, item.kind].copies == 0


def fpga_world(count: int) -> World:
    """Jobs that ask for an FPGA, and large machines with two."""
    kind = machine("k", 64, 256_000, custom=(("fpgas", 2),))
    group = job_group("g", Resources(1, 1000, 1024, 0, (("fpgas", 1),)))
    return [(group, count)], {"k": kind}, [offer_of(kind, 1.0)], [], {("g", "k"): verdict_of(group, kind)}


def test_machines_are_bought_for_each_of_what_a_site_has_given_them() -> None:
    """By cores alone, one machine would do for 64 jobs."""
    groups, kinds, offers, _, verdicts = fpga_world(64)
    (bought,) = buy(groups, offers, kinds, verdicts, everything).purchases
    assert bought.count == 32


def test_where_all_of_it_is_taken_there_is_no_room_whatever_else_is_free() -> None:
    groups, kinds, _, _, verdicts = fpga_world(60)
    taken = replace(kinds["k"].resources, custom=(("fpgas", 0),))
    one = replace(taken, custom=(("fpgas", 1),))
    filling = fill(groups, [Bin("full", "k", taken), Bin("half", "k", one)], verdicts, kinds)
    assert filling.placed == {"g": {"half": 1}}
    assert filling.left == {"g": 59}


def test_what_only_a_job_names_limits_nothing() -> None:
    """As HTCondor: `+RequestRuntime` is no resource of any machine."""
    kind = machine("k", 8, 64_000)
    group = job_group("g", Resources(1, 1000, 1024, 0, (("runtime", 3600),)))
    verdicts = {("g", "k"): verdict_of(group, kind)}
    assert fill([(group, 20)], [Bin("b", "k", kind.resources)], verdicts, {"k": kind}).left == {"g": 12}
    (bought,) = buy([(group, 16)], [offer_of(kind, 1.0)], {"k": kind}, verdicts, everything).purchases
    assert bought.count == 2


@pytest.mark.slow
@given(worlds(), st.randoms(use_true_random=False))
def test_the_same_whatever_the_order_of_the_input(world: World, random: object) -> None:
    groups, kinds, offers, bins, verdicts = world

    def shuffled(items: Sequence) -> list:
        mixed = list(items)
        random.shuffle(mixed)  # type: ignore[attr-defined]
        return mixed

    mixed = dict(shuffled(list(verdicts.items())))
    assert fill(groups, bins, verdicts, kinds) == fill(shuffled(groups), shuffled(bins), mixed, kinds)
    one = buy(groups, offers, kinds, verdicts, everything)
    other = buy(shuffled(groups), shuffled(offers), dict(shuffled(list(kinds.items()))), mixed, everything)
    assert one == other


def price_of(shopping: Shopping) -> float:
    return sum((purchase.offer.price or 0.0) * purchase.count for purchase in shopping.purchases)


@given(worlds())
def test_buy_serves_all_who_can_be_served_and_never_above_a_machine_for_each_job(world: World) -> None:
    groups, kinds, offers, _, verdicts = world
    shopping = buy(groups, offers, kinds, verdicts, everything)
    naive = 0.0
    for group, count in groups:
        prices = [o.price for o in offers if verdicts[group.key, o.kind].copies]
        bought = sum(p.holds.get(group.key, 0) for p in shopping.purchases)
        assert bought == (count if prices else 0)
        assert shopping.left.get(group.key, 0) == count - bought
        assert (group.key in shopping.unmet) == (bought < count)
        known = [price for price in prices if price is not None]
        naive += count * min(known, default=0.0)
    if all(offer.price is not None for offer in offers):
        assert price_of(shopping) <= naive + 1e-6
    for purchase in shopping.purchases:
        whole = kinds[purchase.offer.kind]
        load = Resources()
        for key, number in purchase.holds.items():
            group = next(g for g, _ in groups if g.key == key)
            verdict = verdicts[key, whole.key]
            assert 0 < number <= verdict.copies * whole.slots * purchase.count
            load = load + group.request.times(number)
        assert whole.resources.times(whole.slots * purchase.count).holds(load)


@pytest.mark.slow
@given(worlds(), st.integers(0, 10))
def test_what_is_not_allowed_is_not_bought_and_is_explained(world: World, limit: int) -> None:
    groups, kinds, offers, _, verdicts = world
    granted: dict[str, int] = {}
    refused: set[str] = set()

    def allowed(offer: Offer, count: int) -> tuple[int, Reason | None]:
        assert offer.key not in refused
        got = min(count, limit - sum(granted.values()))
        granted[offer.key] = granted.get(offer.key, 0) + got
        if got == count:
            return got, None
        refused.add(offer.key)
        return got, Reason("machines", "the limit of machines is reached")

    shopping = buy(groups, offers, kinds, verdicts, allowed)
    assert {p.offer.key: p.count for p in shopping.purchases} == {k: n for k, n in granted.items() if n}
    for key in shopping.left:
        fits = any(verdicts[key, offer.kind].copies for offer in offers)
        assert [r.code for r in shopping.unmet[key]] == (["machines"] if fits else ["no-offer"])


def test_the_tail_gets_a_smaller_machine() -> None:
    small, big = machine("small", 1, 2000), machine("big", 8, 16000)
    group = job_group("g", Resources(1, 1000, 10))
    kinds = {kind.key: kind for kind in (small, big)}
    verdicts = {("g", kind.key): verdict_of(group, kind) for kind in kinds.values()}
    shopping = buy([(group, 17)], [offer_of(small, 0.2), offer_of(big, 0.9)], kinds, verdicts, everything)
    assert {p.offer.flavor: p.count for p in shopping.purchases} == {"big": 2, "small": 1}


def test_holes_of_big_machines_take_small_jobs() -> None:
    kind = machine("k", 8, 64000)
    big, small = (
        job_group("big", Resources(5, 40000, 10)),
        job_group("small", Resources(1, 1000, 10), "other"),
    )
    verdicts = {(g.key, "k"): verdict_of(g, kind) for g in (big, small)}
    shopping = buy([(small, 30), (big, 10)], [offer_of(kind, 1.0)], {"k": kind}, verdicts, everything)
    assert sum(p.count for p in shopping.purchases) == 10


@pytest.mark.slow
def test_a_load_that_was_moved_is_not_bought_twice() -> None:
    # The tails of many groups land on each other's machines, some of them after having taken in another's.
    kinds = {
        kind.key: kind for kind in (machine("a", 6, 9000), machine("b", 4, 30000), machine("c", 9, 12000))
    }
    offers = [offer_of(kind, price) for kind, price in zip(kinds.values(), (0.5, 0.45, 0.8), strict=True)]
    for size in range(1, 60):
        groups = [
            (
                job_group(f"g{n}", Resources(1 + (n * size) % 4, 300 * (1 + n * size % 7), 10)),
                1 + n * size % 5,
            )
            for n in range(7)
        ]
        verdicts = {(g.key, k.key): verdict_of(g, k) for g, _ in groups for k in kinds.values()}
        shopping = buy(groups, offers, kinds, verdicts, everything)
        for group, count in groups:
            assert sum(p.holds.get(group.key, 0) for p in shopping.purchases) == count


def test_scarce_machines_are_left_to_those_who_need_them() -> None:
    plain, gpu = machine("plain", 4, 8000), machine("a-gpu", 4, 8000, gpus=1)
    cpu_job, gpu_job = job_group("cpu", Resources(1, 1000, 10)), job_group("gpu", Resources(1, 1000, 10, 1))
    kinds = {kind.key: kind for kind in (plain, gpu)}
    verdicts = {(g.key, k.key): verdict_of(g, k) for g in (cpu_job, gpu_job) for k in kinds.values()}
    bins = [Bin("x", "a-gpu", gpu.resources), Bin("y", "plain", plain.resources)]
    filling = fill([(cpu_job, 4), (gpu_job, 1)], bins, verdicts, kinds)
    assert filling.placed == {"cpu": {"y": 4}, "gpu": {"x": 1}}


def test_an_unknown_price_is_last_and_never_zero() -> None:
    one, two = machine("one", 1, 2000), machine("two", 1, 2000)
    group = job_group("g", Resources(1, 1000, 10))
    kinds = {kind.key: kind for kind in (one, two)}
    verdicts = {("g", kind.key): verdict_of(group, kind) for kind in kinds.values()}
    shopping = buy(
        [(group, 3)], [offer_of(one, None), offer_of(two, 99.0, left=2)], kinds, verdicts, everything
    )
    assert {p.offer.flavor: p.count for p in shopping.purchases} == {"two": 2, "one": 1}


def test_owners_get_their_turns_when_a_limit_binds() -> None:
    kind = machine("k", 4, 8000)
    greedy, modest = (
        job_group("g", Resources(4, 1000, 10), "greedy"),
        job_group("m", Resources(4, 10, 10), "modest"),
    )
    verdicts = {(g.key, "k"): verdict_of(g, kind) for g in (greedy, modest)}
    budget = [20]

    def allowed(offer: Offer, count: int) -> tuple[int, Reason | None]:
        got = min(count, budget[0])
        budget[0] -= got
        return got, None if got == count else Reason("cores", "no more cores")

    shopping = buy([(greedy, 5000), (modest, 15)], [offer_of(kind, 1.0)], {"k": kind}, verdicts, allowed)
    (purchase,) = shopping.purchases
    assert purchase.count == 20
    assert purchase.holds["m"] >= 8
    assert shopping.unmet["g"] == (Reason("cores", "no more cores"),)


def test_turns_rotate_owners_and_respect_priority_and_age() -> None:
    request = Resources(1, 1, 1)
    groups = [
        job_group("a1", request, "a", 0, 1.0),
        job_group("a2", request, "a", 5, 9.0),
        job_group("b1", request, "b", 0, 3.0),
        job_group("b2", request, "b", 0, 2.0),
    ]
    assert [group.key for group in turns(groups)] == ["a2", "b2", "a1", "b1"]


def test_a_requirement_beyond_the_request_is_kept_on_partly_used_slots() -> None:
    kind = machine("k", 8, 8000)
    group = job_group("g", Resources(1, 128, 10))
    verdicts = {("g", "k"): verdict_of(group, kind, copies=2)}  # starts with 7872 MiB left, not with 7744
    half = Resources(4, 4000, 10**6)
    assert fill([(group, 5)], [Bin("b", "k", half)], verdicts, {"k": kind}).left == {"g": 5}
    assert fill([(group, 5)], [Bin("b", "k", kind.resources)], verdicts, {"k": kind}).left == {"g": 3}
