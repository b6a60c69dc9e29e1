"""What the conformance suite needs of a cloud beyond its driver, and the requests that it makes."""

import itertools
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_LAUNCH, TAG_POOL, LaunchRequest
from updraft.clouds.cloud import Cloud
from updraft.errors import CloudError


class Harness(Protocol):
    """How the suite reaches one cloud. A fresh, empty cloud (or project of it) for each test."""

    image: str
    flavor: str  # the smallest one
    zone: str
    market: str
    many: int  # machines that make the listing take more than one page, or as many as the cloud bears
    deadline: float  # seconds of the cloud's own time within which anything must have happened
    boots: bool  # whether machines really start to run here

    def made(self, pool: str) -> Cloud:
        """The cloud for this pool; all pools share it."""

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until the condition holds; fail with `what` after `deadline`."""

    def foreign(self, tags: Mapping[str, str]) -> str | None:
        """Make an instance with these tags and no others, past any driver; its id, or None."""

    def exists(self, machine: str) -> bool:
        """Whether the cloud itself has this instance, neither ended nor about to."""

    def set_quota(self, machines: int) -> bool:
        """Allow this many machines in all, foreign ones counted; False where it can't be set."""

    def user_data(self, machine: str) -> bytes | None:
        """What the instance would be given as user-data, or None where the harness can't see it."""

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None] | None:
        """Make the cloud answer the next calls with what maps to `error`; None where it can't."""

    def shown_oddly(self, machine: str) -> AbstractContextManager[None] | None:
        """Have the cloud show this one in a way of which nothing can be made; None where it can't."""

    def mute_after_launch(self) -> AbstractContextManager[None] | None:
        """The cloud does what a launch asks and never answers; None where it can't be arranged."""


class Keys:
    """Launch keys that never come twice in a test run."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        return f"{os.getpid()}-{next(self._numbers):06d}"


next_key = Keys()


def request(harness: Harness, count: int = 1, key: str = "", **changes: object) -> LaunchRequest:
    key = key or next_key()
    plain = LaunchRequest(
        key=key,
        count=count,
        image=harness.image,
        flavor=harness.flavor,
        zone=harness.zone,
        market=harness.market,
        user_data=b"#cloud-config\n{}\n",
        tags={TAG_POOL: "conformance", TAG_CLASS: "small", TAG_LAUNCH: key, TAG_GENERATION: "g1"},
    )
    return replace(plain, **changes)
