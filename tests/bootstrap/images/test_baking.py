"""What an image must not carry is taken out of it, and what is left is found and named, never shown."""

import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.rigs.reading import worker, written
from updraft.bootstrap import worker_user_data
from updraft.bootstrap.images import unfit
from updraft.bootstrap.images.baking import ATTR_TRIAL, bake_settings, baking_layer, verdict
from updraft.bootstrap.machine import shipped

TOLD = json.loads(bake_settings())
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "A" * 60 + "\n"
ENCRYPTED = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n" + "A" * 64 + "\n"
OPENSTACK = "credentials of OpenStack"
TOKEN = ".".join(("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiJjb25kb3IifQ", "x" * 43))


@pytest.fixture(scope="module")
def bake(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    file = tmp_path_factory.mktemp("bake") / "bake.py"
    file.write_text(shipped("bake.py"))
    spec = importlib.util.spec_from_file_location("bake", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def write(root: Path, path: str, text: str = "x") -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


CLEANED = (
    "/etc/condor/tokens.d/updraft",
    "/etc/condor/config.d/90-updraft.conf",
    "/etc/condor/config.d/zz-updraft-start.conf",
    "/etc/updraft/bake.json",
    "/etc/ssh/ssh_host_rsa_key",
    "/var/lib/cloud/instances/i-1/user-data.txt",
    "/var/lib/condor/execute/dir_1/secret-of-a-job",
    "/var/lib/updraft/guard-state.json",
    "/root/.ssh/authorized_keys",
    "/home/ada/.bash_history",
    "/var/log/condor/core.STARTD",
    "/var/log/auth.log.1",
    "/var/log/syslog.2.gz",
    "/var/log/audit/audit.log",
    "/var/lib/systemd/coredump/core.condor_startd.0.1a.77.1.zst",
    "/var/crash/_usr_sbin_condor_startd.0.crash",
)


@pytest.mark.parametrize("path", CLEANED)
def test_what_is_one_machines_is_taken_out(bake: ModuleType, tmp_path: Path, path: str) -> None:
    file = write(tmp_path, path)
    kept = [write(tmp_path, "/etc/condor/config.d/00-security"), write(tmp_path, "/home/ada/work")]
    bake.clean(tmp_path, TOLD)
    assert not file.exists()
    assert all(one.exists() for one in kept)
    assert bake.scan(tmp_path, TOLD) == []


def test_no_image_has_a_part_of_the_agent_or_a_service_that_goes_on_while_it_is_cleaned(
    bake: ModuleType, tmp_path: Path
) -> None:
    """So it is all the same which updraft an image comes from: what a machine runs is in its user-data."""
    most = written(worker_user_data(worker(market="spot", lease=(1.8e9, 1.9e9))))
    ours = [path for path in most if re.search("agent|service", path) and "/condor.service.d/" not in path]
    assert len(ours) >= 8
    wants = "/etc/systemd/system/multi-user.target.wants"
    units = [Path(path).name for path in ours if path.endswith(".service")]
    of_old = ["/etc/updraft/guard.json", "/usr/local/lib/updraft/guard", f"{wants}/updraft-guard.service"]
    links = [f"{wants}/{unit}" for unit in units]
    per_boot = "/var/lib/cloud/scripts/per-boot/updraft"
    files = [write(tmp_path, path) for path in [*ours, *links, *of_old, per_boot]]
    bake.clean(tmp_path, TOLD)
    assert not [file for file in files if file.exists()]
    assert {unit for unit in units if ["systemctl", "stop", unit] not in TOLD["stop"]} == set()


@pytest.mark.parametrize("name", ["agent", "guard", "lease", "notice"])
def test_no_agent_of_a_copied_disk_goes_on_by_what_its_machine_was_told(tmp_path: Path, name: str) -> None:
    """Also one of an updraft that had three services for it."""
    content = baking_layer("image-1").content
    assert not isinstance(content, str)
    [[shell, option, script]] = content["bootcmd"]
    systemctl = write(tmp_path, "/bin/systemctl", f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexit 1\n')
    systemctl.chmod(0o755)
    state = write(tmp_path, "/var/lib/updraft/guard-state.json")
    script = script.replace("/var/lib", f"{tmp_path}/var/lib").replace("/etc/", f"{tmp_path}/etc/")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    subprocess.run([shell, option, script], check=True, env={"PATH": path})
    assert f"disable --now updraft-{name}.service" in (tmp_path / "calls").read_text().splitlines()
    assert not state.exists()
    assert ["systemctl", "stop", f"updraft-{name}.service"] in TOLD["stop"]


def test_the_machines_id_stays_as_an_empty_file(bake: ModuleType, tmp_path: Path) -> None:
    file = write(tmp_path, "/etc/machine-id", "0123456789abcdef\n")
    assert bake.scan(tmp_path, TOLD) == [("/etc/machine-id", "the id of this machine")]
    bake.clean(tmp_path, TOLD)
    assert file.read_text() == ""


@pytest.mark.parametrize("name", ["syslog", "messages", "secure", "cron", "auth.log", "wtmp", "faillog"])
def test_logs_of_the_machine_stay_as_empty_files(bake: ModuleType, tmp_path: Path, name: str) -> None:
    """Their owners and rights are what the programs that write them expect."""
    file = write(tmp_path, f"/var/log/{name}")
    bake.clean(tmp_path, TOLD)
    assert file.read_text() == ""


def test_a_link_is_removed_and_what_it_leads_to_stays(bake: ModuleType, tmp_path: Path) -> None:
    outside = write(tmp_path, "/elsewhere/precious")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/link").symlink_to(outside.parent)
    bake.clean(tmp_path, TOLD)
    assert outside.exists()
    assert not (tmp_path / "tmp/link").is_symlink()


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("/root/.netrc", "machine x password y", "other credentials"),
        ("/root/.ssh/id_ed25519", "x", "a key of a person"),
        ("/home/ada/.aws/credentials", "x", "credentials of a cloud"),
        ("/etc/openstack/clouds.yaml", "x", "credentials of a cloud"),
        ("/opt/service/tls.key", KEY, "a private key"),
        ("/srv/notes", f"use {TOKEN} for it", "a token"),
        ("/etc/backup.conf", f"aws_secret_access_key = {'Ab1/' * 10}", "an AWS key"),
        ("/etc/cron.d/push", "OS_PASSWORD='hush-hush' push", "credentials of OpenStack"),
        # keys
        ("/home/ada/.gnupg/private-keys-v1.d/1.key", "x", "a key of a person"),
        ("/var/lib/condor/.ssh/id_rsa", "x", "a key of a person"),
        ("/home/ada/.globus/userkey.pem", "x", "a key of a person"),
        ("/etc/krb5.keytab", "x", "a key of this machine"),
        ("/etc/grid-security/hostkey.pem", "x", "a key of this machine"),
        ("/etc/service-account.json", KEY.replace("\n", "\\n"), "a private key"),
        ("/etc/tls/old.pem", ENCRYPTED, "a private key"),
        ("/srv/mine.ppk", "PuTTY-User-Key-File-3: ssh-ed25519", "a private key"),
        # tokens
        ("/usr/local/bin/deploy", f"curl -H 'Authorization: token ghp_{'a1' * 18}'", "a token"),
        ("/var/www/.env", f"TOKEN=glpat-{'x' * 20}", "a token"),
        # credentials of clouds
        ("/root/.aws/cli/cache/1.json", "{}", "credentials of a cloud"),
        ("/root/.config/gcloud/credentials.db", "x", "credentials of a cloud"),
        ("/home/ada/.azure/msal_token_cache.json", "x", "credentials of a cloud"),
        ("/home/ada/demo-openrc.sh", "x", "credentials of a cloud"),
        ("/home/ada/.config/rclone/rclone.conf", "x", "credentials of a cloud"),
        ("/etc/environment", f"AWS_SECRET_ACCESS_KEY={'Ab1/' * 10}", "an AWS key"),
        ("/opt/role.json", json.dumps({"SecretAccessKey": "Ab1/" * 10}), "an AWS key"),
        ("/etc/ec2rc", f"export EC2_SECRET_KEY={'0123456789' * 4}", "an AWS key"),
        ("/opt/my-clouds.yaml", "auth:\n  auth_url: https://x/v3\n  password: hush-hush", OPENSTACK),
        ("/opt/clouds.json", '{"password": "hush-hush", "auth_url": "https://x"}', OPENSTACK),
        ("/etc/azure.ini", f"client_secret = {'aB3~' * 10}", "credentials of another cloud"),
        ("/opt/adc.json", '{"refresh_token": "1//0abcdefghijklmnopqrst"}', "credentials of another cloud"),
        # other credentials
        ("/home/ada/.config/gh/hosts.yml", "x", "other credentials"),
        ("/root/.vault-token", "x", "other credentials"),
        # what people typed
        ("/root/.mysql_history", "x", "what a person typed"),
        ("/home/ada/.history", "x", "what a person typed"),
        ("/home/ada/.local/share/fish/fish_history", "x", "what a person typed"),
        ("/home/ada/.ipython/profile_default/history.sqlite", "x", "what a person typed"),
    ],
)
def test_what_stays_and_must_not_is_named(
    bake: ModuleType, tmp_path: Path, path: str, text: str, what: str
) -> None:
    write(tmp_path, path, text)
    bake.clean(tmp_path, TOLD)
    assert bake.scan(tmp_path, TOLD) == [(path, what)]


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PUBLIC KEY-----\n" + "A" * 60,
        "OS_PASSWORD=$1",
        "application_credential_secret: Optional[str] = None",
        "see -----BEGIN PRIVATE KEY----- lines",
        "auth_url: https://x\npassword: $OS_PASSWORD",
        "auth_url: https://x\npassword: <yours>",
        "client_secret = None",
        "aws_secret_access_key = YOUR_KEY",
        "ghp_short",
    ],
)
def test_what_only_speaks_of_secrets_is_let_be(bake: ModuleType, tmp_path: Path, text: str) -> None:
    write(tmp_path, "/etc/some.conf", text)
    assert bake.scan(tmp_path, TOLD) == []


