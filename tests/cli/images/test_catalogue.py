"""`images` and `offers`: what the clouds have, filtered, and with clouds that don't answer left out aloud."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.base import ImageInfo
from updraft.clouds.fake import FakeCloud

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
zones = ["a"]
images = ["debian-12", "debian-13", "alma-9"]
flavors.small = { cpus = 1, memory = "2GiB" }
flavors.gpu = { cpus = 8, memory = "32GiB", gpus = 2, price = 2.5 }

[clouds.there]
driver = "fake"
zones = ["z"]
images = ["worker"]
prices = { small = 0.01 }
%s
[classes.default]
image = { here = "debian-12", there = "worker" }
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "updraft.toml"
    file.write_text(SETTINGS % "")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(file))
    monkeypatch.setenv("COLUMNS", "120")
    return file


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def document(capsys: Capture, *arguments: str) -> Any:
    code, out, _ = run(capsys, *arguments, "--json")
    found = json.loads(out)
    validate(found, FORMS[arguments[0]])
    return code, found


def test_images_are_those_of_all_clouds_and_a_part_of_a_name_filters(site: Path, capsys: Capture) -> None:
    _, found = document(capsys, "images")
    assert [(one["cloud"], one["name"]) for one in found["images"]] == [
        ("here", "alma-9"),
        ("here", "debian-12"),
        ("here", "debian-13"),
        ("there", "worker"),
    ]
    _, out, _ = run(capsys, "images", "DEBIAN")
    assert "debian-13" in out
    assert "alma" not in out
    assert run(capsys, "images", "nothing")[:2] == (0, 'no images have "nothing" in their names\n')


def test_offers_come_by_price_and_an_unknown_price_comes_last(site: Path, capsys: Capture) -> None:
    _, found = document(capsys, "offers")
    prices = [one["price"] for one in found["offers"]]
    known = [price for price in prices if price is not None]
    assert prices == [*sorted(known), None]
    assert (found["offers"][0]["cloud"], prices[0]) == ("there", 0.01)  # the site's own price
    assert found["offers"][-1]["flavor"] == "small"
    _, out, _ = run(capsys, "offers", "gpu")
    line = next(line for line in out.splitlines() if "gpu" in line)
    assert line.split() == ["gpu", "8", "32", "GiB", "20", "GiB", "2", "X86_64", "2.5", "a", "on-demand"]


def test_one_cloud_can_be_meant(site: Path, capsys: Capture) -> None:
    _, found = document(capsys, "offers", "--cloud", "here")
    assert {one["cloud"] for one in found["offers"]} == {"here"}
    code, _, err = run(capsys, "offers", "--cloud", "nowhere")
    assert (code, "here, there" in err) == (2, True)


@pytest.mark.parametrize("verb", ["images", "offers"])
def test_a_cloud_that_does_not_answer_is_said_and_the_others_are_shown(
    site: Path, capsys: Capture, verb: str
) -> None:
    site.write_text(SETTINGS % 'faults = [{ error = "cloud-unavailable", call = "*" }]\n')
    code, out, err = run(capsys, verb)
    assert code == 1
    assert "debian-12" in out or "gpu" in out
    assert "1 cloud left out: there doesn't answer" in err
    code, found = document(capsys, verb)
    assert (code, [one["cloud"] for one in found["errors"]]) == (1, ["there"])
    assert found[verb]


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    long = tuple(
        ImageInfo(f"ami-{n:017x}", f"ubuntu/images/hvm-ssd/ubuntu-noble-24.04-amd64-server-{n}", "available",
                  "x86_64", "099720109477", 1.7e9)
        for n in range(3)
    )  # fmt: skip
    monkeypatch.setattr(FakeCloud, "images", lambda self: long)
    monkeypatch.setenv("COLUMNS", str(columns))
    for verb in ("images", "offers"):
        _, out, _ = run(capsys, verb)
        assert max(len(line) for line in out.splitlines()) <= columns
        if verb == "images":
            assert "".join(out.split()).count("ami-0000000000000000") == 6
