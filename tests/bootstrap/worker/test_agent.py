"""The agent of a worker is one process: none of its watchers holds another up, and none is missed."""

import os
import signal
import time
from pathlib import Path

from tests.rigs.agents import LOG, agent, guard_state, guard_told, hanging, lease_told
from tests.waiting import until
from updraft.bootstrap.files.agent.watchers.machine import processes, run


def test_a_lease_ends_in_time_while_the_guards_drain_hangs(tmp_path: Path) -> None:
    guard = guard_told(tmp_path, drain=hanging(tmp_path), settings={"lifetime": 0})
    now, done = time.time(), tmp_path / "done"
    with agent(tmp_path, guard=guard, lease=lease_told(tmp_path, now - 10, now + 1)):
        until(lambda: (tmp_path / "draining").exists(), 30, "the guard drains", every=0.05)
        seen = guard_state(tmp_path)
        until(lambda: done.exists() and "off" in done.read_text(), 30, "the lease powers off", every=0.05)
        assert guard_state(tmp_path) == seen, "the guard's drain still hangs"
    said = (tmp_path / LOG).read_text()
    assert "updraft-agent: powering off: the lease is over" in said
    assert "lifetime over: no new jobs" not in said


def test_a_watcher_that_raises_ends_the_process_with_a_word(tmp_path: Path) -> None:
    guard = guard_told(tmp_path, drain=hanging(tmp_path), settings={"lifetime": 0})
    lease = lease_told(tmp_path, time.time() - 10, time.time() + 3600)
    del lease["settings"]
    with agent(tmp_path, guard=guard, lease=lease) as process:
        assert process.wait(30) == 1
    said = (tmp_path / LOG).read_text()
    assert "updraft-agent: the watcher lease has failed, and all begin again: Traceback" in said
    assert "KeyError: 'settings'" in said


def test_it_ends_when_its_service_is_stopped(tmp_path: Path) -> None:
    """Whatever its threads are at."""
    guard = guard_told(tmp_path, drain=hanging(tmp_path), settings={"lifetime": 0})
    with agent(tmp_path, guard=guard) as process:
        until(lambda: (tmp_path / "draining").exists(), 30, "the guard drains", every=0.05)
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM


def test_a_process_whose_name_is_no_text_is_one_like_any_other() -> None:
    """It is a job's to choose, and would end the agent at each look."""
    comm = Path("/proc/self/comm")
    before = comm.read_bytes()
    try:
        comm.write_bytes(b"\xff\xfe")
        assert processes()[os.getpid()] == "\ufffd\ufffd"
    finally:
        comm.write_bytes(before)


def test_a_command_that_takes_too_long_ends_with_all_that_it_has_begun(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    done, said = run(["sh", "-c", f"sleep 600 & echo $! >{begun}; wait; true"], 1)
    assert (done, said) == (False, "")
    gone = lambda: not Path("/proc", begun.read_text().strip()).exists()  # noqa: E731
    until(gone, 30, "what it has begun ends too", every=0.05)


def test_what_a_command_says_is_one_line_whatever_it_is() -> None:
    assert run(["printf", r"a\n b\377"], 10) == (True, "a b\ufffd")
    assert run(["sh", "-c", "echo no >&2; exit 1"], 10) == (False, "no")
    done, said = run(["/no/such/command"], 10)
    assert not done
    assert "/no/such/command" in said
