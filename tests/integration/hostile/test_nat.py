"""Workers behind NAT: they join, work, drain and go through a broker, or at an address that is forwarded."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    await_done,
    await_running,
    events,
    in_machine,
    let_end,
    of_class,
    outcomes,
    slot_of,
    waiters,
)
from tests.rigs.pools.realpool import settings, until
from tests.rigs.reading import parts
from updraft.clouds.local.config import LocalCloudConfig
from updraft.condor.tokens.workers import whose
from updraft.demo.pool import DOMAIN, RealPool, Wishes

Pools = Callable[..., RealPool]
BROKERS = "updraft-broker"
TOKEN = re.compile(r"eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]{5,}")
CLOSED_CLASS = """
[classes.closed]
image = "{image}"
flavors = ["small"]
reach = "ccb"
layers = [{layer}]
boot_deadline = "2m"
"""
INSIDE = "192.168.55.2"
# Before HTCondor starts the machine moves behind a router of its own: a network namespace that has the cable,
# and hides what is behind it. Every such machine has the same address inside, as behind many a real router.
ROUTER = f"""\
#!/bin/sh
set -e
address=$(ip -4 -o address show dev eth0 | awk '{{print $4}}')
gateway=$(ip route show default | awk '{{print $3}}')
ip netns add router
ip link set eth0 netns router
ip link add inside type veth peer name outside netns router
ip address add {INSIDE}/24 dev inside
ip link set inside up
ip netns exec router sh -e <<END
ip link set lo up
ip address add 192.168.55.1/24 dev outside
ip link set outside up
ip address add $address dev eth0
ip link set eth0 up
ip route add default via $gateway
echo 1 >/proc/sys/net/ipv4/ip_forward
nft add table ip nat
nft add chain ip nat post '{{ type nat hook postrouting priority 100; }}'
nft add rule ip nat post oifname eth0 masquerade
DOOR
END
ip route add default via 192.168.55.1
"""

CLOSED = """\
nft add table ip closed
nft add chain ip closed to '{ type filter hook forward priority 0; }'
nft add rule ip closed to iifname eth0 ct state new drop
"""
FORWARDING = f"""\
nft add chain ip nat in '{{ type nat hook prerouting priority -100; }}'
nft add rule ip nat in fib daddr type local tcp dport 9618 dnat to {INSIDE}
nft add rule ip nat post oifname outside masquerade
"""


def behind(door: str) -> str:
    """The layer with the router and this door, for a text in which braces are doubled."""
    return ROUTER.replace("DOOR\n", door).replace("{", "{{").replace("}", "}}")


def rights(pool: RealPool, machine: str, daemon: str) -> set[str]:
    """The rights that root of this machine has at a daemon of the head."""
    asked = (
        "WRITE",
        "DAEMON",
        "ADMINISTRATOR",
        *(f"ADVERTISE_{what}" for what in ("STARTD", "MASTER", "SCHEDD")),
    )
    script = f"condor_ping -table {daemon} {' '.join(asked)} 2>&1 || true"
    table = in_machine(pool, machine, "sh", "-c", script).splitlines()
    assert len(table) > len(asked), table
    return {line.split()[0] for line in table if " ALLOW " in line}


def token_of(pool: RealPool, machine: str, name: str) -> str:
    """A token of this machine, as its root reads it."""
    return in_machine(pool, machine, "cat", f"/etc/condor/tokens.d/{name}").strip()


def taken_by_the_broker(pool: RealPool, token: str) -> bool:
    """Does the broker give its right to who shows this token, and nothing else?"""
    script = (
        f"d=$(mktemp -d); umask 077; echo '{token}' >$d/t; export _CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=$d "
        "_CONDOR_SEC_TOKEN_DIRECTORY=$d _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_PASSWORD_DIRECTORY=$d; a=$(condor_config_val CONDOR_HOST); "
        'condor_ping -addr "<$a:9618?sock=broker>" -table ADVERTISE_MASTER; rm -r $d'
    )
    return " ALLOW " in pool.on_head("sh", "-c", script).stdout


def collectors(pool: RealPool) -> int:
    """How many collectors the pool's own shows."""
    return len(pool.on_head("condor_status", "-collector", "-af", "Name").stdout.splitlines())


@pytest.fixture(scope="module")
def pool(module_pool: Pools) -> RealPool:
    public = LocalCloudConfig(images={}).addresses()[
        1
    ]  # the first is the head's, and this one's first worker's
    reached = {"reach": "forwarded", "forwarding_host": public, "layers": [behind(FORWARDING)]}
    closed = CLOSED_CLASS.format(image="{image}", layer=json.dumps(behind(CLOSED)))
    return module_pool(Wishes(settings=settings(worker=reached, more=closed), broker=True))


