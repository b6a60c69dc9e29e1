"""The error classes and the reason codes that the source has: what the reference tells of them.

Reason codes are found by reading every place that makes one, so none can be forgotten.
"""

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from updraft import errors

SOURCE = Path(errors.__file__).parent


def error_classes() -> list[type[errors.UpdraftError]]:
    """Every error, in the order in which the tree has them."""
    found = [one for one in vars(errors).values() if inspect.isclass(one)]
    return [one for one in found if issubclass(one, errors.UpdraftError)]


def oneline(text: str | None) -> str:
    """A docstring as one line."""
    return " ".join((text or "").split())


Said = tuple[set[str], set[str]]


@cache  # to read all of the source takes seconds
def reason_codes(source: Path = SOURCE) -> Mapping[str, Said]:
    """Each reason code in the source, with its sentences and the rooms that make it."""
    found: dict[str, Said] = defaultdict(lambda: (set(), set()))
    modules = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in modules.items()}
    constants = {_dotted(path, source): dict(_constants(tree)) for path, tree in trees.items()}
    for path, tree in trees.items():
        if "Reason(" not in modules[path]:
            continue
        room = path.relative_to(source).parts[0].removesuffix(".py")
        for code, text in _reasons_in(tree, _known_to(tree, _dotted(path, source), constants)):
            texts, rooms = found[code]
            texts |= {text} if text else set()
            rooms.add(room)
    for one in error_classes():
        if issubclass(one, errors.CloudError):
            found[one.code][0].add(oneline(one.__doc__))
            found[one.code][1].add("clouds")
    return found


def _dotted(path: Path, source: Path) -> str:
    """The name by which a module is imported."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _known_to(tree: ast.Module, module: str, constants: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The constants that a module has, and those that it imports, by the names that it has for them."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        theirs = constants.get(node.module or "", {}) if isinstance(node, ast.ImportFrom) else {}
        if theirs and isinstance(node, ast.ImportFrom):
            found |= {one.asname or one.name: theirs[one.name] for one in node.names if one.name in theirs}
    return {**found, **constants[module]}


def _reasons_in(tree: ast.Module, constants: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    nodes = list(ast.walk(tree))
    named = {
        (target.id, node.lineno): _sentence(node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason"):
            continue
        if len(node.args) == 2:
            text = _sentence(node.args[1]) or _last_said(named, node.args[1])
            for code in _codes(node.args[0], constants):
                yield code, text


def _last_said(named: Mapping[tuple[str, int], str], node: ast.expr) -> str:
    """The text that a variable was last given above this place."""
    if not isinstance(node, ast.Name):
        return ""
    above = [(line, text) for (name, line), text in named.items() if name == node.id and line < node.lineno]
    return max(above, default=(0, ""))[1]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The module's constants that are texts."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    yield target.id, node.value.value


def _codes(node: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in constants:
        yield constants[node.id]
    elif isinstance(node, ast.IfExp):
        yield from _codes(node.body, constants)
        yield from _codes(node.orelse, constants)
    elif isinstance(node, ast.JoinedStr):
        yield _sentence(node)


def _sentence(node: ast.expr) -> str:
    """A text as it stands in the source, with … for what is put into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.IfExp):
        return _sentence(node.body)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""
