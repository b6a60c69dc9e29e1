"""The whole loop in virtual time: growing, shrinking, dying at every step, and being one of two."""

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.rigs.pools.virtualpool import Clock, VirtualPool
from tests.rigs.rig import POOL, Rig, policy
from tests.waiting import until
from updraft.condor.demand.groups import left_out
from updraft.core.model import DrainMode, Launch, Plan, Reason, ScheddView, Snapshot
from updraft.core.plan import plan
from updraft.core.settings import Policy
from updraft.daemon import Daemon, LeaderElection, StateLock, Switch, run_once
from updraft.daemon.election import Rhythm
from updraft.errors import AuthFailed, ConfigError, ProblemFound, StateLost
from updraft.ledger import RequestKind
from updraft.watching.sentences import cloud_line


class Killed(BaseException):
    """kill -9."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def kinds(rig: Rig) -> list[str]:
    assert rig.ledger is not None
    return [event.kind for event in rig.ledger.events()]


def test_it_grows_with_the_queue_and_shrinks_to_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 8
    daemon = rig.start()
    rig.turn(daemon, 30)
    assert rig.alive()
    assert rig.pool.queues["schedd"].idle == 0
    rig.pool.finish()
    rig.turn(daemon, 120)
    assert rig.alive() == []
    assert rig.pool.killed_jobs == 0
    assert set(kinds(rig)) >= {"launch", "drain", "terminate"}
    assert rig.ledger is not None
    assert rig.ledger.view(rig.clock()).boots


def test_the_log_says_in_words_what_is_done_to_whom_and_what_became_of_it(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 1
    with capture_logs() as log:
        daemon = rig.start()
        rig.turn(daemon, 20)
        (machine,) = rig.alive()
        rig.pool.finish()
        rig.turn(daemon, 130)
    said = [line["event"] for line in log]
    assert re.search(rf"launch \S+: 1 of 1 accepted: {machine}\n", "\n".join(said))
    assert any(
        re.fullmatch(rf"machine {machine}: in the pool \d+ s after it was asked for", one) for one in said
    )
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    idle = rf"machine {machine} of class default is idle since {when}, limit 1m: draining"
    assert len([one for one in said if re.fullmatch(idle, one)]) == 1
    assert any(re.match(rf"ending 1 on c1 \({machine}\): ", one) for one in said)
    assert any(re.match(rf"machine {machine}: gone after ", one) for one in said)


def test_a_plan_is_only_looked_at(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 8
    daemon = rig.start()
    _, found = run_once(rig.observer, rig.preparer, plan, daemon.parts.policy, rig.clock())
    assert found.actions
    assert rig.alive() == []
    assert kinds(rig) == []


class Steps:
    """Counts the steps, and dies at one of them."""

    def __init__(self, at: int = -1) -> None:
        self.at = at
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) - 1 == self.at:
            raise Killed(name)


def life(rig: Rig, daemon: Daemon) -> None:
    """A burst of jobs, done at once; then nothing more to do."""
    rig.turn(daemon, 30)
    rig.pool.finish()
    rig.turn(daemon, 150)


def steps_of_a_life(path: Path) -> list[str]:
    rig, steps = Rig(path), Steps()
    rig.pool.queues["schedd"].idle = 4
    life(rig, rig.start(steps))
    rig.close()
    return steps.names


def interesting(path: Path) -> list[int]:
    """The first step of each name, and the second of it, and all that a launch, drain or end is made of."""
    names = steps_of_a_life(path)
    return [at for at, name in enumerate(names) if not name.startswith("plan") or at < 6]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["ledger-kept", "ledger-lost"])
def test_killed_at_any_step_it_leaks_nothing_and_doubles_nothing(tmp_path: Path, lost: bool) -> None:
    points = interesting(tmp_path / "count")
    assert len(points) >= 12
    for at in points:
        rig = Rig(tmp_path / str(at))
        rig.pool.queues["schedd"].idle = 4
        daemon = rig.start(Steps(at))
        with pytest.raises(Killed) as death:
            life(rig, daemon)
        if lost:
            rig.lose_ledger()
        daemon = rig.start()
        rig.turn(daemon, 40)
        rig.pool.finish()
        rig.turn_to_zero(daemon, 400)
        where = f"killed at {death.value}"
        assert rig.alive() == [], where
        assert rig.pool.killed_jobs == 0, where
        assert rig.pool.queues["schedd"].idle == 0, where
        assert sum(one.resources.cpus for one in rig.site.of_pool(POOL)) <= 4, where
        assert rig.ledger is not None
        assert all(r.ended_at is not None for r in rig.ledger.view(rig.clock()).machines), where
        rig.close()


def test_a_silent_schedd_drains_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 4
    daemon = rig.start()
    rig.turn(daemon, 30)
    rig.pool.finish()
    rig.pool.queues["schedd"].silent = True
    before = rig.alive()
    rig.turn(daemon, 300)
    assert rig.alive() == before
    rig.pool.queues["schedd"].silent = False
    rig.turn(daemon, 60)
    assert rig.alive() == []


def test_what_is_left_out_is_an_event_for_each_owner_and_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, owners = rig.start(), ["user1"]

    def demand(_schedd: str, *, running: bool, deadline: float) -> ScheddView:
        bad = (left_out("schedd", name, f"{at + 7}.0", 1, 0, "no") for at, name in enumerate(owners))
        return ScheddView(tuple(bad), () if running else None, len(owners), 0)

    def told() -> list[str]:
        assert rig.ledger is not None
        return [event.text for event in rig.ledger.events() if event.code == "left-out"]

    monkeypatch.setattr(rig.pool, "demand", demand)
    rig.turn(daemon, 10)
    assert told() == ["left out: job 7.0 of user1 at schedd schedd: no"]
    owners.append("user2")  # whose name differs in a number only
    rig.turn(daemon, 10)
    assert told()[1:] == ["left out: job 8.0 of user2 at schedd schedd: no"]


def test_a_collector_that_is_down_or_new_touches_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 4
    daemon = rig.start()
    rig.turn(daemon, 30)
    before = rig.alive()
    rig.pool.down = True
    rig.turn(daemon, 200)
    rig.pool.down, rig.pool.started = False, rig.clock()
    rig.turn(daemon, 30)
    assert rig.alive() == before
    assert rig.pool.killed_jobs == 0


def test_a_launch_without_an_answer_is_not_made_twice(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    original = rig.driver.launch
    calls: list[str] = []

    def unsure(request: object) -> object:
        made = original(request)  # type: ignore[arg-type]
        calls.append(request.key)  # type: ignore[attr-defined]
        if len(calls) == 1:
            raise TimeoutError("the connection was lost")
        return made

    rig.driver.launch = unsure  # type: ignore[method-assign, assignment]
    rig.pool.queues["schedd"].idle = 4
    rig.turn(rig.start(), 40)
    assert sum(one.resources.cpus for one in rig.site.of_pool(POOL)) == 4
    assert "launch-unknown" in kinds(rig)
    rig.close()


# ------------------------------------------------------------------------------------------ operators


def ask(rig: Rig, kind: RequestKind, machine: str = "", *, kill_jobs: bool = False) -> int:
    assert rig.ledger is not None
    return rig.ledger.request(rig.clock(), "root", kind, machine, kill_jobs=kill_jobs)


def outcome(rig: Rig, request: int) -> str | None:
    assert rig.ledger is not None
    return rig.ledger.request_outcome(request)


def test_terminate_of_a_busy_machine_wants_kill_jobs(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    refused = ask(rig, RequestKind.TERMINATE, machine)
    rig.turn(daemon, 20)
    assert "--kill-jobs" in (outcome(rig, refused) or "")
    assert rig.alive() == [machine]
    ask(rig, RequestKind.TERMINATE, machine, kill_jobs=True)
    rig.turn(daemon, 30)
    assert machine not in rig.alive()


def test_a_drain_by_hand_waits_for_jobs_and_can_be_taken_back(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    assert outcome(rig, ask(rig, RequestKind.DRAIN, "nobody")) is None
    ask(rig, RequestKind.DRAIN, machine)
    rig.turn(daemon, 6)
    assert rig.pool.workers[machine].closed is not None
    ask(rig, RequestKind.UNDRAIN, machine)
    rig.turn(daemon, 6)
    assert rig.pool.workers[machine].closed is None
    ask(rig, RequestKind.DRAIN, machine)
    rig.turn(daemon, 60)
    assert rig.alive() == [machine]
    rig.pool.finish()
    rig.turn(daemon, 30)
    assert rig.alive() == []
    assert rig.pool.killed_jobs == 0


@pytest.mark.parametrize("kill_jobs", [False, True])
def test_destroy_ends_when_nothing_is_left(rig: Rig, kill_jobs: bool) -> None:
    daemon, machine = rig.one_busy()
    request = ask(rig, RequestKind.DESTROY, kill_jobs=kill_jobs)
    rig.turn(daemon, 40)
    if not kill_jobs:
        assert rig.alive() == [machine]
        assert not daemon.destroyed
        rig.pool.finish()
        rig.turn(daemon, 60)
    assert rig.alive() == []
    assert daemon.destroyed
    assert (outcome(rig, request) or "").startswith("done")
    assert rig.pool.killed_jobs == (2 if kill_jobs else 0)


def test_destroy_that_was_asked_for_twice_is_done_once(rig: Rig) -> None:
    daemon, _ = rig.one_busy()
    wishes = [ask(rig, RequestKind.DESTROY, kill_jobs=kill_jobs) for kill_jobs in (False, True)]
    rig.turn(daemon, 60)
    assert daemon.destroyed
    assert rig.pool.killed_jobs == 2
    # One that stayed open would end the next daemon as soon as it is started.
    assert all((outcome(rig, request) or "").startswith("done") for request in wishes)


# ---------------------------------------------------------------------------------------- the loop itself


def test_a_wrong_configuration_keeps_the_old_one(rig: Rig) -> None:
    wrong = [True]

    def reload() -> object:
        if wrong[0]:
            raise ConfigError("updraft.toml:3: idle_limt is not a setting")
        return replace(daemon.parts, policy=policy(), close=lambda: closed.append("new"))

    daemon = rig.start(reload=reload)  # type: ignore[arg-type]
    closed: list[str] = []
    daemon.parts = replace(daemon.parts, close=lambda: closed.append("old"))
    old = daemon.parts
    turns = iter(range(100))

    def each() -> None:
        turn = next(turns)
        rig.switch.reload = turn in (1, 3)
        wrong[0] = turn < 3
        rig.switch.stop = turn == 6

    rig.switch.each = each
    daemon.run()
    assert daemon.parts is not old
    assert closed == ["old"]  # what isn't used any more is given back, and only then
    assert rig.ledger is not None
    texts = {event.kind: event.text for event in rig.ledger.events()}
    assert "idle_limt" in texts["reload-failed"]
    assert {"started", "reloaded", "stopped"} <= set(texts)


@pytest.mark.slow
def test_a_fault_costs_a_cycle_and_not_the_daemon(rig: Rig) -> None:
    calls = iter(range(100))

    def faulty(snapshot: Snapshot, policy: Policy) -> Plan:
        if next(calls) == 0:
            raise ZeroDivisionError
        return plan(snapshot, policy)

    daemon = rig.start(decide=faulty)
    waited: list[float] = []
    rig.switch.each = lambda: waited.append(rig.clock()) or setattr(rig.switch, "stop", len(waited) > 3)  # type: ignore[func-returns-value]
    daemon.run()
    assert rig.ledger is not None
    assert rig.ledger.last_cycle() is not None


def test_the_last_cycle_is_there_for_status(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    daemon.cycle()
    assert rig.ledger is not None
    doc = rig.ledger.last_cycle()
    assert doc is not None
    assert doc["acting"]
    assert doc["sources"]["collector"]["state"] == "known"
    assert [m["machine"] for m in doc["machines"]] == [machine]
    assert rig.ledger.noted("controller")


# ------------------------------------------------------------------------------------- two controllers


def test_one_state_directory_has_one_daemon(tmp_path: Path) -> None:
    with StateLock(tmp_path), pytest.raises(ProblemFound, match="already runs"), StateLock(tmp_path):
        pass
    with StateLock(tmp_path):
        pass


def test_a_lock_whose_directory_was_removed_or_replaced_is_held_no_more(tmp_path: Path) -> None:
    state, aside = tmp_path / "state", tmp_path / "aside"
    with StateLock(state) as lock:
        assert lock.held()
        state.rename(aside)
        assert not lock.held()
        with StateLock(state) as another:
            assert (lock.held(), another.held()) == (False, True)
        shutil.rmtree(state)
        aside.rename(state)
        assert lock.held()


RHYTHM = Rhythm(interval=5, lifetime=40)


def test_a_controller_whose_state_directory_was_taken_away_leaves_its_name_to_another(rig: Rig) -> None:
    """Else it would take the other's ad for its own, and both would act."""
    has = {"old": True}
    old = LeaderElection(rig.pool, "a@one", "one", rig.clock, RHYTHM, holds=lambda: has["old"])
    daemon = rig.start(election=old)
    for _ in range(20):
        rig.clock.forward(2)
        standing = daemon.cycle().standing
    assert standing is None
    has["old"] = False
    new = LeaderElection(rig.pool, "a@one", "one", rig.clock, RHYTHM)
    for _ in range(20):
        rig.clock.forward(2)
        acts = new.standing(rig.pool.started) is None
    assert acts
    with pytest.raises(StateLost, match="state directory was removed or replaced"):
        daemon.run()
    assert "a@one" in rig.pool.ads, "it is the other's"


