"""Workers of a real pool: what they say and keep to themselves, and what an image costs that is none."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    await_done,
    await_running,
    events,
    in_machine,
    let_end,
    of_class,
    sleepers,
    waiters,
)
from tests.rigs.pools.realpool import patience, settings, until
from updraft.clouds.local import process
from updraft.clouds.local.config import METADATA_ADDRESS
from updraft.clouds.local.image import Image
from updraft.clouds.local.network import BRIDGE
from updraft.demo.pool import CLOUD, POOL, USER, RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
Images = Callable[..., Image]


def joined(pool: RealPool, count: int, deadline: float = 60) -> list[dict[str, Any]]:
    """Wait until so many machines have joined, and return their rows."""

    def rows() -> list[dict[str, Any]]:
        found = [m for m in pool.show("machines")["machines"] if m["phase"] == "joined"]
        return found if len(found) == count else []

    return until(rows, deadline, f"{count} machines joined")


CLASSES = """
[classes.worker.attributes]
Rack = '"r7"'

[classes.halves]
image = "{image}"
flavors = ["medium"]
slots = 2
min = 1
idle_limit = "6s"
head_gone_after = "5m"

[classes.dry]
image = "dry"
flavors = ["small"]
boot_deadline = "DEADLINE"
head_gone_after = "5m"

[classes.sound]
image = "{image}"
flavors = ["large"]
idle_limit = "6s"
head_gone_after = "5m"
"""


@pytest.fixture(scope="module")
def shared(module_pool: Pools, images: Images) -> RealPool:
    classes = CLASSES.replace("DEADLINE", f"{15 * patience():.0f}s")
    text = settings(
        worker={"flavors": ["large"], "min": 1},
        limits={"machines": 20, "cores": 40},
        timings={"trial": 2, "cooldown_first": "20s"},
        more=classes,
    )
    dry = replace(images(condor=False), name="dry")
    pool = module_pool(Wishes(settings=text, more_images={dry.name: dry}))
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
    assert {own[id_]["flavor"] for id_ in rows} == {"large", "medium"}


def test_static_slots_are_filled_and_counted(shared: RealPool) -> None:
    halves = [slot for slot in shared.slots() if slot["UpdraftClass"] == "halves"]
    assert [(slot["SlotType"], slot["Cpus"], slot["Memory"]) for slot in halves] == [("Static", 1, 2048)] * 2
    assert len({slot["UpdraftInstance"] for slot in halves}) == 1
    before = len(of_class(shared, "halves"))
    cluster = shared.submit(waiters(3, "filled", requirements='TARGET.UpdraftClass == "halves"'))

    def hosts() -> list[str]:
        found = [job["RemoteHost"] for job in shared.queue(f"ClusterId == {cluster} && JobStatus == 2")]
        return found if len(found) == 3 else []

    running = until(hosts, 60, "three jobs running at once")
    assert len({host.split("@")[1] for host in running}) == 2, "two of them share the machine that was there"
    let_end(shared, "filled")
    await_done(shared, [cluster], 60)
    assert len(of_class(shared, "halves")) == before + 1


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
    shared.on_head("sh", "-c", "cat > probe.py && chmod +x probe.py", user=USER, stdin=PROBE)
    probing = shared.submit(PROBING.format(metadata=METADATA_ADDRESS, api=api))
    await_done(shared, [probing], 60)
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


# ------------------------------------------------------------------------------- users beside one another

NEIGHBOUR = (Path(__file__).parents[1] / "rigs" / "pools" / "neighbour.py").read_text()
LIVING = """\
executable = {program}
arguments = {arguments}
transfer_executable = false
transfer_input_files = neighbour.py
should_transfer_files = YES
output = {word}.out
error = {word}.err
requirements = TARGET.UpdraftClass == "worker"
request_memory = 200MB
queue
"""


def neighbour(pool: RealPool, user: str, does: str, word: str, program: str = "/usr/bin/python3") -> int:
    """A job of a user's that runs that program; `program` runs it in another way."""
    pool.on_head("sh", "-c", "cat > neighbour.py", user=user, stdin=NEIGHBOUR)
    text = LIVING.format(program=program, arguments=does, word=word)
    return pool.submit(text, user=user)


