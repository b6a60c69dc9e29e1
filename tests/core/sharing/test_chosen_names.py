"""What a job writes of itself makes it nobody else's: caps, priorities and shares go by who submitted it.

Covers `submitters`, and what `caps`, `shares` and `room` make of it.
"""

from dataclasses import replace
from typing import Any

import classad2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.buying.test_wanting import with_spare
from tests.core.sharing.test_caps import SMALLS, joined, new, pool, rules, why
from tests.rigs.snapshots import ASK, NOW, snapshot, worker
from updraft.condor.demand.groups import group as groups_of
from updraft.core.model import AccountingGroup, Child, JobGroup, Shares, Snapshot, variant
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Spare, UserLimits
from updraft.core.sharing.shares import standing
from updraft.core.sharing.submitters import names_of, sharing, trusted, user_of, weight

CHOSEN = ("AccountingGroup", "AcctGroup", "AcctGroupUser", "OsUser", "VMHighPriority", "NiceUser", "JobPrio")
WORDS = (
    "spare/default",
    "spare/x.alice",
    "physics.alice",
    "bob",
    "bob@pool",
    "boss",
    "default",
    "*",
    "",
    "a@b",
)
values = st.sampled_from(WORDS) | st.text("abos.@/*\0", max_size=8) | st.integers(0, 9)


def row(owner: str, idle: int, number: int = 0, **chosen: Any) -> Any:
    """A row of a schedd's answer: what it says of the user, and what the job has chosen."""
    ad = classad2.ClassAd({"Owner": owner, "User": f"{owner}@pool", "JobStatus": 1, "JobCount": idle})
    ad["JobIds"] = f"{number}.0"
    for name, value in {"RequestCpus": 1, "RequestMemory": 1024, "RequestDisk": 1024, **chosen}.items():
        ad[name] = value
    return ad


def jobs(*rows: Any) -> tuple[JobGroup, ...]:
    """The groups of these rows, all of one size as the fake catalogue has it."""
    return tuple(replace(one, request=ASK) for one in groups_of("schedd", rows))


def seen(*rows: Any, **changes: Any) -> Snapshot:
    return snapshot(groups=jobs(*rows), offers=SMALLS, **changes)


def bought(world: Snapshot, by: Policy) -> dict[str, int]:
    """New jobs by the owner of the group."""
    (source,) = world.schedds.values()
    owners = {one.key: one.owner for one in source.value.groups}  # type: ignore[union-attr]
    found: dict[str, int] = {}
    for key, number in new(plan(world, by)).items():
        found[owners[key]] = found.get(owners[key], 0) + number
    return found


# ------------------------------------------------------------------------------- one fault after another


@pytest.mark.parametrize("trust", [False, True])
def test_a_group_called_as_room_kept_ready_lifts_no_cap(trust: bool) -> None:
    mine = row("alice", 50, AccountingGroup="spare/default")
    capped = rules(limits=Limits(cores_per_user=4), groups_trusted=trust)
    assert bought(seen(mine), capped) == {"alice": 4}


@pytest.mark.parametrize("trust", [False, True])
def test_a_new_group_name_is_no_new_cap(trust: bool) -> None:
    mine = [row("alice", 50, n, AccountingGroup=f"g{n}.alice") for n in range(5)]
    capped = rules(limits=Limits(cores_per_user=4), groups_trusted=trust)
    assert bought(seen(*mine), capped) == {"alice": 4}


def test_claims_of_any_group_count_for_their_user() -> None:
    there = joined("i-1", "alice", "alice")
    (first, second) = there["slots"].children
    children = (replace(first, submitter="spare/x@pool"), replace(second, submitter="bob@pool"))
    there["slots"] = replace(there["slots"], children=children)
    world = pool(there, groups=jobs(row("alice", 9), row("bob", 9)), offers=SMALLS)
    made = plan(world, rules(limits=Limits(cores_per_user=4)))
    assert sorted(one.new for one in made.groups) == [2, 4]
    assert bought(world, rules(limits=Limits(cores_per_user=4))) == {"alice": 2, "bob": 4}


