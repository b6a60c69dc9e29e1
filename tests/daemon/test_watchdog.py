"""systemd is told that the controller lives as long as all of it moves, and hears nothing once it doesn't."""

import faulthandler
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import until
from updraft.act.lanes import UnderWay
from updraft.clouds.openstack.client import CONNECT_TIMEOUT, READ_TIMEOUT
from updraft.daemon.election import Rhythm
from updraft.daemon.notify import notifier
from updraft.daemon.preparing import PATIENCE as JUDGE
from updraft.daemon.watchdog import CALL, LANE, LOOP, Heartbeat, Watchdog, interval, of_lanes, standing_still
from updraft.observe.observer import Deadlines

ROOT = Path(__file__).parents[2]
CONFIG = """
[pool]
name = "test"
state_dir = "{state}"
collector = "127.0.0.1:1"
trust_domain = "test"
uid_domain = "test"
announce = "0.2s"
[clouds.c1]
driver = "fake"
[classes.default]
image = "img"
min = 1
[timings]
cycle = "1s"
"""
PATIENCE = 90.0
EVERY = 4.0  # so that a thread which has no turn for some seconds fails nothing


# ----------------------------------------------------------------------------------------- what stands still


@given(
    st.lists(st.builds(Heartbeat, st.text(max_size=3), st.floats(0, 1e6), st.floats(0, 1e6)), max_size=5),
    st.floats(0, 1e6),
)
def test_that_is_what_has_not_moved_for_longer_than_it_may(beats: list[Heartbeat], now: float) -> None:
    still = standing_still(beats, now)
    assert all((now - beat.at > beat.within) is (beat in still) for beat in beats)
    moved = [Heartbeat(beat.name, now, beat.within) for beat in beats]
    assert standing_still(moved, now) == ()


def test_a_task_for_many_machines_may_take_a_call_for_each() -> None:
    one, many = of_lanes((UnderWay("c1", "launch k", 100.0, 1), UnderWay("c1", "tag c1", 100.0, 500)))
    assert standing_still((one, many), 100.0 + LANE + CALL) == ()
    assert standing_still((one, many), 101.0 + LANE + CALL) == (one,)
    assert standing_still((one, many), 101.0 + LANE + 500 * CALL) == (one, many)


# ---------------------------------------------------------------------------------------------- the protocol


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "7"}, 0.5),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": ""}, None),
    ],
)
def test_whether_and_how_often_systemd_wants_to_hear(
    environment: dict[str, str], seconds: float | None
) -> None:
    assert interval(environment, pid=7) == seconds


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told_at_its_socket(tmp_path: Path, kind: str) -> None:
    name = f"updraft-{os.getpid()}-{time.monotonic_ns()}"
    path = str(tmp_path / "notify") if kind == "path" else f"@{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(path.replace("@", "\0"))
        ear.settimeout(10)
        notifier({"NOTIFY_SOCKET": path})("READY=1")
        assert ear.recv(64) == b"READY=1"
    notifier({"NOTIFY_SOCKET": path})("READY=1")  # nobody listens any more
    notifier({})("READY=1")


@pytest.mark.parametrize("driver", ["ec2", "local", "openstack"])
def test_no_call_to_a_cloud_may_take_longer_than_the_bounds_say(driver: str) -> None:
    settings = import_module(f"updraft.clouds.{driver}.settings").Settings
    assert [one.le for one in settings.model_fields["timeout"].metadata if hasattr(one, "le")] == [50]
    # With the connection, after credentials and the API's version: see `openstack/client.py`.
    assert CALL >= (50 + CONNECT_TIMEOUT) + 2 * (READ_TIMEOUT + CONNECT_TIMEOUT)
    assert CALL >= 2 * (READ_TIMEOUT + CONNECT_TIMEOUT) + 2 * (READ_TIMEOUT + CONNECT_TIMEOUT)


def test_a_turn_of_the_loop_has_twice_the_time_of_all_that_it_waits_for() -> None:
    look, rhythm = Deadlines(), Rhythm()
    waits = look.pool + 2 * look.demand + look.cloud + JUDGE + 2 * 10.0 + 10 * rhythm.deadline
    assert 2 * waits <= LOOP


def test_what_moves_again_is_said_to_live_again() -> None:
    said, tasks, looks = list[str](), list[UnderWay](), list[float]()

    def under_way() -> tuple[UnderWay, ...]:
        looks.append(time.monotonic())
        return tuple(tasks)

    with Watchdog(under_way, said.append, 0.2) as watchdog:

        def looked(times: int) -> int:
            """How much was said by the time that it has looked so many times more."""
            watchdog.beat()
            more = len(looks) + times
            until(lambda: len(looks) >= more, 20, f"it looks {times} times", every=0.01)
            return len(said)

        assert looked(4) > 2
        tasks.append(UnderWay("c1", "launch k", time.monotonic() - 2 * (LANE + CALL), 1))
        heard = looked(2)  # the first may have been under way
        assert looked(5) == heard
        tasks.clear()
        assert looked(3) > heard
    assert set(said) == {"WATCHDOG=1"}


