"""Deadlines by the speed of the machine, quarantine, and what a failed test leaves: how the tests are run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import remains, waiting
from tests.remains import Remains, folder_name, forget_old

ROOT = Path(__file__).parents[1]


# ------------------------------------------------------------------------------------------------ deadlines


@pytest.mark.parametrize(
    ("took", "workers", "factor"),
    [(0.2, 1, 1.0), (0.5, 2, 1.0), (0.5, 4, 2.0), (1.0, 1, 2.0), (1.0, 4, 4.0), (3.0, 4, 6.0)],
)
def test_things_may_take_longer_where_work_does_and_beside_more_workers(
    took: float, workers: int, factor: float
) -> None:
    assert waiting.slowness(took, workers, cores=2) == pytest.approx(factor * max(1, 0.5 / waiting.REFERENCE))


def test_work_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_ROUNDS", 2)
    assert 0.01 < waiting.work() < 12


def test_a_condition_is_asked_once_more_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(waiting.SLOWNESS, "3")
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(waiting.time, "monotonic", lambda: now)
    monkeypatch.setattr(waiting.time, "sleep", sleep)
    assert waiting.until(lambda: now >= 60, 10, "it is late", every=7) == 1
    with pytest.raises(AssertionError, match=r"it is never did not come true within 10 s × 6\.0; at last: 0"):
        waiting.until(lambda: 0, 10, "it is never")
    assert now >= 63 + 60


# -------------------------------------------------------------------------------- how a run tells of failures


INNER = """
import pytest
from tests.remains import leave, watched

@pytest.fixture
def pool(tmp_path):
    with watched(lambda remains: remains.text("pool/said", "all was well")):
        yield
    print("the pool is gone")

@pytest.fixture
def dead():
    with watched(lambda remains: remains.text("head/console", "panic")):
        raise RuntimeError

@pytest.fixture
def broken():
    yield
    assert False

def seconds(request):
    return request.node.get_closest_marker("timeout").args[0]

def test_red(pool):
    assert False

def test_never_up(dead):
    pass

def test_green(pool):
    leave(lambda remains: remains.text("a", "b"))

def test_ledger(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/ledger.db").write_text("pages")
    (tmp_path / "state/cloud.token").write_text("not to be seen")
    assert False

def test_plain(tmp_path):
    assert False

@pytest.mark.quarantined("loses a race")
def test_quarantined():
    assert False

@pytest.mark.quarantined("found, perhaps")
def test_good():
    pass

@pytest.mark.quarantined("ends badly")
def test_end(broken):
    pass

@pytest.mark.integration
def test_real(request):
    assert seconds(request) == 150

@pytest.mark.integration
@pytest.mark.timeout(10)
def test_own(request):
    assert seconds(request) == 15

def test_unreal(request):
    assert request.node.get_closest_marker("timeout") is None
"""


def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *words: str) -> pytest.RunResult:
    """Tests in a process of their own, with the plugins that all tests here have."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv(remains.ROOT, raising=False)
    monkeypatch.setenv(waiting.SLOWNESS, "1.5")
    pytester.makepyfile(test_it=INNER)
    plugins = [word for name in ("quarantine", "remains", "waiting") for word in ("-p", f"tests.{name}")]
    return pytester.runpytest_subprocess(*plugins, "-o", "timeout=100", "-o", "markers=integration", *words)


@pytest.mark.slow
def test_how_a_run_tells_of_failures(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    done = inner(pytester, monkeypatch, "-n", "1")
    done.assert_outcomes(passed=6, failed=3, errors=1, xfailed=2)
    done.stdout.fnmatch_lines(["deadlines are ×3.0, by *"])

    failures = pytester.path / "build/failures"
    names = ["test_it.py-test_ledger", "test_it.py-test_never_up", "test_it.py-test_red"]
    assert sorted(path.name for path in failures.iterdir()) == names
    ledger, dead, red = (failures / name for name in names)
    assert (red / "pool/said").read_text() == "all was well"
    assert (dead / "head/console").read_text() == "panic"
    assert [path.name for path in ledger.rglob("*") if path.is_file()] == ["ledger.db"]
    lines = done.outlines
    assert sorted(lines[-3:]) == [f"what a failed test left: {folder}" for folder in (ledger, dead, red)]
    begins = next(n for n, line in enumerate(lines) if "test_red ___" in line)
    ends = next(n for n, line in enumerate(lines) if n > begins and line.startswith("____"))
    assert lines[ends - 1] == str(red)
    assert "the pool is gone" in lines[begins:ends]


@pytest.mark.slow
def test_a_quarantined_test_is_named_and_fails_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = inner(pytester, monkeypatch, "-k", "quarantined or good or end")
    assert done.ret == 0
    done.stdout.fnmatch_lines(
        [
            "QUARANTINED, failed test_it.py::test_quarantined: loses a race",
            "QUARANTINED, passed test_it.py::test_good: found, perhaps",
            "QUARANTINED, failed test_it.py::test_end: ends badly",
        ],
        consecutive=True,
    )


def test_a_folder_has_an_end_and_no_secrets(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    for name, size in (
        ("log/small", 10),
        ("log/large", 3000),
        ("tokens.d/worker", 5),
        ("passwords.d/POOL", 5),
    ):
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_bytes(b"x" * size)
    (disk / "log/away").symlink_to("/etc/hostname")
    left = Remains(tmp_path / "left", room=1000)
    left.folder("head", disk)
    left.file("gone", disk / "gone")
    left.text("status", "well\n" * 10)
    found = {str(path.relative_to(left.path)) for path in left.path.rglob("*") if path.is_file()}
    assert found == {"head/log/small", "left-out", "status"}
    assert "head/log/large: 3000 bytes\ngone: " in (left.path / "left-out").read_text()
    assert left.said.endswith("well\n")


def test_of_a_long_log_its_end_is_kept_and_a_ledger_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "LARGEST", 4)
    (tmp_path / "log").write_text("beginning, end")
    (tmp_path / "ledger.db-wal").write_text("beginning, end")
    left = Remains(tmp_path / "left")
    left.folder("a", tmp_path, "l*")
    assert (left.path / "a/log").read_text() == " end"
    assert (left.path / "a/ledger.db-wal").read_text() == "beginning, end"


def test_the_newest_folders_stay(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}/pool").mkdir(parents=True)
        os.utime(tmp_path / f"{number}", (number, number))
    forget_old(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]
    forget_old(tmp_path / "none")


def test_a_folders_name_is_a_name_and_each_tests_own() -> None:
    assert folder_name("tests/core/test_a.py::test_b[x/y z]") == "core-test_a.py-test_b-x-y-z"
    assert folder_name("t" * 300 + "a") != folder_name("t" * 300 + "b")
    assert len(folder_name("t" * 300)) < 150


def test_a_rig_that_fails_where_no_test_runs_touches_nothing(tmp_path: Path) -> None:
    """Benchmarks take the rigs too, from the checkout: what lies there is theirs."""
    (tmp_path / "work").write_text("of days")
    rig = "from tests.remains import watched\nwith watched(lambda left: left.text('a', 'b')):\n    1 / 0\n"
    checkout = str(Path(remains.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", rig],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": checkout},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ZeroDivisionError" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
