"""What a check comes to."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

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
    """One thing that was looked at."""

    area: Annotated[str, 'Where it belongs: "here", "pool", "cloud NAME".']
    what: Annotated[str, "What it is."]
    state: Annotated[State, "Skipped isn't ok: nobody knows."]
    text: Annotated[str, "How it stands, or why it can't be said."]
    remedy: Annotated[str, "What to do; empty where nothing needs doing."] = ""


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
