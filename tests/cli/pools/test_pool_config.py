"""`updraft pool config`, and what of a pool's size reaches the machines that updraft makes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.rigs.forms import validate
from tests.rigs.reading import cloud_config, worker, written
from updraft.app import wiring
from updraft.app.poolsize import CHILDREN, children, heard_every, largest
from updraft.bootstrap import HeadSpec, head_user_data, quick
from updraft.bootstrap.head.transforms import GROUPS_SETTING
from updraft.bootstrap.head.userdata import head_config, paced
from updraft.bootstrap.worker.userdata import worker_user_data
from updraft.cli.main import updraft
from updraft.cli.schemas import FORMS
from updraft.config import load
from updraft.config.model import Settings
from updraft.core.model import Launch, Offer, Reason, Resources
from updraft.errors import PoolError

HEAD = HeadSpec(trust_domain="pool.test", uid_domain="pool.test")
FILE = """\
[pool]
name = "demo"
{pool}
[limits]
{limits}
[clouds.here]
driver = "fake"
limits = {{ {cloud} }}
[classes.small]
image = "debian"
{small}
"""

Read = Callable[..., Settings]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def made(**parts: str) -> Settings:
        file = tmp_path / "updraft.toml"
        file.write_text(FILE.format_map({"pool": "", "limits": "", "cloud": "", "small": ""} | parts))
        return load(file)

    return made


def call(*words: str) -> Result:
    return CliRunner().invoke(updraft, ["pool", "config", *words])


def settings_of(text: str) -> dict[str, str]:
    pairs = (line.partition(" = ") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in pairs if value}


@pytest.mark.parametrize("role", ["head", "submit", "worker"])
def test_json_is_of_its_form_and_says_what_the_file_says(role: str) -> None:
    words = ("--machines", "3000", "--role", role, "--reach", "ccb", "--schedds", "1")
    document = json.loads(call(*words, "--json").stdout)
    validate(document, FORMS["pool config"])
    said = {one["name"]: one["value"] for one in document["settings"]}
    assert said == settings_of(call(*words).stdout)
    assert said


def test_a_worker_is_told_its_child() -> None:
    words = ("--machines", "3000", "--role", "worker")
    without, told = call(*words).stdout, call(*words, "--machine", "i-1").stdout
    assert "COLLECTOR_HOST is missing" in without
    assert settings_of(told)["COLLECTOR_HOST"].startswith("$(CONDOR_HOST)?sock=collector")
    assert "is missing" not in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--machines", "9", "--role", "head", "--htcondor", "9.0"), "older"),
        (("--machines", "9", "--role", "head", "--htcondor", "stable"), "no version"),
        (("--machines", "9", "--role", "head", "--job-lease", "20"), "no unit"),
        (("--machines", "9", "--role", "head", "--machine", "i-1"), "for a worker"),
        (("--machines", "9", "--role", "head", "--job-lease", "0s"), "job lease"),
        (("--machines", "0", "--role", "head"), "0"),
    ],
)
def test_what_can_not_be_is_one_sentence(words: tuple[str, ...], why: str) -> None:
    done = call(*words)
    assert done.exit_code
    assert why in str(done.exception) + done.output


def test_the_number_is_that_of_the_file_unless_it_is_said(read: Read, tmp_path: Path) -> None:
    read(limits="machines = 700")
    base = ["--config", str(tmp_path / "updraft.toml"), "pool", "config", "--role", "head", "--json"]
    assert json.loads(CliRunner().invoke(updraft, base).stdout)["machines"] == 700
    assert json.loads(CliRunner().invoke(updraft, [*base, "--machines", "30"]).stdout)["machines"] == 30
    read()
    assert "--machines" in str(CliRunner().invoke(updraft, base).exception)


# -------------------------------------------------------------------------------- how large it may be


@pytest.mark.parametrize(
    ("parts", "most"),
    [
        ({}, None),
        ({"limits": "machines = 40"}, 40),
        ({"limits": "machines = 40", "small": "max = 30"}, 30),
        ({"cloud": "machines = 20", "small": "max = 30"}, 20),
        ({"limits": "cores = 100"}, 13),
        ({"limits": "cores = 100", "small": "max = 30"}, 30),
    ],
)
def test_the_least_ceiling_counts(read: Read, parts: dict[str, str], most: int | None) -> None:
    assert largest(read(**parts)) == most


def refused(name: str) -> str:
    raise PoolError(f"{name} isn't set")


def test_only_children_that_the_head_says_it_has_are_reported_to(read: Read) -> None:
    here, elsewhere = read(limits="machines = 9000"), read(pool='collector = "head.test"')
    assert children(here, {CHILDREN: "9"}.__getitem__) == 9
    assert children(here, refused) == 0
    assert children(here, lambda _name: "many") == 0
    assert children(elsewhere, {CHILDREN: "9"}.__getitem__) == 0


def test_a_launched_worker_has_the_interval_and_the_children_of_its_pool(read: Read) -> None:
    from updraft.app.wiring import worker_spec

    told = {CHILDREN: "9", "COLLECTOR_HOST": "10.0.0.2", "TRUST_DOMAIN": "a.test", "UID_DOMAIN": "a.test"}
    offer = Offer("small", "here", "z", "m", "on-demand", "debian", "g", Resources(), "")
    launch = Launch("l1", offer, 1, Reason("x", "x"))

    def ask(name: str) -> str:
        return told.get(name) or refused(name)

    spec = worker_spec(read(limits="machines = 2000"), ask, launch, "token")
    assert (spec.update_interval, spec.children) == (180, 9)
    small = worker_spec(read(), ask, launch, "token")
    assert small.update_interval == 5


@pytest.mark.parametrize(
    ("limits", "pool", "told", "seconds"),
    [
        ("", "", {}, 5),
        ("machines = 2000", "", {}, 180),
        ("machines = 2000", "", {CHILDREN: "2"}, 300),
        ("machines = 20", 'collector = "head.test"', {}, 300),
    ],
)
def test_how_often_a_worker_is_heard_of(
    read: Read, limits: str, pool: str, told: dict[str, str], seconds: float
) -> None:
    """An ad that is much older than that is doubted."""

    def ask(name: str) -> str:
        return told.get(name) or refused(name)

    assert heard_every(read(limits=limits, pool=pool), ask) == seconds


@pytest.mark.parametrize(
    ("pool", "said", "believed"),
    [
        ("", "True", True),
        ("", "", False),
        ("trust_groups = false", "True", False),
        ("trust_groups = true", "", True),
        ('collector = "head.test"', "True", False),
    ],
)
def test_groups_are_believed_as_the_file_says_and_else_as_the_head_was_set_up(
    read: Read, monkeypatch: pytest.MonkeyPatch, pool: str, said: str, believed: bool
) -> None:
    def ask(name: str) -> str:
        return (said if name == GROUPS_SETTING else "") or refused(name)

    monkeypatch.setattr(wiring, "asker", lambda _settings: ask)
    assert wiring.groups_trusted(read(pool=pool)) is believed


# -------------------------------------------------------------------------------- of heads and workers


@pytest.mark.parametrize("machines", [None, 1, 100])
def test_a_small_head_is_as_ever(machines: int | None) -> None:
    ever = quick(HEAD)
    sized = paced(HeadSpec(trust_domain="pool.test", uid_domain="pool.test", machines=machines))
    assert head_config(sized) == head_config(ever)
    assert head_user_data(sized) == head_user_data(ever)


def test_a_large_head_has_its_tree_its_limits_and_says_so() -> None:
    spec = HeadSpec(trust_domain="pool.test", uid_domain="pool.test", machines=5000, broker=True)
    text = head_config(paced(spec))
    names = [line.partition(" = ")[0] for line in text.splitlines()]
    assert len(names) == len(set(names))
    config = settings_of(text)
    assert config["DAEMON_LIST"].split() == [
        *("MASTER", "COLLECTOR", "NEGOTIATOR", "SCHEDD", "BROKER"),
        *(f"COLLECTOR{number}" for number in range(1, 6)),
    ]
    assert config[CHILDREN] == "5"
    assert config["NEGOTIATOR_CONSIDER_PREEMPTION"] == "false"
    assert "MAX_JOBS_RUNNING" not in config
    broker = int(config["BROKER.COLLECTOR_MAX_FILE_DESCRIPTORS"])
    assert int(config["SHARED_PORT_MAX_FILE_DESCRIPTORS"]) >= broker >= 5000 * 10
    assert (config["NEGOTIATOR_INTERVAL"], config["SCHEDD_INTERVAL"]) == ("60", "250")
    assert config["JOB_DEFAULT_LEASE_DURATION"] == "2400"


@pytest.mark.parametrize(("words", "children"), [((), "3"), (("--machines", "50"), None)])
def test_a_head_is_made_for_what_the_file_allows(
    read: Read, tmp_path: Path, words: tuple[str, ...], children: str | None
) -> None:
    read(limits="machines = 3000")
    base = ["--config", str(tmp_path / "updraft.toml"), "userdata", "head", "--source", "image", *words]
    done = CliRunner().invoke(updraft, base)
    assert done.exit_code == 0, done.output
    text = written(done.stdout_bytes)["/etc/condor/config.d/90-updraft.conf"]["content"]
    assert settings_of(text).get(CHILDREN) == children


def test_a_large_head_raises_what_its_machine_allows() -> None:
    files = written(head_user_data(HeadSpec("pool.test", "pool.test", machines=20_000, broker=True)))
    unit = files["/etc/systemd/system/condor.service.d/90-pool-size.conf"]["content"]
    limit = int(unit.partition("LimitNOFILE=")[2].split()[0])
    config = settings_of(files["/etc/condor/config.d/90-updraft.conf"]["content"])
    assert limit >= int(config["BROKER.COLLECTOR_MAX_FILE_DESCRIPTORS"])
    assert "ExecStartPre=-/bin/sh /usr/local/lib/updraft/raise-kernel\n" in unit
    asked = dict(line.split() for line in files["/etc/updraft/kernel.conf"]["content"].splitlines())
    assert int(asked["net.core.somaxconn"]) == int(config["SOCKET_LISTEN_BACKLOG"])


def test_workers_of_a_tree_choose_at_every_boot() -> None:
    [[_, _, plain]] = cloud_config(worker_user_data(worker()))["bootcmd"]
    [[_, _, choosing]] = cloud_config(worker_user_data(worker(children=4)))["bootcmd"]
    assert "COLLECTOR_HOST" not in plain
    assert choosing.startswith(plain)
    assert "\nchildren=4\n" in choosing
