"""The fast world: it must tell the same as the daemon's own parts in virtual time, and lose no job."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from updraft.app.simulation import rivals
from updraft.clouds.fake import site_settings
from updraft.core.machines.scalein import AHEAD
from updraft.core.model import (
    Billing,
    CloudOffer,
    Drain,
    DrainMode,
    Known,
    Launch,
    Plan,
    Reason,
    Resources,
    Snapshot,
    Terminate,
)
from updraft.core.plan import plan as core_plan
from updraft.core.settings import DAY, CloudRule, Limits, Policy, Spare, Timings, WorkerClass
from updraft.sim.conditions import Pace, example_clouds, example_policy
from updraft.sim.engine import Engine
from updraft.sim.reports.metrics import metrics
from updraft.sim.sweep import Setting
from updraft.sim.workloads.workload import Arrival, Shape, burst, bursts, stream
from updraft.sim.world.outcome import Outcome
from updraft.sim.world.simulation import Boots, Conditions, SimCloud, simulate

GIB = 1024
ONE = Resources(1, 1000, 1024)
SMALL_MEMORY = 2 * 4 * GIB  # of what `offer` sells
WHY = Reason("test", "the test wants it so")
NO_LIMITS = Limits()
AT_ONCE = Boots(median=30.0, spread=0.0)


def offer(
    cpus: int = 2, market: str = "on-demand", left: int | None = None, price: float = 0.1
) -> CloudOffer:
    size = Resources(cpus, cpus * 4 * GIB, 40 * 1024 * 1024)
    return CloudOffer("f", "a", f"c{cpus}", market, size, price, left)


def cloud(*offers: CloudOffer, **more: Any) -> dict[str, SimCloud]:
    return {"f": SimCloud(offers or (offer(),), **more)}


def policy(limits: Limits = NO_LIMITS, **worker: Any) -> Policy:
    made = WorkerClass("w", "g1", ("f",), **{"images": {"f": "worker"}, "idle_limit": 120.0, **worker})
    return Policy("p", {"w": made}, limits, timings=Timings(cycle=30.0))


def waits(outcome: Outcome) -> Any:
    return outcome.jobs.first_start - outcome.jobs.submitted


def settled(outcome: Outcome) -> None:
    """What must hold of every simulation of the real planner that ran to its end."""
    jobs = outcome.jobs
    assert not np.isnan(jobs.ended).any(), "a job was never done"
    assert outcome.killed == 0
    assert not outcome.violations
    assert not np.isnan(outcome.machines.ended_at).any(), "a machine was left"
    # Floats of POSIX times keep microseconds.
    assert np.all(jobs.ended - jobs.first_start >= jobs.seconds - 1e-3)
    alone = jobs.runs == 1
    assert np.allclose((jobs.ended - jobs.first_start)[alone], jobs.seconds[alone], atol=1e-3)


def launcher(count: int, *more: Callable[[Snapshot], Sequence[Any]]) -> Callable[[Snapshot, Policy], Plan]:
    """A policy that keeps the core's books, buys `count` machines at the first look and does `more`."""

    def decide(snapshot: Snapshot, policy: Policy) -> Plan:
        actions: list[Any] = []
        if not snapshot.ledger.launches:
            actions.append(Launch("first", snapshot.offers[0], count, WHY))
        for what in more:
            actions.extend(what(snapshot))
        return replace(core_plan(snapshot, policy), actions=tuple(actions))

    return decide


# ------------------------------------------------------------------------------------------- as a whole


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_job_is_done_and_every_machine_goes(seed: int) -> None:
    outcome = simulate(list(bursts(2, seed=seed)), example_policy(), example_clouds())
    settled(outcome)
    assert outcome.lost == 0
    assert outcome.calls["launch"] > 0
    assert outcome.calls["machines"] >= outcome.cycles, "one for each look, more where a list has pages"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_outcome() -> None:
    work = list(bursts(1, seed=7))
    first, again = (simulate(work, example_policy(), example_clouds()) for _ in range(2))
    assert np.array_equal(first.jobs.ended, again.jobs.ended)
    assert np.array_equal(first.machines.ended_at, again.machines.ended_at)
    other = simulate(work, example_policy(), example_clouds(), conditions=Conditions(seed=1))
    assert not np.array_equal(first.machines.joined_at, other.machines.joined_at)


