"""A decision that remembers what was made of each machine is that of somebody who remembers nothing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    ASK,
    NOW,
    group,
    instance,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
    worker,
)
from updraft.core.machines.cache import MachineCache
from updraft.core.model import (
    AtWork,
    Child,
    CloudState,
    DrainMode,
    DrainRecord,
    MachineRecord,
    Plan,
    Reason,
    Slot,
    Snapshot,
    Unknown,
)
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy

FINE, SILENT, CHANGED, UNWRITTEN = range(4)  # what else there may be about a look
DOWN = Reason("timeout", "no answer")
WAITS = Child("Claimed", "Idle", ASK, "alice@pool")
ADS: Mapping[str, Callable[[str], Slot]] = {
    "busy": lambda name: slot(name, busy=True),
    "idle": slot,
    "worked": slot,
    "waits": lambda name: slot(name, children=(WAITS, WAITS)),
    "draining": lambda name: slot(name, busy=True, draining=True),
}
STEPS = (*ADS, "silent", "gone", "stopping", "drained", "forgotten")


def usual(name: str, **changes: object) -> MachineRecord:
    """A machine that joined long ago and is idle."""
    told = {"joined_at": NOW - 3500, "seen_at": NOW - 3590, "last_claimed_at": NOW - 300, "job_starts": 3}
    return record(name, **(told | changes))


class Site:
    """Ten machines, of which each step changes some; what a plan wants remembered is remembered."""

    def __init__(self) -> None:
        names = [f"i-{n}" for n in range(10)]
        self.now = NOW
        self.records = {name: usual(name, requested_at=NOW - 3600 - 10 * n) for n, name in enumerate(names)}
        self.instances = {name: instance(name) for name in names}
        self.slots = {name: slot(name, busy=n % 2 > 0) for n, name in enumerate(names)}
        self.at_work: AtWork | None = AtWork(frozenset(), NOW - 60)

    def step(self, name: str, what: str) -> None:
        """Something happens to a machine."""
        known = self.records.get(name)
        if what in ADS:
            starts = (known.job_starts if known else None) or 3
            shown = replace(ADS[what](name), heard=self.now)
            self.slots[name] = replace(shown, job_starts=starts + (what == "worked"))
        elif what == "silent":
            self.slots.pop(name, None)
        elif what == "gone":
            self.instances.pop(name, None)
        elif what == "stopping":
            self.instances[name] = instance(name, CloudState.STOPPING)
        elif what == "forgotten":
            self.records.pop(name, None)
        elif known is not None:
            drain = DrainRecord(DrainMode.EMPTY, self.now, Reason("idle-limit", "x"))
            self.records[name] = replace(known, drain=drain)

    def look(self, idle: int) -> Snapshot:
        """The snapshot of now."""
        made = snapshot(
            instances=self.instances.values(),
            slots=self.slots.values(),
            groups=[group(idle=idle)] if idle else [],
            records=self.records.values(),
        )
        return replace(made, now=self.now, ledger=replace(made.ledger, at_work=self.at_work))

    def remember(self, made: Plan) -> None:
        """Write the plan down."""
        self.records.update({one.id: one for one in made.records})
        if made.at_work is not None:
            self.at_work = AtWork(made.at_work, self.now)


steps = st.lists(st.tuples(st.integers(0, 9).map("i-{}".format), st.sampled_from(STEPS)), max_size=3)
waiting = st.sampled_from((0, 0, 3, 40))
odd = st.sampled_from((FINE, FINE, FINE, SILENT, CHANGED, UNWRITTEN))
POLICIES = (
    policy(worker(idle_limit=300.0)),
    policy(worker(idle_limit=60.0, max_machines=6)),
    policy(worker(lifetime=3700.0)),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(steps, waiting, odd), max_size=6), st.integers(0, 2), st.booleans())
def test_what_is_remembered_changes_no_decision(
    looks: list[tuple[list[tuple[str, str]], int, int]], first: int, kept: bool
) -> None:
    site, cache, policy = Site(), MachineCache(), POLICIES[first]
    if not kept:
        site.at_work = None
    for happens, idle, state in looks:
        for name, what in happens:
            site.step(name, what)
        seen = site.look(idle)
        if state == SILENT:
            seen = replace(seen, collector=Unknown(DOWN, site.now))
        elif state == CHANGED:
            policy = POLICIES[(first + 1) % 3]
        made = plan(seen, policy, cache)
        assert made == plan(seen, policy)
        if state != UNWRITTEN:
            site.remember(made)
        site.now += 40.0


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(snapshots(), min_size=2, max_size=3), policies())
def test_nor_does_what_is_remembered_of_another_world(worlds: list[Snapshot], policy: Policy) -> None:
    cache = MachineCache()
    for world in worlds:
        assert plan(world, policy, cache) == plan(world, policy)


def test_machines_that_are_as_they_were_are_the_same_objects() -> None:
    """Or remembering would be of no use."""
    site, cache, policy = Site(), MachineCache(), POLICIES[0]
    for _ in range(2):
        site.remember(plan(site.look(0), policy, cache))
    before = dict(cache.entries)
    site.step("i-3", "idle")
    plan(site.look(0), policy, cache)
    assert {key for key, one in cache.entries.items() if one is not before[key]} == {("c1", "i-3")}


def test_who_was_at_work_is_idle_since_the_last_look() -> None:
    site, cache, policy = Site(), MachineCache(), POLICIES[0]
    first = plan(site.look(0), policy, cache)
    site.remember(first)
    assert first.at_work == {("c1", f"i-{n}") for n in (1, 3, 5, 7, 9)}
    for _ in range(3):
        site.now += 100.0
        again = plan(site.look(0), policy, cache)
        site.remember(again)
        assert not again.records, "that busy machines are still busy needs no record"
    site.step("i-1", "idle")
    site.now += 100.0
    (changed,) = plan(site.look(0), policy, cache).records
    assert (changed.id, changed.last_claimed_at, changed.gaps) == (
        "i-1",
        site.now - 100.0,
        first.records[0].gaps,
    )


def test_who_was_at_work_when_the_pool_fell_silent_was_so_until_then() -> None:
    site, cache, policy = Site(), MachineCache(), POLICIES[0]
    for _ in range(2):
        site.remember(plan(site.look(0), policy, cache))
        site.now += 50.0
    silent = replace(site.look(0), collector=Unknown(DOWN, site.now))
    made = plan(silent, policy, cache)
    assert made.at_work == frozenset()
    assert {one.id: one.last_claimed_at for one in made.records} == {
        f"i-{n}": NOW + 50.0 for n in (1, 3, 5, 7, 9)
    }


def test_what_was_not_written_down_is_said_again() -> None:
    site, cache, policy = Site(), MachineCache(), POLICIES[0]
    for _ in range(2):
        site.remember(plan(site.look(0), policy, cache))
    site.step("i-0", "worked")
    for _ in range(2):
        (record,) = plan(site.look(0), policy, cache).records
        assert (record.id, record.job_starts) == ("i-0", 4)


def test_a_ledger_that_knows_of_nobody_at_work_is_told() -> None:
    site, cache, policy = Site(), MachineCache(), POLICIES[0]
    for _ in range(2):
        site.remember(plan(site.look(0), policy, cache))
    site.now += 60.0
    site.at_work = AtWork(frozenset(), NOW)
    assert {one.last_claimed_at for one in plan(site.look(0), policy, cache).records} == {site.now}


def test_a_decision_that_failed_halfway_leaves_nothing_behind() -> None:
    site, policy, planning = Site(), POLICIES[0], Planning()
    for _ in range(2):
        site.remember(planning(site.look(0), policy))
    site.step("i-3", "idle")
    seen = site.look(2)
    broken = replace(seen, schedds=None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        planning(broken, policy)
    site.step("i-5", "gone")
    seen = site.look(2)
    assert planning(seen, policy) == plan(seen, policy)


def test_planning_remembers() -> None:
    site, policy, planning = Site(), POLICIES[0], Planning()
    for _ in range(2):
        site.remember(planning(site.look(0), policy))
    seen = site.look(0)
    with mock.patch("updraft.core.machines.cache.merged", side_effect=AssertionError):
        assert planning(seen, policy).machines
