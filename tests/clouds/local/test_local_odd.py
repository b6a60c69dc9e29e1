"""What the local cloud's driver makes of a listing with a machine of which nothing can be made."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from updraft.clouds.awaited import Awaited
from updraft.clouds.base import TAG_POOL, Machines, Pace
from updraft.clouds.cloud import Cloud
from updraft.clouds.local.client import Client
from updraft.clouds.local.driver import LocalDriver
from updraft.clouds.odd import NAMELESS
from updraft.clouds.paced import Paced
from updraft.core.model import CloudState, Instance


def shown(name: str, **changes: object) -> dict[str, Any]:
    """A machine as the API shows it."""
    plain = {"id": name, "state": "running", "times": {"pending": 1.0}, "tags": {TAG_POOL: "test"}}
    texts = dict.fromkeys(("zone", "flavor", "market", "image", "address", "why_ended"), "x")
    return {**texts, **plain, **changes}


class Listed:
    """A client whose cloud has these machines, or sells these."""

    def __init__(self, *machines: Mapping[str, Any]) -> None:
        self._machines = machines

    def offers(self) -> tuple[Mapping[str, Any], ...]:
        return self._machines

    def machines(
        self, tags: Mapping[str, str] | None = None, ids: Sequence[str] | None = None
    ) -> tuple[Mapping[str, Any], ...]:
        return tuple(one for one in self._machines if ids is None or one.get("id") in (None, *ids))


def driver(*machines: Mapping[str, Any]) -> LocalDriver:
    return LocalDriver("here", "test", cast(Client, Listed(*machines)))


def awaited(machines: Machines) -> Awaited:
    return Awaited("here", lambda: Cloud("here", Paced(machines, Pace())), lambda _error: None)


@pytest.mark.parametrize("changes", [{"times": {}}, {"tags": None}])
def test_one_of_which_nothing_can_be_made_hides_nobody_and_is_not_gone(changes: dict[str, object]) -> None:
    made = driver(shown("a", **changes), shown("b"))
    assert [one.id for one in made.machines()] == ["b"]
    assert list(made.odd) == ["a"]
    found = made.look_up(iter(["a", "b", "never"]))
    assert found.keys() == {"b", "never"}, "nothing is said of it"
    assert found["never"] is None
    assert isinstance(found["b"], Instance)


def test_a_state_that_nobody_knows_counts_as_running() -> None:
    (found,) = driver(shown("a", state="migrating")).machines()
    assert (found.state, found.unknown_state) == (CloudState.RUNNING, "migrating")


def test_one_without_an_id_may_be_any_of_those_that_are_missing() -> None:
    nameless = shown("a")
    del nameless["id"]
    made = driver(nameless, shown("b"))
    assert [one.id for one in made.machines()] == ["b"]
    assert list(made.odd) == [NAMELESS]
    assert made.look_up(["a", "b"]).keys() == {"b"}


def test_what_was_left_out_is_told_through_the_wrappers() -> None:
    made = awaited(driver(shown("a", times={})))
    assert not made.odd
    made.machines()
    assert list(made.odd) == ["a"]


def row(flavor: str, **changes: object) -> dict[str, Any]:
    """An offer as the API shows it."""
    plain = {"zone": "z", "flavor": flavor, "market": "on-demand", "price": 0.1, "left": None}
    return {**plain, "cpus": 2, "memory": 4096, "disk": 1 << 20, "gpus": 0, **changes}


@pytest.mark.parametrize("number", ["many", float("nan"), float("inf"), -1, [], True])
@pytest.mark.parametrize("name", ["cpus", "memory", "disk", "gpus", "price", "left"])
def test_what_is_sold_with_a_number_that_is_none_is_left_out_and_named(name: str, number: object) -> None:
    made = awaited(driver(row("odd", **{name: number}), row("b")))
    assert [one.flavor for one in made.offers()] == ["b"]
    assert list(made.odd_offers) == ["z/odd/on-demand"]
    assert not made.odd


def test_what_is_sold_without_all_that_must_be_said_of_it_is_left_out_and_named() -> None:
    short = row("short")
    del short["cpus"]
    made = driver(short, {}, row("none", cpus=None), row("b", price=None))
    assert [(one.flavor, one.price) for one in made.offers()] == [("b", None)]
    assert list(made.odd_offers) == ["z/short/on-demand", NAMELESS, "z/none/on-demand"]
