"""`updraft head init` on a plain machine of the local cloud: init, again, undo; roles; another address."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.heads.test_head import a_cloud, acts
from tests.rigs.pools.controlling import (
    await_done,
    await_running,
    disturbed,
    let_end,
    outcomes,
    sh,
    slot_of,
    waiters,
)
from tests.rigs.pools.realpool import settings, tell, until
from updraft.clouds.base import TAG_POOL
from updraft.clouds.local import process
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import USER, RealPool
from updraft.provision.setup.files import DROP_IN, START

FILE = "/etc/updraft/updraft.toml"
NAME = "head.site"
KEEPER = "/usr/local/lib/updraft/door"
COMMANDS = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' || true"
COMMS = "cat /proc/[0-9]*/comm 2>/dev/null || true"
CONF = "/etc/condor/config.d/90-updraft.conf"
# Processes of HTCondor's name: root's own, a user's, and one of another root with its own mounts.
MASTERS = """
cp /usr/bin/sleep /tmp/condor_master
setsid /tmp/condor_master 900 </dev/null >/dev/null 2>&1 & echo $! >/tmp/own
setsid setpriv --reuid=65534 /tmp/condor_master 900 </dev/null >/dev/null 2>&1 & echo $! >/tmp/user
setsid unshare --mount /tmp/condor_master 900 </dev/null >/dev/null 2>&1 & echo $! >/tmp/space
"""
# An HTCondor with a machine's slots and a queue with a job.
WORKING = """
printf 'use ROLE: CentralManager\\nuse ROLE: Submit\\nuse ROLE: Execute\\n' >/etc/condor/config.d/50-site.conf
printf 'CONDOR_HOST = $(IP_ADDRESS)\\n' >>/etc/condor/config.d/50-site.conf
systemctl start condor
cd /tmp
printf 'executable = /bin/true\\nhold = true\\nqueue\\n' >/tmp/held.sub
for _ in 1 2 3 4 5 6 7 8 9 10; do runuser -u games -- condor_submit /tmp/held.sub && exit; sleep 1; done
"""
FENCES = (
    "grep -E 'CapBnd|NoNewPrivs' /proc/$(systemctl show --property=MainPID --value updraft.service)/status"
)
SYS_ADMIN = 21
LAYER = f"#cloud-config\nbootcmd: [[sh, -c, \"echo 'ADDRESS {NAME}' >>/etc/hosts\"]]\n"
# What account tools keep beside each file of theirs isn't looked at, nor what HTCondor and updraft work with.
PICTURE = r"""
find /etc /usr /opt /root /home /srv -xdev \( -name '*-' -o -name .pwd.lock -o -name __pycache__ \) -prune \
    -o -printf '%p %y %m %u:%g %l\n' | sort
find /etc /usr/local /root /home -xdev -type f ! -name '*-' ! -name .pwd.lock ! -name '*.pyc' \
    -exec sha256sum {} + | sort -k 2
"""


def machine(cloud: LocalCloud, image: Image, name: str) -> RealPool:
    """A plain machine with HTCondor installed and nothing set up, and the right to use the cloud."""
    [made] = cloud.client().run(
        key=name, count=1, image=image.name, flavor="medium", zone=cloud.config.zones[0].name,
        market="on-demand", tags={"Name": name}, role="controller", user_data=b"#cloud-config\n{}\n",
    )  # fmt: skip
    pool = RealPool(cloud, str(made["id"]), image)
    booted = lambda: "cloud-init is done" in cloud.client().console(pool.head)  # noqa: E731
    until(booted, 90, "the machine has booted")
    return pool


def configure(head: RealPool, image: Image, **tables: Any) -> None:
    """Put an updraft.toml there, as `updraft init` would."""
    names = {"pool": "mine", "cloud": "here", "endpoint": head.cloud.config.endpoint, "image": image.name}
    text = settings(**tables).format(**names)
    done = head.on_head("sh", "-c", f"mkdir -p /etc/updraft; umask 077; cat >{FILE}", stdin=text)
    assert done.returncode == 0


def init(pool: RealPool, *words: str) -> str:
    """Run `updraft head init`; what it said."""
    done = pool.updraft("head", "init", *words, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def picture(pool: RealPool) -> list[str]:
    """All files of the machine that somebody keeps: rights, owners, links, hashes.

    HTCondor's tools note in their caller's home (`.condor/known_hosts`) by which method a host let them in.
    """
    return [line for line in sh(pool, PICTURE, 120).splitlines() if " /root/.condor" not in f" {line}"]


def changed(before: list[str], after: list[str]) -> list[str]:
    """What one has and the other hasn't."""
    was, now = set(before), set(after)
    return [f"- {line}" for line in before if line not in now] + [
        f"+ {line}" for line in after if line not in was
    ]


@contextmanager
def told(pool: RealPool) -> Iterator[None]:
    """What the pool wrote is printed where a test fails."""
    try:
        yield
    except BaseException:
        tell(pool)
        raise


