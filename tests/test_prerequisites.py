"""`tools/prerequisites`: who may not install what is missing is told what it is."""

import os
import re
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "prerequisites"


def run(folder: Path, python: str) -> tuple[int, str]:
    """The tool with this script as its Python, as a user who isn't root: its exit code and what it said."""
    for name, script in {"python3.11": python, "id": "echo 1000"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [TOOL, "python"], env={"PATH": f"{folder}:{os.environ['PATH']}"}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ('case "$2" in *ensurepip*) exit 1;; esac', "as root on Debian: apt-get install python3.11-venv"),
        ('case "$*" in *version_info*) exit 1;; --version) echo Python 3.9.2;; esac', "is Python 3.9.2"),
    ],
    ids=["no venv", "too old"],
)
def test_what_python_lacks_is_said(tmp_path: Path, python: str, sentence: str) -> None:
    code, said = run(tmp_path, python)
    assert (code, sentence in said) == (1, True), said


def test_a_part_that_nobody_knows_is_told() -> None:
    done = subprocess.run([TOOL, "castle"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert '"castle" is none of python, cloud, prometheus and chromium' in done.stderr


def test_a_prometheus_that_is_there_is_not_fetched(tmp_path: Path) -> None:
    for name in ("prometheus", "promtool", "apt-get"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [TOOL, "prometheus"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_browser_is_asked_for_by_its_packages(tmp_path: Path) -> None:
    (tmp_path / "bash").symlink_to("/bin/bash")
    for name, script in {"chromium": "exit 0", "id": "echo 1000"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [TOOL, "chromium"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"as root on Debian: apt-get install chromium-driver( fonts-dejavu-core)?$", done.stderr)


def test_a_python_that_will_do_is_nothing_to_speak_of(tmp_path: Path) -> None:
    assert run(tmp_path, "exit 0") == (0, "")