def saw(pool: RealPool, user: str, word: str) -> dict[str, Any]:
    done = pool.on_head("sh", "-c", f"cat {word}.out; cat {word}.err >&2", user=user)
    assert done.stdout, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def said(pool: RealPool, user: str, word: str) -> list[str]:
    return pool.on_head("sh", "-c", f"cat {word}.out; cat {word}.err >&2", user=user).stdout.split()


def keeps_users_apart(pool: RealPool) -> None:
    lives = neighbour(pool, USER, "neighbour.py lives hers", "hers")
    await_running(pool, lives)
    stranger = neighbour(pool, "bob", "neighbour.py looks hers", "his")
    script = "--user --map-root-user python3 neighbour.py looks hers"
    container = neighbour(pool, "bob", script, "his-container", "/usr/bin/unshare")
    await_done(pool, [stranger, container], 60)
    his, as_root = saw(pool, "bob", "his"), saw(pool, "bob", "his-container")
    # On any Unix all see how a program was called, and what is in a folder of everybody's.
    assert set(his["found"]) == set(as_root["found"]) == {"a process", "a file in /run/lock"}
    assert (his["uid"], as_root["uid"]) == (pytest.approx(2_100_010_000, abs=10), 0)

    let_end(pool, "hers")
    await_done(pool, [lives], 60)
    slot, uid, content = said(pool, USER, "hers")
    assert content == "secret", "it ran to its end, and nobody has changed what it wrote"
    assert (slot, int(uid)) == ("slot1_1", 2_100_010_001)
    assert uid != str(his["uid"])

    # The next job of that slot is another user's, and would be of the same account.
    await_done(pool, [neighbour(pool, "bob", "neighbour.py looks hers", "later")], 60)
    assert saw(pool, "bob", "later") == {"slot": slot, "uid": int(uid), "found": []}


def test_users_on_one_worker_are_kept_apart_and_the_next_job_finds_nothing(shared: RealPool) -> None:
    keeps_users_apart(shared)


def test_everywhere_that_all_may_write_is_cleaned_between_two_jobs(shared: RealPool) -> None:
    (worker,) = {s["UpdraftInstance"] for s in shared.slots() if s["UpdraftClass"] == "worker"}
    skipped = " ".join(f"-path '{place}' -prune -o" for place in ("/proc", "/sys", "/tmp/*"))
    script = f"find / {skipped} -perm -0002 '(' -type d -o -type f ')' -print"
    there = set(in_machine(shared, worker, "sh", "-c", script).split())
    starter = in_machine(shared, worker, "cat", "/usr/local/lib/updraft/starter")
    (cleaned,) = re.findall(r"^for folder in (/.*); do$", starter, re.MULTILINE)
    assert [place for place in there if not place.startswith(tuple(cleaned.split()))] == []
    assert {"/tmp", "/var/tmp", "/dev/shm", "/run/lock"} <= there


@pytest.mark.extended
def test_an_older_htcondor_keeps_users_apart_too(real_pool: Pools) -> None:
    worker = {"flavors": ["large"], "min": 1, "idle_limit": "10m"}
    pool = real_pool(Wishes(settings=settings(worker=worker)), suite="trixie")
    joined(pool, 1)
    keeps_users_apart(pool)


# ------------------------------------------------------------------------------------- boots that fail


def never_joined(pool: RealPool) -> list[str]:
    return [event["subject"] for event in events(pool, "never-joined") if event["kind"] == "terminate"]


def test_an_image_without_htcondor_costs_a_few_machines_and_the_rest_goes_on(shared: RealPool) -> None:
    either = 'TARGET.UpdraftClass == "dry" || TARGET.UpdraftClass == "sound"'
    cluster = shared.submit(sleepers(6, 1, requirements=either))
    await_done(shared, [cluster], 120)
    assert of_class(shared, "sound"), "all jobs were done on the other class"
    until(lambda: never_joined(shared), 60, "the first failed boot ended, whatever else was by then")
    broken = of_class(shared, "dry")
    assert 1 <= len(broken) <= 4, "two are tried, then one for each rest that is over"
    why = "updraft-boot: FAILED: the image has no HTCondor (condor_master is not there)"
    lost = never_joined(shared)[0]
    told = shared.show("explain", lost)
    assert told["machine"]["reason"]["code"] == "never-joined"
    assert why in told["console"]
    assert why in shared.updraft("explain", lost).stdout
    rests = shared.show("status")["cooldowns"]
    assert {rest["scope"] for rest in rests} <= {"image"}
    assert not {event["subject"] for event in events(shared, "joined")} & {m["id"] for m in broken}