def test_a_name_with_high_priority_is_not_for_the_taking() -> None:
    for chosen in ({"AccountingGroup": "boss"}, {"AccountingGroup": "boss@pool"}, {"AcctGroupUser": "boss"}):
        liar = row("alice", 4, VMHighPriority=9, **chosen)
        by = rules(limits=Limits(cores=4), high_priority_users=("boss",))
        assert bought(seen(liar, row("bob", 4, 1, VMHighPriority=1)), by) == {"alice": 2, "bob": 2}
        both = seen(liar, row("boss", 4, 1, VMHighPriority=1))
        assert bought(both, by) == {"alice": 0, "boss": 4}


def test_nobody_else_pays_for_a_name_that_a_job_takes() -> None:
    """Neither with a cap nor with a share."""
    liar = row("alice", 50, AccountingGroup="bob")
    by = rules(limits=Limits(cores_per_user=4))
    assert bought(seen(liar, row("bob", 50, 1)), by) == {"alice": 4, "bob": 4}
    world = pool(joined("i-1", "alice", "alice"), groups=jobs(row("bob", 9, 1)), offers=SMALLS)
    view = world.collector.value  # type: ignore[union-attr]
    (shown,) = view.slots
    lies = replace(shown, children=tuple(replace(one, submitter="bob@pool") for one in shown.children))
    who = standing(replace(view, slots=(lies,)), by)
    assert (who.cores, who.users) == ({"alice": 2}, {"alice@pool": 2})
    believed = standing(replace(view, slots=(lies,)), replace(by, groups_trusted=True))
    assert (believed.cores, believed.users) == ({"bob": 2}, {"alice@pool": 2})


def test_groups_count_for_shares_only_where_they_are_trusted() -> None:
    mine, other = row("alice", 4, AccountingGroup="bio.alice"), row("bob", 4, 1)
    shares = Shares(groups={"bio": AccountingGroup("bio", 100.0)})
    for trust, got in ((False, {"alice": 2, "bob": 2}), (True, {"alice": 4, "bob": 0})):
        world = seen(mine, other)
        view = replace(world.collector.value, shares=shares)  # type: ignore[union-attr]
        world = replace(world, collector=replace(world.collector, value=view))  # type: ignore[type-var]
        assert bought(world, rules(limits=Limits(cores=4), groups_trusted=trust)) == got


def test_tables_name_groups_only_where_they_are_trusted() -> None:
    users = {"bio.*": UserLimits(cores=2), "alice": UserLimits(machines=9)}
    mine = row("alice", 50, AccountingGroup="bio.alice")
    for trust, got in ((False, 6), (True, 2)):
        by = rules(limits=Limits(cores_per_user=6), users=users, groups_trusted=trust)
        assert bought(seen(mine), by) == {"alice": got}


def test_users_of_one_name_in_two_domains_are_two() -> None:
    here, there = row("alice", 50), row("alice", 50, 1)
    there["User"] = "alice@other.example"
    first, second = jobs(here, there)
    made = plan(snapshot(groups=(first, second), offers=SMALLS), rules(limits=Limits(cores_per_user=4)))
    assert new(made) == {first.key: 4, second.key: 4}
    users = {"alice@pool": UserLimits(cores=2)}
    made = plan(snapshot(groups=(first, second), offers=SMALLS), rules(limits=Limits(cores=8), users=users))
    assert sorted(new(made).values()) == [2, 6]


def test_a_machine_of_ones_own_counts_for_whoever_has_that_name() -> None:
    """It knows the account, and no domain."""
    from tests.rigs.snapshots import instance, offer, record

    booting = {
        "instances": [instance("i-1", variant=variant("user=alice"))],
        "records": [replace(record("i-1"), variant=variant("user=alice"), requested_at=NOW - 9)],
    }
    (mine,) = jobs(row("alice", 50))
    own = (offer("small", variant=variant("user=alice")),)
    wide = replace(mine, request=replace(ASK, cpus=2))
    made = plan(
        snapshot(groups=[wide], offers=own, **booting), rules(users={"alice": UserLimits(machines=2)})
    )
    assert sum(one.new for one in made.groups) <= 2
    assert [code for code, _ in why(made, mine.key)] == ["user-limit"]


def test_room_kept_ready_is_known_by_its_mark() -> None:
    ready = rules(worker(spare=(Spare(4, ASK),)), users={"*": UserLimits(cores=0)})
    liar = row("alice", 4, AccountingGroup="spare/default", AcctGroup="default")
    made = plan(with_spare(ready, groups=jobs(liar)), ready)
    found = new(made)
    assert found.pop("spare/default/0") == 4
    assert list(found.values()) == [0]


