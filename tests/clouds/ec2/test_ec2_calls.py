"""How many calls a pool of a thousand machines takes while nothing happens."""

from collections import Counter

import pytest

from tests.rigs.clouds.ec2endpoint import Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.paced import Paced

MACHINES, CYCLE = 300, 2.0


@pytest.mark.slow
def test_a_quiet_pool_of_hundreds_of_machines_takes_twelve_calls_a_minute(served: Served) -> None:
    harness = EC2Harness(served, page_size=1000)
    harness.set_quota(2000)
    driver = harness.driver()
    now = 0.0
    paced = Paced(driver, driver.cloud.traits.pace, clock=lambda: now)
    (made,) = paced.launch(request(harness))
    harness.wait(lambda: bool(driver.machines()[0].address), "it is listed")
    harness.endpoint.multiply(made.id, MACHINES - 1)
    harness.wait(lambda: harness.endpoint.state(made.id) == "running", "it runs")
    paced.offers()
    paced.quota()
    assert len(paced.machines()) == MACHINES
    now = 250.0  # in the minute to come everything is due: machines, quota, and what is sold
    harness.endpoint.log.clear()
    for _ in range(int(60 / CYCLE)):
        now += CYCLE
        assert len(paced.aged_machines().value) == MACHINES
        assert paced.quota().machines == 2000 - MACHINES
        paced.offers()
    calls = Counter(call.action for call in harness.endpoint.calls())
    print(f"calls in a minute: {calls.total()} {sorted(calls.items())}")  # noqa: T201
    assert calls.total() <= 12
    assert calls["DescribeInstances"] >= 5, "it was looked at"
    assert calls["DescribeAccountAttributes"] >= 1
    assert calls["DescribeSpotPriceHistory"] >= 1


@pytest.mark.parametrize("count", [1, 500])
def test_no_launch_is_more_than_one_call(served: Served, count: int) -> None:
    harness = EC2Harness(served)
    harness.endpoint.quirks.capacity[f"{harness.zone}/{harness.flavor}"] = 3
    driver = harness.driver(lacks=[])
    driver.launch(request(harness))
    harness.endpoint.log.clear()
    driver.launch(request(harness, count))
    assert [call.action for call in harness.endpoint.calls()] == ["RunInstances"]
