"""The simulated pool behaves as HTCondor does where a controller could tell the difference."""

import pytest

from updraft.clouds.base import TAG_CLASS, LaunchRequest
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.condor.base import ControllerAd
from updraft.core.model import CloudOffer, DrainMode, Kind, Resources, Slot
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.errors import DrainRefused, PoolTimeout
from updraft.sim.conditions import Pace
from updraft.sim.sites import Joining
from updraft.sim.workloads.workload import Arrival, Shape, burst, stream
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import Bought
from updraft.sim.world.fastpool import CLASSAD_LIFETIME
from updraft.sim.world.fastqueue import LEASE
from updraft.sim.world.pool import JobState, SimPool

ONE = Resources(1, 1000, 1024)
CLAIM_WORKLIFE = Pace().worklife


class World:
    """A pool with one fake cloud whose machines boot in exactly 20 s."""

    def __init__(self, static_slots: int | None = None, **boot: object) -> None:
        self.timeline = Agenda()
        boots = [{"start": "8s", "join": "12s", "spread": 0, **boot}]
        self.site = Site("f", site_settings("f", {"boots": boots}), self.timeline)
        self.cloud = FakeCloud(self.site, "p")
        self.worker = WorkerClass("w", "g", ("f",), static_slots=static_slots)
        self.pool = SimPool(self.timeline, Pace())
        Joining(self.site, "p", self.pool, self.timeline, self.kind)
        self._launches = 0

    def kind(self, bought: Bought) -> Kind:
        offer = CloudOffer(bought.cloud, bought.zone, bought.flavor, "on-demand", bought.resources)
        return imagine(self.worker, offer, "worker", "p", f"w/g/f/{bought.flavor}")

    def launch(self, flavor: str = "medium", count: int = 1) -> list[str]:
        self._launches += 1
        request = LaunchRequest(
            f"k{self._launches}", count, "worker", flavor, "a", "on-demand", b"", {TAG_CLASS: "w"}
        )
        return [one.id for one in self.cloud.launch(request)]

    def run(self, seconds: float) -> None:
        self.timeline.run_until(self.timeline() + seconds)

    def slots(self, machine: str = "") -> list[Slot]:
        found = self.pool.slots(5).view.slots
        return [slot for slot in found if not machine or slot.instance_id == machine]

    def submit(self, *jobs: Arrival) -> None:
        self.pool.submit(jobs)

    def states(self) -> dict[JobState, int]:
        return {state: sum(job.state is state for job in self.pool.jobs) for state in JobState}


def job(seconds: float = 60.0, owner: str = "ada", request: Resources = ONE, at: float = 0.0) -> Arrival:
    return Arrival(at, owner, request, seconds)


def test_a_machine_joins_when_its_boot_is_over() -> None:
    world = World()
    (machine,) = world.launch()
    world.run(19.9)
    assert world.slots() == []
    world.run(0.2)
    (slot,) = world.slots()
    assert (slot.instance_id, slot.cloud, slot.launch_key, slot.kind) == (machine, "f", "k1", "w/g/f/medium")
    assert slot.free == slot.total
    assert slot.name.split("@")[1] == machine
    assert slot.kind in world.pool.slots(5).templates


def test_jobs_run_on_rounded_dynamic_slots_and_complete() -> None:
    world = World()
    world.launch()
    world.submit(job(), job())
    world.run(27)
    (slot,) = world.slots()
    assert [child.resources.memory for child in slot.children] == [1024, 1024]
    assert slot.free == slot.total - slot.children[0].resources.times(2)
    assert slot.busy
    assert slot.job_starts == 2
    view = world.pool.demand("head", running=True, deadline=5)
    assert (view.idle_total, view.running_total) == (0, 2)
    assert view.running is not None
    assert view.running[0].slot.startswith("slot1_1@")
    world.run(62)
    assert world.states()[JobState.COMPLETED] == 2
    assert world.slots()[0].free == world.slots()[0].total


def test_a_claim_is_reused_by_its_user_until_its_worklife_ends() -> None:
    world = World()
    world.launch(flavor="small")
    world.submit(*[job(seconds=100, request=Resources(2, 1000, 1024)) for _ in range(20)])
    world.run(26 + CLAIM_WORKLIFE - 50)
    (slot,) = world.slots()
    assert slot.children[0].state == "Claimed"
    claims = {one.slot for one in world.pool.jobs if one.slot}
    assert len(claims) == 1
    world.run(400)
    assert len({one.slot for one in world.pool.jobs if one.slot}) == 2


