"""Budgets of users and accounting groups: who pays what of a machine, and whose jobs are bought none."""

from dataclasses import replace

import pytest

from tests.rigs.snapshots import (
    NOW,
    SMALL,
    group,
    instance,
    offer,
    policy,
    record,
    slot,
    snapshot,
)
from updraft.core.limits.purses import PaidCaps, burn_of_people
from updraft.core.limits.standings import spending_budgets
from updraft.core.machines.cache import MachineCache
from updraft.core.model import (
    BudgetPeriod,
    BudgetScope,
    Child,
    JobGroup,
    Known,
    Launch,
    Plan,
    Resources,
    Snapshot,
    Spent,
    SpentRow,
)
from updraft.core.plan import plan
from updraft.core.settings import DAY, Policy, SpendingLimit

TODAY = int(NOW // DAY)
ALICE = SpendingLimit(BudgetScope.USER, "alice", BudgetPeriod.DAY, 1.0)
TWO = Resources(2, 1024, 1024)


def jobs(user: str, number: int, submitter: str = "", **changes: object) -> JobGroup:
    """Jobs of a user, whatever they say of themselves."""
    name = f"{user}@site"
    told = submitter or name
    return group(f"{user}-{told}", number, user=name, submitter=told, owner=user, **changes)


def pool(*groups: JobGroup, people: tuple[SpentRow, ...] = (), **changes: object) -> Snapshot:
    spent = Known(Spent(NOW, TODAY, (), people), NOW)
    return snapshot(groups=groups, offers=[offer("small")], spent=spent, **changes)  # type: ignore[arg-type]


def bought(made: Plan) -> int:
    return sum(action.count for action in made.actions if isinstance(action, Launch))


def unmet(made: Plan, name: str) -> set[str]:
    return {why.code for one in made.groups if one.group.startswith(name) for why in one.held_back}


def test_who_has_spent_all_is_bought_nothing_and_others_are() -> None:
    seen = pool(jobs("alice", 8), jobs("bob", 8), people=(SpentRow(True, 1.0, user="alice@site"),))
    made = plan(seen, policy(spending=(ALICE,)))
    assert bought(made) == 4, "bob's 8 jobs of one core, on machines of two"
    assert unmet(made, "alice") == {"budget-spent"}
    assert unmet(made, "bob") == set()


def test_a_user_is_bought_what_is_left_for_an_hour() -> None:
    seen = pool(jobs("alice", 40), people=(SpentRow(True, 0.65, user="alice@site"),))
    made = plan(seen, policy(spending=(ALICE,)))
    assert bought(made) == 3
    assert unmet(made, "alice") == {"budget-low"}


@pytest.mark.parametrize("submitter", ["physics.alice@site", "bob@site", "else.bob@site"])
def test_no_name_that_a_job_gives_itself_lifts_the_budget(submitter: str) -> None:
    people = (SpentRow(True, 1.0, user="alice@site", group="whatever"),)
    seen = pool(jobs("alice", 8, submitter), people=people)
    for rules in (policy(spending=(ALICE,)), policy(spending=(ALICE,), groups_trusted=True)):
        assert bought(plan(seen, rules)) == 0


def test_the_own_table_comes_before_patterns() -> None:
    everybody = replace(ALICE, name="*", most=0.0)
    seen = pool(jobs("alice", 8))
    assert bought(plan(seen, policy(spending=(everybody,)))) == 0
    assert bought(plan(seen, policy(spending=(everybody, ALICE)))) == 4


def test_a_group_has_what_all_its_users_have_where_groups_are_trusted() -> None:
    physics = SpendingLimit(BudgetScope.GROUP, "physics", BudgetPeriod.MONTH, 1.0)
    people = (
        SpentRow(True, 0.25, user="alice@site", group="physics"),
        SpentRow(False, 0.5, user="bob@site", group="physics.theory"),
    )
    seen = pool(jobs("alice", 40, "physics.alice@site"), jobs("eve", 4), people=people)
    made = plan(seen, policy(spending=(physics,), groups_trusted=True))
    assert bought(made) == 4, "two for 0.25 an hour, and two of eve's, who is in no group"
    assert unmet(made, "alice") == {"budget-low"}
    assert unmet(made, "eve") == set()
    assert bought(plan(seen, policy(spending=(physics,)))) > 4, "which nobody trusts"


def running(*claims: tuple[str, int], price: float | None = 0.1) -> Snapshot:
    """A machine of two cores with these claims."""
    children = tuple(
        Child("Claimed", "Busy", Resources(cores, 1024, 1024), f"{user}@site") for user, cores in claims
    )
    return pool(
        jobs("alice", 40),
        people=(SpentRow(True, 0.6, user="alice@site"),),
        instances=[instance("m1")],
        slots=[slot("m1", free=SMALL - TWO, children=children)],
        records=[record("m1", price=price)],
    )


def burn(seen: Snapshot, rules: Policy) -> dict[str, float | None]:
    machines = MachineCache().look(seen, rules).machines
    found = spending_budgets(seen, rules, machines, ())
    assert found is not None
    burn_of_people(found, machines, ())
    return {name: cost for (scope, name), cost in found.burn.items() if scope is BudgetScope.USER}


def test_what_runs_is_paid_by_who_has_claims_there() -> None:
    rules = policy(spending=(replace(ALICE, name="*"),))
    assert burn(running(("alice", 2)), rules) == {"alice@site": pytest.approx(0.1)}
    assert burn(running(("alice", 1), ("bob", 1)), rules) == {
        "alice@site": pytest.approx(0.05), "bob@site": pytest.approx(0.05),
    }  # fmt: skip
    assert burn(running(("alice", 1)), rules) == {"alice@site": pytest.approx(0.1)}, "and the idle core"
    unpaid = replace(rules, idle_charged=False)
    assert burn(running(("alice", 1)), unpaid) == {"alice@site": pytest.approx(0.05)}
    assert burn(running(("alice", 2), price=None), rules) == {"alice@site": None}


def test_what_runs_takes_from_what_is_left() -> None:
    assert bought(plan(running(("bob", 2)), policy(spending=(ALICE,)))) == 4
    assert bought(plan(running(("alice", 2)), policy(spending=(ALICE,)))) == 3
    made = plan(running(("alice", 2), price=None), policy(spending=(ALICE,)))
    assert bought(made) == 0
    assert unmet(made, "alice") == {"price-unknown"}


def test_who_shares_a_machine_shares_its_price() -> None:
    """And pays for all of it where the other may not."""
    seen = pool(jobs("alice", 1), jobs("bob", 1))
    rules = policy(spending=(replace(ALICE, most=0.05), replace(ALICE, name="bob", most=0.05)))
    machines = MachineCache().look(seen, rules).machines
    budgets = spending_budgets(seen, rules, machines, ())
    caps = PaidCaps(rules, budgets=budgets)
    one, other = jobs("alice", 1), jobs("bob", 1)
    both = caps.fit(offer("small"), [(one, 1), (other, 1)])
    assert (dict(both.content), both.most) == ({one.key: 1, other.key: 1}, 1)
    alone = caps.fit(offer("small"), [(one, 1)])
    assert (dict(alone.content), alone.most) == ({}, 0)
    assert [why.code for why in alone.stops.values()] == ["budget-low"]
    caps.take(offer("small"), [(one, 1), (other, 1)], 1)
    assert caps.fit(offer("small"), [(one, 1), (other, 1)]).most == 0


def test_room_that_is_kept_ready_is_nobodys() -> None:
    rules = policy(spending=(replace(ALICE, name="*", most=0.0),))
    seen = pool()
    budgets = spending_budgets(seen, rules, (), ())
    ready = group("ready", 1, ready=True)
    assert PaidCaps(rules, budgets=budgets).fit(offer("small"), [(ready, 1)]).most > 1


def test_unknown_is_not_zero() -> None:
    seen = replace(pool(jobs("alice", 8), jobs("bob", 2)), spent=None)
    made = plan(seen, policy(spending=(ALICE,)))
    assert bought(made) == 1
    assert unmet(made, "alice") == {"spending-unknown"}
