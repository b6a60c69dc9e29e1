"""Whose turn it is, as the negotiator would have it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, group, policy, slot
from updraft.core.model import AccountingGroup, Child, CollectorView, Resources, Shares
from updraft.core.sharing.shares import Standing, standing


def dealt(who: Standing, submitters: list[str], cores: int) -> dict[str, int]:
    """One core at a time to whoever's turn it is."""
    bought: dict[str, int] = {}
    for _ in range(cores):
        first = min(submitters, key=lambda name: who.rank(name, bought))
        bought[first] = bought.get(first, 0) + 1
    return bought


def test_equals_get_equal_parts() -> None:
    assert dealt(Standing(), ["ada@x", "eve@x"], 10) == {"ada@x": 5, "eve@x": 5}


def test_a_better_priority_is_a_larger_share() -> None:
    shares = Shares(priorities={"ada": 500.0, "eve": 1500.0})
    assert dealt(Standing(shares), ["ada@x", "eve@x"], 40) == {"ada@x": 30, "eve@x": 10}


def test_who_has_much_already_waits() -> None:
    assert dealt(Standing(cores={"ada": 8}), ["ada@x", "eve@x"], 10) == {"ada@x": 1, "eve@x": 9}


def test_a_group_with_a_quota_is_served_up_to_it_first() -> None:
    shares = Shares(groups={"bio": AccountingGroup("bio", 4.0)})
    assert dealt(Standing(shares), ["bio.ada@x", "eve@x"], 6)["bio.ada@x"] >= 4
    assert dealt(Standing(shares, {"bio.zoe": 4}), ["bio.ada@x", "eve@x"], 6) == {"bio.ada@x": 3, "eve@x": 3}


def test_a_share_of_the_pool_grows_with_it() -> None:
    shares = Shares(groups={"bio": AccountingGroup("bio", 0.5)})
    who = Standing(shares, total=100)
    assert who.quota(shares.groups["bio"], 20) == 60.0


def test_a_quota_without_surplus_is_a_ceiling() -> None:
    shares = Shares(groups={"bio": AccountingGroup("bio", 4.0, surplus=False)})
    found = Standing(shares, {"bio.zoe": 3}).ceiling(replace(group("g", 1), submitter="bio.ada@x"))
    assert found is not None
    assert found[0] == 1
    assert found[1].code == "group-quota"
    assert Standing(shares).ceiling(replace(group("g", 1), submitter="eve@x")) is None
    free = Shares(groups={"bio": AccountingGroup("bio", 4.0)})
    assert Standing(free).ceiling(replace(group("g", 1), submitter="bio.ada@x")) is None


def test_the_innermost_group_counts() -> None:
    shares = Shares(groups={"bio": AccountingGroup("bio", 9.0), "bio.lab": AccountingGroup("bio.lab", 2.0)})
    found = Standing(shares).group_of("bio.lab.ada")
    assert found is not None
    assert found.name == "bio.lab"


def test_who_has_what_is_told_by_the_slots() -> None:
    claimed = tuple(
        Child("Claimed", "Busy", Resources(n, 1, 1), user) for n, user in ((2, "a@x"), (3, "b@y"))
    )
    seen = replace(slot("i-1", busy=False), children=claimed)
    found = standing(CollectorView((seen, seen), NOW), policy())
    assert found.cores == {"a": 4, "b": 6}
    assert found.total == 2 * seen.total.cpus
    assert standing(None, policy()) == Standing()


def test_who_has_a_static_slot_has_its_cores() -> None:
    static = replace(slot("i-1"), partitionable=False, state="Claimed", user="a@x")
    assert standing(CollectorView((static, slot("i-2")), NOW), policy()).cores == {"a": static.total.cpus}


@given(
    priorities=st.lists(st.floats(1.0, 1e6), min_size=1, max_size=8),
    has=st.lists(st.integers(0, 50), min_size=8, max_size=8),
    cores=st.integers(0, 200),
)
def test_nobody_gets_more_than_a_core_above_the_share(
    priorities: list[float], has: list[int], cores: int
) -> None:
    """After dealing, no other's turn would have come before the last core of anybody's."""
    names = [f"u{n}" for n in range(len(priorities))]
    rates = dict(zip(names, priorities, strict=True))
    who = Standing(Shares(priorities=rates), dict(zip(names, has, strict=False)))
    bought = dealt(who, names, cores)
    assert sum(bought.values()) == cores
    for one, number in bought.items():
        before = (who.cores.get(one, 0) + number - 1) * rates[one]
        for other in names:
            assert before <= (who.cores.get(other, 0) + bought.get(other, 0)) * rates[other] + 1e-6
