"""Real pools for the tests of this folder: real HTCondor, real cloud-init, on the cloud on one machine.

All of them need root and mmdebstrap. The image is built once, in the store that UPDRAFT_IMAGE_STORE names or
in the one that `make demo` uses.
"""

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.rigs.pools.realpool import RealPools, pool_up
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo.pool import RealPool, Wishes, find_or_build

HERE = Path(__file__).parent


def why_not() -> str:
    """Why these tests can't run here; empty where they can."""
    if os.geteuid() != 0:
        return "real machines on this host need root; run the tests with sudo"
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed; run `apt-get install mmdebstrap`"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def images() -> Callable[..., Image]:
    """`images(suite="forky", condor=True)`: the machine image, built where it isn't there yet."""
    store = Path(os.environ.get("UPDRAFT_IMAGE_STORE", DEFAULT_STORE))

    def of(suite: str = "forky", condor: bool = True) -> Image:
        return find_or_build(store, print, suite=suite, condor=condor)

    return of


@pytest.fixture(scope="session")
def image(images: Callable[..., Image]) -> Image:
    """The image of most tests: HTCondor 25."""
    return images()


@pytest.fixture
def updraft_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """PATH with the `updraft` that is tested, for scripts that call it."""
    programs = tmp_path_factory.mktemp("bin")
    program = programs / "updraft"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m updraft.cli.main "$@"\n')
    program.chmod(0o755)
    return f"{programs}:{os.environ['PATH']}"


def _pools(images: Callable[..., Image], home: Path) -> Iterator[RealPools]:
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def make(wishes: Wishes | None = None, suite: str = "forky") -> RealPool:
            folder = home / f"pool{next(numbers)}"
            return stack.enter_context(pool_up(images(suite), folder, wishes))

        yield make


@pytest.fixture
def real_pool(images: Callable[..., Image], tmp_path: Path) -> Iterator[RealPools]:
    """`real_pool(wishes, suite="forky")`: a pool that runs until the test ends; nothing of it may be left."""
    yield from _pools(images, tmp_path)


@pytest.fixture(scope="module")
def module_pool(
    images: Callable[..., Image], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealPools]:
    """The same for a pool that the tests of a module share."""
    yield from _pools(images, tmp_path_factory.mktemp("pools"))
