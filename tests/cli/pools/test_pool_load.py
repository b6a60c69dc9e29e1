"""`pool load` as a person and a program meet it, with the tests themselves left out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.load.test_figures import FINE, REAL
from tests.rigs.forms import validate
from updraft.cli import main
from updraft.cli.pools import load as pool_load
from updraft.cli.schemas import FORMS
from updraft.clouds.local.images.image import Image
from updraft.demo import pool as demo
from updraft.load import runs
from updraft.load.figures import Figures, Real
from updraft.load.runs import Wish

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Wish]:
    """What was asked for; each number of machines carries its load but 999."""
    wishes: list[Wish] = []

    def run_all(wish: Wish, _image: Image, _say: object) -> tuple[Sequence[Figures], Real | None]:
        wishes.append(wish)
        found = [
            replace(FINE, machines=number, gives_out=("too slow",) if number == 999 else ())
            for number in wish.machines
        ]
        return found, REAL if wish.real else None

    monkeypatch.setattr(runs, "run_all", run_all)
    monkeypatch.setattr(demo, "find_or_build", lambda *_: Image("forky", ()))
    monkeypatch.setattr(pool_load.os, "geteuid", lambda: 0)
    monkeypatch.setattr("updraft.cli.pools.load.clean_up_after_signals", lambda: None)
    return wishes


def call(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["pool", "load", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def test_by_default_every_machine_updates_at_least_once(asked: list[Wish], capsys: Capture) -> None:
    assert call(capsys)[0] == 0
    (wish,) = asked
    assert (wish.machines, wish.load.updates_every, wish.config, wish.children) == ((500,), 300.0, None, None)
    assert wish.load.seconds >= 300.0 * (1 + wish.load.jitter)


def test_what_is_asked_for_reaches_the_test(asked: list[Wish], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "head.conf"
    file.write_text("NEGOTIATOR_INTERVAL = 30\n")
    words = [
        "--machines",
        "5,20",
        "--updates-every",
        "1m",
        "--seconds",
        "9",
        "--real",
        "3",
        "--config",
        str(file),
    ]
    assert call(capsys, *words, "--loss-rate", "0.5", "--groups", "7", "--jobs", "70", "--seed", "4")[0] == 0
    (wish,) = asked
    assert (wish.machines, wish.groups, wish.jobs, wish.real) == ((5, 20), 7, 70, 3)
    load = wish.load
    assert (load.updates_every, load.seconds, load.loss_rate, load.seed) == (60.0, 9.0, 0.5, 4)
    assert wish.config == "NEGOTIATOR_INTERVAL = 30\n"


def test_json_is_of_its_form_and_what_gives_out_is_exit_code_1(asked: list[Wish], capsys: Capture) -> None:
    code, out, _ = call(capsys, "--machines", "10,999", "--real", "2", "--json")
    document = json.loads(out)
    validate(document, FORMS["pool load"])
    assert code == 1
    assert [run["gives_out"] for run in document["runs"]] == [[], ["too slow"]]
    assert document["real"]["memory"] == pytest.approx(9.0)


def test_the_table_says_what_gives_out(asked: list[Wish], capsys: Capture) -> None:
    code, out, _ = call(capsys, "--machines", "10,999")
    assert code == 1
    assert "999 machines: too slow" in out
    assert "10 machines: carries this load" in out


@pytest.mark.slow
def test_a_plot_is_drawn(asked: list[Wish], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "load.svg"
    assert call(capsys, "--machines", "10,500", "--plot", str(file))[0] == 0
    text = file.read_text()
    assert "<svg" in text
    assert "Negotiation cycle, seconds" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--machines", "5,x"], "5,x"),
        (["--machines", "0"], "whole numbers"),
        (["--updates-every", "300"], "unit"),
        (["--updates-every", "0s"], "too short"),
        (["--plot", "load.pdf"], ".svg"),
        (["--plot", "/nowhere/load.svg"], "directory"),
    ],
)
def test_what_cant_be_is_refused_before_anything_starts(
    asked: list[Wish], capsys: Capture, words: list[str], said: str
) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert said in err
    assert asked == []


def test_a_file_says_its_own_children(asked: list[Wish], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "head.conf"
    file.write_text("")
    code, _, err = call(capsys, "--config", str(file), "--children", "2")
    assert (code, asked) == (2, [])
    assert "--children" in err


def test_without_root_nothing_is_started(
    asked: list[Wish], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(pool_load.os, "geteuid", lambda: 1000)
    code, _, err = call(capsys)
    assert (code, asked) == (2, [])
    assert "root" in err
