"""The controller as a guest of its head: what it writes there, how it stops; two of them; and its end."""

import hashlib
import io
import json
import tarfile

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    FILE,
    SERVICE,
    STATE,
    acting,
    await_done,
    await_running,
    daemon_pid,
    edit,
    in_machine,
    outcomes,
    processes,
    reload,
    sh,
    sleepers,
    start_and_wait,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_POOL
from updraft.clouds.local import config as cloud_config
from updraft.clouds.local.process import run_in
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

IDLE = 'idle_limit = "3s"'


@pytest.fixture(scope="module")
def shared(module_pool: RealPools) -> RealPool:
    return module_pool(Wishes(settings=settings(worker={"idle_limit": "3s"}, timings={"settle": "4s"})))


@pytest.fixture
def pool(shared: RealPool) -> RealPool:
    """The module's pool as it was made: the controller acts, and no machine is there."""
    until(lambda: acting(shared), 60, "the controller acts")
    until(lambda: not shared.workers(*ALIVE), 60, "no machine is there")
    return shared


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


def test_it_stops_within_seconds_and_leaves_no_process(pool: RealPool) -> None:
    # Its children end with it, a moment later.
    left = lambda: processes(pool, "updraft.cli.main") + processes(pool, "multiprocessing")  # noqa: E731
    sh(pool, "systemctl stop updraft")
    try:
        until(lambda: not left(), 5, "no process of it is left")
        now = "cut -d' ' -f1 /proc/uptime"
        script = (
            "updraft run >/tmp/run.log 2>&1 & pid=$!; "
            "until grep -qE 'waits|acts for' /tmp/run.log; do sleep 0.2; done; "  # a slow one needn't wait
            f"{now}; kill -TERM $pid; wait $pid; echo $?; {now}"
        )
        begun, code, ended = sh(pool, script).split()
        assert code == "0"
        assert float(ended) - float(begun) < 8
        until(lambda: not left(), 5, "no process of it is left")
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


def left_images(pool: RealPool) -> tuple[str, str]:
    """Two images that nothing uses: one that the head's updraft has made, one with the pool's name alone."""
    sh(pool, "mkdir -p /tmp/root/etc; tar -C /tmp/root -cf /tmp/root.tar .")
    made = pool.updraft("image", "upload", "/tmp/root.tar", "--name", "spare")
    assert made.returncode == 0, made.stderr
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        folder = tarfile.TarInfo("etc")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
    size, digest = data.tell(), hashlib.sha256(data.getvalue()).hexdigest()
    data.seek(0)
    client = pool.cloud.client()
    strange = client.put_image("strange", {TAG_POOL: "demo"}, data, size, f"sha256:{digest}")
    return next(one["id"] for one in client.images() if one["name"] == "spare"), strange


def test_destroy_ends_everything_and_stays_ended(shared: RealPool) -> None:
    """The last of this file: nothing acts for its pool afterwards."""
    pool = shared
    edit(pool, IDLE, f"{IDLE}\nmin = 1")
    reload(pool, "reloaded")
    cluster = pool.submit(sleepers(1, 20, cpus=2))
    await_running(pool, cluster)
    edit(pool, "machines = 8", f"machines = {len(pool.workers(*ALIVE))}")
    reload(pool, "reloaded")
    waiting = pool.submit(sleepers(1, 1, requirements='TARGET.UpdraftClass == "worker" && TARGET.Cpus > 3'))
    spare, strange = left_images(pool)
    unasked = pool.on_head("updraft", "destroy", stdin="n\n")
    assert unasked.returncode == 130
    assert "Remove all of pool demo" in unasked.stderr
    done = pool.updraft("destroy", "--yes", "--wait", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "done: no machine is left" in done.stdout
    assert f"image spare ({spare}) in here" in done.stdout.partition("left in the clouds: ")[2]
    assert f"image strange ({strange}) in here" in done.stdout.partition("left in the clouds: ")[2]
    assert not pool.workers(*ALIVE)
    assert outcomes(pool, cluster) == [DONE_ONCE]
    until(lambda: not processes(pool, "updraft.cli.main"), 20, "the controller ends by itself")
    assert pool.on_head("sh", "-c", f"sleep 7; ! test -e {SERVICE}.main").returncode == 0, (
        "it was started again"
    )
    assert not pool.workers(*ALIVE)
    assert pool.queue(f"ClusterId == {waiting}")
    removed = pool.updraft("leftovers", "spare", "strange", "--remove", "--yes")
    assert removed.returncode == 1
    assert f"removed image spare ({spare})" in removed.stdout
    assert f"image strange ({strange}) in here stays: it has the pool's name and not its" in removed.stderr
    assert {one["id"] for one in pool.cloud.client().images()} & {spare, strange} == {strange}
    assert pool.updraft("image", "delete", strange).returncode == 0
    left = pool.updraft("leftovers")
    assert (left.returncode, left.stdout) == (0, "nothing is left over\n")
