"""`updraft head` on the local cloud: launched, found again, a job runs there, a seed image of one, ended."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from tests.integration.heads.test_head import FIRST_USER, IN_IMAGE, SAMPLE_JOBS, a_cloud, acts, site_file
from tests.rigs.pools import mirror as mirrors
from tests.rigs.pools.controlling import await_done, outcomes
from tests.rigs.pools.realpool import say, tell, until
from updraft import DISTRIBUTION, requirements
from updraft.bootstrap.head.source import WHEEL
from updraft.clouds.base import TAG_POOL
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import digest_of, layer
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[3]
WHEELHOUSE = "srv/wheels"
AT = f"file:///{WHEELHOUSE}/{WHEEL}"
CARELESS = """\
#cloud-config
write_files:
- path: /root/.aws/credentials
  content: not-to-be-seen
"""
Head = Callable[..., "subprocess.CompletedProcess[str]"]


def beside(cloud: LocalCloud, file: Path) -> Head:
    """`updraft head` as a person beside the cloud calls it, with the head's own updraft.toml."""
    known = {
        "UPDRAFT_LOCAL_CLOUD_ENDPOINT": cloud.endpoint,
        "UPDRAFT_LOCAL_CLOUD_TOKEN": cloud.credential_file.read_text().strip(),
    }

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "updraft.cli.main", "--config", str(file), "head", *words]
        done = subprocess.run(
            argv, env={**os.environ, **known}, capture_output=True, text=True, timeout=420, check=False
        )
        say(f"======== head {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    return call


def heads(head: Head) -> list[dict[str, Any]]:
    return list(json.loads(head("list", "--json").stdout)["heads"])


def machines(cloud: LocalCloud, pool: str) -> list[dict[str, Any]]:
    return [one for one in cloud.client().machines({TAG_POOL: pool}) if one["state"] == "running"]


def sample_jobs_run(pool: RealPool) -> None:
    done = pool.on_head("condor_submit", "-terse", f"/home/{FIRST_USER}/test.sub", user=FIRST_USER)
    assert done.returncode == 0, done.stderr
    cluster = int(done.stdout.split(".")[0])
    await_done(pool, [cluster], 240)
    assert sorted(outcomes(pool, cluster)) == [(4, 0, 1)] * SAMPLE_JOBS


def test_a_head_is_launched_and_a_job_runs_there(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        launched = head("launch", "main", *IN_IMAGE, "--role", "controller", "--wait", "5m")
        assert launched.returncode == 0
        (row,) = heads(head)
        login = f"updraft local shell --state {cloud.state_dir} --user {FIRST_USER} {row['id']}"
        assert login in launched.stdout
        assert "its pool answers" in launched.stdout
        pool = RealPool(cloud, row["id"], image)
        try:
            until(lambda: acts(pool), 60, "the controller acts")
            sample_jobs_run(pool)
            assert [one["id"] for one in machines(cloud, "mine.heads")] == [row["id"]]

            again = head("launch", "main", *IN_IMAGE, "--role", "controller")
            assert again.returncode == 0
            assert "is there already" in again.stderr
            assert [one["id"] for one in heads(head)] == [row["id"]]
        except BaseException:
            tell(pool)
            raise
        ended = head("terminate", "main", "--yes")
        assert ended.returncode == 0
        assert heads(head) == []


def test_a_head_boots_from_a_seed_image_and_one_with_a_secret_is_none(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        (tmp_path / "careless").write_text(CARELESS)
        both = ("--condor", "image", *IN_IMAGE)
        bad = head("image", "--name", "bad", *both, "--layer", str(tmp_path / "careless"))
        assert bad.returncode == 1
        assert "/root/.aws/credentials (credentials of a cloud)" in bad.stderr
        assert "not-to-be-seen" not in bad.stderr
        made = head("image", "--name", "seed", *both)
        assert made.returncode == 0
        assert not machines(cloud, "mine.images")
        assert "bad" not in {one["name"] for one in cloud.client().images()}

        words = ("--image", "seed", *both, "--role", "controller", "--wait", "5m")
        launched = head("launch", "seeded", *words)
        assert launched.returncode == 0
        (row,) = heads(head)
        assert row["image"] == "seed"
        pool = RealPool(cloud, row["id"], image)
        try:
            until(lambda: acts(pool), 60, "the controller of a head from a seed image acts")
            sample_jobs_run(pool)
        except BaseException:
            tell(pool)
            raise


@pytest.fixture(scope="session")
def bare(image: Image) -> Image:
    """An image on which there is no updraft, but a Python that can make an environment, and a wheelhouse."""
    store = image.rootfs.parents[1]

    def python(root: Path) -> None:
        for deb in sorted(mirrors.packages(store, image, "python3-venv").glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", str(deb), str(root)], check=True)

    def wheels(root: Path) -> None:
        fetch_wheels(root / WHEELHOUSE, image)

    (system,) = [one for one in image.layers if one.name.startswith("system-")]
    added = (
        layer(store, f"venv-{image.rootfs.name}", python),
        layer(store, f"wheels-{image.rootfs.name}-{digest_of(requirements.locked())}", wheels),
    )
    return Image("bare", (image.rootfs, system, *added))


def fetch_wheels(target: Path, image: Image) -> None:
    """What the lock names for the Python of the image, by its hashes, as a site fills a wheelhouse."""
    version = (image.rootfs / "usr/bin/python3").readlink().name.removeprefix("python")
    there = {"python_full_version": f"{version}.0", "python_version": version}
    chosen = ""
    for entry in re.split(r"^(?=\S)", requirements.locked(), flags=re.MULTILINE)[1:]:
        first, _, hashes = entry.partition(" \\\n")
        name, _, marker = first.partition(" ; ")
        if not marker or Marker(marker).evaluate(there):  # pip would ask its own Python
            chosen += f"{name} \\\n{hashes}"
    tags = [f"--platform=manylinux_2_{minor}_{platform.machine()}" for minor in (34, 28, 27, 17)]
    argv = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
        *("--require-hashes", "--python-version", version, *tags, "--dest", str(target)),
        *("--requirement", "/dev/stdin"),
    ]
    subprocess.run(argv, input=chosen, text=True, check=True)


@pytest.fixture(scope="session")
def house(bare: Image, tmp_path_factory: pytest.TempPathFactory) -> tuple[Image, str]:
    """That image with the wheel of this build in its wheelhouse, and the wheel's hash."""
    folder = tmp_path_factory.mktemp("house")
    target = folder / WHEELHOUSE
    target.mkdir(parents=True)
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(target), versions=["standard"])
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    digest = hashlib.sha256(Path(built).read_bytes()).hexdigest()
    return replace(bare, layers=(*bare.layers, folder)), digest


def test_a_head_without_updraft_installs_this_build_and_no_other(
    image: Image, house: tuple[Image, str], tmp_path: Path
) -> None:
    bare, digest = house
    with a_cloud(image, tmp_path / "cloud", bare) as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        words = ("--image", "bare", "--condor", "image", "--role", "controller", "--wait", "6m")
        known = ("--index", f"file:///{WHEELHOUSE}")

        other = head("launch", "main", *words, "--source", f"{AT}#sha256={'ab' * 32}", *known)
        assert other.returncode == 1
        assert f"updraft-boot: FAILED: {AT} is not what was asked for: its hash" in other.stderr
        assert heads(head) == []

        launched = head("launch", "main", *words, "--source", f"{AT}#sha256={digest}", *known)
        assert launched.returncode == 0
        (row,) = heads(head)
        pool = RealPool(cloud, row["id"], image)
        try:
            until(lambda: acts(pool), 60, "the controller acts")
            listed = pool.on_head("/opt/updraft/bin/pip", "list", "--format=json").stdout
            installed = {f"{canonicalize_name(one['name'])}=={one['version']}" for one in json.loads(listed)}
            locked = set(re.findall(r"^(\S+==\S+)", requirements.locked(), re.MULTILINE))
            assert len(installed) > 40
            assert {one.partition("==")[0] for one in installed - locked} == {"pip", DISTRIBUTION}
            sample_jobs_run(pool)
        except BaseException:
            tell(pool)
            raise


def test_a_boot_that_fails_leaves_no_head(image: Image, bare: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud", bare) as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        refused = head("launch", "main", *IN_IMAGE, "--image", "nothing")
        assert refused.returncode == 1
        assert "there is no image 'nothing'" in refused.stderr

        unknown = head("launch", "main", "--image", "bare", "--source", "updraft==0.1.0")
        assert unknown.returncode == 2
        assert not cloud.client().machines()

        failed = head("launch", "main", "--image", "bare", "--condor", "image", *IN_IMAGE)
        assert failed.returncode == 1
        assert "updraft-boot: FAILED: the image has no updraft" in failed.stderr
        assert "is ended again" in failed.stderr
        assert heads(head) == []
        assert not machines(cloud, "mine.heads")
