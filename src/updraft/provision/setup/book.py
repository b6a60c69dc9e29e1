"""The book (the manifest) of the files that were written to this machine, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from updraft.errors import UsageError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """What the book says of a file: the hash it was written with, and what it replaced.

    `before` is the hash it had until then as updraft's own; `original` the backup of what was somebody
    else's, with its mode. `anyhow` files are rewritten at each start: they are removed whatever they say.
    `made` files are not updraft's wish: a program that it started made them, and they go with the head.
    """

    sha256: str
    owner: str = "root"
    before: str = ""
    original: str = ""
    original_mode: int = 0
    anyhow: bool = False
    made: bool = False


@dataclass(frozen=True, slots=True)
class Book:
    """The manifest: files, folders that were made for them, and facts about the machine before."""

    files: Mapping[str, Entry] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """As it stands on disk."""
        files = {path: asdict(one) for path, one in self.files.items()}
        told = {"version": _VERSION, "files": files, "folders": self.folders, "facts": dict(self.facts)}
        return json.dumps(told, indent=1) + "\n"


def parse_book(data: bytes | None, path: str) -> Book:
    """The book from its bytes, an empty one from none. Raises UsageError where they aren't one."""
    if data is None:
        return Book()
    try:
        told = json.loads(data)
        version = told["version"]
        files = {name: Entry(**one) for name, one in told["files"].items()}
        book = Book(files, tuple(told["folders"]), dict(told["facts"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is damaged: what was written here can't be told any more") from error
    if version != _VERSION:
        raise UsageError(f"{path} was written by another updraft: use that one")
    return book
