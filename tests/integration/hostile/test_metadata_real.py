"""The cloud's metadata address on real workers: closed to jobs by whatever way, open to root, and put back.

There is no container runtime in the image: a job makes a user namespace of its own, as apptainer does, and is
root there; a network namespace behind the worker is what docker makes of a bridged container.
"""

import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.rigs.pools.controlling import await_done, in_machine, sh
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.local.config import METADATA_ADDRESS
from updraft.demo.pool import USER, RealPool, Wishes

Pools = Callable[..., RealPool]

# Every way to that address that a program has; prints as JSON what came of each.
PROBE = f'''\
import fcntl, json, os, socket, struct

THERE, WAIT = ("{METADATA_ADDRESS}", 80), 3
V1 = b"GET /latest/user-data HTTP/1.0\\r\\n\\r\\n"
V2 = b"PUT /latest/api/token HTTP/1.0\\r\\nX-aws-ec2-metadata-token-ttl-seconds: 60\\r\\n\\r\\n"

def asked(text, device="", source="", family=socket.AF_INET):
    try:
        with socket.socket(family) as one:
            one.settimeout(WAIT)
            if device:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            mapped = "::ffff:" if family == socket.AF_INET6 else ""
            if source:
                one.bind((mapped + source, 0))
            one.connect((mapped + THERE[0], THERE[1]))
            one.sendall(text)
            return "read" if b" 200 " in one.recv(4096).split(b"\\r\\n")[0] else "answered"
    except OSError:
        return "closed"

def datagram(device):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            one.sendto(b"x", THERE)
            return "sent"
    except OSError:
        return "closed"

def raw(*how):
    try:
        socket.socket(*how).close()
        return "made"
    except PermissionError:
        return "refused"

def address(device):
    try:
        with socket.socket() as one:
            packed = fcntl.ioctl(one, 0x8915, struct.pack("256s", device.encode()))  # SIOCGIFADDR
            return socket.inet_ntoa(packed[20:24])
    except OSError:
        return ""

found = {{"uid": os.getuid(), "plain v1": asked(V1), "plain v2": asked(V2)}}
for _, device in socket.if_nameindex():
    if device != "lo":
        mine = address(device)
        found[device + " v1"] = asked(V1, device)
        found[device + " v2"] = asked(V2, device)
        found[device + " mapped"] = asked(V1, device, family=socket.AF_INET6)
        found[device + " and address"] = asked(V1, device, mine)
        found["address v1"] = asked(V1, "", mine)
        found["address v2"] = asked(V2, "", mine)
        found[device + " datagram"] = datagram(device)
found["packets"] = raw(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
found["raw"] = raw(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
print(json.dumps(found))
'''
JOB = """\
executable = {program}
arguments = "{arguments}"
transfer_executable = false
transfer_input_files = probe.py
should_transfer_files = YES
output = probe.out
error = probe.err
request_memory = 200MB
queue
"""
WAYS = {
    f"{how} {what}"
    for how, whats in {
        "plain": ("v1", "v2"),
        "address": ("v1", "v2"),
        "eth0": ("v1", "v2", "mapped", "and address", "datagram"),
    }.items()
    for what in whats
}


@pytest.fixture(scope="module")
def pool(module_pool: Pools) -> RealPool:
    text = settings(worker={"flavors": ["small"], "min": 1, "idle_limit": "10m"})
    made: RealPool = module_pool(Wishes(settings=text))
    made.on_head("sh", "-c", "cat > probe.py", user=USER, stdin=PROBE)
    return made


def job_sees(pool: RealPool, program: str, arguments: str) -> dict[str, str]:
    """What the probe found when a job ran it so."""
    await_done(pool, [pool.submit(JOB.format(program=program, arguments=arguments))], 120)
    seen: dict[str, str] = json.loads(sh(pool, f"cat /home/{USER}/probe.out; cat /home/{USER}/probe.err >&2"))
    return seen


def worker_of(pool: RealPool) -> str:
    joined = lambda: [m["id"] for m in pool.show("machines")["machines"] if m["phase"] == "joined"]  # noqa: E731
    [machine, *_] = until(joined, 60, "a worker joined")
    return str(machine)


def root_sees(pool: RealPool) -> dict[str, str]:
    seen: dict[str, str] = json.loads(in_machine(pool, worker_of(pool), "python3", "-", stdin=PROBE))
    return seen


