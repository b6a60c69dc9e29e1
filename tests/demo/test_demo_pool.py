"""How long the head of a demo is waited for: as long as something moves, and no longer."""

import subprocess
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from updraft.demo import pool as demo
from updraft.demo.pool import RealPool
from updraft.errors import ProblemFound


@dataclass
class Head:
    """A head in virtual time: what its console has printed by when, and when schedd and controller answer."""

    console: dict[float, str] = field(default_factory=dict)
    schedd: float = 1e9
    controller: float = 1e9
    dies: float = 1e9
    now: float = 0.0
    head: str = "i-head"

    @property
    def cloud(self) -> Any:
        printed = "".join(text for at, text in self.console.items() if at <= self.now)
        state = "terminated" if self.now >= self.dies else "running"
        client = SimpleNamespace(
            console=lambda _machine: printed, machines=lambda: [{"id": self.head, "state": state}]
        )
        return SimpleNamespace(client=lambda: client)

    def on_head(self, *argv: str, timeout: float) -> "subprocess.CompletedProcess[str]":
        if self.now >= self.dies:
            raise ProblemFound("Machine i-head does not run")
        return subprocess.CompletedProcess(argv, 0 if self.now >= self.schedd else 1, "", "")

    def show(self, *_argv: str) -> dict[str, str]:
        if self.now < self.controller:
            raise ProblemFound("there is no ledger yet")
        return {}

    def wait(self, controller: bool = True) -> float:
        def sleep(seconds: float) -> None:
            self.now += seconds

        demo._await_head(cast(RealPool, self), controller, lambda: self.now, sleep)
        return self.now


def test_a_slow_head_is_waited_for_while_something_moves() -> None:
    slow = {float(at): f"step {at}\n" for at in range(0, 300, 80)}
    assert Head(slow, schedd=310, controller=395).wait() == 395
    assert Head(slow, schedd=310).wait(controller=False) == 310


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "words", "seconds"),
    [
        (Head({0: "begins\n", 20: "updraft-boot: FAILED: no keyring\n"}), "its boot failed (no keyring)", 20),
        (Head({0: "begins\n"}, dies=12), "its machine is terminated", 12),
        (Head({5: "begins\n"}), "nothing has moved on for 90 s", 95),
        (Head(schedd=50), "nothing has moved on for 90 s", 140),
        (Head({float(at): "x\n" for at in range(2000)}), "900 s are too long", 900),
    ],
    ids=["boot-failed", "ended", "quiet", "no-controller", "endless"],
)
def test_a_head_that_will_not_come_up_is_given_up(head: Head, words: str, seconds: float) -> None:
    with pytest.raises(ProblemFound) as raised:
        head.wait()
    assert words in str(raised.value)
    assert "console ends with" in str(raised.value)
    assert head.now == seconds
