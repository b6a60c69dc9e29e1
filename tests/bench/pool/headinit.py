"""`updraft head init` on a plain machine of the local cloud, until its self-test's job is done."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.pool.live import SETTINGS
from tests.bench.rows import Measured
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool

USER = "alice"
JOB_DONE = re.compile(r"^Job \S+ is done, after (\S+), on (\S+)\.$", re.M)


def measure(image: Image, folder: Path, say: Callable[[str], None]) -> Measured:
    """From the call to its end: configuration, keys, account, start of HTCondor and updraft, a worker's boot.

    The machine has booted before, with HTCondor and updraft installed and nothing set up.
    """
    config = LocalCloudConfig(images={image.name: tuple(map(str, image.layers))})
    cloud = process.start(config, folder, tie_to_parent=True)
    try:
        pool = RealPool(cloud, _plain_machine(cloud, image), image)
        names = {"pool": "bench", "cloud": "here", "endpoint": cloud.config.endpoint, "image": image.name}
        pool.on_head("sh", "-c", "mkdir -p /etc/updraft; cat >/etc/updraft/updraft.toml",
                     stdin=SETTINGS.format(**names)).check_returncode()  # fmt: skip
        say("A plain machine becomes a head, and runs a job.")
        begun = time.perf_counter()
        done = pool.updraft("head", "init", "--user", USER, timeout=400)
        took = time.perf_counter() - begun
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        job = JOB_DONE.search(done.stdout)
        if job is None or len(pool.history(["JobStatus"])) != 1:
            raise AssertionError(f"no job was run: {done.stdout[-500:]}")
        return Measured(took, {"job_took": job[1], "job_ran_on": job[2]})
    finally:
        cloud.stop()


def _plain_machine(cloud: process.LocalCloud, image: Image) -> str:
    """A machine that was told nothing, once it has booted."""
    [made] = cloud.client().run(
        key="plain", count=1, image=image.name, flavor="medium", zone=cloud.config.zones[0].name,
        market="on-demand", tags={"Name": "plain"}, role="controller", user_data=b"#cloud-config\n{}\n",
    )  # fmt: skip
    until = time.monotonic() + 90
    while "cloud-init is done" not in cloud.client().console(made["id"]):
        if time.monotonic() > until:
            raise TimeoutError("the machine did not boot within 90 s")
        time.sleep(0.2)
    return str(made["id"])
