"""Drivers' own settings: read, and refused, here and nowhere else.

A driver is what an entry point of the group `updraft.drivers` names: see `clouds.cloud.Driver`. Here only its
`settings` are known, the pydantic model of those keys of [clouds.NAME] that are its own.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from updraft.config.faults import Fault, faults_of
from updraft.config.lines import dotted
from updraft.config.model import CloudTable
from updraft.errors import ConfigError, UsageError

GROUP = "updraft.drivers"
Checked = TypeVar("Checked", bound=BaseModel)


@runtime_checkable
class HasSettings(Protocol):
    """A driver, as far as it is known here."""

    @property
    def settings(self) -> type[BaseModel]:
        """What its settings have to be."""


def driver_names() -> list[str]:
    """All drivers that are installed."""
    return sorted(entry.name for entry in _installed())


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Read once: it takes opening a file of each package that is installed."""
    return tuple(entry_points(group=GROUP))


def driver_faults(tables: Mapping[str, object]) -> Iterator[Fault]:
    """What the drivers have against their settings in this file, whatever else is wrong with it."""
    clouds = tables.get("clouds")
    for name, table in clouds.items() if isinstance(clouds, dict) else ():
        if isinstance(table, dict) and isinstance(table.get("driver"), str):
            own = {key: value for key, value in table.items() if key not in CloudTable.model_fields}
            yield from _faults(name, table["driver"], own)


def _faults(name: str, driver: str, own: Mapping[str, object]) -> Iterator[Fault]:
    where = ("clouds", name)
    try:
        model = settings_model(driver)
    except UsageError as error:
        yield (*where, "driver"), str(error)
        return
    if model is None:
        return
    try:
        model.model_validate(own)
    except ValidationError as error:
        for inner, what in faults_of(error, model, list(CloudTable.model_fields)):
            yield (*where, *inner), what


def checked_settings(model: type[Checked], name: str, own: Mapping[str, object]) -> Checked:
    """A driver's settings of the cloud `name`. Raises ConfigError that names each wrong key."""
    try:
        return model.model_validate(dict(own))
    except ValidationError as error:
        faults = (f"{dotted(('clouds', name, *where))}: {what}" for where, what in faults_of(error, model))
        raise ConfigError("\n".join(faults)) from error


def settings_model(driver: str) -> type[BaseModel] | None:
    """The settings of the driver of this name; None where what it needs isn't installed.

    Such a driver says what it lacks when it is asked for; a check of settings need not. Raises UsageError as
    `load_driver`.
    """
    try:
        return load_driver(driver).settings
    except ImportError:
        return None


def load_driver(name: str) -> HasSettings:
    """The installed driver of this name. Raises ImportError where what it needs isn't installed.

    Raises UsageError where there is none, and for one that was made for another version of updraft.
    """
    entry = next((one for one in _installed() if one.name == name), None)
    if entry is None:
        raise UsageError(f'there is no driver "{name}"; installed are {", ".join(driver_names())}')
    foreign = UsageError(
        f'the driver "{name}" ({entry.value}) is for another version of updraft: install one for this'
    )
    try:
        found = entry.load()
    except AttributeError as error:
        raise foreign from error
    if not isinstance(found, HasSettings):
        raise foreign
    return found
