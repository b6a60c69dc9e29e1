"""A whole controller whose sources lie: what lives goes on, what is dead goes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import POOL, Rig, policy
from updraft.clouds.base import TAG_CLASS, TAG_IDENTITY, TAG_POOL
from updraft.core.model import CloudState, Known, Launch
from updraft.core.settings import Limits
from updraft.daemon import LeaderElection
from updraft.errors import PoolTimeout


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def codes(rig: Rig) -> set[str]:
    """The codes of all warnings up to now."""
    assert rig.ledger is not None
    return {event.code for event in rig.ledger.events(kinds=("warning",))}


def warned(rig: Rig) -> set[str]:
    """The codes of what the last look warns of."""
    assert rig.ledger is not None
    found = rig.ledger.last_cycle()
    return set() if found is None else {warning["code"] for warning in found["warnings"]}


def works_on(rig: Rig, machine: str) -> bool:
    """Whether nothing was done to it or to its jobs."""
    untouched = not rig.pool.forgotten and not rig.pool.requeued and not rig.pool.killed_jobs
    return untouched and machine in rig.standing() and machine in rig.alive()


def test_one_whose_tag_was_removed_works_on_and_is_named(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    rig.site.tag(machine, {TAG_POOL: None})
    rig.turn(daemon, 120)
    assert not rig.pool.forgotten
    assert not rig.pool.requeued
    assert machine in rig.standing()
    assert "untagged" in codes(rig)
    rig.pool.finish(machine)
    rig.turn(daemon, 300)
    assert rig.pool.drains == [], "it carries our tag no more: it isn't touched, busy or idle"
    rig.site.tag(machine, {TAG_POOL: POOL})
    rig.turn_to_zero(daemon, 300)
    assert rig.alive() == []


def test_one_in_a_part_of_the_cloud_that_is_down_works_on(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    rig.site.out_of_reach.add(machine)
    rig.turn(daemon, 600, each=6)
    assert works_on(rig, machine)
    rig.site.out_of_reach.clear()
    rig.pool.finish(machine)
    rig.turn_to_zero(daemon, 300)
    assert rig.alive() == []


def test_a_clock_that_is_set_ends_nothing(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    rig.set_clock(40 * 86_400)
    daemon.cycle()
    rig.turn(daemon, 60)
    assert works_on(rig, machine)
    assert rig.ledger is not None
    assert "clock-jumped" in {event.code for event in rig.ledger.events()}


def test_a_clock_that_is_set_while_no_controller_looks_ends_nothing(rig: Rig) -> None:
    """One that starts knows by what an earlier one has noted that the two clocks go on differing."""
    _, machine = rig.one_busy()
    rig.set_clock(40 * 86_400)
    rig.turn(rig.start(), 60)
    rig.turn(rig.start(), 60)
    assert works_on(rig, machine)
    assert rig.ledger is not None
    jumps = [event for event in rig.ledger.events() if event.code == "clock-jumped"]
    assert len(jumps) == 1, "and by what the last one has noted that this was a while ago"


@pytest.mark.parametrize("ledger", ["kept", "lost"])
def test_a_controller_whose_clock_is_wrong_from_the_start_ends_nothing(rig: Rig, ledger: str) -> None:
    """It hears its own ad, and the collector says when that was: to a clock that is ahead all ads are old."""
    _, machine = rig.one_busy()
    if ledger == "lost":
        rig.lose_ledger()
    ahead = 90_000.0
    clock = lambda: rig.clock() + ahead  # noqa: E731
    election = LeaderElection(rig.pool, "here", "head", clock, stopwatch=rig.clock)
    daemon = rig.start(election=election, clock=clock)
    rig.turn(daemon, 1500, each=10)
    assert works_on(rig, machine)
    assert "clock-differs" in warned(rig)
    ahead = 0.0
    rig.turn(daemon, 60)
    assert "clock-differs" not in warned(rig)
    rig.pool.finish(machine)
    rig.turn_to_zero(daemon, 1500)
    assert rig.alive() == []


def test_a_clock_that_was_set_back_for_a_while_makes_no_machine_older(rig: Rig) -> None:
    """Meanwhile no time of its record is to be one that is still to come; its cloud knows when it began."""
    rig.one_busy()
    ahead = 0.0
    clock = lambda: rig.clock() + ahead  # noqa: E731
    daemon = rig.start(clock=clock)
    rig.turn(daemon, 10)
    [machine] = rig.alive()
    ahead = -40 * 86_400.0
    rig.turn(daemon, 60)
    ahead = 0.0
    rig.turn(daemon, 3000, each=10)
    assert works_on(rig, machine)
    assert rig.ledger is not None
    [record] = [one for one in rig.ledger.view(rig.clock()).machines if one.id == machine]
    assert record.requested_at == pytest.approx(rig.site.instances[machine].launched_at, abs=60)


def test_a_machine_whose_startd_never_answers_is_asked_once_a_minute(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, machine = rig.one_busy()
    rig.pool.finish(machine)
    asked: list[float] = []

    def silent(*_: object) -> None:
        asked.append(rig.clock())
        raise PoolTimeout("condor_drain was not done within 10 s")

    monkeypatch.setattr(rig.pool, "drain", silent)
    rig.turn(daemon, 400)
    assert 3 <= len(asked) <= 8, asked
    assert "unanswered" in codes(rig)
    assert machine in rig.alive(), "it is heard of: somebody has to look"


@pytest.mark.slow
def test_a_second_head_of_the_same_name_touches_nothing_of_the_first_one(rig: Rig, tmp_path: Path) -> None:
    """As with a copied configuration: the second has its own ledger, and sees the first one's machines."""
    rig.pool.queues["schedd"].idle = 2
    first = rig.start(using=policy(identity="aaaaaaaaaaaa"))
    rig.turn(first, 30)
    [machine] = rig.alive()
    assert rig.site.instances[machine].tags[TAG_IDENTITY] == "aaaaaaaaaaaa"
    rig.state = tmp_path / "second"
    rig.state.mkdir()
    rig.pool.queues["schedd"].idle = 0
    second = rig.start(using=policy(identity="bbbbbbbbbbbb"))
    rig.turn(second, 1200)
    rig.pool.finish(machine)
    rig.turn(second, 1200)
    assert rig.alive() == [machine]
    assert (rig.standing(), rig.pool.drains, rig.pool.forgotten) == ([], [], [])
    assert "another-pool" in codes(rig)


