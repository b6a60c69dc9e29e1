"""On which line of a TOML file a key stands: for error messages only."""

from collections.abc import Mapping, Sequence

import tomlkit
from tomlkit.container import Container
from tomlkit.items import AoT, InlineTable, Item, Key, Table

KeyPath = tuple[str | int, ...]


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line (from 1) of each key and table of a valid TOML text; a table's line is its first header's."""
    found: dict[KeyPath, int] = {}
    _walk(tomlkit.parse(text), (), 1, found)
    return found


def line_of(lines: Mapping[KeyPath, int], path: Sequence[str | int]) -> int | None:
    """The line of this key, or of the nearest table around it; None where nothing of it is in the file."""
    for length in range(len(path), 0, -1):
        if (line := lines.get(tuple(path[:length]))) is not None:
            return line
    return None


def dotted(path: Sequence[str | int]) -> str:
    """A key as a person writes it: `classes.default.layers[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _walk(container: Container, above: KeyPath, line: int, found: dict[KeyPath, int]) -> int:
    """Note every key of a container that begins on `line`; return the line on which it ends."""
    for key, item in container.body:
        line = _item(key, item, above, line, found)
    return line


def _item(key: Key | None, item: Item, above: KeyPath, line: int, found: dict[KeyPath, int]) -> int:
    if key is None:
        return line + item.as_string().count("\n")
    path = (*above, key.key)
    if isinstance(item, AoT):
        found.setdefault(path, line)
        for index, table in enumerate(item.body):
            line = _table(table, (*path, index), line, found)
        return line
    if isinstance(item, Table):
        return _table(item, path, line, found)
    found.setdefault(path, line)
    if isinstance(item, InlineTable):
        for inner in item:
            found.setdefault((*path, inner), line)
    rendered = item.trivia.indent + item.as_string() + item.trivia.comment_ws + item.trivia.comment
    return line + (rendered + item.trivia.trail).count("\n")


def _table(table: Table, path: KeyPath, line: int, found: dict[KeyPath, int]) -> int:
    if not table.is_super_table():
        line += table.trivia.indent.count("\n")
        found.setdefault(path, line)
        line += (table.trivia.comment + table.trivia.trail).count("\n")
    else:
        found.setdefault(path, line)
    return _walk(table.value, path, line, found)
