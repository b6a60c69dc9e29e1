"""Machines made as a job or its class wants them, on real parts: an image asked for, and one user each."""

from dataclasses import replace
from typing import Any

from tests.rigs.pools.controlling import sh, sleepers
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.base import TAG_CLASS, TAG_VARIANT
from updraft.clouds.local.image import Image
from updraft.demo.pool import RealPool, Wishes

PRIVATE = """
[classes.private]
image = "{image}"
flavors = ["small"]
idle_limit = "6s"
boot_deadline = "3m"
owner_only = true
"""
USERS = ("ann", "ben")


def machine_of(pool: RealPool, job: int) -> str:
    """The instance that a job ran on, or runs on."""
    asked = f"-constraint 'ClusterId == {job}' -af"
    told = sh(pool, f"condor_q -allusers {asked} RemoteHost; condor_history -limit 1 {asked} LastRemoteHost")
    hosts = [line.split("@") for line in told.split() if "@" in line]
    return hosts[0][1] if hosts else ""


def test_jobs_get_the_machines_that_were_made_for_them(real_pool: Any, image: Image) -> None:
    text = settings(worker={"images_allowed": ["second"], "boot_deadline": "3m"}, more=PRIVATE)
    pool = real_pool(Wishes(settings=text, more_images={"second": replace(image, name="second")}))
    sh(pool, f"for user in {' '.join(USERS)}; do useradd -m $user; done")
    on_any, on_private = 'TARGET.UpdraftClass == "worker"', 'TARGET.UpdraftClass == "private"'
    asking = pool.submit('+UpdraftImage = "second"\n' + sleepers(1, 20, requirements=on_any))
    plain = pool.submit(sleepers(1, 20, requirements=on_any))
    own = [pool.submit(sleepers(1, 20, requirements=on_private, user=name), user=name) for name in USERS]
    jobs = [asking, plain, *own]
    until(lambda: all(machine_of(pool, job) for job in jobs), 150, "every job has run or runs")
    there = {one["id"]: one for one in pool.workers("pending", "running", "stopping", "terminated")}
    made = [there[machine_of(pool, job)] for job in jobs]
    assert [one["image"] == "second" for one in made] == [True, False, False, False]
    assert [one["tags"].get(TAG_VARIANT, "") for one in made] == [
        "image=second",
        "",
        *(f"user={name}" for name in USERS),
    ]
    ours = [one for one in there.values() if one["tags"].get(TAG_CLASS)]
    assert len(ours) == len(jobs), "nobody's machine was made twice"
    until(lambda: not pool.workers("pending", "running"), 90, "all of them have gone")
