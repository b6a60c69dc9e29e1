"""The fake cloud keeps the contract, obedient or as awkward as real ones are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.parts_conformance import PartsConformance
from updraft.clouds.base import TAG_CLASS
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.errors import CloudError


class Odd(dict[str, str]):
    """Tags of which the class can't be read."""

    def get(self, key: str, *default: object) -> object:  # type: ignore[override]
        if key == TAG_CLASS:
            raise ValueError("no text")
        return super().get(key, *default)  # type: ignore[arg-type]


class FakeHarness:
    image = "worker"
    flavor = "small"
    zone = "a"
    market = "on-demand"
    many = 250
    deadline = 600.0
    boots = True

    def __init__(self, **settings: object) -> None:
        self.now = 1_000_000.0
        self.site = Site(
            "fake", site_settings("fake", {"images": ["worker", "foreign"], **settings}), lambda: self.now
        )

    def driver(self, pool: str) -> FakeCloud:
        return FakeCloud(self.site, pool)

    def made(self, pool: str) -> Cloud:
        return self.driver(pool).cloud

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        until = self.now + self.deadline
        while not condition():
            assert self.now < until, f"never happened: {what}"
            self.now += 1

    def foreign(self, tags: Mapping[str, str]) -> str:
        return self.site.add_foreign(tags=tags)

    def exists(self, machine: str) -> bool:
        instance = self.site.instances[machine]
        return instance.stop_asked_at > self.now and instance.occupies(self.now)

    def set_quota(self, machines: int) -> bool:
        self.site.change(quota_machines=machines)
        return True

    def user_data(self, machine: str) -> bytes:
        return self.site.instances[machine].user_data

    @contextmanager
    def failing(self, error: type[CloudError]) -> Iterator[None]:
        self.site.faults.add(Fault(error.code, call="*", retry_after=7.0))
        yield
        self.site.faults.clear()

    @contextmanager
    def shown_oddly(self, machine: str) -> Iterator[None]:
        sane = self.site.instances[machine].tags
        self.site.set_tags(machine, Odd(sane))
        yield
        self.site.set_tags(machine, sane)

    @contextmanager
    def mute_after_launch(self) -> Iterator[None]:
        self.site.faults.add(Fault("cloud-unavailable", call="launch", after=True))
        yield
        self.site.faults.clear()


class TestFake(MachinesConformance):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness()


class TestLaggingFake(MachinesConformance):
    """New machines are listed late, ended ones go late: the contract still holds, with patience."""

    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(shows_after="20s", hides_after="30s", stop_takes="25s")


class TestFakeParts(PartsConformance):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness()
