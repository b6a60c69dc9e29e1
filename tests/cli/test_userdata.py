"""`updraft userdata`: what it prints is what a cloud would be sent, and holds no secret unasked."""

import gzip
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.bootstrap.test_machines import SCHEMA
from tests.rigs.reading import cloud_config, written
from updraft.app import wiring
from updraft.bootstrap import EC2_LIMIT
from updraft.bootstrap.head.source import WHEEL
from updraft.bootstrap.head.transforms import groups_config, schedd_config
from updraft.bootstrap.lean import lean
from updraft.bootstrap.worker.userdata import worker_config, worker_user_data
from updraft.cli.main import updraft
from updraft.condor.pool import HTCondorPool
from updraft.config import load
from updraft.core.model import Launch, Offer, Reason, Resources, Variant
from updraft.errors import UpdraftError

IMAGE = ("--source", "image")
WHEEL_AT = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"
TOKEN = "eyJhbGciOiJI.eyJzdWIiOiJ3.c2lnbmF0dXJl"  # noqa: S105
WORKER = """\
[pool]
name = "demo"
collector = "head.demo"
trust_domain = "demo.pool"

[clouds.here]
driver = "fake"

[classes.small]
image = "debian"
flavors = ["!m1.tiny", "m1.small", "m1.*"]
lifetime = "2d"
"""
HEAD = """\
# ours
[pool]
name = "demo"

[clouds.here]
driver = "local"
endpoint = "http://10.77.0.1:8774"
credential_file = "/etc/updraft/cloud"

[classes.small]
image = "debian"
layers = ["site.yaml"]
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """`run(text, *words)`: a call of `updraft userdata` with this configuration."""
    (tmp_path / "site.yaml").write_text("#cloud-config\ntimezone: Europe/Rome\n")
    file = tmp_path / "updraft.toml"

    def call(text: str, *words: str) -> Result:
        file.write_text(text)
        return CliRunner().invoke(updraft, ["--config", str(file), "userdata", *words])

    return call


def test_a_workers_is_readable_and_without_a_token(run: Any) -> None:
    done = run(WORKER, "worker")
    assert done.exit_code == 0, done.output
    files = written(done.stdout_bytes)
    assert files["/etc/condor/tokens.d/updraft"]["content"].strip() == "HERE-GOES-THE-TOKEN"
    assert "--with-token" in done.stderr
    text = files["/etc/condor/config.d/90-updraft.conf"]["content"]
    assert 'UpdraftFlavor = "m1.small"' in text
    assert 'UpdraftImage = "debian"' in text
    jsonschema.Draft4Validator(SCHEMA).validate(cloud_config(done.stdout_bytes))


IMPORTED = """\
[pool]
name = "ecm"

[clouds.here]
driver = "fake"

[classes.default]
image = "debian"
condor = "install"
"""


def test_where_no_htcondor_is_to_be_asked_a_workers_can_be_read_all_the_same(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of an import, on somebody's laptop: no collector, no trust domain and no version are in it."""
    monkeypatch.setenv("PATH", "/nowhere")
    done = run(IMPORTED, "worker")
    assert done.exit_code == 0, done.output
    config = written(done.stdout_bytes)["/etc/condor/config.d/90-updraft.conf"]["content"]
    assert "CONDOR_HOST = the-head.invalid\n" in config
    assert "the-trust-domain.invalid for TRUST_DOMAIN" in done.stderr
    assert "25.x for CONDOR_VERSION" in done.stderr
    jsonschema.Draft4Validator(SCHEMA).validate(cloud_config(done.stdout_bytes))
    refused = run(IMPORTED, "worker", "--flavor", "small", "--with-token")
    assert "condor_config_val cannot be run" in str(refused.exception), "with a token it would be used"


def test_raw_is_what_is_sent_and_paste_is_the_same_as_text(run: Any) -> None:
    raw, paste = run(WORKER, "worker", "--raw"), run(WORKER, "worker", "--paste")
    assert raw.stdout_bytes.startswith(b"\x1f\x8b")
    assert len(raw.stdout_bytes) < EC2_LIMIT
    assert paste.stdout_bytes.isascii()
    assert len(paste.stdout_bytes) < EC2_LIMIT

    def same(data: bytes) -> str:
        return gzip.decompress(data).decode().split("by-hand-")[0]

    import email

    [part] = email.message_from_bytes(paste.stdout_bytes).get_payload()
    assert same(part.get_payload(decode=True)) == same(raw.stdout_bytes)


