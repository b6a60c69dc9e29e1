"""Drivers' own settings: checked by the driver's model, where the driver has one.

A driver is an entry point of the group `updraft.drivers`; its module may hold a pydantic model named
`Settings` for the keys of [clouds.NAME] that are its own.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from pydantic import BaseModel, ValidationError

from updraft.config.faults import Fault, faults_of
from updraft.config.model import Cloud, Settings

GROUP = "updraft.drivers"


def driver_entry(name: str) -> EntryPoint | None:
    """The installed driver of this name."""
    return next(iter(entry_points(group=GROUP, name=name)), None)


def driver_names() -> list[str]:
    """All drivers that are installed."""
    return sorted(entry.name for entry in entry_points(group=GROUP))


def driver_faults(settings: Settings) -> Iterator[Fault]:
    """What the drivers have against their settings."""
    for name, cloud in settings.clouds.items():
        yield from _faults(name, cloud)


def _faults(name: str, cloud: Cloud) -> Iterator[Fault]:
    where = ("clouds", name)
    entry = driver_entry(cloud.driver)
    if entry is None:
        known = ", ".join(driver_names())
        yield (*where, "driver"), f'there is no driver "{cloud.driver}"; installed are {known}'
        return
    model = settings_model(entry)
    if model is None:
        return
    try:
        model.model_validate(dict(cloud.settings))
    except ValidationError as error:
        for inner, what in faults_of(error, model, list(Cloud.model_fields)):
            yield (*where, *inner), what


def settings_model(entry: EntryPoint) -> type[BaseModel] | None:
    """The driver's settings model, None where it takes whatever it is given."""
    try:
        found = getattr(import_module(entry.module), "Settings", None)
    except ImportError:
        return None  # the driver says what it lacks when it is asked for; a check of settings need not
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None
