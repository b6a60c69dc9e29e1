"""Several clouds under one plan: `cases/clouds/*.json`, and what holds for any priorities and rules.

A case names clouds (priority, limits, quota, silent, closed), offers as `cloud/flavor`, and how many one-core
jobs each group has.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    DOWN,
    FLAVORS,
    NOW,
    group,
    instance,
    offer,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
    verdicts,
    worker,
)
from updraft.core.model import (
    CloudView,
    Drain,
    DrainMode,
    DrainRecord,
    Kind,
    Known,
    Launch,
    Quota,
    Reason,
    Snapshot,
    Undrain,
    Unknown,
)
from updraft.core.plan import plan
from updraft.core.settings import CLOUD_DRAINED, CloudRule, Limits, Policy

CASES = sorted((Path(__file__).parents[1] / "cases" / "clouds").glob("*.json"))
ENDLESS = {"unlimited": frozenset({"machines", "cores", "memory"})}
CLOSED = Reason("cloud-disabled", "an operator said so")
LEAVING = Reason(CLOUD_DRAINED, "an operator said so, and its machines leave")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    """The plan's launches and held-back reasons are those of the file."""
    case = json.loads(path.read_text())
    made = plan(_snapshot(case), _policy(case))
    launches = [one for one in made.actions if isinstance(one, Launch)]
    told = [f"{one.count} {one.offer.flavor} on {one.offer.cloud}" for one in launches]
    assert sorted(told) == sorted(case["launches"])
    codes = {one.group: sorted({reason.code for reason in one.held_back}) for one in made.groups}
    assert codes == case["held_back"]


def _policy(case: dict[str, Any]) -> Policy:
    clouds = case["clouds"]
    mine = worker(
        clouds=tuple(clouds), images=dict.fromkeys(clouds, "img"), min_machines=case.get("minimum", 0)
    )
    return policy(
        mine,
        limits=Limits(**case.get("limits", {})),
        cloud_limits={name: Limits(**about.get("limits", {})) for name, about in clouds.items()},
        clouds={
            name: CloudRule(about.get("priority", 0), CLOSED if about.get("closed") else None)
            for name, about in clouds.items()
        },
    )


def _snapshot(case: dict[str, Any]) -> Snapshot:
    sold = []
    for name, about in case["offers"].items():
        cloud, _, flavor = name.partition("/")
        sold.append(offer(flavor, cloud, **about))
    kinds = {one.kind: Kind(one.kind, "[]", FLAVORS[one.flavor][0]) for one in sold}
    groups = [group(key, idle) for key, idle in case["groups"].items()]
    # Machines of each cloud's image have joined before: it is proven.
    proof = [
        record(f"old-{name}", cloud=name, joined_at=NOW - 900, ended_at=NOW - 60) for name in case["clouds"]
    ]
    return snapshot(
        groups=groups,
        records=proof,
        offers=sold,
        kinds=kinds,
        verdicts=verdicts(groups, kinds.values()),
        clouds={name: _view(about) for name, about in case["clouds"].items()},
    )


def _view(about: dict[str, Any]) -> CloudView:
    quota = Known(Quota(**about.get("quota", ENDLESS)), NOW)
    machines = Unknown(DOWN, NOW - 60) if about.get("silent") else Known((), NOW)
    return CloudView(machines, Known((), NOW), quota)


# -------------------------------------------------------------------------------------------- properties


@given(snapshots(), policies(), st.integers(-3, 3))
def test_equal_priorities_change_nothing(snapshot: Snapshot, policy: Policy, priority: int) -> None:
    plain = replace(policy, clouds={})
    equal = replace(policy, clouds={name: CloudRule(priority) for name in ("c1", "c2")})
    assert plan(snapshot, equal) == plan(snapshot, plain)


@pytest.mark.slow
@given(snapshots(), policies())
def test_on_a_closed_cloud_nothing_is_launched_and_nothing_ends_for_it(
    snapshot: Snapshot, policy: Policy
) -> None:
    shut = replace(policy, clouds={**policy.clouds, "c1": CloudRule(closed=CLOSED)})
    made = plan(snapshot, shut)
    assert not [one for one in made.actions if isinstance(one, Launch) and one.offer.cloud == "c1"]
    assert not [one for one in made.actions if isinstance(one, Drain) and one.reason.code == CLOUD_DRAINED]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(0, 1))
def test_where_all_can_be_had_all_is_bought_at_the_best_priority(jobs: list[int], best: int) -> None:
    names = ("c1", "c2")
    case = {
        "clouds": {name: {"priority": int(at != best)} for at, name in enumerate(names)},
        "offers": {"c1/small": {}, "c1/large": {}, "c2/small": {"price": 0.01}, "c2/large": {"price": 5.0}},
        "groups": {f"g{at}": number for at, number in enumerate(jobs)},
    }
    made = plan(_snapshot(case), _policy(case))
    launches = [one for one in made.actions if isinstance(one, Launch)]
    assert {one.offer.cloud for one in launches} == {names[best]}
    assert sum(one.offer.resources.cpus * one.count for one in launches) >= sum(jobs)


# ------------------------------------------------------------------------------------------ who leaves


def _one_machine(busy: bool, rule: CloudRule, drain: DrainRecord | None = None) -> tuple[Snapshot, Policy]:
    shown = snapshot(
        instances=[instance("i-1")],
        slots=[slot("i-1", busy, draining=drain is not None)],
        records=[record("i-1", joined_at=NOW - 500, last_claimed_at=NOW - 5, seen_at=NOW - 500, drain=drain)],
    )
    return shown, policy(clouds={"c1": rule})


@pytest.mark.parametrize(
    ("busy", "mode"), [(True, DrainMode.BUSY), (False, DrainMode.EMPTY)], ids=["busy", "idle"]
)
def test_a_cloud_that_is_left_drains_its_machines_without_a_deadline(busy: bool, mode: DrainMode) -> None:
    made = plan(*_one_machine(busy, CloudRule(closed=CLOSED, leaving=LEAVING)))
    assert made.actions == (Drain("i-1", "c1", mode, LEAVING, None),)


def test_a_cloud_that_is_only_closed_keeps_its_machines() -> None:
    assert plan(*_one_machine(True, CloudRule(closed=CLOSED))).actions == ()


def test_enabled_again_it_takes_the_drain_of_a_busy_machine_back() -> None:
    drain = DrainRecord(DrainMode.BUSY, NOW - 60, LEAVING, NOW - 60)
    made = plan(*_one_machine(True, CloudRule(), drain))
    assert [type(one) for one in made.actions] == [Undrain]
    assert plan(*_one_machine(True, CloudRule(leaving=LEAVING), drain)).actions == ()