class Two:
    """Two controllers on two hosts, whose clocks may differ."""

    def __init__(self, skew: float = 0.0) -> None:
        self.clock = Clock()
        self.pool = VirtualPool(self.clock)
        self.a = LeaderElection(self.pool, "a@one", "one", self.clock, RHYTHM)
        self.b = LeaderElection(self.pool, "b@two", "two", lambda: self.clock() + skew, RHYTHM)

    def acting(self, *elections: LeaderElection, seconds: float = 0.0) -> set[str]:
        """Who says that it may act, over so long; never two at one moment."""
        said: set[str] = set()
        until = self.clock() + seconds
        while True:
            now = {h.id for h in elections if h.standing(self.pool.started) is None}
            assert len(now) <= 1
            said |= now
            if self.clock() >= until:
                return said
            self.clock.forward(2.0)


@pytest.mark.parametrize("skew", [0.0, -5000.0, 5000.0])
def test_the_second_waits_for_the_first_and_says_for_whom(skew: float) -> None:
    two = Two(skew)
    assert two.acting(two.a, seconds=8) == set()
    assert two.acting(two.a, seconds=10) == {"a@one"}
    assert two.acting(two.a, two.b, seconds=300) == {"a@one"}
    reason = two.b.standing(two.pool.started)
    assert reason is not None
    assert "one" in reason.text


