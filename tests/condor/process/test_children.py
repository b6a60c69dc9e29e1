"""Children: deadlines, deaths, and that none outlives its parent."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.rigs.pools.livepool import wait_for
from updraft.condor.access import PoolAccess, config_lines, environment
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.children import Children, prepare
from updraft.condor.process.serving import tidy
from updraft.condor.process.tools import Tools
from updraft.errors import PoolDenied, PoolError, PoolTimeout

PARENT = """
import ctypes, os
from updraft.condor.process.children import Children, expect_sudden_death
def hold():
    print("held", flush=True)
    ctypes.PyDLL(None).sleep(60)  # a PyDLL's functions keep the interpreter to themselves
if __name__ == "__main__":
    expect_sudden_death()
    children = Children({})
    print(children.call("a", 30, os.getpid), flush=True)
    children.call("a", 60, hold)
"""


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    made = Children({"UPDRAFT_MARK": "seen"})
    yield made
    made.close()


def test_the_child_of_a_schedd_that_left_for_good_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("updraft.condor.pool._LEFT", 0.0)
    names: list[tuple[str, ...]] = [("one", "two"), ("two",)]
    with HTCondorPool(PoolAccess("test", "127.0.0.1:1")) as pool:
        call = pool._children.call
        pids = {name: call(f"schedd {name}", 30, os.getpid) for name in names[0]}
        monkeypatch.setattr(pool._children, "call", lambda *_: names.pop(0))
        for _ in range(2):
            pool.schedds(10)
        assert not Path(f"/proc/{pids['one']}").exists()
        assert Path(f"/proc/{pids['two']}").exists()


def deny() -> None:
    raise PoolDenied("no")


def test_once_closed_it_starts_no_child_any_more() -> None:
    closed = Children({})
    pid = closed.call("a", 30, os.getpid)
    closed.close()
    with pytest.raises(PoolError):
        closed.call("a", 30, os.getpid)
    assert not Path(f"/proc/{pid}").exists()


def test_a_child_that_died_before_a_call_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken: Future[int] = Future()
    broken.set_exception(BrokenProcessPool("All workers expired"))
    made = Children({})
    monkeypatch.setattr(made, "_pool", lambda _source: Mock(schedule=Mock(return_value=broken)))
    with pytest.raises(PoolError, match=r"^the process that asked a died$"):
        made.call("a", 30, os.getpid)


def test_a_child_answers_with_its_own_environment(children: Children) -> None:
    pid = children.call("a", 30, os.getpid)
    assert pid != os.getpid()
    assert children.call("a", 30, os.getenv, "UPDRAFT_MARK") == "seen"
    assert children.call("a", 30, os.getpid) == pid
    assert children.call("a", 30, signal.getsignal, signal.SIGINT) == signal.SIG_IGN


def test_a_child_has_the_environment_of_now_whoever_has_forked_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for now in ("one", "two", None):
        if now is None:
            monkeypatch.delenv("UPDRAFT_NOW")
        else:
            monkeypatch.setenv("UPDRAFT_NOW", now)
        made = Children({})
        assert made.call("a", 30, os.getenv, "UPDRAFT_NOW") == now
        made.close()


def test_a_slow_source_is_killed_and_replaced_and_others_go_on(children: Children) -> None:
    slow, other = children.call("a", 30, os.getpid), children.call("b", 30, os.getpid)
    with pytest.raises(PoolTimeout):
        children.call("a", 0.3, time.sleep, 60)
    wait_for("the slow child is gone", lambda: not Path(f"/proc/{slow}").exists(), 10)
    assert children.call("b", 30, os.getpid) == other
    assert children.call("a", 30, os.getpid) != slow


def slowly(environment: Mapping[str, str]) -> None:
    """How a child begins where many others want the processor."""
    time.sleep(2.0)
    prepare(environment)


@pytest.mark.slow
def test_what_a_child_takes_to_begin_is_no_silence_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a source that is late once is asked by a new child, which is late too, and so for ever."""
    monkeypatch.setattr("updraft.condor.process.children.prepare", slowly)
    made = Children({})
    try:
        first = made.call("a", 1.5, os.getpid)
        with pytest.raises(PoolTimeout, match=r"^a gave no answer within 0\.3 s$"):
            made.call("a", 0.3, time.sleep, 60)
        assert made.call("a", 1.5, os.getpid) != first
    finally:
        made.close()