@pytest.mark.parametrize("idle_limit", [200.0, 2000.0])
def test_cycles_that_are_left_out_change_nothing(idle_limit: float) -> None:
    """Long jobs and long pauses: most cycles have nothing to decide, and the outcome is the same."""
    shape = Shape(ONE, 2000.0, spread=0.9)
    work = [*burst(6, shapes=(shape,)), *burst(4, at=9000, over=600, shapes=(shape,), seed=3)]
    usual = policy(idle_limit=idle_limit)
    lazy, thorough = (
        simulate(work, usual, cloud(), conditions=Conditions(thorough=t)) for t in (False, True)
    )
    assert thorough.decisions == thorough.cycles == lazy.cycles
    assert lazy.decisions < lazy.cycles / 2
    assert np.array_equal(lazy.jobs.ended, thorough.jobs.ended)
    assert np.array_equal(lazy.machines.asked_at, thorough.machines.asked_at)
    assert np.array_equal(lazy.machines.ended_at, thorough.machines.ended_at)
    assert np.array_equal(lazy.series.cost, thorough.series.cost)
    assert lazy.calls == thorough.calls
    settled(lazy)


@pytest.mark.parametrize("thorough", [False, True])
def test_a_job_that_runs_for_days_is_waited_for_and_paid_for(thorough: bool) -> None:
    """Nothing changes for five days, yet the machine is paid for all the while."""
    work = [Arrival(0.0, "ada", ONE, 5 * DAY)]
    outcome = simulate(
        work, policy(), cloud(boots=AT_ONCE), conditions=Conditions(cycle=600.0, thorough=thorough)
    )
    settled(outcome)
    assert outcome.machines.ended_at[0] - outcome.machines.asked_at[0] > 5 * DAY
    assert metrics(outcome).cost > 0.1 * 5 * 24


def test_a_job_that_runs_for_days_is_waited_for_where_a_rival_decides() -> None:
    """One that lets its machines go by itself, and isn't the planner."""
    decide = rivals("google", Setting("s", policy(), cloud(boots=AT_ONCE)))[0].decider
    work = [Arrival(0.0, "ada", ONE, 5 * DAY)]
    outcome = simulate(
        work, policy(), cloud(boots=AT_ONCE), decide=decide(work), conditions=Conditions(cycle=600.0)
    )
    assert outcome.ended > 5 * DAY
    assert metrics(outcome).completed == 1
    assert metrics(outcome).cost > 0.1 * 5 * 24


def test_machines_are_paid_for_until_their_idle_limit_however_long_it_is() -> None:
    work = [Arrival(0.0, "ada", ONE, 60.0)]
    outcome = simulate(work, policy(idle_limit=3 * 3600.0), cloud(boots=AT_ONCE))
    settled(outcome)
    assert outcome.machines.ended_at[0] - outcome.jobs.ended[0] > 3 * 3600


def by_the_hour(made: Policy) -> Policy:
    return replace(made, clouds={"f": CloudRule(billing=Billing(3600.0))})


@pytest.mark.parametrize("thorough", [False, True])
def test_a_paid_hour_is_used_before_the_machine_goes(thorough: bool) -> None:
    """It goes in the last minutes of its hour; another job comes meanwhile and costs nothing more."""
    work = [Arrival(0.0, "ada", ONE, 60.0), Arrival(2400.0, "ada", ONE, 60.0)]
    conditions = Conditions(thorough=thorough)
    dear = simulate(work, policy(), cloud(boots=AT_ONCE), conditions=conditions)
    assert len(dear.machines) == 2, "by the second each job has its own"
    outcome = simulate(work, by_the_hour(policy()), cloud(boots=AT_ONCE), conditions=conditions)
    settled(outcome)
    (lived,) = outcome.machines.ended_at - outcome.machines.asked_at
    assert 3600.0 - AHEAD <= lived <= 3600.0
    assert outcome.machines.paid.tolist() == [3600.0]
    assert metrics(outcome).cost == pytest.approx(0.1)
    assert metrics(outcome).core_hours_paid == pytest.approx(2.0)


def test_hours_that_are_begun_are_paid_for_whoever_decides() -> None:
    work, made = [Arrival(0.0, "ada", ONE, 4000.0)], by_the_hour(policy())
    decide = rivals("google", Setting("s", made, cloud(boots=AT_ONCE)))[0].decider
    outcome = simulate(work, made, cloud(boots=AT_ONCE), decide=decide(work))
    assert outcome.machines.paid.tolist() == [7200.0]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "cycle"), [(0, 5.0), (1, 30.0)])
