"""Each claim of docs/explanation/security.md names the test that shows it, and that test is there."""

import ast
import re
from pathlib import Path

from updraft.condor.tokens import revoked

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def claims() -> list[str]:
    """Every point of a list on the page."""
    points = re.findall(r"^- .*?(?=^- |^#|^\S|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert len(points) > 20
    return points


def test_every_named_test_is_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 25
    there: dict[str, set[str]] = {}
    for path, _ in named:
        if path not in there:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            there[path] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert [f"{path}::{name}" for path, name in named if name not in there[path]] == []


def test_tables_name_tests_that_are_named_with_their_place() -> None:
    short = {
        name for row in re.findall(r"^\|.*", PAGE, re.MULTILINE) for name in re.findall(r"`(test_\w+)`", row)
    }
    assert len(short) > 3
    assert short - {name for _, name in NAMED.findall(PAGE)} == set()


def test_every_claim_names_a_test_or_says_why_it_has_none() -> None:
    bare = [point for point in claims() if not NAMED.search(point) and "\n  No test: " not in point]
    assert bare == []


def test_the_lines_to_be_written_by_hand_are_those_that_are_written() -> None:
    written = revoked.text(revoked.Revoked({"worker-LAUNCH@DOMAIN": None}))
    lines = [line for line in written.splitlines() if line.startswith(("SEC_", "COLLECTOR."))]
    assert len(lines) == 4
    assert [line for line in lines if line not in PAGE.splitlines()] == []
    closing = (ROOT / "src/updraft/bootstrap/files/close-metadata.sh").read_text(encoding="utf-8")
    (table,) = re.findall(r"^```\n(table inet .*?\n}\n)```$", PAGE, re.MULTILINE | re.DOTALL)
    assert table in closing
