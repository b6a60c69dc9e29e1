"""The scripts that the package ships, whole or without what only people read: user-data has little room."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from importlib.resources import files

# Behind other code a `#` may be no comment's: only a shell could tell.
_BEHIND = re.compile(r"^([A-Z_]+=[^\s'\"`$]*)\s+#\s.*$")


def shipped(name: str) -> str:
    """The text of one of the files that the package ships as data."""
    return files("updraft.bootstrap").joinpath("files", name).read_text(encoding="utf-8")


def lean(name: str) -> str:
    """A shipped script or unit without what only people read: empty lines, lines of comment, comments behind
    plain values (`NAME=value  # why`), descriptions of units; of Python all comments, docstrings and
    annotations of functions."""
    text = shipped(name)
    if name.endswith(".py"):
        text = _lean_python(text)
    kept = [_BEHIND.sub(r"\1", line) for line in text.splitlines() if line.strip() and not _says(line)]
    return "\n".join(kept) + "\n"


def _says(line: str) -> bool:
    """Is it a line of comment, or what a unit says of itself?"""
    if line.startswith(("Description=", "Documentation=")):
        return True
    return line.lstrip().startswith("#") and not line.startswith("#!")


def _lean_python(text: str) -> str:
    tree, lines = ast.parse(text), text.splitlines()
    for number, begin, end in sorted([*_comments(text), *_annotations(tree, lines)], reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:begin].rstrip() + line[end:]
    dropped = set(_unread(tree))
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)


def _comments(text: str) -> Iterator[tuple[int, int, int]]:
    """Line, begin and end of all comments but the first line's, which is for the kernel."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.start[1], token.end[1]


def _annotations(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """The same of what annotates functions: each is in one line, and that is ASCII."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.lineno, node.col_offset + len(node.arg), node.annotation.end_col_offset or 0
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            begin = lines[node.returns.lineno - 1].rindex("->", 0, node.returns.col_offset)
            yield node.returns.lineno, begin, node.returns.end_col_offset or 0


def _unread(tree: ast.Module) -> Iterator[int]:
    """The lines of imports for annotations, and of all docstrings but those that are all that a body has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            yield node.lineno
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
