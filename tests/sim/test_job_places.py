"""Jobs that ask for a zone or a market, in both simulated worlds: each runs where it asked to."""

from collections import Counter

import numpy as np
import pytest

from tests.rigs.sim.simtools import engine, policy
from updraft.core.model import CloudOffer, Resources
from updraft.core.settings import Policy
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.simulation import Boots, Conditions, SimCloud, simulate

SIZE = Resources(2, 8192, 40 << 20)
ONE = Resources(1, 1000, 1024)
PLACES = [(zone, market) for zone in ("a", "b") for market in ("on-demand", "spot")]
# Where somebody may go who asks for nothing else: the cheapest is of no use to whom another place is needed.
PRICES = {place: 0.1 * rank for rank, place in enumerate(PLACES, 1)}

WISHES = {
    ("b", "on-demand"): 'TARGET.UpdraftZone == "b" && TARGET.UpdraftMarket =!= "spot"',
    ("a", "spot"): 'TARGET.UpdraftZone == "a" && TARGET.UpdraftMarket == "spot"',
    ("b", "spot"): 'TARGET.UpdraftZone == "b" && TARGET.UpdraftMarket == "spot"',
}


def wishes() -> Policy:
    return policy(markets=("on-demand", "spot"), idle_limit=1800.0)


def work(each: int = 3) -> list[Arrival]:
    """Each wish's jobs, when machines of other places stand idle beside them."""
    return [
        Arrival(at=600.0 * turn, owner="ada", request=ONE, seconds=300.0, requirements=wish)
        for turn, wish in enumerate(WISHES.values())
        for _ in range(each)
    ]


def test_in_the_fast_world_a_job_runs_in_the_place_that_it_asks_for() -> None:
    sold = [CloudOffer("f", zone, "m", market, SIZE, PRICES[zone, market]) for zone, market in PLACES]
    conditions = Conditions(boots=Boots(median=30.0, spread=0.0))
    outcome = simulate(work(), wishes(), {"f": SimCloud(tuple(sold))}, conditions=conditions)
    assert not np.isnan(outcome.jobs.ended).any(), "each job ran"
    bought = Counter(outcome.machines.price.tolist())
    assert bought == {PRICES[place]: 2 for place in WISHES}, "two machines hold three jobs of each wish"
    assert (outcome.jobs.first_start - outcome.jobs.submitted).max() < 300, "at once, not when others leave"


@pytest.mark.slow
def test_in_the_daemon_s_own_world_too() -> None:
    boots = [{"start": "10s", "join": "20s", "spread": 0.0}]
    flavor = {"cpus": 2, "memory": "8GiB", "disk": "40GiB", "price": 0.1, "spot_price": 0.05}
    tuning = {"zones": ["a", "b"], "flavors": {"m": flavor}, "boots": boots}
    made = engine(wishes(), {"f": tuning}, workload=work())
    assert made.run(7200, lambda: len(made.pool.jobs) == 9 and made.pool.finished())
    for machine in made.pool.machines.values():
        starts = sum(room.starts for room in machine.rooms)
        place = (machine.bought.zone, machine.bought.market)
        assert starts, f"{place} was bought for nothing"
        assert place in WISHES
    assert made.result().launched == 2 * len(WISHES)
