"""Every call to a cloud is counted, with its time and the code of its failure, and is otherwise as it was."""

import pytest

from tests.rigs.pools.virtualpool import Clock
from updraft.clouds.base import Machines, Pace
from updraft.clouds.counted import CallTally, CloudCall, Counted
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.clouds.paced import Paced
from updraft.core.model import Instance
from updraft.errors import Throttled


class Slow(FakeCloud):
    """A cloud that takes two seconds, and fails as it is told."""

    error: Exception | None = None

    def __init__(self, clock: Clock) -> None:
        super().__init__(Site("c1", site_settings("c1", {}), clock), "test")
        self._now = clock

    def machines(self) -> tuple[Instance, ...]:
        self._now.forward(2.0)
        if self.error is not None:
            raise self.error
        return super().machines()


def test_calls_are_counted_and_taken_once() -> None:
    clock, tally = Clock(), CallTally()
    driver: Machines = Counted(Slow(clock), tally, clock)
    assert driver.machines() == driver.machines() == ()
    driver.offers()
    driver.quota()
    driver.terminate([])
    driver.tag([], {})
    driver.look_up(["no-such"])
    found = tally.taken()
    assert found[CloudCall("c1", "machines")] == (2, 4.0)
    assert {call.method for call in found} == {"machines", "offers", "quota", "terminate", "tag", "look_up"}
    assert tally.taken() == {}


def test_a_failure_is_counted_by_its_code_and_raised() -> None:
    clock, tally = Clock(), CallTally()
    cloud = Slow(clock)
    driver = Counted(cloud, tally, clock)
    for error in (Throttled("fewer, please"), RuntimeError("nobody knows")):
        cloud.error = error
        with pytest.raises(type(error)):
            driver.machines()
    assert set(tally.taken()) == {
        CloudCall("c1", "machines", "throttled"), CloudCall("c1", "machines", "unexpected")
    }  # fmt: skip


def test_an_answer_from_memory_is_no_call() -> None:
    clock, tally = Clock(), CallTally()
    driver = Paced(Counted(Slow(clock), tally, clock), Pace(), clock)
    driver.machines()
    driver.machines()
    assert tally.taken()[CloudCall("c1", "machines")][0] == 1
