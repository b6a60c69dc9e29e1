"""`updraft cloud` and the tables of `status`, on a ledger that a controller of three clouds has written."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from tests.rigs.manyclouds import ManyClouds
from updraft import config
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.core.settings import Limits, UserLimits
from updraft.ledger import Ledger
from updraft.ledger.clouds import in_force, overrides

Capture = pytest.CaptureFixture[str]
TOML = """\
[pool]
name = "test"
state_dir = "."

[clouds.campus]
driver = "fake"
limits = { machines = 2, cores = 16 }

[clouds.veneto]
driver = "fake"
priority = 1

[clouds.a-cloud-with-a-long-name]
driver = "fake"
enabled = false

[classes.default]
image = "img"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three clouds, of which one is silent and one has foreign machines; the daemon looked just now."""
    (tmp_path / "updraft.toml").write_text(TOML)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "80")
    settings = config.load(tmp_path / "updraft.toml")
    names = ("campus", "veneto", "a-cloud-with-a-long-name")
    clouds: dict[str, dict[str, Any]] = {name: {} for name in names}
    clouds["veneto"] = {"quota_machines": 9, "quota_cores": 30}
    world = ManyClouds(tmp_path, clouds)
    as_written = settings.policy()
    world.policy = replace(
        world.policy,
        clouds=as_written.clouds,
        cloud_limits=as_written.cloud_limits,
        users={"al*": UserLimits(machines=50)},
    )
    world.clock.now = time.time() - 60
    world.sites["veneto"].add_foreign("large")
    world.restart()
    world.idle = 40
    world.turn(40, each=10)
    world.fail("veneto", 3600)
    world.turn(20, each=10)
    world.close()
    (tmp_path / "ledger.db").rename(settings.pool.ledger)
    return tmp_path


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def shown(capsys: Capture, *arguments: str) -> Any:
    """The document of a verb, checked against its promised form."""
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    document = json.loads(out)
    validate(document, FORMS[" ".join(arguments[:2]) if arguments[0] == "cloud" else arguments[0]])
    return document


def policy_of(site: Path) -> Any:
    settings = config.load(site / "updraft.toml")
    with Ledger(settings.pool.ledger) as ledger:
        return in_force(settings.policy(), overrides(ledger))


def test_the_headline_of_status_names_a_cloud_that_does_not_end_its_machines(
    site: Path, capsys: Capture
) -> None:
    settings = config.load(site / "updraft.toml")
    with Ledger(settings.pool.ledger) as ledger:
        cycle = ledger.last_cycle() or {}
        (campus,) = [one for one in cycle["clouds"] if one["name"] == "campus"]
        reason = {"code": "auth-failed", "text": "UnauthorizedOperation"}
        since = time.time() - 7200
        campus.update(state="not-ending", not_ending={"machines": 2, "since": since, "reason": reason})
        ledger.save_cycle(cycle, time.time())
    shown(capsys, "status")
    _, out, _ = run(capsys, "status")
    (line,) = [one for one in out.splitlines() if one.startswith("clouds: ")]
    assert "campus 2 machines don't end for 2h" in line
    assert " ok" not in line


def test_status_counts_by_cloud_class_and_user(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "status")
    clouds = {one["name"]: one for one in document["clouds"]}
    assert {name: one["state"] for name, one in clouds.items()} == {
        "campus": "ok", "veneto": "silent", "a-cloud-with-a-long-name": "disabled",
    }  # fmt: skip
    campus, veneto = clouds["campus"], clouds["veneto"]
    assert (campus["machines"], campus["cores"]) == (2, 16)
    assert campus["limits"] == {"machines": 2, "cores": 16, "memory": None, "cost_per_hour": None}
    assert campus["memory"] > 0
    assert veneto["cores"] == 22
    assert veneto["foreign"] == {"machines": 1, "cores": 8}
    assert veneto["last_error"]["code"] == "cloud-unavailable"
    (default,) = document["classes"]
    assert (default["machines"], default["waiting"]) == (campus["machines"] + veneto["machines"], 2)
    (alice,) = document["users"]
    assert (alice["machines"], alice["max_machines"], alice["max_cores"]) == (default["machines"], 50, None)
    assert (alice["user"], alice["cores"], alice["waiting"], alice["part"]) == ("alice", 38, 2, 1.0)


@pytest.mark.parametrize("columns", [80, 120])
def test_its_tables_fit_the_terminal(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (
        ("status",),
        ("status", "--clouds", "--classes", "--users"),
        ("cloud", "list"),
        ("cloud", "show", "veneto"),
    ):
        code, out, _ = run(capsys, *words)
        assert code == 0
        assert max(len(line) for line in out.splitlines()) <= columns
        assert "silent" in out


def test_a_disabled_cloud_says_by_whom_until_it_is_reset(site: Path, capsys: Capture) -> None:
    assert run(capsys, "cloud", "disable", "campus", "veneto", "--drain")[0] == 0
    policy = policy_of(site)
    assert all(policy.rule(name).closed and policy.rule(name).leaving for name in ("campus", "veneto"))
    row = shown(capsys, "cloud", "list")["clouds"][0]
    assert row["leaving"]
    assert "@" in row["switched"]["who"]
    assert row["switched"]["who"] in row["disabled"]["text"]
    shown(capsys, "cloud", "reset", "campus")
    assert policy_of(site).rule("campus").closed is None
    assert policy_of(site).rule("veneto").closed is not None


def test_what_the_file_disables_can_be_enabled_at_run_time(site: Path, capsys: Capture) -> None:
    name = "a-cloud-with-a-long-name"
    assert policy_of(site).rule(name).closed is not None
    document = shown(capsys, "cloud", "enable", name)
    assert document["clouds"][0]["disabled"] is None
    assert not document["clouds"][0]["file"]["enabled"]
    assert policy_of(site).rule(name).closed is None


def test_limits_add_up_over_calls_and_can_be_taken_away(site: Path, capsys: Capture) -> None:
    shown(capsys, "cloud", "limit", "campus", "--machines", "7", "--cost-per-hour", "2.5")
    shown(capsys, "cloud", "limit", "campus", "--none", "cores")
    assert policy_of(site).cloud_limits["campus"] == Limits(7, None, 2.5)
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        told = [(event.subject, event.code, event.text) for event in ledger.events(kinds=["cloud"])]
    assert [(subject, code) for subject, code, _ in told] == [("campus", "cloud-limited")] * 2
    assert "machines 7, cost-per-hour 2.5" in told[0][2]
    assert "cores without end" in told[1][2]
    assert run(capsys, "cloud", "show", "campus")[1].count("in the file 2 machines, 16 cores") == 1


def test_a_limit_of_memory_is_set_and_shown_as_a_size(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "cloud", "limit", "campus", "--memory", "1.5TiB")
    (campus,) = document["clouds"]
    assert (campus["limits"]["memory"], campus["file"]["limits"]["memory"]) == (1536 * 1024, None)
    assert policy_of(site).cloud_limits["campus"] == Limits(2, 16, memory=1536 * 1024)
    assert "2 machines, 16 cores, 1536 GiB memory; in the file" in run(capsys, "cloud", "show", "campus")[1]
    shown(capsys, "cloud", "limit", "campus", "--none", "memory")
    assert policy_of(site).cloud_limits["campus"].memory is None
    (site / "updraft.toml").write_text(TOML.replace("cores = 16", 'cores = 16, memory = "64GiB"'))
    shown(capsys, "cloud", "reset", "campus")
    campus = shown(capsys, "cloud", "show", "campus")["cloud"]
    assert campus["file"]["limits"]["memory"] == campus["limits"]["memory"] == 64 * 1024


def test_wide_tables_show_memory_of_what_limit(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(capsys, "cloud", "limit", "campus", "--memory", "64GiB")
    monkeypatch.setenv("COLUMNS", "150")
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        cycle = ledger.last_cycle() or {}
        (row,) = [one for one in cycle["clouds"] if one["name"] == "campus"]
        row["limits"]["memory"] = 64 * 1024
        ledger.save_cycle(cycle, time.time())
    assert "GiB/64 GiB" in run(capsys, "status", "--clouds")[1]
    assert "GiB/64 GiB" in run(capsys, "cloud", "list")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("disable", "camp"), "did you mean campus"),
        (("enable", "zzz"), "there are campus, veneto"),
        (("show", "zzz"), "there are campus, veneto"),
        (("reset", "campus", "zzz"), "there are campus, veneto"),
        (("limit", "campus"), "nothing is set"),
        (("limit", "campus", "--cores", "1", "--none", "cores"), "can't be set and be taken away"),
        (("limit", "campus", "--machines", "-1"), "--machines"),
        (("limit", "campus", "--cost-per-hour", "nan"), "--cost-per-hour"),
        (("limit", "campus", "--memory", "64"), 'write "64GiB"'),
        (("limit", "campus", "--memory", "many"), "write it as in 2GiB"),
        (("limit", "campus", "--memory", "-1GiB"), "--memory"),
    ],
)
def test_a_wrong_call_is_2_and_decides_nothing(
    site: Path, capsys: Capture, words: tuple[str, ...], sentence: str
) -> None:
    code, _, err = run(capsys, "cloud", *words)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert sentence in err
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        assert overrides(ledger) == {}


def test_without_a_ledger_it_is_kept_for_the_first_daemon(site: Path, capsys: Capture) -> None:
    config.load(site / "updraft.toml").pool.ledger.unlink()
    assert [one["look"] for one in shown(capsys, "cloud", "list")["clouds"]] == [None] * 3
    assert run(capsys, "cloud", "disable", "campus")[0] == 0
    assert policy_of(site).rule("campus").closed is not None
