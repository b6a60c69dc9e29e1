"""Several clouds under one controller, in virtual time: overflow, orders at run time, a dead cloud."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.manyclouds import QUICK, SMALL, Make, ManyClouds, worlds
from updraft.clouds.fake import site_settings
from updraft.clouds.fake.faults import Fault
from updraft.core.model import LaunchState, Reason
from updraft.core.settings import CloudRule, Limits
from updraft.ledger.clouds import AS_THE_FILE_SAYS, Override, Said, decide, overrides

MIDDLE = {"flavors": {"small": {"cpus": 2, "memory": "4GiB", "price": 0.2}}}
DEAR = {"flavors": {"small": {"cpus": 2, "memory": "4GiB", "price": 0.5}}}
WHY = Reason("cloud-disabled", "alice said so")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with worlds(tmp_path) as made:
        yield made


def say(world: ManyClouds, cloud: str, override: Override) -> None:
    """An operator decides something, as `updraft cloud` does."""
    assert world.ledger is not None
    decide(world.ledger, cloud, lambda _old: override, WHY, world.clock())


def said(world: ManyClouds) -> Said:
    return Said("alice@head", world.clock())


def row(world: ManyClouds, cloud: str) -> dict[str, object]:
    """The cloud's row of what the daemon wrote down last."""
    assert world.ledger is not None
    cycle = world.ledger.last_cycle()
    assert cycle is not None
    return next(one for one in cycle["clouds"] if one["name"] == cloud)


def test_priority_is_filled_first_and_prices_order_the_overflow(make: Make) -> None:
    world = make(
        {
            "dear": DEAR,
            "cheap": SMALL,
            "middle": MIDDLE,
        },
        limits={"dear": Limits(machines=2), "cheap": Limits(cores=6)},
        rules={"cheap": CloudRule(5), "middle": CloudRule(5)},
    )
    world.idle = 4
    world.turn(20)
    assert world.alive() == {"dear": 2, "cheap": 0, "middle": 0}
    world.idle = 12
    world.turn(40)
    assert world.alive() == {"dear": 2, "cheap": 3, "middle": 3}
    assert world.pool.killed_jobs == 0


def test_a_disabled_cloud_gets_nothing_more_and_what_is_there_works_on(make: Make) -> None:
    world = make({"a": SMALL, "b": DEAR})
    world.idle = 6
    world.turn(30)
    assert world.alive() == {"a": 3, "b": 0}
    say(world, "a", Override(enabled=False, switched=said(world)))
    world.idle = 4
    world.turn(30)
    assert world.alive() == {"a": 3, "b": 2}
    assert world.pool.drains == []
    assert row(world, "a")["state"] == "disabled"
    world.pool.finish()
    world.turn(120)
    assert world.alive() == {"a": 0, "b": 0}


def test_what_was_decided_outlives_the_controller_and_can_be_taken_back(make: Make) -> None:
    world = make({"a": SMALL})
    say(world, "a", Override(enabled=False, switched=said(world)))
    world.restart()
    world.idle = 2
    world.turn(30)
    assert world.alive() == {"a": 0}
    say(world, "a", AS_THE_FILE_SAYS)
    world.turn(30)
    assert world.alive() == {"a": 1}
    assert world.ledger is not None
    assert overrides(world.ledger) == {}
    assert [event.text for event in world.ledger.events(kinds=["cloud"])] == [WHY.text] * 2


def test_a_cloud_that_is_left_is_empty_when_its_jobs_are_done_and_no_sooner(make: Make) -> None:
    world = make({"a": SMALL, "b": DEAR})
    world.idle = 4
    world.turn(30)
    assert world.alive()["a"] == 2
    say(world, "a", Override(enabled=False, leaving=True, switched=said(world)))
    world.turn(60)
    assert world.alive()["a"] == 2
    world.idle = 2
    world.turn(30)
    assert world.alive() == {"a": 2, "b": 1}, "its machines are closed to new jobs"
    world.pool.finish("a-00001")
    world.turn(30)
    assert world.alive()["a"] == 1
    say(world, "a", Override(enabled=True, switched=said(world)))
    world.turn(10)
    world.pool.finish("a-00002")
    world.turn(20)
    assert world.alive()["a"] == 1, "enabled again, it stays until it is idle for long"
    assert world.pool.killed_jobs == 0


def test_limits_of_an_operator_take_the_place_of_the_files(make: Make) -> None:
    world = make({"a": SMALL}, limits={"a": Limits(machines=2, cores=100)})
    world.idle = 20
    world.turn(30)
    assert world.alive() == {"a": 2}
    say(world, "a", Override(limits={"machines": None, "cost_per_hour": 0.5}, limited=said(world)))
    world.turn(30)
    assert world.alive() == {"a": 5}
    assert row(world, "a")["limits"] == {
        "machines": None, "cores": 100, "memory": None, "cost_per_hour": 0.5,
    }  # fmt: skip
    say(world, "a", AS_THE_FILE_SAYS)
    world.pool.finish()
    world.idle = 0
    world.turn(200)
    world.idle = 20
    world.turn(30)
    assert world.alive() == {"a": 2}