def test_it_tells_what_the_daemon_s_own_parts_tell(seed: int, cycle: float) -> None:
    """The same jobs, clouds and pace through observer, actor and simulated pool, and through this world."""
    shapes = (Shape(ONE, 90.0, weight=4), Shape(Resources(2, 3000, 1024), 200.0))
    work = [
        *burst(40, over=60, shapes=shapes, seed=seed),
        *burst(30, at=900, over=300, shapes=shapes, seed=seed + 5),
    ]
    usual = replace(policy(), timings=Timings(cycle=cycle))
    sold = {"small": {"cpus": 2, "memory": "8GiB", "price": 0.1, "disk": "40GiB"}}
    boot = {"start": "12s", "join": "18s", "spread": 0.0}
    settings = site_settings("f", {"zones": ["a"], "flavors": sold, "boots": [boot]})
    engine = Engine(usual, {"f": settings}, work, pace=Pace(negotiation=5.0))
    pool = engine.pool
    assert engine.run(7200, lambda: len(pool.jobs) == len(work) and pool.finished() and not engine.alive())
    old = engine.result()
    small = CloudOffer("f", "a", "small", "on-demand", Resources(2, 8 * GIB, 40 * 1024 * 1024), 0.1)
    conditions = Conditions(cycle=cycle, negotiation=5.0, boots=AT_ONCE)
    new = simulate(work, usual, cloud(small), conditions=conditions)
    settled(new)
    figures = metrics(new)
    assert old.killed == 0
    assert figures.wait_mean == pytest.approx(sum(old.waits) / len(old.waits), rel=0.08)
    assert len(new.machines) == pytest.approx(old.launched, rel=0.06)
    assert figures.cost == pytest.approx(old.cost, rel=0.06)
    assert old.calls["console"] > 0
    for name, count in old.calls.items():
        assert new.calls[name] == pytest.approx(count, rel=0.2, abs=2), name


# ------------------------------------------------------------------------------------ the pool's manners


def test_an_owner_s_next_job_follows_in_the_same_claim() -> None:
    work = stream(40, every=0.0, shape=Shape(ONE, 20.0, spread=0.0))
    conditions = Conditions(boots=AT_ONCE, horizon=3600.0)
    outcome = simulate(work, policy(), cloud(), decide=launcher(1), conditions=conditions)
    starts = np.sort(outcome.jobs.first_start)
    gaps = np.diff(starts)[1::2]
    assert np.allclose(gaps[:-1], 20.2, atol=1e-3), "each job begins 0.2 s after the one before"


def test_a_claim_older_than_its_worklife_takes_no_other_job() -> None:
    work = stream(8, every=0.0, shape=Shape(ONE, 100.0, spread=0.0))
    conditions = Conditions(boots=AT_ONCE, horizon=3600.0, worklife=150.0, negotiation=60.0)
    outcome = simulate(work, policy(), cloud(), decide=launcher(1), conditions=conditions)
    starts = np.sort(outcome.jobs.first_start)[::2]
    assert starts[1] - starts[0] == pytest.approx(100.2, abs=1e-3)
    assert starts[2] - starts[0] == pytest.approx(240.0, abs=1e-3), "the negotiator's fourth cycle"


def test_no_claim_goes_from_one_owner_to_another() -> None:
    shape = Shape(Resources(2, 1000, 1024), 100.0, spread=0.0)
    work = [*stream(1, shape=shape), *stream(1, shape=shape, at=1.0, owner="grace")]
    conditions = Conditions(boots=AT_ONCE, horizon=3600.0)
    outcome = simulate(work, policy(), cloud(), decide=launcher(1), conditions=conditions)
    first, second = outcome.jobs.first_start
    assert second - first == pytest.approx(120.0, abs=1e-3), "matched by the negotiator, two cycles later"


def test_owners_get_equal_shares_and_priorities_go_first() -> None:
    shape = Shape(ONE, 1000.0, spread=0.0)
    many, few = stream(50, every=0.0, shape=shape), stream(10, at=5.0, every=0.0, shape=shape, owner="grace")
    urgent = [replace(one, priority=5) for one in stream(2, at=9.0, every=0.0, shape=shape)]
    conditions = Conditions(boots=AT_ONCE, horizon=300.0)
    decide = launcher(4)  # eight cores
    outcome = simulate([*many, *few, *urgent], policy(), cloud(), decide=decide, conditions=conditions)
    jobs = outcome.jobs
    started = ~np.isnan(jobs.first_start)
    names = [jobs.owners[index] for index in jobs.owner[started]]
    assert (names.count("ada"), names.count("grace")) == (4, 4)
    assert started[-2:].all(), "of ada's jobs the urgent ones"


