"""The guard ends a machine for each of its reasons, and for none that it hasn't watched itself."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.reading import shipped
from tests.waiting import until

GUARD = Path(str(files("updraft.bootstrap").joinpath("files", "guard.py")))
SETTINGS = {
    "interval": 10,
    "lifetime": 10_000,
    "drain_deadline": 500,
    "head_gone_after": 100,
    "boot_deadline": 200,
    "startd_gone_after": 60,
    "failed_boot_after": 50,
}
WORKING = {"condor_master", "condor_startd"}
BUSY = WORKING | {"condor_starter"}


MODULE = shipped("guard")


def ends(looks: int, passed: float = 10, guard: Any = None, **seen: Any) -> str:
    """The verdict after so many looks that see the same."""
    guard = guard or MODULE.Guard(SETTINGS, {})
    seen = {"processes": WORKING, "head": True, "boot_failed": False} | seen
    verdict = ""
    for _ in range(looks):
        verdict = guard.look(passed, **seen)
    return verdict


def test_a_machine_at_work_stays() -> None:
    assert ends(900) == ""


def test_no_claim_and_no_head_ends_it_at_the_limit_and_not_before() -> None:
    assert ends(9, head=False) == ""
    assert ends(10, head=False) == "no claim and no head for 100 s"


def test_a_claim_keeps_it_though_the_head_is_gone() -> None:
    assert ends(500, head=False, processes=BUSY) == ""


def test_a_head_that_comes_back_starts_the_count_anew() -> None:
    guard = MODULE.Guard(SETTINGS, {})
    assert ends(9, head=False, guard=guard) == ""
    assert ends(1, guard=guard) == ""
    assert ends(9, head=False, guard=guard) == ""


def test_a_head_has_moved_once_it_answers_elsewhere_and_no_longer_where_it_did() -> None:
    with socket.create_server(("127.0.0.2", 0)) as new:
        port = new.getsockname()[1]
        old = socket.create_server(("127.0.0.1", port))
        known, found = MODULE.reachable([("127.0.0.1", port)]), MODULE.reachable([("127.0.0.2", port)])
        assert (known, found) == ([("127.0.0.1", port)], [("127.0.0.2", port)])
        assert not MODULE.has_moved(known, found), "one name with two addresses"
        old.close()
        assert MODULE.has_moved(known, found)
        assert not MODULE.has_moved([], found), "it is found for the first time"
        assert not MODULE.has_moved(known, []), "it is away"
        assert not MODULE.has_moved(found, found)


def test_its_lifetime_ends_it_even_with_a_claim() -> None:
    assert ends(1049, processes=BUSY) == ""
    assert "lifetime" in ends(1050, processes=BUSY)


def test_its_lifetime_goes_on_after_a_reboot() -> None:
    guard = MODULE.Guard(SETTINGS, {})
    ends(1000, guard=guard)
    again = MODULE.Guard(SETTINGS, json.loads(json.dumps(guard.state())))
    assert again.over
    assert ends(49, guard=again) == ""
    assert "lifetime" in ends(1, guard=again)


def test_htcondor_that_never_starts_ends_it_at_the_boot_deadline() -> None:
    assert ends(19, processes=set()) == ""
    assert "boot deadline" in ends(20, processes=set())


def test_a_startd_that_restarts_is_waited_for_and_one_that_ended_is_not() -> None:
    guard = MODULE.Guard(SETTINGS, {})
    ends(5, guard=guard)
    assert ends(5, guard=guard, processes={"condor_master"}) == ""
    assert ends(1, guard=guard) == ""
    assert "startd has ended" in ends(6, guard=guard, processes={"condor_master"})


def test_a_failed_boot_is_left_on_for_a_while() -> None:
    assert ends(4, processes=set(), boot_failed=True) == ""
    assert "boot has failed" in ends(5, processes=set(), boot_failed=True)


@pytest.mark.parametrize("open_", [True, False])
def test_no_new_job_comes_where_the_metadata_address_stands_open(tmp_path: Path, open_: bool) -> None:
    done, drained, log = tmp_path / "off", tmp_path / "drained", tmp_path / "log"
    told = {
        "heads": [["127.0.0.1", 1]],
        "state": str(tmp_path / "state.json"),
        "failed": str(tmp_path / "failed"),
        "open": str(tmp_path / "open"),
        "drain": ["sh", "-c", f'echo "$0" >>{drained}'],
        "power_off": [["touch", str(done)]],
        "settings": dict.fromkeys(SETTINGS, 10**6) | {"interval": 0.05, "failed_boot_after": 1.0},
    }
    (tmp_path / "guard.json").write_text(json.dumps(told))
    (tmp_path / "failed").touch()
    if open_:
        (tmp_path / "open").write_text("no nft\n")
    with (
        log.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-I", str(GUARD), str(tmp_path / "guard.json")], stdout=output
        ) as run,
    ):
        try:
            until(done.exists, 30, "it powers off", every=0.05)
        finally:
            run.kill()
    assert (drained.read_text() if drained.exists() else "") == ("metadata-open\n" if open_ else "")
    assert ("metadata address open: no new jobs" in log.read_text()) is open_


@given(st.floats(0, 9000, allow_nan=False))
def test_a_pause_of_whatever_length_counts_for_two_looks_without_the_head(pause: float) -> None:
    guard = MODULE.Guard(SETTINGS, {})
    ends(2, guard=guard)
    assert ends(1, passed=pause, head=False, guard=guard) == ""


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans(), st.booleans()), max_size=60))
def test_it_never_goes_for_want_of_a_head_sooner_than_that(looks: list[tuple[float, bool, bool]]) -> None:
    guard = MODULE.Guard(SETTINGS, {})
    quiet = 0.0
    for passed, head, claim in looks:
        quiet = 0.0 if head or claim else quiet + passed
        why = guard.look(passed, processes=BUSY if claim else WORKING, head=head, boot_failed=False)
        assert quiet >= 100 or "no head" not in why


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_head_is_reachable_when_one_of_them_listens(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert MODULE.reachable([("127.0.0.1", 1), ("127.0.0.1", port)])
    assert not MODULE.reachable([("127.0.0.1", 1)])
    assert not MODULE.reachable([])


def test_the_program_powers_off_by_the_first_command_that_works(tmp_path: Path) -> None:
    done, failed, log = tmp_path / "off", tmp_path / "failed", tmp_path / "log"
    failed.touch()
    told = {
        "heads": [["127.0.0.1", 1]],
        "state": str(tmp_path / "state" / "state.json"),
        "failed": str(failed),
        "open": str(tmp_path / "open"),
        "drain": ["false"],
        "power_off": [["/no/such/command"], ["false"], ["touch", str(done)]],
        # Whatever runs on the machine that tests, this is the only reason that can hold.
        "settings": dict.fromkeys(SETTINGS, 10**6) | {"interval": 0.05, "failed_boot_after": 0.2},
    }
    (tmp_path / "guard.json").write_text(json.dumps(told))
    with (
        log.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-I", str(GUARD), str(tmp_path / "guard.json")], stdout=output
        ) as run,
    ):
        try:
            until(done.exists, 30, "it powers off", every=0.05)
        finally:
            run.kill()
    assert "powering off: its boot has failed" in log.read_text()
    assert json.loads((tmp_path / "state" / "state.json").read_text())["age"] >= 0.2


@pytest.mark.parametrize("content", ["", "[1]", "{", None])
def test_a_spoilt_state_starts_the_count_anew(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)
    assert MODULE.load(path) == {}
    MODULE.save(path, {"age": 3.0})
    assert MODULE.load(path) == {"age": 3.0}


def test_closing_is_done_when_we_or_somebody_else_began_it() -> None:
    assert MODULE.close(["true"])
    assert MODULE.close(["sh", "-c", "echo error code 10001: Draining already in progress >&2; exit 1"])
    assert not MODULE.close(["false"])
    assert not MODULE.close(["/no/such/command"])


@given(st.integers(60, 10**6), st.integers(0, 10**5), st.integers(30, 10**4))
def test_a_machine_ends_before_its_token_does(lifetime: int, drain: int, boot: int) -> None:
    """Tokens aren't renewed: a machine that boots as late as it may still ends by itself before."""
    from tests.rigs.reading import worker
    from updraft.bootstrap.worker.userdata import guard_settings
    from updraft.condor.tokens.workers import life

    spec = worker(lifetime=float(lifetime), drain_deadline=float(drain), boot_deadline=float(boot))
    settings = json.loads(guard_settings(spec))["settings"]
    good_for = life(
        lifetime=spec.lifetime, drain_deadline=spec.drain_deadline, boot_deadline=spec.boot_deadline
    )
    drains, powers_off = 60, 60  # as long as the guard lets these take
    late = boot + settings["interval"] + drains + powers_off
    guard = MODULE.Guard(settings, {"started": 1.0})
    left = good_for - late - 1.0
    assert guard.look(left, processes=BUSY, head=True, boot_failed=False), "it goes, busy or not"