def test_a_lost_ledger_leaves_the_pool_its_machines(rig: Rig) -> None:
    """The identity isn't in it: it is in a file beside it."""
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(using=policy(identity=rig.identity())), 30)
    [machine] = rig.alive()
    rig.lose_ledger()
    again = rig.start(using=policy(identity=rig.identity()))
    rig.turn(again, 30)
    assert rig.standing() == [machine]


def test_what_is_shown_oddly_to_a_controller_without_memory_counts_against_the_limits(rig: Rig) -> None:
    rules = replace(policy(), limits=Limits(machines=1))
    rig.pool.queues["schedd"].idle = 2
    rig.turn(rig.start(using=rules), 30)
    there = rig.alive()
    rig.lose_ledger()
    for machine in there:
        rig.site.set_tags(machine, Odd(rig.site.instances[machine].tags))
    rig.pool.queues["schedd"].idle = 9
    daemon = rig.start(using=rules)
    rig.turn(daemon, 60)
    assert rig.alive() == there
    (waiting,) = daemon.cycle().plan.groups
    assert "limit-machines" in {reason.code for reason in waiting.held_back}


def test_what_a_controller_without_memory_hears_of_is_there_though_its_cloud_shows_it_as_ended(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, machine = rig.one_busy()
    rig.lose_ledger()
    true, lies = rig.driver.machines, {machine: CloudState.TERMINATED}
    monkeypatch.setattr(
        rig.driver,
        "machines",
        lambda: tuple(replace(one, state=lies.get(one.id, one.state)) for one in true()),
    )
    rig.pool.queues["schedd"].idle = 9
    daemon = rig.start(using=replace(policy(), limits=Limits(machines=1)))
    rig.turn(daemon, 60)
    assert rig.alive() == [machine]
    assert works_on(rig, machine)
    lies.clear()
    rig.turn(daemon, 60)
    assert rig.alive() == [machine]


class Odd(dict[str, str]):
    """Tags of which the class can't be read."""

    def get(self, key: str, *default: object) -> object:  # type: ignore[override]
        if key == TAG_CLASS:
            raise ValueError("no text")
        return super().get(key, *default)  # type: ignore[arg-type]


@pytest.mark.parametrize("busy", [True, False])
def test_a_machine_that_its_cloud_shows_oddly_is_named_and_not_gone(rig: Rig, busy: bool) -> None:
    daemon, machine = rig.one_busy()
    if not busy:
        rig.pool.finish()
    sane = rig.site.instances[machine].tags
    rig.site.set_tags(machine, Odd(sane))
    rig.turn(daemon, 40)
    cycle = daemon.cycle()
    assert isinstance(cycle.snapshot.clouds["c1"].machines, Known), "the others are known"
    (said,) = [one.text for one in cycle.plan.warnings if one.code == "odd-instance"]
    assert said.startswith(f"cloud c1 shows {machine} in a way of which nothing can be made (ValueError")
    assert rig.alive() == [machine]
    assert rig.standing() == [machine]
    assert not any(isinstance(one, Launch) for one in cycle.plan.actions), "it is not bought again"
    assert (rig.pool.forgotten, rig.pool.requeued, rig.pool.killed_jobs) == ([], [], 0)
    rig.site.set_tags(machine, sane)
    rig.pool.finish()
    rig.turn_to_zero(daemon, 300)
    assert rig.alive() == []
    assert "odd-instance" not in {one.code for one in daemon.cycle().plan.warnings}
