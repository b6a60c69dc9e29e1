"""What is looked up in bulk is what a plain search finds: claims, cool-downs, origins, changed records.

Covers `dispositions`, `entries`, `census`, `lifecycle`, `cooldowns`, `claimed` and `room`: what is looked up
there.
"""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    LARGE,
    NOW,
    SMALL,
    group,
    instance,
    kind,
    offer,
    pick,
    policy,
    record,
    slot,
    snapshot,
)
from updraft.core.demand.claimed import matched
from updraft.core.demand.fitting import turns
from updraft.core.demand.room import Demand
from updraft.core.limits.budget import budget
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.census import Origins
from updraft.core.machines.cooldowns import CLOUD_ERROR, NEVER_JOINED, cooldowns, image_key
from updraft.core.machines.dispositions import DecisionView, jobs_there
from updraft.core.machines.entries import idle_claims
from updraft.core.machines.lifecycle import changed
from updraft.core.matching.verdicts import table_of
from updraft.core.model import (
    Child,
    Instance,
    JobGroup,
    Known,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineRecord,
    Reason,
    Resources,
    RunningJob,
    ScheddView,
    Slot,
    Snapshot,
    Verdict,
)
from updraft.core.settings import Policy, Timings

NAMES = ("ann", "ann@pool", "bob", "grp.ann", "bob@other")

# ----------------------------------------------------------------------------------------------- claims


