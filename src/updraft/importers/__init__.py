"""Configurations of earlier systems become `updraft.toml`; a report says what became of each key."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from updraft.config.values.checks import checked_pool_name
from updraft.errors import UsageError
from updraft.importers.convert import convert
from updraft.importers.formats.faults import collect
from updraft.importers.formats.reading import Form, Source, owned, read, values, with_those_beside
from updraft.importers.output.report import Fate, Report, Row, ordered
from updraft.importers.output.result import Result
from updraft.importers.output.rules import Program
from updraft.importers.output.toml import text_of
from updraft.importers.programs import cs1, csv2, onepool
from updraft.importers.programs.cs1_rules import CLOUD_SCHEDULER
from updraft.importers.programs.csv2_rules import CSV2
from updraft.importers.programs.ecm import ECM
from updraft.importers.programs.elastiq import ELASTIQ

PROGRAMS = (ECM, ELASTIQ, CLOUD_SCHEDULER, CSV2)
FORMS = {
    ECM: (Form.ECM, Form.MASTER),
    ELASTIQ: (Form.ELASTIQ,),
    CLOUD_SCHEDULER: (Form.RESOURCES, Form.SCHEDULER),
    CSV2: (Form.CSV2,),
}


@dataclass(frozen=True, slots=True)
class Import:
    """What an import comes to: the text of `updraft.toml`, and the report."""

    program: str
    toml: str
    report: Report


def run(paths: Sequence[Path], pool: str = "") -> Import:
    """Read the files, recognise each by its content, and turn them into one configuration.

    Raises UsageError or ConfigError, one sentence for each fault, for what can't be read, isn't known or
    isn't possible. No secret of the files is in the result or in an error.
    """
    sources = with_those_beside(paths, collect(read, paths))
    program = _program(sources)
    name = _pool_name(pool) if pool else ""
    if program in (CLOUD_SCHEDULER, CSV2):
        made = cs1.made if program is CLOUD_SCHEDULER else csv2.made
        result, rows = made(sources, name)
    else:
        result, rows = _one_pool(program, sources, name)
    return Import(program.name, text_of(result), ordered(result.files, rows))


def _one_pool(program: Program, sources: Sequence[Source], pool: str) -> tuple[Result, list[Row]]:
    found = [value for part in collect(values, sources) for value in part]
    made = convert(program, found, sources)
    states = [source for source in sources if source.form is Form.STATE]
    machines = tuple(dict.fromkeys(machine for source in states for machine in owned(source)))
    rows = made.rows + [_state_row(source) for source in states]
    names = tuple(dict.fromkeys(source.name for source in sources))
    return onepool.result(made, names, pool or program.pool, machines), rows


def _program(sources: Sequence[Source]) -> Program:
    """Whose configuration it is: exactly one of them must be there."""
    theirs = {
        program: [source for source in sources if source.form in forms] for program, forms in FORMS.items()
    }
    there = {program: found for program, found in theirs.items() if found}
    for forms in ((Form.ELASTIQ,), (Form.RESOURCES,), (Form.SCHEDULER,)):
        twice = [source for source in sources if source.form in forms]
        if len(twice) > 1:
            raise _two_pools(twice)
    if len(there) > 1:
        raise _two_pools([source for found in there.values() for source in found])
    if not there:
        alone = f"{sources[0].name} is {sources[0].form}" if sources else "no file was named"
        raise UsageError(
            f"{alone}; name the ecm.conf, the elastiq.conf, the cloud_resources.conf or the export of csv2 "
            "as well"
        )
    return next(iter(there))


def _two_pools(sources: Sequence[Source]) -> UsageError:
    both = " and ".join(source.name for source in sources)
    return UsageError(f"{both} are configurations of two pools; import one at a time")


def _state_row(source: Source) -> Row:
    count = len(owned(source))
    text = (
        f"{count} of elastiq's machines. They aren't in the new pool: see the comment at the end of the file"
    )
    return Row(source.name, "", "machines", Fate.LOOK, text)


def _pool_name(name: str) -> str:
    try:
        return checked_pool_name(name)
    except ValueError as error:
        raise UsageError(f"--pool: {error}") from error


__all__ = [
    "CLOUD_SCHEDULER",
    "CSV2",
    "ECM",
    "ELASTIQ",
    "PROGRAMS",
    "Fate",
    "Import",
    "Report",
    "Row",
    "run",
]
