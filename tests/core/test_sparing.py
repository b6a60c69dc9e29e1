"""What planning fails for is left out and named; everybody else is planned for."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    NOW,
    group,
    instance,
    kind,
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
from updraft.core.demand.left_out import LEFT_OUT
from updraft.core.model import (
    Annex,
    Drain,
    JobGroup,
    Known,
    Launch,
    Plan,
    RunningJob,
    ScheddView,
    Snapshot,
    Terminate,
)
from updraft.core.placing import PoolState, place
from updraft.core.plan import Planning, plan
from updraft.core.settings import Limits, Policy
from updraft.core.slots.kinds import problem
from updraft.core.sparing import AGAIN, Item, policy_without, sparing, without

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
    return keys(sparing(failing_for(bad), some, policy(), ZeroDivisionError())[1])


def keys(spared: frozenset[Item], sort: str = "jobs") -> frozenset[str]:
    """The keys of what is left out, which is of this sort alone."""
    assert {what for what, _ in spared} == {sort}
    return frozenset(key for _, key in spared)


@pytest.mark.parametrize("bad", [{"a00"}, {"a00", "a01", "b23"}, {"b10", "b11", "b12", "b13"}])
def test_just_the_groups_that_it_fails_for_are_left_out(bad: set[str]) -> None:
    assert spared_by(lambda some: any(one.key in bad for one in some), world()) == bad


def test_what_fails_only_together_is_left_out_as_far_as_it_is_told_apart() -> None:
    both = {"a00", "a01"}
    assert spared_by(lambda some: both <= {one.key for one in some}, world()) == {"a00", "a01", "a02", "a03"}
    across = {"a00", "b00"}
    everything = frozenset(one.key for one in groups_of(world()))
    assert spared_by(lambda some: across <= {one.key for one in some}, world()) == everything


def test_what_fails_whatever_is_left_out_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        spared_by(lambda some: True, world())


def test_a_search_has_an_end() -> None:
    asked = []

    def decide(some: Snapshot, by: Policy) -> Plan:
        asked.append(1)
        return failing_for(lambda groups: any(one.owner == "u3" for one in groups))(some, by)

    spared = keys(sparing(decide, world(4, 12, 4), policy(), ZeroDivisionError())[1])
    assert {f"{schedd}30" for schedd in "abcd"} <= spared
    assert len(asked) < 50


def test_where_their_jobs_run_still_counts() -> None:
    seen = without(world(), {("jobs", "a00")}, "why").schedds["a"]
    assert isinstance(seen, Known)
    assert seen.value.running == (RUNS,)
    assert [(one.key, problem(one.ad)) for one in seen.value.groups if not one.evaluable] == [("a00", "why")]


def test_everybody_else_is_served_and_the_culprit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the planner that the daemon has; it is told once, and tried again when its time is over."""
    some, told = world(), list[Exception]()

    def broken(pool: PoolState, *rest: object) -> object:
        if any(one.key == "a00" for one in pool.queue.all if one.evaluable):
            raise ZeroDivisionError("planned")
        return place(pool, *rest)

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


# --------------------------------------------------------------------------- slots, offers, annexes, clouds


def whole() -> Snapshot:
    """Two clouds with a machine each (one at work), an annex, jobs that wait for more."""
    clouds = {"c1": "i-1", "c2": "i-2"}
    some = snapshot(
        groups=[group("g", 40)],
        slots=[slot(name, busy=name == "i-1", cloud=cloud) for cloud, name in clouds.items()],
        records=[
            record(name, cloud=cloud, joined_at=NOW - 3000, last_claimed_at=NOW - 2000, job_starts=3)
            for cloud, name in clouds.items()
        ],
        offers=[offer(flavor, cloud) for flavor in ("small", "large") for cloud in clouds],
        annexes=(Annex("mine", "eve", "default", 1, 0, NOW + 3600, 600.0),),
    )
    seen = {
        cloud: replace(some.clouds["c1"], machines=Known((instance(name, cloud=cloud),), NOW))
        for cloud, name in clouds.items()
    }
    kinds = [kind(flavor, cloud) for flavor in ("small", "large") for cloud in clouds]
    return replace(
        some,
        clouds=seen,
        kinds={one.key: one for one in kinds},
        verdicts=verdicts(groups_of(some), kinds),
    )


