"""A driver made from `docs/howto/write-a-driver.md` alone keeps the contract, and is found by its name."""

import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.parts_conformance import PartsConformance

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "write-a-driver.md"
BLOCK = re.compile(r"^```(?:python|toml)\n# (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
UPDRAFT = ("-c", "from updraft.cli.main import main; main()")
SKIPPED = re.compile(
    r"can't be made to (answer with|lose an answer)|nothing boots|has no catalogue|looks for no images"
    r"|tells of nothing else|nothing but machines"
)
"""What the folder of the page can't show; of anything else that is skipped the page would have to speak."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, installed as far as a package has to be for its entry point to be found."""
    folder = tmp_path_factory.mktemp("driver")
    for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        file = folder / found["name"]
        file.parent.mkdir(exist_ok=True)
        file.write_text(found["text"])
    about = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    installed = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    lines = [
        f"[{group}]\n{key} = {value}\n"
        for group, names in about["entry-points"].items()
        for key, value in names.items()
    ]
    (installed / "entry_points.txt").write_text("".join(lines))
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])))
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def names_in(suite: type) -> set[str]:
    return {name for name in dir(suite) if name.startswith("test_")}


def test_it_keeps_the_contract(package: Path) -> None:
    report = package / "report.xml"
    done = run(
        package,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junit-xml={report}",
        "test_folder_cloud.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314  # our own
    ran = {case.attrib["name"].partition("[")[0] for case in cases}
    assert ran == names_in(MachinesConformance) | names_in(PartsConformance)
    for case in cases:
        if (skipped := case.find("skipped")) is not None:
            assert SKIPPED.search(skipped.attrib["message"]), (case.attrib["name"], skipped.attrib["message"])


def test_its_settings_are_read_and_refused_as_those_of_any_driver(package: Path) -> None:
    check = (*UPDRAFT, "config", "check")
    done = run(package, *check)
    assert done.returncode == 0, done.stdout + done.stderr
    file = package / "updraft.toml"
    right = file.read_text()
    try:
        file.write_text(right.replace('folder = "machines"', 'foldr = "machines"'))
        done = run(package, *check)
    finally:
        file.write_text(right)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "foldr" in done.stdout + done.stderr


def test_it_is_asked_what_it_sells(package: Path) -> None:
    (package / "machines").mkdir(exist_ok=True)
    done = run(package, *UPDRAFT, "offers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "small" in done.stdout
    assert "large" in done.stdout