@st.composite
def claims(draw: st.DrawFn) -> tuple[list[JobGroup], list[Slot], dict[tuple[str, str], Verdict]]:
    groups = [
        group(
            f"g{n}",
            draw(st.integers(0, 2)),
            owner=pick(draw, ("ann", "ann", "bob")),
            submitter=pick(draw, NAMES),
            request=Resources(draw(st.integers(1, 3)), 100, 10),
            oldest=float(draw(st.integers(0, 3))),
            evaluable=draw(st.integers(0, 5)) > 0,
        )
        for n in range(draw(st.integers(1, 5)))
    ]
    kinds = (kind("small"), kind("large"))
    verdicts = {(g.key, k.key): Verdict(pick(draw, [0, 2, 2, 2]), SMALL) for g in groups for k in kinds}
    children = st.builds(
        Child,
        st.sampled_from(["Claimed", "Claimed", "Claimed", "Preempting"]),
        st.sampled_from(["Idle", "Idle", "Idle", "Busy"]),
        st.builds(Resources, st.integers(1, 3), st.just(1000), st.just(1000)),
        st.sampled_from(NAMES),
    )
    slots = [
        slot(f"i-{n}", kind=pick(draw, [kinds[0].key, kinds[1].key, "unknown"]),
             children=tuple(draw(st.lists(children, max_size=8))))
        for n in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return groups, slots, verdicts


def is_of(user: str, one: JobGroup, known: set[str]) -> bool:
    """Of a user's own domain, where there is such a user; else whoever has that name."""
    if user in known:
        return user == one.submitter
    bare = user.partition("@")[0]
    return user == one.owner or bare in (one.submitter.partition("@")[0], one.owner)


@given(claims())
def test_claims_take_jobs_as_a_search_through_all_groups_says(
    world: tuple[list[JobGroup], list[Slot], dict[tuple[str, str], Verdict]],
) -> None:
    groups, slots, verdicts = world
    order = turns([one for one in groups if one.evaluable])
    left = {one.key: one.idle for one in order}
    known = {one.submitter for one in order}
    taken: dict[str, int] = {}
    for each in slots:
        for child in each.children:
            if (child.state, child.activity) != ("Claimed", "Idle"):
                continue
            for one in order:
                verdict = verdicts.get((one.key, each.kind))
                fits = verdict is not None and verdict.copies > 0 and child.resources.holds(one.request) > 0
                if left[one.key] and fits and is_of(child.user, one, known):
                    left[one.key] -= 1
                    taken[one.key] = taken.get(one.key, 0) + 1
                    break
    table = table_of(verdicts, groups, [kind("small"), kind("large")])
    assert matched(Demand(tuple(groups), (), True), idle_claims(slots), table) == taken


# ------------------------------------------------------------------------------------------- cool-downs


@st.composite
def histories(draw: st.DrawFn) -> LedgerView:
    ago = st.sampled_from([NOW, NOW - 4, NOW - 8, NOW - 100])  # few, so that some are the same
    records = []
    for n in range(draw(st.integers(0, 6))):
        code = pick(draw, [None, CLOUD_ERROR, NEVER_JOINED, "idle-limit"])
        records.append(
            record(
                f"i-{n}",
                flavor=pick(draw, ["small", "large"]),
                joined_at=draw(st.one_of(st.none(), ago)),
                ended_at=draw(ago) if code else None,
                end=Reason(code, "x") if code else None,
            )
        )
    launches = []
    for n in range(draw(st.integers(0, 6))):
        code = pick(draw, [None, None, "no-capacity", "throttled", "odd"])
        launches.append(
            LaunchRecord(
                f"K{n}", "c1", "z1", pick(draw, ["small", "large"]), "on-demand", "default", "img",
                "g1", 1, SMALL, 0.1, draw(ago), pick(draw, list(LaunchState)),
                error=Reason(code, f"no {n}") if code else None,
            )
        )  # fmt: skip
    return LedgerView(tuple(launches), tuple(records))


Outcome = tuple[float, bool, Reason]
Told = dict[tuple[str, str], list[Outcome]]
FINE = Reason("fine", "")


def place(one: MachineRecord | LaunchRecord) -> str:
    return f"{one.cloud}/{one.zone}/{one.flavor}/{one.market}"


def of_machines(ledger: LedgerView) -> Told:
    told: Told = {}
    for one in ledger.machines:
        at = one.ended_at or NOW
        image = ("image", image_key(one.worker_class, one.image, one.cloud))
        if one.joined_at is not None:
            for name in (image, ("offer", place(one))):
                told.setdefault(name, []).append((one.joined_at, True, FINE))
        elif one.end is not None and one.end.code in (CLOUD_ERROR, NEVER_JOINED):
            name = image if one.end.code == NEVER_JOINED else ("offer", place(one))
            told.setdefault(name, []).append((at, False, one.end))
    return told


def of_all(ledger: LedgerView) -> Told:
    """Each scope's outcomes, the latest last."""
    told = of_machines(ledger)
    broken = {name for name, found in told.items() if not max(found, key=lambda each: each[:2])[1]}
    for row in ledger.launches:
        offered, cloud = ("offer", place(row)), ("cloud", "c1")
        if row.error is not None:
            name = offered if row.error.code == "no-capacity" else cloud
            told.setdefault(name, []).append((row.asked_at, False, row.error))
        elif row.state in (LaunchState.ACCEPTED, LaunchState.SETTLED):
            for name in {cloud, offered} - broken:
                told.setdefault(name, []).append((row.asked_at, True, FINE))
    return {name: sorted(found, key=lambda each: each[:2]) for name, found in told.items()}


def plainly(ledger: LedgerView, timings: Timings) -> dict[tuple[str, str], tuple[float, int, bool, str]]:
    """What failed last rests: each scope's outcomes are looked at one after the other, the latest first."""
    rests = {}
    for name, ranked in of_all(ledger).items():
        run = []
        while ranked and not ranked[-1][1]:
            run.append(ranked.pop())
        if not run:
            continue
        news = [run[0][0]]
        for at, _, _ in run[1:]:
            if news[-1] - at > timings.settle / 10:
                news.append(at)
        until = run[0][0] + min(timings.cooldown_first * 2 ** (len(news) - 1), timings.cooldown_longest)
        probe = len(run) >= timings.failures_to_probe
        if until > NOW or probe:
            rests[name] = (until, len(run), probe, run[0][2].code)
    return rests


@given(histories())
def test_what_rests_is_what_failed_last(ledger: LedgerView) -> None:
    timings = Timings()
    found = cooldowns(ledger, NOW, timings)
    assert {(c.scope, c.key): (c.until, c.failures, c.probe, c.reason.code) for c in found} == plainly(
        ledger, timings
    )
    assert all((a.scope, a.key) < (b.scope, b.key) for a, b in pairwise(found))


# -------------------------------------------------------------------------------------------- the others


def adopt(found: Instance, seen: Snapshot) -> MachineRecord:
    """The record of an instance that the ledger doesn't know."""
    return Origins(seen.now, seen.ledger.launches, seen.offers).record(found)


def test_an_instance_without_a_record_is_worth_its_launch_or_the_first_offer_of_its_flavor() -> None:
    offers = [
        offer("small", price=0.5, market="spot"),
        offer("small", price=0.2),
        offer("small", price=0.3, worker_class="other"),
    ]
    launch = LaunchRecord(
        "L-i-2", "c1", "z1", "small", "on-demand", "default", "img", "g1", 1, Resources(9, 9, 9), 7.0,
        NOW - 50, LaunchState.ACCEPTED,
    )  # fmt: skip
    look = snapshot(offers=offers, ledger=LedgerView((launch,)))
    lost, known = adopt(instance("i-1"), look), adopt(instance("i-2"), look)
    assert (lost.price, lost.resources, lost.adopted) == (0.2, SMALL, True)
    assert (known.price, known.resources, known.adopted) == (7.0, Resources(9, 9, 9), False)
    assert known.requested_at == NOW - 50


def test_one_of_a_flavor_that_is_not_on_sale_may_be_as_large_as_any_and_cost_anything() -> None:
    elsewhere = offer(cloud="c2", resources=Resources(99, 99, 99))
    look = snapshot(offers=[offer("small"), offer("large", resources=LARGE, price=0.36), elsewhere])
    foreign = adopt(instance("i-3", flavor="unheard-of"), look)
    assert (foreign.price, foreign.resources) == (None, LARGE)
    lost, cache, rules = replace(look, ledger=LedgerView(machines=(foreign,))), MachineCache(), policy()
    cache.look(lost, rules)
    assert budget(cache, (), (), frozenset(), lost, rules).pool.cores == LARGE.cpus
    nothing = snapshot(offers=[elsewhere])
    assert adopt(instance("i-3", flavor="unheard-of"), nothing).resources == Resources()


def test_one_whose_cloud_does_not_say_when_it_was_launched_is_as_old_as_our_first_sight_of_it() -> None:
    assert adopt(instance("i-1", launched_at=0.0), snapshot()).requested_at == NOW
    assert adopt(instance("i-1", launched_at=NOW - 60), snapshot()).requested_at == NOW - 60


def test_a_changed_record_is_a_replaced_one() -> None:
    before = record("i-1", joined_at=5.0, gaps=(30.0,))
    changes = {"last_claimed_at": NOW, "silent_since": None, "job_starts": 4}
    assert changed(before, changes) == replace(before, **changes)


def test_nothing_is_written_anew_of_a_machine_to_which_nothing_happens() -> None:
    kept = record("i-1", joined_at=NOW - 50, last_claimed_at=NOW - 40, job_starts=3, seen_at=NOW - 60)
    look = snapshot(instances=[instance("i-1")], slots=[slot("i-1")], records=[kept])
    (machine,) = MachineCache().look(look, Policy("test", {})).machines
    assert machine.record is kept


def test_jobs_are_found_by_the_machine_that_their_slot_names() -> None:
    jobs = (
        RunningJob("s1", "1.0", "slot1_1@i-1@host", "ann", NOW),
        RunningJob("s1", "2.0", "slot1_1@i-11@i-1.host", "ann", NOW),
        RunningJob("s1", "3.0", "slot1_2@i-1@i-1", "ann", NOW),
    )
    look = snapshot(instances=[instance("i-1")], schedds={"s1": Known(ScheddView((), jobs), NOW)})
    (machine,) = MachineCache().look(look, Policy("test", {})).machines
    found = jobs_there(machine, DecisionView(look, Policy("test", {})))
    assert found is not None
    assert [job.job_id for job in found] == ["1.0", "3.0"]
    silent = replace(look, schedds={**look.schedds, "s2": Known(ScheddView(), NOW)})
    assert jobs_there(machine, DecisionView(silent, Policy("test", {}))) is None
