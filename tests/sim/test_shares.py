"""Twenty users under a cap: what each gets of a simulated pool, and what the negotiator would share out."""

import pytest

from tests.rigs.fairness import fair
from tests.rigs.sim.simtools import ONE, Watch, engine
from updraft.core.settings import Limits, Policy, Timings, WorkerClass
from updraft.sim.engine import Engine
from updraft.sim.workloads.workload import Arrival

CAP = 160
USERS = [f"u{n:02}" for n in range(20)]
FACTORS = dict(zip(USERS, [500.0, 1000.0, 2000.0, 1000.0, 1500.0] * 4, strict=True))
WANTS = {name: [300, 60, 2, 25, 8][n % 4 + n // 16] for n, name in enumerate(USERS)}


def two_classes(limits: Limits) -> Policy:
    """Machines that differ by a mark: users of one kind can do nothing with those of the other."""
    classes = [
        WorkerClass(name, "g1", ("f",), images={"f": "worker"}, attributes={"Mark": f'"{name}"'})
        for name in ("even", "odd")
    ]
    return Policy("p", {one.name: one for one in classes}, limits, timings=Timings(cycle=10.0, trial=1000))


def demand(seconds: float) -> list[Arrival]:
    return [
        Arrival(1.0, name, ONE, seconds, requirements=f'TARGET.Mark == "{"odd" if n % 2 else "even"}"')
        for n, name in enumerate(USERS)
        for _ in range(WANTS[name])
    ]


def running(sim: Engine) -> dict[str, int]:
    """Cores by user, by the claims of all machines."""
    cores = dict.fromkeys(USERS, 0)
    for machine in sim.pool.machines.values():
        for claim in (claim for room in machine.rooms for claim in room.claims):
            cores[claim.group.owner] += claim.share.cpus
    return cores


@pytest.mark.slow
def test_twenty_users_get_what_the_negotiator_shares_out() -> None:
    """Each within a tenth (or one core) of the formula, though each can use only half of the machines."""
    sim = engine(two_classes(Limits(cores=CAP)), workload=demand(7200.0))
    sim.pool.factors.update(FACTORS)
    watch = Watch(sim)
    sim.run(300.0)
    watch.look()
    got, share = running(sim), fair(CAP, WANTS, FACTORS)
    assert sum(got.values()) >= 0.97 * CAP
    for name in USERS:
        assert abs(got[name] - share[name]) <= max(0.1 * share[name], 1.0), (name, got, share)
