"""One world: what is made fast for whole traces decides and does what the daemon's parts do on a fake cloud.

Both have the same pool, the same clouds and the same controller. What differs is compared here, action by
action: the ledger that forgets, verdicts and machines that are remembered from look to look, and looks at
which nothing is decided.
"""

from dataclasses import replace
from typing import Any

import pytest

from updraft.clouds.fake import site_settings
from updraft.core.model import (
    CloudOffer,
    Drain,
    Launch,
    Plan,
    Resources,
    Snapshot,
    Terminate,
)
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Limits, Policy, Spare, Timings, WorkerClass
from updraft.sim.conditions import Boots, Conditions, Pace, SimCloud
from updraft.sim.engine import Engine
from updraft.sim.workloads.workload import Arrival, Shape, burst, stream
from updraft.sim.world.simulation import World

GIB = 1024
ONE = Resources(1, 1000, 1024)
SMALL = Resources(2, 8 * GIB, 40 * 1024 * 1024)
LARGE = Resources(8, 32 * GIB, 40 * 1024 * 1024)
PRICES = {"small": (SMALL, 0.1), "large": (LARGE, 0.36)}
HOUR = 3600.0
Told = list[tuple[float, str]]


class Both:
    """One workload in the two worlds, each with what was done in it: seconds from the beginning, and what."""

    def __init__(self, policy: Policy, work: list[Arrival], cycle: float, **cloud: Any) -> None:
        self.policy = replace(policy, timings=Timings(cycle=cycle))
        self.work = work
        self.cycle = cycle
        self.cloud = cloud
        # Where room is kept ready it never ends by itself.
        kept = any(worker.spare for worker in policy.classes.values())
        self.horizon = 2400.0 if kept else None

    def fake(self) -> tuple[Told, dict[str, int], list[Any]]:
        """On the fake driver, with every decision made anew."""
        flavors = {
            name: {"cpus": size.cpus, "memory": f"{size.memory}MiB", "disk": "40GiB", "price": price}
            for name, (size, price) in PRICES.items()
        }
        boot = {"start": "12s", "join": "18s", "spread": 0.0}
        quota = {f"quota_{name}": most for name, most in self.cloud.items()}
        settings = site_settings("f", {"zones": ["a"], "flavors": flavors, "boots": [boot], **quota})
        pace = Pace(negotiation=5.0, first=2.5)
        engine, told = Engine(self.policy, {"f": settings}, self.work, pace=pace), Told()

        def hears(snapshot: Snapshot, made: Plan) -> None:
            told.extend(_told(snapshot, made, engine._begun))

        engine.on_cycle.append(hears)
        pool = engine.pool
        over = engine.run(
            self.horizon or 4 * HOUR,
            lambda: (
                not self.horizon
                and len(pool.jobs) == len(self.work)
                and pool.finished()
                and not engine.alive()
            ),
        )
        assert over or self.horizon
        ended = [job.ended_at and round(job.ended_at - engine._begun, 3) for job in pool.jobs]
        return told, engine.result().calls, ended

    def columns(self) -> tuple[Told, dict[str, int], list[Any]]:
        """In the world for whole traces."""
        offers = tuple(
            CloudOffer("f", "a", name, "on-demand", size, price) for name, (size, price) in PRICES.items()
        )
        conditions = Conditions(
            cycle=self.cycle, negotiation=5.0, boots=Boots(30.0, 0.0), horizon=self.horizon
        )
        clouds = {"f": SimCloud(offers, **self.cloud)}
        world, told = World(self.work, self.policy, clouds, core_plan, conditions), Told()
        decide = world.decide

        def hears(snapshot: Snapshot, policy: Policy) -> Plan:
            made = decide(snapshot, policy)
            told.extend(_told(snapshot, made, conditions.begins))
            return made

        world.decide = hears
        outcome = world.run()
        assert outcome.decisions <= outcome.cycles
        return told, dict(outcome.calls), [round(float(at), 3) for at in outcome.jobs.ended]


def _told(snapshot: Snapshot, made: Plan, begun: float) -> Told:
    """What is done, with all that it says."""
    at = round(snapshot.now - begun, 3)
    return [(at, repr(action)) for action in made.actions]


def policy(limits: Limits = Limits(), **worker: Any) -> Policy:  # noqa: B008 - frozen
    made = WorkerClass("w", "g1", ("f",), **{"images": {"f": "worker"}, "idle_limit": 120.0, **worker})
    return Policy("p", {"w": made}, limits)


SHAPES = (Shape(ONE, 90.0, weight=4), Shape(Resources(2, 3000, 1024), 200.0))
TWO_BURSTS = [
    *burst(40, over=60, shapes=SHAPES, seed=1),
    *burst(30, at=900, over=300, shapes=SHAPES, seed=6),
]
LONG = stream(20, every=100.0, shape=Shape(ONE, 400.0, spread=0.0))
SPARE = Spare(3, ONE)


@pytest.mark.parametrize(
    ("both", "kinds"),
    [
        (Both(policy(), TWO_BURSTS, 20.0), (Launch, Drain, Terminate)),
        (Both(policy(Limits(cores=12)), TWO_BURSTS, 20.0, machines=7), (Launch, Drain, Terminate)),
        (Both(policy(lifetime=900.0, drain_deadline=HOUR), LONG, 30.0), (Launch, Drain, Terminate)),
        (Both(policy(spare=(SPARE,)), TWO_BURSTS, 20.0), (Launch, Drain, Terminate)),
    ],
    ids=["bursts", "limits", "lifetimes", "spare"],
)
def test_the_world_in_columns_does_what_the_daemon_s_parts_do(both: Both, kinds: tuple[type, ...]) -> None:
    right, calls, ended = both.fake()
    told, counted, done = both.columns()
    assert told == right
    assert done == ended
    assert counted == calls
    for kind in kinds:
        assert any(text.startswith(kind.__name__) for _, text in right), f"no {kind.__name__} was compared"
