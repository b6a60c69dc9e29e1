"""The life of the controller on a real pool: started, told, changed, lost, doubled and stopped."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    FILE,
    LOG,
    LONG_AT_FIRST,
    SERVICE,
    STATE,
    acting,
    await_done,
    await_running,
    daemon_pid,
    disturbed,
    edit,
    events,
    in_machine,
    outcomes,
    processes,
    reload,
    runs,
    sh,
    sleepers,
    slot_of,
    start_and_wait,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_GENERATION
from updraft.clouds.local import config as cloud_config
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.process import enter_command, run_in
from updraft.demo.pool import RealPool, Wishes

MIB = 1024  # KiB, as ps counts
IDLE = 'idle_limit = "6s"'
STAY = 'idle_limit = "1h"'


@pytest.fixture(scope="module")
def shared(module_pool: RealPools) -> RealPool:
    return module_pool(Wishes(settings=settings(timings={"settle": "10s", "cooldown_first": "4s"})))


@pytest.fixture
def pool(shared: RealPool) -> Iterator[RealPool]:
    """The module's pool as it was made: the controller acts by its first file, and no machine is there."""
    before = sh(shared, f"cat {FILE}")
    until(lambda: acting(shared), 60, "the controller acts")
    until(lambda: not shared.workers(*ALIVE), 60, "no machine is there")
    yield shared
    shared.cloud.set_faults()
    if sh(shared, f"cat {FILE}") != before:
        assert shared.on_head("sh", "-c", f"cat >{FILE}", stdin=before).returncode == 0
        reload(shared, "reloaded")


def kinds_since(pool: RealPool, number: int) -> list[str]:
    """What happened after the event `number`, as kinds."""
    return [event["kind"] for event in events(pool) if event["id"] > number]


def last_event(pool: RealPool) -> int:
    """The number of the latest event."""
    return int(events(pool)[-1]["id"])


def host_of(pool: RealPool, cluster: int) -> str:
    """The machine that a running job is on."""
    (job,) = pool.queue(f"ClusterId == {cluster}")
    return str(job["RemoteHost"].split("@")[1])


# ------------------------------------------------------------------------------------- killed, and lost


@pytest.mark.parametrize("lost", ["ledger*", "*"])
def test_it_is_killed_and_the_ledger_lost_while_jobs_run(pool: RealPool, lost: str) -> None:
    cluster = pool.submit(sleepers(3, 30))
    await_running(pool, cluster, 3)
    before = {m["id"] for m in pool.workers(*ALIVE)}
    sh(pool, f"kill -9 $(cat {SERVICE}.main); rm -f {STATE}/{lost}")
    # Where all is lost, its name is too: it waits until what it was called is dead for everybody.
    until(lambda: pool.on_head("test", "-e", f"{STATE}/ledger.sqlite").returncode == 0, 30, "it is back")
    until(lambda: acting(pool), 90, "the controller acts again")
    known = {machine["id"] for machine in pool.show("machines")["machines"]}
    assert known <= before
    assert {event["subject"] for event in events(pool, "adopt")} == before & known | before
    await_done(pool, [cluster], 90)
    assert outcomes(pool, cluster) == [DONE_ONCE] * 3
    assert disturbed(pool, cluster) == ""
    until(lambda: not pool.workers(*ALIVE), 60, "the adopted machines go when they are idle")
    assert {m["id"] for m in pool.workers() if m["id"] in before} == before
    assert not events(pool, "launch")


# ------------------------------------------------------------------------------------------- the cloud


def test_the_answer_to_a_launch_is_lost(pool: RealPool) -> None:
    before = len(pool.workers())
    pool.cloud.set_faults(Fault(FaultKind.LOST_ANSWER, times=1))
    cluster = pool.submit(sleepers(1, 12))
    await_done(pool, [cluster], 90)
    assert outcomes(pool, cluster) == [DONE_ONCE]
    assert len(pool.workers()) == before + 1
    assert [event["code"] for event in events(pool, "launch-unknown")] == ["cloud-unavailable"]


