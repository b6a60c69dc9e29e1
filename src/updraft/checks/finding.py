"""What a check comes to."""

from dataclasses import dataclass
from enum import StrEnum

from updraft.clouds import base
from updraft.errors import UpdraftError


class State(StrEnum):
    """How a thing stands. Skipped is not ok: nobody knows."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    `area` is where it belongs ("here", "pool", "cloud NAME"), `what` names it, `text` is a sentence on how it
    stands, `remedy` what to do about it (empty where nothing needs doing).
    """

    area: str
    what: str
    state: State
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """Makes the findings of one area."""

    name: str

    def ok(self, what: str, text: str) -> Finding:
        """It is as it should be."""
        return Finding(self.name, what, State.OK, text)

    def warning(self, what: str, text: str, remedy: str) -> Finding:
        """It works, and may not for long or not for everybody."""
        return Finding(self.name, what, State.WARNING, text, remedy)

    def problem(self, what: str, text: str, remedy: str) -> Finding:
        """It doesn't work."""
        return Finding(self.name, what, State.PROBLEM, text, remedy)

    def skipped(self, what: str, text: str, remedy: str = "") -> Finding:
        """It can't be looked at; `text` says why."""
        return Finding(self.name, what, State.SKIPPED, text, remedy)

    def of_driver(self, found: base.Finding) -> Finding:
        """What a driver says of its cloud."""
        return Finding(self.name, found.what, State(found.state), found.text, found.remedy)


POOL = Area("pool")


def short(error: UpdraftError) -> str:
    """What an error says, to be put into a sentence."""
    return " ".join(str(error).split()).rstrip(".")[:300]
