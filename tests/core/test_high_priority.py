"""Jobs of high priority: whose counts, that they come first, and what idle machines do for them.

Covers `submitters` and `pressing`.
"""

from dataclasses import replace
from typing import Any

from tests.rigs.snapshots import (
    NOW,
    group,
    instance,
    kind,
    offer,
    policy,
    record,
    slot,
    snapshot,
    verdicts,
    worker,
)
from updraft.core.model import Drain, JobGroup, Known, Plan, Resources, Shares, Snapshot, Terms
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Timings, UserLimits, WorkerClass
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import high, short, weight

SMALLS = (offer("small"),)


def rules(*classes: WorkerClass, **changes: Any) -> Policy:
    changes = {"limits": Limits(cores=8), "high_priority_users": ("*",), **changes}
    return policy(*classes, timings=Timings(trial=10_000), **changes)


def of(who: str, number: int = 0, idle: int = 20, **changes: Any) -> JobGroup:
    named = {"owner": who, "submitter": f"{who}@pool", "terms": Terms(high_priority=number)}
    return group(changes.pop("key", who), idle, **{**named, **changes})


def new(made: Plan) -> dict[str, int]:
    return {one.group: one.new for one in made.groups}


def bought(*groups: JobGroup, by: Policy | None = None) -> dict[str, int]:
    return new(plan(snapshot(groups=groups, offers=SMALLS), by or rules()))


def test_high_priority_goes_before_all_others() -> None:
    assert bought(of("ann", 1, 6), of("bob", 0, 20, oldest=NOW - 900)) == {"ann": 6, "bob": 2}
    assert bought(of("ann", 0, 6), of("bob", 0, 20)) == {"ann": 4, "bob": 4}


def test_it_goes_before_the_better_share_of_others() -> None:
    seen = snapshot(groups=[of("ann", 1, 20), of("bob", 0, 20)], offers=SMALLS)
    assert isinstance(seen.collector, Known)
    view = replace(seen.collector.value, shares=Shares(priorities={"ann": 1e6, "bob": 0.5}))
    assert new(plan(replace(seen, collector=Known(view, NOW)), rules())) == {"ann": 8, "bob": 0}


def test_among_themselves_they_share_by_their_weights() -> None:
    assert bought(of("ann", 3, 20), of("bob", 1, 20)) == {"ann": 6, "bob": 2}


def test_a_users_other_jobs_wait_their_turn() -> None:
    mine = of("ann", 1, 2, key="urgent"), of("ann", 0, 20, key="usual", oldest=NOW - 900)
    assert bought(*mine, of("bob", 0, 20)) == {"urgent": 2, "usual": 2, "bob": 4}


def test_it_counts_only_where_the_site_says_so() -> None:
    pair = of("ann", 9, 20), of("bob", 0, 20)
    assert bought(*pair, by=rules(high_priority_users=())) == {"ann": 4, "bob": 4}
    assert bought(*pair, by=rules(high_priority_users=("b*", "c"))) == {"ann": 4, "bob": 4}
    assert bought(*pair, by=rules(high_priority_users=("b*", "a*"))) == {"ann": 8, "bob": 0}
    by_class = rules(worker(high_priority_users=("ann",)), high_priority_users=())
    assert bought(*pair, by=by_class) == {"ann": 8, "bob": 0}


def test_a_class_speaks_for_jobs_that_only_it_can_run() -> None:
    """A job that two classes can run would get ahead of others in both: both have to let it."""
    offers = (offer("small"), offer("small", worker_class="other", price=0.2))
    kinds = {one.key: one for one in (kind("small"), kind("small", worker_class="other"))}
    groups = [of("ann", 1), of("bob")]
    seen = snapshot(groups=groups, offers=offers, kinds=kinds, verdicts=verdicts(groups, kinds.values()))
    one = rules(worker(high_priority_users=("ann",)), worker("other"), high_priority_users=())
    both = rules(
        worker(high_priority_users=("ann",)),
        worker("other", high_priority_users=("ann",)),
        high_priority_users=(),
    )
    assert new(plan(seen, one)) == {"ann": 4, "bob": 4}
    assert new(plan(seen, both)) == {"ann": 8, "bob": 0}


def test_caps_hold_for_it_too_and_it_uses_them_up_first() -> None:
    by = rules(users={"ann": UserLimits(cores=4)})
    mine = of("ann", 1, 3, key="urgent"), of("ann", 0, 20, key="usual", oldest=NOW - 900)
    assert bought(*mine, of("bob", 0, 20), by=by) == {"urgent": 3, "usual": 1, "bob": 4}


def test_nobody_makes_a_party_with_a_name() -> None:
    assert weight("ann@pool 5") == weight("5") == weight("spare/5") == 0
    assert weight(high("ann@pool", 5)) == 5
    assert short(high("ann@pool", 5)) == short(high("ann", 5)) == "ann"


def test_what_high_priority_was_bought_counts_in_the_users_usual_turn() -> None:
    party = high("ann@pool", 1)
    who = Standing(high={"ann@pool": (party,)})
    bought = {party: 4, "bob@pool": 2}
    assert who.rank(party, bought) < who.rank("bob@pool", bought) < who.rank("ann@pool", bought)


# --------------------------------------------------------------------------- idle machines make room

BIG = Resources(8, 8192, 1024)


def full(*waiting: JobGroup, idle_for: float = 20.0) -> Snapshot:
    """Two small idle machines under a limit of twelve cores: a job of eight fits no machine that is there."""
    names = ("i-1", "i-2", "i-3")
    return snapshot(
        instances=[instance(name) for name in names],
        slots=[slot(name, name == "i-3") for name in names],
        records=[
            replace(record(name), joined_at=NOW - 3000, last_claimed_at=NOW - idle_for) for name in names
        ],
        groups=waiting,
    )


def drained(made: Plan) -> list[tuple[str, str]]:
    return sorted((a.machine, a.reason.code) for a in made.actions if isinstance(a, Drain))


def test_idle_machines_make_room_for_high_priority_and_for_nobody_else() -> None:
    tight = rules(limits=Limits(cores=12))
    urgent = of("ann", 1, 2, request=BIG)
    assert drained(plan(full(urgent), tight)) == [("i-1", "make-room"), ("i-2", "make-room")]
    one = plan(full(replace(urgent, idle=1)), tight)
    assert len(drained(one)) == 1
    assert drained(plan(full(of("ann", 0, 2, request=BIG)), tight)) == []
    assert drained(plan(full(urgent), rules(limits=Limits(cores=100)))) == []


def test_a_machine_that_jobs_wait_for_or_a_minimum_keeps_makes_no_room() -> None:
    urgent, usual = of("ann", 1, 2, request=BIG), of("bob", 0, 4)
    tight = rules(limits=Limits(cores=12))
    assert drained(plan(full(urgent, usual), tight)) == []
    kept = rules(worker(min_machines=2), limits=Limits(cores=12))
    assert len(drained(plan(full(urgent), kept))) == 1


def test_where_a_schedd_is_silent_nothing_makes_room() -> None:
    from tests.rigs.snapshots import DOWN
    from updraft.core.model import Unknown

    seen = full(of("ann", 1, 2, request=BIG))
    schedds = {**seen.schedds, "other": Unknown(DOWN, NOW - 60)}
    assert drained(plan(replace(seen, schedds=schedds), rules(limits=Limits(cores=12)))) == []
