"""The guard ends a machine for each of its reasons, and for none that it hasn't watched itself."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.agents import LOG, agent, guard_state, guard_told
from tests.waiting import until
from updraft.bootstrap.files.agent.watchers import guard
from updraft.bootstrap.files.agent.watchers.machine import load, save, this_boot, uptime

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


def ends(looks: int, passed: float = 10, of: Any = None, **seen: Any) -> str:
    """The verdict after so many looks that see the same."""
    of = of or guard.Guard(SETTINGS, {})
    seen = {"processes": WORKING, "head": True, "boot_failed": False} | seen
    verdict = ""
    for _ in range(looks):
        verdict = of.look(passed, **seen)
    return verdict


def test_a_machine_at_work_stays() -> None:
    assert ends(900) == ""


def test_no_claim_and_no_head_ends_it_at_the_limit_and_not_before() -> None:
    assert ends(9, head=False) == ""
    assert ends(10, head=False) == "no claim and no head for 100 s"


def test_a_claim_keeps_it_though_the_head_is_gone() -> None:
    assert ends(500, head=False, processes=BUSY) == ""


def test_a_head_that_comes_back_starts_the_count_anew() -> None:
    one = guard.Guard(SETTINGS, {})
    assert ends(9, head=False, of=one) == ""
    assert ends(1, of=one) == ""
    assert ends(9, head=False, of=one) == ""


def test_a_head_has_moved_once_it_answers_elsewhere_and_no_longer_where_it_did() -> None:
    with socket.create_server(("127.0.0.2", 0)) as new:
        port = new.getsockname()[1]
        old = socket.create_server(("127.0.0.1", port))
        known, found = guard.reachable([("127.0.0.1", port)]), guard.reachable([("127.0.0.2", port)])
        assert (known, found) == ([("127.0.0.1", port)], [("127.0.0.2", port)])
        assert not guard.has_moved(known, found), "one name with two addresses"
        old.close()
        assert guard.has_moved(known, found)
        assert not guard.has_moved([], found), "it is found for the first time"
        assert not guard.has_moved(known, []), "it is away"
        assert not guard.has_moved(found, found)


def test_its_lifetime_ends_it_even_with_a_claim() -> None:
    assert ends(1049, processes=BUSY) == ""
    assert "lifetime" in ends(1050, processes=BUSY)


def test_its_lifetime_goes_on_after_a_reboot() -> None:
    one = guard.Guard(SETTINGS, {})
    ends(1000, of=one)
    again = guard.Guard(SETTINGS, json.loads(json.dumps(one.state())))
    assert again.over
    assert ends(49, of=again) == ""
    assert "lifetime" in ends(1, of=again)


def test_htcondor_that_never_starts_ends_it_at_the_boot_deadline() -> None:
    assert ends(19, processes=set()) == ""
    assert "boot deadline" in ends(20, processes=set())


def test_a_startd_that_restarts_is_waited_for_and_one_that_ended_is_not() -> None:
    one = guard.Guard(SETTINGS, {})
    ends(5, of=one)
    assert ends(5, of=one, processes={"condor_master"}) == ""
    assert ends(1, of=one) == ""
    assert "startd has ended" in ends(6, of=one, processes={"condor_master"})


def test_a_failed_boot_is_left_on_for_a_while() -> None:
    assert ends(4, processes=set(), boot_failed=True) == ""
    assert "boot has failed" in ends(5, processes=set(), boot_failed=True)


@pytest.mark.parametrize("open_", [True, False])
def test_no_new_job_comes_where_the_metadata_address_stands_open(tmp_path: Path, open_: bool) -> None:
    drained = tmp_path / "drained"
    told = guard_told(
        tmp_path, drain=["sh", "-c", f'echo "$0" >>{drained}'], settings={"failed_boot_after": 1.0}
    )
    (tmp_path / "failed").touch()
    if open_:
        (tmp_path / "open").write_text("no nft\n")
    with agent(tmp_path, guard=told):
        until((tmp_path / "off").exists, 30, "it powers off", every=0.05)
    assert (drained.read_text() if drained.exists() else "") == ("metadata-open\n" if open_ else "")
    assert ("updraft-agent: metadata address open: no new jobs" in (tmp_path / LOG).read_text()) is open_


@given(st.floats(0, 9000, allow_nan=False))
def test_a_pause_of_whatever_length_counts_for_two_looks_without_the_head(pause: float) -> None:
    one = guard.Guard(SETTINGS, {})
    ends(2, of=one)
    assert ends(1, passed=pause, head=False, of=one) == ""


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans(), st.booleans()), max_size=60))
def test_it_never_goes_for_want_of_a_head_sooner_than_that(looks: list[tuple[float, bool, bool]]) -> None:
    one = guard.Guard(SETTINGS, {})
    quiet = 0.0
    for passed, head, claim in looks:
        quiet = 0.0 if head or claim else quiet + passed
        why = one.look(passed, processes=BUSY if claim else WORKING, head=head, boot_failed=False)
        assert quiet >= 100 or "no head" not in why


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_head_is_reachable_when_one_of_them_listens(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert guard.reachable([("127.0.0.1", 1), ("127.0.0.1", port)])
    assert not guard.reachable([("127.0.0.1", 1)])
    assert not guard.reachable([])


def test_the_program_powers_off_by_the_first_command_that_works(tmp_path: Path) -> None:
    (tmp_path / "failed").touch()
    off = [["/no/such/command"], ["false"], ["touch", str(tmp_path / "off")]]
    # Whatever runs on the machine that tests, this is the only reason that can hold.
    told = guard_told(tmp_path, power_off=off, settings={"failed_boot_after": 0.2})
    with agent(tmp_path, guard=told):
        until((tmp_path / "off").exists, 30, "it powers off", every=0.05)
    assert "updraft-agent: powering off: its boot has failed" in (tmp_path / LOG).read_text()
    assert guard_state(tmp_path)["age"] >= 0.2


@pytest.mark.parametrize(("boot", "counts"), [(this_boot(), True), ("another", False)])
def test_an_agent_that_is_started_again_counts_what_it_was_away_for(
    tmp_path: Path, boot: str, counts: bool
) -> None:
    """Otherwise a watcher that fails again and again would keep its machine for ever."""
    told = guard_told(tmp_path)
    save(Path(told["state"]), {"age": 1000.0, "started": 1.0, "up": uptime() - 500, "boot": boot})
    age = lambda: guard_state(tmp_path)["age"]  # noqa: E731
    with agent(tmp_path, guard=told):
        until(lambda: age() > 1000, 30, "it has looked", every=0.05)
    assert (age() >= 1500) is counts


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"age": "x"}', '{"age": 3}', None])
def test_a_spoilt_state_starts_the_count_anew(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)
    assert load(path, guard.KEPT) == {}
    state = {"age": 3.0, "started": 1.0, "up": 4.0, "boot": "b"}
    save(path, state)
    assert load(path, guard.KEPT) == state


def test_closing_is_done_when_we_or_somebody_else_began_it() -> None:
    assert guard.close(["true"])
    assert guard.close(["sh", "-c", "echo error code 10001: Draining already in progress >&2; exit 1"])
    assert not guard.close(["false"])
    assert not guard.close(["/no/such/command"])


@given(st.integers(60, 10**6), st.integers(0, 10**5), st.integers(30, 10**4))
def test_a_machine_ends_before_its_token_does(lifetime: int, drain: int, boot: int) -> None:
    """Tokens aren't renewed: a machine that boots as late as it may still ends by itself before."""
    from tests.rigs.reading import worker
    from updraft.bootstrap.worker.userdata import guard_limits
    from updraft.condor.tokens.workers import life

    spec = worker(lifetime=float(lifetime), drain_deadline=float(drain), boot_deadline=float(boot))
    settings = guard_limits(spec)
    good_for = life(
        lifetime=spec.lifetime, drain_deadline=spec.drain_deadline, boot_deadline=spec.boot_deadline
    )
    drains, powers_off = 60, 60  # as long as the guard lets these take
    late = boot + settings["interval"] + drains + powers_off
    one = guard.Guard(settings, {"started": 1.0})
    left = good_for - late - 1.0
    assert one.look(left, processes=BUSY, head=True, boot_failed=False), "it goes, busy or not"
