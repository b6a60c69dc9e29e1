"""A reader finds the tests of a module of the core by its name.

They are in `test_<module>.py`, or in a file whose docstring says `Covers ...` of what it tests as one unit.
"""

import ast
import re
from pathlib import Path

import updraft.core

PLAIN = {"__init__", "settings"}  # which hold data and decide nothing


def test_each_module_of_the_core_has_tests_under_its_name() -> None:
    modules = {file.stem for file in Path(updraft.core.__file__).parent.glob("*.py")} - {
        "__init__",
        "settings",
    }
    files = list(Path(__file__).parent.glob("test_*.py"))
    found = {file.stem.removeprefix("test_") for file in files}
    covered: set[str] = set()
    for file in files:
        said = ast.get_docstring(ast.parse(file.read_text())) or ""
        for sentence in re.findall(r"^Covers (.+?)\.$", said, re.MULTILINE | re.DOTALL):
            covered |= set(re.findall(r"`(\w+)`", sentence))
    assert modules - found - covered == set()
    assert covered - modules == set(), "these are no modules of the core"
