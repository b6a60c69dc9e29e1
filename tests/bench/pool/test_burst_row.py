"""What `make bench` says of a burst: which machines count as joined, as failed, and what each takes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench.pool import burst, footprint
from tests.bench.pool.burst import Story
from tests.bench.pool.footprint import Process
from tests.bench.pool.live import Job
from tests.bench.rows import Measured, Row, run, show


def machine(number: int, joined: float | None = 30.0, end: dict[str, str] | None = None) -> dict[str, Any]:
    return {"id": f"i-{number}", "requested_at": 2.0, "joined_at": joined, "end": end}


def instance(number: int, state: str = "terminated") -> dict[str, Any]:
    times = {"pending": 2.0, "running": 2.0 + number}
    return {"id": f"i-{number}", "address": f"10.0.0.{number}", "state": state, "times": times}


STORY = Story(
    submitted=1.0,
    came=50.0,
    memory_before=10_000.0,
    memory_lowest=9_800.0,
    memory_then=9_900.0,
    footprint={},
    jobs=tuple(Job(f"1.{number}", 1.0, f"10.0.0.{number}", 60.0) for number in (1, 2)),
    launches=({"asked_at": 2.0, "count": 2},),
    machines=(machine(1), machine(2, 41.0)),
    instances=(instance(1), instance(2)),
    boot_failures={},
)


def test_a_machine_counts_that_joined_and_ran_a_job_to_its_end() -> None:
    assert burst.joined(STORY).value == 2
    assert burst.failed(STORY).value == 0
    assert burst.last_join(STORY) == 40.0
    unfinished = replace(STORY, jobs=(STORY.jobs[0], replace(STORY.jobs[1], ended=None)))
    assert burst.joined(unfinished).value == 1
    both_on_one = replace(STORY, jobs=(STORY.jobs[0], replace(STORY.jobs[1], address="10.0.0.1")))
    assert burst.joined(both_on_one).value == 1


def test_a_machine_that_never_joined_or_says_that_its_boot_failed_has_failed() -> None:
    given_up = machine(3, None, {"code": "never-joined", "text": "it has not joined the pool in 60 s"})
    story = replace(STORY, machines=(*STORY.machines, given_up), boot_failures={"i-2": "no condor_startd"})
    seen = burst.failed(story)
    assert seen.value == 2
    assert seen.detail["why"] == {
        "i-3": "never-joined: it has not joined the pool in 60 s",
        "i-2": "no condor_startd",
    }


def test_an_instance_that_the_ledger_does_not_know_has_failed_too() -> None:
    story = replace(STORY, instances=(*STORY.instances, instance(9)))
    assert burst.failed(story).detail["why"] == {"i-9": "not in the ledger"}


def test_memory_is_divided_among_the_machines() -> None:
    seen = burst.memory(STORY)
    assert seen.value == 50.0
    assert seen.detail["at_the_peak_mib_each"] == 100.0


PROCESSES = {
    1: Process(0, (1,), "init", 5, 0.0),
    50: Process(1, (50, 1), "cloud", 7000, 1.0),
    51: Process(50, (51, 2), "python", 9000, 1.0),
    60: Process(51, (60, 30), "unshare", 1, 0.0),
    61: Process(60, (61, 31, 1), "tini", 1024, 0.5),
    62: Process(61, (62, 32, 2), "condor_master", 2048, 0.25),
    63: Process(62, (63, 33, 3, 1), "job", 1024, 0.25),  # in a pid namespace of its own
    71: Process(60, (71, 41, 1), "tini", 1024, 0.5),
    80: Process(1, (80, 1), "another cloud", 1, 0.0),
    81: Process(80, (81, 31, 1), "tini", 1, 0.0),
}


def test_processes_belong_to_the_machine_below_whose_first_they_are() -> None:
    found = footprint.by_machine(PROCESSES, 50)
    assert {pid: sorted(one.name for one in of) for pid, of in found.items()} == {
        31: ["condor_master", "job", "tini"],
        41: ["tini"],
    }
    seen = footprint.summed(found)
    assert (seen["pss_mib"]["max"], seen["pss_mib"]["min"]) == (4.0, 1.0)
    assert seen["processes"]["max"] == 3
    assert seen["processor_s"]["max"] == 1.0
    assert seen["pss_mib_by_name"] == {"tini": 1.0, "condor_master": 1.0, "job": 0.5}


def test_processes_are_read_as_the_kernel_shows_them(tmp_path: Path) -> None:
    folder = tmp_path / "61"
    folder.mkdir()
    (folder / "status").write_text("Name:\ttini\nPPid:\t60\nNSpid:\t61\t31\t1\n")
    (folder / "smaps_rollup").write_text("00-ff ---p 0 0 0 [rollup]\nRss:  900 kB\nPss:     123 kB\n")
    ticks = [str(number * footprint.TICKS) for number in (1, 2, 3, 4)]
    (folder / "stat").write_text(f"61 (a (b) c) S {' '.join('0' * 10)} {' '.join(ticks)} 20 0\n")
    (tmp_path / "62").mkdir()  # it ends while it is looked at
    assert footprint.look(tmp_path) == {61: Process(60, (61, 31, 1), "tini", 123, 10.0)}


def test_a_row_without_a_bound_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(Row("seconds", "all joined", None, "s", lambda: Measured(200.0)))
    assert result.met
    show([result])
    assert "reported" in capsys.readouterr().out