def test_a_token_is_made_only_when_asked_for_and_said(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, float]] = []

    def mint(_pool: HTCondorPool, key: str, lifetime: float) -> str:
        made.append((key, lifetime))
        return TOKEN

    monkeypatch.setattr(HTCondorPool, "mint_token", mint)
    run(WORKER, "worker")
    assert made == []
    done = run(WORKER, "worker", "small", "--with-token")
    assert done.exit_code == 0, done.output
    files = written(done.stdout_bytes)
    assert files["/etc/condor/tokens.d/updraft"]["content"] == TOKEN + "\n"
    [(key, lifetime)] = made
    assert f'UpdraftLaunch = "{key}"' in files["/etc/condor/config.d/90-updraft.conf"]["content"]
    assert lifetime > 2 * 86400 + 3600, "longer than such a machine lives"
    assert "adopt INSTANCE-ID --class small" in done.stderr
    assert TOKEN not in done.stderr


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        (WORKER, ("worker", "big"), "there is no class big; say one of small"),
        (WORKER + '[classes.other]\nimage = "x"\n', ("worker",), "more than one class"),
        (WORKER, ("worker", "--cloud", "there"), "not for a cloud there"),
        (WORKER.replace('"m1.small", ', ""), ("worker", "--with-token"), "--flavor"),
        (HEAD.replace('"demo"', '"demo"\ncollector = "head.demo"'), ("head",), "pool.collector"),
        (HEAD.replace('"demo"', '"demo"\nstate_dir = "state"'), ("head",), "pool.state_dir"),
        (HEAD.replace('"demo"', '"demo"\nstate_dir = "/home/me"'), ("head",), "pool.state_dir"),
        (HEAD, ("head",), "a wheel known by its hash"),
        (HEAD, ("head", "--source", "updraft-htcondor==0.1.0"), "no address of a wheel"),
        (HEAD, ("head", "--source", "image", "--index", "http://mirror.test/simple"), "package index"),
        (HEAD, ("head", *IMAGE, "--user", "a b"), "no name for a user"),
    ],
)
def test_a_wrong_call_says_what_to_do(run: Any, text: str, words: tuple[str, ...], why: str) -> None:
    done = run(text, *words)
    assert isinstance(done.exception, UpdraftError)
    assert why in str(done.exception)
    assert done.stdout == ""


def test_a_heads_has_a_pool_its_controller_and_a_first_user(run: Any, tmp_path: Path) -> None:
    key = tmp_path / "id.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@home\n")
    done = run(HEAD, "head", "--source", WHEEL_AT, "--user", "anna", "--ssh-key", str(key))
    assert done.exit_code == 0, done.output
    config, files = cloud_config(done.stdout_bytes), written(done.stdout_bytes)
    jsonschema.Draft4Validator(SCHEMA).validate(config)
    assert files["/etc/updraft/updraft.toml"]["content"] == HEAD
    assert files["/etc/updraft/site.yaml"]["content"].startswith("#cloud-config\ntimezone")
    unit = files["/etc/systemd/system/updraft.service"]["content"].splitlines()
    own = [line for line in unit if not line.startswith("Environment=")]
    assert own == lean("updraft.service").splitlines()
    [anna] = [one for one in config["users"] if one != "default"]
    assert anna["name"] == "anna"
    assert anna["ssh_authorized_keys"] == ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@home"]
    assert "updraft head samples anna;" in config["runcmd"][-1][-1]
    assert not [path for path in files if path.startswith("/home/")], "they come from the installed updraft"
    assert f"SOURCE='{WHEEL_AT}'\n" in files["/etc/updraft/boot.conf"]["content"]
    assert "clouds.here.credential_file: /etc/updraft/cloud is not in the user-data" in done.stderr


OWN = """
reach = "ccb"
[[classes.small.cvmfs]]
name = "software.example.org"
server = "http://h/cvmfs/@fqrn@"
key = "soft.pub"
"""


