"""`updraft simulate` as a person and a program meet it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.cli import main
from updraft.cli.schemas import FORMS

CONFIG = """\
[pool]
name = "demo"
[clouds.here]
driver = "fake"
[classes.default]
image = "worker"
idle_limit = "{idle}"
"""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UPDRAFT_CONFIG", raising=False)
    monkeypatch.setattr("updraft.config.USUAL_PLACES", ("updraft.toml",))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Twelve jobs of two minutes in twelve minutes, and one that never ran."""
    lines = [f"{n} {n * 60} -1 120 1 -1 -1 1 -1 -1 1 {n % 3} 1 1 -1 -1 -1 -1\n" for n in range(12)]
    (tmp_path / "t.swf").write_text(
        "; Computer: a cluster\n" + "".join(lines) + lines[0].replace(" 120 ", " -1 ")
    )
    return "t.swf"


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main.call(["simulate", *arguments, "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    validate(found, FORMS["simulate"])
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence of a call that is wrong."""
    code = main.call(["simulate", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("updraft: ")
    assert err.count("\n") == 1
    return err


def test_without_a_configuration_the_example_is_simulated(
    capsys: pytest.CaptureFixture[str], trace: str
) -> None:
    found = simulated(capsys, trace)
    assert found["workload"]["jobs"] == 12
    assert found["workload"]["left_out"] == {"have no run time": 1}
    (one,) = found["settings"]
    assert (one["name"], one["rival"]) == ("example", False)
    figures = one["metrics"]
    assert figures["completed"] == 12
    assert figures["killed"] == 0
    assert figures["machines"] > 0
    assert figures["cost"] > 0
    assert figures["wait_mean"] > 0
    assert found["front"] == ["example"]


def test_looks_are_as_frequent_as_the_daemon_s_own_and_a_rival_s_as_its_own(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path
) -> None:
    def cycles(*more: str) -> list[float]:
        found = simulated(capsys, trace, "--rivals", "google", *more)
        return [found["conditions"]["cycle"], *(one["cycle"] for one in found["settings"])]

    assert cycles() == [2.0, 2.0, 60.0]
    assert cycles("--cycle", "90s") == [90.0, 90.0, 60.0]
    (tmp_path / "slow.toml").write_text(CONFIG.format(idle="5m") + '[timings]\ncycle = "30s"\n')
    assert cycles("--config", "slow.toml") == [30.0, 30.0, 60.0]


def test_the_same_seed_gives_the_same_result(capsys: pytest.CaptureFixture[str]) -> None:
    source = "gen:bursts?jobs=30&days=0.05"
    first, again = simulated(capsys, source, "--seed", "3"), simulated(capsys, source, "--seed", "3")
    assert first == again
    assert simulated(capsys, source, "--seed", "4") != first


def test_people_get_a_table(capsys: pytest.CaptureFixture[str], trace: str) -> None:
    assert main.call(["simulate", trace]) == 0
    out = capsys.readouterr().out
    assert "t.swf: 12 jobs, 0 core-hours, arriving in 11m" in out
    assert "left out: 1 jobs that have no run time" in out
    for word in ("mean wait", "cost ÷ least possible", "killed", "example"):
        assert word in out


def test_sweeps_and_rivals_are_beside_each_other(capsys: pytest.CaptureFixture[str], trace: str) -> None:
    found = simulated(capsys, trace, "--sweep", "idle_limit=1m,30m", "--rivals", "google,static,elastiq")
    names = [one["name"] for one in found["settings"]]
    elastiqs = ["elastiq-default", "elastiq-sample", "elastiq-ecm"]
    assert names == ["idle_limit=1m", "idle_limit=30m", "google", "static", *elastiqs]
    assert [one["rival"] for one in found["settings"]] == [False, False, *[True] * 5]
    short, long, *_ = found["settings"]
    assert short["metrics"]["cost"] < long["metrics"]["cost"]
    assert set(found["front"]) <= set(names)
    assert main.call(["simulate", trace, "--sweep", "idle_limit=1m,2m,3m,30m"]) == 0
    assert "no other costs less and waits less: " in capsys.readouterr().out


def test_configurations_are_compared(capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path) -> None:
    for name, idle in (("a", "1m"), ("b", "30m")):
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(idle=idle))
    found = simulated(capsys, trace, "--compare", "a.toml", "b.toml")
    assert [one["name"] for one in found["settings"]] == ["a", "b"]
    assert found["settings"][0]["metrics"]["cost"] < found["settings"][1]["metrics"]["cost"]
    both = simulated(capsys, trace, "--compare", "a.toml", "b.toml", "--sweep", "limits.machines=1,2")
    assert both["settings"][0]["name"] == "a: limits.machines=1"
    assert len(both["settings"]) == 4


def test_the_configuration_that_is_here_is_taken(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path
) -> None:
    (tmp_path / "updraft.toml").write_text(CONFIG.format(idle="5m"))
    assert simulated(capsys, trace)["settings"][0]["name"] == "updraft"
    assert simulated(capsys, trace, "--example")["settings"][0]["name"] == "example"
    (tmp_path / "other.toml").write_text(CONFIG.format(idle="5m"))
    assert simulated(capsys, trace, "--config", "other.toml")["settings"][0]["name"] == "other"


def test_clouds_that_boot_at_once_can_be_simulated(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path
) -> None:
    boots = 'driver = "fake"\nboots = [{ start = "0s", join = "0s" }]'
    (tmp_path / "c.toml").write_text(CONFIG.format(idle="1m").replace('driver = "fake"', boots))
    found = simulated(capsys, trace, "--config", "c.toml")
    assert found["settings"][0]["metrics"]["completed"] == 12


@pytest.mark.slow
def test_machines_that_boot_too_slowly_are_named(capsys: pytest.CaptureFixture[str], trace: str) -> None:
    assert main.call(["simulate", trace, "--boot", "9h", "--cycle", "1h", "--limit-jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert "example: 2 jobs not finished; none of its " in out
    assert "machines joined: boots take longer than boot_deadline lets them (--boot), or all fail" in out


def test_offers_that_were_saved_take_the_place_of_the_example(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path
) -> None:
    row = {
        "cloud": "far", "zone": "z", "flavor": "odd", "market": "on-demand", "price": 1.0, "left": None,
        "arch": "X86_64", "resources": {"cpus": 3, "memory": 8192, "disk": 83886080, "gpus": 0},
    }  # fmt: skip
    (tmp_path / "o.json").write_text(json.dumps({"version": 1, "offers": [row], "errors": []}))
    found = simulated(capsys, trace, "--offers", "o.json")
    assert set(found["settings"][0]["machines_of"]) == {"odd"}


@pytest.mark.parametrize(
    "odd", [{"price": -1.0}, {"price": float("nan")}, {"resources": {"cpus": 0, "memory": 1, "disk": 1}}]
)
def test_offers_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path, odd: dict[str, Any]
) -> None:
    row = {
        "cloud": "far", "zone": "z", "flavor": "odd", "market": "on-demand", "price": 1.0, "left": None,
        "arch": "X86_64", "resources": {"cpus": 3, "memory": 8192, "disk": 83886080, "gpus": 0},
    }  # fmt: skip
    (tmp_path / "o.json").write_text(json.dumps({"version": 1, "offers": [row | odd], "errors": []}))
    assert "o.json doesn't hold offers" in refused(capsys, trace, "--offers", "o.json")


def test_only_some_of_the_jobs(capsys: pytest.CaptureFixture[str], trace: str) -> None:
    assert simulated(capsys, trace, "--limit-jobs", "5")["workload"]["jobs"] == 5
    assert simulated(capsys, trace, "--days", "0:0.003")["workload"]["jobs"] == 5


@pytest.mark.slow
def test_bad_lines_are_skipped_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path
) -> None:
    """Memory in bytes of a whole job, and a broken line, as in MetaCentrum's log."""
    odd = f"13 5 -1 60 4 -1 -1 4 -1 {8 * 1024**3} 1 1 1 1 -1 -1 -1 -1\n14 5 -1 -99 1\n"
    (tmp_path / "t.swf").write_text((tmp_path / "t.swf").read_text() + odd)
    assert "line 16: it has 5 of 18 numbers" in refused(capsys, trace)
    found = simulated(capsys, trace, "--skip-bad-lines", "--memory-unit", "B/job")
    assert found["workload"]["jobs"] == 13
    assert found["workload"]["left_out"] == {"have no run time": 1, "can't be read": 1}
    assert any(note.startswith("line 16 was skipped") for note in found["workload"]["notes"])
    wrong = refused(capsys, trace, "--skip-bad-lines", "--memory-unit", "bytes")
    assert "--memory-unit bytes: write what memory is told in" in wrong
    assert "gen:days is none" in refused(capsys, "gen:days", "--memory-unit", "B/job")


def test_a_report_is_written(capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path) -> None:
    assert main.call(["simulate", trace, "--report", "r.html", "--sweep", "idle_limit=1m,5m"]) == 0
    assert "report: r.html" in capsys.readouterr().out
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "idle_limit=5m" in page
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.html", "t.swf"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.swf"], "gone.swf: there is no such file; a workload is a file, gen:NAME"),
        (["gen:nothing"], 'there is no generator "nothing"'),
        (["t.swf", "--sweep", "idle_limit=2"], 'write "2m" for minutes'),
        (["t.swf", "--sweep", "idle=2m"], "did you mean idle_limit?"),
        (["t.swf", "--rivals", "googel"], 'there is no rival "googel"; did you mean google?'),
        (["t.swf", "--days", "5"], "--days 5 is no stretch of time"),
        (["t.swf", "--days", "5:9"], "has no job in it"),
        (["t.swf", "--memory", "2"], '2 has no unit; write "2GiB"'),
        (["t.swf", "--memory", "lots"], "--memory lots: "),
        (["t.swf", "--cycle", "0s"], "at least 1s"),
        (["t.swf", "--cycle", "60"], '--cycle: "60" has no unit'),
        (["t.swf", "--failures", "1"], "'--failures'"),
        (["t.swf", "--failures", "nan"], "--failures nan: "),
        (["t.swf", "--interruptions", "inf"], "--interruptions inf: "),
        (["t.swf", "--boot", "0s"], "--boot 0s: a machine takes its time; at least 1s"),
        (["gen:bursts", "--memory", "2"], '2 has no unit; write "2GiB"'),
        (["gen:bursts?seed=1&seed=2"], "gen:bursts?seed=1&seed=2: seed is there twice"),
        (["t.swf", "--rivals", ""], 'there is no rival ""'),
        (["."], ".: this is a directory; a workload is a file"),
        (["t.swf", "--report", "t.swf"], "t.swf is read by this call"),
        (["t.swf", "u.swf"], "one workload at a time; u.swf is one too many"),
        (["t.swf", "--config", "gone.toml"], "gone.toml: there is no such file"),
        (["t.swf", "--compare", "gone.toml"], "gone.toml: there is no such file"),
        (["t.swf", "--offers", "gone.json"], "gone.json can't be read"),
        (["t.swf", "--report", "no/such/place.html"], "there is no directory no/such"),
        (["t.swf", "--report", "."], "is a directory"),
        (["schedd:"], "schedd: needs the configuration of a pool"),
        (["schedd:x?since=3"], "write schedd:x?days=30"),
        (["c.toml"], "c.toml: there is no pool; a generator has"),
        (["t.swf", "--compare", "c.toml", "c.toml"], "c.toml is there twice"),
        (["t.swf", "--compare", "c.toml", "--example"], "leave --config and --example out"),
        (["t.swf", "--config", "c.toml", "--example"], "contradict each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(idle="1m"))
    before = {one.name for one in tmp_path.iterdir()}
    assert said in refused(capsys, *arguments)
    assert {one.name for one in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["bytes", "bytes.swf", "bytes.toml"])
def test_what_is_no_text_is_said_so_and_not_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"7\x1b[31m\x00\xff\xfe\n" * 9)
    said = refused(capsys, name)
    assert f"{name}" in said
    assert "is no text" in said or "isn't TOML" in said
    assert said.strip().isprintable()


@pytest.mark.parametrize("damage", ["cut", "negative", "empty"])
def test_a_bad_trace_leaves_no_report(
    capsys: pytest.CaptureFixture[str], trace: str, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "bad.swf.gz"
    whole = (tmp_path / trace).read_text()
    text = {"cut": whole * 50, "negative": whole.replace(" 120 ", " -7 "), "empty": ""}[damage]
    packed = gzip.compress(text.encode())
    path.write_bytes(packed[:-20] if damage == "cut" else packed)
    said = {"cut": "is cut off", "negative": "line 2: the run time is -7 s", "empty": "is empty"}[damage]
    assert said in refused(capsys, "bad.swf.gz", "--report", "r.html")
    assert not (tmp_path / "r.html").exists()


def test_plots_are_loaded_for_a_report_only(trace: str, tmp_path: Path) -> None:
    code = (
        "import sys; from updraft.cli import main; assert main.call(['simulate', 't.swf']) == 0; "
        "assert not {'matplotlib', 'jinja2', 'boto3', 'htcondor2'} & set(sys.modules), 'loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_report_without_its_libraries_says_what_to_install(
    capsys: pytest.CaptureFixture[str], trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install jinja2 matplotlib" in refused(capsys, trace, "--report", "r.html")