def test_names_of_a_group() -> None:
    (mine,) = jobs(row("alice", 1, AccountingGroup="bio.alice"))
    assert (user_of(mine), mine.submitter) == ("alice@pool", "bio.alice")
    assert names_of(mine) == ("bio.alice", "alice@pool", "alice")
    assert names_of(trusted(mine, rules())) == ("alice", "alice@pool")
    assert trusted(mine, rules(groups_trusted=True)) is mine
    assert sharing("alice@pool", "bio.alice@pool", rules()) == "alice@pool"
    assert sharing("alice@pool", "bio.alice@pool", rules(groups_trusted=True)) == "bio.alice@pool"
    assert sharing("alice@pool", "", rules(groups_trusted=True)) == "alice@pool"


@given(st.dictionaries(st.sampled_from(CHOSEN), values))
def test_no_name_that_a_job_chooses_is_a_party(chosen: dict[str, Any]) -> None:
    (mine,) = jobs(row("alice", 1, **chosen))
    assert not mine.ready
    assert weight(mine.submitter) == 0
    assert user_of(mine) == "alice@pool"


# -------------------------------------------------------------------------------- whatever they choose

ONE_GROUP_LESS = {
    "chosen": [{}, {"AccountingGroup": "spare/default"}],
    "idle": 1,
    "claims": [],
    "cores": None,
    "machines": None,
    "all_cores": 10,
    "boss": False,
}
lies = st.lists(st.dictionaries(st.sampled_from(CHOSEN), values), min_size=1, max_size=4)


@given(
    lies,
    st.integers(1, 12),
    st.lists(st.sampled_from(["", "spare/x@pool", "bob@pool", "g.alice@pool"]), max_size=2),
    st.sampled_from([None, 3, 4, 8]),
    st.sampled_from([None, 2, 5]),
    st.sampled_from([None, 10]),
    st.booleans(),
)
@example(**ONE_GROUP_LESS)
def test_4_no_cap_is_passed_and_nobody_else_has_less_whatever_a_job_says(
    chosen: list[dict[str, Any]],
    idle: int,
    claims: list[str],
    cores: int | None,
    machines: int | None,
    all_cores: int | None,
    boss: bool,
) -> None:
    """Rule 4, for what jobs choose: alice's caps hold over all that she has, and bob has what he had beside
    honest jobs of hers, in as many groups. (But for a part of one machine: which group fills it up is by
    their keys, which are hashes.)"""
    by = rules(
        limits=Limits(cores=all_cores, cores_per_user=cores, machines_per_user=machines),
        high_priority_users=("boss", "bob@x", "spare/*"),
        users={"boss": UserLimits(cores=40, machines=40), "spare/*": UserLimits(cores=40, machines=40)},
    )
    others = [row("bob", 9, 90), *([row("boss", 2, 91)] if boss else [])]

    def world(rows: list[Any], names: list[str]) -> Snapshot:
        there = [joined("i-1", *("alice" for _ in names))] if names else []
        for one in there:
            children = tuple(Child("Claimed", "Busy", ASK, "alice@pool", submitter=name) for name in names)
            one["slots"] = replace(one["slots"], children=children)
        return pool(*there, groups=jobs(*rows, *others), offers=SMALLS)

    lying = [row("alice", idle, n, **says) for n, says in enumerate(chosen)]
    plain = [row("alice", idle, n, Project=n) for n, _ in enumerate(chosen)]
    told = plan(world(lying, claims), by)
    owners = {one.key: one.owner for one in jobs(*lying, *others)}
    has = len(claims) + sum(
        one.joined + one.coming + one.new for one in told.groups if owners[one.group] == "alice"
    )
    fresh = sum(one.new for one in told.groups if owners[one.group] == "alice")
    assert cores is None or not fresh or has <= cores
    assert machines is None or not fresh or -(-fresh // SMALLS[0].resources.cpus) + bool(claims) <= machines
    with_lies, honest = bought(world(lying, claims), by), bought(world(plain, [""] * len(claims)), by)
    for who in ("bob", "boss"):
        assert with_lies.get(who, 0) > honest.get(who, 0) - SMALLS[0].resources.cpus, (who, with_lies, honest)
