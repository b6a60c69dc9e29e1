"""Who gets what in one cycle of the negotiator: outcomes worked out by hand from HTCondor's source.

docs/explanation/simulator.md says after which function of HTCondor 25.14 each rule is.
"""

from collections import Counter
from collections.abc import Mapping

from updraft.core.model import CloudOffer, Resources
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import kind_key
from updraft.sim.conditions import Pace
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import bought_as
from updraft.sim.world.fastpool import FastPool
from updraft.sim.world.fleet import Worker

GIB = 1024


class Pool:
    """A pool without a cloud: machines stand in it from the beginning, and cycles are asked for."""

    def __init__(self, *cores: int, static: int | None = None) -> None:
        self.agenda = Agenda()
        self.life = FastPool(Pace(), self.agenda, schedds=("head",))
        for number, cpus in enumerate(cores, start=1):
            self.joins(f"m{number}", cpus, static)

    def joins(self, name: str, cpus: int, static: int | None) -> None:
        size = Resources(cpus, cpus * 4 * GIB, 100 * GIB * GIB)
        sold = CloudOffer("f", "a", f"c{cpus}", "on-demand", size, 0.1)
        worker = WorkerClass("w", "g", ("f",), static_slots=static)
        kind = imagine(worker, sold, "image", "p", kind_key("w", "g", "f", sold.flavor, ""))
        self.life.joins(Worker(name, bought_as(sold, "image", {}), kind, self.agenda.now))

    def submit(self, owner: str, *cores: int, priority: int = 0, schedd: str = "head") -> None:
        for cpus in cores:
            request = Resources(cpus, 100, 100)
            self.life.submit(Arrival(0.0, owner, request, 1000.0, priority=priority, schedd=schedd))

    def cycle(self) -> None:
        self.life.negotiate()
        self.agenda.run_until(self.agenda.now + 2)

    def placed(self) -> Mapping[str, list[tuple[str, int]]]:
        """By machine: whose jobs run there, and of how many cores."""
        found: dict[str, list[tuple[str, int]]] = {}
        for name, machine in self.life.machines.items():
            claims = [claim for room in machine.rooms for claim in room.claims if claim.running]
            found[name] = sorted((claim.group.owner, claim.group.request.cpus) for claim in claims)
        return found

    def jobs_on(self) -> list[int]:
        return [len(found) for found in self.placed().values()]

    def cores_of(self) -> Counter[str]:
        cores = Counter[str]()
        for owner, cpus in (one for found in self.placed().values() for one in found):
            cores[owner] += cpus
        return cores


def test_the_negotiator_gives_a_slot_one_match_a_cycle() -> None:
    """Three jobs would fit on one machine: a matched slot leaves the list (negotiate, 2g)."""
    pool = Pool(8, 8, 8)
    pool.submit("ada", 1, 1, 1)
    pool.cycle()
    assert pool.jobs_on() == [1, 1, 1]


def test_a_matched_slot_isnt_matched_again_where_it_is_like_another_now() -> None:
    """ada's five cores make the second machine like the first, and her next takes that: none for bob."""
    pool = Pool(8)
    pool.life.factors.update(ada=1.0)
    pool.submit("carl", 5)
    pool.cycle()
    pool.joins("m2", 8, None)
    pool.submit("ada", 5, 1)
    pool.submit("bob", 1)
    pool.cycle()
    assert pool.placed() == {"m1": [("ada", 1), ("carl", 5)], "m2": [("ada", 5)]}


def test_leftovers_are_filled_in_turn_a_job_each() -> None:
    """The leftovers' claims are queued behind those that were asked for before (enqueueStartdContact)."""
    pool = Pool(8, 8, 8)
    pool.submit("ada", *[1] * 7)
    pool.cycle()
    assert pool.jobs_on() == [3, 2, 2]


def test_the_slot_with_the_fewest_free_cores_is_matched_first() -> None:
    """-100000 * Cpus in NEGOTIATOR_PRE_JOB_RANK; memory decides between equals."""
    pool = Pool(8, 4, 16)
    pool.submit("ada", 1)
    pool.cycle()
    assert pool.jobs_on() == [0, 1, 0]
    pool.submit("ada", 1, 1)
    pool.cycle()
    assert pool.jobs_on() == [1, 2, 0], "three free cores before eight; then eight before sixteen"


def test_small_jobs_spread_over_the_machines_that_large_ones_need() -> None:
    """Eight cores for eight, and yet both large jobs wait: as it was seen on real pools."""
    pool = Pool(2, 2, 2, 2)
    pool.submit("ada", 1, 1, 1, 1, 2, 2)
    pool.cycle()
    assert pool.jobs_on() == [1, 1, 1, 1]
    assert pool.cores_of()["ada"] == 4
    large_first = Pool(2, 2, 2, 2)
    large_first.submit("ada", 2, 2, 1, 1, 1, 1)
    large_first.cycle()
    assert large_first.cores_of()["ada"] == 8


