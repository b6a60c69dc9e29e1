"""A reader finds the tests of a module of the core by its name.

They are in `test_<module>.py` of the same room, or in a file whose docstring says `Covers ...` of what it
tests as one unit.
"""

import ast
import re
from pathlib import Path

import updraft.core

PLAIN = {"__init__", "settings"}  # which hold data and decide nothing
VALUES = "model"  # a room of such


def test_each_module_of_the_core_has_tests_under_its_name() -> None:
    core = Path(updraft.core.__file__).parent
    modules = {file.relative_to(core) for file in core.rglob("*.py") if file.stem not in PLAIN}
    modules = {file for file in modules if file.parts[0] != VALUES}
    tests = Path(__file__).parent
    files = [file.relative_to(tests) for file in tests.rglob("test_*.py")]
    found = {file.with_name(file.name.removeprefix("test_")) for file in files}
    covered: set[str] = set()
    for file in files:
        said = ast.get_docstring(ast.parse((tests / file).read_text())) or ""
        for sentence in re.findall(r"Covers (.+?)\.$", said, re.MULTILINE | re.DOTALL):
            covered |= set(re.findall(r"`(\w+)`", sentence))
    assert {file for file in modules - found if file.stem not in covered} == set()
    assert covered - {file.stem for file in modules} == set(), "these are no modules of the core"
