"""Waiting with a deadline, and by how much longer things may take on this machine as it is now.

How long a fixed piece of work takes beside whatever else runs is measured once, when a run of tests begins,
and compared with a quiet machine of two cores. What the run adds, workers beyond the cores, is counted in.
pytest's header names the factor; UPDRAFT_TEST_SLOWNESS sets it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")
SLOWNESS = "UPDRAFT_TEST_SLOWNESS"
REFERENCE = 0.5  # seconds that the work takes on a quiet machine of two cores
LARGEST = 6.0
GENEROUS = 2.0  # a deadline that is never reached costs nothing
_ROUNDS = 10
_WORK = "import hashlib\nd = b''\nfor _ in range(60000): d = hashlib.sha256(d).digest()"


def patience() -> float:
    """By how much longer than on a quiet machine of two cores something may take: from 1 to LARGEST."""
    return float(os.environ.get(SLOWNESS, "1"))


def deadline(seconds: float) -> float:
    """The seconds after which it has failed what takes less than `seconds` on a quiet machine."""
    return seconds * GENEROUS * patience()


def until(condition: Callable[[], T], seconds: float, what: str, every: float = 0.3) -> T:
    """Ask until the answer is true, and return it; after `deadline(seconds)` fail with `what`, a sentence.

    The condition is asked once more after the deadline, so that a slow question isn't a failure.
    """
    end = time.monotonic() + deadline(seconds)
    while True:
        last_time = time.monotonic() >= end
        answer = condition()
        if answer:
            return answer
        if last_time:
            late = f"{seconds:g} s × {GENEROUS * patience():.1f}"
            raise AssertionError(f"{what} did not come true within {late}; at last: {answer!r}")
        time.sleep(every)


def slowness(took: float, workers: int, cores: int) -> float:
    """What `patience` is where the work took so long, before so many workers begin."""
    return min(LARGEST, max(1.0, took / REFERENCE) * max(1.0, workers / cores))


def work() -> float:
    """How many seconds it takes to start and end twenty processes that compute, two at a time."""
    begun = time.monotonic()
    for _ in range(_ROUNDS):
        pair = [subprocess.Popen([sys.executable, "-I", "-S", "-c", _WORK]) for _ in range(2)]
        for one in pair:
            one.wait()
    return time.monotonic() - begun


def measured(workers: int = 1) -> None:
    """Measure how slow this machine is, for so many workers; once, and for the processes that begin later."""
    if SLOWNESS not in os.environ:
        os.environ[SLOWNESS] = f"{slowness(work(), workers, os.cpu_count() or 1):.2f}"


# --------------------------------------------------------------------------------------------- pytest's hooks


def pytest_configure(config: pytest.Config) -> None:
    """Measure where the run begins; workers get the answer by their environment."""
    if not config.option.collectonly:
        measured(len(getattr(config.option, "tx", None) or [""]))


def pytest_report_header() -> str:
    return f"deadlines are ×{GENEROUS * patience():.1f}, by the speed of this machine and the workers"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test with real parts is ended before its deadlines are."""
    if config.getoption("timeout", None) is not None:
        return
    for item in items:
        if any(item.get_closest_marker(mark) for mark in ("integration", "openstack")):
            own = item.get_closest_marker("timeout")
            seconds = float(own.args[0] if own else config.getini("timeout"))
            item.add_marker(pytest.mark.timeout(seconds * patience()), append=False)