def test_a_job_gets_there_by_no_device_no_address_and_no_raw_socket_and_root_by_all(pool: RealPool) -> None:
    seen = job_sees(pool, "/usr/bin/python3", "probe.py")
    assert seen.pop("uid") != 0
    assert (seen.pop("packets"), seen.pop("raw")) == ("refused", "refused")
    assert seen == dict.fromkeys(WAYS, "closed")

    root = root_sees(pool)
    assert root.pop("uid") == 0
    assert (root.pop("packets"), root.pop("raw"), root.pop("eth0 datagram")) == ("made", "made", "sent")
    assert root == dict.fromkeys(WAYS - {"eth0 datagram"}, "read"), "the probe does see what is there"


def test_what_fetches_a_jobs_input_is_no_root(pool: RealPool) -> None:
    """What a job names as its input is fetched on the worker before it runs. The plugin tries for minutes."""
    job = JOB.format(program="/bin/cat", arguments="user-data")
    cluster = pool.submit(job.replace("= probe.py", f"= http://{METADATA_ADDRESS}/latest/user-data"))
    plugins = "ps -e -o uid=,args= | grep '[c]url_plugin' || :"

    def found() -> list[str]:
        workers = [m["id"] for m in pool.workers("running") if m["id"] != pool.head]
        return [line for one in workers for line in in_machine(pool, one, "sh", "-c", plugins).splitlines()]

    users = {line.split()[0] for line in until(found, 90, "the plugin is at work", 0.2)}
    assert "0" not in users
    pool.on_head("condor_rm", str(cluster))


def test_an_account_of_the_head_gets_there_by_no_device_either(pool: RealPool) -> None:
    seen = json.loads(pool.on_head("python3", "-", user=USER, stdin=PROBE).stdout)
    assert seen.pop("uid") != 0
    assert (seen.pop("packets"), seen.pop("raw")) == ("refused", "refused")
    assert seen == dict.fromkeys(WAYS, "closed")


@pytest.mark.parametrize("more", ["", "--net"])
def test_a_job_that_is_root_in_a_container_of_its_own_cannot_read_the_user_data(
    pool: RealPool, more: str
) -> None:
    seen = job_sees(pool, "/usr/bin/unshare", f"--user --map-root-user {more} python3 probe.py")
    assert seen.pop("uid") == 0, "root in its namespace, and nobody outside of it"
    # In a network of its own it may make packets, which lead nowhere.
    raw = "made" if more else "refused"
    assert (seen.pop("packets"), seen.pop("raw")) == (raw, raw)
    assert set(seen.values()) == {"closed"}


# Docker's way: a network of the container's own behind the worker, which forwards and hides it behind itself.
# Each door alone keeps it out.
BRIDGED = """set -e
unshare --net sleep 120 </dev/null >/dev/null 2>&1 &
container=$!
until [ "$(readlink /proc/$container/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
ip link add c0 type veth peer name c1
ip link set c1 netns $container
ip addr add 10.99.0.1/24 dev c0
ip link set c0 up
inside() { nsenter --target $container --net python3 /run/fetch.py; }
nsenter --target $container --net ip addr add 10.99.0.2/24 dev c1
nsenter --target $container --net ip link set c1 up
nsenter --target $container --net ip route add default via 10.99.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
nft add table ip bridged
nft add chain ip bridged post '{ type nat hook postrouting priority 100; }'
nft add rule ip bridged post ip saddr 10.99.0.0/24 masquerade
cat >/run/fetch.py
systemctl stop updraft-door
inside
ip rule del pref 62
inside
nft delete table inet updraft
inside
sh /usr/local/lib/updraft/close-metadata
nft delete table inet updraft
inside
systemctl start updraft-door
kill $container
nft delete table ip bridged
ip link del c0 2>/dev/null || :
"""
FETCH = f"""
import urllib.request
try:
    print("read", len(urllib.request.urlopen("http://{METADATA_ADDRESS}/latest/user-data", timeout=3).read()))
except OSError:
    print("closed")
"""


def test_a_bridged_container_on_a_worker_cannot_read_the_user_data(pool: RealPool) -> None:
    machine = worker_of(pool)
    said = in_machine(pool, machine, "sh", "-c", BRIDGED, stdin=FETCH).splitlines()
    until(
        lambda: "skuid 0 accept" in in_machine(pool, machine, "nft", "list", "ruleset"), 10, "closed as ever"
    )
    assert [line.split()[0] for line in said] == ["closed", "closed", "read", "closed"], (
        "closed by both doors, by nftables alone, open without either, closed by the routing rule alone"
    )


