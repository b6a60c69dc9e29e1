"""Annexes under a whole controller in virtual time: asked for, there, over; a crash, an extension, an end."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.daemon.test_daemon import Killed, Steps
from tests.rigs.rig import POOL, Rig, policy
from updraft.clouds.base import TAG_LEASE, TAG_VARIANT, LaunchRequest
from updraft.clouds.fake.faults import Fault
from updraft.clouds.networking import Group
from updraft.core.model import Annex, Plan, Snapshot, variant
from updraft.core.plan import plan
from updraft.core.settings import AnnexAllowance, Limits, Policy
from updraft.daemon.annex_requests.desk import Desk
from updraft.errors import LedgerError, UsageError
from updraft.ledger import Ledger, Reader, RequestKind, annexes


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def ask(rig: Rig, name: str = "big", *, layer: str = "", **changes: object) -> Annex:
    """Ask for an annex as the command line does: with a ledger of its own."""
    now = rig.clock()
    about = {"machines": 3, "cores": 0, "until": now + 600, "idle": 120.0, "since": now, **changes}
    with Ledger(rig.state / "ledger.db") as ledger:
        return annexes.create(ledger, Annex(name, "alice", "default", **about), "ann@head", layer)  # type: ignore[arg-type]


def of(rig: Rig, name: str = "big") -> list[str]:
    """The live machines of an annex, by their tags."""
    return [one.id for one in rig.site.alive(POOL) if variant(one.tags.get(TAG_VARIANT, "")).annex == name]


def codes(rig: Rig, kind: str = "annex") -> list[str]:
    assert rig.ledger is not None
    return [event.code for event in rig.ledger.events(kinds=(kind,))]


@pytest.mark.slow
def test_it_is_there_until_its_lease_ends_and_then_all_of_it_goes(rig: Rig) -> None:
    daemon = rig.start()
    asked = ask(rig, idle=10_000.0, tags={"project": "x"})
    rig.turn(daemon, 60)
    assert len(of(rig)) == 3
    [tags] = {tuple(sorted(one.tags.items())) for one in rig.site.alive(POOL)} or [()]
    assert dict(tags)["project"] == "x"
    assert dict(tags)[TAG_LEASE] == str(int(asked.until))
    rig.turn(daemon, asked.until - rig.clock() - 4)
    assert len(of(rig)) == 3, "never before its end"
    rig.turn(daemon, 12)
    assert of(rig) == []
    rig.turn(daemon, 60)
    assert rig.ledger is not None
    ended = rig.ledger.view(rig.clock()).machines
    assert {row.end.code for row in ended if row.end} == {"lease-over"}
    assert codes(rig) == ["annex-created"]
    assert len(ended) == 3, "and none was launched after it"


def test_its_machines_are_of_the_flavor_image_and_groups_that_were_asked_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[LaunchRequest] = []
    rig.site.groups["sg-1"] = Group("sg-1", "burst", frozenset())
    launch = rig.driver.launch
    monkeypatch.setattr(rig.driver, "launch", lambda asked: requests.append(asked) or launch(asked))
    rules = policy()
    worker = replace(rules.classes["default"], images_allowed=("other*",))
    daemon = rig.start(using=replace(rules, classes={"default": worker}))
    ask(rig, machines=2, clouds=("c1",), flavors=("med*",), image="other-9", security_groups=("burst",))
    rig.turn(daemon, 60)
    assert len(of(rig)) == 2
    [seen] = {(one.flavor, one.image, one.security_groups) for one in requests}
    assert seen == ("medium", "other-9", ("burst",))
    ask(rig, "none", flavors=("huge",))
    rig.turn(daemon, 10)
    assert of(rig, "none") == []
    assert rig.ledger is not None
    [row] = [one for one in (rig.ledger.last_cycle() or {})["annexes"] if one["name"] == "none"]
    assert row["reason"]["text"] == "no machine of class default and flavor huge is on sale now"


def test_idle_machines_leave_and_are_not_replaced(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, until=rig.clock() + 5000)
    rig.turn(daemon, 60)
    assert len(of(rig)) == 3
    rig.turn(daemon, 300)
    assert of(rig) == []
    assert rig.ledger is not None
    [kept] = rig.ledger.annexes()
    assert (kept.left, kept.left_cores) == (3, 3 * rig.ledger.view(rig.clock()).machines[0].resources.cpus)
    assert len(rig.ledger.view(rig.clock()).machines) == 3
    assert rig.pool.killed_jobs == 0


def test_one_that_its_cloud_takes_is_replaced(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    rig.turn(daemon, 60)
    gone = of(rig)[0]
    rig.driver.terminate([gone])
    rig.turn(daemon, 90)
    assert len(of(rig)) == 3
    assert gone not in of(rig)


def test_limits_hold_over_annexes_and_jobs_together(rig: Rig) -> None:
    daemon = rig.start(using=replace(policy(), limits=Limits(machines=4)))
    rig.pool.queues["schedd"].idle = 40
    ask(rig, machines=3)
    most = 0
    for _ in range(40):
        rig.turn(daemon, 2)
        most = max(most, len(rig.alive()))
    assert most == 4
    assert len(of(rig)) == 3


@pytest.mark.slow
def test_an_extension_reaches_its_machines_and_a_stop_ends_them(rig: Rig) -> None:
    daemon = rig.start()
    first = ask(rig, idle=10_000.0)
    rig.turn(daemon, 60)
    with Ledger(rig.state / "ledger.db") as other:
        annexes.extend(other, "big", first.until + 1000, "ann@head", rig.clock())
    rig.turn(daemon, first.until + 20 - rig.clock())
    assert len(of(rig)) == 3
    assert {one.tags[TAG_LEASE] for one in rig.site.alive(POOL)} == {str(int(first.until + 1000))}
    with Ledger(rig.state / "ledger.db") as other:
        annexes.stop(other, "big", "ann@head", rig.clock())
        with pytest.raises(UsageError, match="is over"):
            annexes.extend(other, "big", first.until + 9000, "ann@head", rig.clock())
    rig.turn_to_zero(daemon, 120)
    assert rig.alive() == []
    with Ledger(rig.state / "ledger.db") as other:
        annexes.delete(other, "big", "ann@head", rig.clock())
    rig.turn(daemon, 6)
    assert rig.ledger is not None
    assert rig.ledger.annexes() == ()
    assert codes(rig) == [
        "annex-created", "annex-extended", "annex-stopped", "annex-deleted", "annex-forgotten",
    ]  # fmt: skip


def test_a_crash_at_any_step_launches_no_machine_twice(tmp_path: Path) -> None:
    whole, steps = Rig(tmp_path / "whole"), Steps()
    daemon = whole.start(steps)
    ask(whole, idle=10_000.0)
    whole.turn(daemon, 6)
    whole.close()
    firsts = {name: at for at, name in reversed(list(enumerate(steps.names)))}
    assert {"launch: intended", "launch: asked", "launch: recorded"} <= firsts.keys()
    for name, at in firsts.items():
        rig = Rig(tmp_path / f"at-{at}")
        daemon = rig.start(Steps(at))
        ask(rig, idle=10_000.0)
        with pytest.raises(Killed):
            rig.turn(daemon, 6)
        rig.turn(rig.start(), 60, 4.0)
        assert len(rig.alive()) == len(of(rig)) == 3, name
        rig.close()


@pytest.mark.parametrize("made", [False, True])
def test_a_launch_without_an_answer_makes_no_machine_too_many(rig: Rig, made: bool) -> None:
    rig.site.faults.add(Fault("cloud-unavailable", "launch", times=1, after=made))
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    for _ in range(80):
        rig.turn(daemon, 2)
        assert len(of(rig)) <= 3
    assert len(of(rig)) == 3


def test_a_name_is_used_once_and_its_layer_is_in_no_row(tmp_path: Path) -> None:
    text = "#cloud-config\npassword: s3cret\n"
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = annexes.create(ledger, Annex("big", "alice", "default", 1, 0, 100.0, 9.0), "ann", text)
        assert annexes.layer_text(ledger.path, made.layer) == text
        [path] = (tmp_path / annexes.LAYERS).iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(UsageError, match="already"):
            annexes.create(ledger, made, "ann")
        with pytest.raises(UsageError, match="there is no annex small"):
            annexes.stop(ledger, "small", "ann", 1.0)
    for file in tmp_path.glob("ledger.db*"):
        assert b"s3cret" not in file.read_bytes()
    with Reader(tmp_path / "ledger.db") as reader:
        assert reader.annexes() == (made,)
    with pytest.raises(LedgerError, match="is gone"):
        annexes.layer_text(tmp_path / "ledger.db", "0" * 64)


def test_a_forgotten_annex_takes_its_layer_along_unless_another_has_it(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, "one", layer="#!/bin/sh\ntrue\n", machines=1)
    ask(rig, "two", layer="#!/bin/sh\ntrue\n", machines=1)
    folder = rig.state / annexes.LAYERS
    for name, left in (("one", 1), ("two", 0)):
        with Ledger(rig.state / "ledger.db") as other:
            annexes.delete(other, name, "ann", rig.clock(), kill_jobs=True)
        rig.turn(daemon, 40)
        assert len(list(folder.iterdir())) == left


@pytest.mark.slow
def test_with_a_lost_ledger_its_machines_leave_when_idle_and_it_is_told(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig)
    rig.turn(daemon, 40)
    rig.lose_ledger()
    daemon = rig.start()
    rig.turn(daemon, 30)
    assert len(of(rig)) == 3
    assert "annex-unknown" in codes(rig, "warning")
    rig.turn(daemon, 1500)
    assert of(rig) == []


def test_what_was_destroyed_is_not_bought_again(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    rig.turn(daemon, 40)
    with Ledger(rig.state / "ledger.db") as other:
        other.request(rig.clock(), "ann@head", RequestKind.DESTROY)
    rig.turn_to_zero(daemon, 200)
    assert daemon.destroyed
    again = rig.start()
    rig.turn(again, 40)
    assert rig.alive() == []
    assert codes(rig) == ["annex-created", "annex-stopped"]


# ------------------------------------------------------------------------------ a user's allowance, and looks

MOST = 4
WORDS = st.one_of(
    st.tuples(st.just("create"), st.integers(1, MOST)),
    st.tuples(st.sampled_from(("stop", "kill", "delete")), st.integers(0, 9)),
    st.tuples(st.just("lose"), st.integers(0, 1)),
    st.tuples(st.just("look"), st.integers(1, 12)),
)


class Greedy:
    """A user with an allowance of machines, at the desk of a whole controller, who is told no and goes on."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        rules = replace(policy(), limits=Limits(), annex_allowances={"ann": AnnexAllowance(machines=MOST)})
        self.meanwhile: list[tuple[str, int]] = []
        self.daemon = rig.start(using=rules, decide=self._decide)
        assert rig.ledger is not None
        self.rules, self.ledger, self.desk = rules, rig.ledger, Desk(rig.ledger, rig.clock)
        self.asked = 0
        self.look()

    def _decide(self, seen: Snapshot, rules: Policy) -> Plan:
        """What is asked for while the daemon decides: it has looked, and hasn't bought yet."""
        for word, number in self.meanwhile:
            self.say(word, number)
        self.meanwhile = []
        return plan(seen, rules)

    def look(self) -> None:
        self.desk.watch(self.daemon.cycle(), self.rules, {})
        assert len(self.rig.alive()) <= MOST
        self.rig.clock.forward(2)
        self.rig.pool.negotiate()

    def say(self, word: str, number: int) -> None:
        """Ask the desk for something, or have the cloud fail at a launch, before or after it has obeyed."""
        if word == "lose":
            self.rig.site.faults.add(Fault("cloud-unavailable", "launch", times=1, after=bool(number)))
            return
        about: dict[str, object] = {"verb": word}
        if word == "create":
            self.asked += 1
            about |= {"name": f"a{self.asked}", "machines": number}
        else:
            names = [one.name for one in self.ledger.annexes()]
            if not names:
                return
            about |= {"verb": word.replace("kill", "stop"), "name": names[number % len(names)]}
            about |= {"kill_jobs": word == "kill"}
        with contextlib.suppress(UsageError):
            self.desk.answer("ann", about)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=30))
@example([(("create", 4), False), (("stop", 0), True), (("create", 4), True), (("look", 1), False)] * 4)
@example([(("create", 4), False), (("look", 1), False), (("stop", 0), False), (("create", 4), False)] * 4)
def test_no_order_of_create_and_stop_gets_a_user_more_machines_than_the_allowance(
    steps: list[tuple[tuple[str, int], bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        try:
            user = Greedy(rig)
            for (word, number), meanwhile in steps:
                if word == "look":
                    for _ in range(number):
                        user.look()
                elif meanwhile:
                    user.meanwhile.append((word, number))
                else:
                    user.say(word, number)
            for _ in range(3):
                user.look()
        finally:
            rig.close()


def test_what_was_stopped_and_has_ended_is_the_allowances_again(rig: Rig) -> None:
    user = Greedy(rig)
    for _ in range(3):
        user.say("create", MOST)
        for _ in range(20):
            user.look()
        assert len(rig.alive()) == MOST
        user.say("delete", 0)
        for _ in range(40):
            user.look()
        assert rig.alive() == []
