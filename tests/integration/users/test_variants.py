"""Machines made as a job or its class wants them, on real parts: an image asked for, one user each, and what
a worker's script from elastiq's days does once it is imported."""

import base64
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomlkit

from tests.rigs.pools.controlling import await_done, in_machine, let_end, sh, waiters
from tests.rigs.pools.realpool import settings, until
from updraft import importers
from updraft.clouds.base import TAG_CLASS, TAG_VARIANT
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes

PRIVATE = """
[classes.private]
image = "{image}"
flavors = ["small"]
idle_limit = "6s"
boot_deadline = "3m"
owner_only = true
"""
IMPORTED = """
[classes.imported]
image = "{image}"
flavors = ["small"]
idle_limit = "6s"
boot_deadline = "3m"
"""
USERS = ("ann", "ben")
SCRIPT = """\
#!/bin/bash
cat > /etc/condor/condor_config.local <<CONF
CONDOR_HOST = %ipv4%
UID_DOMAIN = *
CONF
cat <<'END' > /etc/condor/config.d/Group
SEC_DEFAULT_AUTHENTICATION_METHODS = password
END
condor_store_cred -p 12345 -f /etc/condor/pool_password add
service condor start
echo "%ipv4% %fqdn% %path%" > /var/tmp/heads-address
"""


def imported_layers(folder: Path) -> str:
    """The tables of the layers that an import of this script comes to, for the class `imported`."""
    old = folder / "elastiq.conf"
    old.write_text(f"[ec2]\nuser_data_b64 = {base64.b64encode(SCRIPT.encode()).decode()}\n")
    made = tomllib.loads(importers.run([old]).toml)
    (layer,) = made["classes"]["default"]["layers"]
    variables = tomlkit.inline_table()
    variables.update(layer.pop("variables"))
    return "\n[[classes.imported.layers]]\n" + tomlkit.dumps({**layer, "variables": variables})


def machine_of(pool: RealPool, job: int) -> str:
    """The instance that a job runs on; nothing while it waits."""
    hosts = [row["RemoteHost"] for row in pool.queue(f"ClusterId == {job} && JobStatus == 2")]
    return hosts[0].split("@")[1] if hosts else ""


def test_jobs_get_the_machines_that_were_made_for_them(real_pool: Any, image: Image, tmp_path: Path) -> None:
    imported = IMPORTED + imported_layers(tmp_path).replace("{", "{{").replace("}", "}}")
    text = settings(worker={"images_allowed": ["second"], "boot_deadline": "3m"}, more=PRIVATE + imported)
    pool: RealPool = real_pool(Wishes(settings=text, more_images={"second": replace(image, name="second")}))
    sh(pool, f"for user in {' '.join(USERS)}; do useradd -m $user; done")
    on_any, on_private = 'TARGET.UpdraftClass == "worker"', 'TARGET.UpdraftClass == "private"'
    asking = pool.submit('+UpdraftImage = "second"\n' + waiters(1, "seen", requirements=on_any))
    plain = pool.submit(waiters(1, "seen", requirements=on_any))
    own = [pool.submit(waiters(1, "seen", requirements=on_private, user=name), user=name) for name in USERS]
    script = pool.submit(waiters(1, "seen", requirements='TARGET.UpdraftClass == "imported"'))
    jobs = [asking, plain, *own, script]
    until(lambda: all(machine_of(pool, job) for job in jobs), 150, "every job runs")
    there = {one["id"]: one for one in pool.workers("running")}
    made = [there[machine_of(pool, job)] for job in jobs]
    assert [one["image"] == "second" for one in made] == [True, False, False, False, False]
    assert [one["tags"].get(TAG_VARIANT, "") for one in made] == [
        "image=second",
        "",
        *(f"user={name}" for name in USERS),
        "",
    ]
    ours = [one for one in pool.workers() if one["tags"].get(TAG_CLASS)]
    assert len(ours) == len(jobs), "nobody's machine was made twice"

    said = in_machine(pool, made[-1]["id"], "cat", "/var/tmp/heads-address").split()
    head = next(row for row in pool.cloud.client().machines() if row["id"] == pool.head)
    assert said[0] == head["address"]
    assert said[1].startswith(head["name"])
    assert said[2] == "%path%", "what isn't a variable stays"

    let_end(pool, "seen")
    await_done(pool, jobs, 60)
    until(lambda: not pool.workers("pending", "running"), 90, "all of them have gone")
