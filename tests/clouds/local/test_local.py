"""The cloud on one machine, with real namespaces and the real cloud-init."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.clouds.made import made
from tests.waiting import until
from updraft.clouds.base import TAG_LEASE
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig, Quotas, Zone, default_flavors
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.images import image
from updraft.clouds.local.service.machine import Blueprint, Console, Process
from updraft.errors import AuthFailed, NoCapacity, ProblemFound, QuotaExceeded, UsageError
from updraft.observe.boots import unread

pytestmark = pytest.mark.integration

BOOTED = "machine: cloud-init is done"
USER_DATA = b"""#cloud-config
write_files: [{path: /root/written, content: hello}]
runcmd: [[touch, /root/ran]]
"""
FETCH = (
    "import sys, urllib.request as r\n"
    "def ask(path, method='GET', **headers):\n"
    "    asked = r.Request('http://169.254.169.254/latest/' + path, headers=headers, method=method)\n"
    "    return r.urlopen(asked).read().decode()\n"
    "token = ask('api/token', 'PUT', **{'X-aws-ec2-metadata-token-ttl-seconds': '60'})\n"
    "for path in sys.argv[1:]:\n"
    "    try: print(ask(path, **{'X-aws-ec2-metadata-token': token}))\n"
    "    except r.HTTPError as error: print(error.code)\n"
)


@pytest.fixture(scope="session")
def config() -> LocalCloudConfig:
    built = image.build()
    return LocalCloudConfig(
        images={"forky": tuple(str(layer) for layer in built.layers)},
        zones=(Zone("zone-a", None), Zone("zone-b", 2)),
        quotas=Quotas(machines=5),
    )


class Site:
    """One cloud, and the few words that the tests say to it."""

    def __init__(self, cloud: process.LocalCloud) -> None:
        self.cloud = cloud
        self.admin = cloud.client()

    def launch(self, key: str = "key", count: int = 1, **order: Any) -> list[str]:
        order = {"image": "forky", "flavor": "small", "zone": "zone-a", "user_data": USER_DATA, **order}
        return [machine["id"] for machine in self.admin.run(key=key, count=count, **order)]

    def boot(self, **order: Any) -> str:
        (machine,) = self.launch(**order)
        until(lambda: BOOTED in self.admin.console(machine), 60, f"{machine} boots", every=0.05)
        return machine

    def show(self, machine: str) -> dict[str, Any]:
        return next(one for one in self.admin.machines() if one["id"] == machine)

    def ended(self, machine: str) -> None:
        until(lambda: self.show(machine)["state"] == "terminated", 60, f"{machine} ends", every=0.05)

    def run(self, machine: str, *argv: str, user: str | None = None) -> str:
        done = process.run_in(self.cloud, machine, argv, user=user)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def site(config: LocalCloudConfig, tmp_path: Path) -> Iterator[Site]:
    cloud = process.start(config, tmp_path / "cloud", tie_to_parent=True)
    try:
        yield Site(cloud)
    finally:
        cloud.stop()


def test_user_data_has_its_effect(site: Site) -> None:
    machine = site.boot()
    assert site.run(machine, "cat", "/root/written") == "hello"
    assert site.run(machine, "ls", "/root/ran") == "/root/ran"
    about = json.loads(site.run(machine, "cloud-init", "status", "--format", "json"))
    assert (about["extended_status"], about["errors"]) == ("done", [])


def test_a_machine_is_as_large_as_its_flavor(site: Site) -> None:
    machine = site.boot()
    assert site.run(machine, "condor_config_val", "NUM_CPUS", "MEMORY") == "1\n1024"
    disk = site.run(machine, "df", "--output=size", "/").split()[-1]
    assert int(disk) == 4 * 1024 * 1024


def test_names_and_addresses_agree(site: Site) -> None:
    first, second = (site.show(machine) for machine in (site.boot(key="a"), site.boot(key="b")))
    assert site.run(first["id"], "hostname") == first["name"]
    full = site.run(first["id"], "getent", "hosts", second["name"]).split()
    assert full[:2] == [second["address"], f"{second['name']}.updraft.internal"]
    assert site.run(second["id"], "hostname", "-f") == full[1]


def test_a_machine_sees_none_of_the_host(site: Site, tmp_path: Path) -> None:
    machine = site.boot()
    assert tmp_path.is_dir()
    assert site.run(machine, "sh", "-c", f"ls -d {tmp_path} 2>/dev/null || echo none") == "none"
    names = site.run(machine, "ps", "-e", "-o", "comm=").split()
    assert names[0] == "tini"
    assert "pytest" not in names


def test_metadata_says_who_asks(site: Site) -> None:
    machine = site.boot(market="spot")
    paths = ["instance-id", "local-ipv4", "placement/availability-zone", "instance-type", "public-ipv4"]
    script = [
        "python3",
        "-c",
        FETCH,
        *(f"meta-data/{path}" for path in paths),
        "meta-data/spot/instance-action",
    ]
    seen = site.run(machine, *script).splitlines()
    assert seen == [machine, site.show(machine)["address"], "zone-a", "small", "404", "404"]
    site.admin.notice(machine)
    action = site.run(machine, "python3", "-c", FETCH, "meta-data/spot/instance-action")
    assert json.loads(action)["action"] == "terminate"


def test_a_machine_with_a_lease_reads_its_own_tags_as_they_are_now(site: Site) -> None:
    leased, plain = site.boot(key="leased", tags={TAG_LEASE: "1"}), site.boot(key="plain", tags={"a": "b"})
    path = f"meta-data/tags/instance/{TAG_LEASE}"
    assert site.run(leased, "python3", "-c", FETCH, path) == "1"
    site.admin.tag([leased], {TAG_LEASE: "2"})
    assert site.run(leased, "python3", "-c", FETCH, path) == "2"
    assert site.run(plain, "python3", "-c", FETCH, "meta-data/tags/") == "404"


def test_only_a_controller_gets_the_credential(site: Site) -> None:
    worker, head = site.boot(key="worker"), site.boot(key="head", role="controller")
    path = "meta-data/iam/security-credentials/"
    assert site.run(worker, "python3", "-c", FETCH, path) == "404"
    role = site.run(head, "python3", "-c", FETCH, path)
    given = json.loads(site.run(head, "python3", "-c", FETCH, path + role))["Token"]
    assert given == site.cloud.credential_file.read_text().strip()


def test_the_driver_works_on_a_controller(site: Site, config: LocalCloudConfig) -> None:
    head = site.boot(role="controller")
    script = (
        "import sys; sys.path[:0] = ['/opt/updraft/src', '/opt/updraft/lib']\n"
        "from updraft.clouds.cloud import Owner\n"
        "from updraft.clouds.local.driver import DRIVER\n"
        f"settings = DRIVER.settings(endpoint='{config.endpoint}')\n"
        "print(DRIVER.make('local', Owner('p'), settings).machines.quota().machines)\n"
    )
    assert site.run(head, "python3", "-c", script) == "4"


def test_a_user_of_the_cloud_is_no_administrator(site: Site) -> None:
    user = process.Client(site.cloud.endpoint, site.cloud.credential_file.read_text().strip())
    assert user.quota()["machines"] in range(6)  # what another test had is given back when it has ended
    with pytest.raises(AuthFailed):
        user.set_faults([])
    with pytest.raises(AuthFailed):
        process.Client(site.cloud.endpoint, "wrong").quota()


def test_without_any_credential_the_driver_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPDRAFT_LOCAL_CLOUD_TOKEN", raising=False)
    with pytest.raises(AuthFailed, match="credential_file"):
        made("local", "local", "p", {"endpoint": "unix:/nowhere", "credential_file": "/no/credential_file"})


def test_poweroff_from_inside_ends_the_machine(site: Site) -> None:
    machine = site.boot()
    process.run_in(site.cloud, machine, ["systemctl", "poweroff"])
    site.ended(machine)
    assert site.show(machine)["why_ended"] == "it was shut down from inside"


def test_a_crash_gives_no_warning(site: Site) -> None:
    machine = site.boot()
    site.admin.crash(machine)
    site.ended(machine)
    assert "machine: stopping" not in site.admin.console(machine)
    with pytest.raises(ProblemFound):
        process.run_in(site.cloud, machine, ["true"])


def test_terminate_lets_a_machine_stop_in_order(site: Site) -> None:
    machine = site.boot()
    site.admin.terminate([machine])
    site.ended(machine)
    assert "machine: stopping" in site.admin.console(machine)
    assert list(site.show(machine)["times"]) == ["pending", "running", "stopping", "terminated"]


def test_a_service_runs_is_kept_and_stops(site: Site) -> None:
    unit = b"[Service]\\nExecStart=/bin/sleep 1000\\nRestart=on-failure\\nRestartSec=1\\n"
    user_data = (
        b'#cloud-config\nwrite_files: [{path: /etc/systemd/system/nap.service, content: "' + unit + b'"}]\n'
    )
    machine = site.boot(user_data=user_data + b"runcmd: [[systemctl, enable, --now, nap.service]]\n")
    assert site.run(machine, "systemctl", "is-active", "nap") == "active"
    first = site.run(machine, "cat", "/run/updraft-machine/nap.main")
    site.run(machine, "kill", "-KILL", first)
    again = f"p=$(cat /run/updraft-machine/nap.main 2>/dev/null) && [ $p != {first} ] && echo yes || echo no"
    until(
        lambda: site.run(machine, "sh", "-c", again) == "yes", 60, "the service is started again", every=0.05
    )
    site.run(machine, "systemctl", "stop", "nap")
    assert process.run_in(site.cloud, machine, ["systemctl", "is-active", "nap"]).stdout == "inactive\n"


@pytest.mark.parametrize(("mode", "left"), [("mixed", ""), ("control-group", ""), ("process", "1003")])
def test_what_a_stopped_service_leaves_behind_ends_as_its_unit_says(site: Site, mode: str, left: str) -> None:
    unit = f"[Service]\\nKillMode={mode}\\nExecStart=/bin/sh -c 'setsid sleep 1003 & exec sleep 2003'\\n"
    user_data = (
        f'#cloud-config\nwrite_files: [{{path: /etc/systemd/system/nap.service, content: "{unit}"}}]\n'
        "runcmd: [[systemctl, enable, --now, nap.service]]\n"
    )
    machine = site.boot(user_data=user_data.encode())
    asleep = '[ "$(tr "\\0" " " 2>/dev/null <$one/cmdline)" = "sleep 1003 " ] && echo 1003'
    naps = f"for one in /proc/[0-9]*; do {asleep}; done; true"
    assert site.run(machine, "sh", "-c", naps) == "1003"
    site.run(machine, "systemctl", "stop", "nap")
    assert site.run(machine, "sh", "-c", naps) == left


def test_run_in_as_a_user(site: Site) -> None:
    machine = site.boot(user_data=b"#cloud-config\nusers: [{name: ada, shell: /bin/bash}]\n")
    assert site.run(machine, "sh", "-c", "id -un; pwd", user="ada") == "ada\n/home/ada"


def test_the_same_key_makes_no_more(site: Site) -> None:
    first = site.launch(count=2)
    assert site.launch(count=2) == first
    assert len(site.admin.machines()) == 2


def test_what_fits_is_made_and_then_refused(site: Site) -> None:
    assert len(site.launch(key="zone", count=3, zone="zone-b")) == 2
    with pytest.raises(NoCapacity):
        site.launch(key="full", zone="zone-b")
    assert len(site.launch(key="quota", count=9)) == 3
    with pytest.raises(QuotaExceeded):
        site.launch(key="more")


def test_boots_fail_as_asked(site: Site) -> None:
    site.cloud.set_faults(
        Fault(FaultKind.NEVER_BOOTS, zone="zone-b"), Fault(FaultKind.SLOW_BOOT, seconds=3.0, times=1)
    )
    (dead,), started = site.launch(key="dead", zone="zone-b"), time.monotonic()
    site.boot(key="slow")
    assert time.monotonic() - started >= 3
    until(
        lambda: "Kernel panic" in site.admin.console(dead), 60, "the console tells of the panic", every=0.05
    )
    assert site.show(dead)["state"] == "running"
    site.admin.terminate([dead])
    site.ended(dead)


def test_a_boot_crashes_hangs_or_has_no_user_data(site: Site) -> None:
    site.cloud.set_faults(
        Fault(FaultKind.BOOT_CRASHES, zone="zone-b", seconds=0.3),
        Fault(FaultKind.BOOT_HANGS, flavor="large", seconds=0),
        Fault(FaultKind.NO_USER_DATA, flavor="medium"),
    )
    (crashes,) = site.launch(key="crashes", zone="zone-b")
    (hangs,) = site.launch(key="hangs", flavor="large")
    blank = site.boot(key="blank", flavor="medium")
    site.ended(crashes)
    assert site.show(crashes)["why_ended"] == "its host died"
    assert process.run_in(site.cloud, blank, ["ls", "/root/written"]).returncode != 0
    stopped = lambda: set(states(site, hangs)) == {"T"}  # noqa: E731
    until(stopped, 30, "every process of it stands still", every=0.05)
    assert site.show(hangs)["state"] == "running"
    assert BOOTED not in site.admin.console(hangs)
    site.admin.terminate([hangs])
    site.ended(hangs)


def test_a_machine_that_has_ended_does_not_hang_another(tmp_path: Path) -> None:
    """The number of its first process may have been given away again."""
    order = Blueprint("m-1", tmp_path, (), default_flavors()[0], "m", "10.77.0.9", 24, "10.77.0.1")
    ended = Process(order, Console())
    command = ["unshare", "--pid", "--fork", "--kill-child=KILL", "sleep", "60"]
    with subprocess.Popen(command) as other:
        children = Path(f"/proc/{other.pid}/task/{other.pid}/children")
        until(lambda: children.read_text(), 20, "the other's process runs", every=0.01)
        ended.pid = int(children.read_text())
        ended.freeze()
        state = Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0]
        other.kill()
    assert state != "T"


def test_a_boot_whose_metadata_want_a_token_says_within_a_minute_that_it_cannot_read_them(site: Site) -> None:
    """The real cloud-init, on a machine whose firmware doesn't say that it is Amazon's."""
    site.cloud.set_faults(Fault(FaultKind.WANTS_TOKEN, flavor="medium"))
    (refused,) = site.launch(key="refused", flavor="medium")
    until(lambda: unread(site.admin.console(refused)), 60, "its console says so", every=0.2)
    assert "http://169.254.169.254/2009-04-04/meta-data/instance-id answers 401" in unread(
        site.admin.console(refused)
    )
    assert process.run_in(site.cloud, refused, ["ls", "/root/written"]).returncode != 0
    good = site.boot(key="good")
    assert unread(site.admin.console(good)) == ""
    site.admin.terminate([refused, good])


def states(site: Site, machine: str) -> list[str]:
    """Of all processes of a machine: "S" sleeps, "T" stands still."""
    pid = site.show(machine)["pid"]
    if pid is None:
        return []
    root = Path(f"/proc/{site.cloud.pid}/root/proc")
    space = (root / f"{pid}/ns/pid").readlink()
    found = []
    for one in root.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (one / "ns/pid").readlink() == space:
                found.append((one / "stat").read_text().rpartition(") ")[2][0])
    return found


def test_a_notice_may_leave_no_time(site: Site) -> None:
    machine = site.boot(market="spot")
    site.admin.notice(machine, seconds=0)
    site.ended(machine)
    assert site.show(machine)["why_ended"] == "its spot capacity was taken back"


def test_faults_bite_after_and_for_as_often_as_asked(site: Site) -> None:
    site.cloud.set_faults(Fault(FaultKind.NO_CAPACITY, skip=2, times=1))
    assert len(site.launch(key="a", count=2)) == 2
    with pytest.raises(NoCapacity):
        site.launch(key="b")
    assert len(site.launch(key="c")) == 1


def processes(cloud: process.LocalCloud) -> set[int]:
    """Processes, as the host sees them, that see a mount of this cloud: its own and its machines'."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(cloud.state_dir / "machines") in (folder / "mountinfo").read_text():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def network_namespaces() -> dict[int, str]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = str((folder / "ns/net").readlink())
        except OSError:
            continue
    return found


