"""How generated tests look for cases, and in which order tests with real parts run.

HYPOTHESIS_PROFILE is `gate` (the default), `quick` or `explore`. `gate` tries a few cases, the same ones each
time, so that a red test says that something was changed, and `quick` half as many; `explore` tries new ones;
`make hunt` is in hunt.py.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from updraft.garbage import look_seldom

pytest_plugins = ["tests.quarantine", "tests.remains", "tests.waiting", "pytester"]

# All that is imported and collected stays: a search for garbage in it takes as long as many tests.
look_seldom()

# What suites of several folders have in common says as much of what failed as they do.
pytest.register_assert_rewrite("tests.rigs", "tests.clouds")

settings.register_profile(
    "gate",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("gate"), max_examples=10)
settings.register_profile(
    "explore",
    max_examples=400,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m integration…` reads only files that have such tests, and the conftest of folders with such files.

    The clouds' libraries, which two of those load, take each worker seconds.
    """
    if not config.getoption("markexpr").startswith("integration") or "integration" in collection_path.parts:
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return None if any("integration" in path.read_text() for path in files) else True


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """`--dist loadscope` keeps together only what shares something."""
    if config.getvalue("dist") != "loadscope":
        return None
    from tests.scheduling import Sharing

    return Sharing(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of the core are marked so; long ones begin first: one that begins last holds up the whole run."""
    core = Path(__file__).parent / "core"
    for item in items:
        if core in item.path.parents:
            item.add_marker("core")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was collected is looked through no more either."""
    look_seldom()