def test_a_head_takes_the_keys_of_repositories_along_and_has_a_broker_where_one_is_needed(
    run: Any, tmp_path: Path
) -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n"
    (tmp_path / "soft.pub").write_text(pem)
    done = run(HEAD + OWN, "head", *IMAGE)
    assert done.exit_code == 0, done.output
    files = written(done.stdout_bytes)
    assert files["/etc/updraft/soft.pub"]["content"] == pem
    assert "BROKER_ARGS = -sock broker" in files["/etc/condor/config.d/90-updraft.conf"]["content"]
    elsewhere = run(HEAD + OWN.replace('"ccb"', '"ccb"\nccb = "broker.test"'), "head", *IMAGE)
    assert "BROKER" not in written(elsewhere.stdout_bytes)["/etc/condor/config.d/90-updraft.conf"]["content"]


def test_a_worker_behind_a_broker_has_two_tokens(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = WORKER + 'reach = "ccb"\n'
    broker = "/etc/condor/tokens.d/updraft-broker"
    shown = written(run(text, "worker").stdout_bytes)
    assert shown[broker]["content"] == "HERE-GOES-THE-TOKEN\n"
    monkeypatch.setattr(HTCondorPool, "mint_token", lambda *_: TOKEN)
    monkeypatch.setattr(HTCondorPool, "mint_broker_token", lambda *_: TOKEN + "2")
    made = written(run(text, "worker", "--flavor", "m1.small", "--with-token").stdout_bytes)
    assert made[broker]["content"] == TOKEN + "2\n"
    assert made["/etc/condor/tokens.d/updraft"]["content"] == TOKEN + "\n"


def test_an_image_that_has_updraft_is_relied_on_where_that_was_said(run: Any) -> None:
    done = run(HEAD, "head", *IMAGE)
    assert done.exit_code == 0, done.output
    assert "SOURCE=''\n" in written(done.stdout_bytes)["/etc/updraft/boot.conf"]["content"]


def test_a_heads_fits_into_what_clouds_take(run: Any) -> None:
    for form in ("--raw", "--paste"):
        size = len(run(HEAD, "head", "--source", WHEEL_AT, form).stdout_bytes)
        assert size < EC2_LIMIT - 512, "room for a site's own configuration and layers"
    assert "--paste" in run(HEAD, "head", *IMAGE).stderr


def test_the_asker_of_a_pool_elsewhere_is_not_needed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a worker is told is in the file where that names the pool: no HTCondor has to be here."""

    def nobody(_settings: object) -> Any:
        def ask(name: str) -> str:
            raise AssertionError(f"asked for {name}")

        return ask

    monkeypatch.setattr(wiring, "asker", nobody)
    assert run(WORKER, "worker").exit_code == 0


def test_a_schedd_is_told_as_a_head_is(run: Any) -> None:
    done = run("", "schedd")
    assert done.exit_code == 0
    assert done.stdout == schedd_config()
    assert run("", "schedd", "--groups").stdout == groups_config()


def test_no_machine_is_made_by_hand_where_each_is_one_users(run: Any) -> None:
    done = run(WORKER + "owner_only = true\n", "worker")
    assert isinstance(done.exception, UpdraftError)
    assert "owner_only" in str(done.exception)


def test_a_variant_has_the_layers_that_were_asked_for_behind_those_of_its_class(tmp_path: Path) -> None:
    file = tmp_path / "updraft.toml"
    offered = 'layers = ["#!/bin/sh\\necho own"]\n[classes.small.offered_layers]\n'
    file.write_text(WORKER + offered + "".join(f'{n} = "#!/bin/sh\\necho {n}"\n' for n in ("one", "two")))
    settings = load(file)
    made = Variant(network="n1", user="alice", layers="two")
    offer = Offer("small", "here", "", "m", "on-demand", "debian", "g", Resources(), "", variant=made)
    launch = Launch("k", offer, 1, Reason("demand", "a job waits"))
    spec = wiring.worker_spec(settings, lambda _name: "25.14.1", launch, TOKEN)
    text = gzip.decompress(worker_user_data(spec)).decode()
    assert text.index("echo own") < text.index("echo two")
    assert "echo one" not in text
    config = worker_config(spec)
    assert f'UpdraftVariant = "{made}"' in config
    assert 'UpdraftUser = "alice"' in config
    assert 'UpdraftNetwork = "n1"' in config