def two_clouds() -> Policy:
    return policy(worker(clouds=("c1", "c2")))


def shown(some: Snapshot) -> set[Item]:
    """What of the snapshot could be to blame."""
    assert isinstance(some.collector, Known)
    return {
        *(("jobs", one.key) for one in groups_of(some) if one.evaluable),
        *(("slot", one.name) for one in some.collector.value.slots if not one.fault),
        *(("offer", one.key) for one in some.offers),
        *(("annex", one.name) for one in some.annexes),
        *(("cloud", name) for name, view in some.clouds.items() if isinstance(view.machines, Known)),
    }


def planned_without(culprits: set[Item]) -> tuple[Plan, frozenset[Item]]:
    """A plan that fails while any of these is there."""

    def decide(some: Snapshot, by: Policy) -> Plan:
        if shown(some) & culprits:
            raise ZeroDivisionError("planned")
        return plan(some, by)

    return sparing(decide, whole(), two_clouds(), ZeroDivisionError())


def offers_of(cloud: str) -> set[Item]:
    return {("offer", one.key) for one in whole().offers if one.cloud == cloud}


@pytest.mark.parametrize(
    "culprits",
    [
        {("slot", "slot1@i-1@host")},
        {("offer", "default@c1/z1/small/on-demand")},
        offers_of("c2"),
        {("annex", "mine")},
        {("cloud", "c2")},
    ],
    ids=["a slot", "an offer", "what a cloud sells", "an annex", "a cloud"],
)
def test_just_what_it_fails_for_is_left_out_and_the_rest_is_served(culprits: set[Item]) -> None:
    made, spared = planned_without(culprits)
    assert spared == culprits
    assert any(isinstance(action, Launch) for action in made.actions)
    assert not any(isinstance(action, Terminate | Drain) for action in made.actions), "and nothing is ended"


def test_where_nothing_alone_is_to_blame_everything_is_left_out_and_nothing_is_ended() -> None:
    made, spared = planned_without({("slot", "slot1@i-1@host"), ("annex", "mine")})
    assert spared == shown(whole()) | {("class", "default")}
    assert made.actions == ()


@given(snapshots(), policies(), st.data())
def test_what_is_left_out_ends_no_machine_that_would_have_stayed(
    some: Snapshot, by: Policy, data: st.DataObject
) -> None:
    items = sorted(
        {
            *(("jobs", one.key) for one in groups_of(some)),
            *(("offer", one.key) for one in some.offers),
            *(("cloud", name) for name in some.clouds),
            *(("class", name) for name in by.classes),
            *(("slot", one.name) for one in getattr(getattr(some.collector, "value", None), "slots", ())),
        }
    )
    out = data.draw(st.frozensets(st.sampled_from(items)))
    ended = ends(plan(without(some, out, "why"), policy_without(by, out)))
    assert ended <= ends(plan(some, by))


def ends(made: Plan) -> set[object]:
    return {
        (action.cloud, name)
        for action in made.actions
        if isinstance(action, Terminate)
        for name in action.machines
    } | {(one.cloud, one.id) for one in made.records if one.ended_at is not None}