def test_the_cloud_is_away_for_a_while(pool: RealPool) -> None:
    edit(pool, IDLE, STAY)
    reload(pool, "reloaded")
    short, long = pool.submit(sleepers(1, 1, cpus=4)), pool.submit(sleepers(1, 45))
    await_running(pool, long)
    await_done(pool, [short], 60)
    machines = {m["id"] for m in pool.workers(*ALIVE)}
    edit(pool, STAY, IDLE)
    reload(pool, "reloaded")
    since = last_event(pool)
    # A job that only a new machine could run, beside a machine that is idle for longer than its limit.
    waits = pool.submit(sleepers(3, 1, cpus=2))
    # While the API is down nobody can ask it where the head is.
    status = enter_command(pool.cloud, pool.head, ["updraft", "status", "--json"])
    listing = enter_command(pool.cloud, pool.head, ["updraft", "events", "--last", "500", "--json"])
    back = time.time() + 20
    pool.cloud.set_faults(Fault(FaultKind.API_DOWN, lasts=20))
    away = lambda: shown(status)[0]["sources"]["cloud here: machines"]["state"] == "unknown"  # noqa: E731
    until(away, 15, "the controller sees that the cloud is away")
    seen = time.time()
    until(lambda: not away(), 40, "the controller sees that the cloud is back")
    assert seen < back - 8
    meanwhile = [event["kind"] for event in shown(listing) if seen < event["at"] < back]
    assert set(meanwhile) <= {"warning", "joined", "standing"}
    await_done(pool, [short, long, waits], 120)
    assert outcomes(pool, long) == [DONE_ONCE]
    assert outcomes(pool, waits) == [DONE_ONCE] * 3
    until(lambda: not pool.workers(*ALIVE), 60, "all machines go")
    assert "requeue-jobs" not in kinds_since(pool, since)
    assert machines <= {m["id"] for m in pool.workers()}


def shown(command: list[str]) -> list[dict[str, Any]]:
    """The JSON documents that a command prints, one in a line or one in all."""
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()]


# -------------------------------------------------------------------------------------- a changed file


def test_a_broken_file_keeps_the_old_one_and_says_why(pool: RealPool) -> None:
    edit(pool, IDLE, 'idle_limt = "6s"')
    text = reload(pool, "bad-configuration")
    number = sh(pool, f"grep -n idle_limt {FILE} | cut -d: -f1").strip()
    assert "the old one stays in force" in text
    assert f"updraft.toml, line {number}:" in text
    assert "idle_limit" in text  # what was meant
    cluster = pool.submit(sleepers(1, 1))
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [DONE_ONCE]


def test_a_changed_limit_is_taken_up(pool: RealPool) -> None:
    edit(pool, "machines = 8", "machines = 0")
    reload(pool, "reloaded")
    cluster = pool.submit(sleepers(1, 1))
    held = lambda: [g for g in pool.show("status")["groups"] if g["held_back"]]  # noqa: E731
    (group,) = until(held, 20, "the limit holds the job back")
    assert "limit" in group["held_back"][0]["code"]
    assert not pool.workers(*ALIVE)
    edit(pool, "machines = 0", "machines = 8")
    reload(pool, "reloaded")
    await_done(pool, [cluster], 60)


def test_machines_of_an_older_generation_finish_their_work_and_are_replaced(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, 30))
    await_running(pool, cluster)
    (old,) = pool.workers("running")
    edit(pool, IDLE, IDLE + "\nattributes = { Painted = '\"red\"' }")
    reload(pool, "reloaded")
    until(lambda: (slot_of(pool, old["id"]) or {}).get("Draining"), 20, "the old machine is closed")
    assert runs(pool, cluster)
    following = pool.submit(sleepers(1, 1, requirements='TARGET.Painted == "red"'))
    await_done(pool, [following], 60)
    assert runs(pool, cluster)
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == outcomes(pool, following) == [DONE_ONCE]
    assert disturbed(pool, cluster) == ""
    gone = lambda: next(m for m in pool.workers() if m["id"] == old["id"])["state"] == "terminated"  # noqa: E731
    until(gone, 30, "the old machine goes")
    assert [event["code"] for event in events(pool, "drain") if event["subject"] == old["id"]] == ["drifted"]
    assert len({m["tags"][TAG_GENERATION] for m in pool.workers()}) == 2


# ----------------------------------------------------------------------------------------- by hand


def test_a_busy_machine_is_ended_by_hand_only_with_its_jobs(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, LONG_AT_FIRST))
    await_running(pool, cluster)
    machine = host_of(pool, cluster)
    refused = pool.updraft("terminate", machine, "--wait")
    assert refused.returncode == 1
    # By the controller, or by the startd itself where the collector is a moment behind.
    assert f"terminate {machine}: refused: " in refused.stdout
    assert "--kill-jobs" in refused.stdout
    assert refused.stderr == "updraft: 1 wish refused\n"
    assert runs(pool, cluster)

    killed = pool.updraft("terminate", machine, "--kill-jobs", "--wait")
    assert (killed.returncode, killed.stderr) == (0, "")
    assert f"terminate {machine}: gone" in killed.stdout
    await_running(pool, cluster)
    assert host_of(pool, cluster) != machine
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [(4, 0, 2)]


