"""HTCondor installed at the first boot of an image without it: from signed packages, and nothing else."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.pools import mirror as mirrors
from tests.rigs.pools.mirror import Mirror
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
JOB = """\
executable = /bin/sleep
arguments = 1
transfer_executable = false
request_memory = 200MB
request_disk = 10MB
requirements = UpdraftClass == "{name}"
queue
"""
WRONG = """
[classes.wrong]
image = "bare"
flavors = ["small"]
boot_deadline = "30s"
condor = "install"
condor_repository = "{repository}"
"""


@pytest.fixture(scope="module")
def mirror(images: Callable[..., Image], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    for program in ("gpg", "apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    bare = images("forky", condor=False)
    debs = mirrors.packages(bare.rootfs.parents[1], bare)
    made = mirrors.build(tmp_path_factory.mktemp("mirror") / "layer", debs)
    yield made
    mirrors.close(made)


@pytest.fixture
def bare(images: Callable[..., Image], mirror: Mirror) -> Image:
    """The image without HTCondor, with the mirror in a folder of it."""
    found = images("forky", condor=False)
    return replace(found, name="bare", layers=(*found.layers, Path(mirror.folder)))


def test_a_bare_image_joins_and_one_with_a_strange_key_says_why(
    real_pool: Pools, mirror: Mirror, bare: Image
) -> None:
    text = settings(
        worker={
            "image": "bare",
            "condor": "install",
            "condor_repository": mirror.address,
            "condor_keys": [mirror.fingerprint],
            "flavors": ["medium"],
        },
        timings={"boot_floor": "30s"},
        more=WRONG.replace("{repository}", mirror.address),
    )
    pool = real_pool(Wishes(settings=text, more_images={"bare": bare}))
    pool.submit(JOB.format(name="worker"))
    pool.submit(JOB.format(name="wrong"))
    (slot,) = until(pool.slots, 120, "a worker without HTCondor in its image joined")
    assert slot["UpdraftClass"] == "worker"
    assert slot["CondorVersion"].split()[1] == pool.on_head("condor_version").stdout.split()[1]
    until(lambda: pool.history(["ClusterId"]), 60, "its job done")

    def failed() -> list[str]:
        return [
            e["subject"] for e in pool.events() if e["kind"] == "terminate" and e["code"] == "never-joined"
        ]

    machine = until(failed, 60, "the machine that pins another key ended")[0]
    why = "is not the pinned one"
    assert why in pool.updraft("explain", machine).stdout.splitlines()[0]
    assert why in json.loads(pool.updraft("explain", machine, "--json").stdout)["console"]
