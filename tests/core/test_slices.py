"""Who would get the cores of machines that are bought, and which machines are due for that."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.test_packing import job_group, machine, offer_of, verdict_of
from tests.rigs.fairness import fair
from updraft.core.fitting import ENDLESS
from updraft.core.market import Sale, sale
from updraft.core.model import AccountingGroup, JobGroup, Kind, Offer, Reason, Resources, Shares
from updraft.core.packing import buy
from updraft.core.parties import high
from updraft.core.shares import Standing
from updraft.core.slices import Slices, poured

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
def crowds(draw: st.DrawFn, mixed: bool = False) -> tuple[dict[str, float], dict[str, int], dict[str, tuple]]:
    """Priorities and wants of some users, and the classes that each one can use."""
    names = USERS[: draw(st.integers(2, 20))]
    classes = "abcd"[: draw(st.integers(2, 4))]
    one = st.sampled_from(classes).map(lambda name: (name,))
    some = st.lists(st.sampled_from(classes), min_size=1, unique=True).map(tuple)
    return (
        {name: draw(st.sampled_from([100.0, 500.0, 1000.0, 1500.0, 1e5])) for name in names},
        {name: draw(st.integers(1, 60)) for name in names},
        {name: draw(some if mixed else one) for name in names},
    )


def above(factors: Mapping[str, float], wants: Mapping[str, int], may: Mapping[str, tuple], cap: int) -> dict:
    """Cores in use of each class that was bought, above the fair shares of those who can use it."""
    queue = [(job_group(name, ONE, name, oldest=at % 3), wants[name]) for at, name in enumerate(wants)]
    got = bought(queue, may, cap, Standing(Shares(priorities=factors)))
    could = {which: [name for name in wants if which in may[name]] for which in got}
    # Of the last machine of a class a part is idle where nobody wants it.
    used = {which: min(got[which], sum(wants[name] for name in could[which])) for which in got}
    share = fair(sum(used.values()), wants, factors)
    return {which: cores - sum(share[name] for name in could[which]) for which, cores in used.items()}


@settings(deadline=None)
@given(crowds(), st.integers(1, 12))
def test_of_no_class_a_machine_more_is_bought_than_the_fair_shares_of_its_users(
    crowd: tuple[dict[str, float], dict[str, int], dict[str, tuple]], machines: int
) -> None:
    """So of two classes each is within a machine; of more, one may lack what all others have too much."""
    found = above(*crowd, machines * MACHINE)
    assert all(more < MACHINE for more in found.values()), found


@settings(deadline=None)
@given(crowds(mixed=True), st.integers(1, 12))
def test_nor_where_some_can_use_several_classes(
    crowd: tuple[dict[str, float], dict[str, int], dict[str, tuple]], machines: int
) -> None:
    found = above(*crowd, machines * MACHINE)
    assert all(more < MACHINE for more in found.values()), found