def test_the_fullest_slot_is_taken() -> None:
    """Two machines half full: a job of one core goes where the least is left."""
    shape = Shape(ONE, 5000.0, spread=0.0)
    wide = Shape(Resources(3, 1000, 1024), 5000.0, spread=0.0)
    work = [*stream(1, shape=wide), *stream(1, at=100.0, shape=shape), *stream(1, at=200.0, shape=wide)]
    conditions = Conditions(boots=AT_ONCE, horizon=1000.0)
    outcome = simulate(work, policy(), cloud(offer(4)), decide=launcher(2), conditions=conditions)
    assert not np.isnan(outcome.jobs.first_start).any(), "the second wide job found the empty machine"


@pytest.mark.slow
def test_machines_that_never_join_in_time_end_the_simulation() -> None:
    conditions = Conditions(cycle=600.0, boots=Boots(median=7200.0, spread=0.0))
    outcome = simulate(stream(2), policy(boot_deadline=300.0), cloud(), conditions=conditions)
    assert np.isnan(outcome.jobs.first_start).all()
    assert len(outcome.machines) > 3
    assert np.isnan(outcome.machines.joined_at).all()
    assert outcome.ended < 4 * 86400


def test_a_job_no_machine_can_run_costs_nothing_and_ends_the_simulation() -> None:
    work = [Arrival(0.0, "ada", Resources(64, 1, 1), 60.0), *stream(1)]
    outcome = simulate(work, policy(), cloud(), conditions=Conditions(cycle=600.0))
    assert np.isnan(outcome.jobs.ended).tolist() == [True, False]
    assert len(outcome.machines) == 1
    assert metrics(outcome).completed == 1


@pytest.mark.parametrize("static", [None, 2])
def test_custom_resources_are_bought_and_shared_like_any_other(static: int | None) -> None:
    """64 jobs that ask for one of two on each machine: by cores alone, two machines would do."""
    request = replace(ONE, custom=(("fpgas", 1),))
    work = [Arrival(0.0, "ada", request, 3600.0) for _ in range(64)]
    usual = policy(resources={"FPGAs": 2}, static_slots=static)
    outcome = simulate(work, usual, cloud(offer(cpus=32), boots=AT_ONCE))
    settled(outcome)
    assert len(outcome.machines) == 32
    assert waits(outcome).max() < 900


def test_requirements_are_matched() -> None:
    work = [replace(one, requirements='TARGET.UpdraftFlavor == "c4"') for one in stream(3)]
    outcome = simulate(work, policy(), cloud(offer(2, price=0.01), offer(4)))
    settled(outcome)
    assert set(outcome.machines.flavor) == {"c4"}


def test_room_that_is_kept_ready_is_bought_and_kept() -> None:
    usual = policy(spare=(Spare(3, ONE),))
    outcome = simulate(stream(1, at=1800.0), usual, cloud(), conditions=Conditions(horizon=3600.0))
    assert (outcome.series.booted[-10:] >= 4).all(), "room for three jobs of one core, on machines of two"
    assert np.isnan(outcome.machines.ended_at).sum() >= 2
    assert outcome.jobs.first_start[0] - outcome.jobs.submitted[0] < 60.0, "the job found the room"


def test_machines_that_are_each_one_user_s_are_bought_for_those_who_wait() -> None:
    shape = Shape(ONE, 100.0, spread=0.0)
    work = [*stream(2, every=0.0, shape=shape), *stream(2, every=0.0, shape=shape, owner="grace")]
    outcome = simulate(work, policy(owner_only=True), cloud(offer(8)))
    settled(outcome)
    assert len(outcome.machines) == 2, "one for each of the two"


def test_static_slots_take_one_job_each() -> None:
    work = stream(4, every=0.0, shape=Shape(ONE, 100.0, spread=0.0))
    outcome = simulate(work, policy(static_slots=2), cloud(offer(8)))
    settled(outcome)
    assert len(outcome.machines) == 2


# -------------------------------------------------------------------------------------- what goes wrong


def test_interrupted_spot_machines_lose_runs_and_no_job() -> None:
    spot = offer(4, market="spot", price=0.02)
    work = stream(40, every=30.0, shape=Shape(ONE, 1500.0, spread=0.0))
    conditions = Conditions(interruptions=2.0)
    outcome = simulate(work, policy(markets=("spot",)), cloud(spot), conditions=conditions)
    settled(outcome)
    assert outcome.lost > 0
    assert (outcome.jobs.runs > 1).sum() > 0
    assert outcome.jobs.runs.sum() == len(work) + outcome.lost


def test_boots_that_fail_are_ended_and_others_take_their_place() -> None:
    conditions = Conditions(boots=Boots(median=60.0, failures=0.4), seed=3)
    usual = policy(boot_deadline=600.0)
    outcome = simulate(stream(30, every=60.0), usual, cloud(), conditions=conditions)
    settled(outcome)
    assert np.isnan(outcome.machines.joined_at).any()
    assert outcome.calls["console"] > 0


