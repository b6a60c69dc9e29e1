"""Workers of a real pool: what they say and keep to themselves, and what an image costs that is none."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.drives import made_drive, mounting
from tests.rigs.pools.controlling import (
    DONE_ONCE,
    await_done,
    await_running,
    events,
    in_machine,
    let_end,
    of_class,
    outcomes,
    sleepers,
    slot_of,
    waiters,
)
from tests.rigs.pools.realpool import patience, settings, until
from updraft.clouds.local.config import METADATA_ADDRESS
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.service.network import BRIDGE
from updraft.demo.pool import CLOUD, POOL, USER, RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
Images = Callable[..., Image]
RIGS = Path(__file__).parents[2] / "rigs" / "pools"


def joined(pool: RealPool, count: int, deadline: float = 60) -> list[dict[str, Any]]:
    """Wait until so many machines have joined, and return their rows."""

    def rows() -> list[dict[str, Any]]:
        found = [m for m in pool.show("machines")["machines"] if m["phase"] == "joined"]
        return found if len(found) == count else []

    return until(rows, deadline, f"{count} machines joined")


HALVES = """
[classes.halves]
image = "{image}"
flavors = ["medium"]
slots = 2
min = 1
idle_limit = "6s"
head_gone_after = "5m"
"""
CLASSES = (
    """
[classes.worker.attributes]
Rack = '"r7"'
"""
    + HALVES
    + """
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
)


DRIVE = "/mnt/drive"
ON_THE_DRIVE = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3b3JrZXItdGhlLWRyaXZlIn0.c2lnbmVk\n"


