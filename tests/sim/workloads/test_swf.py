"""Traces in the Standard Workload Format, as the archive has them: with holes, quirks and damage."""

import gzip
from pathlib import Path

import pytest

from updraft.core.model import Resources
from updraft.errors import UsageError
from updraft.sim.workloads.sources import Reading, days_of, first_of, fitted
from updraft.sim.workloads.swf import read_swf
from updraft.sim.workloads.workload import DISK

HEADER = """\
; Version: 2.2
; Computer: Intel Hypercube
; Installation: A laboratory
; UnixStartTime: 749458803
; MaxJobs: 6
;
"""


def line(
    number: int = 1,
    submit: float = 0,
    run: float = 100,
    allocated: int = 1,
    used: int = -1,
    requested: int = -1,
    limit: int = -1,
    memory: int = -1,
    status: int = 1,
    user: int = 7,
    program: int = -1,
) -> str:
    start = f"{number} {submit:g} -1 {run:g} {allocated} -1 {used} {requested} {limit} {memory} {status}"
    return f"{start} {user} 1 {program} -1 -1 -1 -1\n"


def trace(folder: Path, *lines: str, name: str = "t.swf") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(lines))
    return path


def test_a_job_is_read_with_what_it_asked_for(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        line(1, submit=50, run=100, allocated=8, requested=4, limit=600, memory=2048, program=3),
    )
    found = read_swf(path)
    (job,) = found.arrivals
    assert job.request == Resources(4, 8, DISK)  # 2048 KiB on each of 4 processors
    assert (job.seconds, job.longest, job.owner, job.executable) == (100, 600, "user7", "program3")
    assert job.at == 0  # the first arrival is the beginning
    assert found.begins == 749458803 + 50
    assert "A laboratory" in found.notes


def test_what_is_missing_is_filled_and_said(tmp_path: Path) -> None:
    path = trace(tmp_path, line(1, allocated=2), line(2, submit=9, allocated=-1, user=-1))
    first, second = read_swf(path, Reading(memory=3000)).arrivals
    assert first.request == Resources(2, 6000, DISK)
    assert first.longest is None
    assert second.request.cpus == 1
    assert second.owner == "user-unknown"
    assert any("2 jobs say nothing of memory" in note for note in read_swf(path).notes)


def test_memory_that_was_used_stands_in_for_what_was_asked_for(tmp_path: Path) -> None:
    (job,) = read_swf(trace(tmp_path, line(used=1024 * 700, allocated=2))).arrivals
    assert job.request.memory == 1400


def test_a_run_time_of_zero_takes_a_second_and_a_limit_is_never_below_the_run(tmp_path: Path) -> None:
    zero, longer = read_swf(trace(tmp_path, line(1, run=0), line(2, run=700, limit=600))).arrivals
    assert zero.seconds == 1
    assert longer.longest == 700


def test_cancelled_jobs_missing_run_times_and_parts_are_left_out_and_counted(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        line(1),
        line(2, run=-1),
        line(3, run=0, status=5),
        line(4, run=-1, status=5),
        line(5, run=30, status=5),  # cancelled while it ran: it took a machine
        line(6, status=3),
    )
    found = read_swf(path)
    assert [job.seconds for job in found.arrivals] == [100, 30]
    assert found.left_out == {
        "have no run time": 1,
        "were cancelled before they ran": 2,
        "are parts of other jobs": 1,
    }


