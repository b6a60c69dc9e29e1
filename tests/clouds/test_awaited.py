"""A cloud that can't be asked yet: said once, asked again, and then there."""

from dataclasses import replace

import pytest

from updraft.clouds.awaited import Awaited
from updraft.clouds.base import Aged, Leases, Pace
from updraft.clouds.cloud import Cloud, Owner, cloud_of
from updraft.clouds.paced import Paced
from updraft.errors import AuthFailed, CloudError, CloudUnavailable


class Site:
    """Where a driver is made, or fails to be."""

    def __init__(self) -> None:
        self.fault: CloudError | None = AuthFailed("no credentials: put them there")
        self.made = 0
        self.said: list[str] = []

    def make(self) -> Cloud:
        if self.fault is not None:
            raise self.fault
        self.made += 1
        return cloud_of("here", "fake", Owner("demo"), {})

    def say(self, error: CloudError | None) -> None:
        self.said.append("there" if error is None else str(error))


def test_each_call_raises_why_and_it_is_said_once() -> None:
    site = Site()
    cloud = Awaited("here", site.make, site.say)
    for call in (cloud.machines, cloud.offers, cloud.quota, cloud.machines):
        with pytest.raises(AuthFailed):
            call()
    assert site.said == ["no credentials: put them there"]
    site.fault = CloudUnavailable("no answer")
    with pytest.raises(CloudUnavailable):
        cloud.machines()
    assert site.said[1:] == ["no answer"], "another cause is news"


def test_it_goes_on_when_it_can_and_is_made_once() -> None:
    site = Site()
    cloud = Awaited("here", site.make, site.say)
    with pytest.raises(AuthFailed):
        cloud.tag(("i-1",), {"a": "b"})
    site.fault = None
    assert cloud.machines() == ()
    assert cloud.offers()
    assert cloud.console("i-1") == ""
    assert site.made == 1
    assert site.said[-1] == "there"


def test_an_answer_from_memory_keeps_its_age() -> None:
    site, now = Site(), [0.0]
    site.fault = None

    def make() -> Cloud:
        made = site.make()
        paced = Paced(made.machines, Pace(), lambda: now[0])
        return replace(made, machines=paced, memory=paced)

    cloud = Awaited("here", make, site.say)
    assert cloud.aged_machines().age == 0.0
    now[0] = 3.0
    assert cloud.aged_machines().age == 3.0
    assert cloud.aged_quota().value == cloud.quota()
    plain = Awaited("here", site.make, site.say)
    assert plain.aged_machines() == Aged((), 0.0)


def test_a_cloud_that_was_there_from_the_start_is_no_news() -> None:
    site = Site()
    site.fault = None
    assert Awaited("here", site.make, site.say).machines() == ()
    assert site.said == []


def test_what_it_is_like_is_known_once_it_is_there() -> None:
    site = Site()
    awaited = Awaited("here", site.make, site.say)
    cloud = awaited.cloud
    assert (cloud.name, cloud.machines, cloud.memory) == ("here", awaited, awaited)
    assert cloud.traits.leases() == Leases()
    site.fault = None
    cloud.machines.machines()
    assert cloud.traits.leases() == Leases(told=True, ended=True)
