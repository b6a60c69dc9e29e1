"""Nothing that anybody is told to run installs updraft by a name: an index decides whose that is."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.rigs.reading import parts
from updraft import DISTRIBUTION
from updraft.bootstrap import HeadSpec, Install, compose, head_user_data
from updraft.bootstrap.head.source import WHEEL
from updraft.bootstrap.images.seeding import SeedSpec, seed_layers

ROOT = Path(__file__).parents[1]
WHERE = ("README.md", "CHANGELOG.md", "Makefile", "docs", "examples", "tools", ".ci", "src")
INSTALLS = re.compile(
    r"\b(?:uvx|(?:pip[0-9.]*|pipx|uv(?: tool| pip)?)\s+(?:-\S+\s+)*(?:install|run|add|download|wheel))"
    r"\s+([^;&|`#\n]*)"
)
NAME = re.compile(r"updraft(?:[-_.]htcondor)?(?:\[[^\]]*\]?)?(?:[=<>~!@][^\s]*)?", re.IGNORECASE)
SOURCE = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"


def by_name(text: str) -> list[str]:
    """Every installation of updraft in this text that a package index would decide about."""
    plain = re.sub(r"[\"',()]", " ", text.replace("\\\n", " "))
    return [one[0] for one in INSTALLS.finditer(plain) if any(map(NAME.fullmatch, one[1].split()))]


def files() -> Iterator[Path]:
    for where in WHERE:
        place = ROOT / where
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.suffix != ".png" and "__pycache__" not in path.parts:
                yield path


@pytest.mark.parametrize(
    "text",
    [
        "pip install updraft",
        "/opt/updraft/bin/pip install 'updraft[ec2]'",
        "python3 -m pip install --upgrade updraft==0.1.0",
        "pip install \\\n    updraft-htcondor",
        "pip -q install 'updraft[ec2,report]'",
        "It needs boto3: `pip install 'updraft-htcondor[ec2]'`.",
        'run(["pip", "install", "updraft"])',
        "pipx install updraft",
        "pipx run updraft",
        "uv tool install updraft",
        "uvx updraft",
        "uv pip install updraft_htcondor>=1",
    ],
)
def test_an_installation_by_name_is_seen(text: str) -> None:
    assert by_name(text)


@pytest.mark.parametrize(
    "text",
    [
        f"pip install --require-hashes --no-deps '{SOURCE}'",
        f"/opt/updraft/bin/pip install --no-deps dist/{WHEEL}",
        "pip install --require-hashes --no-deps -r /opt/updraft/lib/python3*/site-packages/updraft/run.lock",
        "pip uninstall updraft",
        "`pip install jinja2`, then `updraft simulate`",
    ],
)
def test_one_by_hash_or_by_file_is_none(text: str) -> None:
    assert not by_name(text)


def test_no_page_script_or_program_says_so() -> None:
    looked = list(files())
    assert len(looked) > 400
    found = {str(path.relative_to(ROOT)): by_name(path.read_text(encoding="utf-8")) for path in looked}
    assert {path: commands for path, commands in found.items() if commands} == {}


def test_no_machine_is_told_so() -> None:
    head = HeadSpec(
        trust_domain="p", uid_domain="p", controller_config="", source=SOURCE, install=Install(version="25.x")
    )
    for data in (head_user_data(head), compose(seed_layers(SeedSpec(source=SOURCE)))):
        text = "\n".join(text for _, text in parts(data))
        assert f"SOURCE='{SOURCE}'" in text
        assert not by_name(text)


def test_the_project_is_called_as_heads_know_it() -> None:
    lines: Sequence[str] = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith(f'name = "{DISTRIBUTION}"')


def test_what_is_locked_is_installed_without_a_resolver() -> None:
    """pip looks for the newest of what is wanted with extras, and refuses one that isn't locked."""
    locked = [line for path in files() for line in _lines(path) if "pip install" in line and ".lock" in line]
    assert locked
    assert [line for line in locked if "--require-hashes" not in line or "--no-deps" not in line] == []


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").replace("\\\n", " ").splitlines()