def test_a_child_that_does_not_begin_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("updraft.condor.process.children.prepare", slowly)
    monkeypatch.setattr("updraft.condor.process.children._BEGIN", 0.2)
    made = Children({})
    try:
        with pytest.raises(PoolTimeout, match=r"^the process that asks a did not begin within 0\.2 s$"):
            made.call("a", 30, os.getpid)
    finally:
        made.close()


def test_errors_and_deaths_come_back_as_errors(children: Children) -> None:
    with pytest.raises(PoolDenied):
        children.call("a", 30, deny)
    with pytest.raises(PoolError, match="died"):
        children.call("a", 30, os._exit, 3)
    assert children.call("a", 30, os.getpid)


@pytest.mark.slow
def test_no_child_outlives_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    pipe, temporary = subprocess.PIPE, Path(tempfile.mkdtemp(prefix="updraft-"))  # a socket's path is short
    with subprocess.Popen(
        [sys.executable, script],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "held\n"
        assert Path(f"/proc/{child}").exists()
        assert list(temporary.glob("pymp-*/*"))
        parent.kill()
        assert parent.stderr.read() == "", "until all that had it open has ended"
    wait_for("the child is gone", lambda: not Path(f"/proc/{child}").exists(), 10)
    wait_for("so is the server's folder", lambda: not list(temporary.iterdir()), 10)
    temporary.rmdir()


def test_the_folder_of_a_starter_that_lives_is_there_for_its_next_server(tmp_path: Path) -> None:
    sock = tmp_path / "pymp-1" / "listener-1"
    sock.parent.mkdir()
    sock.touch()
    tidy(sock, os.getpid(), os.getppid())
    assert sock.parent.exists()
    tidy(sock, os.getpid(), starter=0)
    assert not sock.parent.exists()


def test_a_tool_has_a_deadline_and_bounded_output() -> None:
    tools = Tools((), {"MARK": "m"}, "cm")
    assert tools.run(["sh", "-c", "echo $MARK"], 10) == "m\n"
    assert len(tools.run(["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"], 10)) == 65536
    with pytest.raises(PoolTimeout):
        tools.run(["sleep", "60"], 0.2)
    with pytest.raises(PoolError, match="install"):
        tools.run(["no-such-tool-of-condor"], 1)


def test_a_tool_that_is_too_late_is_ended_with_its_children(tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", tmp_path / "done"
    with pytest.raises(PoolTimeout):
        Tools((), {}, "cm").run(["sh", "-c", f"(echo $$ >{begun}; sleep 15; >{done}) & wait"], 1.0)
    assert begun.exists()
    assert not done.exists(), "it was waited for until its child had ended by itself"


def test_a_private_configuration(tmp_path: Path) -> None:
    access = PoolAccess("p", "cm.test", tmp_path / "tokens", "dom")
    path = Path(environment(access, tmp_path)["CONDOR_CONFIG"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert "COLLECTOR_HOST = cm.test" in path.read_text()
    assert environment(PoolAccess("p"), tmp_path) == {}
    assert environment(PoolAccess("p", condor_config=Path("/x")), tmp_path) == {"CONDOR_CONFIG": "/x"}
    with pytest.raises(PoolError):
        config_lines(PoolAccess("p", "cm\nALLOW_WRITE = *"))


def test_a_child_that_was_begun_is_the_one_that_answers(children: Children) -> None:
    children.begin("early")
    pid = children.call("early", 30, os.getpid)
    children.begin("early")  # there already: nothing is put in anybody's way
    assert children.call("early", 30, os.getpid) == pid