def test_a_drain_by_hand_and_taken_back(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, 25))
    await_running(pool, cluster)
    machine = host_of(pool, cluster)
    assert pool.updraft("drain", machine[:10]).returncode == 0
    closed = lambda: bool((slot_of(pool, machine) or {}).get("Draining"))  # noqa: E731
    until(closed, 20, "the machine is closed")
    told = pool.updraft("explain", machine).stdout
    assert "draining" in told
    assert "asked for drain" in " ".join(told.split())
    assert pool.updraft("undrain", machine, "--wait").returncode == 0
    until(lambda: not closed(), 20, "the machine is open again")
    second = pool.submit(sleepers(1, 1))
    await_done(pool, [second], 40)
    assert runs(pool, cluster)
    assert pool.updraft("drain", machine, "--wait").returncode == 0  # to the end of its job
    assert outcomes(pool, cluster) == outcomes(pool, second) == [DONE_ONCE]
    wrong = pool.updraft("drain", "i-nothing")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


# ---------------------------------------------------------------------------------- a good guest


def secrets(pool: RealPool) -> list[str]:
    """Every secret of the pool that a text could hold."""
    found = [sh(pool, "cat /etc/condor/passwords.d/updraft-workers")]
    found.append((pool.cloud.state_dir / cloud_config.CONTROLLER_TOKEN).read_text())
    for machine in pool.workers("running"):
        token = in_machine(pool, machine["id"], "sh", "-c", "cat /etc/condor/tokens.d/*").strip()
        found += [token, token.split(".")[2]]
    return [secret.strip() for secret in found]


def test_no_secret_is_written_where_others_read(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(2, 10, cpus=2))
    await_running(pool, cluster, 2)
    known = secrets(pool)
    assert len(known) >= 4
    assert min(map(len, known)) > 30
    machine = host_of_first(pool, cluster)
    places = f"{STATE} /var/log /run /tmp /home"
    held = pool.on_head("grep", "-raFl", "-f", "-", *places.split(), stdin="\n".join(known))
    assert held.stdout == ""
    arguments = sh(pool, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true")
    consoles = "".join(pool.cloud.client().console(m["id"]) for m in pool.workers())
    shown = "".join(pool.updraft(*argv, "--json").stdout for argv in (["status"], ["events", "-n", "9999"]))
    seen = in_machine(pool, machine, "runuser", "-u", "nobody", "--", "sh", "-c", "cat /proc/*/cmdline; :")
    for text in (arguments, consoles, shown, seen):
        assert not [secret for secret in known if secret in text]
    refused = run_in(pool.cloud, machine, ["sh", "-c", "cat /etc/condor/tokens.d/*"], user="nobody")
    assert refused.returncode != 0
    await_done(pool, [cluster], 60)


def host_of_first(pool: RealPool, cluster: int) -> str:
    """The machine of one of a cluster's running jobs."""
    return str(pool.queue(f"ClusterId == {cluster}")[0]["RemoteHost"].split("@")[1])


def test_it_is_small_and_its_log_is_for_people(pool: RealPool) -> None:
    size = int(sh(pool, f"ps -o rss= -p {daemon_pid(pool)}"))
    assert size < 150 * MIB
    own = daemon_pid(pool)
    children = [int(rss) for rss in sh(pool, f"ps -o rss= --ppid {own}").split()]
    assert len(children) < 8
    assert sum(children) < 400 * MIB
    log = sh(pool, f"cat {LOG}")
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if not re.match(r"\S+Z \[(info|warning|error) *\] \S", line)]
    # What a shell and Python say of a process that was killed is the kill's, not the program's.
    of_the_kill = ("resource_tracker", "warnings.warn", "Killed")
    assert [line for line in lines if not any(word in line for word in of_the_kill)] == []


def test_it_stops_within_seconds_and_leaves_no_process(pool: RealPool) -> None:
    sh(pool, "systemctl stop updraft")
    try:
        assert processes(pool, "updraft.cli.main") == processes(pool, "multiprocessing") == []
        now = "cut -d' ' -f1 /proc/uptime"
        script = (
            "updraft run >/tmp/run.log 2>&1 & pid=$!; "
            "until grep -qE 'waits|acts for' /tmp/run.log; do sleep 0.2; done; "  # a slow one needn't wait
            f"{now}; kill -TERM $pid; wait $pid; echo $?; {now}"
        )
        begun, code, ended = sh(pool, script).split()
        assert code == "0"
        assert float(ended) - float(begun) < 8
        assert processes(pool, "updraft.cli.main") == processes(pool, "multiprocessing") == []
        assert "Traceback" not in sh(pool, "cat /tmp/run.log")
    finally:
        start_and_wait(pool)


# -------------------------------------------------------------------------------- two of them


