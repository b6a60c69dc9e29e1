"""`updraft check` and the brokers that classes of workers are reached through."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from updraft.app import wiring
from updraft.checks import brokers
from updraft.checks.asking import ask
from updraft.checks.finding import Finding, State
from updraft.config import load
from updraft.errors import PoolError


class Probe:
    """A broker that gives these rights, or an error."""

    def __init__(self, says: Mapping[str, str] | Exception) -> None:
        self.says = says
        self.asked: list[str] = []

    def broker_token(self, broker: str, deadline: float) -> Mapping[str, str]:
        self.asked.append(broker)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def found(probe: Probe) -> list[Finding]:
    questions = brokers.questions(probe, {"nat": lambda: "head:9618?sock=broker"}, 1.0)
    return list(brokers.judge(ask(questions, 5.0)))


def test_a_broker_that_takes_workers_is_fine() -> None:
    probe = Probe({"ADVERTISE_MASTER": "worker-check@pool", "DAEMON": ""})
    [finding] = found(probe)
    assert finding.state is State.OK
    assert "head:9618?sock=broker takes a worker's token as worker-check@pool" in finding.text
    assert probe.asked == ["head:9618?sock=broker"]


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (PoolError("condor_token_create failed (1): no key."), "no key"),
        ({"ADVERTISE_MASTER": "", "DAEMON": ""}, "head:9618?sock=broker doesn't take a worker's token"),
    ],
)
def test_one_that_would_not_take_them_is_a_problem_with_a_remedy(
    says: Mapping[str, str] | Exception, words: str
) -> None:
    [finding] = found(Probe(says))
    assert finding.state is State.PROBLEM
    assert words in finding.text
    assert "nat.md" in finding.remedy


def test_one_that_gives_workers_more_than_it_takes_is_warned_of() -> None:
    [finding] = found(Probe({"ADVERTISE_MASTER": "", "DAEMON": "worker-check@pool"}))
    assert (finding.state, "gives a worker's token DAEMON" in finding.text) == (State.WARNING, True)
    assert "nat.md" in finding.remedy


def test_the_broker_of_each_class_that_has_one_is_asked(tmp_path: Path) -> None:
    (tmp_path / "updraft.toml").write_text(
        '[pool]\nname = "p"\ncollector = "head.test"\n[clouds.c]\ndriver = "fake"\n'
        '[classes.plain]\nimage = "i"\n[classes.nat]\nimage = "i"\nreach = "ccb"\n'
        '[classes.far]\nimage = "i"\nreach = "ccb"\nccb = "broker.test:9700"\n'
    )
    asked = wiring.brokers(load(tmp_path / "updraft.toml"))
    assert {name: find() for name, find in asked.items()} == {
        "nat": "head.test?sock=broker",
        "far": "broker.test:9700",
    }


def test_without_such_a_class_nothing_is_asked() -> None:
    assert brokers.questions(Probe({}), {}, 1.0) == {}
