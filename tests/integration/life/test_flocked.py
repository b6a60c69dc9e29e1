"""A schedd of another pool whose jobs flock here: its word counts when a machine is to end."""

from typing import Any

import pytest

from tests.rigs.pools.controlling import ALIVE, acting, events, in_machine, let_end, looks, of_class, sh
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.local.process import run_in
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

FLOCKS = """
CONDOR_HOST = $(IP_ADDRESS)
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD
FLOCK_COLLECTOR_HOSTS = {head}
FLOCK_NEGOTIATOR_HOSTS = {head}
TRUST_DOMAIN = elsewhere.test
UID_DOMAIN = {domain}
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
use security:recommended
{more}
"""
JOB = """
executable = /bin/sh
arguments = "-c 'until test -e /run/flocked; do sleep 0.3; done'"
transfer_executable = false
should_transfer_files = yes
log = /tmp/flocked.log
queue
"""


def submitted_elsewhere(pool: RealPool, more: str = "") -> str:
    """Another pool's head, on which one job waits that only this pool has room for."""
    head = next(m for m in pool.cloud.client().machines() if m["id"] == pool.head)
    [made] = pool.cloud.client().run(
        key="elsewhere",
        count=1,
        image=pool.image.name,
        flavor="small",
        zone=head["zone"],
        market="on-demand",
        tags={"Name": "elsewhere"},
        user_data=b"#cloud-config\nusers:\n- name: bob\n",
    )
    host = str(made["id"])
    domain = sh(pool, "condor_config_val TRUST_DOMAIN").strip()
    texts = {
        "/etc/condor/config.d/90-flocks.conf": FLOCKS.format(head=head["address"], domain=domain, more=more),
        "/etc/condor/tokens.d/there": sh(pool, f"condor_token_create -identity condor@{domain}"),
    }
    for path, text in texts.items():
        put = 'umask 077; mkdir -p "${1%/*}"; cat >"$1"; case $1 in *.conf) chmod 644 "$1";; esac'
        in_machine(pool, host, "sh", "-c", put, "sh", path, stdin=text)
    in_machine(pool, host, "sh", "-c", "rm -f /etc/condor/config.d/00-minicondor; systemctl start condor")
    submit = lambda: run_in(pool.cloud, host, ("condor_submit", "-"), user="bob", stdin=JOB).returncode  # noqa: E731
    until(lambda: submit() == 0, 60, "its schedd takes a job")
    return host


def test_a_job_that_flocked_in_keeps_its_machine(real_pool: Any) -> None:
    text = settings(worker={"flavors": ["small"], "idle_limit": "3s"}, timings={"end_patience": "4s"})
    pool: RealPool = real_pool(Wishes(settings=text))
    until(lambda: acting(pool), 60, "the controller acts")
    elsewhere = submitted_elsewhere(pool)
    busy = lambda: [s for s in pool.slots() if s.get("ChildState") == ["Claimed"]]  # noqa: E731
    [slot] = until(busy, 90, "the job runs here")
    machine, launch = slot["UpdraftInstance"], slot["UpdraftLaunch"]
    done = pool.updraft("tokens", "revoke", launch, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not pool.slots()
    lost = lambda: [e for e in events(pool, "lost") if machine in e["text"] and "lease" in e["text"]]  # noqa: E731
    until(lost, 60, "it is lost, and that schedd says that a job has a lease there")
    looks(pool, 5)
    assert [m["id"] for m in of_class(pool, "worker", *ALIVE)] == [machine]
    log = lambda: in_machine(pool, elsewhere, "cat", "/tmp/flocked.log")  # noqa: E731
    let_end(pool, "flocked")
    until(lambda: "\n005 " in log(), 60, "the job ends by itself")
    assert "\n004 " not in log(), "it was never evicted"
    until(lambda: not of_class(pool, "worker", *ALIVE), 60, "and its machine goes")