def test_the_timer_for_the_stacks_runs_before_anybody_may_keep_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds: done.append(f"{seconds:g} s"))
    held = threading.Event()

    def under_way() -> tuple[UnderWay, ...]:
        held.wait(20)
        return ()

    with Watchdog(under_way, done.append, 4.0):
        assert done == ["3 s"]  # though its thread was held up
        held.set()
        until(lambda: "WATCHDOG=1" in done, 20, "a ping", every=0.01)
    assert done[:3] == ["3 s", "3 s", "WATCHDOG=1"]


def test_nobody_who_does_not_ask_is_pinged() -> None:
    said: list[str] = []
    with Watchdog(tuple, said.append, None) as watchdog:
        watchdog.beat()
    assert said == []


# ------------------------------------------------------------------------------------------- a real process


class Systemd:
    """What systemd would hear and read of a daemon that it has started with a watchdog."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.log = folder / "log"
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.bind(str(folder / "notify"))
        config = folder / "updraft.toml"
        config.write_text(CONFIG.format(state=folder / "state"))
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": str(folder / "notify"),
            "WATCHDOG_USEC": str(int(EVERY * 1e6)),
        }
        with self.log.open("w") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, "-m", "tests.rigs.daemonprocess", str(config), fault],
                cwd=ROOT, env=environment, stdout=log, stderr=log,
            )  # fmt: skip

    def hear(self, seconds: float) -> str:
        """The next word within so many seconds; empty where none came."""
        ready, _, _ = select.select([self.ear], [], [], seconds)
        return self.ear.recv(4096).decode() if ready else ""

    def hear_until(self, word: str) -> None:
        until = time.monotonic() + PATIENCE
        while (heard := self.hear(until - time.monotonic())) != word:
            assert heard, f"never told {word}:\n{self.text}"

    def pings(self, number: int) -> None:
        for _ in range(number):
            self.hear_until("WATCHDOG=1")

    def read_until(self, word: str) -> None:
        until = time.monotonic() + PATIENCE
        while word not in self.text:
            assert time.monotonic() < until, f"the log never said {word!r}:\n{self.text}"
            self.hear(0.1)

    def silence(self, seconds: float) -> None:
        """What was said is over, and nothing more comes."""
        while self.hear(0):
            pass
        assert self.hear(seconds) == ""

    @property
    def text(self) -> str:
        return self.log.read_text()


@contextmanager
def started(folder: Path, fault: str = "") -> Iterator[Systemd]:
    systemd = Systemd(folder, fault)
    try:
        yield systemd
    finally:
        systemd.daemon.kill()
        systemd.daemon.wait()
        systemd.ear.close()


@pytest.mark.slow
def test_a_daemon_says_that_it_is_ready_that_it_lives_and_that_it_stops(tmp_path: Path) -> None:
    with started(tmp_path) as systemd:
        systemd.hear_until("READY=1")
        systemd.pings(2)
        systemd.read_until("1 of 1 accepted")
        systemd.pings(2)
        systemd.daemon.send_signal(signal.SIGTERM)
        systemd.hear_until("STOPPING=1")
        assert systemd.daemon.wait(PATIENCE) == 0
        assert "stands still" not in systemd.text
        assert "Thread 0x" not in systemd.text


@pytest.mark.slow
def test_a_controller_that_waits_for_another_lives_too(tmp_path: Path) -> None:
    with started(tmp_path, "standby") as systemd:
        systemd.hear_until("READY=1")
        systemd.read_until("the controller older on elsewhere acts for this pool")
        systemd.pings(2)


@pytest.mark.slow
def test_a_daemon_whose_state_directory_was_taken_away_ends(tmp_path: Path) -> None:
    """Started again, it is as after the loss of its ledger; going on, it would speak under another's name."""
    with started(tmp_path) as systemd:
        systemd.read_until("1 of 1 accepted")
        (tmp_path / "state").rename(tmp_path / "aside")
        assert systemd.daemon.wait(PATIENCE) == 1
        assert "the state directory was removed or replaced while this controller ran" in systemd.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "who", "where"),
    [("lane", "lane c1: launch", "in mint_token"), ("loop", "the loop", "in stuck_plan")],
)
def test_what_stands_still_has_its_stacks_logged_and_then_there_is_silence(
    tmp_path: Path, fault: str, who: str, where: str
) -> None:
    with started(tmp_path, fault) as systemd:
        systemd.hear_until("READY=1")
        systemd.pings(2)
        systemd.read_until("stands still for longer than it may")
        systemd.silence(EVERY)
        said = systemd.text
        assert f"than it may: {who}" in said
        assert said.index(where) < said.index("stands still")
        # Of each thread once, and not again at each look.
        assert said.count(where) == 1
        assert said.count("stands still") == 1
        assert systemd.daemon.poll() is None, "to end it is systemd's"


@pytest.mark.slow
def test_a_process_that_runs_no_python_any_more_has_its_stacks_logged_too(tmp_path: Path) -> None:
    with started(tmp_path, "python") as systemd:
        systemd.hear_until("READY=1")
        systemd.read_until("in held_plan")
        systemd.silence(EVERY)
        assert systemd.text.count("in held_plan") == 1
