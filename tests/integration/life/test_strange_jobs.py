"""What one user writes into their own jobs costs that user, on a real pool: everybody else is served, and the
culprit is named in `status`, in `check` and in the events."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.pools.controlling import await_running, events, sh, sleepers
from tests.rigs.pools.realpool import RealPools, until
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

CULPRIT, HONEST = "bob", "alice"
JOB = "executable = /bin/sleep\narguments = 600\n"
NOT_ASKED_FOR = "what it wants of its machine can't be asked for"  # by requirements that don't name it
# What is submitted, and what is said of it.
SUBMITTED = {
    "request_memory = RequestMemory\nqueue\n": "RequestMemory refers to itself",
    "request_disk = RequestDisk\nqueue\n": f"RequestDisk refers to itself|{NOT_ASKED_FOR}",
    "+Foo = Foo + 1\nrequirements = Foo > 1\nqueue\n": "Foo refers to itself",
    "request_cpus = Foo\n+Foo = Bar\n+Bar = Foo\nqueue\n": "refers to itself",
}
# HTCondor 25 takes it for undefined where it meets itself, and so runs this with 2 cpus; 23.9 never runs it.
INNOCENT = "request_cpus = ifthenelse(isUndefined(RequestCpus), 2, RequestCpus)\nqueue\n"
FACTORY = "max_materialize = 2\nqueue 20\n"
EDITED = "JobMaterializeNextProcId"
ODD_AD = """\
MyType = "Machine"
Name = "slot1@odd"
Machine = "odd"
MyAddress = "<10.99.0.77:9618>"
State = "Unclaimed"
Activity = "Idle"
PartitionableSlot = true
Cpus = 8
Memory = 1e308
Disk = 100000000
Start = true
Requirements = Start
"""


@pytest.fixture(scope="module", params=["forky", "trixie"])
def pool(module_pool: RealPools, request: pytest.FixtureRequest) -> Iterator[RealPool]:
    return module_pool(Wishes(), suite=request.param)


def told(pool: RealPool, code: str) -> list[str]:
    """The sentences of the last look's warnings with this code."""
    return [one["text"] for one in pool.show("status")["warnings"] if one["code"] == code]


def checked(pool: RealPool) -> dict[str, list[dict[str, Any]]]:
    """The findings of a check that aren't ok, by what they are about."""

    def answered() -> Any:
        done = pool.updraft("check", "--json")  # on a slow machine somebody may be too late for it
        return done.returncode == 0 and json.loads(done.stdout)

    found: dict[str, list[dict[str, Any]]] = {}
    for one in until(answered, 60, "a check finds nothing wrong")["findings"]:
        found.setdefault(one["what"], []).append(one)
    return found


def test_one_users_jobs_stop_nobody_else(pool: RealPool) -> None:
    culprits = {pool.submit(JOB + text, user=CULPRIT): why for text, why in SUBMITTED.items()}
    cluster = pool.submit(JOB + FACTORY, user=CULPRIT)
    until(lambda: len(pool.queue(f"ClusterId == {cluster}")) == 2, 30, "the factory has made two jobs")
    for line in ("JobMaterializeLimit=0", f"{EDITED}=-1e30"):
        done = pool.on_head("condor_qedit", str(cluster), line, user=CULPRIT)
        assert done.returncode == 0, done.stdout + done.stderr
    done = pool.on_head("condor_advertise", "-tcp", "UPDATE_STARTD_AD", "-", stdin=ODD_AD)
    assert done.returncode == 0, done.stdout + done.stderr
    honest = pool.submit(sleepers(2, 600), user=HONEST)
    innocent = pool.submit(JOB + INNOCENT, user=CULPRIT)
    await_running(pool, honest, 2, 120)
    if " 25." in sh(pool, "condor_version"):
        await_running(pool, innocent, 1, 120)

    def named() -> bool:
        said = told(pool, "left-out")
        whose = f" of {CULPRIT} at schedd"
        return all(
            any(f"{number}.0" in one and whose in one and re.search(why, one) for one in said)
            for number, why in culprits.items()
        )

    until(named, 30, "all are named with their owner")
    said = told(pool, "left-out")
    assert not any(HONEST in one for one in said)
    groups = {one["first_id"]: one for one in pool.show("status")["groups"]}
    for number, why in culprits.items():
        found = groups[f"{number}.0"]
        assert (found["owner"], found["evaluable"]) == (CULPRIT, False)
        assert any(re.search(why, reason["text"]) for reason in found["held_back"])

    found = checked(pool)
    assert {one["state"] for one in found["jobs left out"]} == {"warning"}
    assert sorted(one["text"] for one in found["jobs left out"]) == sorted(said)
    assert any("slot1@odd" in one["text"] and "Memory is 1e+308" in one["text"] for one in found["odd slot"])
    assert {one["text"] for one in events(pool, "left-out")} >= set(said)
    assert any("slot1@odd" in one["text"] for one in events(pool, "odd-slot"))
    number = next(iter(culprits))
    assert "refers to itself" in pool.updraft("explain", f"{number}.0").stdout
    log = sh(pool, "cat /var/log/updraft.log")
    assert not re.search(r"cycle failed|Traceback", log)


def test_it_is_forgotten_when_the_jobs_are_gone(pool: RealPool) -> None:
    sh(pool, f"condor_rm {CULPRIT}")
    until(lambda: not told(pool, "left-out"), 40, "nothing is left out any more")
    assert "jobs left out" not in checked(pool)
