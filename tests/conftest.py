"""How thorough the generated tests are: HYPOTHESIS_PROFILE is `quick` (the default), `thorough` or `hunt`.

`thorough` tries the same cases each time, so that a red test says that something was changed; `hunt` tries
new ones.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough",
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "hunt",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session", autouse=True)
def no_power_cut() -> Iterator[None]:
    """Ledgers that don't wait for the disk: a test ends processes and never the machine."""
    from updraft.ledger import Ledger

    opened = Ledger._open

    def quickly(ledger: Ledger) -> None:
        opened(ledger)
        ledger._connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "_open", quickly)
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _try_again(items)
    _keep_together(items)


def _keep_together(items: list[pytest.Item]) -> None:
    """Tests on real parts that share a pool go to one worker, and first: they are the longest to run."""
    alone = []
    together = []
    for item in items:
        if item.get_closest_marker("integration") and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
            together.append(item)
        else:
            alone.append(item)
    items[:] = [*together, *alone]


def _shares(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009  # there is no other way to ask
    return any(found[-1].scope == "module" for found in fixtures)


def _try_again(items: list[pytest.Item]) -> None:
    """What has real parts in it gets a second and a third try; each try that failed is shown in the summary.

    A whole pool on a small shared machine is now and then too late for a deadline. A fault fails every time.
    UPDRAFT_TEST_TRIES=1 leaves it at one try, to look for what fails now and then.
    """
    more = int(os.environ.get("UPDRAFT_TEST_TRIES", "3")) - 1
    for item in items:
        real = any(item.get_closest_marker(mark) for mark in ("integration", "openstack"))
        if more > 0 and real:
            item.add_marker(pytest.mark.flaky(reruns=more, reruns_delay=2))
