"""From the file to the settings tree, or to one error that names every fault with its line."""

from operator import itemgetter
from pathlib import Path

from pydantic import ValidationError

from updraft.config import parse
from updraft.config.crosschecks import contradictions, secrets
from updraft.config.drivers import driver_faults
from updraft.config.faults import Fault, faults_of
from updraft.config.lines import KeyPath, dotted, key_lines, line_of
from updraft.config.model import Settings
from updraft.errors import ConfigError


def read(path: Path) -> Settings:
    """The checked tree of one file, its relative paths made absolute. Raises ConfigError."""
    tables = parse(path)
    faults = [*secrets(tables), *driver_faults(tables)]
    settings: Settings | None = None
    try:
        settings = Settings.model_validate(tables, context={"base": path.parent})
    except ValidationError as error:
        faults += faults_of(error, Settings)
    if settings is not None:
        faults += contradictions(settings)
    if settings is None or faults:
        raise ConfigError(report(path, faults))
    return _anchored(settings, path.parent.absolute())


def report(path: Path, faults: list[Fault]) -> str:
    """All faults of a file, in the order of its lines, one sentence each."""
    lines = key_lines(path.read_text(encoding="utf-8"))
    first: dict[KeyPath, str] = {}
    for where, what in faults:  # a key that is wrong in two ways is named once
        first.setdefault(where, what)
    placed = sorted(
        ((line_of(lines, where) or 0, where, what) for where, what in first.items()), key=itemgetter(0)
    )
    return "\n".join(_sentence(path.name, *fault) for fault in placed)


def _sentence(file: str, line: int, where: KeyPath, what: str) -> str:
    key = dotted(where)
    place = f"{file}, line {line}: " if line else f"{file}: "
    return f"{place}{key}: {what}" if key else f"{place}{what}"


def _anchored(settings: Settings, base: Path) -> Settings:
    pool = settings.pool
    paths = {
        name: base / value
        for name in ("state_dir", "token", "condor_config")
        if (value := getattr(pool, name)) is not None
    }
    return settings.model_copy(update={"pool": pool.model_copy(update=paths)})
