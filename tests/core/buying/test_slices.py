"""Who would get the cores of machines that are bought, and which machines are due for that."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.buying.test_packing import job_group, machine, offer_of, verdict_of
from tests.rigs.fairness import fair
from updraft.core.buying.market import sale
from updraft.core.buying.shopping import buy
from updraft.core.buying.slices import Slices
from updraft.core.demand.fitting import ENDLESS
from updraft.core.model import AccountingGroup, JobGroup, Offer, Reason, Resources, Shares
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import high, ready

MACHINE = 8  # cores
ONE = Resources(1, 1000, 10)
USERS = [f"u{n:02}" for n in range(20)]
FACTORS = dict(zip(USERS, [1000.0, 500.0, 1000.0, 2000.0, 1000.0] * 4, strict=True))
WANTS = {name: 2 if n % 5 == 4 else 12 for n, name in enumerate(USERS)}
CLASSES = {name: ("other",) if n % 5 < 2 else ("worker",) for n, name in enumerate(USERS)}


def bought(
    queue: Sequence[tuple[JobGroup, int]],
    may_use: Mapping[str, Sequence[str]],
    cap: int,
    who: Standing,
    most: int = ENDLESS,
) -> dict[str, int]:
    """Cores bought of each class, where its machines are those of `may_use` by owner, up to a `cap`."""
    kinds = {name: machine(name, MACHINE, 64_000) for each in may_use.values() for name in each}
    verdicts = {
        (g.key, k.key): verdict_of(g, k, 10**6 if k.key in may_use[g.owner] else 0)
        for g, _ in queue
        for k in kinds.values()
    }
    room = [cap // MACHINE]

    def allowed(offer: Offer, count: int) -> tuple[int, Reason | None]:
        got = min(count, room[0])
        room[0] -= got
        return got, None if got == count else Reason("limit-cores", "enough")

    offers = [offer_of(kind, 0.4) for kind in kinds.values()]
    shopping = buy(queue, offers, kinds, verdicts, allowed, who, most)
    return {one.offer.kind: one.count * MACHINE for one in shopping.purchases}


@given(st.permutations(USERS))
def test_a_machine_counts_for_all_who_can_use_it_whoever_is_first_in_the_queue(order: list[str]) -> None:
    """Ten of twenty users each first in line once got a machine: five and five."""
    queue = [(job_group(name, ONE, name, oldest=at), WANTS[name]) for at, name in enumerate(order)]
    got = bought(queue, CLASSES, 80, Standing(Shares(priorities=FACTORS)))
    assert got == {"other": 48, "worker": 32}


@st.composite
def crowds(draw: st.DrawFn) -> tuple[dict[str, float], dict[str, int], dict[str, tuple[str, ...]]]:
    """Priorities and wants of some users, and the classes that each one can use: one, or several."""
    names = USERS[: draw(st.integers(2, 20))]
    classes = "abcd"[: draw(st.integers(2, 4))]
    one = st.sampled_from(classes).map(lambda name: (name,))
    some = st.lists(st.sampled_from(classes), min_size=1, unique=True).map(tuple)
    return (
        {name: draw(st.sampled_from([100.0, 500.0, 1000.0, 1500.0, 1e5])) for name in names},
        {name: draw(st.integers(1, 60)) for name in names},
        {name: draw(st.one_of(one, some)) for name in names},
    )


def above(
    factors: Mapping[str, float], wants: Mapping[str, int], may: Mapping[str, tuple[str, ...]], cap: int
) -> dict[str, float]:
    """Cores in use of each class that was bought, above the fair shares of those who can use it."""
    queue = [(job_group(name, ONE, name, oldest=at % 3), wants[name]) for at, name in enumerate(wants)]
    got = bought(queue, may, cap, Standing(Shares(priorities=factors)))
    could = {which: [name for name in wants if which in may[name]] for which in got}
    # Of the last machine of a class a part is idle where nobody wants it.
    used = {which: min(got[which], sum(wants[name] for name in could[which])) for which in got}
    share = fair(sum(used.values()), wants, factors)
    return {which: cores - sum(share[name] for name in could[which]) for which, cores in used.items()}


@pytest.mark.slow
@given(crowds(), st.integers(1, 12))
def test_of_no_class_a_machine_more_is_bought_than_the_fair_shares_of_those_who_can_use_it(
    crowd: tuple[dict[str, float], dict[str, int], dict[str, tuple[str, ...]]], machines: int
) -> None:
    """So of two classes each is within a machine; of more, one may lack what all others have too much."""
    found = above(*crowd, machines * MACHINE)
    assert all(more < MACHINE for more in found.values()), found


# ------------------------------------------------------------------------------------------------- slices


def slices_of(jobs: Mapping[str, int], who: Standing, memory: int = 1000) -> Slices:
    """Of users with so many jobs of one core each, and one kind of machine with eight."""
    groups = [(job_group(name, Resources(1, memory, 10), name), number) for name, number in jobs.items()]
    kind = machine("k", MACHINE, 64_000)
    this = sale(
        groups, [offer_of(kind, 1.0)], {"k": kind}, {(g.key, "k"): verdict_of(g, kind) for g, _ in groups}
    )
    counts = np.array([jobs[group.key] for group in this.groups])
    return Slices(this, range(len(counts)), counts, who)


def given_to(slices: Slices) -> dict[str, float]:
    return {name: round(number, 6) for name, number in slices.got().items()}


@given(st.data())
def test_turns_are_those_of_standing(data: st.DataObject) -> None:
    """Users, parties of high priority, groups below and above their quota, and room kept ready."""
    names = ["ann", "bob", "bio.zoe", "bio.lab.eve", "geo.ann", ready("x")]
    parties = {"ann": (high("ann", 2),), "bio.zoe": (high("bio.zoe", 1),)}
    some = st.floats(0.5, 1e6)
    shares = Shares(
        {name: data.draw(some) for name in names[:-1]},
        {
            "bio": AccountingGroup("bio", 30.0),
            "bio.lab": AccountingGroup("bio.lab", 3.0),
            "geo": AccountingGroup("geo", 0.25),
        },
    )
    cores = {name: data.draw(st.integers(0, 9)) for name in names[:-1]}
    who = Standing(shares, cores, total=50, high=parties if data.draw(st.booleans()) else {})
    mine = [*names, *(party for each in who.high.values() for party in each)]
    slices = slices_of(dict.fromkeys(mine, 20), who)
    slices.give(0, data.draw(st.integers(0, 14)))
    bought, turns = slices.got(), slices.ranks()
    for name in mine:
        tier, level = who.rank(name, bought)
        assert turns[name][0] == tier or abs(level - 1.0) < 1e-6  # a quota used up to the last bit
        assert turns[name][0] != tier or turns[name][1] == pytest.approx(level, rel=1e-3, abs=1e-6)


def test_a_machine_is_shared_by_who_has_least() -> None:
    slices = slices_of({"ann": 9, "bob": 9, "eve": 1}, Standing(Shares({"ann": 500.0, "bob": 1500.0})))
    assert slices.turns([0]) == [(1, 0.0)]
    slices.give(0, 1)
    assert given_to(slices) == {"ann": 5.25, "bob": 1.75, "eve": 1.0}
    assert slices.turns([0]) == [(1, 2625.0)]
    slices.give(0, 9)
    assert given_to(slices) == {"ann": 9.0, "bob": 9.0, "eve": 1.0}
    assert slices.turns([0])[0][0] > 2  # nobody's


def test_who_has_something_already_waits_until_all_have_it() -> None:
    slices = slices_of({"ann": 9, "bob": 9}, Standing(cores={"ann": 6}))
    slices.give(0, 1)
    assert given_to(slices) == {"ann": 1.0, "bob": 7.0}


def test_a_group_gets_its_quota_first_and_its_users_share_that() -> None:
    shares = Shares({"bio.ann": 500.0, "bio.bob": 1500.0}, {"bio": AccountingGroup("bio", 4.0)})
    slices = slices_of({"bio.ann": 9, "bio.bob": 9, "eve": 9}, Standing(shares))
    slices.give(0, 1)
    # Of its quota 3 and 1; then eve gets 3, and what is left goes to all alike.
    assert given_to(slices) == {"bio.ann": 3.428571, "bio.bob": 1.142857, "eve": 3.428571}


def test_of_a_machine_whose_memory_is_short_fewer_cores_are_given() -> None:
    slices = slices_of({"ann": 9, "bob": 9}, Standing(), memory=32_000)
    slices.give(0, 1)
    assert given_to(slices) == {"ann": 1.0, "bob": 1.0}


def test_who_may_have_no_more_of_a_class_gets_none_of_it() -> None:
    slices = slices_of({"ann": 9, "bob": 9}, Standing())
    slices.stop(0, 0)
    slices.give(0, 1)
    assert given_to(slices) == {"ann": 0.0, "bob": 8.0}
