"""What clouds sell is written down when it changes, the cheapest cores first; kept while they are silent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.rig import Rig
from updraft.core.model import Known, Reason, Snapshot, Unknown
from updraft.daemon.figures import offers
from updraft.daemon.figures.offers import OffersKeeper, rows_of
from updraft.ledger import Ledger


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.fixture
def look(rig: Rig) -> Snapshot:
    rig.one_busy()
    return rig.look()


def noted(rig: Rig) -> dict[str, Any] | None:
    assert rig.ledger is not None
    return rig.ledger.noted("offers c1")


def dearer(look: Snapshot, later: float) -> Snapshot:
    """The same after a while, when another price is asked."""
    view = look.clouds["c1"]
    assert isinstance(view.offers, Known)
    sold = tuple(replace(one, price=9.0) for one in view.offers.value)
    asked = tuple(replace(one, price=9.0) for one in look.offers)
    clouds = {"c1": replace(view, offers=Known(sold, look.now + later))}
    return replace(look, now=look.now + later, clouds=clouds, offers=asked)


def test_what_is_sold_is_told_with_its_classes_the_cheapest_core_first(look: Snapshot) -> None:
    rows = rows_of(look, "c1")
    assert {row["flavor"] for row in rows} == {"small", "medium", "large"}
    per_core = [row["price"] / row["cpus"] for row in rows]
    assert per_core == sorted(per_core)
    assert {tuple(row["classes"]) for row in rows} == {("default",)}
    assert rows_of(look, "other") == []


def test_the_cheapest_are_kept_of_very_many(look: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    every = rows_of(look, "c1")
    monkeypatch.setattr(offers, "MOST", 1)
    assert rows_of(look, "c1") == every[:1]


def test_another_price_is_written_down_and_the_same_one_is_not(rig: Rig, look: Snapshot) -> None:
    assert isinstance(rig.ledger, Ledger)
    keeper = OffersKeeper(rig.ledger)
    keeper.look(look)
    first = noted(rig)
    assert first is not None
    keeper.look(replace(look, now=look.now + 60))
    assert noted(rig) == first
    keeper.look(dearer(look, 120))
    second = noted(rig)
    assert second is not None
    assert {row["price"] for row in second["rows"]} == {9.0}
    assert second["at"] == look.now + 120


def test_the_last_ones_stay_while_a_cloud_is_silent(rig: Rig, look: Snapshot) -> None:
    assert isinstance(rig.ledger, Ledger)
    keeper = OffersKeeper(rig.ledger)
    keeper.look(look)
    first = noted(rig)
    silent = replace(look.clouds["c1"], offers=Unknown(Reason("silent", "no answer"), look.now))
    keeper.look(replace(look, now=look.now + 7200, clouds={"c1": silent}))
    assert noted(rig) == first
