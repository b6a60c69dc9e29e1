"""Tokens on a real pool: listed, revoked with the sessions they opened, rotated; and what one is good for."""

import base64
import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    DONE_ONCE,
    await_done,
    await_running,
    disturbed,
    events,
    in_machine,
    let_end,
    looks,
    outcomes,
    sh,
    sleepers,
    slot_of,
    waiters,
)
from tests.rigs.pools.realpool import settings, until
from tests.rigs.reading import parts
from updraft.clouds.local.process import run_in
from updraft.demo.pool import POOL, RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
Done = subprocess.CompletedProcess[str]
TOKEN = re.compile(r"eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]{5,}")
MINE = "/etc/condor/tokens.d/updraft"
THIEF = "i-thief"
END_PATIENCE = 20  # seconds
REVOKED_WITHIN = 90  # seconds: once a minute


@pytest.fixture(scope="module")
def pool(module_pool: Pools) -> RealPool:
    text = settings(
        worker={"flavors": ["small"], "idle_limit": "10m"}, timings={"end_patience": f"{END_PATIENCE}s"}
    )
    return module_pool(Wishes(settings=text))


def tokens(pool: RealPool) -> dict[str, dict[str, Any]]:
    """The rows of `tokens list` that have machines, by launch; no token is in its text."""
    done = pool.updraft("tokens", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert not TOKEN.search(done.stdout)
    return {row["launch"]: row for row in json.loads(done.stdout)["tokens"] if row["machines"]}


def job_on(pool: RealPool, until_told: str) -> tuple[int, str, str]:
    """A job that runs, and fills its machine: its cluster, its machine, the machine's launch."""
    cluster = pool.submit(waiters(1, until_told))
    await_running(pool, cluster, deadline=90)
    [job] = pool.queue(f"ClusterId == {cluster}")
    machine = job["RemoteHost"].split("@")[1]
    launch = {one["id"]: one["launch"] for one in pool.show("machines")["machines"]}[machine]
    return cluster, machine, launch


def ads(pool: RealPool, launch: str) -> list[str]:
    """Type and name of all that machines with this launch's token have in the collector."""
    who = f"worker-{launch}"
    mine = f'split(AuthenticatedIdentity, "@+")[0] == "{who}"'
    done = pool.on_head("condor_status", "-any", "-constraint", mine, "-af", "MyType", "Name")
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def forged_slot(launch: str, machine: str) -> dict[str, str]:
    """What a thief can say of himself; no job of another test is to be matched with it."""
    address = '"<10.77.0.9:9618>"'
    return {
        "MyType": '"Machine"', "Name": f'"slot1@{machine}@{THIEF}"',
        "MyAddress": address, "StartdIpAddr": address,
        "State": '"Unclaimed"', "PartitionableSlot": "true", "Start": "false", "Requirements": "false",
        "UpdraftLaunch": f'"{launch}"', "UpdraftInstance": f'"{machine}"', "UpdraftPool": f'"{POOL}"',
    }  # fmt: skip


def of_the_whole_launch(pool: RealPool, launch: str) -> str:
    """A token as machines have it whose user-data hold their only one: of before, or made by hand."""
    row = tokens(pool)[launch]
    rights = ("-authz", "ADVERTISE_STARTD", "-authz", "ADVERTISE_MASTER", "-lifetime", "600")
    made = pool.on_head("condor_token_create", "-identity", row["identity"], "-key", row["key"], *rights)
    return made.stdout.strip()


def advertise(pool: RealPool, machine: str, **said: str) -> Done:
    """Send the ad of a slot as root of a worker can: with that machine's token, and whatever it says."""
    address = '"<10.77.0.9:9618>"'
    ad = {"MyType": '"Machine"', "Name": f'"slot1@{THIEF}@x"', "MyAddress": address, "StartdIpAddr": address}
    # No job of another test is to be matched with it.
    ad |= {"State": '"Unclaimed"', "PartitionableSlot": "true", "Start": "false", "Requirements": "false"}
    text = "".join(f"{name} = {value}\n" for name, value in {**ad, **said}.items())
    return run_in(pool.cloud, machine, ("condor_advertise", "UPDATE_STARTD_AD", "-"), stdin=text)


def shown_by_a_thief(pool: RealPool, machine: str, token: str) -> str:
    """What the collector says to this token, and to nothing else, from that machine."""
    script = (
        "d=$(mktemp -d); umask 077; cat >$d/t; export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=$d _CONDOR_SEC_TOKEN_DIRECTORY=$d; "
        "condor_ping -type collector ADVERTISE_STARTD 2>&1; rm -r $d"
    )
    return run_in(pool.cloud, machine, ("sh", "-c", script), stdin=token + "\n").stdout


def advertise_as(pool: RealPool, machine: str, token: str, **said: str) -> Done:
    """The same from that machine, with another's token and nothing else."""
    words = "".join(f"{name} = {value}\n" for name, value in said.items())
    script = (
        f"d=$(mktemp -d); umask 077; echo '{token}' >$d/t; "
        "export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=$d _CONDOR_SEC_TOKEN_DIRECTORY=$d; "
        "condor_advertise UPDATE_STARTD_AD -; e=$?; rm -r $d; exit $e"
    )
    return run_in(pool.cloud, machine, ("sh", "-c", script), stdin=words)


def log_size(pool: RealPool) -> int:
    return int(sh(pool, "stat -c %s /var/log/condor/CollectorLog"))


def denied(pool: RealPool, since: int) -> str:
    """The collector's lines of refusals from there on."""
    lines = sh(pool, f"tail -c +{since + 1} /var/log/condor/CollectorLog").splitlines()
    return "\n".join(line for line in lines if "DENIED" in line)


def test_tokens_are_listed_and_good_for_their_own_launch_and_a_stranger_is_told_of(pool: RealPool) -> None:
    cluster, one, launch = job_on(pool, "first")
    row = tokens(pool)[launch]
    assert (row["machines"], row["key"], row["state"]) == (1, "updraft-workers", "good")
    lives = 12 * 3600 + 3600  # its lifetime, and the time to finish
    assert row["expires"] - row["issued"] > lives, "no token ends before its machine"
    assert not TOKEN.search(sh(pool, "cat /var/log/updraft.log; updraft events --json --last 500"))
    true = {
        "UpdraftLaunch": f'"{launch}"', "UpdraftInstance": f'"{THIEF}"',
        "UpdraftPool": f'"{POOL}"', "UpdraftCloud": '"here"',
    }  # fmt: skip
    hidden = [{**true, name: "undefined"} for name in ("UpdraftLaunch", "UpdraftInstance", "UpdraftPool")]
    of_all = of_the_whole_launch(pool, launch)
    for lie in ({**true, "UpdraftLaunch": '"worker-1-0"'}, *hidden):
        advertise_as(pool, one, of_all, **{**forged_slot(launch, THIEF), **lie})
        assert not [ad for ad in ads(pool, launch) if THIEF in ad], lie
    # With its own token a machine is no other; with one for all of its launch, which machines of before have,
    # it is let in: it is no machine of ours, and that is said.
    advertise(pool, one, **true)
    assert not [ad for ad in ads(pool, launch) if THIEF in ad]
    sent = advertise_as(pool, one, of_all, **{**forged_slot(launch, THIEF), **true})
    assert sent.returncode == 0, sent.stderr
    until(lambda: [ad for ad in ads(pool, launch) if THIEF in ad], 10, "its ad is there")
    told = until(lambda: events(pool, "unexplained-slot"), 20, "the controller reports it")
    assert THIEF in told[-1]["text"]
    assert THIEF not in {row["id"] for row in pool.show("machines")["machines"]}
    # It is no schedd's and no negotiator's token, and submits and stops nothing.
    schedd = 'MyType = "Scheduler"\nName = "thief"\nMyAddress = "<10.77.0.9:9618>"\n'
    run_in(pool.cloud, one, ("condor_advertise", "UPDATE_SCHEDD_AD", "-"), stdin=schedd)
    assert "thief" not in sh(pool, "condor_status -schedd -af Name")
    head = sh(pool, "condor_status -schedd -af Name").split()[0]
    done = run_in(pool.cloud, one, ("condor_submit", "-remote", head, "-"), stdin=sleepers(1, 1))
    assert done.returncode != 0
    done = run_in(pool.cloud, one, ("condor_off", "-name", head, "-schedd"))
    assert pool.queue(f"ClusterId == {cluster}"), "the schedd answers"
    let_end(pool, "first")
    await_done(pool, [cluster], 60)


def test_what_the_user_data_hold_is_worthless_after_the_boot(pool: RealPool) -> None:
    cluster, one, launch = job_on(pool, "worthless")
    data = base64.b64decode(in_machine(pool, one, "base64", "-w0", "/var/lib/cloud/instance/user-data.txt"))
    [stolen] = set(TOKEN.findall("".join(text for _, text in parts(data))))
    own = in_machine(pool, one, "cat", MINE).strip()
    assert stolen != own
    assert one in {event["subject"] for event in events(pool, "token-handed")}
    assert "FAIL" in shown_by_a_thief(pool, one, stolen).upper()
    assert "FAIL" not in shown_by_a_thief(pool, one, own).upper()
    for machine in (one, "i-nobody"):
        forged = forged_slot(launch, machine)
        assert advertise_as(pool, one, stolen, **forged).returncode != 0
        assert sh(pool, f"condor_status -any -constraint 'Name == {forged['Name']}' -af Name") == ""
    told = json.loads(in_machine(pool, one, "cat", "/etc/updraft/handover.json"))
    told |= {"token": "/root/thief/own", "done": "/root/thief/done", "port": 0, "patience": 5, "silence": 0}
    script = (
        f"umask 077; mkdir -p /root/thief/t; cd /root/thief; cat >told; echo '{stolen}' >t/t; "
        "export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=/root/thief/t _CONDOR_SEC_TOKEN_DIRECTORY=/root/thief/t; "
        "python3 -I /usr/local/lib/updraft/handover told; echo $?; ls own"
    )
    asked = run_in(pool.cloud, one, ("sh", "-c", script), stdin=json.dumps(told)).stdout
    assert "no answer within " in asked or "for another key" in asked
    assert asked.split()[-1] == "1", "and no token"
    let_end(pool, "worthless")
    await_done(pool, [cluster], 60)


def test_a_revoked_launch_is_out_at_once_with_its_sessions_and_the_others_stay(pool: RealPool) -> None:
    lost_job, lost, launch = job_on(pool, "second")
    kept_job, kept, other = job_on(pool, "second")
    assert launch != other
    assert {ad.split()[0] for ad in ads(pool, launch)} >= {"Machine", "DaemonMaster"}
    token = in_machine(pool, lost, "cat", MINE).strip()
    good = shown_by_a_thief(pool, kept, token)
    before = log_size(pool)

    done = pool.updraft("tokens", "revoke", launch, timeout=90)

    assert done.returncode == 0, done.stdout + done.stderr
    assert ads(pool, launch) == [], "its ads are gone when the call returns"
    assert tokens(pool)[launch]["state"] == "revoked"
    # Its startd goes on over the connection and the session that it has, and each update is refused.
    until(lambda: f"worker-{launch}+{lost}@" in denied(pool, before), 40, "the collector refuses its updates")
    bad = shown_by_a_thief(pool, kept, token)
    assert good != bad, "whoever has the token can't come in anew either"
    assert "FAIL" in bad.upper(), bad
    assert "FAIL" not in good.upper(), good
    assert ads(pool, launch) == []

    # The other launch was never away.
    assert [ad for ad in ads(pool, other) if kept in ad]
    assert tokens(pool)[other]["state"] == "good"
    assert f"worker-{other}+" not in denied(pool, before)
    # Jobs run on, on both; then the revoked machine is given up, and the other is not.
    let_end(pool, "second")
    await_done(pool, [lost_job, kept_job], 60)
    assert outcomes(pool, lost_job) == outcomes(pool, kept_job) == [(4, 0, 1)]
    assert disturbed(pool, lost_job) == ""
    until(lambda: lost in {m["id"] for m in pool.workers("terminated")}, 120, "its machine is given up", 1)
    assert kept in {m["id"] for m in pool.workers("running")}
    assert ads(pool, launch) == []
    [event] = events(pool, "token-revoked")
    assert event["subject"] == launch


def test_a_token_is_over_with_its_machines_and_what_a_thief_advertised_with_it_goes(pool: RealPool) -> None:
    ends, lost, launch = job_on(pool, "ending")
    stays, kept, other = job_on(pool, "staying")
    assert launch != other
    token = in_machine(pool, lost, "cat", MINE).strip()
    forged = forged_slot(launch, lost) | {"UpdraftPool": '"elsewhere"'}
    assert advertise_as(pool, kept, token, **forged).returncode == 0
    until(lambda: [ad for ad in ads(pool, launch) if THIEF in ad], 10, "the forged slot is there")
    before = log_size(pool)
    let_end(pool, "ending")
    await_done(pool, [ends], 60)

    assert pool.updraft("drain", lost).returncode == 0
    until(lambda: lost in {m["id"] for m in pool.workers("terminated")}, 120, "its machine is gone", 1)

    def over() -> bool:
        return {launch, lost} & {event["subject"] for event in events(pool, "token-over")} != set()

    until(over, REVOKED_WITHIN, "its token is revoked", 1)
    until(lambda: ads(pool, launch) == [], 10, "the forged slot is gone")
    assert advertise_as(pool, kept, token, **forged).returncode != 0
    assert ads(pool, launch) == []
    assert [ad for ad in ads(pool, other) if kept in ad]
    assert f"worker-{other}+" not in denied(pool, before)
    let_end(pool, "staying")
    await_done(pool, [stays], 60)


def test_a_new_key_signs_and_the_old_one_goes_with_its_machines_or_at_once(pool: RealPool) -> None:
    jobs = [job_on(pool, "third")[0]]
    old = tokens(pool)
    jobs += [job_on(pool, "third")[0] for _ in range(len(old) - 1)]  # none of them has room any more
    assert {row["key"] for row in old.values()} == {"updraft-workers"}
    assert pool.updraft("tokens", "rotate", timeout=60).returncode == 0
    cluster, _, launch = job_on(pool, "third")
    assert launch not in old
    assert tokens(pool)[launch]["key"] == "updraft-workers-2"
    assert all(ads(pool, one) for one in old if old[one]["state"] == "good"), "those of before stay"
    stays = json.loads(pool.updraft("tokens", "rotate", "--finish", "--json", timeout=60).stdout)
    assert (stays["removed"], list(stays["needed"])) == ([], ["updraft-workers"])
    let_end(pool, "third")
    await_done(pool, [*jobs, cluster], 60)

    done = pool.updraft("tokens", "rotate", "--now", timeout=90)

    assert done.returncode == 0, done.stdout + done.stderr
    keys = sh(pool, "ls /etc/condor/passwords.d").split()
    assert [key for key in keys if key.startswith("updraft")] == ["updraft-workers-3"]
    assert not any(ads(pool, one) for one in (*old, launch))
    _, _, fresh = job_on(pool, "fourth")
    assert fresh not in {*old, launch}
    assert (tokens(pool)[fresh]["key"], tokens(pool)[fresh]["state"]) == ("updraft-workers-3", "good")


def test_a_siblings_word_that_a_machine_has_closed_ends_no_machine(pool: RealPool) -> None:
    cluster = pool.submit(waiters(3, "forged"))
    await_running(pool, cluster, 3, deadline=90)
    launches = {one["id"]: one["launch"] for one in pool.show("machines")["machines"]}
    hosts = [job["RemoteHost"].split("@")[1] for job in pool.queue(f"ClusterId == {cluster}")]
    thief, victim = next(
        (a, b) for a in hosts for b in hosts if a != b and launches[a] == launches[b]
    )  # at least two were launched together
    slot = slot_of(pool, victim)
    assert slot is not None
    lie = {
        name: f'"{slot[name]}"' for name in ("Name", "MyAddress", *(n for n in slot if n[:7] == "Updraft"))
    }
    lie |= {
        "StartdIpAddr": lie["MyAddress"],
        "State": '"Drained"',
        "Draining": "true",
        "DrainReason": '"updraft idle-limit: nothing runs there"',
    }

    advertise(pool, thief, **lie)
    assert not (slot_of(pool, victim) or {}).get("Draining"), "with a token of its own it is no sibling"
    of_all = of_the_whole_launch(pool, launches[thief])

    def lies() -> None:
        sent = advertise_as(pool, thief, of_all, **{**forged_slot("", ""), **lie})
        assert sent.returncode == 0, sent.stderr

    lies()
    until(lambda: (slot_of(pool, victim) or {}).get("Draining"), 10, "the collector has the forged ad")
    looks(pool, 2 * END_PATIENCE, lies)  # each takes a second at least

    assert victim in {m["id"] for m in pool.workers("running")}
    assert disturbed(pool, cluster) == ""
    let_end(pool, "forged")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == 3 * [DONE_ONCE]
