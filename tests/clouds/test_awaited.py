"""A cloud that can't be asked yet: said once, asked again, and then there."""

import pytest

from updraft.clouds.awaited import Awaited
from updraft.clouds.base import Aged, Driver, Pace
from updraft.clouds.fake import from_settings
from updraft.clouds.paced import Paced
from updraft.errors import AuthFailed, CloudError, CloudUnavailable


class Site:
    """Where a driver is made, or fails to be."""

    def __init__(self) -> None:
        self.fault: CloudError | None = AuthFailed("no credentials: put them there")
        self.made = 0
        self.said: list[str] = []

    def make(self) -> Driver:
        if self.fault is not None:
            raise self.fault
        self.made += 1
        return from_settings("here", "demo", {})

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
    cloud = Awaited("here", lambda: Paced(site.make(), Pace(), lambda: now[0]), site.say)
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
