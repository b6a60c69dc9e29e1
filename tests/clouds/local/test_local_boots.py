"""Machines of the local cloud boot a few at a time, in the order in which they were asked for."""

import runpy
import threading
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from tests.waiting import until
from updraft.clouds.local.service import boots
from updraft.clouds.local.service.boots import Boots


class Launches:
    """Boots that end when they are told to; `begun` are those that have had their turn, in order."""

    def __init__(self, most: int) -> None:
        self.boots = Boots(most)
        self.begun: list[str] = []
        self.ended: dict[str, threading.Event] = {}
        self.cancelled: dict[str, threading.Event] = {}
        self.answers: dict[str, bool] = {}
        self.threads: dict[str, threading.Thread] = {}

    def ask(self, name: str, how: Callable[[], threading.Event | None] | None = None) -> None:
        self.ended[name], self.cancelled[name] = threading.Event(), threading.Event()

        def boot() -> threading.Event | None:
            self.begun.append(name)
            return how() if how else self.ended[name]

        def run() -> None:
            self.answers[name] = self.boots.one(boot, self.cancelled[name])

        thread = self.threads[name] = threading.Thread(target=run, daemon=True)
        asked = len(self.threads)
        thread.start()
        seen(lambda: len(self.begun) + self.boots.waiting == asked or not thread.is_alive())

    def end(self, name: str) -> None:
        self.ended[name].set()
        self.threads[name].join(20)


def seen(what: Callable[[], bool]) -> None:
    until(what, 20, "what was asked for", every=0.005)


def test_so_many_boot_at_once_and_the_next_when_one_has_booted() -> None:
    launches = Launches(2)
    for name in "abcd":
        launches.ask(name)
    assert launches.begun == ["a", "b"]
    launches.end("b")
    seen(lambda: len(launches.begun) == 3)
    assert launches.begun == ["a", "b", "c"]
    launches.end("a")
    seen(lambda: len(launches.begun) == 4)


def test_a_machine_that_is_ended_while_it_waits_never_boots_and_keeps_nobody_waiting() -> None:
    launches = Launches(1)
    for name in "abc":
        launches.ask(name)
    launches.cancelled["b"].set()
    launches.threads["b"].join(20)
    assert launches.answers == {"b": False}
    launches.end("a")
    seen(lambda: "c" in launches.begun)
    assert launches.begun == ["a", "c"]


def test_a_boot_without_end_gives_its_turn_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "LONGEST", 0.01)
    launches = Launches(1)
    launches.ask("hangs")
    launches.ask("next")
    seen(lambda: launches.begun == ["hangs", "next"])


def test_a_machine_that_could_not_be_started_gives_its_turn_away() -> None:
    launches = Launches(1)
    launches.ask("broken", lambda: None)
    launches.ask("next")
    seen(lambda: launches.begun == ["broken", "next"])


def test_cloud_init_is_looked_at_for_its_option_and_not_run(tmp_path: Path) -> None:
    path = resources.files("updraft.clouds.local") / "files" / "stages.py"
    stages = runpy.run_path(str(path))
    main = tmp_path / "python3/dist-packages/cloudinit/cmd/main.py"
    assert not stages["all_stages"](tmp_path)
    main.parent.mkdir(parents=True)
    main.write_text('parser.add_argument("--force")')
    assert not stages["all_stages"](tmp_path)
    main.write_text('parser.add_argument("--all-stages")')
    assert stages["all_stages"](tmp_path)
