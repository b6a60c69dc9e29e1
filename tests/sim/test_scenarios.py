"""Whole stories in virtual time: the real decisions on fake clouds, each with what must never happen."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest

from tests.rigs.sim.simtools import WHOLE, Watch, engine, policy, shape
from updraft.clouds.fake import Fault
from updraft.core.model import (
    Adopt,
    Drain,
    Forget,
    Known,
    Launch,
    Plan,
    Reason,
    RequeueJobs,
    Resources,
    Snapshot,
    Terminate,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy
from updraft.ledger import Ledger
from updraft.sim.conditions import Pace
from updraft.sim.engine import Decide, Engine
from updraft.sim.workloads.workload import burst as jobs
from updraft.sim.workloads.workload import bursts, stream
from updraft.sim.world.fleet import Claim
from updraft.sim.world.memory import MemoryLedger

HOUR = 3600.0


@pytest.mark.slow
def test_a_burst_goes_from_zero_machines_to_all_jobs_done_to_zero_machines() -> None:
    sim = engine(policy(limits=Limits(machines=20)), workload=jobs(100, at=10, over=20))
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert watch.most > 5
    assert not watch.of(Adopt)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_simulation() -> None:
    def play(seed: int) -> tuple[object, list[str]]:
        sim = engine(policy(), {"f": {"seed": seed}}, workload=jobs(60, over=60, seed=seed))
        watch = Watch(sim)
        assert sim.run_to_zero(HOUR)
        return sim.result(), [str(action) for action in watch.of(Launch, Drain, Terminate)]

    assert play(1) == play(1)
    assert play(1) != play(2)


@pytest.mark.slow
def test_on_the_real_ledger_it_comes_to_the_same(tmp_path: Path) -> None:
    in_memory = engine(policy(), workload=jobs(40, over=30))
    assert in_memory.run_to_zero(HOUR)
    with Ledger(tmp_path / "ledger.db") as ledger:
        on_disk = engine(policy(), workload=jobs(40, over=30), ledger=ledger)
        assert on_disk.run_to_zero(HOUR)
        assert on_disk.result() == in_memory.result()
        now = on_disk.timeline()
        seen = ledger.view(now)
        assert seen.at_work is not None
        assert not seen.at_work.machines
        assert seen == in_memory.ledger.view(now)


@pytest.mark.slow
def test_limits_hold_in_cores_and_money_too() -> None:
    made = policy(limits=Limits(cores=10, cost_per_hour=0.21), timings={"cycle": 10.0})
    sim = engine(made, workload=jobs(60, shapes=(shape(60),)))
    watch = Watch(sim)
    seen: list[tuple[int, float]] = []

    def count(*_: object) -> None:
        standing = sim.sites["f"].alive("p")
        seen.append(
            (sum(one.resources.cpus for one in standing), sum(one.sold.price or 0 for one in standing))
        )

    sim.on_cycle.append(count)
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()
    assert 0 < max(cores for cores, _ in seen) <= 10
    assert max(price for _, price in seen) <= 0.21 + 1e-9


def test_the_clouds_quota_is_shared_with_strangers() -> None:
    sim = engine(policy(), {"f": {"quota_machines": 5}}, workload=jobs(40, shapes=(shape(60),)))
    for _ in range(2):
        sim.sites["f"].add_foreign()
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert watch.most == 3
    refused = [call for call in sim.sites["f"].calls if call.error]
    assert not refused, "the quota was known"


@pytest.mark.slow
def test_a_cloud_that_is_lost_for_ten_minutes_costs_nothing() -> None:
    work = (*jobs(30, shapes=(shape(200),)), *jobs(30, at=300, shapes=(shape(60),)))
    sim = engine(policy(), workload=work)
    watch = Watch(sim)
    begin = sim.timeline() + 150
    sim.sites["f"].faults.add(Fault("cloud-unavailable", call="*", start=begin, until=begin + 600))
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert watch.between(begin + 2, begin + 600, Drain, Terminate, Launch) == []
    assert sim.result().lost == 0


def test_two_clouds_and_one_is_lost_the_other_carries_on() -> None:
    sim = engine(policy("f", "g"), {"f": {}, "g": {}}, workload=jobs(60, at=100, shapes=(shape(60),)))
    watch = Watch(sim)
    sim.sites["f"].faults.add(Fault("cloud-unavailable", call="*", until=sim.timeline() + 1200))
    assert sim.run(900, lambda: bool(sim.pool.jobs) and sim.pool.finished())
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert {action.offer.cloud for action in watch.of(Launch) if isinstance(action, Launch)} == {"g"}


def test_a_launch_that_times_out_though_the_machines_were_made_is_not_made_twice() -> None:
    sim = engine(policy(), {"f": {"shows_after": "15s"}}, workload=jobs(16, shapes=(shape(120),)))
    watch = Watch(sim)
    sim.sites["f"].faults.add(Fault("cloud-unavailable", after=True, times=1))
    assert sim.run_to_zero(HOUR)
    watch.closing()
    plain = engine(policy(), {"f": {"shows_after": "15s"}}, workload=jobs(16, shapes=(shape(120),)))
    assert plain.run_to_zero(HOUR)
    assert sim.result().launched <= plain.result().launched


@pytest.mark.parametrize("lag", ["5s", "40s"])
def test_a_cloud_that_is_slow_to_show_its_machines_gets_no_more_of_them(lag: str) -> None:
    tuning = {"f": {"shows_after": lag, "hides_after": lag}}
    sim = engine(policy(limits=Limits(machines=6)), tuning, workload=jobs(60, shapes=(shape(60),)))
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert sim.result().launched <= 6


def test_the_jobs_of_a_machine_that_dies_run_again_within_a_minute() -> None:
    sim = engine(policy(), workload=jobs(8, shapes=(shape(400, WHOLE),)))
    watch = Watch(sim)
    assert sim.run(200, lambda: sim.pool.life.queue.running == 8)
    victim = next(iter(sim.pool.machines))
    doomed = [job for job in sim.pool.jobs if victim in job.slot.split("@")]
    sim.sites["f"].kill(victim)
    died = sim.timeline()
    # Its cloud is asked for it by its id, twice, 10 s apart.
    assert sim.run(20, lambda: victim not in sim.pool.listed), "a ghost in the collector"
    assert sim.run(60, lambda: all(job.state != "running" or victim not in job.slot for job in doomed))
    assert watch.between(died, died + 60, RequeueJobs)
    assert watch.between(died, died + 60, Forget)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert sim.result().lost == len(doomed) > 0


@pytest.mark.slow
def test_boots_that_never_join_cost_a_few_machines_and_the_rest_goes_on() -> None:
    tuning = {"f": {"boots": [{"image": "broken", "never_joins": 1.0}]}, "g": {}}
    made = policy("f", "g", images={"f": "broken", "g": "worker"}, boot_deadline=120.0)
    sim = engine(made, tuning, workload=jobs(200, shapes=(shape(300),)))
    watch = Watch(sim)
    assert sim.run_to_zero(3 * HOUR)
    watch.closing()
    assert len(sim.sites["f"].instances) <= 20
    assert any(plan.cooldowns for _, _, plan in watch.plans)
    assert isinstance(sim.ledger, MemoryLedger)
    assert sim.ledger.consoles


@pytest.mark.slow
def test_a_cloud_where_nothing_joins_is_probed_ever_more_rarely() -> None:
    tuning = {"f": {"boots": [{"never_joins": 1.0}]}}
    made = policy(boot_deadline=120.0, timings={"cycle": 30.0})
    sim = engine(made, tuning, workload=jobs(200, shapes=(shape(300),)))
    watch = Watch(sim)
    sim.run(4 * HOUR)
    starts = [at for at, action in watch.actions if isinstance(action, Launch)]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert len(sim.sites["f"].instances) <= 18
    assert sim.alive() <= 1


def test_instances_in_error_are_ended_and_cooled_down() -> None:
    tuning = {"f": {"boots": [{"zone": "a", "breaks": 1.0}]}}
    sim = engine(policy(), tuning, workload=jobs(40, shapes=(shape(60),)))
    watch = Watch(sim)
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()
    assert sum(one.zone == "a" for one in sim.sites["f"].instances.values()) <= 20


def test_zones_without_capacity_are_left_for_others() -> None:
    tuning = {"f": {"capacity": {"a/small": 0, "a/medium": 0, "a/large": 0}}}
    sim = engine(policy(), tuning, workload=jobs(40, shapes=(shape(60),)))
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert {one.zone for one in sim.sites["f"].instances.values()} == {"b"}
    assert sum(bool(call.error) for call in sim.sites["f"].calls) < 20


@pytest.mark.slow
def test_a_restarted_collector_costs_no_machine() -> None:
    sim = engine(policy(), workload=jobs(30, shapes=(shape(600),)))
    watch = Watch(sim)
    sim.run(120)
    begin = sim.timeline()
    sim.pool.restart_collector()
    sim.run(320)
    assert watch.between(begin, sim.timeline(), Drain, Terminate, Launch) == []
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()


@pytest.mark.slow
def test_while_a_schedd_is_down_nothing_is_drained() -> None:
    work = (*jobs(20, shapes=(shape(60),)), *jobs(10, at=900, shapes=(shape(60),)))
    sim = engine(policy(), workload=work)
    watch = Watch(sim)
    sim.run(60)
    begin = sim.timeline()
    sim.pool.silence_schedd("head", begin + 1200)
    sim.run(1200)
    assert sim.alive() > 0
    assert watch.between(begin, begin + 1200, Drain, Terminate) == []
    assert sim.run_to_zero(HOUR)
    watch.closing()


@pytest.mark.slow
def test_a_schedd_that_stays_down_keeps_machines_for_half_an_hour_only() -> None:
    sim = engine(policy(), workload=jobs(20, shapes=(shape(60),)))
    watch = Watch(sim)
    sim.run(90)
    sim.pool.silence_schedd("head", sim.timeline() + 10 * HOUR)
    assert sim.run(HOUR, lambda: sim.alive() == 0)
    assert watch.between(0, sim.timeline() - 600, Drain) == []
    assert not any(job.killed for job in sim.pool.jobs)


@pytest.mark.slow
def test_two_schedds_one_down_the_others_jobs_go_on() -> None:
    work = (*jobs(20, shapes=(shape(60),)), *jobs(20, shapes=(shape(60),), schedd="second"))
    sim = engine(policy(), workload=work)
    watch = Watch(sim)
    sim.run(10)
    sim.pool.silence_schedd("second", sim.timeline() + 600)
    sim.run(300, lambda: all(job.state == "completed" for job in sim.pool.jobs if job.group.schedd == "head"))
    assert all(job.state == "completed" for job in sim.pool.jobs if job.group.schedd == "head")
    assert watch.of(Drain) == []
    assert sim.run_to_zero(HOUR)
    watch.closing()


@pytest.mark.slow
@pytest.mark.parametrize("latency", [0.1, 1.9])
def test_under_a_stream_of_one_second_jobs_scaling_in_kills_none(latency: float) -> None:
    work = (*jobs(80, shapes=(shape(30),)), *stream(500, at=60, every=1.2, shape=shape(1.0)))
    made = policy(idle_limit=5.0)
    sim = engine(made, workload=work, latency=latency)
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert watch.of(Drain)
    assert len(sim.sites["f"].instances) < 60


def test_a_job_that_starts_between_the_look_and_the_drain_is_an_answer() -> None:
    """Each job arrives right after the look that finds its machine idle for long enough."""
    work = stream(20, at=4.5, every=10.0, shape=shape(1.0))
    sim = engine(policy(idle_limit=8.0), workload=work, latency=1.9)
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert sim.result().refused_drains > 5
    assert any(event.kind == "busy-again" for event in sim.ledger.events())


def test_jobs_that_are_matched_and_not_started_yet_buy_no_machines() -> None:
    """For a moment a job is still idle to its schedd while its slot is claimed: it must not count twice."""
    sim = engine(
        policy(flavors=("medium",)),
        workload=jobs(24, shapes=(shape(60),), owners=("ada",)),
        pace=Pace(start=3.0),
    )
    watch = Watch(sim)
    assert sim.run_to_zero(HOUR)
    watch.closing()
    assert sim.result().launched == 6


@pytest.mark.slow
def test_a_machine_whose_ads_stop_coming_is_reported_and_left_while_its_jobs_run() -> None:
    sim = engine(policy(), workload=jobs(2, shapes=(shape(4000, WHOLE),)))
    watch = Watch(sim)
    sim.run(120)
    victim = next(iter(sim.pool.machines))
    sim.pool.silence(victim, 2500)
    sim.run(2400)
    assert any("lost" in {reason.code for reason in plan.warnings} for _, _, plan in watch.plans)
    assert sim.sites["f"].instances[victim].up(sim.timeline())
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()


@pytest.mark.slow
def test_a_drifted_machine_ends_its_work_and_is_replaced() -> None:
    sim = engine(policy(), workload=stream(60, every=15.0, shape=shape(60, WHOLE)))
    watch = Watch(sim)
    sim.run(300)
    old = policy()
    worker = old.classes["w"]
    sim.reconfigure(replace(old, classes={"w": replace(worker, generation="g2")}))
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()
    tags = {one.tags["updraft:generation"] for one in sim.sites["f"].instances.values()}
    assert tags == {"g1", "g2"}


def test_a_minimum_is_kept_and_replaced() -> None:
    sim = engine(policy(min_machines=3))
    Watch(sim)
    assert sim.run(120, lambda: len(sim.pool.listed) == 3)
    sim.sites["f"].kill(next(iter(sim.pool.machines)))
    sim.run(180)
    assert (len(sim.pool.listed), sim.alive()) == (3, 3)
    sim.run(HOUR / 3)
    assert len(sim.sites["f"].instances) == 4


def test_a_group_that_fits_no_offer_launches_nothing() -> None:
    sim = engine(policy(), workload=jobs(5, shapes=(shape(60, Resources(64, 1, 1)),), owners=("ada",)))
    watch = Watch(sim)
    sim.run(300)
    assert watch.of(Launch) == []
    (group,) = watch.plans[-1][2].groups
    assert group.unmet == 5
    assert group.refused


def test_a_quiet_pool_has_nothing_done_to_it() -> None:
    sim = engine(policy(limits=Limits(machines=3)), workload=jobs(6, shapes=(shape(3000, WHOLE),)))
    watch = Watch(sim)
    sim.run(300)
    begin = sim.timeline()
    sim.run(1000)
    assert watch.between(begin, sim.timeline(), Launch, Drain, Terminate, Adopt, Forget, RequeueJobs) == []
    assert all(isinstance(look.collector, Known) for _, look, _ in watch.plans)


@pytest.mark.slow
def test_two_hours_of_bursts_with_bad_luck() -> None:
    sim = engine(
        policy(limits=Limits(machines=50), timings={"cycle": 20.0}),
        {"f": {"boots": [{"never_joins": 0.05, "dies": 0.05, "dies_after": "400s"}]}},
        workload=bursts(2, seed=5),
        latency=2.0,
    )
    watch = Watch(sim)
    sim.run(2 * HOUR)
    assert sim.run_to_zero(2 * HOUR)
    watch.closing()


# ------------------------------------------------------------------------------------- does the watch bite?


def careless(snapshot: Snapshot, made: Policy) -> Plan:
    """Ends busy machines as well: what no plan may do."""
    right = plan(snapshot, made)
    why = Reason("careless", "why not")
    slots = snapshot.collector.value.slots if isinstance(snapshot.collector, Known) else ()
    ends = tuple(Terminate((slot.instance_id,), slot.cloud, why) for slot in slots if slot.busy)
    return replace(right, actions=(*right.actions, *ends))


def greedy(snapshot: Snapshot, made: Policy) -> Plan:
    """Launches whatever it thinks of, without a thought for limits."""
    right = plan(snapshot, made)
    launch = Launch(f"greedy-{snapshot.now}", snapshot.offers[0], 3, Reason("greedy", "more"))
    return replace(right, actions=(*right.actions, launch))


@pytest.mark.parametrize(
    ("decide", "cry"), [(careless, "a job was killed"), (greedy, "machines")], ids=["careless", "greedy"]
)
def test_the_watch_sees_what_must_never_happen(decide: Decide, cry: str) -> None:
    sim = engine(policy(limits=Limits(machines=8)), workload=jobs(10, shapes=(shape(60),)), decide=decide)
    watch = Watch(sim)
    with pytest.raises(AssertionError, match=cry):
        watch.follow(100)


class Cap:
    """The negotiator lets so many jobs run at a time, as a concurrency limit does."""

    def __init__(self, sim: Engine, most: int) -> None:
        self.most = most
        self._machines = sim.pool.listed
        self._cycle = sim.pool.life.matchmaker.cycle
        sim.pool.life.matchmaker.cycle = self  # type: ignore[assignment,method-assign]

    def __call__(self, now: float) -> Iterator[Claim]:
        busy = sum(machine.claims for machine in self._machines.values())
        return islice(self._cycle(now), max(0, self.most - busy))


def launched(watch: Watch, since: float = 0.0) -> int:
    """How many machines were asked for since then."""
    return sum(action.count for at, action in watch.actions if at >= since and isinstance(action, Launch))


@pytest.mark.slow
@pytest.mark.parametrize(("most", "kept", "bound"), [(0, 0, 3), (4, 0, 6), (0, 3, 3), (4, 6, 6)])
def test_jobs_that_the_negotiator_holds_back_are_bought_for_ever_more_rarely(
    most: int, kept: int, bound: int
) -> None:
    """It was 480 machines in each hour, all of them idle. Some may stay, which are not to blame."""
    made = policy(timings={"cycle": 10.0}, min_machines=kept)
    sim = engine(made, workload=jobs(40, at=10, over=20, shapes=[shape(20_000)]))
    cap, watch = Cap(sim, most), Watch(sim)
    sim.run(HOUR)
    assert watch.most <= 20, "as many as the jobs have need of, once"
    begun = sim.timeline()
    sim.run(HOUR)
    assert launched(watch, begun) <= bound
    assert [why.code for one in watch.plans[-1][2].groups for why in one.held_back] == ["not-taken"] * 2
    cap.most = 1000
    lifted = sim.timeline()
    assert sim.run(1.5 * HOUR, lambda: all(job.first_started_at is not None for job in sim.pool.jobs))
    assert launched(watch, lifted) <= 20


@pytest.mark.slow
def test_a_controller_that_dies_remembers_what_was_not_taken() -> None:
    sim = engine(policy(), workload=jobs(40, at=10, over=20, shapes=[shape(20_000)]))
    Cap(sim, 0)
    watch = Watch(sim)
    sim.run(HOUR / 2)
    sim.restart()
    begun = sim.timeline()
    sim.run(HOUR / 2)
    assert launched(watch, begun) <= 3
