"""Workers of a real pool: what they say and keep to themselves, boots that fail, and how they end alone."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.rigs.pools.realpool import patience, settings, until
from updraft.clouds.local import process
from updraft.clouds.local.config import METADATA_ADDRESS
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.image import Image
from updraft.clouds.local.network import BRIDGE
from updraft.demo.pool import CLOUD, POOL, USER, RealPool, Wishes

SLEEP = """\
executable = /bin/sleep
arguments = {seconds}
transfer_executable = false
request_cpus = 1
request_memory = 200MB
request_disk = 10MB
requirements = {requirements}
queue {count}
"""
Pools = Callable[..., RealPool]
Images = Callable[..., Image]


def sleepers(count: int, seconds: float, requirements: str = "true") -> str:
    return SLEEP.format(count=count, seconds=seconds, requirements=requirements)


def ended_jobs(pool: RealPool) -> int:
    return len(pool.history(["ClusterId"]))


def of_kind(pool: RealPool, kind: str) -> list[dict[str, Any]]:
    return [event for event in pool.events() if event["kind"] == kind]


def joined(pool: RealPool, count: int, deadline: float = 60) -> list[dict[str, Any]]:
    """Wait until so many machines have joined, and return their rows."""

    def rows() -> list[dict[str, Any]]:
        found = [m for m in pool.show("machines")["machines"] if m["phase"] == "joined"]
        return found if len(found) == count else []

    return until(rows, deadline, f"{count} machines joined")


# ------------------------------------------------------------------------------ on a pool that they share

TWO_CLASSES = """
[classes.worker.attributes]
Rack = '"r7"'

[classes.halves]
image = "{image}"
flavors = ["medium"]
slots = 2
min = 1
idle_limit = "6s"
head_gone_after = "5m"
"""


@pytest.fixture(scope="module")
def shared(module_pool: Pools) -> RealPool:
    text = settings(worker={"flavors": ["small"], "min": 1}, more=TWO_CLASSES)
    pool = module_pool(Wishes(settings=text))
    joined(pool, 2)
    return pool


def test_each_slot_says_whose_it_is(shared: RealPool) -> None:
    rows = {row["id"]: row for row in joined(shared, 2)}
    slots = shared.slots()
    assert {slot["UpdraftInstance"] for slot in slots} == set(rows)
    assert sorted(row["class"] for row in rows.values()) == ["halves", "worker"]
    for slot in slots:
        row = rows[slot["UpdraftInstance"]]
        assert slot["UpdraftPool"] == POOL
        assert slot["UpdraftCloud"] == row["cloud"] == CLOUD
        for attribute, key in (
            ("UpdraftClass", "class"),
            ("UpdraftZone", "zone"),
            ("UpdraftImage", "image"),
            ("UpdraftFlavor", "flavor"),
            ("UpdraftMarket", "market"),
            ("UpdraftLaunch", "launch"),
            ("UpdraftGeneration", "generation"),
        ):
            assert slot[attribute] == row[key] != "", attribute
        assert slot.get("Rack") == ("r7" if row["class"] == "worker" else None)
    own = {machine["id"]: machine for machine in shared.workers()}
    assert {own[id_]["flavor"] for id_ in rows} == {"small", "medium"}


def test_static_slots_are_filled_and_counted(shared: RealPool) -> None:
    halves = [slot for slot in shared.slots() if slot["UpdraftClass"] == "halves"]
    assert [(slot["SlotType"], slot["Cpus"], slot["Memory"]) for slot in halves] == [("Static", 1, 2048)] * 2
    assert len({slot["UpdraftInstance"] for slot in halves}) == 1
    before, done = len(shared.workers()), ended_jobs(shared)
    shared.submit(sleepers(3, 30, 'TARGET.UpdraftClass == "halves"'))

    def hosts() -> list[str]:
        found = [job["RemoteHost"] for job in shared.queue("JobStatus == 2")]
        return found if len(found) == 3 else []

    running = until(hosts, 60, "three jobs running at once")
    assert len({host.split("@")[1] for host in running}) == 2, "two of them share the machine that was there"
    until(lambda: ended_jobs(shared) == done + 3, 90, "three jobs done")
    assert len(shared.workers()) == before + 1


def test_the_gateway_keeps_its_hardware_address_while_machines_come_and_go(shared: RealPool) -> None:
    """Else each machine loses sight of the cloud for half a minute."""
    assert len(shared.workers()) >= 2
    command = [
        "nsenter",
        "--target",
        str(shared.cloud.pid),
        "--net",
        "--",
        "ip",
        "-o",
        "link",
        "show",
        BRIDGE,
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "link/ether 02:00:0a:4d:00:01 " in shown


PROBE = '''\
#!/usr/bin/python3
"""What a user of this machine can reach that isn't for users; prints it as JSON."""
import json, os, re, sys, urllib.error, urllib.request

TOKEN = re.compile(rb"eyJ[A-Za-z0-9_-]{10,}[.][A-Za-z0-9_-]{10,}[.]")