def test_users_share_what_there_is() -> None:
    """By slots, not by cores: what a match leaves of a partitionable slot is its user's own."""
    world = World()
    world.launch(flavor="large", count=2)
    world.submit(*[job(1000, "ada") for _ in range(20)], *[job(1000, "bob") for _ in range(20)])
    world.run(30)
    running = [one.group.owner for one in world.pool.jobs if one.state is JobState.RUNNING]
    assert (running.count("ada"), running.count("bob")) == (8, 8)


def test_requirements_and_sizes_are_matched() -> None:
    world = World()
    world.launch(flavor="small")
    world.submit(
        job(request=Resources(4, 100, 100)), Arrival(0, "ada", ONE, 60, requirements='TARGET.Arch == "VAX"')
    )
    world.run(60)
    assert world.states()[JobState.IDLE] == 2


def test_static_slots_are_taken_whole() -> None:
    world = World(static_slots=2)
    world.launch()
    world.submit(job(), job(), job())
    world.run(30)
    assert [slot.state for slot in world.slots()] == ["Claimed", "Claimed"]
    assert world.states()[JobState.IDLE] == 1


def test_an_atomic_drain_is_refused_by_a_busy_machine() -> None:
    world = World()
    world.launch()
    world.submit(job())
    world.run(30)
    with pytest.raises(DrainRefused):
        world.pool.drain(world.slots(), DrainMode.EMPTY, "updraft test", 5)
    assert not world.slots()[0].draining


def test_an_atomic_drain_is_refused_between_two_jobs_too() -> None:
    world = World()
    world.launch(flavor="small")
    world.submit(*[job(seconds=1, request=Resources(2, 1000, 1024)) for _ in range(50)])
    world.run(26.0)
    for _ in range(100):
        (slot,) = world.slots()
        if slot.children and slot.children[0].activity == "Idle":
            break
        world.run(0.05)
    assert slot.children[0].activity == "Idle"
    with pytest.raises(DrainRefused):
        world.pool.drain([slot], DrainMode.EMPTY, "updraft test", 5)


def test_an_empty_machine_closes_at_once_and_leaves_within_seconds() -> None:
    world = World()
    world.launch()
    world.run(25)
    world.pool.drain(world.slots(), DrainMode.EMPTY, "updraft idle: test", 5)
    (slot,) = world.slots()
    assert slot.draining
    assert slot.drain_reason == "updraft idle: test"
    assert not slot.accepting
    world.submit(job())
    world.pool.undrain([slot], 5)
    world.run(5)
    assert world.slots() == []
    world.run(60)
    assert world.states()[JobState.IDLE] == 1


def test_a_busy_drain_lets_jobs_end_takes_no_new_ones_and_can_be_taken_back() -> None:
    world = World()
    world.launch()
    world.submit(job(), job(at=30))
    world.run(28)
    world.pool.drain(world.slots(), DrainMode.BUSY, "updraft lifetime: test", 5)
    world.run(100)
    assert world.states()[JobState.COMPLETED] == 1
    assert world.states()[JobState.IDLE] == 1
    assert (world.slots()[0].state, world.slots()[0].activity) == ("Drained", "Idle")
    world.pool.drain(world.slots(), DrainMode.EMPTY, "updraft idle: a second drain changes nothing", 5)
    world.run(20)
    assert world.slots()[0].drain_reason == "updraft lifetime: test"
    world.pool.undrain(world.slots(), 5)
    world.run(100)
    assert world.states()[JobState.COMPLETED] == 2


def test_a_schedd_believes_in_the_jobs_of_a_dead_machine_until_their_lease_ends() -> None:
    world = World()
    (machine,) = world.launch()
    world.submit(job(seconds=100))
    world.run(30)
    world.site.kill(machine)
    died = world.timeline()
    world.run(200)
    (running,) = world.pool.demand("head", running=True, deadline=5).running or ()
    assert machine in running.slot.split("@")
    assert running.lease_until == died + LEASE
    assert len(world.slots(machine)) == 1
    world.run(CLASSAD_LIFETIME)
    assert world.slots(machine) == []
    world.run(LEASE)
    assert world.states()[JobState.IDLE] == 1
    assert (world.pool.jobs[0].lost, world.pool.jobs[0].killed) == (1, 0)


