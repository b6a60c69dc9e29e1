"""What annexes of one user may come to: held to the worst that could be bought; nothing unknown is free."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import LARGE, NOW, SMALL, offer, policy, snapshot
from updraft.core.annexes.allowance import (
    BEYOND,
    MOST_EACH,
    NOT_ALLOWED,
    AnnexUse,
    allowance_of,
    at_most,
    refusal,
    used,
)
from updraft.core.model import (
    Annex,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineRecord,
    Offer,
    Reason,
    Snapshot,
)
from updraft.core.settings import AnnexAllowance

ANNEX = Annex("burst", "ann", "default", 2, 0, until=NOW + 3600, idle=900.0, since=NOW)
BOTH = (offer("small"), offer("large"))  # of 2 cores for 0.1, and of 8 cores for 0.36
EMPTY = LedgerView()


def seen(ledger: LedgerView = EMPTY, *annexes: Annex, offers: tuple[Offer, ...] = BOTH) -> Snapshot:
    """The last look: at these annexes, and at what is there of them."""
    return snapshot(ledger=ledger, offers=offers, annexes=annexes)


LIVE = MachineRecord(
    "i-1", "c1", "k", "default", "large", "g1", NOW, resources=LARGE, price=0.36, variant=ANNEX.variant
)


def no(
    annex: Annex, allowance: AnnexAllowance, mine: tuple[Annex, ...] = (), ledger: LedgerView = EMPTY
) -> str:
    """The code and text of the refusal; empty where it is within the allowance."""
    found = refusal(annex, allowance, mine, seen(ledger, *mine), NOW)
    return "" if found is None else f"{found.code}: {found.text}"


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, AnnexUse(2, 16, 0.72)),
        ({"max_price": 0.2}, AnnexUse(2, 4, 0.4)),
        ({"machines": 0, "cores": 9}, AnnexUse(5, 16, 1.8)),
        ({"flavors": ("s*",)}, AnnexUse(2, 4, 0.2)),
        ({"flavors": ("!large",), "clouds": ("c1", "c2")}, AnnexUse(2, 4, 0.2)),
        ({"left": 1}, AnnexUse(1, 8, 0.36)),
        ({"left": 5}, AnnexUse(0, 0, 0.0)),
    ],
)
def test_an_annex_counts_for_the_largest_and_dearest_that_it_may_have(
    changes: dict[str, object], most: AnnexUse
) -> None:
    found = at_most(replace(ANNEX, **changes), BOTH)  # type: ignore[arg-type]
    assert found is not None
    assert (found.machines, found.cores) == (most.machines, most.cores)
    assert found.cost == pytest.approx(most.cost)


def test_what_has_no_price_is_within_no_allowance_of_money() -> None:
    unpriced = (*BOTH, offer("large", price=None))
    look = seen(offers=unpriced)
    money = refusal(ANNEX, AnnexAllowance(cost_per_hour=99.0), (), look, NOW)
    assert money is not None
    assert "the price of a machine isn't known" in money.text
    assert refusal(ANNEX, AnnexAllowance(machines=2), (), look, NOW) is None
    capped = replace(ANNEX, max_price=0.36)
    assert refusal(capped, AnnexAllowance(cost_per_hour=0.72), (), look, NOW) is None


@pytest.mark.parametrize(
    ("allowance", "refused"),
    [
        (AnnexAllowance(machines=2), ""),
        (
            AnnexAllowance(machines=1),
            "could come to 2 machines, your annexes together to 2, and you may have 1",
        ),
        (AnnexAllowance(cores=16), ""),
        (AnnexAllowance(cores=15), "16 cores"),
        (AnnexAllowance(cost_per_hour=0.72), ""),
        (AnnexAllowance(cost_per_hour=0.71), "0.72 cost per hour"),
        (AnnexAllowance(longest=3599), "may last 59m59s"),
        (AnnexAllowance(classes=("gpu*",)), "may not be of class default"),
        (AnnexAllowance(machines=0), "may have 0"),
    ],
)
def test_each_ceiling_holds(allowance: AnnexAllowance, refused: str) -> None:
    said = no(ANNEX, allowance)
    assert refused in said
    assert bool(said) is bool(refused)
    if said:
        assert said.startswith(NOT_ALLOWED if allowance.classes != ("*",) else BEYOND)


def test_what_is_there_of_an_annex_that_is_over_counts_until_it_is_gone() -> None:
    over, allowance = replace(ANNEX, until=NOW), AnnexAllowance(machines=3)
    asked = replace(ANNEX, name="more", machines=2)
    coming = LaunchRecord(
        "k2", "c1", "z", "small", "on-demand", "default", "img", "g1", 1, SMALL, 0.1, NOW,
        LaunchState.UNKNOWN, variant=ANNEX.variant,
    )  # fmt: skip
    assert no(asked, allowance, (over,)) == ""
    assert no(asked, allowance, (over,), LedgerView(machines=(LIVE,))) == ""
    assert "4 machines" not in no(asked, allowance, (over,), LedgerView(machines=(LIVE,)))
    assert "together to 4" in no(asked, allowance, (over,), LedgerView(machines=(LIVE,), launches=(coming,)))
    gone = replace(LIVE, ended_at=NOW)
    assert no(asked, allowance, (over,), LedgerView(machines=(gone,), launches=(coming,))) == ""


def test_one_that_is_over_counts_in_full_until_a_look_has_shown_it_over() -> None:
    over, allowance = replace(ANNEX, stopped=Reason("annex-stopped", "by ann")), AnnexAllowance(machines=3)
    asked = replace(ANNEX, name="more", machines=2)
    for look in (seen(), seen(EMPTY, ANNEX), seen(EMPTY, replace(over, since=NOW - 9))):
        refused = refusal(asked, allowance, (over,), look, NOW)
        assert refused is not None
        assert "together to 4" in refused.text
    assert refusal(asked, allowance, (over,), seen(EMPTY, over), NOW) is None


def test_an_annex_for_which_nothing_is_on_sale_any_more_counts_all_the_same() -> None:
    held, wide = replace(ANNEX, worker_class="gpu"), replace(ANNEX, name="more", machines=1)
    look = seen(EMPTY, held)
    assert used((held,), look) == AnnexUse(2, None, None)
    assert used((replace(held, machines=0, cores=5),), look) == AnnexUse(5, None, None)
    assert used((replace(held, left=2),), look) == AnnexUse()
    for allowance in (
        AnnexAllowance(machines=2),
        AnnexAllowance(cores=99),
        AnnexAllowance(cost_per_hour=99.0),
    ):
        assert refusal(wide, allowance, (held,), look, NOW) is not None
    assert refusal(wide, AnnexAllowance(machines=3), (held,), look, NOW) is None


def test_nobody_has_any_number_of_them() -> None:
    mine = tuple(replace(ANNEX, name=f"a{number}", machines=0, cores=0) for number in range(MOST_EACH))
    assert "delete one" in no(ANNEX, AnnexAllowance(), mine)


def test_the_first_name_that_fits_counts_and_nobody_else_may() -> None:
    rules = policy(annex_allowances={"ann": AnnexAllowance(machines=9), "a*": AnnexAllowance(machines=1)})
    assert [allowance_of(user, rules) for user in ("ann", "abe", "ben", "ANN")] == [
        AnnexAllowance(machines=9),
        AnnexAllowance(machines=1),
        None,
        None,
    ]


sizes = st.builds(
    lambda machines, cores, name: replace(
        ANNEX, name=name, machines=machines, cores=0 if machines else cores
    ),
    st.integers(0, 5),
    st.integers(1, 40),
    st.sampled_from(("a", "b", "c")),
)


@given(st.lists(sizes, max_size=6), st.integers(0, 12), st.integers(0, 60), st.floats(0, 3))
def test_whatever_is_asked_for_in_whatever_order_stays_within_the_allowance(
    asked: list[Annex], machines: int, cores: int, cost: float
) -> None:
    allowance = AnnexAllowance(machines, cores, cost)
    granted: list[Annex] = []
    for one in asked:
        if refusal(one, allowance, granted, seen(), NOW) is None:
            granted.append(one)
    total = used(granted, seen())
    assert total.machines <= machines
    assert total.cores is not None
    assert total.cores <= cores
    assert total.cost is not None
    assert total.cost <= cost + 1e-6
