"""Images of real machines: built with a layer, made of a worker, used by a class, refused with a secret."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rigs.pools.controlling import slot_of
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.local import process
from updraft.demo.pool import USER, RealPool, Wishes

pytestmark = pytest.mark.extended

Pools = Callable[..., RealPool]
LAYER = """\
#cloud-config
write_files:
- path: /usr/local/bin/answer
  permissions: '0755'
  content: |
    #!/bin/sh
    echo 42
"""
CARELESS = """\
#cloud-config
write_files:
- path: /root/.netrc
  content: machine example.org password not-to-be-seen
"""
TRIAL = "#!/bin/sh\nexec answer\n"
JOB = """\
executable = /usr/local/bin/answer
transfer_executable = false
output = answered
request_memory = 200MB
request_disk = 10MB
requirements = UpdraftClass == "baked"
queue
"""
BAKED = """
[classes.baked]
image = "with-answer"
flavors = ["small"]
"""
GONE = (
    "/etc/condor/tokens.d/updraft",
    "/etc/updraft",
    "/var/lib/cloud/instance",
    "/etc/condor/config.d/95-updraft-image.conf",
)


def image(pool: RealPool, *words: str) -> "process.subprocess.CompletedProcess[str]":
    return pool.on_head("updraft", "image", *words, timeout=400)


def write(pool: RealPool, path: str, text: str) -> None:
    pool.on_head("sh", "-c", 'cat >"$1"', "sh", path, stdin=text).check_returncode()


def builders(pool: RealPool) -> list[str]:
    found = pool.workers("pending", "running")
    return [one["id"] for one in found if one["tags"].get("updraft:pool", "").endswith(".images")]


def test_an_image_is_built_tried_used_and_made_again(real_pool: Pools, tmp_path: Path) -> None:
    pool = real_pool(Wishes(settings=settings(more=BAKED)))
    write(pool, "/root/layer", LAYER)
    write(pool, "/root/trial", TRIAL)
    write(pool, "/root/secret", CARELESS)

    bad = image(pool, "build", "worker", "--name", "bad", "--layer", "/root/secret", "--no-test")
    assert bad.returncode == 1
    assert "/root/.netrc (other credentials)" in bad.stderr
    assert "not-to-be-seen" not in bad.stderr
    until(lambda: not builders(pool), 30, "the machine of a build that failed is ended")

    words = ("build", "worker", "--name", "with-answer", "--layer", "/root/layer", "--trial", "/root/trial")
    built = image(pool, *words)
    assert built.returncode == 0, built.stderr
    assert "the trial job is done: 42" in built.stderr
    until(lambda: not builders(pool), 30, "the machine that the image is of is ended")

    pool.submit(JOB)
    (worker,) = until(lambda: pool.workers("running"), 60, "a machine of the image")
    answered = f"/home/{USER}/answered"
    until(lambda: pool.on_head("cat", answered).stdout == "42\n", 120, "a job on the image is done")
    assert worker["image"] == "with-answer"
    busy = lambda: (slot_of(pool, worker["id"]) or {}).get("NumDynamicSlots")  # noqa: E731
    until(lambda: not busy(), 60, "the job's claim is over")

    made = image(pool, "make", worker["id"], "--name", "made", "--class", "baked", "--trial", "/root/trial")
    assert made.returncode == 0, made.stderr
    names = pool.show("image", "list", "--made")["images"]
    assert {one["name"]: one["from"] for one in names} == {"with-answer": "forky", "made": worker["id"]}
    plain = pool.cloud.client().run(key="look", count=1, image="made", flavor="small", zone="zone-a")[0]["id"]
    for path in GONE:
        assert process.run_in(pool.cloud, plain, ["test", "-s", path]).returncode != 0, path
