"""What looks show and what schedds say of their jobs is written down; a fault costs only that."""

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.rigs.rig import Rig
from updraft.core.model import Reason
from updraft.daemon import Cycle
from updraft.daemon.records.keeper import LOOK_EVERY, RecordKeeper, opened
from updraft.errors import PoolTimeout
from updraft.recording.pool_record import Fields, PoolRecord, RecordReader

NAMES = ("GlobalJobId", "Owner")


class Schedd:
    """One schedd; `silent` says that it doesn't answer."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.silent = False
        self.rows: list[Fields] = [["head#1.0#5", "ada"]]
        self.closed = False

    def schedds(self, deadline: float) -> tuple[str, ...]:
        return ("head",)

    def jobs(
        self, schedd: str, since: float, most: int, deadline: float
    ) -> tuple[Sequence[Fields], Sequence[Fields]]:
        self.asked.append(since)
        if self.silent:
            raise PoolTimeout("schedd head gave no answer within 60 s")
        return self.rows, [["head#2.0#6", "password=hunter2hunter2"]]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def keeper_of(tmp_path: Path, schedd: Schedd) -> tuple[RecordKeeper, Path]:
    path = tmp_path / "record.sqlite"
    return RecordKeeper(PoolRecord(path), schedd, NAMES, time.time, 300.0), path


def test_each_minute_the_pool_is_written_down(rig: Rig, tmp_path: Path) -> None:
    keeper, path = keeper_of(tmp_path, Schedd())
    rig.pool.queues["schedd"].idle = 8
    daemon = rig.start()
    for _ in range(150):
        keeper.watch(daemon.cycle())
        rig.clock.forward(2)
        rig.pool.negotiate()
    with RecordReader(path) as reader:
        looks = reader.looks(0, rig.clock())
        assert len(looks) == 5
        assert all(two.at - one.at == LOOK_EVERY for one, two in itertools.pairwise(looks))
        assert looks[0].idle == 8
        assert looks[0].wanted == 8
        assert looks[0].machines == 0
        last = looks[-1]
        assert last.acts
        assert last.claimed == 8 <= last.cores
        assert last.others == 0
        assert sum(one.cores for one in reader.machines(0, rig.clock())) == last.cores
        assert "c1" in reader.offers()


def test_what_waits_is_written_down_with_the_reason(rig: Rig, tmp_path: Path) -> None:
    keeper, path = keeper_of(tmp_path, Schedd())
    rig.pool.queues["schedd"].idle = 8
    daemon = rig.start()
    watches = Reason("watching", "it only watches")
    for _ in range(5):
        cycle = daemon.cycle()
        keeper.watch(Cycle(cycle.snapshot, cycle.plan, watches))
        rig.clock.forward(LOOK_EVERY)
    with RecordReader(path) as reader:
        waits = reader.waits(0, 10**6)
        assert sum(one.job_seconds for one in waits) == 8 * 4 * LOOK_EVERY, (
            "the first look says nothing of before"
        )
        assert {one.user for one in waits} == {"alice"}


@pytest.mark.parametrize(
    ("code", "acts"), [("watching", False), ("listening", True), ("second-controller", True)]
)
def test_to_wait_for_another_is_not_to_watch_only(rig: Rig, tmp_path: Path, code: str, acts: bool) -> None:
    keeper, path = keeper_of(tmp_path, Schedd())
    cycle = rig.start().cycle()
    keeper.watch(Cycle(cycle.snapshot, cycle.plan, Reason(code, "it doesn't act")))
    with RecordReader(path) as reader:
        assert [one.acts for one in reader.looks(0, rig.clock() + 1)] == [acts]


def test_jobs_are_asked_for_from_where_the_record_ends(tmp_path: Path) -> None:
    schedd = Schedd()
    keeper, path = keeper_of(tmp_path, schedd)
    begun = time.time()
    keeper.ask()
    schedd.rows = [*schedd.rows, ["head#3.0#7", "grace"]]  # what came late, beside what is known
    keeper.ask()
    assert schedd.asked[0] == pytest.approx(begun - 300, abs=5)
    assert schedd.asked[1] == pytest.approx(begun, abs=5)
    with RecordReader(path) as reader:
        assert [job["Owner"] for job in reader.jobs()] == ["ada", "grace"]
        assert "hunter2" not in str(list(reader.queue()))


def test_a_schedd_that_is_silent_costs_its_jobs_and_is_said_once(tmp_path: Path) -> None:
    schedd = Schedd()
    schedd.silent = True
    keeper, path = keeper_of(tmp_path, schedd)
    with capture_logs() as logs:
        keeper.ask()
        keeper.ask()
    assert len(logs) == 1
    assert "no answer" in logs[0]["event"]
    schedd.silent = False
    keeper.ask()
    with RecordReader(path) as reader:
        assert len(list(reader.jobs())) == 1


def test_its_thread_asks_at_once_and_ends_when_told(tmp_path: Path) -> None:
    schedd = Schedd()
    keeper, _ = keeper_of(tmp_path, schedd)
    keeper.start()
    until = time.monotonic() + 10
    while not schedd.asked and time.monotonic() < until:
        time.sleep(0.01)
    keeper.stop()
    assert schedd.asked
    assert schedd.closed


def test_a_record_that_cannot_be_used_is_none(tmp_path: Path) -> None:
    said: list[str] = []
    assert opened(tmp_path / "no" / "record.sqlite", said.append) is None
    assert "can't be used" in said[0]
