"""No part of any cloud goes without its suite: what is here is found by walking the parts themselves."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields

import pytest

from tests.clouds.parts_conformance import HELD, contracts, parts_of
from tests.rigs.clouds.made import made
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud
from updraft.clouds.local.driver import LocalDriver
from updraft.config.drivers import driver_names

NOT_HELD = {("local", "images"): "the images of the local cloud have tests of their own, without the suite"}


@pytest.fixture
def clouds(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Cloud]:
    """One of each driver, of which nothing is asked."""
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    keys |= {
        "OS_AUTH_URL": "http://127.0.0.1:1",
        "OS_USERNAME": "u",
        "OS_PASSWORD": "p",
        "OS_PROJECT_NAME": "p",
    }
    for name, text in keys.items():
        monkeypatch.setenv(name, text)
    local = LocalDriver("here", "pool", None)  # type: ignore[arg-type]
    fake: FakeCloud = made("fake", "here", "pool", {})
    ec2 = made("ec2", "here", "pool", {"endpoint": "http://127.0.0.1:1", "region": "r"})
    openstack = made("openstack", "here", "pool", {})
    return {"ec2": ec2.cloud, "fake": fake.cloud, "local": local.cloud, "openstack": openstack.cloud}


def suites_of(driver: str) -> Iterator[type]:
    """The test classes of this driver's tests."""
    package = importlib.import_module(f"tests.clouds.{driver}")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        yield from (
            one for name, one in vars(module).items() if name.startswith("Test") and isinstance(one, type)
        )


def test_each_part_has_its_suite() -> None:
    assert HELD.keys() == {one.name for one in fields(Cloud)}
    assert contracts().keys() == HELD.keys()


def test_each_driver_shows_that_it_keeps_the_contract_of_each_part_that_it_has(
    clouds: Mapping[str, Cloud],
) -> None:
    assert sorted(clouds) == driver_names()
    for driver, cloud in clouds.items():
        suites = tuple(suites_of(driver))
        for part, suite in HELD.items():
            if part not in parts_of(cloud) or suite is None or (driver, part) in NOT_HELD:
                continue
            assert any(issubclass(one, suite) for one in suites), (
                f"{driver}: {part} isn't held to {suite.__name__}"
            )


def test_what_is_let_off_is_really_not_held(clouds: Mapping[str, Cloud]) -> None:
    for driver, part in NOT_HELD:
        suite = HELD[part]
        assert part in parts_of(clouds[driver])
        assert suite is not None
        assert not any(issubclass(one, suite) for one in suites_of(driver)), (
            "it is held: take it off the list"
        )
