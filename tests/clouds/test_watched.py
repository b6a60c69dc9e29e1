"""Where updraft only watches, a cloud answers and changes nothing, whatever it is asked."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import pytest

from updraft.clouds.base import Machines, Pace, Remembering
from updraft.clouds.cloud import Cloud, Traits
from updraft.clouds.ec2.driver import EC2Driver
from updraft.clouds.fake import FakeCloud
from updraft.clouds.local.driver import LocalDriver
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.watched import WatchedMachines, watched
from updraft.clouds.wrapping import Wrapper
from updraft.errors import WatchOnly

TOLD = {"name", "odd", "odd_offers"}
ANSWERS = {"machines", "look_up", "offers", "quota", "console"}
CHANGES = {"launch", "terminate", "tag"}
KEPT = {"name", "machines", "memory", "traits"}


class Recorded:
    """Machines of every method that there is, which say what reached them."""

    name = "c1"
    tends = True

    def __init__(self) -> None:
        self.reached: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: self.reached.append(name) or ()


def methods_of(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")} | set(kind.__annotations__)


def call(made: object, name: str) -> None:
    """With an empty value for each parameter."""
    method = getattr(made, name)
    method(*[()] * len(inspect.signature(method).parameters))


def test_every_method_of_the_machines_answers_or_is_refused() -> None:
    asked = methods_of(Machines)
    assert asked == TOLD | ANSWERS | CHANGES, "a method that is new to the contract: does it change anything?"
    inner: Any = Recorded()
    machines = WatchedMachines(inner)
    for name in CHANGES:
        with pytest.raises(WatchOnly, match="only watches"):
            call(machines, name)
    assert inner.reached == []
    for name in ANSWERS:
        call(machines, name)
    assert set(inner.reached) == ANSWERS


def test_a_method_that_nobody_has_thought_of_is_refused() -> None:
    """It would go by its name through the one place where each call does."""
    inner: Any = Recorded()
    with pytest.raises(WatchOnly, match="`reboot` isn't asked for"), WatchedMachines(inner)._asking("reboot"):
        pytest.fail("it reached the cloud")


@pytest.mark.parametrize("name", sorted(ANSWERS | CHANGES))
def test_every_call_goes_by_its_name_through_one_place(name: str) -> None:
    class Noting(Wrapper):
        seen = ""

        @contextmanager
        def _asking(self, method: str) -> Iterator[Machines]:
            self.seen = method
            yield self._machines

    inner: Any = Recorded()
    made = Noting(inner)
    call(made, name)
    assert (made.seen, inner.reached) == (name, [name])


def test_of_the_parts_of_a_cloud_only_those_are_there_that_change_nothing() -> None:
    """Key pairs, images, networks: whoever holds the cloud can't come to them."""
    inner: Any = Recorded()
    parts = {one.name: inner for one in fields(Cloud)}
    traits = Traits(Pace())
    cloud = watched(Cloud(**{**parts, "name": "c1", "traits": traits}))
    assert {one.name for one in fields(Cloud) if getattr(cloud, one.name) is not None} == KEPT
    assert isinstance(cloud.machines, WatchedMachines)
    assert inner.tends is False
    memory = cloud.memory
    assert memory is not None
    assert methods_of(type(memory)) == methods_of(Remembering)
    memory.aged_machines(), memory.aged_quota()
    assert inner.reached == ["aged_machines", "aged_quota"]


@pytest.mark.parametrize("kind", [EC2Driver, OpenStackDriver, LocalDriver, FakeCloud])
def test_what_a_driver_has_besides_is_out_of_reach(kind: type) -> None:
    inner: Any = Recorded()
    machines = WatchedMachines(inner)
    for name in methods_of(kind) - TOLD - ANSWERS - CHANGES:
        assert not hasattr(machines, name), name
