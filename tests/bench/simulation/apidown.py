"""A cloud's API is down for ten minutes in the middle of work, in virtual time: what goes wrong, and after.

A controller of two clouds, of which the better one falls silent while machines of it boot, work and idle.
Jobs come and end all the while.
"""

import tempfile
from pathlib import Path
from typing import Any

from tests.bench.rows import Measured, Row
from tests.rigs.manyclouds import ManyClouds
from updraft.core.model import Known
from updraft.core.settings import CloudRule

DOWN = 600.0
CYCLE = 2.0
MOST_CYCLES = 300
FLAVOR = {"flavors": {"small": {"cpus": 2, "memory": "4GiB", "price": 0.1}}}
SLOW = {"boots": [{"start": "30s", "join": "30s"}]}
CHANGES = ("launch", "terminate", "tag")


def play() -> dict[str, Any]:
    """The whole story, counted."""
    with tempfile.TemporaryDirectory(prefix="updraft-down-") as folder:
        world = ManyClouds(
            Path(folder), {"down": {**FLAVOR, **SLOW}, "up": FLAVOR}, rules={"up": CloudRule(1)}
        )
        try:
            return _story(world)
        finally:
            world.close()


def _story(world: ManyClouds) -> dict[str, Any]:
    for jobs in (2, 38):  # a first machine to try the image, then many
        world.idle = jobs
        world.turn(120, CYCLE)
    world.idle = 10
    world.turn(2 * CYCLE, CYCLE)  # five more are asked for, and will boot while nobody can look
    site = world.sites["down"]
    before = {one.id for one in site.alive("test")}
    begun = world.clock()
    world.fail("down", DOWN)
    others, wanted, drained = world.alive()["up"], 0, len(world.pool.drains)
    for minute in range(round(DOWN / 60)):
        world.pool.finish(f"down-{minute + 1:05d}")  # it is idle from now on
        if minute == 4:
            wanted = 60
            world.idle = world.idle + wanted
        world.turn(60, CYCLE)
    silent = [call for call in site.calls if call.at >= begun and call.name in CHANGES]
    there = {one.id for one in site.alive("test")}
    drained = len(world.pool.drains) - drained
    cycles = _back(world, len(before))
    wrong = {
        "asked of the silent cloud": len(silent),
        "machines drained": drained,
        "machines ended": len(before - there),
        "machines too many": max(0, 2 * (world.alive()["up"] - others) - wanted),
        "machines forgotten": len(before - _known(world)),
        "jobs killed": world.pool.killed_jobs,
        "jobs left": world.idle,
    }
    world.pool.finish()
    world.turn(300, CYCLE)
    wrong["machines left at the end"] = sum(world.alive().values())
    return {"cycles_to_normal": cycles, "wrong": wrong, "machines_there": len(before)}


def _back(world: ManyClouds, machines: int) -> int:
    """Cycles after the API's return until the cloud is known with all its machines and idle ones go."""
    for cycle in range(1, MOST_CYCLES):
        world.turn(CYCLE, CYCLE)
        view = world.snapshot.clouds["down"].machines if world.snapshot else None
        if isinstance(view, Known) and len(view.value) == machines and world.pool.drains:
            return cycle
    return MOST_CYCLES


def _known(world: ManyClouds) -> set[str]:
    """The machines of the cloud that the ledger has not written off."""
    assert world.ledger is not None
    records = world.ledger.view(world.clock()).machines
    return {one.id for one in records if one.cloud == "down" and one.ended_at is None}


def rows() -> list[Row]:
    """The rows of a silent cloud."""
    what = "a cloud's API down for 10 minutes in the middle of work"

    def cycles() -> Measured:
        seen = play()
        return Measured(seen["cycles_to_normal"], seen)

    def wrong() -> Measured:
        seen = play()
        return Measured(sum(seen["wrong"].values()), seen)

    return [
        Row("api-down", f"{what}: cycles from its return to normal", 1, "cycles", cycles),
        Row("api-down-wrong", f"{what}: wrong actions, machines doubled or forgotten", 0, "", wrong),
    ]
