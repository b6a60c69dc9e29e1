"""Configurations of earlier systems become `updraft.toml`; a report says what became of each key."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from updraft.config.checks import checked_name
from updraft.errors import UsageError
from updraft.importers.convert import Conversion, convert
from updraft.importers.ecm import ECM
from updraft.importers.elastiq import ELASTIQ
from updraft.importers.reading import Form, Source, owned, read, values
from updraft.importers.report import Fate, Report, Row, ordered
from updraft.importers.result import Result
from updraft.importers.rules import Program
from updraft.importers.toml import text_of

PROGRAMS = (ECM, ELASTIQ)


@dataclass(frozen=True, slots=True)
class Import:
    """What an import comes to: the text of `updraft.toml`, and the report."""

    program: str
    toml: str
    report: Report


def run(paths: Sequence[Path], pool: str = "") -> Import:
    """Read the files, recognise each by its content, and turn them into one configuration.

    Raises UsageError or ConfigError, one sentence, for what can't be read, isn't known or isn't possible. No
    secret of the files is in the result or in an error.
    """
    sources = [read(path) for path in paths]
    program = _program(sources)
    found = [value for source in sources for value in values(source)]
    made = convert(program, found, sources)
    machines = tuple(
        dict.fromkeys(machine for source in sources for machine in owned(source) if _state(source))
    )
    made.rows += [_state_row(source) for source in sources if _state(source)]
    names = tuple(dict.fromkeys(source.name for source in sources))
    text = text_of(_result(made, names, _pool_name(pool or program.pool), machines))
    return Import(program.name, text, ordered(names, made.rows))


def _program(sources: Sequence[Source]) -> Program:
    """Whose configuration it is: exactly one of them must be there."""
    elastiq = [source for source in sources if source.form is Form.ELASTIQ]
    ecm = [source for source in sources if source.form in (Form.ECM, Form.MASTER)]
    if len(elastiq) > 1 or (elastiq and ecm):
        both = " and ".join(source.name for source in (*elastiq, *ecm))
        raise UsageError(f"{both} are configurations of two pools; import one at a time")
    if not elastiq and not ecm:
        alone = f"{sources[0].name} is {sources[0].form}" if sources else "no file was named"
        raise UsageError(f"{alone}; name the ecm.conf or the elastiq.conf as well")
    return ELASTIQ if elastiq else ECM


def _state(source: Source) -> bool:
    return source.form is Form.STATE


def _state_row(source: Source) -> Row:
    count = len(owned(source))
    text = (
        f"{count} of elastiq's machines. They aren't in the new pool: see the comment at the end of the file"
    )
    return Row(source.name, "", "machines", Fate.LOOK, text)


def _pool_name(name: str) -> str:
    try:
        return checked_name(name)
    except ValueError as error:
        raise UsageError(f"--pool: {error}") from error


def _result(made: Conversion, files: tuple[str, ...], pool: str, machines: tuple[str, ...]) -> Result:
    return Result(
        files=files,
        pool=pool,
        cloud=made.cloud,
        worker=made.worker,
        layers=tuple(part for found in made.user_data for part in found.parts),
        variables=made.variables,
        owned=machines,
    )


__all__ = ["ECM", "ELASTIQ", "PROGRAMS", "Fate", "Import", "Report", "Row", "run"]
