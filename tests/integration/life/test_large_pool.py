"""examples/large-pool.sh as it is, with few machines: the printed configuration is the one that is proven."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE

pytestmark = [pytest.mark.extended, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).parents[3] / "examples/large-pool.sh"
MACHINES = 40
ROW = re.compile(r"(?P<title>\S.*?)  +(?P<value>\S.*?) *")
SMALL = ("--updates-every", "5s", "--seconds", "8", "--jobs", "100", "--groups", "30")


def run(path: str, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [SCRIPT, *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_walk_through_writes_a_configuration_and_proves_it(
    images: Callable[..., Image], updraft_path: str, tmp_path: Path
) -> None:
    images()
    store = os.environ.get("UPDRAFT_IMAGE_STORE", str(DEFAULT_STORE))
    done = run(updraft_path, tmp_path, str(MACHINES), *SMALL, "--store", store)
    # Where this machine is too busy, the load is late or the answers are slow, and the code is 1; an error
    # would leave no table.
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout, done.stderr
    config = (tmp_path / f"head-{MACHINES}.conf").read_text()
    assert "\nSCHEDD_ENABLE_PER_USER_MATCH_LIMITS = false\n" in config
    assert f"{MACHINES} machines join 1 collectors" in done.stderr
    rows = dict(match.groups() for line in done.stdout.splitlines() if (match := ROW.fullmatch(line)))
    assert int(rows["ads sent"]) == int(rows["ads taken"]) > 3 * MACHINES
    assert rows["shown by the top collector"] == str(MACHINES)
    assert rows["job groups in it"] == "30 of 30"


def test_what_is_no_number_is_refused_before_anything_is_started(updraft_path: str, tmp_path: Path) -> None:
    done = run(updraft_path, tmp_path, "many")
    assert (done.returncode, done.stdout) == (2, "")
    assert "many is no number of machines" in done.stderr
    assert not list(tmp_path.glob("*.conf"))
