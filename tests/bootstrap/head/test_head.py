"""The user-data of a head of one's own: the first user, the samples, and what may not be in it."""

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.reading import cloud_config, plain, written
from updraft.bootstrap import HeadSpec, Install, head_user_data
from updraft.bootstrap.head.source import WHEEL
from updraft.bootstrap.head.userdata import SAMPLES, head_config
from updraft.bootstrap.machine import shipped
from updraft.errors import BootstrapError, UsageError

WHEEL_AT = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"

HEAD = HeadSpec(
    trust_domain="pool.test",
    uid_domain="pool.test",
    users=("anna", "bob"),
    controller_config="[pool]\n",
    samples=True,
    ssh_keys=("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 anna",),
)


def test_samples_come_from_the_installed_updraft_and_are_the_first_users_alone() -> None:
    data = head_user_data(HEAD)
    assert not [path for path in written(data) if "/home/" in path or "sample" in path]
    for name in SAMPLES:
        assert shipped(f"samples/{name}").strip().splitlines()[-1] not in plain(data).decode()
    [[_, _, step]] = cloud_config(data)["runcmd"]
    assert step.count("head samples") == 1
    assert "/usr/local/bin/updraft head samples anna;" in step
    [[_, _, without]] = cloud_config(head_user_data(replace(HEAD, samples=False)))["runcmd"]
    assert "samples" not in without


@pytest.mark.parametrize(
    ("fails", "done"),
    [("", "get updraft boot"), ("updraft", "get updraft boot"), ("get", "get")],
)
def test_a_head_boots_without_its_samples_and_not_without_updraft(
    tmp_path: Path, fails: str, done: str
) -> None:
    for name in ("get", "updraft", "boot"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/done\n[ {name} != '{fails}' ]\n")
        program.chmod(0o755)
    [step] = cloud_config(head_user_data(replace(HEAD, updraft=str(tmp_path / "updraft"))))["runcmd"]
    for script in ("get-updraft", "boot"):
        step[-1] = step[-1].replace(f"/usr/local/lib/updraft/{script}", f"{tmp_path}/{script[:4].strip('-')}")
    step[-1] = step[-1].replace("/etc/updraft/boot.conf", str(tmp_path / "boot"))
    assert subprocess.run(step, check=False).returncode == (fails == "get")
    assert (tmp_path / "done").read_text().split() == done.split()


def test_the_key_opens_the_first_account_only() -> None:
    users = {one["name"]: one for one in cloud_config(head_user_data(HEAD))["users"] if one != "default"}
    assert users["anna"]["ssh_authorized_keys"] == list(HEAD.ssh_keys)
    assert "ssh_authorized_keys" not in users["bob"]


def test_a_heads_daemons_show_nobody_a_file() -> None:
    for roles in (("central-manager", "submit"), ("central-manager",), ("submit",)):
        lines = head_config(replace(HEAD, roles=roles)).splitlines()
        config = {name: text for name, _, text in (line.partition(" = ") for line in lines)}
        for daemon in (*config["DAEMON_LIST"].split(), *["SHADOW"] * ("submit" in roles)):
            assert "FS" not in config[f"{daemon}.SEC_CLIENT_AUTHENTICATION_METHODS"].replace(",", " ").split()
    unit = written(head_user_data(HEAD))["/etc/systemd/system/updraft.service"]["content"]
    (line,) = [line for line in unit.splitlines() if line.startswith("Environment=")]
    told = dict(word.split("=", 1) for word in shlex.split(line.removeprefix("Environment=")))
    assert told == {"_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS, KERBEROS, SCITOKENS, SSL"}


def test_who_shows_nothing_reads_nothing_unless_that_was_asked_for() -> None:
    config = head_config(HEAD).splitlines()
    assert "SEC_READ_AUTHENTICATION = REQUIRED" in config
    assert "DENY_READ = $(DENY_READ) *@unmapped" in config
    assert "SCHEDD.DENY_READ = $(DENY_READ) worker-*@pool.test" in config
    opened = head_config(replace(HEAD, anonymous_read=True)).splitlines()
    assert not [line for line in opened if line.startswith(("SEC_READ", "DENY_READ"))]
    alone = head_config(replace(HEAD, roles=("submit",))).splitlines()
    assert "SEC_READ_AUTHENTICATION = REQUIRED" not in alone, "it could know no controller"
    for lines in (config, opened, alone):
        assert "DENY_WRITE = $(DENY_WRITE) *@unmapped" in lines


def test_htcondor_is_started_only_where_updraft_is() -> None:
    [[_, _, step]] = cloud_config(head_user_data(HEAD))["runcmd"]
    assert step.endswith(
        "; sh /usr/local/lib/updraft/get-updraft && "
        "{ /usr/local/bin/updraft head samples anna; sh /usr/local/lib/updraft/boot; }"
    )
    bare = head_user_data(replace(HEAD, samples=False))
    [[_, _, step]] = cloud_config(bare)["runcmd"]
    assert step.endswith("; sh /usr/local/lib/updraft/get-updraft && sh /usr/local/lib/updraft/boot")
    without = head_user_data(replace(HEAD, controller_config=None))
    [[_, _, step]] = cloud_config(without)["runcmd"]
    assert step.endswith("; sh /usr/local/lib/updraft/boot")
    assert "/usr/local/lib/updraft/get-updraft" not in written(without)


def test_what_the_image_lacks_is_installed_only_where_that_was_said() -> None:
    assert "/usr/local/lib/updraft/install" not in written(head_user_data(HEAD))
    files = written(head_user_data(replace(HEAD, install=Install(version="25.x"))))
    assert "/usr/local/lib/updraft/install" in files


def test_where_updraft_comes_from_reaches_the_script_as_it_is() -> None:
    spec = replace(HEAD, source=WHEEL_AT, index="https://mirror.test/simple")
    conf = written(head_user_data(spec))["/etc/updraft/boot.conf"]["content"]
    assert f"SOURCE='{WHEEL_AT}'\n" in conf
    assert "INDEX=https://mirror.test/simple\n" in conf


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": "--index-url=x"}, "source"),
        ({"source": "updraft==0.1.0"}, "source"),
        ({"source": f"{WHEEL_AT}; reboot"}, "source"),
        ({"index": "$(id)"}, "index"),
        ({"ssh_keys": ("-----BEGIN OPENSSH PRIVATE KEY-----",)}, "no public key"),
        ({"ssh_keys": ("ssh-ed25519 AAAA\nevil",)}, "no public key"),
        ({"files": {"/etc/updraft/../shadow": "x"}}, "no absolute path"),
        ({"files": {"site.yaml": "x"}}, "no absolute path"),
    ],
)
def test_what_can_not_be_is_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises((BootstrapError, UsageError), match=why) as caught:
        head_user_data(replace(HEAD, **changes))  # type: ignore[arg-type]
    assert "PRIVATE" not in str(caught.value)


def test_no_words_of_a_key_or_token_are_in_it() -> None:
    """Its keys are made on the machine, its credentials come from the machine's role."""
    text = plain(head_user_data(HEAD))
    for word in (b"PRIVATE KEY", b"eyJ", b"AKIA", b"secret_access_key"):
        assert word not in text


@pytest.mark.parametrize("name", ["get-updraft.sh", "samples/test.sh"])
def test_scripts_are_scripts(name: str) -> None:
    for command in (["sh", "-n"], ["shellcheck", "--shell=sh", "--exclude=SC1091"]):
        if shutil.which(command[0]):
            done = subprocess.run(
                [*command, "-"], input=shipped(name), text=True, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
