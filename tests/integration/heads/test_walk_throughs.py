"""The walk-throughs of examples/ as they are: what a reader of them sees, and that nothing is left."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.rigs.pools.realpool import Footprint, at_a_terminal, patience, say, until, until_nothing
from updraft.clouds.local.images.image import Image

pytestmark = [pytest.mark.extended, pytest.mark.timeout(700)]

EXAMPLES = Path(__file__).parents[3] / "examples"
LONGEST = 150.0  # seconds on a machine that has nothing else to do
ENDED = re.compile(r"^(i-\w+) +terminated .* terminated by the API$", re.MULTILINE)
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(image: Image, updraft_path: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a script in a folder of its own; what is left of it when the test ends fails the test."""
    assert image
    begun: list[subprocess.Popen[str]] = []

    def go(script: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PATH": updraft_path, "TMPDIR": str(tmp_path), "COLUMNS": "120"}
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(
                [EXAMPLES / script], cwd=tmp_path, env=environment, text=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                preexec_fn=at_a_terminal,  # no thread holds a lock that it would need
                start_new_session=True,  # as at a terminal: Ctrl-C reaches the script and what it has called
            )  # fmt: skip
        begun.append(process)
        return process

    yield go
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    say((tmp_path / "said").read_text())
    assert not left(tmp_path)


def left(folder: Path) -> list[str]:
    """What a script made and didn't take away, some seconds after its end."""
    until_nothing(_footprint(folder), 10)
    return there(folder)


def _footprint(folder: Path) -> Footprint:
    return Footprint(folder, frozenset(), frozenset(), frozenset())


def there(folder: Path) -> list[str]:
    """What is there now of what a script made: files, mounts, processes."""
    found = [str(path) for path in folder.iterdir() if path.name != "said"]
    found += _footprint(folder).left()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder) in (words := path.read_bytes().replace(b"\0", b" ").decode(errors="replace")):
                found.append(words)
    return found


def told(start: Start, script: str, folder: Path) -> dict[str, str]:
    """The script to its end: what it said under each of its headings."""
    process = start(script)
    until(lambda: process.poll() is not None, LONGEST, f"{script} has ended", every=1)
    said = (folder / "said").read_text()
    assert process.returncode == 0, said[-3000:]
    parts = re.split(r"^=== (.*)$", said, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def under(steps: dict[str, str], words: str) -> str:
    """What was said under the one heading that has these words."""
    [found] = [text for heading, text in steps.items() if words in heading]
    return found


def test_ecms_cluster_grows_with_its_queue_and_shrinks_again(start: Start, tmp_path: Path) -> None:
    steps = told(start, "ecm-cluster.sh", tmp_path)
    assert "min = 1 # MIN_VMS\nmax = 3 # MAX_VMS" in under(steps, "What is left to say")
    jobs = under(steps, "eight jobs")
    assert sorted(re.findall(r"^job (\S+) is done$", jobs, re.MULTILINE)) == [f"1.{n}" for n in range(8)]
    assert len(set(re.findall(r" began on (\S+)$", jobs, re.MULTILINE))) == 3, "it grew to MAX_VMS"
    shrunk = under(steps, "shrunk to MIN_VMS")
    assert len(re.findall(r" launch .*below-minimum", shrunk)) == 1
    assert len(re.findall(r" drain .*\[idle-limit\]", shrunk)) == 2
    assert not re.findall("never-joined|requeue-jobs|lost", shrunk)
    assert len(ENDED.findall(under(steps, "The end"))) == 4, "three workers and the head, and no other"


def test_cloud_schedulers_test_drive(start: Start, tmp_path: Path) -> None:
    steps = told(start, "cloud-scheduler.sh", tmp_path)
    assert "limits = {machines = 4} # vm_slots" in under(steps, "becomes updraft.toml")
    assert (EXAMPLES / "demo-1.expected").read_text() in under(steps, "guest submits")
    ended = under(steps, "goes by itself")
    assert re.search(r" launch .*: 1 × demo@alberta/zone-\w/small/on-demand", ended), "as it asked for"
    assert re.search(r" gone .*\[idle-limit\]", ended)
    assert len(ENDED.findall(under(steps, "The end"))) == 2


def test_one_that_is_broken_off_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process = start("cloud-scheduler.sh")
    until(lambda: "is running" in (tmp_path / "said").read_text(), 60, "the head is launched")
    assert there(tmp_path), "there is a cloud by now"
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30 * patience()) == 130