def undo(pool: RealPool, before: list[str]) -> None:
    """Run `updraft head undo`; the machine is as it was, and nothing of the head runs."""
    known = lambda: pool.show("machines")["machines"]  # noqa: E731
    until(lambda: not known(), 60, "its workers are gone, and known to be")
    undone = pool.updraft("head", "undo", timeout=180)
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert "stays" not in undone.stdout.replace("updraft.toml stay.", "")
    assert changed(before, picture(pool)) == []
    running = sh(pool, f"{COMMS}; {COMMANDS}")
    assert "condor_" not in running
    assert KEEPER not in running
    assert "updraft run" not in running


def test_init_runs_a_job_and_undo_leaves_the_machine_as_it_was(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        pool = machine(cloud, image, "plain")
        configure(pool, image)
        before = picture(pool)
        with told(pool):
            shown = pool.updraft("head", "init", "--user", "alice", "--dry-run")
            assert "+DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD" in shown.stdout, shown.stderr
            assert picture(pool) == before

            sh(pool, f"chmod go+w {FILE}")
            refused = pool.updraft("head", "init", "--user", "alice")
            assert (refused.returncode, f"{FILE} may be written by" in refused.stderr) == (2, True)
            sh(pool, f"chmod go-w {FILE}")
            assert picture(pool) == before

            begun = time.monotonic()
            said = init(pool, "--user", "alice")
            assert "is done, after" in said
            assert f"sh {START} start" not in said
            print(f"head init with its self-test: {time.monotonic() - begun:.1f} s")  # noqa: T201
            assert pool.history(["JobStatus", "ExitCode"])[0]["JobStatus"] == 4
            assert "Nothing to do" in init(pool, "--user", "alice")
            assert KEEPER in sh(pool, COMMANDS)
            fences = dict(line.split(":\t") for line in sh(pool, FENCES).splitlines())
            assert int(fences["CapBnd"], 16) & 1 << SYS_ADMIN == 0
            assert fences["NoNewPrivs"] == "1"
            sh(pool, "nft flush ruleset")
            until(lambda: "skuid 0" in sh(pool, "nft list ruleset"), 10, "the door is back")
            undo(pool, before)

            # Without a service manager the same is started plainly.
            sh(pool, "mv /usr/bin/systemctl /usr/bin/systemctl.away")
            before = picture(pool)
            assert f"sh {START} start" in init(pool, "--user", "alice", "--no-self-test")
            until(lambda: acts(pool), 40, "the controller acts")
            assert "alice" in pool.on_head("condor_q", "-totals", user="alice").stdout
            assert "Nothing to do" in init(pool, "--user", "alice", "--no-self-test")
            assert KEEPER in sh(pool, COMMANDS)
            undo(pool, before)


@pytest.mark.extended
def test_a_changed_file_is_named_by_undo_and_stays(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        pool = machine(cloud, image, "plain")
        words = ("--domain", "mine.pool", "--user", "alice")
        sh(pool, MASTERS)
        refused = pool.updraft("head", "init", *words)
        assert refused.returncode == 2
        own, *strange = (int(line) for line in sh(pool, "cat /tmp/own /tmp/user /tmp/space").split())
        assert f"condor_master runs already (process {own})" in refused.stderr
        sh(pool, f"kill {own}; umask 027; echo 'A = 1' >{CONF}; chown daemon:games {CONF}")
        theirs = sh(pool, f"stat -c '%a %u:%g %Y' {CONF}")
        assert pool.updraft("head", "init", *words).returncode == 2

        sh(pool, WORKING)
        queue = lambda: sh(pool, "condor_q -allusers -af Owner JobStatus || true").strip()  # noqa: E731
        until(lambda: queue() == "games 5", 60, "somebody's job is in the queue")
        refused = pool.updraft("head", "init", *words, "--replace")
        assert refused.returncode == 2
        assert "its STARTD would end, with the jobs that run there; its queue has 1 job of" in refused.stderr

        sh(pool, "systemctl stop condor")
        rests = pool.updraft("head", "init", *words, "--replace")
        assert rests.returncode == 2
        assert "HTCondor has work on this machine: its queue has 1 job of users of" in rests.stderr
        sh(pool, "systemctl start condor")

        said = init(pool, *words, "--replace", "--disturb")  # no updraft.toml: a pool alone
        assert "STARTD" not in sh(pool, "condor_config_val DAEMON_LIST")
        assert "write one with `updraft init`" in said
        assert "on this machine itself" in said
        assert "is done, after" in said
        sh(pool, f"echo '# mine' >>{DROP_IN}")
        refused = pool.updraft("head", "init", *words)
        assert refused.returncode == 2
        assert f"{DROP_IN} is changed by hand" in refused.stderr
        sh(pool, "echo kept >/home/alice/results")
        done = pool.updraft("head", "undo", timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        undone = done.stdout
        assert f"{DROP_IN} was changed since, and stays" in undone
        assert "the account alice stays: there is results at its home" in undone
        assert sh(pool, f"tail -n 1 {DROP_IN}") == "# mine\n"
        assert sh(pool, f"stat -c '%a %u:%g %Y' {CONF}; cat {CONF}") == f"{theirs}A = 1\n"
        assert "STARTD" in sh(pool, "condor_config_val DAEMON_LIST")
        until(lambda: "games 5" in queue(), 60, "HTCondor is at work as before")
        sh(pool, "kill -0 " + " ".join(map(str, strange)))  # those of others run on


def test_a_submit_node_of_its_own_joins_the_pool(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        central, submit = machine(cloud, image, "central"), machine(cloud, image, "submit")
        configure(central, image)
        with told(central):
            said = init(central, "--roles", "central-manager")
            command = next(line for line in said.splitlines() if "condor_token_create" in line)
            token = sh(central, command.partition("token: ")[2])
            assert "condor_schedd" not in sh(central, COMMS)
            assert submit.on_head("sh", "-c", "umask 077; cat >/root/token", stdin=token).returncode == 0
            address = sh(central, "condor_config_val IP_ADDRESS").strip()
            words = ["--roles", "submit", "--central-manager", address, "--domain", "mine.pool"]
            with told(submit):
                said = init(submit, *words, "--join", "/root/token", "--user", "alice")
                assert "is done, after" in said
                assert "condor_collecto" not in sh(submit, COMMS)
            [worker] = cloud_workers(central, submit)
            assert worker["tags"][TAG_POOL] == "mine", "the central manager's updraft launched it"


def cloud_workers(*heads: RealPool) -> list[dict[str, Any]]:
    """The machines that are no head."""
    known = {one.head for one in heads}
    return [one for one in heads[0].cloud.client().machines() if one["id"] not in known]


def name_it(pool: RealPool, machine_id: str, address: str) -> None:
    """What the site's DNS does: from now on the head's name is that address, as this machine sees it."""
    script = (
        f"grep -v ' {NAME}$' /etc/hosts >/tmp/h; echo '{address} {NAME}' >>/tmp/h; cat /tmp/h >/etc/hosts"
    )
    done = process.run_in(pool.cloud, machine_id, ["sh", "-c", script])
    assert done.returncode == 0, done.stderr


def test_a_head_that_comes_back_at_another_address_goes_on(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        pool = machine(cloud, image, "head")
        old = next(one["address"] for one in cloud.client().machines() if one["id"] == pool.head)
        new = cloud.config.addresses()[-1]
        name_it(pool, pool.head, old)
        configure(
            pool, image,
            pool={"trust_domain": "mine.pool"},
            worker={"layers": [LAYER.replace("ADDRESS", old)]},
        )  # fmt: skip
        token = cloud.credential_file.read_text()
        put = pool.on_head("sh", "-c", "umask 077; cat >/etc/updraft/cloud", stdin=token)
        assert put.returncode == 0
        sh(pool, f"sed -i 's|^driver = .*|&\\ncredential_file = \"/etc/updraft/cloud\"|' {FILE}")
        with told(pool):
            init(pool, "--user", USER, "--address", NAME, "--no-self-test")
            until(lambda: acts(pool), 40, "the controller acts")
            assert sh(pool, "condor_config_val FULL_HOSTNAME").strip() == NAME
            cluster = pool.submit(waiters(2, "moved"))
            await_running(pool, cluster, 2)
            # Not NumJobStarts: the shadow tells the queue of it only now and then, and it is stopped before.
            started_jobs = lambda: sh(pool, f"grep -c '^001' /home/{USER}/{cluster}.log || true").strip()  # noqa: E731
            until(lambda: started_jobs() == "2", 60, "both jobs have begun")
            before = {one["id"] for one in pool.workers("running")}

            sh(pool, "systemctl stop updraft; systemctl stop condor")
            assert "condor_" not in sh(pool, COMMS)
            prefix, gateway = cloud.config.network.partition("/")[2], cloud.config.gateway
            sh(
                pool,
                f"ip address del {old}/{prefix} dev eth0; ip address add {new}/{prefix} dev eth0; "
                f"ip route replace default via {gateway}",
            )
            for one in (pool.head, *before):
                name_it(pool, one, new)
            started = time.time()
            sh(pool, "systemctl start condor; systemctl start updraft")

            until(lambda: acts(pool, since=started), 60, "the controller acts again")
            found = lambda: all(slot_of(pool, one) for one in before)  # noqa: E731
            until(found, 90, "the workers are in the collector again")
            assert f"<{new}:" in sh(pool, "condor_status -collector -af MyAddress")
            let_end(pool, "moved")
            await_done(pool, [cluster], 90)
            assert [one[:2] for one in outcomes(pool, cluster)] == [(4, 0)] * 2
            assert started_jobs() == "2", "each was started once"
            print(disturbed(pool, cluster))  # noqa: T201
            assert {one["id"] for one in pool.workers()} == before, "none doubled, none given up"
            until(lambda: not pool.workers("pending", "running", "stopping"), 90, "idle, they go")