def test_requeued_jobs_of_a_dead_machine_run_again() -> None:
    world = World()
    world.launch(count=2)
    world.submit(job(seconds=100))
    world.run(30)
    (running,) = world.pool.demand("head", running=True, deadline=5).running or ()
    world.site.kill(running.slot.split("@")[1])
    assert world.pool.requeue("head", [running.job_id], "another", 5) == ()
    assert world.pool.requeue("head", [running.job_id], running.slot.split("@")[1], 5) == (running.job_id,)
    world.pool.forget([slot.name for slot in world.slots(running.slot.split("@")[1])], 5)
    world.run(110)
    assert world.states()[JobState.COMPLETED] == 1
    world.run(LEASE + 10)
    assert world.pool.jobs[0].runs == 2


def test_a_job_on_a_machine_that_is_told_to_end_counts_as_killed() -> None:
    world = World()
    (machine,) = world.launch()
    world.submit(job())
    world.run(30)
    world.cloud.terminate([machine])
    assert world.pool.jobs[0].killed == 1


def test_requeueing_a_job_that_still_runs_counts_as_killed() -> None:
    world = World()
    world.launch()
    world.submit(job())
    world.run(30)
    job_, machine = world.pool.jobs[0], world.slots()[0].instance_id
    world.pool.requeue("head", [job_.id], machine, 5)
    assert world.pool.jobs[0].killed == 1
    assert world.slots()[0].children == ()


def test_a_restarted_collector_has_forgotten_its_machines_and_hears_of_them_again() -> None:
    world = World()
    world.launch()
    world.run(25)
    world.pool.announce(ControllerAd("c", "head", 0, 0), 600, 5)
    world.pool.restart_collector()
    answer = world.pool.slots(5).view
    assert answer.slots == ()
    assert answer.started == world.timeline()
    assert world.pool.controllers(5) == ()
    world.run(300)
    assert len(world.slots()) == 1


def test_a_silent_machine_works_on() -> None:
    world = World()
    (machine,) = world.launch()
    world.submit(job(seconds=2000))
    world.run(30)
    heard = world.slots()[0].heard
    world.pool.silence(machine, 1500)
    world.run(600)
    assert world.slots()[0].heard == heard
    world.run(400)
    assert world.slots() == []
    world.run(1100)
    assert len(world.slots()) == 1
    assert world.states()[JobState.COMPLETED] == 1


def test_a_schedd_that_is_down_times_out_and_its_jobs_run_on() -> None:
    world = World()
    world.launch()
    world.submit(job())
    world.run(30)
    world.pool.silence_schedd("head", world.timeline() + 100)
    with pytest.raises(PoolTimeout):
        world.pool.demand("head", running=False, deadline=5)
    world.run(100)
    assert world.pool.demand("head", running=False, deadline=5).running_total == 0


def test_a_machine_that_never_joins_is_never_shown() -> None:
    world = World(never_joins=1.0)
    world.launch()
    world.run(600)
    assert world.slots() == []


def test_controllers_show_until_their_ad_ends_or_is_withdrawn() -> None:
    world = World()
    first, second = ControllerAd("a", "h1", 0, 0), ControllerAd("b", "h2", 0, 0)
    world.pool.announce(first, 30, 5)
    world.pool.announce(second, 60, 5)
    assert world.pool.controllers(5) == (first, second)
    world.run(31)
    assert world.pool.controllers(5) == (second,)
    world.pool.retract(second, 5)
    assert world.pool.controllers(5) == ()


def test_the_same_seed_makes_the_same_jobs() -> None:
    shapes = (Shape(ONE, 10, weight=1), Shape(Resources(2, 1, 1), 20, weight=1))
    assert burst(50, over=9, shapes=shapes, seed=3) == burst(50, over=9, shapes=shapes, seed=3)
    assert burst(50, over=9, shapes=shapes, seed=3) != burst(50, over=9, shapes=shapes, seed=4)
    assert [one.at for one in stream(3, at=5, every=2)] == [5, 7, 9]


def test_what_is_due_at_one_time_happens_in_order() -> None:
    timeline, seen = Agenda(), list[int]()
    for number in (1, 2, 3):
        timeline.after(5, lambda number=number: seen.append(number))  # type: ignore[misc]
    timeline.after(1, lambda: seen.append(0))
    timeline.run_until(timeline() + 5)
    assert seen == [0, 1, 2, 3]
