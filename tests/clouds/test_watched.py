"""Where updraft only watches, a driver answers and changes nothing, whatever it is asked."""

import inspect
from typing import Any

import pytest

from updraft.clouds.base import Driver, Remembering, layers
from updraft.clouds.ec2.driver import EC2Driver
from updraft.clouds.fake import FakeCloud
from updraft.clouds.local.driver import LocalDriver
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.watched import WatchedDriver
from updraft.errors import WatchOnly

ANSWERS = {
    *("name", "leases", "odd", "odd_offers", "machines", "aged_machines", "look_up", "offers", "quota"),
    *("aged_quota", "console", "credentials_end"),
}
CHANGES = {"launch", "terminate", "tag"}


class Recorded:
    """A driver of every method that there is, which says what reached it."""

    name = "c1"

    def __init__(self) -> None:
        self.reached: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "driver":  # what it is wrapped around: nothing
            raise AttributeError(name)
        return lambda *_args, **_named: self.reached.append(name) or ()


def methods_of(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")} | set(kind.__annotations__)


def test_every_method_of_the_contract_answers_or_is_refused() -> None:
    asked = methods_of(Driver) | methods_of(Remembering)
    assert asked <= ANSWERS | CHANGES, "a method that is new to the contract: does it change anything?"
    assert methods_of(WatchedDriver) | {"name"} == ANSWERS | CHANGES
    inner = Recorded()
    driver = WatchedDriver(inner)  # type: ignore[arg-type]
    for name in CHANGES:
        with pytest.raises(WatchOnly, match="only watches"):
            getattr(driver, name)(*[()] * (len(inspect.signature(getattr(driver, name)).parameters)))
    assert inner.reached == []
    driver.machines(), driver.look_up(["i"]), driver.offers(), driver.quota(), driver.console("i")
    assert inner.reached == ["machines", "look_up", "offers", "quota", "console"]


@pytest.mark.parametrize("kind", [EC2Driver, OpenStackDriver, LocalDriver, FakeCloud])
def test_what_a_driver_has_besides_is_out_of_reach(kind: type) -> None:
    """Key pairs, images, networks: whoever holds the wrapped driver can't come to them."""
    driver = WatchedDriver(Recorded())  # type: ignore[arg-type]
    for name in methods_of(kind) - ANSWERS - CHANGES:
        assert not hasattr(driver, name), name
    assert list(layers(driver)) == [driver]
