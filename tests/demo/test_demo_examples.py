"""The demonstration jobs: the digits, the verdicts, and where the planner believes that they can run."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from updraft.bootstrap import parse_layer
from updraft.cli.demo.jobs import report
from updraft.config.tables.cvmfs import advertised
from updraft.core.matching.match import judge
from updraft.core.model import CloudOffer, JobGroup, Resources
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.demo import examples
from updraft.demo.examples import Outcome
from updraft.errors import UsageError

FOLDER = Path(__file__).parents[2] / "examples"


def test_the_first_job_prints_the_digits_of_pi() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "demo-1.py"), "1000"], capture_output=True, text=True, check=True
    )
    assert done.stdout == (FOLDER / "demo-1.expected").read_text()
    digits = "".join(done.stdout.split())[2:]
    assert len(digits) == 1000
    assert digits[761:767] == "999999"  # where Feynman wished to end
    assert digits.endswith("4201989")


@pytest.mark.parametrize(
    ("job", "printed", "errors", "words"),
    [
        ("demo-1", "3.\n14", "", ""),
        ("demo-1", "3.\n15", "", "digits"),
        ("demo-1", "3.\n14", "no such file", "no such file"),
        ("demo-2", "Job started\nHello! It ran.", "", ""),
        ("demo-2", "Job started\nGoodbye! It ran.", "", "Hello!"),
        ("demo-3", "Goodbye! It ran.", "", ""),
        ("demo-3", "", "", "Goodbye!"),
    ],
)
def test_a_job_is_judged_by_what_it_printed(job: str, printed: str, errors: str, words: str) -> None:
    wrong = examples.judge(job, printed, errors, "3.\n14")
    assert words in wrong
    assert bool(words) == bool(wrong)


def test_the_report_says_what_was_not_the_real_thing_and_what_failed() -> None:
    text = report([Outcome("demo-1", "3.\n14\n", ""), Outcome("demo-2", "", "it did not say Hello!")])
    assert "---- demo-1.out\n3.\n14\n---- demo-1: as expected" in text
    assert "demo-2.out (against a stand-in for CernVM-FS)" in text
    assert "demo-2: FAILED: it did not say Hello!" in text
    assert "Skipped" in text


def test_the_repository_is_packed_with_its_programs() -> None:
    with tarfile.open(fileobj=io.BytesIO(examples.packed(FOLDER / "repository"))) as archive:
        assert {info.name: (info.mode & 0o111, info.uid) for info in archive} == {
            "Hello": (0o111, 0),
            "Goodbye": (0o111, 0),
        }


def test_the_stand_in_is_a_layer_of_user_data() -> None:
    content = parse_layer("stand-in", examples.stand_in_layer()).content
    assert isinstance(content, dict)
    assert [entry["path"] for entry in content["write_files"]] == ["/sbin/mount.cvmfs", "/usr/bin/cvmfs2"]


def test_a_folder_that_is_not_the_examples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"demo-1\.job"):
        examples._texts(tmp_path)


def test_the_planner_believes_that_the_jobs_run_where_the_repository_is_mounted() -> None:
    offer = CloudOffer("here", "z", "small", "on-demand", Resources(2, 4096, 8 * 1024 * 1024, 0))
    job = (FOLDER / "demo-2.job").read_text()
    wanted = next(line.partition("=")[2] for line in job.splitlines() if line.startswith("requirements"))
    requests = "RequestCpus = 1; RequestMemory = 128; RequestDisk = 51200"
    ad = f"[ {requests}; Requirements = {wanted.replace('$(repository)', examples.REPOSITORY)} ]"
    group = JobGroup("g", "schedd", "alice", "alice@pool", ad, Resources(1, 128, 51200, 0), idle=1)
    for repositories, fits in (((), 0), (("a.b",), 0), (("a.b", examples.REPOSITORY), 1)):
        attributes = advertised(repositories)
        kind = imagine(WorkerClass("w", "g", ("here",), attributes=attributes), offer, "image", "pool")
        assert min(1, judge(group, kind, 1e9).copies) == fits