@pytest.fixture(scope="module")
def shared(module_pool: Pools, images: Images, tmp_path_factory: pytest.TempPathFactory) -> RealPool:
    classes = CLASSES.replace("DEADLINE", f"{15 * patience():.0f}s")
    worker: dict[str, Any] = {"flavors": ["large"], "min": 1}
    if shutil.which("mke2fs"):
        drive = made_drive(tmp_path_factory.mktemp("drive"), "config-2", ON_THE_DRIVE)
        worker["layers"] = [mounting(drive, DRIVE).replace("{", "{{").replace("}", "}}")]
    text = settings(
        worker=worker,
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


SEEKER = (RIGS / "seeker.py").read_text()
PROBING = """\
executable = {program}
arguments = {arguments} {metadata} {api}
transfer_executable = false
transfer_input_files = seeker.py
output = {name}.out
error = {name}.err
should_transfer_files = YES
requirements = TARGET.UpdraftClass == "worker"
request_memory = 200MB
queue
"""
AS_ROOT_OF_A_CONTAINER = "--user --map-root-user python3 seeker.py"
CLOSED = {
    "user-data": "closed",
    "session": "closed",
    "user-data by a proxy": 503,
    "api without a token": 401,
    "api with a wrong one": 401,
    "secrets": [],
    "environments": 0,
    "devices": [],
}
# A site's proxy on a worker, as its own account has it.
PROXY = """
import http.server, os, urllib.request
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            said = urllib.request.urlopen(self.path, timeout=5).read()
            self.send_response(200)
        except OSError:
            said = b""
            self.send_response(503)
        self.end_headers()
        self.wfile.write(said)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 3128), Proxy)
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
if os.fork():
    os._exit(0)
os.setsid()
os.dup2(os.open("/dev/null", os.O_RDWR), 0), os.dup2(0, 1), os.dup2(0, 2)
server.serve_forever()
"""
# A daemon that holds HTCondor's session keys dies, and its memory is written down. HTCondor starts it again.
DUMP = "kill -ABRT $(grep -l -x condor_shared_p /proc/[0-9]*/comm | cut -d/ -f3)"


def saw(pool: RealPool, user: str, word: str) -> dict[str, Any]:
    done = pool.on_head("sh", "-c", f"cat {word}.out; cat {word}.err >&2", user=user)
    assert done.stdout, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def worker_of(pool: RealPool) -> str:
    (worker,) = {s["UpdraftInstance"] for s in pool.slots() if s["UpdraftClass"] == "worker"}
    return str(worker)


def keeps_secrets(pool: RealPool) -> None:
    api, worker = pool.cloud.config.endpoint, worker_of(pool)
    in_machine(pool, worker, "python3", "-", stdin=PROXY)
    in_machine(pool, worker, "sh", "-c", DUMP)
    pool.on_head("sh", "-c", "cat > seeker.py", user=USER, stdin=SEEKER)
    ways = {"plain": ("/usr/bin/python3", "seeker.py"), "root": ("/usr/bin/unshare", AS_ROOT_OF_A_CONTAINER)}
    told = {"metadata": METADATA_ADDRESS, "api": api}
    jobs = [
        pool.submit(PROBING.format(name=name, program=program, arguments=arguments, **told))
        for name, (program, arguments) in ways.items()
    ]
    await_done(pool, jobs, 90)
    plain, as_root = saw(pool, USER, "plain"), saw(pool, USER, "root")
    assert (plain.pop("uid"), as_root.pop("uid")) == (pytest.approx(2_100_010_000, abs=10), 0)
    assert len(plain.pop("groups")) == len(as_root.pop("groups")) == 1, "not in adm, disk, cdrom or systemd's"
    assert plain == as_root == CLOSED

    # The same eyes as root, on the worker: the probe does see what is there.
    root = json.loads(in_machine(pool, worker, "python3", "-", METADATA_ADDRESS, api, stdin=SEEKER))
    assert (root["uid"], root["user-data"], root["session"]) == (0, 200, 200)
    assert root["user-data by a proxy"] == 503, "not even root's question is the proxy's right"
    assert root["environments"] > 3
    assert "/etc/condor/tokens.d/updraft" in root["secrets"]
    places = "\n".join(root["secrets"])
    for kind in (
        r"/var/lib/cloud/instances/[^/]+/user-data\.txt$",
        r"/proc/\d+/environ$",
        r"/var/log/condor/core",
    ):
        assert re.search(kind, places, re.MULTILINE), kind
    assert not re.search(r"/proc/\d+/cmdline|^/var/log/(?!condor/core)", places, re.MULTILINE)

    # And as a user of the head, who must not have the credential of its role.
    look = ("python3", "-", METADATA_ADDRESS, api)
    user = json.loads(pool.on_head(*look, user=USER, stdin=SEEKER, timeout=180).stdout)
    assert user.pop("uid") != 0
    user.pop("groups")
    assert user == CLOSED | {"user-data by a proxy": "closed"}, "no proxy runs there"


def test_a_job_reaches_neither_metadata_nor_token_nor_the_cloud(shared: RealPool) -> None:
    keeps_secrets(shared)


def test_a_config_drive_that_the_image_mounts_is_open_to_no_job(shared: RealPool) -> None:
    """That no job finds what is on it, the test before has seen."""
    if not shutil.which("mke2fs"):
        pytest.skip("there is no mke2fs to make a drive with")
    worker = worker_of(shared)
    assert in_machine(shared, worker, "cat", "/root/read-by-all") == ON_THE_DRIVE, "before HTCondor started"
    assert DRIVE not in in_machine(shared, worker, "cat", "/proc/mounts")
    assert in_machine(shared, worker, "ls", DRIVE) == ""


# ------------------------------------------------------------------------------- users beside one another

NEIGHBOUR = (RIGS / "neighbour.py").read_text()
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


PRYING = (RIGS / "prying.sh").read_text()
TELLING = """\
executable = /bin/echo
arguments = --password={word}
transfer_executable = false
environment = "SECRET={word}"
requirements = TARGET.UpdraftClass == "worker"
request_memory = 200MB
queue
"""
FINDING = """\
executable = prying.sh
arguments = {halves} {head} {startd}
output = {name}.out
error = {name}.err
should_transfer_files = YES
requirements = TARGET.UpdraftClass == "{name}"
request_memory = 200MB
queue
"""


RUNNING = """\
executable = /bin/sh
arguments = "-c 'until test -e /run/told; do sleep 0.3; done' --password={word}"
transfer_executable = false
environment = "SECRET={word}"
requirements = TARGET.UpdraftClass == "worker"
request_memory = 200MB
queue
"""


def pry(pool: RealPool, halves: tuple[str, str], *classes: str, startd: str = "") -> str:
    """Have a job on a machine of each class look for the word: none finds it. The name of the schedd."""
    pool.on_head("sh", "-c", "cat > prying.sh; chmod 755 prying.sh", user=USER, stdin=PRYING)
    (head,) = pool.on_head("condor_status", "-schedd", "-af", "Name", user=USER).stdout.split()
    told = {"halves": " ".join(halves), "head": head, "startd": startd}
    await_done(pool, [pool.submit(FINDING.format(name=name, **told)) for name in classes], 120)
    for name in classes:
        (looked,) = pool.on_head("sh", "-c", f"cat {name}.out", user=USER).stdout.splitlines()
        assert looked.startswith("looked as 21000"), name
    return head


def keeps_what_running_jobs_are_told(pool: RealPool) -> None:
    """Nor those of a job that runs now: its startd has them, and tells them root of its machine alone."""
    worker, halves = worker_of(pool), ("opensesame", "0815")
    victim = pool.submit(RUNNING.format(word="".join(halves)), user="bob")
    await_running(pool, victim)
    startd = str((slot_of(pool, worker) or {})["MyAddress"])
    head = pry(pool, halves, "worker", "halves", startd=startd)
    as_root = in_machine(pool, worker, "sh", "-s", *halves, head, startd, stdin=PRYING).splitlines()
    assert "found by condor_status -snapshot" in as_root, "there is something to be seen"
    let_end(pool, "told")
    await_done(pool, [victim], 60)
    assert outcomes(pool, victim) == [DONE_ONCE], "it ran all the while"


def keeps_what_jobs_are_told(pool: RealPool) -> None:
    """Environment and arguments of a job are nobody's who runs jobs on the same worker later."""
    worker, halves = worker_of(pool), ("opensesame", "4711")
    word = "".join(halves)
    await_done(pool, [pool.submit(TELLING.format(word=word), user="bob")], 60)
    head = pry(pool, halves, "worker")
    # The same eyes do see, where there is something to be seen.
    as_root = in_machine(pool, worker, "sh", "-s", *halves, head, stdin=PRYING).splitlines()
    places = [line.removeprefix("found by reading ") for line in as_root if "found by" in line]
    assert places, as_root
    assert all(place.startswith("/var/log/condor/StarterLog.slot") for place in places), places
    assert "READ at the collector" in as_root, "a worker's own token reads there, and at no schedd"
    on_head = pool.on_head("sh", "-s", *halves, head, user=USER, stdin=PRYING).stdout
    assert "found by condor_history\n" in on_head, "who has an account on the head reads, as ever"
    (name,) = {s["Name"].partition("@")[2] for s in pool.slots() if s["UpdraftInstance"] == worker}
    log = pool.on_head("condor_fetchlog", name, "STARTD")
    assert "slot1" in log.stdout, (log.stderr, "HTCondor's own tool reads the logs, as ever")


def test_no_job_reads_what_another_users_job_was_told(shared: RealPool) -> None:
    keeps_what_jobs_are_told(shared)


def test_no_job_reads_what_another_users_running_job_was_told(shared: RealPool) -> None:
    keeps_what_running_jobs_are_told(shared)


def test_everywhere_that_all_may_write_is_cleaned_between_two_jobs(shared: RealPool) -> None:
    skipped = " ".join(f"-path '{place}' -prune -o" for place in ("/proc", "/sys", "/tmp/*"))
    script = f"find / {skipped} -perm -0002 '(' -type d -o -type f ')' -print"
    there = set(in_machine(shared, worker_of(shared), "sh", "-c", script).split())
    starter = in_machine(shared, worker_of(shared), "cat", "/usr/local/lib/updraft/starter")
    (cleaned,) = re.findall(r"^for folder in (/.*); do$", starter, re.MULTILINE)
    assert [place for place in there if not place.startswith(tuple(cleaned.split()))] == []
    assert {"/tmp", "/var/tmp", "/dev/shm", "/run/lock"} <= there


@pytest.mark.extended
def test_an_older_htcondor_keeps_users_and_secrets_too(real_pool: Pools) -> None:
    worker = {"flavors": ["large"], "min": 1, "idle_limit": "10m"}
    pool = real_pool(Wishes(settings=settings(worker=worker, more=HALVES)), suite="trixie")
    joined(pool, 2)
    keeps_users_apart(pool)
    keeps_what_jobs_are_told(pool)
    keeps_what_running_jobs_are_told(pool)
    keeps_secrets(pool)


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