def test_started_together_one_acts() -> None:
    two = Two()
    assert len(two.acting(two.a, two.b, seconds=120)) == 1


def test_when_the_first_dies_the_second_takes_over_and_when_it_stops_at_once() -> None:
    two = Two()
    two.acting(two.a, two.b, seconds=30)
    assert two.acting(two.b, seconds=30) == set()  # its ad still lives
    assert two.acting(two.b, seconds=20) == {"b@two"}
    two = Two()
    two.acting(two.a, two.b, seconds=30)
    two.a.stop()
    assert two.acting(two.b, seconds=2) == {"b@two"}


def test_a_restart_goes_on_where_it_was() -> None:
    two = Two()
    two.acting(two.a, two.b, seconds=30)
    again = LeaderElection(two.pool, "a@one", "one", two.clock, RHYTHM)
    assert two.acting(again, two.b) == {"a@one"}


def test_one_that_slept_is_new_again() -> None:
    two = Two()
    two.acting(two.a, two.b, seconds=30)
    two.acting(two.b, seconds=100)
    assert two.acting(two.b, two.a, seconds=60) == {"b@two"}


def test_a_new_collector_knows_nobody_yet() -> None:
    two = Two()
    two.acting(two.a, seconds=30)
    two.pool.ads.clear()
    two.pool.started = two.clock()
    assert two.acting(two.b) == set()
    two.clock.forward(5)
    assert two.acting(two.b, two.a, seconds=120) == {"a@one"} or two.acting(two.b, two.a) == {"a@one"}


