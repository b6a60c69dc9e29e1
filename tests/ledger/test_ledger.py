"""The ledger: what goes in comes out, whole or not at all, bounded, private, and without secrets."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from updraft.core.model import (
    Annex,
    AnnexOutlook,
    AtWork,
    DrainMode,
    DrainRecord,
    LaunchRecord,
    LaunchState,
    MachineRecord,
    Reason,
    Resources,
    Standstill,
    Untaken,
)
from updraft.core.settings import DAY
from updraft.errors import LedgerError
from updraft.ledger import Ledger, Reader, RequestKind, Retention, annexes
from updraft.ledger.migrations import MIGRATIONS, migrate, version_of
from updraft.ledger.rows import dump, machine_to_doc

NOW = 1_000_000.0
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3b3JrZXIifQ.c2lnbmF0dXJl"  # noqa: S105


def launch(key: str = "k", **changes: object) -> LaunchRecord:
    made = LaunchRecord(
        key, "c1", "z1", "small", "on-demand", "default", "img", "g1", 2, Resources(2, 4096, 100), 0.1, NOW,
        LaunchState.INTENDED,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def machine(name: str = "m1", **changes: object) -> MachineRecord:
    made = MachineRecord(name, "c1", "k", "default", "small", "g1", NOW, Resources(2, 4096, 100), image="img")
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


def test_records_come_back_as_they_were(path: Path) -> None:
    drain = DrainRecord(DrainMode.BUSY, NOW, Reason("lifetime", "old"), NOW + 1, NOW + 2)
    full = machine(drain=drain, wanted_drain=drain, end=Reason("x", "y"), silent_since=3.0, price=0.5)
    with Ledger(path) as ledger:
        ledger.intend(launch())
        ledger.outcome("k", LaunchState.ACCEPTED, ("m1", "m2"))
        ledger.remember((full,))
    with Ledger(path) as ledger:
        view = ledger.view(NOW)
    assert view.launches == (launch(state=LaunchState.ACCEPTED, ids=("m1", "m2")),)
    assert view.machines == (full,)


def test_what_is_remembered_reads_the_same_anew_and_at_the_next_look(path: Path) -> None:
    drain = DrainRecord(DrainMode.EMPTY, NOW, Reason("idle", f"said {TOKEN}"), None, NOW + 2)
    with Ledger(path) as ledger:
        ledger.remember((machine(), machine("m2", end=Reason("x", "y"), gaps=(1.5, 2.0))))
        ledger.view(NOW)
        ledger.remember(
            (machine(last_claimed_at=5.0, job_starts=7), machine("m3", drain=drain, let_go=Reason("l", "g")))
        )
        seen = ledger.view(NOW)
        assert ledger.view(NOW) == seen
        with Reader(path) as reader:
            assert reader.view(NOW) == seen
    by_name = {one.id: one for one in seen.machines}
    assert by_name["m1"] == machine(last_claimed_at=5.0, job_starts=7)
    assert by_name["m2"] == machine("m2", end=Reason("x", "y"), gaps=(1.5, 2.0))
    assert TOKEN not in by_name["m3"].drain.reason.text


def test_groups_that_take_no_room_come_back_as_they_were(path: Path) -> None:
    still = Standstill(NOW - 3, 4, 5, NOW - 900)
    rests = {
        "g": Untaken(2, NOW, NOW + 480.5, 3, (("c1", "i-1"), ("c2", "i-2")), still),
        "h": Untaken(1, NOW - 1, NOW),
    }
    with Ledger(path) as ledger:
        assert ledger.view(NOW).untaken == {}
        ledger.keep_untaken(rests, NOW)
        assert ledger.view(NOW).untaken == rests
    with Reader(path) as reader:
        assert reader.view(NOW).untaken == rests


def test_who_was_at_work_is_kept_in_one_place(path: Path) -> None:
    some = frozenset({("c1", "m1"), ("c1", "m2"), ("c2", "m1")})
    with Ledger(path) as ledger:
        assert ledger.view(NOW).at_work == AtWork(frozenset(), 0.0)
        ledger.keep_at_work(frozenset(), NOW)
        assert ledger.view(NOW).at_work == AtWork(frozenset(), 0.0), "nobody is no news"
        ledger.keep_at_work(some, NOW)
        first = ledger.view(NOW).at_work
        assert first == AtWork(some, NOW)
        ledger.keep_at_work(some, NOW + 2)
        again = ledger.view(NOW + 2).at_work
        assert again is not None
        assert (again.machines, again.at) == (some, NOW + 2)
        with Reader(path) as reader:
            assert reader.view(NOW).at_work == again
    with Ledger(path) as ledger:
        assert ledger.view(NOW).at_work == again
        ledger.keep_at_work(frozenset(), NOW + 4)
        assert ledger.view(NOW).at_work == AtWork(frozenset(), NOW + 4)


def test_what_nobody_has_changed_is_the_same_view_and_the_same_records(path: Path) -> None:
    with Ledger(path) as ledger, Reader(path) as reader:
        ledger.intend(launch())
        ledger.remember((machine(), machine("m2")))
        first, seen = ledger.view(NOW), reader.view(NOW)
        assert ledger.view(NOW) is first
        assert reader.view(NOW) is seen
        later = ledger.view(NOW + 1)
        assert (later.launches is first.launches, later.machines is first.machines) == (True, True)
        ledger.remember((machine("m2", last_claimed_at=3.0),))
        changed = ledger.view(NOW + 1)
        assert changed.machines[0] is first.machines[0]
        assert changed.machines[1].last_claimed_at == reader.view(NOW).machines[1].last_claimed_at == 3.0
        with Ledger(path) as other:  # as a verb does
            other.remember((machine("m3"),))
        assert [one.id for one in ledger.view(NOW + 1).machines] == ["m1", "m2", "m3"]
    with Ledger(path) as ledger:
        assert ledger.view(NOW + 2 * DAY).launches == ledger.view(NOW).launches, "this one has no answer yet"
        ledger.settle(("k",))
        assert ledger.view(NOW + 2 * DAY).launches == ()


def test_a_machine_is_written_as_its_fields_are() -> None:
    drain = DrainRecord(DrainMode.BUSY, NOW, Reason("lifetime", "old"), NOW + 1, NOW + 2)
    full = machine(
        drain=drain, wanted_drain=drain, end=Reason("x", "y"), let_go=Reason("a", "b"), gaps=(1.0,)
    )
    for one in (machine(), full):
        assert machine_to_doc(one) == dump({**asdict(one), "variant": ""})


def test_a_launch_key_is_intended_once(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.intend(launch())
        with pytest.raises(LedgerError, match="twice"):
            ledger.intend(launch(count=9))
        assert ledger.view(NOW).launches[0].count == 2


def test_a_late_outcome_does_not_unsettle(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.intend(launch())
        ledger.settle(("k", "never-heard-of"))
        ledger.outcome("k", LaunchState.ACCEPTED, ("m1",))
        found = ledger.launch("k")
    assert found is not None
    assert (found.state, found.ids) == (LaunchState.SETTLED, ("m1",))


def test_boots_are_learned_from_own_launches_only(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.intend(launch())
        ledger.remember((machine(), machine("m2", launch_key="unknown"), machine("m3", adopted=True)))
        for _ in range(2):  # the second time it has joined already
            ledger.remember(
                machine(name, launch_key=key, adopted=name == "m3", joined_at=NOW + 40)
                for name, key in (("m1", "k"), ("m2", "unknown"), ("m3", "k"))
            )
        assert ledger.view(NOW).boots == {("img", "small"): (40.0,)}


def test_many_that_join_at_once_teach_one_boot_each(path: Path) -> None:
    names = [f"m{number}" for number in range(60)]
    with Ledger(path) as ledger:
        ledger.intend(launch(count=60))
        ledger.remember(machine(name) for name in names)
        for busy in (10.0, 20.0, 30.0):
            ledger.view(NOW)
            ledger.remember(machine(name, joined_at=NOW + 60, last_claimed_at=busy) for name in names)
    with sqlite3.connect(path) as rows:
        assert rows.execute("SELECT count(*), min(seconds), max(seconds) FROM boots").fetchone() == (
            60,
            60,
            60,
        )


def test_the_view_holds_what_lives_and_the_last_day(path: Path) -> None:
    old = NOW - 2 * DAY
    with Ledger(path) as ledger:
        ledger.intend(launch("old-settled", asked_at=old, state=LaunchState.SETTLED))
        ledger.intend(launch("old-unknown", asked_at=old, state=LaunchState.UNKNOWN))
        ledger.intend(launch("new-refused", state=LaunchState.REFUSED))
        ledger.remember(
            (machine("old-live"), machine("old-end", ended_at=old), machine("new-end", ended_at=NOW))
        )
        view = ledger.view(NOW)
    assert {row.key for row in view.launches} == {"old-unknown", "new-refused"}
    assert {row.id for row in view.machines} == {"old-live", "new-end"}


def test_together_is_all_or_nothing(path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(ZeroDivisionError), ledger.together():  # noqa: PT012
            ledger.intend(launch())
            ledger.remember((machine(),))
            raise ZeroDivisionError
        view = ledger.view(NOW)
        assert (view.launches, view.machines) == ((), ())
        ledger.intend(launch())  # and it still works
        assert len(ledger.view(NOW).launches) == 1


def test_events_page_and_filter(path: Path) -> None:
    with Ledger(path) as ledger:
        for number in range(5):
            kind = "drain" if number % 2 else "launch"
            ledger.event(NOW + number, kind, f"m{number}", Reason("c", f"t{number}"), {"n": number})
    with Reader(path) as reader:
        assert [event.text for event in reader.events(limit=2)] == ["t3", "t4"]
        first = reader.events(limit=5)[0]
        assert [event.text for event in reader.events(after=first.id, limit=2)] == ["t1", "t2"]
        assert [event.detail["n"] for event in reader.events(kinds=("drain",))] == [1, 3]
        assert [event.kind for event in reader.events(subject="m4")] == ["launch"]


def test_requests_wait_until_they_are_done(path: Path) -> None:
    with Ledger(path) as ledger:
        number = ledger.request(NOW, "root", RequestKind.TERMINATE, "m1", kill_jobs=True)
        [request] = ledger.requests()
        assert (request.id, request.machine, request.kill_jobs) == (number, "m1", True)
        assert ledger.request_outcome(number) is None
        ledger.done(number, "taken up", NOW)
        assert ledger.requests() == ()
        assert ledger.request_outcome(number) == "taken up"


def test_no_secret_stays(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.keep_console("c1", "m1", f"token {TOKEN} and\n-----BEGIN RSA PRIVATE KEY-----\nabc", NOW)
        ledger.event(NOW, "failed", "m1", Reason("x", f"said {TOKEN}"), {"also": TOKEN})
        ledger.intend(launch(error=Reason("x", TOKEN)))
        ledger.save_cycle({"text": TOKEN}, NOW)
        kept = ledger.console("m1")
    assert kept is not None
    assert "abc" not in kept
    raw = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert TOKEN.encode() not in raw


def test_only_the_owner_may_read_it(path: Path) -> None:
    old = os.umask(0)
    try:
        with Ledger(path) as ledger:
            ledger.intend(launch())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(old)
    assert len(modes) > 1
    assert set(modes.values()) == {0o600}


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="can't be opened"):
        Ledger(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_file_is_named_with_the_way_out(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="move the file away") as error:
        Ledger(path)
    assert str(path) in str(error.value)


def test_a_damaged_row_is_damage(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.remember((machine(),))
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE machines SET doc = '{\"half\": '")
    raw.close()
    with Ledger(path) as ledger, pytest.raises(LedgerError, match="damaged"):
        ledger.view(NOW)


def test_an_annex_whose_row_cannot_be_read_is_left_out_and_named(path: Path) -> None:
    with Ledger(path) as ledger:
        for name in ("odd", "sane"):
            annexes.create(
                ledger, Annex(name, "eve", "default", 1, 0, NOW + 3600, 600.0), "eve", "#!/bin/sh\n"
            )
        layer = ledger.annexes()[0].layer
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE annexes SET doc = '{\"half\": ' WHERE name = 'odd'")
    raw.close()
    with Ledger(path) as ledger:
        assert [one.name for one in ledger.annexes()] == ["sane"]
        assert ledger.unread_annexes() == ("odd",)
        annexes.forget(
            ledger, [AnnexOutlook("sane", "over", Reason("over", "none is left"), forget=True)], NOW
        )
        assert annexes.layer_text(path, layer), "it may be that of the one that can't be read"
    with Reader(path) as reader:
        assert reader.unread_annexes() == ("odd",)


def test_a_newer_ledger_is_refused(path: Path) -> None:
    Ledger(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()
    for opens in (Ledger, Reader):
        with pytest.raises(LedgerError, match="newer updraft"):
            opens(path)


def test_a_migration_is_applied_whole_or_not_at_all() -> None:
    rows = sqlite3.connect(":memory:", isolation_level=None)
    broken = (("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "CREATE NONSENSE"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(rows, "test", broken)
    tables = {name for (name,) in rows.execute("SELECT name FROM sqlite_master")}
    assert (version_of(rows), tables) == (1, {"a"})
    migrate(rows, "test", (broken[0], ("CREATE TABLE b (x)",)))
    assert version_of(rows) == 2
    rows.close()


def test_wishes_are_read_from_a_file_that_no_newer_daemon_has_opened(path: Path) -> None:
    path.parent.mkdir()
    raw = sqlite3.connect(path, isolation_level=None)
    migrate(raw, "test", MIGRATIONS[:1])
    raw.execute(
        "INSERT INTO requests (at, who, kind, machine, kill_jobs) VALUES (1.0, 'me', 'drain', 'i-1', 1)"
    )
    raw.close()
    with Reader(path) as reader:
        [request] = reader.requests()
    assert (request.machine, request.kill_jobs, request.detail) == ("i-1", True, {})


def test_the_newest_version_is_reached(path: Path) -> None:
    Ledger(path).close()
    rows = sqlite3.connect(path)
    assert version_of(rows) == len(MIGRATIONS)
    rows.close()


def test_a_reader_needs_a_ledger(path: Path) -> None:
    with pytest.raises(LedgerError, match="updraft run"):
        Reader(path)
    path.parent.mkdir()
    path.touch()
    with pytest.raises(LedgerError, match="empty"):
        Reader(path)


def test_a_reader_sees_the_writer_at_work_and_can_not_write(path: Path) -> None:
    with Ledger(path) as ledger, Reader(path) as reader:
        assert reader.last_cycle() is None
        ledger.save_cycle({"at": NOW}, NOW)
        assert reader.last_cycle() == {"at": NOW}
        with pytest.raises(sqlite3.OperationalError):
            reader._connection.execute("DELETE FROM notes")


def test_reading_needs_no_pydantic() -> None:
    code = "import sys, updraft.ledger; sys.exit(any(m in sys.modules for m in ('pydantic', 'click')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_threads_share_one_writer(path: Path) -> None:
    with Ledger(path) as ledger:

        def write(part: int) -> None:
            for number in range(20):
                ledger.event(NOW, "launch", f"{part}-{number}", Reason("c", "t"))

        threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.events()) == 80


def test_a_change_is_made_to_what_is_written_down_by_then(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.remember((machine(), machine(cloud="c2")))
        late = machine()  # as somebody knew it who writes only now
        ledger.change("c1", ("m1", "unknown"), joined_at=NOW + 5)
        ledger.change("c1", ("m1",), last_claimed_at=NOW + 6)
        ledger.add((late, machine("m2")))
        assert ledger.record("c1", "m1") == machine(joined_at=NOW + 5, last_claimed_at=NOW + 6)
        assert ledger.record("c2", "m1") == machine(cloud="c2")
        assert ledger.record("c1", "m2") == machine("m2")
        assert ledger.record("c1", "unknown") is None


@pytest.mark.slow
def test_a_year_leaves_it_bounded(path: Path) -> None:
    keep = Retention(events=300, ended=60, consoles=5, boots=10, kinds=4, requests=6)
    sizes = []
    with Ledger(path, keep) as ledger:
        ledger.intend(launch("open", asked_at=NOW - 500 * DAY, state=LaunchState.UNKNOWN))
        ledger.remember((machine("alive"),))
        ended_as = (LaunchState.SETTLED, LaunchState.ACCEPTED)
        for day in range(365):
            now = NOW + day * DAY
            with ledger.together():
                for number in range(10):
                    name = f"{day}-{number}"
                    ledger.intend(launch(name, asked_at=now, state=ended_as[number % 2]))
                    ledger.remember((machine(name, launch_key=name, requested_at=now),))
                    ended = machine(
                        name, launch_key=name, requested_at=now, joined_at=now + 1, ended_at=now + 2
                    )
                    ledger.remember((ended,))
                    ledger.event(now, "launch", name, Reason("c", "t" * 100))
                    ledger.keep_console("c1", name, "x" * 1000, now)
                    ledger.learn(name, "[]", now)
                    ledger.done(ledger.request(now, "root", RequestKind.DRAIN, name), "done", now)
                ledger.prune(now)
            sizes.append(path.stat().st_size)
        now = NOW + 364 * DAY
        view = ledger.view(now)
        rows = {
            table: ledger._connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("events", "machines", "launches", "consoles", "boots", "kinds", "requests")
        }
    assert rows["events"] <= 310
    assert rows["consoles"] == 5
    assert rows["boots"] <= 10
    assert rows["kinds"] == 4
    assert rows["requests"] == 6
    assert rows["machines"] <= 61 + 10
    assert rows["launches"] <= 61 + 10
    assert {"alive"} <= {row.id for row in view.machines}
    assert {"open"} <= {row.key for row in view.launches}
    assert sizes[-1] <= 1.2 * max(sizes[60:120])


def test_an_accepted_launch_of_long_ago_is_not_looked_at_any_more(path: Path) -> None:
    """Its machines have their own records; only what has no answer yet counts whatever its age."""
    with Ledger(path) as ledger:
        for state in LaunchState:
            ledger.intend(launch(f"old-{state}", asked_at=NOW - 2 * DAY, state=state))
            ledger.intend(launch(f"new-{state}", asked_at=NOW - 60, state=state))
        seen = {record.key for record in ledger.view(NOW).launches}
    assert {key for key in seen if key.startswith("old")} == {"old-intended", "old-unknown"}
    assert len(seen) == 2 + len(LaunchState)
