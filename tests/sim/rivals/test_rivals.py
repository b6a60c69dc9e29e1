"""All rivals: the registry, and each on small mixed workloads in both simulators, to the end."""

import inspect
import time
from dataclasses import replace

import pytest

from tests.rigs.sim.simtools import engine, shape
from tests.rigs.sim.simtools import policy as site_policy
from tests.rigs.sim.stage import ONE, Stage, launched
from tests.rigs.snapshots import NOW, group, instance, offer, policy, slot, snapshot
from updraft.core.model import Drain, Launch, Resources, Snapshot, Terminate
from updraft.core.settings import Limits
from updraft.sim.conditions import Conditions, Pace, example_clouds, example_policy
from updraft.sim.rivals import RIVALS, Rival
from updraft.sim.rivals.buying import OneFlavor
from updraft.sim.rivals.google import Google
from updraft.sim.workloads.workload import Arrival, burst, bursts, stream
from updraft.sim.world.simulation import simulate

HOUR = 3600.0
ALL = pytest.mark.parametrize("rival", RIVALS.values(), ids=lambda rival: rival.name)
MIXED = (
    *burst(30, over=60.0, shapes=(shape(300), shape(900, Resources(4, 6000, 1024))), owners=("ada", "grace")),
    *burst(10, at=2000.0, over=60.0, shapes=(shape(120, Resources(1, 3500, 1024)),), owners=("kay",)),
    *stream(30, at=100.0, every=60.0, shape=shape(45)),
)


def test_the_registry_names_them_all() -> None:
    wanted = {
        "elastiq-default", "elastiq-sample", "elastiq-ecm", "cloud-scheduler", "csv2", "google", "cobald",
        "glideinwms", "static",
    }  # fmt: skip
    assert wanted <= set(RIVALS)
    for name, rival in RIVALS.items():
        assert rival.name == name
        assert rival.cycle > 0
        assert rival.about
        assert rival.source
        assert rival.factory() is not rival.factory(), "each simulation has one of its own"
        assert inspect.getdoc(inspect.getmodule(getattr(rival.factory, "func", rival.factory)))


@ALL
def test_it_runs_a_mixed_workload_to_the_end_in_the_fast_simulator(rival: Rival) -> None:
    made = simulate(
        MIXED,
        example_policy(),
        example_clouds(),
        decide=rival.factory(MIXED),
        conditions=Conditions(cycle=max(rival.cycle, 30.0), horizon=12 * HOUR),
    )
    assert int((made.jobs.ended > 0).sum()) == len(MIXED)
    assert made.killed == 0
    assert len(made.machines) > 0


@ALL
def test_it_runs_in_the_daemons_own_loop(rival: Rival) -> None:
    work = burst(20, over=30.0, shapes=(shape(200), shape(200, Resources(2, 3000, 1024))))
    sim = engine(
        site_policy(timings={"cycle": max(rival.cycle, 15.0)}),
        {"f": {}},
        workload=work,
        decide=rival.factory(work),
    )
    assert sim.run(4 * HOUR, lambda: bool(sim.pool.jobs) and sim.pool.finished())
    assert sim.result().killed == 0


@ALL
def test_it_keeps_to_the_sites_limits(rival: Rival) -> None:
    work = tuple(bursts(1.0, mean_gap=600.0, mean_size=30.0, seed=3))
    limits = Limits(machines=4, cores=16)
    made = simulate(
        work,
        replace(example_policy(), limits=limits),
        example_clouds(),
        decide=rival.factory(work),
        conditions=Conditions(cycle=max(rival.cycle, 30.0), horizon=2 * HOUR),
    )
    assert sum(made.violations.values()) == 0
    assert len(made.machines) > 0


@ALL
def test_the_same_snapshots_give_the_same_plans(rival: Rival) -> None:
    def plans() -> list[object]:
        there = Stage(rival.factory(MIXED))
        found: list[object] = []
        for turn in range(40):
            there.waiting((turn * 7) % 23, "ada")
            there.waiting((turn * 5) % 11, "grace", Resources(2, 2000, 1024))
            found.append(there.look(15.0))
            there.join()
            there.fill("ada")
            if turn % 3 == 0:
                for box in there.joined():
                    box.jobs = []
        return found

    assert plans() == plans()


@pytest.fixture(scope="module")
def thousands() -> Snapshot:
    names = [f"i-{number}" for number in range(3000)]
    return snapshot(
        instances=[instance(name) for name in names],
        slots=[slot(name, busy=number % 5 > 0) for number, name in enumerate(names)],
        groups=[group(f"g{number}", idle=10, owner=f"u{number % 200}") for number in range(500)],
    )


