"""`updraft head` on the local cloud: launched, found again, a job runs there, a seed image of one, ended."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controlling import await_done, outcomes
from realpool import say, tell, until
from test_head import FIRST_USER, SAMPLE_JOBS, a_cloud, acts, site_file

from updraft.clouds.base import TAG_POOL
from updraft.clouds.local import process
from updraft.clouds.local.image import Image
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool

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


def without_updraft(cloud: LocalCloud, image: Image, name: str) -> None:
    """Make an image on which there is no updraft, as on one of a distribution."""
    client = cloud.client()
    [made] = client.run(
        key=name, count=1, image=image.name, flavor="small", zone="zone-a", market="on-demand", tags={}
    )

    until(lambda: [one for one in client.machines() if one["state"] == "running"], 60, "the machine runs")
    process.run_in(cloud, made["id"], ["rm", "/usr/local/bin/updraft"]).check_returncode()
    client.make_image(made["id"], name, {})
    until(lambda: [one for one in client.images() if one["name"] == name], 60, "its image is there")
    client.terminate([made["id"]])


def test_a_head_is_launched_and_a_job_runs_there(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        launched = head("launch", "main", "--role", "controller", "--wait", "5m")
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

            again = head("launch", "main", "--role", "controller")
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
        bad = head("image", "--name", "bad", "--condor", "image", "--layer", str(tmp_path / "careless"))
        assert bad.returncode == 1
        assert "/root/.aws/credentials (credentials of a cloud)" in bad.stderr
        assert "not-to-be-seen" not in bad.stderr
        made = head("image", "--name", "seed", "--condor", "image")
        assert made.returncode == 0
        assert not machines(cloud, "mine.images")
        assert "bad" not in {one["name"] for one in cloud.client().images()}

        words = ("--image", "seed", "--condor", "image", "--role", "controller", "--wait", "5m")
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


def test_a_boot_that_fails_leaves_no_head(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        head = beside(cloud, site_file(tmp_path, cloud, image))
        refused = head("launch", "main", "--image", "nothing")
        assert refused.returncode == 1
        assert "there is no image 'nothing'" in refused.stderr

        without_updraft(cloud, image, "bare")
        failed = head("launch", "main", "--image", "bare", "--source", "/nowhere/updraft.whl")
        assert failed.returncode == 1
        assert "updraft-boot: FAILED: " in failed.stderr
        assert "is ended again" in failed.stderr
        assert heads(head) == []
        assert not machines(cloud, "mine.heads")
