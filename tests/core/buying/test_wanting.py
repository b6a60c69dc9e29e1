"""What is bought for: ceilings of users and groups, turns, and room that is kept ready, in whole plans."""

from dataclasses import replace

from tests.rigs.snapshots import (
    ASK,
    NOW,
    group,
    instance,
    kind,
    offer,
    policy,
    record,
    slot,
    snapshot,
    worker,
)
from updraft.core.demand.headroom import spare_groups
from updraft.core.model import (
    AccountingGroup,
    Child,
    JobGroup,
    Known,
    Launch,
    Plan,
    Shares,
    Snapshot,
    Verdict,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Spare, Timings

BOOTS = {("img", "small"): (100.0,), ("img", "large"): (100.0,)}


def cores(made: Plan) -> int:
    return sum(a.count * a.offer.resources.cpus for a in made.actions if isinstance(a, Launch))


def codes(made: Plan, key: str) -> set[str]:
    return {reason.code for one in made.groups if one.group == key for reason in one.held_back}


def jobs(*groups: JobGroup) -> Snapshot:
    seen = snapshot(groups=groups)
    return replace(seen, ledger=replace(seen.ledger, boots=BOOTS))


def test_short_jobs_are_bought_fewer_machines_and_the_plan_says_so() -> None:
    short, unknown = group("short", 60, run_time=10.0), group("unknown", 40)
    made, whole = plan(jobs(short), policy()), plan(jobs(replace(unknown, key="short")), policy())
    assert cores(made) == 6
    assert cores(whole) == 40
    assert "in-turn" in codes(made, "short")
    assert "in-turn" not in codes(whole, "short")


def test_a_user_gets_no_more_cores_than_the_limit() -> None:
    limited = policy(limits=Limits(cores_per_user=6))
    eve = group("e", 4, owner="eve", submitter="eve@pool")
    made = plan(jobs(group("a", 50), eve), limited)
    assert {one.group: one.new for one in made.groups} == {"a": 6, "e": 4}
    assert codes(made, "a") == {"user-limit"}
    assert codes(made, "e") == set()


def test_what_a_user_has_counts_against_the_limit() -> None:
    busy = slot("i-1", True)
    seen = snapshot(
        instances=[instance("i-1")],
        slots=[replace(busy, children=(Child("Claimed", "Busy", ASK, "alice@pool"),) * 2, free=ASK - ASK)],
        records=[replace(record("i-1"), joined_at=NOW - 300)],
        groups=[group("a", 50)],
    )
    made = plan(seen, policy(limits=Limits(cores_per_user=6)))
    assert [one.new for one in made.groups] == [4]


def test_an_accounting_group_without_surplus_gets_no_more_than_its_quota() -> None:
    seen = snapshot(groups=[group("a", 50, submitter="bio.alice@pool"), group("b", 3)])
    assert isinstance(seen.collector, Known)
    shares = Shares(groups={"bio": AccountingGroup("bio", 8.0, surplus=False)})
    view = replace(seen.collector.value, shares=shares)
    made = plan(replace(seen, collector=Known(view, NOW)), policy())
    assert {one.group: one.new for one in made.groups} == {"a": 8, "b": 3}
    assert codes(made, "a") == {"group-quota"}


def with_spare(rules: Policy, **changes: object) -> Snapshot:
    (spare,) = spare_groups(rules, NOW)
    seen = snapshot(**changes)  # type: ignore[arg-type]
    kinds = (kind("small"), kind("large"))
    fits = {(spare.key, one.key): Verdict(one.resources.cpus, ASK) for one in kinds}
    return replace(seen, spare=(spare,), verdicts={**seen.verdicts, **fits})


def test_room_is_kept_ready_and_its_machine_stays() -> None:
    rules = policy(worker(spare=(Spare(2, ASK),)))
    assert cores(plan(with_spare(rules), rules)) == 2
    idle = [replace(record("i-1"), joined_at=NOW - 3000, last_claimed_at=NOW - 3000)]
    there = with_spare(rules, instances=[instance("i-1")], slots=[slot("i-1")], records=idle)
    assert plan(there, rules).actions == ()
    assert [type(a).__name__ for a in plan(replace(there, spare=()), rules).actions] == ["Drain"]


def test_jobs_come_before_room_that_is_kept_ready() -> None:
    rules = policy(worker(spare=(Spare(2, ASK),)), limits=Limits(cores=2))
    made = plan(with_spare(rules, groups=[group("a", 2)]), rules)
    assert {one.group: one.new for one in made.groups} == {"a": 2, "spare/default/0": 0}


def test_twenty_users_under_a_cap_get_the_negotiators_shares() -> None:
    """Two of them have better priorities, three want little; the rest of the room is shared by the others."""
    users = [f"u{n:02}" for n in range(20)]
    rates = {name: 250.0 if name in ("u00", "u01") else 500.0 for name in users}
    wants = {name: 4 if name in ("u02", "u03", "u04") else 200 + 10 * n for n, name in enumerate(users)}
    seen = snapshot(
        groups=[
            group(f"g-{u}", wants[u], owner=u, submitter=f"{u}@pool", oldest=NOW - n)
            for n, u in enumerate(users)
        ]
    )
    assert isinstance(seen.collector, Known)
    view = replace(seen.collector.value, shares=Shares(priorities=rates))
    rules = policy(limits=Limits(cores=800), timings=Timings(trial=10_000))
    made = plan(replace(seen, collector=Known(view, NOW)), rules)
    got = {one.group.removeprefix("g-"): one.new for one in made.groups}
    assert sum(got.values()) == 800
    for name in users:
        # 12 cores for those who want little, the rest in 2 + 2 + 15 parts.
        share = 4 if wants[name] == 4 else (800 - 12) / 19 * (2 if rates[name] == 250.0 else 1)
        assert abs(got[name] - share) <= max(0.1 * share, 8), (name, got[name], share)


LINEAR = (offer("small", price=0.1), offer("large", price=0.4))


def flavors(made: Plan) -> dict[str, int]:
    return {a.offer.flavor: a.count for a in made.actions if isinstance(a, Launch)}


def test_at_the_same_price_per_core_small_machines_are_bought() -> None:
    """They are empty sooner: what is paid for and not used goes back in smaller pieces."""
    free = policy(timings=Timings(trial=1000))
    assert flavors(plan(snapshot(groups=[group("a", 16)], offers=LINEAR), free)) == {"small": 8}


def test_where_machines_are_scarce_large_ones_are() -> None:
    for rules in (
        policy(limits=Limits(machines=4), timings=Timings(trial=1000)),
        policy(worker(max_machines=4), timings=Timings(trial=1000)),
        policy(cloud_limits={"c1": Limits(machines=4)}, timings=Timings(trial=1000)),
    ):
        made = plan(snapshot(groups=[group("a", 30)], offers=LINEAR), rules)
        assert flavors(made) == {"large": 4}, rules


def test_a_job_that_cannot_end_before_a_machine_does_is_not_counted_onto_it() -> None:
    old = replace(record("i-1"), joined_at=NOW - 3000, last_claimed_at=NOW - 60)
    rules = policy(worker(lifetime=7200.0, drain_deadline=600.0))
    for longest, new in ((4000.0, 0), (5000.0, 1)):
        waiting = group("a", 1, longest=longest)
        seen = snapshot(instances=[instance("i-1")], slots=[slot("i-1")], records=[old], groups=[waiting])
        made = plan(seen, rules)
        assert [(one.joined, one.new) for one in made.groups] == [(1 - new, new)], longest


def test_a_job_longer_than_any_machine_lives_buys_none() -> None:
    rules = policy(worker(lifetime=7200.0, drain_deadline=600.0))
    made = plan(snapshot(groups=[group("a", 1, longest=8000.0)]), rules)
    assert made.actions == ()
    assert "too-long" in codes(made, "a")
    assert plan(snapshot(groups=[group("a", 1, longest=7000.0)]), rules).actions
