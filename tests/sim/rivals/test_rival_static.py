"""A static pool: sized by the peak, the mean or a number; whole from the start, given back at the end."""

import pytest

from tests.rigs.sim.stage import LARGE, ONE, SMALL, Stage, ended, launched
from updraft.core.model import Resources
from updraft.errors import UsageError
from updraft.sim.rivals.static import MEAN, PEAK, Static, pool_size
from updraft.sim.workloads.workload import Arrival


def job(at: float, seconds: float, cpus: int = 1) -> Arrival:
    return Arrival(at, "ada", Resources(cpus, 1024, 1024), seconds)


WORK = (job(0, 100), job(0, 100), job(0, 100), job(100, 100), job(100, 100, 2), job(300, 100))


@pytest.mark.parametrize(("size", "cores", "machines"), [(PEAK, 1, 3), (PEAK, 2, 2), (MEAN, 2, 1)])
def test_its_size_is_what_the_jobs_would_fill(size: str, cores: int, machines: int) -> None:
    work = WORK if cores > 1 else tuple(one for one in WORK if one.request.cpus == 1)
    assert pool_size(work, Resources(cores, 8192, 10_000), size) == machines


def test_memory_counts_where_it_is_what_fills_a_machine() -> None:
    work = [Arrival(0, "ada", Resources(1, 4096, 1024), 60)] * 4
    assert pool_size(work, Resources(8, 8192, 10_000)) == 2


def test_an_unknown_size_is_told() -> None:
    with pytest.raises(UsageError, match="median"):
        pool_size(WORK, Resources(2, 8192, 10_000), "median")


def test_it_is_there_from_the_start_in_one_call_whatever_the_queue_says() -> None:
    there = Stage(Static(machines=7, flavor=SMALL))
    assert launched(there.look()) == 7
    assert there.calls == 1
    there.join()
    assert not there.look(60).actions
    there.waiting(1000)
    assert not there.look(60).actions


def test_a_machine_that_is_lost_is_replaced() -> None:
    there = Stage(Static(machines=3, flavor=SMALL))
    there.look()
    there.join()
    there.boxes.popitem()
    assert launched(there.look(60)) == 1


def test_it_is_given_back_when_all_is_done() -> None:
    there = Stage(Static(PEAK, WORK, flavor=SMALL))
    there.look()
    there.join()
    there.waiting(2)
    there.looks(600, 60)
    assert len(there.boxes) == 2
    there.fill()
    there.look(60)
    assert len(there.boxes) == 2
    for name in there.boxes:
        there.run(name)
    assert len(ended(there.look(60))) == 2
    assert not there.look(60).actions


def test_the_sites_limits_hold_for_it_and_are_its_size_without_anything_else() -> None:
    there = Stage(Static(machines=70, flavor=LARGE), cores=24)
    assert launched(there.look()) == 3
    there = Stage(Static(flavor=SMALL), machines=4)
    assert launched(there.look()) == 4
    with pytest.raises(UsageError, match="static pool"):
        Stage(Static(flavor=SMALL)).look()


def test_its_flavor_is_the_cheapest_per_core_that_holds_the_largest_job() -> None:
    for cpus, flavor in ((1, LARGE), (2, LARGE)):  # large is cheaper per core here
        there = Stage(Static(PEAK, [job(0, 60, cpus)]))
        there.look()
        assert {box.instance.flavor for box in there.boxes.values()} == {flavor}
    there = Stage(Static(PEAK, [Arrival(0, "ada", ONE, 60)], flavor=SMALL))
    there.look()
    assert {box.instance.flavor for box in there.boxes.values()} == {SMALL}
