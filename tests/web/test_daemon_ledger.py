"""The page over what a daemon itself has written, from its first look on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pages import Page, page_over
from tests.rigs.rig import Rig
from updraft.ledger.reader import Reader
from updraft.web.site import VIEWS


def test_every_view_shows_what_a_daemon_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The turns are simulated time: a picture kept for a second of the real clock would outlast them all.
    monkeypatch.setattr("updraft.web.pictures.PICTURE_SERVES", 0.0)
    rig = Rig(tmp_path)
    rig.pool.queues["schedd"].idle = 30
    daemon = rig.start()
    page = page_over(tmp_path / "ledger.db").enter()
    daemon.cycle()
    asked(page, rig)
    rig.turn(daemon, 60)
    overview = asked(page, rig)
    assert overview["machines"]["total"] == len(rig.alive()) == 8
    [sold] = json.loads(page.ask("/clouds.json").text)["rows"]
    assert {(one["flavor"], one["classes"][0]) for one in sold["offers"]["rows"]} == {
        (name, "default") for name in ("small", "medium", "large")
    }
    [limit] = [one for one in overview["limits"] if one["of"] == "the pool"]
    assert (limit["what"], limit["used"], limit["most"]) == ("machines", 8, 10)
    page.pictures.close()
    rig.close()


def asked(page: Page, rig: Rig) -> dict[str, Any]:
    """Every view of the page, as a page and as JSON; the overview's document."""
    with Reader(rig.state / "ledger.db") as reader:
        cycle = reader.last_cycle() or {}
    machine = next((one["machine"] for one in cycle["machines"]), "none")
    key = next((one["key"] for one in cycle["groups"]), "none")
    query = f"?key={key}&id={machine}&user=alice&what=1&gone=1"
    for name in VIEWS:
        if {"machine": machine, "group": key}.get(name) != "none":
            assert page.ask(f"/{name}{query}").status == 200, name
            assert page.ask(f"/{name}.json{query}").status == 200, name
    found: dict[str, Any] = json.loads(page.ask("/overview.json").text)
    return found
