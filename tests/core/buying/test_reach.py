"""What a few machines may be for, and what buying makes of it when the jobs want thousands."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.core.buying.test_packing import everything, job_group, machine, offer_of, verdict_of
from updraft.core.buying.reach import within_reach
from updraft.core.buying.shopping import buy
from updraft.core.model import JobGroup, Kind, Offer, Reason, Resources, Verdict

JOBS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 8), st.sampled_from("abc")), min_size=1)


def fewest_first(name: str, spent: Mapping[str, int]) -> tuple[int, float]:
    return 0, float(spent.get(name, 0))


def queues_of(jobs: list[tuple[int, int, str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, (_, _, owner) in enumerate(jobs):
        found.setdefault(owner, []).append(row)
    return found


@given(JOBS, st.integers(0, 5), st.integers(1, 16))
def test_no_more_than_waits_and_enough_to_choose_from(
    jobs: list[tuple[int, int, str]], most: int, largest: int
) -> None:
    left, cpus = np.array([n for n, _, _ in jobs]), np.array([c for _, c, _ in jobs])
    chosen = within_reach(left, cpus, queues_of(jobs), fewest_first, {}, largest, most)
    assert (chosen >= 0).all()
    assert (chosen <= left).all()
    assert (chosen * cpus).sum() >= min(4 * most * largest, (left * cpus).sum())


@given(JOBS, st.integers(0, 5))
def test_each_submitters_first_jobs_come_first(jobs: list[tuple[int, int, str]], most: int) -> None:
    left, cpus = np.array([n for n, _, _ in jobs]), np.array([c for _, c, _ in jobs])
    chosen = within_reach(left, cpus, queues_of(jobs), fewest_first, {}, 8, most)
    for rows in queues_of(jobs).values():
        some = [row for row in rows if left[row]]
        begun = [row for row in some if chosen[row]]
        assert begun == some[: len(begun)]
        assert all(chosen[row] == left[row] for row in begun[:-1])


def test_what_was_bought_before_counts_for_whose_turn_it_is() -> None:
    left, cpus = np.array([1000, 1000]), np.array([1, 1])
    chosen = within_reach(left, cpus, {"a": [0], "b": [1]}, fewest_first, {"a": 10_000}, 10, 10)
    assert chosen[0] == 0
    assert 400 <= chosen[1] < 450


# ----------------------------------------------------------------------------------- a crowd, few machines


def crowd() -> tuple[
    list[tuple[JobGroup, int]], dict[str, Kind], list[Offer], dict[tuple[str, str], Verdict]
]:
    """Twelve groups of four owners with a hundred thousand jobs, and what they may run on."""
    groups = [
        (job_group(f"g{n:02d}", Resources(1 + n % 3, 900 * (1 + n % 4), 10), "abcd"[n % 4], oldest=n), 8000)
        for n in range(12)
    ]
    kinds = {f"k{cpus}": machine(f"k{cpus}", cpus, cpus * 2000) for cpus in (4, 16, 64)}
    kinds["gpu"] = machine("gpu", 8, 100, gpus=1)
    offers = [offer_of(kind, 0.05 * kind.resources.cpus) for kind in kinds.values()]
    verdicts = {(g.key, k.key): verdict_of(g, k) for g, _ in groups for k in kinds.values()}
    return groups, kinds, offers, verdicts


def test_few_machines_for_a_crowd_are_large_full_and_shared() -> None:
    groups, kinds, offers, verdicts = crowd()
    room = [12]

    def allowed(offer: Offer, count: int) -> tuple[int, Reason | None]:
        got = min(count, room[0])
        room[0] -= got
        return got, None if got == count else Reason("limit-machines", "enough")

    shopping = buy(groups, offers, kinds, verdicts, allowed, most=12)
    assert {p.offer.flavor: p.count for p in shopping.purchases} == {"k64": 12}
    by_key = {group.key: group for group, _ in groups}
    cores: dict[str, int] = {}
    for purchase in shopping.purchases:
        for key, number in purchase.holds.items():
            owner = by_key[key].owner
            cores[owner] = cores.get(owner, 0) + number * by_key[key].request.cpus
    assert sum(cores.values()) >= 0.95 * 12 * 64
    assert min(cores[owner] for owner in "abcd") >= 0.5 * 12 * 64 / 4
    assert set(shopping.unmet) == set(by_key)
    assert {r.code for reasons in shopping.unmet.values() for r in reasons} == {"limit-machines"}


def test_where_nothing_may_be_bought_each_offer_that_would_serve_is_asked_why_once() -> None:
    groups, kinds, offers, verdicts = crowd()
    asked: list[str] = []

    def never(offer: Offer, count: int) -> tuple[int, Reason | None]:
        asked.append(offer.flavor)
        return 0, Reason("limit-machines", f"no {offer.flavor}")

    shopping = buy(groups, offers, kinds, verdicts, never, most=0)
    assert sorted(asked) == ["k16", "k4", "k64"]  # the one with a GPU holds none of these jobs
    assert not shopping.purchases
    assert {r.text for r in shopping.unmet["g00"]} == {"no k4", "no k16", "no k64"}


def test_what_is_granted_beyond_the_most_is_taken() -> None:
    groups, kinds, offers, verdicts = crowd()
    shopping = buy(groups[:2], offers, kinds, verdicts, everything, most=0)
    assert sum(purchase.count for purchase in shopping.purchases) > 0
    held = {key: sum(p.holds.get(key, 0) for p in shopping.purchases) for key in ("g00", "g01")}
    assert all(held[key] + shopping.left.get(key, 0) == 8000 for key in held)
