"""One rule for each key of a configuration that is imported: the importer and its reference page read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from updraft.importers.output.report import Fate


class Kind(StrEnum):
    """How a value is read."""

    COUNT = "count"
    SECONDS = "seconds"
    TEXT = "text"
    ADDRESS = "address"
    USER_DATA = "user-data"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of one key.

    `target` is the part of the result that its value goes to, empty for a key that isn't taken; `becomes` is
    the setting as people read it; `default` is what the old program took where the file is silent, None
    where it had none.
    """

    section: str
    key: str
    fate: Fate
    why: str
    target: str = ""
    becomes: str = ""
    kind: Kind = Kind.TEXT
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program whose configuration is imported.

    `title` is what its files are called; `pool` is the name that the pool gets unless told. `beside` are the
    rules of an ec2rc.sh that may be named with it.
    """

    name: str
    title: str
    pool: str
    rules: Sequence[Rule]
    notes: Sequence[tuple[str, Fate, str]] = ()
    """What it had or did without a key for it: (what, fate, sentence)."""
    beside: Sequence[Rule] = ()

    def rule(self, section: str, key: str) -> Rule | None:
        """The rule for a key; sections are compared exactly, keys too."""
        known = (*self.rules, *self.beside)
        return next((rule for rule in known if (rule.section, rule.key) == (section, key)), None)