def test_without_a_collector_nobody_acts() -> None:
    two = Two()
    two.acting(two.a, seconds=30)
    two.pool.down = True
    assert two.acting(two.a, seconds=20) == set()


def test_a_cloud_that_does_not_take_the_order_to_end_a_machine_is_warned_of(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, machine = rig.one_busy()
    end, refusals = rig.driver.terminate, []

    def refuse(ids: Iterable[str]) -> None:
        refusals.append(tuple(ids))
        raise AuthFailed("UnauthorizedOperation")

    monkeypatch.setattr(rig.driver, "terminate", refuse)
    rig.pool.finish(machine)
    rig.turn(daemon, 150)
    assert len(refusals) > 1, "it is asked for again"
    cycle = daemon.cycle()
    [warning] = [one for one in cycle.plan.warnings if one.code == "end-failed"]
    assert machine in warning.text
    assert "did not take the order to end it: UnauthorizedOperation" in warning.text
    assert [one.reason.code for one in cycle.plan.machines] == ["end-failed"]
    assert rig.ledger is not None
    record = rig.ledger.machine(machine)
    assert record is not None
    assert record.end_failed_at is not None
    assert record.terminate_asked_at is not None
    assert record.end_failed_at < record.terminate_asked_at, "since the first order that wasn't taken"
    [cloud] = (rig.ledger.last_cycle() or {})["clouds"]
    assert cloud["state"] == "not-ending"
    assert cloud["not_ending"]["machines"] == 1
    assert cloud["not_ending"]["since"] == record.end_failed_at
    assert cloud["last_error"]["text"] == "UnauthorizedOperation"
    line = cloud_line([cloud], rig.clock())
    assert "ok" not in line
    assert line.startswith("c1 1 machine doesn't end for ")
    monkeypatch.setattr(rig.driver, "terminate", end)
    rig.turn_to_zero(daemon, 100)
    assert rig.alive() == []
    assert rig.ledger is not None
    [record] = rig.ledger.view(rig.clock()).machines
    assert record.end is not None
    assert record.end.code == "idle-limit"
    assert (record.end_failed, record.end_failed_at) == (None, None)
    [cloud] = (rig.ledger.last_cycle() or {})["clouds"]
    assert (cloud["state"], cloud["not_ending"]) == ("ok", None)


def test_one_that_is_barred_only_reports_and_speaks_under_no_name(rig: Rig) -> None:
    """As the copy of a head does: its name is that of the controller that it is a copy of."""
    rig.pool.queues["schedd"].idle = 4
    why = Reason("another-host", "as a test says")
    daemon = rig.start(election=LeaderElection(rig.pool, "a@one", "one", rig.clock, RHYTHM, barred=why))
    for _ in range(30):
        cycle = daemon.cycle()
        assert cycle.standing == why
        assert any(isinstance(one, Launch) for one in cycle.plan.actions), "it says what it would do"
        rig.clock.forward(2)
    assert rig.pool.ads == {}
    assert rig.site.calls_by_name().keys() <= {"machines", "offers", "quota"}


def test_a_second_pool_of_the_same_name_is_called_so() -> None:
    two = Two()
    two.a.identity, two.b.identity = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    two.acting(two.a, two.b, seconds=30)
    reason = two.b.standing(two.pool.started)
    assert reason is not None
    assert "another pool of this name (identity aaaaaaaaaaaa)" in reason.text


def test_a_waiting_controller_touches_nothing(rig: Rig, tmp_path: Path) -> None:
    rig.pool.queues["schedd"].idle = 4
    first = LeaderElection(rig.pool, "a@one", "one", rig.clock, RHYTHM)
    first.standing(rig.pool.started)
    rig.clock.forward(2)
    daemon = rig.start(election=LeaderElection(rig.pool, "b@two", "two", rig.clock, RHYTHM))
    ask(rig, RequestKind.DESTROY)
    for _ in range(30):
        first.standing(rig.pool.started)
        cycle = daemon.cycle()
        assert cycle.standing is not None
        rig.clock.forward(2)
    assert rig.site.calls_by_name().keys() <= {"machines", "offers", "quota"}
    assert ask_open(rig)


@pytest.mark.parametrize("deferred", [True, False])
@pytest.mark.parametrize("shown", [False, True])
def test_what_another_controller_has_ended_is_no_surprise_to_who_takes_over(
    rig: Rig, deferred: bool, shown: bool
) -> None:
    """Its cloud has it no more; or it has left the pool, and its cloud, which is slow, still shows it."""
    _, machine = rig.one_busy()
    other = LeaderElection(rig.pool, "a@one", "one", rig.clock, RHYTHM)
    if deferred:
        other.standing(rig.pool.started)
        rig.clock.forward(2)
    daemon = rig.start(election=LeaderElection(rig.pool, "b@two", "two", rig.clock, RHYTHM))
    for _ in range(20):
        if deferred:
            other.standing(rig.pool.started)
        daemon.cycle()
        rig.clock.forward(2)
    rig.pool.finish(machine)
    rig.pool.workers[machine].closed = DrainMode.EMPTY
    if not shown:
        rig.driver.terminate([machine])
    rig.clock.forward(20)
    if deferred:
        other.stop()
    rig.turn_to_zero(daemon, 200)
    assert rig.standing() == []
    assert rig.ledger is not None
    told = [
        event.text
        for event in rig.ledger.events(kinds=("warning", "gone"))
        if machine in event.text + event.subject
    ]
    assert told
    unasked = "left the pool without being asked to" if shown else "was not asked to end it"
    assert any(unasked in text for text in told) is not deferred
    assert any("another controller acted until then" in text for text in told) is deferred


def ask_open(rig: Rig) -> bool:
    assert rig.ledger is not None
    return bool(rig.ledger.requests())


def test_signals_wake_the_sleeper() -> None:
    switch = Switch()
    old = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        switch.install()
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGHUP)).start()
        begun = time.monotonic()
        switch.wait(30)
        assert (switch.reload, switch.stop) == (True, False)
        signal.raise_signal(signal.SIGTERM)
        switch.wait(30)
        assert switch.stop
        assert time.monotonic() - begun < 20
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        switch.close()


def test_the_elections_thread_renews_the_ad() -> None:
    pool = VirtualPool(Clock(0.0))
    election = LeaderElection(pool, "a@one", "one", time.monotonic, Rhythm(interval=0.02, lifetime=40))
    election.start()
    until(lambda: "a@one" in pool.ads, 10, "the ad is there", every=0.01)
    election.stop()
    assert pool.ads == {}
