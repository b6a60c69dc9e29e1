"""What nothing is bought for because it is too little, or waits too short a time: in whole plans."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, group, instance, policy, record, slot, snapshot
from updraft.core.demand.headroom import spare_groups
from updraft.core.model import Known, Launch, Plan, Reason, Resources, ScheddView, Unknown
from updraft.core.plan import plan
from updraft.core.reasons import moment
from updraft.core.settings import Policy, Spare, Threshold

HUGE = Resources(64, 1024, 1024)


def ruled(jobs: int = 1, wait: float = 0.0) -> Policy:
    return policy(threshold=Threshold(jobs, wait))


def machines(made: Plan) -> int:
    return sum(action.count for action in made.actions if isinstance(action, Launch))


def why(made: Plan, key: str = "g") -> list[Reason]:
    return [reason for one in made.groups if one.group == key for reason in one.held_back]


def test_fewer_jobs_than_the_site_wants_are_told_how_many_it_takes() -> None:
    made = plan(snapshot(groups=[group("g", 9)]), ruled(10))
    assert machines(made) == 0
    (reason,) = why(made)
    assert reason.code == "too-few"
    assert "fewer than 10 jobs" in reason.text
    assert "9 would be worth a machine" in reason.text


def test_jobs_of_all_groups_and_users_count_together() -> None:
    groups = [group("g", 6), group("h", 4, owner="bob", submitter="bob@pool")]
    made = plan(snapshot(groups=groups), ruled(10))
    assert machines(made) == machines(plan(snapshot(groups=groups), policy())) > 0
    assert why(made) == why(made, "h") == []


def test_jobs_that_nothing_on_sale_would_run_are_not_counted() -> None:
    made = plan(snapshot(groups=[group("g", 2), group("huge", 50, request=HUGE)]), ruled(10))
    assert machines(made) == 0
    assert [reason.code for reason in why(made)] == ["too-few"]
    assert "too-few" not in {reason.code for reason in why(made, "huge")}, "more of them would not help"


def test_jobs_that_have_room_are_not_counted_and_run() -> None:
    seen = snapshot(
        instances=[instance("a")],
        records=[record("a")],
        slots=[slot("a")],
        groups=[group("g", 4)],
    )
    made = plan(seen, ruled(3))
    assert next(one.joined for one in made.groups) == 2, "one machine has room for two"
    assert machines(made) == 0


@pytest.mark.parametrize(("waits", "bought"), [(99.0, False), (100.0, True), (500.0, True)])
def test_nothing_is_bought_before_the_first_has_waited_for_so_long(waits: float, bought: bool) -> None:
    made = plan(snapshot(groups=[group("g", 3, oldest=NOW - waits)]), ruled(wait=100.0))
    assert (machines(made) > 0) is bought
    if not bought:
        (reason,) = why(made)
        assert reason.code == "too-early"
        assert moment(NOW + 1) in reason.text
        assert "1m40s" in reason.text


def test_jobs_that_have_not_waited_yet_are_not_among_those_that_are_counted() -> None:
    groups = [group("g", 6, oldest=NOW - 200), group("h", 6, oldest=NOW - 20)]
    made = plan(snapshot(groups=groups), ruled(10, 100.0))
    assert machines(made) == 0
    assert [reason.code for reason in (*why(made), *why(made, "h"))] == ["too-few", "too-early"]


def test_a_job_of_unknown_age_is_not_held_back() -> None:
    assert machines(plan(snapshot(groups=[group("g", 3, oldest=0.0)]), ruled(wait=100.0))) > 0


def test_room_that_is_kept_ready_and_a_minimum_are_no_demand_to_be_ignored() -> None:
    (only,) = policy().classes.values()
    rules = replace(ruled(10, 3600.0), classes={"default": replace(only, min_machines=2)})
    assert machines(plan(snapshot(), rules)) == 2
    spare = replace(only, spare=(Spare(4, Resources(1, 1024, 1024)),))
    rules = replace(rules, classes={"default": spare})
    ready = spare_groups(rules, NOW)
    seen = replace(snapshot(groups=list(ready)), spare=ready, schedds={})
    assert machines(plan(seen, rules)) > 0


def test_a_silent_schedd_is_no_demand_of_few_jobs() -> None:
    """Its last word buys nothing, with a threshold or without one, and what is there isn't given away."""
    last = Known(ScheddView(groups=(group("g", 3),)), NOW - 60)
    seen = replace(snapshot(groups=[]), schedds={"schedd": Unknown(Reason("timeout", "x"), NOW - 60, last)})
    assert [r.code for r in why(plan(seen, ruled(10)))] == ["schedd-silent"]


@given(st.integers(1, 30), st.integers(1, 12), st.floats(0, 300), st.floats(0, 300))
def test_either_all_is_bought_that_is_worth_it_or_nothing_is_and_the_reason_said(
    jobs: int, least: int, waited: float, wait: float
) -> None:
    seen = snapshot(groups=[group("g", jobs, oldest=NOW - waited)])
    made, plain = plan(seen, ruled(least, wait)), plan(seen, policy())
    held = (NOW - waited) + wait > NOW or jobs < least
    assert machines(made) == (0 if held else machines(plain))
    assert bool(why(made)) is held