def second_host(pool: RealPool) -> str:
    """Another machine of the cloud from which the pool can be managed as from its head."""
    head = next(m for m in pool.cloud.client().machines() if m["id"] == pool.head)
    (made,) = pool.cloud.client().run(
        key="second",
        count=1,
        image=pool.image.name,
        flavor="small",
        zone=head["zone"],
        market="on-demand",
        tags={"Name": "second"},
        role="controller",
        user_data=b"#cloud-config\n{}\n",
    )
    domain = sh(pool, "condor_config_val TRUST_DOMAIN").strip()
    conf = (
        f"CONDOR_HOST = {head['address']}\nTRUST_DOMAIN = {domain}\nUID_DOMAIN = {domain}\n"
        "use security:recommended\n"
    )
    token = sh(pool, f"condor_token_create -identity condor@{domain}")
    key = sh(pool, "cat /etc/condor/passwords.d/updraft-workers")
    texts = {
        "/etc/condor/config.d/90-second.conf": conf,
        "/etc/condor/tokens.d/controller": token,
        "/etc/condor/passwords.d/updraft-workers": key,
        FILE: sh(pool, f"cat {FILE}"),
    }
    host = str(made["id"])
    for path, text in texts.items():
        in_machine(
            pool,
            host,
            "sh",
            "-c",
            'umask 077; mkdir -p "${1%/*}"; cat >"$1"; case $1 in *.conf) chmod 644 "$1";; esac',
            "sh",
            path,
            stdin=text,
        )
    return host


def test_a_second_one_waits_wherever_it_is_started(pool: RealPool) -> None:
    here = pool.updraft("run")
    assert here.returncode == 1
    assert here.stderr.startswith(f"updraft: updraft already runs for {STATE} (process {daemon_pid(pool)})")

    host = second_host(pool)
    try:
        in_machine(
            pool, host, "sh", "-c", "setsid updraft run >/var/log/updraft.log 2>&1 & echo $! >/run/own"
        )
        status = lambda: json.loads(in_machine(pool, host, "updraft", "status", "--json"))["daemon"]  # noqa: E731
        log = lambda: in_machine(pool, host, "cat", "/var/log/updraft.log")  # noqa: E731
        name = sh(pool, "hostname -f").strip()
        until(
            lambda: f"on {name} acts for this pool: this one waits" in log(), 40, "it says for whom it waits"
        )
        cluster = pool.submit(sleepers(1, 1))
        await_done(pool, [cluster], 60)
        until(lambda: not pool.workers("running")[1:], 60, "the first one serves the pool alone")
        assert status()["standing"]["code"] == "second-controller"
        assert "launching" not in log()

        sh(pool, "systemctl stop updraft")
        until(lambda: status()["acting"], 30, "the second one takes over")
        cluster = pool.submit(sleepers(1, 1))
        await_done(pool, [cluster], 60)
        assert outcomes(pool, cluster) == [DONE_ONCE]
        assert "launching" in log()
        until(lambda: not pool.workers("running")[1:], 60, "and takes idle machines away")

        sh(pool, "systemctl start updraft")  # now this one is the younger
        waits = lambda: (pool.show("status")["daemon"]["standing"] or {}).get("code")  # noqa: E731
        until(lambda: waits() == "second-controller", 40, "the first one waits for the second")
        in_machine(pool, host, "sh", "-c", "kill -TERM $(cat /run/own)")
        until(lambda: acting(pool), 40, "the first one takes over again")
    finally:
        pool.cloud.client().terminate([host])


# ------------------------------------------------------------------------------------------- the end


def test_destroy_ends_everything_and_stays_ended(real_pool: RealPools) -> None:
    pool = real_pool(Wishes(settings=settings(worker={"min": 1})))
    until(lambda: pool.workers("running"), 60, "the minimum is there")
    cluster = pool.submit(sleepers(1, 12, cpus=2))
    await_running(pool, cluster)
    waiting = pool.submit(sleepers(1, 1, requirements='TARGET.UpdraftClass == "worker" && TARGET.Cpus > 3'))
    unasked = pool.on_head("updraft", "destroy", stdin="n\n")
    assert unasked.returncode == 130
    assert "Remove all of pool demo" in unasked.stderr
    done = pool.updraft("destroy", "--yes", "--wait", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "done: no machine is left" in done.stdout
    assert not pool.workers(*ALIVE)
    assert outcomes(pool, cluster) == [DONE_ONCE]
    until(lambda: not processes(pool, "updraft.cli.main"), 20, "the controller ends by itself")
    assert pool.on_head("sh", "-c", f"sleep 7; ! test -e {SERVICE}.main").returncode == 0, (
        "it was started again"
    )
    assert not pool.workers(*ALIVE)
    assert pool.queue(f"ClusterId == {waiting}")
