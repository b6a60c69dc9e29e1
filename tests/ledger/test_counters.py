"""What `updraft metrics` counts is written with what it counts: once, and for good."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from updraft.core.model import LaunchRecord, LaunchState, MachineRecord, Reason, Resources
from updraft.ledger import Ledger, Reader
from updraft.ledger.counters import BOOT, BUCKET, JOIN, NUMBER, SUM, Count

PLACE = {"class": "work", "cloud": "c1", "market": "spot"}
LAUNCH = LaunchRecord(
    "k1", "c1", "z", "small", "spot", "work", "img", "g1", 3, Resources(2), 0.1, 100.0, LaunchState.INTENDED
)
MACHINE = MachineRecord(
    "i-1", "c1", "k1", "work", "small", "g1", 100.0, market="spot", image="img", seen_at=104.0
)


def values(path: Path, name: str) -> Mapping[tuple[tuple[str, str], ...], float]:
    """As another process reads them."""
    with Reader(path) as reader:
        return reader.counters().get(name, {})


def one(path: Path, name: str, labels: Mapping[str, str]) -> float:
    return values(path, name).get(tuple(sorted(labels.items())), 0.0)


def test_a_launch_is_counted_with_what_it_asked_for_and_what_it_got(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.intend(LAUNCH)
        ledger.outcome("k1", LaunchState.ACCEPTED, ["i-1", "i-2"])
        ledger.outcome("k1", LaunchState.SETTLED, ["i-2"])
    assert one(path, "launches", PLACE) == 1
    assert one(path, "launched_machines_wanted", PLACE) == 3
    assert one(path, "launched_machines", PLACE) == 2
    assert not values(path, "launch_failures")


def test_a_launch_that_fails_is_counted_by_its_code(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for key in ("k1", "k2"):
            ledger.intend(replace(LAUNCH, key=key))
            ledger.outcome(key, LaunchState.REFUSED, error=Reason("quota-exceeded", f"of {key}"))
            ledger.settle([key])
    assert one(path, "launch_failures", {**PLACE, "reason": "quota-exceeded"}) == 2
    assert len(values(path, "launch_failures")) == 1, "a sentence is no label"


def test_a_join_is_counted_once_with_its_times(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    joined = replace(MACHINE, joined_at=131.0)
    with Ledger(path) as ledger:
        ledger.intend(LAUNCH)
        ledger.add([MACHINE])
        ledger.remember([joined])
        ledger.remember([replace(joined, last_claimed_at=140.0)])
    with Ledger(path) as ledger:  # the next controller
        ledger.remember([replace(joined, last_claimed_at=150.0)])
    where = {"class": "work", "cloud": "c1"}
    assert one(path, JOIN + NUMBER, where) == one(path, BOOT + NUMBER, where) == 1
    assert one(path, JOIN + SUM, where) == 31
    assert one(path, BOOT + SUM, where) == 27
    assert one(path, JOIN + BUCKET, {**where, "le": "60"}) == 1
    assert one(path, BOOT + BUCKET, {**where, "le": "30"}) == 1


def test_an_adopted_machine_says_nothing_of_boots(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.add([replace(MACHINE, adopted=True)])
        ledger.remember([replace(MACHINE, adopted=True, joined_at=131.0)])
    assert not values(path, JOIN + NUMBER)


def test_an_end_is_counted_once_by_its_code(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    over = replace(MACHINE, ended_at=300.0, end=Reason("idle-limit", "idle since noon"))
    with Ledger(path) as ledger:
        ledger.add([MACHINE, replace(MACHINE, id="i-2")])
        ledger.remember([over])
        ledger.remember([over])
        ledger.change("c1", ["i-2"], ended_at=310.0)
    assert one(path, "machine_ends", {**PLACE, "reason": "idle-limit"}) == 1
    assert one(path, "machine_ends", {**PLACE, "reason": "ended"}) == 1


def test_jobs_that_are_given_back_are_counted_with_the_event(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.event(1.0, "requeue-jobs", "i-1", Reason("vanished", "gone"), {"jobs": ["1.0", "1.1"]})
        ledger.event(2.0, "joined", "i-1", Reason("joined", "in the pool"))
    assert values(path, "jobs_requeued") == {(("reason", "vanished"),): 2}


def test_what_is_not_kept_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        try:
            with ledger.together():
                ledger.intend(LAUNCH)
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        ledger.count([Count("some", {"a": "b"}, 2.5), Count("some", {"a": "b"})])
    assert not values(path, "launches")
    assert values(path, "some") == {(("a", "b"),): 3.5}


def test_pruning_leaves_what_was_counted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.intend(LAUNCH)
        ledger.outcome("k1", LaunchState.ACCEPTED, ["i-1"])
        ledger.prune(1e9)
        assert ledger.launch("k1") is None
    assert one(path, "launches", PLACE) == 1


def test_a_file_of_an_earlier_updraft_has_counted_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger._connection.execute("DROP TABLE counters")
        ledger._connection.execute("PRAGMA user_version = 4")
    with Reader(path) as reader:
        assert reader.counters() == {}
    with Ledger(path) as ledger:
        ledger.count([Count("some")])
        assert ledger.counters() == {"some": {(): 1.0}}
