"""How budgets of a day or a month stand: by the records, by what runs since, and by what is bought."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.rigs.snapshots import DOWN, NOW, group, instance, offer, policy, record, slot, snapshot, worker
from updraft.core.limits.standings import SpendingBudgets, spending_budgets, spending_warnings, within
from updraft.core.machines.cache import MachineCache
from updraft.core.model import (
    Annex,
    BudgetPeriod,
    BudgetScope,
    CollectorView,
    Drain,
    DrainMode,
    DrainRecord,
    JobGroup,
    Known,
    Launch,
    LedgerView,
    Snapshot,
    Spent,
    SpentRow,
    Undrain,
    Unknown,
)
from updraft.core.plan import plan
from updraft.core.settings import DAY, Policy, SpendingLimit

TODAY = int(NOW // DAY)
DAILY, MONTHLY = BudgetPeriod.DAY, BudgetPeriod.MONTH
POOL = SpendingLimit(BudgetScope.POOL, "", DAILY, 10.0)


def spent(
    *rows: SpentRow, people: tuple[SpentRow, ...] = (), at: float = NOW, day: int = TODAY
) -> Known[Spent]:
    return Known(Spent(at, day, rows, people), at)


def there(*names: str, busy: bool = False, **changes: object) -> Snapshot:
    """These machines, joined, and whatever else."""
    return snapshot(
        instances=[instance(name) for name in names],
        slots=[slot(name, busy) for name in names],
        records=[record(name) for name in names],
        **changes,  # type: ignore[arg-type]
    )


def waiting(number: int) -> list[JobGroup]:
    return [group(idle=number)]


def stands(seen: Snapshot, *limits: SpendingLimit, rules: Policy | None = None) -> SpendingBudgets:
    by = replace(rules or policy(), spending=limits)
    made = spending_budgets(seen, by, MachineCache().look(seen, by).machines, ())
    assert made is not None
    return made


def launched(seen: Snapshot, *limits: SpendingLimit, **rules: object) -> int:
    made = plan(seen, replace(policy(), spending=limits, **rules))  # type: ignore[arg-type]
    return sum(action.count for action in made.actions if isinstance(action, Launch))


def test_the_day_is_today_and_the_month_all_of_it() -> None:
    seen = snapshot(spent=spent(SpentRow(True, 1.0), SpentRow(False, 5.0)))
    found = stands(seen, POOL, replace(POOL, period=MONTHLY))
    assert [found.standing(one).spent for one in found.policy.spending] == [1.0, 6.0]


def test_records_of_yesterday_are_nothing_of_today() -> None:
    midnight = (TODAY + 1) * DAY
    seen = snapshot(now=midnight + 10, spent=spent(SpentRow(True, 1.0), at=midnight - 5))
    assert stands(seen, POOL).standing(POOL).spent == 0.0
    month = replace(POOL, period=MONTHLY)
    assert stands(seen, month).standing(month).spent == 1.0


def test_a_new_month_begins_with_nothing() -> None:
    first = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    seen = snapshot(now=first + 10, spent=spent(SpentRow(True, 1.0), at=first - 5, day=int(first // DAY) - 1))
    month = replace(POOL, period=MONTHLY)
    assert stands(seen, month).standing(month).spent == 0.0


def test_what_runs_since_the_records_is_reckoned() -> None:
    seen = there("m1", "m2", spent=spent(SpentRow(True, 1.0), at=NOW - 60))
    found = stands(seen, POOL).standing(POOL)
    assert found.burn == pytest.approx(0.2)
    assert found.spent == pytest.approx(1.0 + 0.2 / 60)


def test_each_scope_counts_its_own() -> None:
    rows = (
        SpentRow(True, 1.0, cloud="c1", worker_class="default"),
        SpentRow(True, 2.0, cloud="c2", worker_class="default"),
        SpentRow(True, 4.0, cloud="c2", worker_class="gpu", owner="alice"),
    )
    people = (
        SpentRow(True, 1.0, user="alice@site", group="physics.theory", idle_cost=0.5),
        SpentRow(True, 2.0, user="alice@site"),
        SpentRow(True, 4.0, user="bob@site", group="physics"),
        SpentRow(True, 8.0, user="eve@site", group="physicsx"),
    )
    seen = snapshot(spent=spent(*rows, people=people))
    limits = [
        SpendingLimit(scope, name, DAILY, 100.0)
        for scope, name in (
            (BudgetScope.POOL, ""), (BudgetScope.CLOUD, "c2"), (BudgetScope.CLASS, "default"),
            (BudgetScope.GROUP, "physics"),
        )
    ]  # fmt: skip
    found = stands(seen, *limits, rules=policy(groups_trusted=True))
    assert [found.standing(one).spent for one in limits] == [7.0, 6.0, 3.0, 5.5]
    user = SpendingLimit(BudgetScope.USER, "*", DAILY, 100.0)
    assert stands(seen, user).standing(user, "alice@site").spent == 3.5
    unpaid = policy(idle_charged=False)
    assert stands(seen, user, rules=unpaid).standing(user, "alice@site").spent == 3.0
    annexes = SpendingLimit(BudgetScope.ANNEXES, "*", DAILY, 100.0)
    assert stands(seen, annexes).standing(annexes, "alice").spent == 4.0


def test_a_price_that_was_not_known_is_that_of_today() -> None:
    hour = SpentRow(True, 1.0, 3600.0, "c1", "default", "small", "on-demand")
    sold = [offer("small"), replace(offer("small"), zone="z2", price=0.3)]
    seen = snapshot(offers=sold, spent=spent(hour))
    assert stands(seen, POOL).standing(POOL).spent == pytest.approx(1.3), "the dearest zone"
    unsold = snapshot(offers=[offer("large")], spent=spent(hour))
    assert stands(unsold, POOL).standing(POOL).spent is None
    assert launched(replace(unsold, schedds=snapshot(groups=waiting(1)).schedds), POOL) == 0


@pytest.mark.parametrize(
    "source", [None, Unknown(DOWN, NOW), spent(at=NOW - 400)], ids=["not asked", "unread", "long ago"]
)
def test_unknown_is_not_zero(source: Known[Spent] | Unknown[Spent] | None) -> None:
    seen = snapshot(groups=waiting(4), spent=source)
    assert launched(seen) > 0
    made = plan(seen, policy(spending=(POOL,)))
    assert not [action for action in made.actions if isinstance(action, Launch)]
    assert {why.code for one in made.groups for why in one.held_back} == {"spending-unknown"}
    assert "spending-unknown" in {warning.code for warning in made.warnings}
    assert made.spending[0].spent is None


def test_nothing_is_bought_when_it_is_spent_and_what_runs_stays() -> None:
    seen = there("m1", groups=waiting(40), spent=spent(SpentRow(True, 10.0)))
    made = plan(seen, policy(spending=(POOL,)))
    assert made.actions == ()
    [reason] = made.groups[0].held_back
    assert reason.code == "budget-spent"
    assert reason.text.endswith("nothing is bought until 1970-01-13 00:00 UTC")


def test_a_minimum_is_not_bought_either() -> None:
    rules = {"classes": {"default": worker(min_machines=2)}}
    seen = snapshot(spent=spent(SpentRow(True, 10.0)))
    assert launched(snapshot(spent=spent()), POOL, **rules) == 2
    assert launched(seen, POOL, **rules) == 0


def test_what_is_bought_pays_for_an_hour_of_itself_and_what_runs() -> None:
    seen = there("m1", groups=waiting(40), offers=[offer("small")], spent=spent(SpentRow(True, 9.5)))
    assert launched(seen, POOL) == 4, "0.5 are left, of which the one that runs takes 0.1"
    cloud = SpendingLimit(BudgetScope.CLOUD, "c1", DAILY, 9.7)
    rows = spent(SpentRow(True, 9.5, cloud="c1"))
    assert launched(replace(seen, spent=rows), POOL, cloud) == 1
    other = replace(cloud, name="c2")
    assert launched(replace(seen, spent=rows), POOL, other) == 4


def test_drained_where_the_site_says_so_and_taken_back_when_it_may_work_on() -> None:
    over = there("m1", busy=True, spent=spent(SpentRow(True, 10.0)))
    assert plan(over, policy(spending=(POOL,))).actions == ()
    [drain] = plan(over, policy(spending=(POOL,), drain_when_spent=True)).actions
    assert isinstance(drain, Drain)
    assert (drain.machine, drain.mode, drain.reason.code) == ("m1", DrainMode.BUSY, "budget-spent")
    assert drain.deadline is None, "its jobs finish"
    begun = DrainRecord(DrainMode.BUSY, NOW - 60, drain.reason, accepted_at=NOW - 50)
    closed = there("m1", busy=True, spent=spent())
    closed = replace(
        closed,
        ledger=LedgerView(machines=(record("m1", drain=begun),)),
        collector=Known(CollectorView((slot("m1", True, draining=True),), NOW - 100_000, NOW - 5), NOW),
    )
    [back] = plan(closed, policy(spending=(POOL,), drain_when_spent=True)).actions
    assert isinstance(back, Undrain)
    still = replace(closed, spent=over.spent)
    assert plan(still, policy(spending=(POOL,), drain_when_spent=True)).actions == ()


def test_only_machines_of_what_is_spent_are_drained() -> None:
    rows = spent(SpentRow(True, 10.0, cloud="c1", worker_class="default"))
    seen = there("m1", spent=rows)
    other = SpendingLimit(BudgetScope.CLASS, "gpu", DAILY, 0.0)
    drained = policy(spending=(other,), drain_when_spent=True)
    found = stands(seen, other, rules=drained)
    machines = MachineCache().look(seen, drained).machines
    assert found.overspent(machines) == {}
    mine = SpendingLimit(BudgetScope.CLOUD, "c1", DAILY, 10.0)
    assert set(stands(seen, mine).overspent(machines)) == {("c1", "m1")}


def test_a_machine_of_an_annex_stays_until_its_lease_ends() -> None:
    annex = Annex("mine", "alice", "default", 1, 0, NOW + 9999, 600.0)
    machine = record("m1", variant=annex.variant)
    seen = snapshot(
        instances=[instance("m1")], slots=[slot("m1")], records=[machine], annexes=(annex,),
        spent=spent(SpentRow(True, 10.0)),
    )  # fmt: skip
    made = plan(seen, policy(spending=(POOL,), drain_when_spent=True))
    assert not [action for action in made.actions if isinstance(action, Drain)]


def test_annexes_are_bought_within_their_owners_budget() -> None:
    annex = Annex("mine", "alice", "default", 4, 0, NOW + 9999, 600.0)
    sold = [replace(offer("small"), variant=annex.variant)]
    seen = snapshot(annexes=(annex,), offers=sold, spent=spent(SpentRow(True, 1.0, owner="alice")))
    assert launched(seen) == 4
    mine = SpendingLimit(BudgetScope.ANNEXES, "ali*", DAILY, 1.25)
    assert launched(seen, mine) == 2
    assert launched(seen, replace(mine, name="bob")) == 4
    made = plan(seen, policy(spending=(replace(mine, most=1.0),)))
    assert [one.reason.code for one in made.annexes] == ["budget-spent"]
    assert made.spending[0].whose == "all annexes of alice together"


def test_budgets_of_groups_that_nobody_trusts_are_said_to_hold_nothing() -> None:
    seen = snapshot(
        groups=waiting(4), spent=spent(people=(SpentRow(True, 9.0, user="alice", group="physics"),))
    )
    limit = SpendingLimit(BudgetScope.GROUP, "physics", DAILY, 1.0)
    made = plan(seen, policy(spending=(limit,)))
    assert launched(seen, limit) > 0
    assert [warning.code for warning in made.warnings] == ["groups-not-trusted"]
    assert made.spending == ()
    found = stands(seen, limit, rules=policy(groups_trusted=True))
    assert [why.code for why in spending_warnings(found, found.told())] == ["budget-spent"]


def test_groups_below_a_group_are_within_it() -> None:
    assert within("physics", "physics")
    assert within("physics.theory", "physics")
    assert not within("physicsx", "physics")
    assert not within("", "physics")