def test_what_a_cloud_has_no_more_of_is_refused() -> None:
    work = stream(20, every=0.0, shape=Shape(ONE, 600.0, spread=0.0))
    for sold in (cloud(machines=3), cloud(cores=7), cloud(offer(left=3))):
        outcome = simulate(work, policy(), sold)
        settled(outcome)
        assert outcome.series.machines.max() == 3


def test_the_site_s_limits_hold() -> None:
    work = stream(20, every=0.0, shape=Shape(ONE, 600.0, spread=0.0))
    memory = 3 * SMALL_MEMORY + 1
    for limits in (Limits(machines=3), Limits(cores=7), Limits(memory=memory), Limits(cost_per_hour=0.35)):
        outcome = simulate(work, policy(limits), cloud())
        settled(outcome)
        assert outcome.series.machines.max() == 3


def test_a_policy_that_oversteps_is_told_of_it() -> None:
    limits = Limits(machines=3, cores=100, cost_per_hour=0.35, memory=SMALL_MEMORY)
    conditions = Conditions(boots=AT_ONCE, horizon=600.0)
    outcome = simulate(stream(1), policy(limits), cloud(), decide=launcher(5), conditions=conditions)
    assert outcome.violations == dict.fromkeys(("machines", "memory", "cost"), outcome.cycles)


def test_jobs_of_a_machine_that_is_ended_go_back_to_the_queue_and_count_as_killed() -> None:
    def once(snapshot: Snapshot) -> Sequence[Any]:
        busy = [slot for slot in _slots(snapshot) if slot.busy]
        ended = any(record.terminate_asked_at for record in snapshot.ledger.machines)
        return [Terminate((busy[0].instance_id,), "f", WHY)] if busy and not ended else []

    work = stream(4, every=0.0, shape=Shape(ONE, 500.0, spread=0.0))
    conditions = Conditions(boots=AT_ONCE, horizon=3600.0)
    outcome = simulate(work, policy(), cloud(), decide=launcher(2, once), conditions=conditions)
    assert outcome.killed == outcome.jobs.kills.sum() == 2
    assert sorted(outcome.jobs.runs) == [1, 1, 2, 2]
    assert not np.isnan(outcome.jobs.ended).any()
    again = outcome.jobs.ran[outcome.jobs.runs == 2]
    assert (again > 500.0).all(), "the run that was killed has cost time too"


def test_a_busy_machine_refuses_an_atomic_drain_and_works_on() -> None:
    def always(snapshot: Snapshot) -> Sequence[Any]:
        return [Drain(slot.instance_id, "f", DrainMode.EMPTY, WHY) for slot in _slots(snapshot) if slot.busy]

    work = stream(2, every=0.0, shape=Shape(ONE, 500.0, spread=0.0))
    conditions = Conditions(boots=AT_ONCE, horizon=3600.0)
    outcome = simulate(work, policy(), cloud(), decide=launcher(1, always), conditions=conditions)
    assert outcome.refused_drains > 3
    assert outcome.killed == 0
    assert (outcome.jobs.runs == 1).all()


def test_a_busy_drain_lets_jobs_end_and_takes_no_new_ones() -> None:
    """Machines reach their lifetime at work: their jobs end there, and the next ones go elsewhere."""
    work = stream(40, every=100.0, shape=Shape(ONE, 400.0, spread=0.0))
    usual = policy(lifetime=900.0, drain_deadline=3600.0)
    outcome = simulate(work, usual, cloud(), conditions=Conditions(boots=AT_ONCE, cycle=30.0))
    settled(outcome)
    lived = outcome.machines.ended_at - outcome.machines.asked_at
    assert lived.max() < 900.0 + 400.0 + 120.0
    assert len(outcome.machines) > 4


def test_the_horizon_ends_it() -> None:
    conditions = Conditions(horizon=600.0)
    outcome = simulate(stream(10, every=600.0), policy(), cloud(), conditions=conditions)
    assert outcome.ended == pytest.approx(600.0)
    assert len(outcome.jobs) == 2, "what had not arrived is no part of the outcome"


def test_progress_is_told_from_nothing_to_all() -> None:
    told: list[float] = []
    work = stream(20, every=600.0)
    simulate(work, policy(), cloud(), conditions=Conditions(cycle=30.0), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 5


def _slots(snapshot: Snapshot) -> Any:
    assert isinstance(snapshot.collector, Known)
    return snapshot.collector.value.slots
