"""All logs of a run become one, in the order of time, whatever each of them writes its times in."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chaos.judged.evidence import Deed
from tests.chaos.judged.judging import Finding
from tests.chaos.judged.timeline import NAME, Entry, entries, moment, of_deeds, of_findings, write


def at(clock: str) -> float:
    """The moment of this time of day."""
    return datetime.fromisoformat(f"2026-11-24 {clock}").replace(tzinfo=UTC).timestamp()


def lines_of(folder: Path) -> list[str]:
    """The time line that was written into a folder."""
    return (folder / NAME).read_text().splitlines()


@pytest.mark.parametrize(
    ("line", "clock"),
    [
        ("2026-11-24T07:44:53.123456Z info launched flavor=small", "07:44:53.123456"),
        ("2026-11-24T07:44:53Z info launched", "07:44:53"),
        ("\x1b[2m2026-11-24T07:44:53.5Z\x1b[0m [\x1b[32minfo\x1b[0m] launched", "07:44:53.5"),
        ("2026-11-24 07:44:53 something", "07:44:53"),
        ("005 (123.004.000) 2026-11-24 07:44:53 Job terminated.", "07:44:53"),
        ("005 (123.004.000) 2026-11-24 07:44:53.250 Job terminated.", "07:44:53.25"),
        ("11/24/26 07:44:53.123 (pid:17) ZKM: successful mapping", "07:44:53.123"),
        ("11/24/26 07:44:53 ** condor_schedd (CONDOR_SCHEDD) STARTING UP", "07:44:53"),
        (f'{{"at": {at("07:44:53.125")}, "call": "list", "who": "controller"}}', "07:44:53.125"),
        (f'{{"at": {at("07:44:53"):.0f}, "machine": "i-1"}}', "07:44:53"),
    ],
)
def test_each_log_has_its_own_way_to_write_a_time(line: str, clock: str) -> None:
    assert moment(line) == pytest.approx(at(clock), abs=1e-4)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Traceback (most recent call last):",
        "\t(1) Normal termination (return value 0)",
        "2026-13-24 07:44:53 is in no month",
        "2026-11-24 27:44:53 is at no hour",
        "13/24/26 07:44:53 is in no month",
        "07:44:53 is on no day",
        "said on 11/24/26 07:44:53 by somebody",
        '{"machine": "i-1", "at": 1764000000}',
        f"{'x' * 60} 2026-11-24 07:44:53 is far behind",
    ],
)
def test_a_line_that_begins_with_no_time_has_none(line: str) -> None:
    assert moment(line) is None


def test_lines_without_a_time_go_with_the_line_before_them() -> None:
    log = [
        "2026-11-24T07:44:53Z error it fell over\n",
        "Traceback (most recent call last):\n",
        '  File "x.py", line 1\n',
        "2026-11-24T07:44:55Z info it stands again\n",
    ]
    assert list(entries("updraft", log)) == [
        (at("07:44:53"), "updraft", "2026-11-24T07:44:53Z error it fell over"),
        (at("07:44:53"), "updraft", "Traceback (most recent call last):"),
        (at("07:44:53"), "updraft", '  File "x.py", line 1'),
        (at("07:44:55"), "updraft", "2026-11-24T07:44:55Z info it stands again"),
    ]


def test_lines_before_the_first_time_are_left_out() -> None:
    found = list(entries("updraft", ["a banner\n", "\n", "2026-11-24 07:44:53 it begins\n"]))
    assert [text for _, _, text in found] == ["2026-11-24 07:44:53 it begins"]


def test_a_log_without_any_time_has_no_entries() -> None:
    assert list(entries("notes", ["one\n", "two\n"])) == []


def test_colours_are_left_out_of_what_is_written() -> None:
    [(_, _, text)] = entries("updraft", ["\x1b[2m2026-11-24T07:44:53Z\x1b[0m \x1b[1;31mbad\x1b[0m\n"])
    assert text == "2026-11-24T07:44:53Z bad"


def test_a_deed_that_lasts_begins_and_ends() -> None:
    assert list(of_deeds([Deed("cut-from-head", 10.0, 25.0, machine="i-1")])) == [
        (10.0, "CHAOS", "begins: cut-from-head i-1"),
        (25.0, "CHAOS", "ends: cut-from-head i-1"),
    ]


def test_a_deed_of_one_moment_is_said_once() -> None:
    assert list(of_deeds([Deed("job-removed", 10.0, 10.0, job="7.0")])) == [
        (10.0, "CHAOS", "begins: job-removed 7.0")
    ]


def test_a_deed_that_could_not_be_done_says_why() -> None:
    [(_, _, text)] = of_deeds([Deed("disk-full", 10.0, 10.0, failed="no such disk")])
    assert "disk-full" in text
    assert "no such disk" in text


def test_a_finding_stands_where_it_happened() -> None:
    assert list(of_findings([Finding("killed", 12.5, "job 7.0 ran")])) == [
        (12.5, "FINDING", "killed: job 7.0 ran")
    ]


def test_all_logs_become_one_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    (tmp_path / "updraft.log").write_text("2026-11-24T07:44:53.200Z looks\n2026-11-24T07:44:55Z acts\n")
    (tmp_path / "pool" / "SchedLog").write_text("11/24/26 07:44:54 negotiates\n\tfor alice\n")
    (tmp_path / "cloud-events.log").write_text(f'{{"at": {at("07:44:53.100")}, "call": "list"}}\n')
    (tmp_path / "jobs.log").write_text("001 (1.000.000) 2026-11-24 07:44:56 Job executing\n...\n")
    write(tmp_path, [(at("07:44:54.500"), "CHAOS", "begins: crashed i-1")])
    assert [line.partition(": ")[0] for line in lines_of(tmp_path)] == [
        "07:44:53.100 cloud-events.log",
        "07:44:53.200 updraft.log",
        "07:44:54.000 pool/SchedLog",
        "07:44:54.000 pool/SchedLog",
        "07:44:54.500 CHAOS",
        "07:44:55.000 updraft.log",
        "07:44:56.000 jobs.log",
        "07:44:56.000 jobs.log",
    ]
    assert "\tfor alice" in lines_of(tmp_path)[3], "a continuation stays behind its line"


def test_what_is_of_one_moment_keeps_its_order(tmp_path: Path) -> None:
    said: list[Entry] = [(5.0, "b", "first"), (5.0, "a", "second"), (4.0, "c", "before")]
    write(tmp_path, said)
    assert lines_of(tmp_path) == [
        "00:00:04.000 c: before",
        "00:00:05.000 b: first",
        "00:00:05.000 a: second",
    ]


def test_values_and_databases_are_no_logs(tmp_path: Path) -> None:
    for name in ("script.json", "ledger.sqlite"):
        (tmp_path / name).write_text("2026-11-24 07:44:53 in it\n")
    write(tmp_path, [])
    assert lines_of(tmp_path) == []


def test_a_time_line_that_is_written_again_is_not_in_itself(tmp_path: Path) -> None:
    (tmp_path / "updraft.log").write_text("2026-11-24T07:44:53Z looks\n")
    write(tmp_path, [])
    first = lines_of(tmp_path)
    write(tmp_path, [])
    assert lines_of(tmp_path) == first
    assert len(first) == 1


def test_a_log_with_odd_bytes_is_written_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "console").write_bytes(b"2026-11-24 07:44:53 \xff\xfe odd\n")
    write(tmp_path, [])
    [line] = lines_of(tmp_path)
    assert line.endswith("odd")


def test_a_date_in_a_line_of_htcondors_is_not_its_time() -> None:
    assert moment("11/24/26 07:44:53 a token until 2027-01-01 00:00:00") == moment("11/24/26 07:44:53 a")