@pytest.mark.parametrize(
    ("culprit", "said"),
    [
        (
            ("offer", "default@c1/z1/small/on-demand"),
            "left out: offer default@c1/z1/small/on-demand: planning",
        ),
        (("annex", "mine"), "left out: annex mine of eve: planning"),
        (("cloud", "c2"), "left out: cloud c2: planning"),
        (("slot", "slot1@i-1@host"), "slot slot1@i-1@host of machine i-1: planning"),
    ],
)
def test_what_is_left_out_is_named_each_time(
    culprit: Item, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(some: Snapshot, by: Policy, cache: object = None) -> Plan:
        if culprit in shown(some):
            raise ZeroDivisionError("planned")
        return plan(some, by)

    monkeypatch.setattr("updraft.core.plan.plan", broken)
    told: list[Exception] = []
    decide = Planning(told.append)
    for _ in range(2):
        (found,) = [one for one in decide(whole(), two_clouds()).warnings if said in one.text]
        assert found.code == ("odd-slot" if culprit[0] == "slot" else f"left-out-{culprit[0]}")
    assert len(told) == 1


# -------------------------------------------------------------------------------------------- classes


def two_classes(**changes: object) -> Policy:
    """A class as it should be, and one with something broken, which has machines at work and idle."""
    return policy(worker(clouds=("c1", "c2")), worker("odd", **changes))


def with_odd_machines() -> Snapshot:
    """The two clouds, and two machines of class odd, of which one is idle for long, with an offer of it."""
    some, of_odd = whole(), kind("small", worker_class="odd")
    odd = snapshot(
        slots=[slot("i-8", busy=True, kind=of_odd.key), slot("i-9", kind=of_odd.key)],
        records=[
            record(name, worker_class="odd", joined_at=NOW - 3000, last_claimed_at=NOW - 2000, job_starts=3)
            for name in ("i-8", "i-9")
        ],
        instances=[instance(name, worker_class="odd") for name in ("i-8", "i-9")],
        offers=[offer(worker_class="odd")],
    )
    assert isinstance(some.collector, Known)
    assert isinstance(odd.collector, Known)
    c1, more = some.clouds["c1"].machines, odd.clouds["c1"].machines
    assert isinstance(c1, Known)
    assert isinstance(more, Known)
    slots = (*some.collector.value.slots, *odd.collector.value.slots)
    kinds = {**some.kinds, of_odd.key: of_odd}
    return replace(
        some,
        collector=replace(some.collector, value=replace(some.collector.value, slots=slots)),
        clouds={
            **some.clouds,
            "c1": replace(some.clouds["c1"], machines=Known((*c1.value, *more.value), NOW)),
        },
        ledger=replace(some.ledger, machines=(*some.ledger.machines, *odd.ledger.machines)),
        offers=(*some.offers, *odd.offers),
        kinds=kinds,
        verdicts=verdicts(groups_of(some), list(kinds.values())),
    )


@pytest.mark.parametrize(
    "changes",
    [{"min_machines": "two"}, {"max_machines": "ten"}, {"per_user": None}, {"lifetime": None}],
    ids=["a minimum", "a maximum", "its budget", "a lifetime"],
)
def test_a_class_that_it_fails_for_buys_nothing_and_its_machines_stay(changes: dict[str, object]) -> None:
    by, told = two_classes(**changes), list[Exception]()
    with pytest.raises((TypeError, AttributeError)):
        plan(with_odd_machines(), by)
    decide = Planning(told.append)
    for _ in range(2):
        made = decide(with_odd_machines(), by)
        bought = {one.offer.worker_class for one in made.actions if isinstance(one, Launch)}
        assert bought == {"default"}
        touched = {one.machine for one in made.actions if isinstance(one, Drain)}
        assert not touched & {"i-8", "i-9"}, "unknown is not zero: its minimum may be these"
        assert not ends(made)
        assert {"i-8", "i-9"} <= {one.machine for one in made.machines}
        assert [one.text for one in made.warnings if "left out: class odd: planning for it" in one.text]
    assert len(told) == 1


def test_machines_of_a_class_that_is_left_out_still_count() -> None:
    by = replace(two_classes(min_machines="two"), limits=Limits(machines=5))
    made = Planning()(with_odd_machines(), by)
    assert sum(one.count for one in made.actions if isinstance(one, Launch)) == 1
