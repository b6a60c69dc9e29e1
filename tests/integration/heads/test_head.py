"""A head made by `updraft userdata head`: a pool, its controller and a first user, also after a reboot."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.rigs.pools.controlling import (
    ALIVE,
    await_done,
    await_running,
    disturbed,
    events,
    let_end,
    looks,
    outcomes,
    sh,
    sleepers,
    starts_and_ends,
    waiters,
)
from tests.rigs.pools.realpool import Footprint, settings, tell, until, until_nothing
from updraft.cli.main import updraft
from updraft.clouds.base import TAG_POOL
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool, Wishes
from updraft.errors import ProblemFound

pytestmark = pytest.mark.long

SAMPLE_JOBS = 10
FIRST_USER = "user"
IN_IMAGE = ("--source", "image")


def user_data(file: Path, *options: str) -> bytes:
    """What `updraft userdata head` prints, to be sent to a cloud."""
    done = CliRunner().invoke(updraft, ["--config", str(file), "userdata", "head", *IN_IMAGE, *options])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes


@contextmanager
def a_cloud(image: Image, state_dir: Path, *more: Image) -> Iterator[LocalCloud]:
    """A cloud without a machine; nothing of it may be left."""
    config = LocalCloudConfig(images={one.name: tuple(map(str, one.layers)) for one in (image, *more)})
    cloud = process.start(config, state_dir, tie_to_parent=True)
    try:
        yield cloud
    finally:
        footprint = Footprint.of(RealPool(cloud, "", image))
        cloud.stop()
    assert not until_nothing(footprint, 10)


def head_on(cloud: LocalCloud, image: Image, file: Path, role: str, *options: str) -> RealPool:
    """Launch a head as a person does: with that user-data, and this role."""
    [made] = cloud.client().run(
        key="my-head",
        count=1,
        image=image.name,
        flavor="medium",
        zone=cloud.config.zones[0].name,
        market="on-demand",
        tags={"Name": "my-head"},
        role=role,
        user_data=user_data(file, *options),
    )
    pool = RealPool(cloud, str(made["id"]), image)
    until(lambda: "updraft-boot:" in cloud.client().console(pool.head), 90, "the head has booted")
    assert "updraft-boot: ok" in cloud.client().console(pool.head), cloud.client().console(pool.head)[-3000:]
    return pool


def site_file(tmp_path: Path, cloud: LocalCloud, image: Image) -> Path:
    """The updraft.toml of a site that has this cloud."""
    file = tmp_path / "updraft.toml"
    names = {"pool": "mine", "cloud": "here", "endpoint": cloud.config.endpoint, "image": image.name}
    file.write_text(settings().format(**names))
    return file


def daemon_of(pool: RealPool) -> dict[str, Any]:
    """What `updraft service status` says of the daemon; nothing while the head is between two lives."""
    try:
        done = pool.updraft("service", "status", "--json")
        return dict(json.loads(done.stdout)["daemon"] or {})
    except (ValueError, ProblemFound, subprocess.SubprocessError):
        return {}


def acts(pool: RealPool, *, since: float = 0.0) -> bool:
    """True while a daemon that started after `since` acts."""
    daemon = daemon_of(pool)
    return bool(daemon.get("alive") and daemon["acting"] and daemon["since"] > since)


def test_a_head_without_credentials_waits_for_them_and_then_its_first_users_jobs_run(
    image: Image, tmp_path: Path
) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        file = site_file(tmp_path, cloud, image)
        file.write_text(
            file.read_text().replace("[classes.", 'credential_file = "/etc/updraft/cloud"\n\n[classes.', 1)
        )
        pool = head_on(cloud, image, file, "", "--paste")
        try:
            until(lambda: acts(pool), 40, "the controller is at work all the same")
            pid = daemon_of(pool)["pid"]
            says = lambda: "/etc/updraft/cloud" in pool.updraft("status").stdout  # noqa: E731
            until(says, 20, "status says what is missing")
            looks(pool, 3)  # in which it must not say it again
            log = sh(pool, "cat /var/log/updraft.log")
            assert log.count("can't be asked, and is waited for") == 1
            assert "Traceback" not in log
            _samples_are_there(pool)
            token = cloud.credential_file.read_text()
            put = pool.on_head("sh", "-c", "umask 077; cat > /etc/updraft/cloud", stdin=token)
            assert put.returncode == 0
            short = ("-append", "arguments = 1 $(Cluster).$(Process)")
            done = pool.on_head("condor_submit", "-terse", *short, "test.sub", user=FIRST_USER)
            assert done.returncode == 0, done.stderr
            cluster = int(done.stdout.split(".")[0])
            await_done(pool, [cluster], 120)
            assert sorted(outcomes(pool, cluster)) == [(4, 0, 1)] * SAMPLE_JOBS
            printed = sh(pool, f"cat /home/{FIRST_USER}/test.{cluster}.*.out")
            assert printed.count("is done") == SAMPLE_JOBS
            assert {m["tags"].get(TAG_POOL) for m in pool.workers()} == {"mine"}
            assert daemon_of(pool)["pid"] == pid, "it was never started anew"
            assert "cloud here can be asked now" in sh(pool, "cat /var/log/updraft.log")
            until(lambda: not pool.workers(*ALIVE), 90, "its workers are gone")
        except BaseException:
            tell(pool)
            raise


def _samples_are_there(pool: RealPool) -> None:
    home = sh(pool, f"ls -l /home/{FIRST_USER}")
    assert all(name in home for name in ("README.txt", "test.sub", "test-docker.sub", "test.sh"))
    dry = pool.on_head("condor_submit", "-dry-run", "-", "test-docker.sub", user=FIRST_USER)
    assert dry.returncode == 0, dry.stderr
    assert 'DockerImage="debian:stable-slim"' in dry.stdout


def test_after_a_reboot_of_the_head_nothing_is_to_be_done_by_hand(real_pool: Any) -> None:
    pool = real_pool(Wishes())
    running = pool.submit(waiters(2, "rebooted"))
    await_running(pool, running, 2)
    waiting = pool.submit(sleepers(3, 1, requirements="Memory > 999999999"))
    before = {m["id"] for m in pool.workers("running")}
    ids, key = pool.head, sh(pool, "sha256sum /etc/condor/passwords.d/updraft-workers")
    started = daemon_of(pool)["since"]

    pool.cloud.client().reboot(pool.head)

    until(lambda: acts(pool, since=started), 90, "the controller acts again", every=1)
    until(lambda: pool.queue(f"ClusterId == {running} && JobStatus == 2"), 30, "the jobs are running still")
    assert len(pool.queue(f"ClusterId == {waiting}")) == 3, "the queue was kept"
    assert "skuid 0 accept" in sh(pool, "nft list table inet updraft"), "the metadata address is closed again"
    assert "updraft/door" in sh(pool, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' || true")
    assert sh(pool, "sha256sum /etc/condor/passwords.d/updraft-workers") == key
    assert [m["state"] for m in pool.cloud.client().machines() if m["id"] == ids] == ["running"]
    let_end(pool, "rebooted")
    await_done(pool, [running], 90)
    assert [found[:2] for found in outcomes(pool, running)] == [(4, 0)] * 2
    assert starts_and_ends(pool, running) == ["001"] * 2 + ["005"] * 2
    assert not [line for line in disturbed(pool, running).splitlines() if not line.startswith("022")]
    assert {m["id"] for m in pool.workers()} == before, "no machine was doubled, and none taken for lost"
    assert len(events(pool, "started")) == 2
    # It buys and ends machines as before: its keys, its ledger and its rights are all there.
    more = pool.submit(sleepers(1, 1, cpus=4))
    await_done(pool, [more], 120)
    sh(pool, f"condor_rm {waiting}")
    until(lambda: not pool.workers(*ALIVE), 90, "all machines are gone")
    assert len(pool.workers()) > len(before)
    assert not events(pool, "requeue-jobs")