def test_leftovers_go_by_priority_then_age_and_what_doesnt_fit_is_passed_over() -> None:
    """FindRunnableJob walks the user's jobs in their order and takes the first that matches."""
    pool = Pool(8)
    pool.submit("ada", 3, 6, 2, 1)
    pool.submit("ada", 4, priority=5)
    pool.cycle()
    assert pool.placed()["m1"] == [("ada", 1), ("ada", 3), ("ada", 4)], "4 first, 3, not 6, not 2, 1"


def test_what_is_left_of_a_slot_is_its_submitters_own() -> None:
    """FindRunnableJob looks at the matched user's jobs only: one slot is one user's, whatever the shares."""
    pool = Pool(8)
    pool.submit("ada", *[1] * 20)
    pool.submit("bob", *[1] * 20)
    pool.cycle()
    assert pool.cores_of() == {"ada": 8}
    two = Pool(8, 8)
    two.submit("ada", *[1] * 20)
    two.submit("bob", *[1] * 20)
    two.cycle()
    assert two.cores_of() == {"ada": 8, "bob": 8}


def test_what_a_user_leaves_of_a_slot_is_another_s_in_the_next_cycle() -> None:
    pool = Pool(8)
    pool.submit("ada", 1, 1)
    pool.submit("bob", *[1] * 20)
    pool.cycle()
    assert pool.cores_of() == {"ada": 2}
    pool.cycle()
    assert pool.cores_of() == {"ada": 2, "bob": 6}


def test_a_slot_is_filled_for_the_schedd_that_claimed_it() -> None:
    """Leftovers go back to the schedd that asked for the claim: its jobs, not those of another schedd."""
    pool = Pool(4)
    pool.submit("ada", 1, schedd="a")
    pool.submit("ada", 1, 1, schedd="b")
    pool.cycle()
    assert pool.jobs_on() == [1]
    pool.cycle()
    assert pool.jobs_on() == [3]


def test_a_whole_slot_counts_against_the_share_and_the_first_may_exceed_it() -> None:
    """Eight cores, ada with twice bob's part: limits of 5.33 and 2.67, by slots of two.

    Spin 1: ada two slots (a third would be 6 > 5.33), bob one. Spin 2: ada 1.33 left, rounded up to a slot,
    and nothing is left of the pie for bob.
    """
    pool = Pool(2, 2, 2, 2)
    pool.life.factors.update(ada=500.0, bob=1000.0)
    pool.submit("ada", *[1] * 20)
    pool.submit("bob", *[1] * 20)
    pool.cycle()
    assert pool.cores_of() == {"ada": 6, "bob": 2}


def test_a_slot_counts_whole_even_where_one_job_runs_in_it() -> None:
    """ada's first two matches are worth all of her share, sixteen cores, though she has one core on each."""
    pool = Pool(8, 8, 8, 8)
    pool.submit("ada", *[1] * 3)
    pool.submit("bob", *[1] * 2)
    pool.cycle()
    assert pool.placed() == {
        "m1": [("ada", 1), ("ada", 1)],
        "m2": [("ada", 1)],
        "m3": [("bob", 1)],
        "m4": [("bob", 1)],
    }


def test_who_only_runs_has_a_part_in_the_first_spin_and_leaves_it_in_the_second() -> None:
    """Both new slots come to ada in one cycle: carl's part is nearly all, but he waits for nothing."""
    pool = Pool(2)
    pool.life.factors.update(carl=1.0)
    pool.submit("carl", 2)
    pool.cycle()
    for name in ("m2", "m3"):
        pool.joins(name, 2, None)
    pool.submit("ada", 2, 2)
    pool.cycle()
    assert pool.cores_of() == {"carl": 2, "ada": 4}


def test_the_least_priority_goes_first() -> None:
    """Who was seen to use the pool stands behind who comes new, though his name is first."""
    pool = Pool(8)
    pool.submit("ada", 8)
    for _ in range(3):
        pool.cycle()
        pool.agenda.run_until(pool.agenda.now + 400)
    assert pool.cores_of() == {}, "the job of 1,000 s is done"
    pool.submit("ada", 8)
    pool.submit("bob", 8)
    pool.cycle()
    assert pool.cores_of() == {"bob": 8}


def test_static_slots_have_no_leftovers() -> None:
    pool = Pool(8, static=2)
    pool.submit("ada", 1, 1, 1)
    pool.cycle()
    assert pool.jobs_on() == [2]
