"""A whole controller keeps within budgets of money: over restarts, a lost ledger, and records that fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.rig import Rig, policy
from updraft.core.model import BudgetPeriod, BudgetScope, Plan
from updraft.core.settings import DAY, Policy, SpendingLimit
from updraft.daemon import Daemon
from updraft.daemon.usage import UsageKeeper

SMALL, MEDIUM = 0.05, 0.1


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def within(most: float, period: BudgetPeriod = BudgetPeriod.DAY, **changes: object) -> Policy:
    return policy(spending=(SpendingLimit(BudgetScope.POOL, "", period, most),), **changes)


def paid(rig: Rig) -> float:
    """What all machines have really cost by now."""
    price = {"small": SMALL, "medium": MEDIUM}
    return sum(
        price[one.flavor] * (min(rig.clock(), one.end()) - one.launched_at) / 3600
        for one in rig.site.instances.values()
    )


def look(daemon: Daemon) -> Plan:
    return daemon.cycle().plan


def codes(plan: Plan) -> set[str]:
    return {why.code for group in plan.groups for why in group.held_back}


def test_nothing_is_bought_before_the_first_look_is_recorded(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 4
    daemon = rig.start(using=within(10.0))
    assert codes(look(daemon)) == {"spending-unknown"}
    assert rig.alive() == []
    rig.turn(daemon, 4)
    assert len(rig.alive()) > 0


def test_what_runs_goes_on_and_nothing_new_is_bought(rig: Rig) -> None:
    """An hour of what runs is within the budget, so that it is spent after an hour at the earliest."""
    rig.pool.queues["schedd"].idle = 40
    daemon = rig.start(using=within(0.3))
    rig.turn(daemon, 60)
    there = set(rig.alive())
    assert sum(MEDIUM if rig.site.instances[one].flavor == "medium" else SMALL for one in there) < 0.3001
    rig.turn(daemon, 7200, each=120)
    over = look(daemon)
    assert set(rig.alive()) == there, "busy machines stay, though the budget is spent"
    assert over.spending[0].spent == pytest.approx(paid(rig), rel=0.01)
    assert codes(over) == {"budget-spent"}
    assert "budget-spent" in {warning.code for warning in over.warnings}
    for one in there:
        rig.site.kill(one)
    rig.turn(daemon, 120)
    assert rig.alive() == [], "and what is gone isn't replaced"
    tomorrow = (rig.clock() // DAY + 1) * DAY
    rig.clock.forward(tomorrow - 60 - rig.clock())
    rig.turn(daemon, 50)
    assert rig.alive() == []
    rig.turn(daemon, 60)
    assert len(rig.alive()) > 0


def spend(rig: Rig, using: Policy) -> float:
    """A controller buys what it may, and all of it runs for two hours; what that has cost."""
    rig.pool.queues["schedd"].idle = 40
    rig.turn(rig.start(using=using), 7200, each=120)
    assert len(rig.alive()) > 0
    return paid(rig)


def test_a_restart_knows_what_was_spent(rig: Rig) -> None:
    cost = spend(rig, within(0.3))
    daemon = rig.start(using=within(0.3))
    plan = look(daemon)
    assert codes(plan) == {"budget-spent"}
    assert plan.spending[0].spent == pytest.approx(cost, rel=0.01)


def test_after_a_long_silence_nothing_is_known_until_a_look_is_recorded(rig: Rig) -> None:
    spend(rig, within(10.0))
    rig.clock.forward(3600)
    there = len(rig.alive())
    daemon = rig.start(using=within(10.0))
    first = look(daemon)
    assert first.spending[0].spent is None
    assert "spending-unknown" in {warning.code for warning in first.warnings}
    assert len(rig.alive()) == there
    assert look(daemon).spending[0].spent == pytest.approx(paid(rig), rel=0.01)


def test_a_lost_ledger_leaves_what_the_cloud_lists(rig: Rig) -> None:
    cost = spend(rig, within(0.3))
    rig.lose_ledger()
    daemon = rig.start(using=within(0.3))
    assert codes(look(daemon)) == {"spending-unknown"}
    plan = look(daemon)
    assert codes(plan) == {"budget-spent"}
    assert plan.spending[0].spent == pytest.approx(cost, rel=0.01), "by when they were launched, and prices"


def test_records_that_cannot_be_written_are_not_taken_for_nothing_spent(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start(using=within(10.0))
    rig.turn(daemon, 20)

    def fails(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(UsageKeeper, "_look", fails)
    rig.turn(daemon, 400, each=10)
    there = len(rig.alive())
    rig.pool.queues["schedd"].idle = 40
    assert codes(look(daemon)) == {"spending-unknown"}
    assert len(rig.alive()) == there
    monkeypatch.undo()
    rig.turn(daemon, 10)
    assert len(rig.alive()) > there


def test_machines_are_drained_where_the_site_says_so(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 40
    daemon = rig.start(using=within(0.3, drain_when_spent=True))
    rig.turn(daemon, 7200, each=120)
    assert rig.ledger is not None
    drains = [one.drain for one in rig.ledger.view(rig.clock()).machines if one.ended_at is None]
    assert {None if one is None else one.reason.code for one in drains} == {"budget-spent"}
    rig.pool.finish()
    rig.turn(daemon, 300, each=10)
    assert rig.alive() == []
