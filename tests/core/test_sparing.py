"""What planning fails for is left out and named; everybody else is planned for."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from tests.rigs.snapshots import group, kind, policy, snapshot, verdicts
from updraft.core.kinds import problem
from updraft.core.left_out import LEFT_OUT
from updraft.core.model import JobGroup, Known, Plan, RunningJob, ScheddView, Snapshot
from updraft.core.placing import place
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy
from updraft.core.sparing import AGAIN, sparing, without
from updraft.core.supply import Demand

KINDS = (kind("small"), kind("large"))
Bad = Callable[[Collection[JobGroup]], bool]
RUNS = RunningJob("a", "9.0", "slot1@w", "eve", 5e9)


def world(schedds: int = 2, owners: int = 3, each: int = 4) -> Snapshot:
    seen = {}
    for schedd in "abcdefgh"[:schedds]:
        groups = tuple(
            group(
                f"{schedd}{owner}{n}",
                schedd=schedd,
                owner=f"u{owner}",
                submitter=f"u{owner}",
                first_id=f"{n}.0",
            )
            for owner in range(owners)
            for n in range(each)
        )
        seen[schedd] = Known(ScheddView(groups, (RUNS,), len(groups), 1), 1_000_000.0)
    everything = [one for view in seen.values() for one in view.value.groups]
    return snapshot(schedds=seen, verdicts=verdicts(everything, KINDS))


def groups_of(some: Snapshot) -> list[JobGroup]:
    return [g for seen in some.schedds.values() if isinstance(seen, Known) for g in seen.value.groups]


def failing_for(bad: Bad) -> Callable[[Snapshot, Policy], Plan]:
    def decide(some: Snapshot, by: Policy) -> Plan:
        if bad([one for one in groups_of(some) if one.evaluable]):
            raise ZeroDivisionError("planned")
        return plan(some, by)

    return decide


def spared_by(bad: Bad, some: Snapshot) -> frozenset[str]:
    return sparing(failing_for(bad), some, policy(), ZeroDivisionError())[1]


@pytest.mark.parametrize("bad", [{"a00"}, {"a00", "a01", "b23"}, {"b10", "b11", "b12", "b13"}])
def test_just_the_groups_that_it_fails_for_are_left_out(bad: set[str]) -> None:
    assert spared_by(lambda some: any(one.key in bad for one in some), world()) == bad


def test_what_fails_only_together_is_left_out_as_far_as_it_is_told_apart() -> None:
    both = {"a00", "a01"}
    assert spared_by(lambda some: both <= {one.key for one in some}, world()) == {"a00", "a01", "a02", "a03"}
    across = {"a00", "b00"}
    everything = frozenset(one.key for one in groups_of(world()))
    assert spared_by(lambda some: across <= {one.key for one in some}, world()) == everything


def test_what_fails_without_any_job_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        spared_by(lambda some: True, world())


def test_a_search_has_an_end() -> None:
    asked = []

    def decide(some: Snapshot, by: Policy) -> Plan:
        asked.append(1)
        return failing_for(lambda groups: any(one.owner == "u3" for one in groups))(some, by)

    spared = sparing(decide, world(4, 12, 4), policy(), ZeroDivisionError())[1]
    assert {f"{schedd}30" for schedd in "abcd"} <= spared
    assert len(asked) < 50


def test_where_their_jobs_run_still_counts() -> None:
    seen = without(world(), {"a00"}, "why").schedds["a"]
    assert isinstance(seen, Known)
    assert seen.value.running == (RUNS,)
    assert [(one.key, problem(one.ad)) for one in seen.value.groups if not one.evaluable] == [("a00", "why")]


def test_everybody_else_is_served_and_the_culprit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the planner that the daemon has; it is told once, and tried again when its time is over."""
    some, told = world(), list[Exception]()

    def broken(queue: Demand, *rest: object) -> object:
        if any(one.key == "a00" for one in queue.all if one.evaluable):
            raise ZeroDivisionError("planned")
        return place(queue, *rest)

    monkeypatch.setattr("updraft.core.plan.place", broken)
    decide = Planning(told.append)
    for _ in range(2):
        made = decide(some, policy())
        served = {one.group: one.new for one in made.groups}
        assert served.pop("a00") == 0
        assert all(served.values())
        (warning,) = [one.text for one in made.warnings if one.code == LEFT_OUT]
        assert "job 0.0 of u0 at schedd a: planning for it fails (ZeroDivisionError)" in warning
    assert len(told) == 1
    monkeypatch.setattr("updraft.core.plan.place", place)
    later = replace(some, now=some.now + AGAIN)
    assert {one.code for one in decide(later, policy()).warnings}.isdisjoint({LEFT_OUT})