FLUSHES = {
    "all": "nft flush ruleset",
    "the chain": "nft flush chain inet updraft output",
    "a way past it": "nft insert rule inet updraft output accept",
    "routing rules": "ip rule del pref 60; ip rule del pref 62; ip -6 rule del pref 61",
}


def same(now: Callable[[], str], before: str) -> bool:
    return sorted(now().splitlines()) == sorted(before.splitlines())  # rules of one rank change places


@pytest.mark.parametrize("flush", list(FLUSHES))
def test_what_takes_the_rules_away_has_them_back_within_seconds_and_others_stay(
    pool: RealPool, flush: str
) -> None:
    own = "nft add table ip mine; nft add chain ip mine c '{ type filter hook input priority 0; }'"
    doors = "nft list table inet updraft; ip rule show; ip -6 rule show"
    for machine in (worker_of(pool), pool.head):
        before = in_machine(pool, machine, "sh", "-c", doors)
        assert "skuid 0 accept" in before
        in_machine(pool, machine, "sh", "-c", FLUSHES[flush])
        in_machine(pool, machine, "sh", "-c", own)
        begun = time.monotonic()

        now = partial(in_machine, pool, machine, "sh", "-c", f"{doors} || :")
        until(partial(same, now, before), 5, "the doors are as they were", 0.05)
        print(f"back after {time.monotonic() - begun:.2f} s")  # noqa: T201
        assert "chain c" in in_machine(pool, machine, "nft", "list", "table", "ip", "mine")
        in_machine(pool, machine, "nft", "delete", "table", "ip", "mine")


# A new file, because a worker's may be one that runs just now.
BROKEN = (
    "rm -f /usr/sbin/nft; "
    "printf '#!/bin/sh\\necho no nftables in this kernel >&2; exit 1\\n' >/usr/sbin/nft; "
    "chmod 755 /usr/sbin/nft"
)


def test_a_worker_that_can_no_longer_close_it_takes_no_new_job_and_says_why(pool: RealPool) -> None:
    machine = worker_of(pool)
    in_machine(pool, machine, "sh", "-c", f"cp /usr/sbin/nft /run/nft; {BROKEN}; /run/nft flush ruleset")
    console = lambda: pool.cloud.client().console(machine)  # noqa: E731
    until(lambda: "updraft-door: the metadata address is open" in console(), 30, "it says so")
    assert "no nftables in this kernel" in console()
    until(lambda: "updraft-agent: metadata address open: no new jobs" in console(), 60, "it takes no jobs")
    gone = lambda: machine not in {slot["UpdraftInstance"] for slot in pool.slots()}  # noqa: E731
    until(gone, 60, "nothing ran there: it has left the pool")


def test_htcondor_starts_only_where_the_address_is_closed(pool: RealPool) -> None:
    """At later boots, too: it is HTCondor's service that asks."""
    masters = "grep -l -x condor_master /proc/[0-9]*/comm 2>/dev/null || :"
    in_machine(pool, pool.head, "sh", "-c", f"cp /usr/sbin/nft /run/nft; {BROKEN}; systemctl stop condor")
    refused = pool.on_head("systemctl", "start", "condor")
    assert refused.returncode != 0
    assert "no nftables in this kernel" in refused.stdout + refused.stderr
    assert sh(pool, masters) == ""
    sh(pool, "cp /run/nft /usr/sbin/nft; systemctl start condor")
    # Its unit has no type: started means forked, and for a moment the process is still what started it.
    until(lambda: sh(pool, masters) != "", 10, "HTCondor runs", 0.05)


def test_a_worker_whose_nft_is_broken_runs_no_job_and_says_why(real_pool: Pools) -> None:
    layer = f"#cloud-config\nbootcmd: [[sh, -c, {json.dumps(BROKEN)}]]\n"
    text = settings(
        worker={"flavors": ["small"], "boot_deadline": "60s", "layers": [layer]},
        limits={"machines": 2, "cores": 4},
        timings={"trial": 1, "cooldown_first": "60s", "boot_floor": "60s"},
    )
    made = real_pool(Wishes(settings=text))
    cluster = made.submit(JOB.format(program="/bin/true", arguments="").replace("probe.py", ""))
    why = "updraft-boot: FAILED: the metadata address cannot be closed to jobs: nftables: no nftables"
    consoles = lambda: [made.cloud.client().console(m["id"]) for m in made.workers()]  # noqa: E731
    until(lambda: any(why in one for one in consoles()), 60, "the boot has failed")
    assert made.slots() == []
    [job] = made.queue(f"ClusterId == {cluster}")
    assert (job["JobStatus"], job.get("NumJobStarts", 0)) == (1, 0)