@ALL
def test_a_look_at_thousands_of_machines_takes_milliseconds(rival: Rival, thousands: Snapshot) -> None:
    here = thousands
    decide = rival.factory(MIXED)
    decide(here, policy())
    best = 1e9
    for turn in range(1, 4):
        later = replace(here, now=NOW + turn * 60.0)
        begun = time.thread_time()
        decide(later, policy())
        best = min(best, time.thread_time() - begun)
        if best < 0.25:
            break
    assert best < 0.25, "a loop over machines times groups would take seconds"


# -------------------------------------------------------------------------------------------- one flavor


def chosen(shapes: tuple[Resources, ...], jobs: int | None = None, **prices: float | None) -> str:
    flavor = OneFlavor(jobs=jobs)
    flavor.see_workload(Arrival(0, "ada", one, 60) for one in shapes)
    sold = [offer(name, price=price) for name, price in prices.items()]
    found = flavor.offer(snapshot(offers=sold))
    return found.flavor if found is not None else ""


@pytest.mark.parametrize(
    ("shapes", "jobs", "small", "large", "expected"),
    [
        ((ONE,), None, 0.1, 0.36, "large"),  # 0.05 against 0.045 for a core
        ((ONE,), None, 0.1, 0.4, "small"),  # of equals the smallest
        ((ONE, Resources(4, 4000, 1024)), None, 0.1, 0.9, "large"),  # the largest job must fit
        ((ONE, Resources(64, 4000, 1024)), None, 0.1, 0.9, "small"),  # one that fits nowhere doesn't count
        ((ONE,), 4, 0.1, 0.36, "small"),  # who counts on four jobs pays 0.09 for each on the large one
        ((ONE,), 4, 0.2, 0.36, "large"),
        ((ONE,), None, None, None, "small"),
    ],
)
def test_the_one_flavor_of_those_that_know_no_more(
    shapes: tuple[Resources, ...],
    jobs: int | None,
    small: float | None,
    large: float | None,
    expected: str,
) -> None:
    assert chosen(shapes, jobs, small=small, large=large) == expected


def test_a_larger_job_that_comes_later_moves_the_choice() -> None:
    there = Stage(Google())
    there.offers = [offer("small", price=0.05), offer("large")]
    there.waiting(2)
    there.look()
    there.waiting(1, "grace", Resources(8, 1024, 1024))
    there.look(60)
    assert [box.instance.flavor for box in there.boxes.values()] == ["small", "large"]


def test_spot_offers_are_not_bought() -> None:
    for rival in RIVALS.values():
        there = Stage(rival.factory(machines=3) if rival.name.startswith("static") else rival.factory())
        there.offers = [offer("small", market="spot", price=0.01)]
        there.waiting(50)
        assert not any(map(launched, there.looks(300, 30))), rival.name


# ----------------------------------------------------------------------------------------------- killing


def test_who_deletes_without_a_drain_kills_jobs_that_land_in_between() -> None:
    """Google's: a job that is matched between the look and the deletion dies with its machine."""
    work = stream(300, at=1.0, every=23.0, shape=shape(10))
    sim = engine(
        site_policy(timings={"cycle": 60.0}),
        {"f": {"boots": [{"start": "5s", "join": "5s", "spread": 0.0}]}},
        workload=work,
        decide=Google(work),
        latency=20.0,
        pace=Pace(negotiation=5.0, start=0.5),
    )
    sim.run(3 * HOUR)
    assert sim.result().killed > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["csv2", "cobald", "glideinwms"])
def test_those_that_retire_machines_kill_nothing(name: str) -> None:
    work = stream(100, at=1.0, every=23.0, shape=shape(10))
    sim = engine(
        site_policy(timings={"cycle": 30.0}),
        {"f": {"boots": [{"start": "5s", "join": "5s", "spread": 0.0}]}},
        workload=work,
        decide=RIVALS[name].factory(work),
        latency=20.0,
        pace=Pace(negotiation=5.0, start=0.5),
    )
    acted: set[type] = set()
    sim.on_cycle.append(lambda _snapshot, made: acted.update(type(action) for action in made.actions))
    sim.run(HOUR)
    assert acted == {Launch, Drain, Terminate}
    assert sim.result().killed == 0


def test_cloud_scheduler_ends_machines_of_types_without_a_job_as_they_are() -> None:
    """It retires peacefully what is too much, and ends at once what nobody has a job for."""
    work = stream(100, at=1.0, every=23.0, shape=shape(10))
    sim = engine(
        site_policy(timings={"cycle": 30.0}),
        {"f": {"boots": [{"start": "5s", "join": "5s", "spread": 0.0}]}},
        workload=work,
        decide=RIVALS["cloud-scheduler"].factory(work),
        latency=20.0,
        pace=Pace(negotiation=5.0, start=0.5),
    )
    sim.run(HOUR)
    assert sim.result().killed > 0