def test_libraries_of_updraft_itself_are_passed_over(bake: ModuleType, tmp_path: Path) -> None:
    write(tmp_path, "/opt/updraft/lib/tests/data", KEY)
    write(tmp_path, "/opt/other/data", KEY)
    assert bake.scan(tmp_path, TOLD) == [("/opt/other/data", "a private key")]


def test_the_last_word_counts_among_what_is_on_the_console() -> None:
    assert verdict("booting\nupdraft-boot: ok\n") == (False, "")
    assert verdict("updraft-boot: ok\nupdraft-image: READY\n") == (True, "")
    assert verdict("x\nupdraft-boot: FAILED: no package\n") == (False, "updraft-boot: FAILED: no package")
    assert verdict("updraft-image: FAILED: /root/.netrc (other credentials)\n")[1].endswith("credentials)")


def test_only_the_trial_job_may_start_there() -> None:
    content = baking_layer("image-1").content
    assert not isinstance(content, str)
    files = {one["path"]: one["content"] for one in content["write_files"]}
    assert f'TARGET.{ATTR_TRIAL} =?= "image-1"' in files["/etc/condor/config.d/95-updraft-image.conf"]


def test_every_pattern_is_absolute_and_every_text_an_expression() -> None:
    patterns = [
        *unfit.REMOVED,
        *unfit.EMPTIED,
        *unfit.PLACES,
        *(p for some in unfit.FILES.values() for p in some),
    ]
    assert all(one.startswith("/") and ".." not in one for one in patterns)
    assert "/" not in patterns