def test_killing_the_cloud_leaves_nothing(config: LocalCloudConfig, tmp_path: Path) -> None:
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    site = Site(process.start(config, tmp_path / "cloud"))
    site.boot(key="a")
    site.launch(key="b", count=2)
    everywhere, host = network_namespaces(), str(Path("/proc/self/ns/net").readlink())
    nets = {everywhere[pid] for pid in processes(site.cloud) if pid in everywhere} - {host}
    assert len(nets) >= 2, "the cloud's and a machine's"
    os.kill(site.cloud.pid, signal.SIGKILL)
    until(lambda: not site.cloud.alive(), 60, "the cloud ends", every=0.05)
    until(lambda: not processes(site.cloud), 60, "its processes and mounts go", every=0.05)
    assert not nets & set(network_namespaces().values())
    assert {path.name for path in Path("/sys/class/net").iterdir()} == links
    assert list((tmp_path / "cloud/machines").iterdir()) == []
    site.cloud.stop()


@pytest.mark.parametrize("tied", [True, False])
def test_a_cloud_outlives_its_starter_unless_tied(
    tied: bool, config: LocalCloudConfig, tmp_path: Path
) -> None:
    config.save(tmp_path / "wanted.json")
    script = (
        "import os, sys; from pathlib import Path; from updraft.clouds.local import config, process\n"
        f"wanted = config.load(Path('{tmp_path}/wanted.json'))\n"
        f"process.start(wanted, Path('{tmp_path}/cloud'), tie_to_parent={tied})\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    if tied:
        until(
            lambda: process.find(tmp_path / "cloud") is None,
            60,
            "the cloud ends with its starter",
            every=0.05,
        )
        return
    cloud = process.find(tmp_path / "cloud")
    assert cloud is not None
    assert cloud.client().quota()["machines"] == 5
    with pytest.raises(UsageError, match="already runs"):
        process.start(config, tmp_path / "cloud")
    cloud.stop()
    assert process.find(tmp_path / "cloud") is None


def test_two_clouds_do_not_disturb_each_other(site: Site, config: LocalCloudConfig, tmp_path: Path) -> None:
    other = Site(process.start(replace(config, quotas=Quotas(3, 9)), tmp_path / "other", tie_to_parent=True))
    try:
        ours, theirs = site.boot(), other.boot()
        assert site.show(ours)["address"] == other.show(theirs)["address"]
        assert [machine["id"] for machine in site.admin.machines()] == [ours]
    finally:
        other.cloud.stop()
    assert site.run(ours, "echo", "still here") == "still here"


def test_no_secret_is_in_a_command_line(site: Site) -> None:
    site.boot(role="controller")
    secrets = [path.read_text().strip() for path in site.cloud.state_dir.glob("*.token")]
    assert len(secrets) == 2
    lines = b"".join(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    assert not any(secret.encode() in lines for secret in secrets)
    assert {path.stat().st_mode & 0o777 for path in site.cloud.state_dir.glob("*.token")} == {0o600}


def test_an_image_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mmdebstrap").write_text("#!/bin/sh\necho 'E: no mirror' >&2\nexit 1\n")
    (tools / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(image.ImageError, match="no mirror"):
        image.build(tmp_path / "store")
    assert [path.name for path in (tmp_path / "store/images").iterdir() if path.is_dir()] == []
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(image.ImageError, match="apt-get install mmdebstrap"):
        image.build(tmp_path / "store")
