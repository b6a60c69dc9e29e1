"""What an import comes to, before it is written: settings with where each comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.importers.output.userdata import Part

NO_IMAGE = "choose-an-image"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its value as TOML has it, and the old key that it comes from."""

    value: str | int | bool | list[str] | Mapping[str, str] | Mapping[str, int | str]
    origin: str


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file: its settings in the order in which they are written.

    `above` and `below` are comments; `layers` and `variables` are those of a class.
    """

    settings: Mapping[str, Setting]
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    layers: tuple[Part, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The tables by their names, and the machines that the old program owned.

    `settings` are further ones of [pool], `demand` those of [demand]; `users` are those of [users.NAME];
    `remarks` are comments for the head of the file.
    """

    files: tuple[str, ...]
    pool: str
    clouds: Mapping[str, Section]
    classes: Mapping[str, Section]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    demand: Mapping[str, Setting] = field(default_factory=dict)
    users: Mapping[str, Section] = field(default_factory=dict)
    owned: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