def test_every_kind_of_finding_has_been_planted() -> None:
    """Of a kind that nothing plants nobody would notice that it isn't found."""
    text = Path(__file__).read_text()
    kinds = {*unfit.FILES, *unfit.TEXTS} - set(CLEANED_KINDS)
    assert not [kind for kind in kinds if f'"{kind}"' not in text]


# What cleaning takes away every time: the tests above show that it does.
CLEANED_KINDS = (
    "a key that lets somebody in",
    "a token or key of HTCondor",
    "user-data of a launch",
)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/root/.ssh/authorized_keys", CLEANED_KINDS[0]),
        ("/etc/condor/passwords.d/POOL", CLEANED_KINDS[1]),
        ("/home/ada/.condor/tokens.d/mine", CLEANED_KINDS[1]),
        ("/var/lib/cloud/instances/i-1/user-data.txt", CLEANED_KINDS[2]),
        ("/home/ada/.bash_history", "what a person typed"),
    ],
)
def test_what_cleaning_could_not_take_away_is_found(
    bake: ModuleType, tmp_path: Path, path: str, what: str
) -> None:
    write(tmp_path, path)
    assert (path, what) in bake.scan(tmp_path, TOLD)
    bake.clean(tmp_path, TOLD)
    assert bake.scan(tmp_path, TOLD) == []


def test_a_seed_images_machine_waits_for_no_startd() -> None:
    assert json.loads(bake_settings(startd=False))["gone_after"] is None
    assert TOLD["gone_after"] > 0
