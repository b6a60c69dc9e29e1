"""`make hunt`: every generated test gets its share, what is found is said, and so is what was tried."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).parents[1]
TURN = 12  # cases of the slow test, at the most, in one turn
TESTS = f"""
import threading
from hypothesis import assume, given, strategies as st

@given(st.integers())
def test_is_small(number):
    assert number < 1000

@given(st.integers())
def test_is_right(number):
    assume(number % 2)

@given(st.data())
def test_is_drawn(data):
    for _ in range(data.draw(st.integers(0, 2000))):
        data.draw(st.binary(min_size=20))

@given(st.integers())
def test_is_slow(number):
    with open("begun", "a") as file:
        file.write(".")
        cases = file.tell()
    threading.Event().wait(1000 if cases > 2 * {TURN} else 0.05)

def test_generates_nothing():
    raise AssertionError
"""


@pytest.mark.slow
def test_a_hunt_goes_round_and_says_at_its_end_what_it_tried_and_found(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    begun, said = tmp_path / "begun", tmp_path / "said"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.hunt",
        "--hunt=60",
        "--share=0.5",
        "--hunt-seed=7",
    ]
    command += ["--rootdir=.", "--no-summary", "test_it.py"]
    with said.open("w") as file:
        hunting = subprocess.Popen(
            command, cwd=tmp_path, stdout=file, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    until(lambda: begun.exists() and begun.stat().st_size > 2 * TURN, 60, "turns of a slow test")
    assert "number=1000" in said.read_text(), "what is found is said at once"
    hunting.send_signal(signal.SIGTERM)
    assert hunting.wait() == 1
    text = said.read_text()
    assert text.count("FOUND after") == 1, "the same find comes again at each turn"
    assert "reproduce_failure" in text
    assert "ended while under way for" in text
    assert "SEED=7" in text
    _, _, table = text.partition("turns     cases")
    rows = {row[4]: row for row in map(str.split, table.splitlines()) if len(row) > 4 and "::" in row[4]}
    assert set(rows) == {f"test_it.py::test_is_{name}" for name in ("small", "right", "drawn", "slow")}
    assert all(int(row[0]) >= 2 for row in rows.values()), "a slow test keeps no other from its turns"
    assert rows["test_it.py::test_is_small"][-1] == "FOUND"
    assert int(rows["test_it.py::test_is_right"][1]) > 1
    assert int(rows["test_it.py::test_is_right"][2]) > 1, "what was refused is counted"
