"""What was begun is ended in time, and a run ends though something can't be."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.chaos.running import Mender
from tests.chaos.troubles import cloudside, poolside
from tests.chaos.troubles.script import Happening
from tests.chaos.troubles.world import World
from tests.rigs.pools.resident import WatchedPool
from tests.waiting import deadline
from updraft.clouds.base import TAG_POOL
from updraft.errors import CloudUnavailable

CUT = Happening(3, 0.0, "cut-from-head", 1.0, 0)
FIELDS = {"key": "k", "flavor": "s", "zone": "z", "market": "m", "cores": 1, "address": "10.7.0.11"}


class Paper(World):
    """A world of one machine, in which nothing can be run once it has ended."""

    def __init__(self, folder: Path) -> None:
        self.events = folder / "events"
        super().__init__(cast(WatchedPool, SimpleNamespace(cloud=SimpleNamespace(events=self.events))))
        self.ran: list[str] = []
        self.broken = False
        self.enters("pending")
        self.enters("running")

    def enters(self, state: str) -> None:
        """The machine's state from now on."""
        line = {"at": time.time(), "machine": "i-1", "state": state, "why": "", "role": "worker", **FIELDS}
        with self.events.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def in_machine(self, machine: str, script: str) -> None:
        if self.broken or self.log().machines[machine].state == "terminated":
            raise RuntimeError(f"{script}: no such process")
        self.ran.append(script)


@pytest.mark.parametrize("deed", [cloudside.cut(""), poolside.startd("STOP")], ids=["cut", "startd stopped"])
@pytest.mark.parametrize("gone", [False, True])
def test_what_was_done_to_a_machine_is_over_with_it(tmp_path: Path, deed: object, gone: bool) -> None:
    world = Paper(tmp_path)
    end = deed(world, CUT)  # type: ignore[operator]
    assert end is not None
    begun = len(world.ran)
    if gone:
        world.enters("terminated")
    else:
        world.broken = True
        with pytest.raises(RuntimeError):
            end()
        world.broken = False
    end()
    assert len(world.ran) == begun + (not gone)
    assert [one.machine for one in world.deeds] == ["i-1"]


def test_a_tag_is_put_back_though_taking_it_away_was_answered_by_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, tags = Paper(tmp_path), {TAG_POOL: "lab"}

    def tag(_ids: list[str], wanted: dict[str, str | None]) -> None:
        tags.update({name: value or "" for name, value in wanted.items()})
        if not tags[TAG_POOL]:
            raise CloudUnavailable("done, and answered by an error")

    row = {"id": "i-1", "tags": dict(tags)}
    monkeypatch.setattr(World, "client", SimpleNamespace(machines=lambda: [row], tag=tag))
    end = cloudside.tag_removed(world, CUT)
    assert end is not None
    assert tags == {TAG_POOL: ""}
    end()
    assert tags == {TAG_POOL: "lab"}


def test_what_cannot_be_ended_is_tried_for_a_while_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.chaos.running._AGAIN", 0.01)
    monkeypatch.setattr("tests.chaos.running.PATIENCE", 0.2)
    said: list[str] = []
    tries: list[str] = []

    def never() -> None:
        tries.append("x")
        raise RuntimeError("no way")

    def at_last() -> None:
        tries.append("y")
        if tries.count("y") < 3:
            raise RuntimeError("not yet")

    mender = Mender(said.append)
    mender.start()
    mender.add(time.monotonic(), CUT, never)
    mender.add(time.monotonic(), Happening(4, 0.0, "clock-back", 1.0, 0), at_last)
    with pytest.raises(AssertionError, match="can't be ended: cut-from-head"):
        mender.close(deadline(30))
    assert not mender.is_alive(), "it ends all the same"
    assert tries.count("x") > 2
    assert tries.count("y") == 3
