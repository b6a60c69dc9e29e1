"""What becomes of the whole loop when a cloud refuses: wrong credentials, throttling, no room, dear spot."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.rigs.rig import Rig, policy
from updraft.clouds.base import LaunchRequest
from updraft.clouds.fake import FakeCloud, Fault
from updraft.core.model import Instance
from updraft.core.settings import Policy
from updraft.errors import NoCapacity

DRAINS_AND_ENDS = {"drain", "terminate", "requeue-jobs", "forget", "gone"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def made(rig: Rig) -> int:
    """How many machines were ever made."""
    return len(rig.site.instances)


def done(rig: Rig) -> list[str]:
    assert rig.ledger is not None
    return [event.kind for event in rig.ledger.events()]


def test_wrong_credentials_at_the_start_are_waited_out_and_said_once(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    begin = rig.clock()
    rig.site.faults.add(Fault("auth-failed", call="*", until=begin + 300))
    with capture_logs() as log:
        daemon = rig.start()
        rig.turn(daemon, 298)
        assert made(rig) == 0
        assert "launch" not in done(rig)
        rig.turn(daemon, 120)
    assert rig.pool.queues["schedd"].idle == 0, "the jobs run as soon as the credentials are right"
    assert made(rig) <= 2
    said = [line["event"] for line in log]
    assert len([text for text in said if text.startswith("cloud c1: machines: no answer")]) == 1
    assert said.count("cloud c1: machines: answers again") == 1


@pytest.mark.slow
def test_credentials_that_go_wrong_in_mid_run_cost_no_job_and_double_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 4
    daemon = rig.start()
    rig.turn(daemon, 40)
    before, events = rig.alive(), done(rig)
    assert before
    assert rig.pool.queues["schedd"].idle == 0
    begin = rig.clock()
    rig.site.faults.add(Fault("auth-failed", call="*", start=begin, until=begin + 600))
    rig.pool.queues["schedd"].idle = 4  # wanted meanwhile, as much as is there already
    rig.turn(daemon, 598)
    assert rig.alive() == before, "nothing is launched and nothing ended by one who is refused"
    assert not DRAINS_AND_ENDS & set(done(rig)[len(events) :])
    rig.turn(daemon, 120)
    assert rig.pool.queues["schedd"].idle == 0, "back to normal by itself"
    assert made(rig) <= 2 * len(before), "and nothing was made twice"
    rig.pool.finish()
    rig.turn(daemon, 200)
    assert rig.alive() == []
    assert rig.pool.killed_jobs == 0


def test_a_launch_refused_in_mid_run_for_its_credentials_is_made_once_when_they_are_right(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    begin = rig.clock()
    # The listing works on: an account may be allowed to look and not to launch.
    rig.site.faults.add(Fault("auth-failed", call="launch", until=begin + 120))
    daemon = rig.start()
    rig.turn(daemon, 118)
    assert made(rig) == 0
    tries = [call for call in rig.site.calls if call.name == "launch"]
    assert 1 <= len(tries) <= 6, "it isn't tried at every look"
    rig.turn(daemon, 900, 6.0)
    assert rig.pool.queues["schedd"].idle == 0
    assert made(rig) <= 2


@pytest.mark.slow
def test_throttled_it_asks_more_rarely_and_doubles_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 2
    begin = rig.clock()
    rig.site.faults.add(Fault("throttled", call="launch", until=begin + 200, retry_after=30.0))
    daemon = rig.start()
    rig.turn(daemon, 198)
    tries = [call for call in rig.site.calls if call.name == "launch"]
    assert made(rig) == 0
    assert 1 <= len(tries) <= 7, "never within what the cloud asked it to wait"
    rig.turn(daemon, 900, 6.0)
    assert rig.pool.queues["schedd"].idle == 0
    assert made(rig) <= 2


def test_of_a_part_of_what_was_asked_for_the_rest_is_bought_elsewhere(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"zones": ["a", "b"], "capacity": {f"a/{size}": 1 for size in ("small", "medium")}})
    rig.pool.queues["schedd"].idle = 12
    daemon = rig.start(using=only(policy(), "small"))
    rig.turn(daemon, 120)
    assert rig.pool.queues["schedd"].idle == 0
    assert {instance.zone for instance in rig.site.instances.values()} == {"a", "b"}
    assert made(rig) == 6, "two jobs on each, and not one machine too many"
    rig.close()


class DearSpot(FakeCloud):
    """Until `until` spot costs more than the cap: EC2 answers SpotMaxPriceTooLow, which is no capacity."""

    until = float("inf")

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        if request.market == "spot" and self.site.clock() < self.until:
            self.site.record("launch", request.count, "no-capacity")
            raise NoCapacity("your Spot request price is lower than the minimum required")
        return super().launch(request)


def test_spot_beyond_its_cap_falls_back_to_on_demand_and_comes_back(tmp_path: Path) -> None:
    flavor = {"small": {"cpus": 2, "memory": "4GiB", "price": 0.1, "spot_price": 0.02}}
    rig = Rig(tmp_path, {"zones": ["a"], "flavors": flavor})
    rig.driver = driver = DearSpot(rig.site, "test")
    both = policy()
    worker = replace(both.classes["default"], markets=("spot", "on-demand"))
    daemon = rig.start(using=replace(both, classes={"default": worker}))
    rig.pool.queues["schedd"].idle = 2
    rig.turn(daemon, 60)
    assert rig.pool.queues["schedd"].idle == 0, "the jobs don't wait for spot to be cheap"
    assert [instance.market for instance in rig.site.instances.values()] == ["on-demand"]
    driver.until = rig.clock()
    rig.turn(daemon, 2000, 20.0)
    rig.pool.finish()
    rig.pool.queues["schedd"].idle = 4
    rig.turn(daemon, 60)
    assert {instance.market for instance in rig.site.instances.values()} == {"on-demand", "spot"}
    rig.close()


def only(found: Policy, *flavors: str) -> Policy:
    """The same for these flavors alone."""
    return replace(found, classes={"default": replace(found.classes["default"], flavors=flavors)})
