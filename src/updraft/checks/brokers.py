"""What is to be known of the brokers (CCB) that classes of workers are reached through."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from updraft.checks.asking import Answer
from updraft.checks.finding import POOL, Finding, short

REGISTER = "ADVERTISE_MASTER"
TOO_MUCH = "DAEMON"
_LINES = "docs/howto/nat.md shows the lines that the head needs for a broker"


class Probe(Protocol):
    """What is asked of a broker; `condor.probe.PoolProbe` does it."""

    def broker_token(self, broker: str, deadline: float) -> Mapping[str, str]:
        """What a freshly made broker's token is good for there."""


def questions(
    probe: Probe, brokers: Mapping[str, Callable[[], str]], deadline: float
) -> Mapping[str, Callable[[], Any]]:
    """What to ask for each class that is reached through a broker; `brokers` find its address."""

    def ask(find: Callable[[], str]) -> Callable[[], Any]:
        return lambda: (broker := find(), probe.broker_token(broker, deadline))

    return {name: ask(find) for name, find in brokers.items()}


def judge(answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """Whether the machines of each class will be able to register with its broker."""
    for name, answer in answers.items():
        what = f"broker of {name}"
        if answer.error is not None:
            text = f"a worker could not register with it: {short(answer.error)}"
        else:
            address, rights = answer.value
            if rights.get(TOO_MUCH):
                text = f"{address} gives a worker's token {TOO_MUCH}, and {REGISTER} is enough to register"
                yield POOL.warning(what, text, f"{_LINES}, and when they can be changed")
                continue
            if rights.get(REGISTER):
                yield POOL.ok(what, f"{address} takes a worker's token as {rights[REGISTER]}")
                continue
            text = f"{address} doesn't take a worker's token ({REGISTER})"
        yield POOL.problem(what, text, _LINES)
