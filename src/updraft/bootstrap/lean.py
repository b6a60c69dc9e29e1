"""The scripts that the package ships, whole or without what only people read: user-data has little room."""

import ast
import re
from collections.abc import Iterator
from importlib.resources import files

# Behind other code a `#` may be no comment's: only a shell could tell.
_BEHIND = re.compile(r"^([A-Z_]+=[^\s'\"`$]*)\s+#\s.*$")


def shipped(name: str) -> str:
    """The text of one of the files that the package ships as data."""
    return files("updraft.bootstrap").joinpath("files", name).read_text(encoding="utf-8")


def lean(name: str) -> str:
    """A shipped script or unit without what only people read: empty lines, lines of comment, comments behind
    plain values (`NAME=value  # why`), and docstrings of Python."""
    text = shipped(name)
    told = set(_docstrings(ast.parse(text))) if name.endswith(".py") else set()
    kept = [
        _BEHIND.sub(r"\1", line)
        for number, line in enumerate(text.splitlines(), 1)
        if number not in told and line.strip() and not _is_comment(line)
    ]
    return "\n".join(kept) + "\n"


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not line.startswith("#!")


def _docstrings(tree: ast.Module) -> Iterator[int]:
    """The lines of all docstrings, but of those that are all that a body has."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
