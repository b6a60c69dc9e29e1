"""What really was in a pool is kept: jobs, looks, machines, waits, offers; bounded, and as it was written."""

from pathlib import Path

import pytest

from updraft.errors import LedgerError
from updraft.recording.pool_record import (
    DAY,
    PoolLook,
    PoolRecord,
    RecordLimits,
    RecordReader,
    SeenMachine,
    Waited,
)

NAMES = ("GlobalJobId", "QDate", "Owner")
AT = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.sqlite"


def look(at: float, **changes: int) -> PoolLook:
    values = {
        "idle": 3, "running": 1, "wanted": 4, "claimed": 1, "cores": 8, "machines": 2, "others": 1, **changes
    }  # fmt: skip
    return PoolLook(at, acts=False, **values)


def test_jobs_come_back_as_they_were_told(path: Path) -> None:
    with PoolRecord(path) as record:
        assert record.asked_until("head") is None
        record.add_jobs("head", NAMES, [["a", 1, "ada"], ["b", None, "é\ud800"]], [["c", 3, "bob"]], AT)
        record.add_jobs("head", NAMES, [["d", 4, "ada"]], [["e", 5, "bob"]], AT + 300)
        assert record.asked_until("head") == AT + 300
    with RecordReader(path) as reader:
        jobs = list(reader.jobs())
        assert [job["GlobalJobId"] for job in jobs] == ["a", "b", "d"]
        assert "QDate" not in jobs[1]
        assert list(reader.queue()) == [{"GlobalJobId": "e", "QDate": 5, "Owner": "bob"}]
        assert reader.queued() == (1, AT + 300)
    assert path.stat().st_mode & 0o077 == 0


def test_looks_machines_waits_and_offers(path: Path) -> None:
    day = int(AT // DAY)
    with PoolRecord(path) as record:
        for number in range(3):
            at = AT + 60 * number
            seen = [SeenMachine("w1", 7.0, 8, ours=number == 1, first=at, last=at)]
            record.add_look(
                look(at), seen, [Waited(day, "ada", "limit", 60.0, f"now {number}")], {"c1": f"[{number}]"}
            )
    with RecordReader(path) as reader:
        assert [one.at for one in reader.looks(AT, AT + 120)] == [AT, AT + 60]
        assert reader.looks(AT, AT + 1)[0] == look(AT)
        assert reader.span() == (AT, AT + 120)
        assert reader.machines(0, AT * 2) == [SeenMachine("w1", 7.0, 8, True, AT, AT + 120)]
        assert reader.waits(day, day) == [Waited(day, "ada", "limit", 180.0, "now 2")]
        assert reader.offers() == {"c1": "[2]"}


def test_it_is_bounded_in_age_and_number(path: Path) -> None:
    limits = RecordLimits(age=10 * DAY, jobs=5, queued=2, machines=3, users=2)
    with PoolRecord(path, limits) as record:
        for number in range(6):
            record.add_jobs(
                "head", NAMES, [[f"{number}.{job}", 0, "a"] for job in range(2)], [["q", 0, "a"]] * 9, AT
            )
        machines = [SeenMachine(f"w{number}", 1.0, 1, False, AT, AT + number) for number in range(9)]
        waits = [Waited(5, f"user{number}", "limit", 1.0, "") for number in range(4)]
        record.add_look(look(AT), machines, waits, {})
        record.add_look(look(AT - 11 * DAY), [], [], {})
        record.prune(AT)
    with RecordReader(path) as reader:
        assert [job["GlobalJobId"] for job in reader.jobs()] == ["4.0", "4.1", "5.0", "5.1"]
        assert len(list(reader.queue())) == 2
        assert reader.queued()[0] == 9, "how many there were is known all the same"
        assert [one.name for one in reader.machines(0, 2 * AT)] == ["w6", "w7", "w8"]
        assert reader.span() == (AT, AT)
        assert reader.waits(0, 10) == [], "of a day that long ago"
    with PoolRecord(path, limits) as record:
        record.add_look(
            look(AT), [], [Waited(30_000, f"u{number}", "limit", 1.0, "") for number in range(4)], {}
        )
    with RecordReader(path) as reader:
        assert {one.user: one.job_seconds for one in reader.waits(30_000, 30_000)} == {
            "u0": 1,
            "u1": 1,
            "": 2,
        }


@pytest.mark.parametrize("text", [b"no database at all" * 100, b""])
def test_what_is_no_record_is_said_in_one_sentence(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    with pytest.raises(LedgerError, match="can't be used"), RecordReader(path):
        pass


def test_a_record_of_a_newer_updraft_is_left_alone(path: Path) -> None:
    import sqlite3

    PoolRecord(path).close()
    with sqlite3.connect(path) as rows:
        rows.execute("PRAGMA user_version = 99")
    with pytest.raises(LedgerError, match="newer updraft"):
        PoolRecord(path)


def test_a_place_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="can't be used"):
        PoolRecord(tmp_path / "no" / "record.sqlite")
    assert list(tmp_path.iterdir()) == []