def test_a_decision_on_a_cloud_that_the_file_lacks_changes_nothing(make: Make) -> None:
    world = make({"a": SMALL})
    say(world, "gone", Override(enabled=False, leaving=True, switched=said(world)))
    world.idle = 2
    world.turn(30)
    assert world.alive() == {"a": 1}


# ------------------------------------------------------------------------------------------ a dead cloud


@pytest.mark.slow
@pytest.mark.parametrize("error", ["cloud-unavailable", "auth-failed", "throttled"])
def test_ten_minutes_without_an_answer_lead_to_nothing_wrong_and_end_within_a_cycle(
    make: Make, error: str
) -> None:
    world = make({"a": {**SMALL, "boots": [{"start": "20s", "join": "20s"}]}, "b": DEAR})
    world.idle = 8
    world.turn(60)
    world.idle = 4
    world.turn(4)  # asked for and not there yet
    before = {one.id for one in world.sites["a"].alive("test")}
    assert len(before) == 6
    world.fail("a", 600, error=error)
    for _ in range(10):
        world.turn(60, each=6)
        world.pool.finish("a-00001")  # idle for ten times its limit, and not ended
        assert {one.id for one in world.sites["a"].alive("test")} == before
    assert row(world, "a")["silent"]["since"]  # type: ignore[index]
    assert world.alive()["b"] == 0, "its machines are room all the same"
    changed = [call for call in world.sites["a"].calls if call.name in ("launch", "terminate")]
    assert world.pool.killed_jobs == 0
    assert world.idle == 0, "those that were on their way joined meanwhile and took their jobs"
    assert [call for call in changed if call.at > world.clock() - 600] == []
    world.turn(2)
    assert row(world, "a")["state"] == "ok"
    assert row(world, "a")["machines"] == 6
    world.turn(40)
    assert before - {one.id for one in world.sites["a"].alive("test")} == {"a-00001"}
    assert world.pool.killed_jobs == 0


def test_demand_goes_to_the_other_clouds_while_one_is_dead_and_comes_back(make: Make) -> None:
    world = make({"a": SMALL, "b": DEAR}, rules={"b": CloudRule(1)})
    world.idle = 2
    world.turn(30)
    world.fail("a", 600)
    world.turn(10)
    world.idle = 6
    world.turn(30)
    assert world.alive() == {"a": 1, "b": 3}
    world.turn(600, each=6)
    world.idle = 2
    world.turn(4)
    assert world.alive()["a"] == 2
    assert sum(world.alive().values()) == 5


FAILS = {
    "no-capacity": {"capacity": {"a/small": 1, "b/small": 0}},
    "quota": {"quota_cores": 2},
    "never-boots": {"boots": [{"start": "4s", "join": "4s", "never_joins": 1.0}]},
}


@pytest.mark.parametrize("fails", FAILS)
def test_a_cloud_that_gives_nothing_more_costs_no_job(make: Make, fails: str) -> None:
    """The cheap one fails while jobs run; what still waits is bought at the other, and nothing twice."""
    world = make({"a": SMALL, "b": DEAR})
    world.idle = 2
    world.turn(30)
    assert world.alive() == {"a": 1, "b": 0}
    site = world.sites["a"]
    site.settings = site_settings("a", {**QUICK, **SMALL, **FAILS[fails]})
    world.idle = 6
    world.turn(600, each=10)
    assert (world.idle, world.pool.killed_jobs, world.alive()["b"]) == (0, 0, 3)
    world.pool.finish()
    world.turn(600, each=10)
    assert sum(world.alive().values()) == 0
    bought = Counter(site.name for site in world.sites.values() for _ in site.of_pool("test"))
    assert bought["b"] == 3, "nothing was made twice"
    assert world.pool.requeued == []


def test_a_launch_whose_answer_was_lost_in_the_outage_is_not_made_twice(make: Make) -> None:
    world = make({"a": SMALL, "b": DEAR})
    world.turn(2)
    world.fail("a", 600, call="[mlqo]*")
    site = world.sites["a"]
    site.faults.add(_made_and_not_told(world))
    world.idle = 4
    world.turn(600, each=6)
    assert world.ledger is not None
    states = [launch.state for launch in world.ledger.view(world.clock()).launches if launch.cloud == "a"]
    assert LaunchState.REFUSED not in states
    world.turn(120)
    assert world.pool.killed_jobs == 0
    assert world.idle == 0


def _made_and_not_told(world: ManyClouds) -> Fault:
    return Fault("cloud-unavailable", "launch", after=True, times=1, start=world.clock())