def job_on(pool: RealPool, name: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """A job that runs on a machine of this class: its cluster, the machine, and its slot."""
    job = pool.submit(waiters(1, name, requirements=f'TARGET.UpdraftClass == "{name}"'))
    await_running(pool, job, deadline=120)
    [machine] = of_class(pool, name, "running")
    slot = slot_of(pool, machine["id"])
    assert slot is not None
    return job, machine, slot


def test_a_worker_whose_router_forwards_is_reached_at_the_routers_address(pool: RealPool) -> None:
    job, machine, slot = job_on(pool, "worker")
    assert slot["MyAddress"].startswith(f"<{machine['address']}:9618")
    assert pool.on_head("timeout", "3", "bash", "-c", f"</dev/tcp/{INSIDE}/9618").returncode != 0
    let_end(pool, "worker")
    await_done(pool, [job], 60)
    assert outcomes(pool, job) == [DONE_ONCE]
    gone = lambda: not of_class(pool, "worker", *ALIVE)  # noqa: E731
    until(gone, 60, "idle, it was drained and has gone")


def test_a_worker_that_nothing_can_connect_to_joins_works_drains_and_goes(pool: RealPool) -> None:
    job, machine, slot = job_on(pool, "closed")
    assert INSIDE in slot["MyAddress"]
    assert "CCBID=" in slot["MyAddress"]
    port = slot["MyAddress"].partition("?")[0].rpartition(":")[2]
    for address in (INSIDE, machine["address"]):
        knock = pool.on_head("timeout", "3", "bash", "-c", f"</dev/tcp/{address}/{port}")
        assert knock.returncode != 0, "nothing can connect to it"

    # The user-data hold one token, for asking; its own two came later, when its console had shown its key.
    sent = in_machine(pool, machine["id"], "base64", "-w0", "/var/lib/cloud/instance/user-data.txt")
    [boot] = {found for _, text in parts(base64.b64decode(sent)) for found in TOKEN.findall(text)}
    assert whose(boot).startswith(f"worker-{machine['tags']['updraft:launch']}@")
    own = {name: token_of(pool, machine["id"], name) for name in ("updraft", BROKERS)}
    assert {whose(one) for one in own.values()} == {
        f"worker-{machine['tags']['updraft:launch']}+{machine['id']}@{DOMAIN}"
    }
    [handed] = [one for one in events(pool, "tokens") if one["subject"] == machine["id"]]
    assert "silent" not in handed["text"]
    key = pool.cloud.client().console(machine["id"]).partition("updraft-handover: ")[2].split()[0]
    assert len(key) == 64

    # The broker's right is good at the broker, and nowhere else.
    head = next(m["address"] for m in pool.cloud.client().machines() if m["id"] == pool.head)
    collector = f"-addr '<{head}:9618?sock=collector>'"
    schedd = "-type SCHEDD -name $(condor_status -schedd -af Name | head -n 1)"
    assert rights(pool, machine["id"], f"-addr '<{head}:9618?sock=broker>'") == {"WRITE", "ADVERTISE_MASTER"}
    assert rights(pool, machine["id"], collector) == {"ADVERTISE_STARTD", "ADVERTISE_MASTER"}
    assert rights(pool, machine["id"], schedd) == set()
    assert collectors(pool) == 1, "the broker is no collector of the pool"

    checked = json.loads(pool.updraft("check", "--json").stdout)["findings"]
    assert [one["state"] for one in checked if one["what"] == "broker of closed"] == ["ok"], checked

    drained = pool.updraft("drain", machine["id"])
    assert drained.returncode == 0, drained.stderr
    let_end(pool, "closed")
    await_done(pool, [job], 60)
    assert outcomes(pool, job) == [DONE_ONCE], "the drain let it finish"
    until(lambda: not of_class(pool, "closed", *ALIVE), 60, "it has gone")
    ours = {m["id"] for m in of_class(pool, "closed")}
    ended = [event["code"] for event in events(pool, "drain") if event["subject"] in ours]
    assert ended == ["operator"], "it was drained, and not taken for lost"


@pytest.mark.extended
def test_the_brokers_token_is_over_with_its_machine(pool: RealPool) -> None:
    job, machine, _ = job_on(pool, "closed")
    stolen = token_of(pool, machine["id"], BROKERS)
    assert taken_by_the_broker(pool, stolen)
    let_end(pool, "closed")
    await_done(pool, [job], 60)
    assert pool.updraft("drain", machine["id"]).returncode == 0
    until(lambda: not of_class(pool, "closed", *ALIVE), 60, "it has gone")
    until(lambda: not taken_by_the_broker(pool, stolen), 90, "its token for the broker is over")


@pytest.mark.extended
def test_an_older_htcondor_registers_with_no_more_than_that_right_too(real_pool: Pools) -> None:
    closed = CLOSED_CLASS.format(image="{image}", layer=json.dumps(behind(CLOSED)))
    pool = real_pool(Wishes(settings=settings(more=closed), broker=True), suite="trixie")
    job, machine, slot = job_on(pool, "closed")
    assert "CCBID=" in slot["MyAddress"]
    head = next(m["address"] for m in pool.cloud.client().machines() if m["id"] == pool.head)
    assert rights(pool, machine["id"], f"-addr '<{head}:9618?sock=broker>'") == {"WRITE", "ADVERTISE_MASTER"}
    assert pool.updraft("drain", machine["id"]).returncode == 0
    let_end(pool, "closed")
    await_done(pool, [job], 60)
    assert outcomes(pool, job) == [DONE_ONCE], "it was told to drain, and let it finish"