def test_lines_in_any_order_extra_columns_gaps_and_fractions_are_taken(tmp_path: Path) -> None:
    late, early = line(1, submit=500.5), line(2, submit=20)
    found = read_swf(trace(tmp_path, late.rstrip() + " 17 -1 0.5\n", "\n", "; a remark\n", early))
    assert [job.at for job in found.arrivals] == [0, 480.5]


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (line(2, run=1e30), r"line 8: the run time is 1e\+30 s, which is centuries"),
        (line(2, submit=1e18), r"line 8: the submit time is 1e\+18 s, which is centuries"),
        ("\x1b[2J 1 2\n", r'line 8: "\?\[2J 1 2" is no line of a trace'),
        ("1 2 \x00\n", r"t\.swf is no text \(line 8\)"),
    ],
    ids=["run", "submit", "escape", "null"],
)
def test_what_cannot_be_is_refused_by_its_line(tmp_path: Path, odd: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_swf(trace(tmp_path, line(1), odd))


def test_a_job_of_absurdly_many_cores_is_left_out(tmp_path: Path) -> None:
    found = read_swf(trace(tmp_path, line(1), line(2, submit=5, requested=10**12)))
    kept = fitted(found, [Resources(4, 8192, DISK)])
    assert len(kept.arrivals) == 1
    assert kept.left_out == {"fit no machine": 1}


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    plain = trace(tmp_path, line(1), line(2, submit=5))
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_swf(packed).arrivals == read_swf(plain).arrivals
    assert read_swf(packed).sha256 != read_swf(plain).sha256


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.99])
def test_a_gzip_file_that_is_cut_off_is_refused(tmp_path: Path, kept: float) -> None:
    whole = gzip.compress((HEADER + "".join(line(n, submit=n * 7919 % 1000) for n in range(3000))).encode())
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(UsageError, match=r"cut\.swf\.gz is cut off after line \d+.*get it again"):
        read_swf(path)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress((HEADER + "".join(line(n) for n in range(3000))).encode()))
    whole[len(whole) // 2] ^= 0xFF
    path = tmp_path / "bad.swf.gz"
    path.write_bytes(bytes(whole))
    with pytest.raises(UsageError, match=r"damaged|cut off|no line of a trace"):
        read_swf(path)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("2 10 -1 100", r"line 8: it has 4 of 18 numbers, as where a trace is cut off"),
        (line(2, run=-30), r"line 8: the run time is -30 s"),
        (line(2, submit=-4), r"line 8: the submit time is -4 s"),
        (line(2, submit=-1), r"line 8: the submit time is -1 s"),
        ("GIF89a nonsense\n", r'line 8: "GIF89a nonsense" is no line of a trace'),
        (line(2, run=float("nan")), r"line 8: .*nan"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, last: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_swf(trace(tmp_path, line(1), last))


def test_bad_lines_are_skipped_counted_and_named_where_that_is_asked_for(tmp_path: Path) -> None:
    good, bad = line(1, submit=5), [line(2, run=-30), "2 10 -1\n", "GIF\x009a\n", "nonsense\n"]
    path = trace(tmp_path, *bad, good)
    with pytest.raises(UsageError, match=r"t\.swf, line 7: the run time is -30 s.*--skip-bad-lines"):
        read_swf(path)
    found = read_swf(path, Reading(skip_bad_lines=True))
    assert len(found.arrivals) == 1
    assert found.left_out == {"can't be read": 4}
    said = [note for note in found.notes if "skipped" in note]
    assert [note.partition(":")[0] for note in said] == [f"line {n} was skipped" for n in (7, 8, 9, 10)]
    many = read_swf(trace(tmp_path, *bad * 20, good), Reading(skip_bad_lines=True))
    assert many.left_out == {"can't be read": 80}
    assert many.notes[-1] == "60 more were skipped"


@pytest.mark.parametrize(
    ("reading", "amount", "mebibytes"),
    [
        (Reading(), 2048, 2 * 4),
        (Reading(unit=1024**2), 3, 3 * 4),
        (Reading(unit=1, per_job=True), 64 * 1024**3, 64 * 1024),
        (Reading(per_job=True), 1025, 2),
        (Reading(unit=1, per_job=True), 1, 1),
    ],
)
def test_memory_is_told_in_the_unit_that_was_named(
    tmp_path: Path, reading: Reading, amount: int, mebibytes: int
) -> None:
    """As in MetaCentrum's logs, which tell bytes of a whole job."""
    for said in ({"memory": amount}, {"used": amount}):
        (job,) = read_swf(trace(tmp_path, line(allocated=4, **said)), reading).arrivals
        assert job.request.memory == mebibytes


def test_memory_in_another_unit_than_the_format_s_is_pointed_at(tmp_path: Path) -> None:
    found = read_swf(trace(tmp_path, line(1), line(2, memory=64 * 1024**3)))
    assert any("1 jobs have over 1 TiB of memory for each core: --memory-unit" in n for n in found.notes)


def test_a_trace_without_a_job_that_ran_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"t\.swf has no job that could be simulated \(1 have no run time\)"):
        read_swf(trace(tmp_path, line(run=-1)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.swf can't be read: No such file"):
        read_swf(tmp_path / "gone.swf")


# ------------------------------------------------------------------------------------- jobs and machines


def test_a_parallel_job_that_fits_stays_whole_and_a_wider_one_is_split(tmp_path: Path) -> None:
    found = read_swf(trace(tmp_path, line(1, allocated=8), line(2, submit=3, allocated=64)))
    split = fitted(found, [Resources(16, 32 * 1024, 100 * DISK)])
    assert [job.request.cpus for job in split.arrivals] == [8] + [1] * 64
    assert split.core_seconds == found.core_seconds
    assert "1 jobs that fit no machine became 64 jobs of one core each" in split.notes
    apart = fitted(found, [Resources(16, 32 * 1024, 100 * DISK)], split=False)
    assert [job.request.cpus for job in apart.arrivals] == [8]
    assert apart.left_out == {"fit no machine": 1}


def test_a_job_of_more_memory_than_any_core_has_is_left_out(tmp_path: Path) -> None:
    found = read_swf(trace(tmp_path, line(1), line(2, memory=900 * 1024 * 1024)))
    assert fitted(found, [Resources(4, 8192, 10 * DISK)]).left_out == {"fit no machine": 1}
    with pytest.raises(UsageError, match="no job that could be simulated"):
        fitted(found, [Resources(1, 100, 10 * DISK)])


def test_days_and_the_first_jobs(tmp_path: Path) -> None:
    found = read_swf(trace(tmp_path, *(line(n, submit=n * 3600.0) for n in range(72))))
    second = days_of(found, 1, 2)
    assert len(second.arrivals) == 24
    assert second.arrivals[0].at == 0
    assert second.begins == 749458803 + 86400
    assert len(first_of(found, 10).arrivals) == 10
    assert first_of(found, 100) is found
    with pytest.raises(UsageError, match=r"t\.swf is 3\.0 days long"):
        days_of(found, 7, 8)
    with pytest.raises(UsageError, match="no stretch of time"):
        days_of(found, 2, 1)