def ask(url, method="GET", data=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return "closed"

def tokens():
    folders = ("/etc", "/run", "/var", "/tmp", "/opt/updraft", "/root", "/home")
    trees = [tree for folder in folders for tree in os.walk(folder)]
    places = [os.path.join(top, name) for top, _, names in trees for name in names]
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    places += [f"/proc/{pid}/{what}" for pid in pids for what in ("cmdline", "environ")]
    for place in places:
        try:
            if place.startswith("/proc/") or (os.path.isfile(place) and os.path.getsize(place) < 1 << 20):
                if TOKEN.search(open(place, "rb").read()):
                    yield place
        except OSError:
            pass

metadata, api = sys.argv[1:]
json.dump({
    "uid": os.getuid(),
    "user-data": ask(f"http://{metadata}/latest/user-data"),
    "session": ask(f"http://{metadata}/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60"),
    "api without a token": ask(f"{api}/v1/list", "POST", b"{}"),
    "api with a wrong one": ask(f"{api}/v1/list", "POST", b"{}", Authorization="Bearer wrong"),
    "tokens": sorted(tokens()),
}, sys.stdout)
'''
PROBING = """\
executable = probe.py
arguments = {metadata} {api}
output = probe.out
error = probe.err
should_transfer_files = YES
requirements = TARGET.UpdraftClass == "worker"
request_memory = 200MB
queue
"""
CLOSED = {
    "user-data": "closed",
    "session": "closed",
    "api without a token": 401,
    "api with a wrong one": 401,
    "tokens": [],
}


def test_a_job_reaches_neither_metadata_nor_token_nor_the_cloud(shared: RealPool) -> None:
    api = shared.cloud.config.endpoint
    done = ended_jobs(shared)
    shared.on_head("sh", "-c", "cat > probe.py && chmod +x probe.py", user=USER, stdin=PROBE)
    shared.submit(PROBING.format(metadata=METADATA_ADDRESS, api=api))
    until(lambda: ended_jobs(shared) == done + 1, 60, "the probing job done")
    out = shared.on_head("sh", "-c", "cat probe.out; cat probe.err >&2", user=USER)
    seen = json.loads(out.stdout or "null")
    assert seen is not None, out.stderr
    assert seen.pop("uid") != 0
    assert seen == CLOSED

    # The same eyes as root, on the worker: the probe does see what is there.
    (worker,) = {s["UpdraftInstance"] for s in shared.slots() if s["UpdraftClass"] == "worker"}
    argv = ("python3", "-", METADATA_ADDRESS, api)
    root = json.loads(process.run_in(shared.cloud, worker, argv, stdin=PROBE).stdout)
    assert (root["uid"], root["user-data"], root["session"]) == (0, 200, 200)
    assert "/etc/condor/tokens.d/updraft" in root["tokens"]
    assert not [place for place in root["tokens"] if place.startswith("/proc/")]

    # And as a user of the head, who must not have the credential of its role.
    user = json.loads(shared.on_head(*argv, user=USER, stdin=PROBE).stdout)
    assert user.pop("uid") != 0
    assert user == CLOSED


# ------------------------------------------------------------------------------------- boots that fail


def test_a_boot_that_never_joins_ends_at_its_learned_deadline_and_rests(real_pool: Pools) -> None:
    timings = {"boot_floor": "6s", "boot_slack": 2.0, "failures_to_probe": 1, "cooldown_first": "12s"}
    pool = real_pool(
        Wishes(
            settings=settings(
                worker={"flavors": ["small"], "boot_deadline": "90s", "idle_limit": "2s"}, timings=timings
            )
        )
    )
    pool.submit(sleepers(1, 1))
    until(lambda: ended_jobs(pool) == 1, 60, "a first job done")
    until(lambda: not pool.workers("pending", "running", "stopping"), 40, "its machine gone")
    first = pool.workers()[0]["id"]
    row = pool.show("explain", first)["machine"]
    deadline = max(6.0, 2 * (row["joined_at"] - row["requested_at"]))

    pool.cloud.set_faults(Fault(FaultKind.NEVER_BOOTS))
    cluster = pool.submit(sleepers(3, 1))
    rests = until(lambda: pool.show("status")["cooldowns"], 90, "a rest after the failure")
    # While the fault lasts: afterwards the jobs may be done before they are asked about.
    waiting = pool.show("explain", str(cluster))
    text = pool.updraft("explain", str(cluster)).stdout
    pool.cloud.set_faults()

    failed = [machine["id"] for machine in pool.workers() if machine["id"] != first]
    assert 1 <= len(failed) <= 3
    for machine in failed:
        told = pool.show("explain", machine)
        took = told["machine"]["ended_at"] or time.time()
        took -= told["machine"]["requested_at"]
        assert deadline <= took < min(90, deadline + 15 * patience())
        ends = [event for event in told["events"] if event["kind"] == "terminate"]
        assert [event["code"] for event in ends] == ["never-joined"]
        assert deadline <= ends[0]["at"] - told["machine"]["requested_at"] < deadline + 8 * patience()
        assert "Kernel panic" in told["console"]
        assert "Kernel panic" in pool.updraft("explain", machine).stdout

    (rest,) = rests
    assert (rest["scope"], rest["failures"], rest["probe"]) == ("image", len(failed), True)
    (group,) = waiting["groups"]
    assert {reason["code"] for reason in group["held_back"]} <= {"cooling-down", "probing"}
    assert group["held_back"]
    assert all(offer["rests"] for offer in group["offers"])
    assert "rests until" in text

    before = len(of_kind(pool, "launch"))
    until(lambda: ended_jobs(pool) == 4, 120, "the jobs done once the fault is over")
    probe = of_kind(pool, "launch")[before]
    assert probe["detail"]["asked"] == 1
    assert probe["at"] >= rest["until"] - 0.5
    assert pool.show("status")["cooldowns"] == []


def never_joined(pool: RealPool) -> list[str]:
    return [event["subject"] for event in of_kind(pool, "terminate") if event["code"] == "never-joined"]


SOUND = """
[classes.sound]
image = "{image}"
flavors = ["large"]
idle_limit = "6s"
head_gone_after = "5m"
"""


def test_an_image_without_htcondor_costs_a_few_machines_and_the_rest_goes_on(
    real_pool: Pools, images: Images
) -> None:
    dry = images(condor=False)
    text = settings(
        worker={"image": dry.name, "flavors": ["small"], "boot_deadline": "25s"},
        limits={"machines": 20, "cores": 40},
        timings={"trial": 2, "cooldown_first": "20s", "boot_floor": "8s"},
        more=SOUND,
    )
    pool = real_pool(Wishes(settings=text, more_images={dry.name: dry}))
    pool.submit(sleepers(12, 2))
    until(lambda: ended_jobs(pool) == 12, 120, "all jobs done, on the other class", 1)
    until(lambda: never_joined(pool), 60, "the first failed boot ended, whatever else was by then")
    machines = pool.workers()
    broken = [machine for machine in machines if machine["image"] == dry.name]
    assert 1 <= len(broken) <= 4, "two are tried, then one for each rest that is over"
    why = "updraft-boot: FAILED: the image has no HTCondor (condor_master is not there)"
    lost = never_joined(pool)[0]
    told = pool.show("explain", lost)
    assert told["machine"]["reason"]["code"] == "never-joined"
    assert why in told["console"]
    assert why in pool.updraft("explain", lost).stdout
    events = of_kind(pool, "joined")
    assert {event["subject"] for event in events} == {m["id"] for m in machines} - {m["id"] for m in broken}


# ------------------------------------------------------------------------------------- ends by itself


def shut_down_from_inside(pool: RealPool, machine: str, deadline: float) -> str:
    """Wait until the machine has powered itself off; returns its console."""
    until(
        lambda: [m for m in pool.workers("terminated") if m["id"] == machine],
        deadline,
        f"{machine} powered off by itself",
        1,
    )
    (found,) = [m for m in pool.workers() if m["id"] == machine]
    assert found["why_ended"] == "it was shut down from inside"
    return pool.cloud.client().console(machine)


def test_a_worker_without_a_claim_whose_head_is_gone_powers_itself_off(real_pool: Pools) -> None:
    text = settings(
        pool={"job_lease": "10s"}, worker={"flavors": ["small"], "min": 1, "head_gone_after": "10s"}
    )
    pool = real_pool(Wishes(settings=text))
    (row,) = joined(pool, 1)
    pool.cloud.client().crash(pool.head)
    console = shut_down_from_inside(pool, row["id"], 75)
    assert re.search(r"updraft-guard: powering off: no claim and no head for [1-9]\d+ s", console)


def test_a_worker_past_its_lifetime_finishes_its_job_takes_none_and_powers_itself_off(
    real_pool: Pools,
) -> None:
    """The worker's own doing: the controller is stopped."""
    worker = {"flavors": ["small"], "min": 1, "lifetime": "15s", "drain_deadline": "25s"}
    pool = real_pool(Wishes(settings=settings(worker=worker)))
    kept = pool.submit(sleepers(1, 18))
    (job,) = until(lambda: pool.queue("JobStatus == 2"), 40, "the job running", 0.2)
    pool.on_head("systemctl", "stop", "updraft")
    machine = job["RemoteHost"].split("@")[1]
    late = pool.submit(sleepers(1, 1))
    console = shut_down_from_inside(pool, machine, 90)
    assert "updraft-guard: lifetime over: no new jobs" in console
    assert "updraft-guard: powering off: its lifetime and the time to finish are over" in console
    (ended,) = pool.history(["ClusterId", "ExitCode", "NumJobStarts", "JobStatus"])
    assert ended == {"ClusterId": kept, "ExitCode": 0, "NumJobStarts": 1, "JobStatus": 4}
    (waits,) = pool.queue()
    assert (waits["ClusterId"], waits["JobStatus"], waits.get("NumJobStarts", 0)) == (late, 1, 0)
