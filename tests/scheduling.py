"""Which tests stay together when tests with real parts are spread over workers: those that share a pool.

pytest-xdist's own groups (`--dist loadgroup`) change node ids, which pytest 9.2 no longer lets them.
"""

import ast
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that use what is set up once for their module stay together; all others go by themselves."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, test = nodeid.partition("::")
        name = test.partition("[")[0]
        return path if name in sharing(self.config.rootpath / path) else nodeid


@cache
def sharing(path: Path) -> frozenset[str]:
    """The tests of a file that use, by whatever fixture, what is set up once for their module."""
    functions = {
        node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    }
    shared = {"module_pool", *(name for name, node in functions.items() if _once(node))}
    while more := {name for name, node in functions.items() if _uses(node) & shared} - shared:
        shared |= more
    return frozenset(name for name in shared if name.startswith("test_"))


def _once(node: ast.FunctionDef) -> bool:
    keywords = [word for one in node.decorator_list if isinstance(one, ast.Call) for word in one.keywords]
    return any(word.arg == "scope" and ast.unparse(word.value) == "'module'" for word in keywords)


def _uses(node: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in node.args.args}
