"""How an image is built, whatever goes wrong: the machine is always ended, and half an image is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.clouds.imaging import MachineImage
from updraft.condor.support.trial import TrialOutcome
from updraft.errors import CloudError, DrainRefused, ImageError, UpdraftError
from updraft.provision.images.builder import LIFETIME, Builder, Deadlines, Order, cheapest, pool_name
from updraft.provision.images.transfer import Place
from updraft.provision.images.waiting import Watch

SHORT = Deadlines(boot=100, trial=100, clean=100, stop=100, image=100)
FINE = TrialOutcome(True, True, "fine")


@dataclass
class World:
    """A cloud in memory, a pool of which only this is asked, and a time that passes when somebody waits."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    now: float = 1e6
    busy_for: int = 0
    outcome: TrialOutcome = FINE
    console: str = "updraft-image: READY\n"
    said: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = Site("c", site_settings("c", {"images": ["base"], **self.settings}), lambda: self.now)
        self.driver = FakeCloud(self.site, pool_name("demo"))
        self.driver.console = lambda _machine: self.console if self.drained else ""  # type: ignore[method-assign]
        self.drained = False
        self.place = Place("c", FakeCloud(self.site, "demo").imaging, {TAG_POOL: "demo"})
        watch = Watch(lambda: self.now, lambda seconds: self.sleep(seconds), 2.0, self.said.append)
        self.builder = Builder(self.place, self.driver, self, watch, SHORT, lambda: self.now)  # type: ignore[arg-type]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def slots(self, _deadline: float) -> Any:
        up = [one for one in self.site.alive(self.driver.pool) if one.joins_at <= self.now]
        slots = [SimpleNamespace(instance_id=one.id, name=f"slot1@{one.id}") for one in up]
        return SimpleNamespace(view=SimpleNamespace(slots=slots))

    def drain(self, slots: Sequence[Any], *_rest: Any) -> None:
        if self.busy_for > 0:
            self.busy_for -= 1
            raise DrainRefused("busy")
        self.drained = True

    def forget(self, slots: Sequence[str], _deadline: float) -> None:
        self.forgotten += slots

    def build(self, script: str = "#!/bin/sh\n") -> MachineImage:
        request = LaunchRequest("image-1", 1, "base", "small", "a", "on-demand", b"")
        trial: Any = SimpleNamespace(submit=lambda *_: None, outcome=lambda: self.outcome)
        return self.builder.build(Order("baked", "base", request, script), trial)

    def left(self) -> int:
        return len([one for one in self.site.alive(self.driver.pool) if one.stop_asked_at > self.now])


def test_an_image_comes_to_be_and_its_machine_goes() -> None:
    world = World(busy_for=3)
    image = world.build()
    assert (image.state, image.info.name, image.pool, image.tags["updraft:from"]) == (
        "ready",
        "baked",
        "demo",
        "base",
    )
    assert world.left() == 0
    assert world.forgotten == ["slot1@c-00001"]
    assert any("is ended" in line for line in world.said)


def test_the_machine_is_nobodys_in_the_eyes_of_the_pools_own_controller() -> None:
    world = World()
    world.build()
    assert FakeCloud(world.site, "demo").machines() == ()


FAILURES: Sequence[tuple[dict[str, Any], str]] = (
    ({"settings": {"boots": [{"never_joins": 1.0}]}}, "boots and joins the pool: not within"),
    ({"settings": {"boots": [{"breaks": 1.0, "fault": "no host"}]}}, "no host"),
    ({"outcome": TrialOutcome(True, False, "no such program")}, "the trial job failed: no such program"),
    ({"outcome": TrialOutcome(False)}, "the trial job runs: not within"),
    ({"busy_for": 10**6}, "is drained: not within"),
    ({"console": "updraft-image: FAILED: /root/.netrc"}, "/root/.netrc"),
    ({"console": "nothing"}, "is cleaned: not within"),
    ({"settings": {"image_takes": "1000s"}}, "in the making: not within"),
)


@pytest.mark.parametrize(("world", "why"), FAILURES, ids=[why for _, why in FAILURES])
def test_whatever_fails_the_machine_is_ended_and_there_is_no_image(world: dict[str, Any], why: str) -> None:
    made = World(**world)
    with pytest.raises(ImageError, match=why):
        made.build()
    assert made.left() == 0
    assert not made.site.made


def test_an_interrupt_ends_the_machine() -> None:
    world = World()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    world.drain = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.build()
    assert world.left() == 0


def test_a_machine_whose_launch_was_not_answered_is_found_and_ended() -> None:
    world = World()
    world.site.faults.add(Fault("cloud-unavailable", call="launch", after=True))
    with pytest.raises(CloudError):
        world.build()
    assert world.site.instances
    assert world.left() == 0


def test_a_cloud_that_can_end_nothing_is_told_of() -> None:
    world = World(console="updraft-image: FAILED: x")
    world.site.faults.add(Fault("cloud-unavailable", call="terminate"))
    with pytest.raises(ImageError):
        world.build()
    assert any("launch image-1 can't be ended" in line for line in world.said)


def test_a_cloud_that_is_away_for_a_moment_is_asked_again() -> None:
    world = World()
    slots, silent = world.slots, iter(range(3))

    def away(deadline: float) -> Any:
        if next(silent, None) is not None:
            world.driver.site.faults.add(Fault("cloud-unavailable", call="machines"))
        else:
            world.driver.site.faults.clear()
        return slots(deadline)

    world.slots = away  # type: ignore[method-assign]
    calls = world.sleep

    def sleep(seconds: float) -> None:
        calls(seconds)
        world.driver.site.faults.clear()

    world.sleep = sleep  # type: ignore[method-assign]
    assert world.build().state == "ready"


def test_what_an_earlier_build_left_is_ended_and_one_under_way_is_not() -> None:
    world = World()
    request = LaunchRequest("old", 1, "base", "small", "a", "on-demand", b"")
    (old,) = world.driver.launch(request)
    world.now += LIFETIME + 1
    (young,) = world.driver.launch(LaunchRequest("new", 1, "base", "small", "a", "on-demand", b""))
    world.builder.sweep()
    standing = [one.id for one in world.site.alive(world.driver.pool) if one.stop_asked_at > world.now]
    assert standing == [young.id]
    assert any(old.id in line for line in world.said)
    assert any(young.id in line for line in world.said)


def test_a_name_that_is_taken_costs_no_machine() -> None:
    world = World()
    world.build()
    with pytest.raises(UpdraftError, match="already"):
        world.build()
    assert len(world.site.instances) == 1


def test_without_a_trial_nothing_is_submitted() -> None:
    world = World(outcome=TrialOutcome(True, False, "must not run"))
    assert world.build(script="").state == "ready"


def test_the_cheapest_that_is_wanted_is_taken() -> None:
    driver = World().driver
    assert cheapest(driver, lambda _: True)[0] == "small"
    assert cheapest(driver, lambda flavor: flavor == "large", "b") == ("large", "b")
    with pytest.raises(ImageError, match="--flavor"):
        cheapest(driver, lambda _: False)
