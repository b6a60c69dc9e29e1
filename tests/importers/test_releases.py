"""The keys of every release of the old programs are known; what their values meant is told of such keys."""

import json
from pathlib import Path

import pytest

from updraft.importers import PROGRAMS
from updraft.importers.output.rules import Program
from updraft.importers.programs.equivalents import meanings

READ = json.loads((Path(__file__).parent / "data" / "releases.json").read_text())


def known(program: Program) -> set[tuple[str, str]]:
    return {(rule.section, rule.key.lower()) for rule in program.rules}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_key_that_any_release_reads_has_a_rule(program: Program) -> None:
    rows = READ[program.name]
    assert len(rows) > 5
    missing = [row for row in rows if (row[0], row[1].lower()) not in known(program)]
    assert missing == []


def test_what_values_meant_is_told_of_keys_that_there_are() -> None:
    told = {table.name: table.rows for table in meanings()}
    assert set(told) == {program.name for program in PROGRAMS}
    for program in PROGRAMS:
        for key, *rest in told[program.name]:
            section, _, name = key.rpartition(".")
            assert (section, name.lower()) in known(program), key
            assert all(rest), "releases, meaning, and where it is said"
