"""examples/seed-and-annex.sh as it is: a head, a user's jobs, an annex; and nothing is left, ever."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.rigs.pools.realpool import Footprint, at_a_terminal, say, until_nothing
from updraft.clouds.local import process
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo.pool import RealPool

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]

SCRIPT = Path(__file__).parents[3] / "examples/seed-and-annex.sh"
HOST = re.compile(r"@(ip-[0-9-]+)\.")
MACHINE = re.compile(r"^i-\w+ +(\w+) +\S+ +(\w+) ", re.MULTILINE)


@pytest.fixture
def begun(image: Image, updraft_path: str, tmp_path: Path) -> Callable[[], "Walk"]:
    """Starts the walk-through in a folder of its own, with an image that is there."""
    return lambda: Walk(image, updraft_path, tmp_path)


class Walk:
    """The script at work, what it has said so far, and what its cloud has on this host."""

    def __init__(self, image: Image, path: str, folder: Path) -> None:
        self._image, self._folder = image, folder
        store = os.environ.get("UPDRAFT_IMAGE_STORE", str(DEFAULT_STORE))
        self.process = subprocess.Popen(
            [SCRIPT, store],
            env={**os.environ, "PATH": path, "TMPDIR": str(folder), "COLUMNS": "160"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=at_a_terminal,  # no thread holds a lock that it would need
            start_new_session=True,  # as at a terminal: Ctrl-C reaches the script and what it has called
        )
        self.said = ""

    def until(self, words: str) -> None:
        """Read on until a line holds these words."""
        for line in self.process.stdout or ():
            say(line.rstrip("\n"))
            self.said += line
            if words in line:
                return
        raise AssertionError(f"it ended, and never said {words!r}")

    def footprint(self) -> Footprint:
        [state] = self._folder.glob("tmp.*/cloud")
        cloud = process.find(state)
        assert cloud is not None
        return Footprint.of(RealPool(cloud, "", self._image))

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Its exit code; what it says until then is kept."""
        self.said += (rest := self.process.communicate(timeout=120)[0])
        say(rest)
        return self.process.returncode

    def left(self, footprint: Footprint) -> list[str]:
        return [*until_nothing(footprint, 10), *map(str, self._folder.glob("tmp.*"))]


@contextmanager
def ended(walk: Walk) -> Iterator[Walk]:
    """A test that fails midway leaves no cloud either."""
    try:
        yield walk
    finally:
        if walk.process.poll() is None:
            walk.interrupt()
            walk.end()


def part(said: str, command: str) -> str:
    """What one command of the script has printed."""
    return re.split(r"\n(?:\w+@seed)?\$ |\n=== ", said.split(f"$ {command}\n", 1)[1])[0]


def test_a_pool_grows_from_a_seed_and_is_taken_away(begun: Callable[[], Walk]) -> None:
    with ended(begun()) as walk:
        walk.until("=== It ends with its lease")
        footprint = walk.footprint()
        walk.until("=== And the cloud")
        assert walk.end() == 0
        assert walk.left(footprint) == []

    said = walk.said
    told = re.search(r'  endpoint = "(http://\S+)"', said)
    assert told is not None
    assert f"init --pool new --pool-name walk --driver local --cloud here --endpoint {told[1]} " in said
    assert "[annex-only]" in part(said, "updraft explain 1.0")
    annex = set(HOST.findall(part(said, "condor_status -annex lab")))
    assert len(annex) == 2
    (row,) = [line for line in said.splitlines() if line.startswith("lab ")]
    assert row.split()[:3] == ["lab", "anna", "2/2"]
    printed = part(said, "sh -c cat annex.*.out")
    assert re.findall(r"job 1\.(\d) is done", printed) == ["0", "1", "2", "3"]
    assert set(re.findall(r"began on (\S+)", printed)) <= annex
    assert "0 machines" in said.rsplit("updraft status\n", 1)[1], "its machines went before the seed did"
    machines = sorted(MACHINE.findall(said.rsplit("updraft local status", 1)[1]))
    assert machines == [("terminated", "medium"), ("terminated", "small"), ("terminated", "small")]


def test_ctrl_c_takes_everything_away(begun: Callable[[], Walk]) -> None:
    with ended(begun()) as walk:
        walk.until(" is running")
        footprint = walk.footprint()
        walk.interrupt()
        assert walk.end() == 130
        assert "The cloud has ended, and all its machines with it." in walk.said
        assert walk.left(footprint) == []


def test_what_is_no_store_is_refused_before_anything_is_started(updraft_path: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "--help"],
        env={**os.environ, "PATH": updraft_path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "seed-and-annex.sh [STORE]" in done.stderr
    assert not list(tmp_path.glob("tmp.*"))
