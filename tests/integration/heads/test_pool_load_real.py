"""`pool load` for real: a head with a collector tree, simulated and real startds, and nothing left."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from tests.rigs.pools.realpool import at_a_terminal, until
from updraft.cli.schemas import FORMS
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

MACHINES = 200
REAL = 3
# What needs no measuring waits for nothing: the negotiator looks often.
QUICK = """\
use FEATURE:ChildCollector(1)
use FEATURE:ChildCollector(2)
COLLECTOR_FORWARD_FILTERING = True
NEGOTIATOR_CONSIDER_PREEMPTION = False
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
"""


def command() -> list[str]:
    """`updraft pool load`, with the images of these tests."""
    store = os.environ.get("UPDRAFT_IMAGE_STORE", str(DEFAULT_STORE))
    return [sys.executable, "-m", "updraft.cli.main", "pool", "load", "--store", store]


def mounts_and_processes() -> set[str]:
    """What a load test could leave on this machine: mounts, its processes, its directories."""
    ours = {f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and "updraft-load-" in words:
            ours.add(f"process {words}")
    return ours | {f"directory {path}" for path in Path("/tmp").glob("updraft-load-*")}


def senders() -> set[str]:
    """The processes that join the machines of load tests."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"updraft.load.sender" in (entry / "cmdline").read_bytes():
                found.add(entry.name)
    return found


@pytest.fixture(scope="module")
def document(images: Callable[..., Image], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One test with all that there is in it; afterwards the machine is as before."""
    images()
    config = tmp_path_factory.mktemp("load") / "head.conf"
    config.write_text(QUICK)
    before = mounts_and_processes()
    words = ["--machines", str(MACHINES), "--updates-every", "10s", "--seconds", "25", "--join-rate", "20"]
    words += ["--jobs", "400", "--groups", "40", "--real", str(REAL), "--loss-rate", "20"]
    done = subprocess.run(
        [*command(), *words, "--config", str(config), "--json"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout, done.stderr  # 1 is the code of errors, too
    assert mounts_and_processes() <= before
    found: dict[str, Any] = json.loads(done.stdout)
    validate(found, FORMS["pool load"])
    return found


def test_every_update_is_counted_by_the_collector_that_it_was_sent_to(document: dict[str, Any]) -> None:
    (run,) = document["runs"]
    updates = run["updates"]
    assert run["children"] == 2
    assert (updates["lost"], updates["failed"], updates["errors"]) == (0, 0, [])
    assert updates["taken"] == updates["sent"] >= 3 * 2 * MACHINES
    assert run["lost_machines"] > 0
    assert run["joined"] <= MACHINES
    assert run["shown"] == run["joined"] > MACHINES / 2


def test_the_negotiator_had_all_slots_and_groups(document: dict[str, Any]) -> None:
    (run,) = document["runs"]
    assert run["cycle"]["slots"] >= run["joined"]
    assert run["cycle"]["considered"] >= run["groups"] == 40
    assert run["cycle"]["idle_jobs"] >= 400
    assert 0 < run["status"] <= run["status_longest"]


def test_each_daemon_is_measured(document: dict[str, Any]) -> None:
    (run,) = document["runs"]
    daemons = {one["name"]: one for one in run["daemons"]}
    assert {"collector", "collector 1", "collector 2", "negotiator", "schedd", "startd"} <= set(daemons)
    for one in daemons.values():
        assert 0 < one["memory"] < 500
        assert 0 < one["descriptors"] < one["descriptor_limit"]
    assert daemons["startd"]["processes"] == daemons["shadow"]["processes"] == REAL


def test_real_startds_run_a_job_each_and_what_follows_is_extrapolated(document: dict[str, Any]) -> None:
    real = document["real"]
    assert (real["joined"], real["running"]) == (REAL, REAL)
    assert 1 < real["memory"] < 100
    assert real["collector_descriptors"] >= 1
    assert document["runs"][0]["extrapolated"]["shadows, MiB"] == pytest.approx(real["shadow"] * MACHINES)


def test_an_interrupted_test_leaves_nothing(images: Callable[..., Image]) -> None:
    images()
    before, others = mounts_and_processes(), senders()
    load = subprocess.Popen(
        [*command(), "--machines", "100", "--seconds", "300", "--jobs", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=at_a_terminal,  # no thread holds a lock that it would need
        start_new_session=True,
    )
    try:
        assert load.stderr is not None
        told: list[str] = []
        for line in load.stderr:
            told.append(line)
            if "machines join" in line:
                break
        assert "machines join" in told[-1]
        until(lambda: senders() - others, 30, "what joins its machines is at work")
        os.killpg(load.pid, signal.SIGINT)
        load.communicate(timeout=60)
    finally:
        load.kill()
    assert load.returncode not in (0, 1)
    assert mounts_and_processes() <= before
