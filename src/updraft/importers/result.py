"""What an import comes to, before it is written: settings with where each comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.importers.userdata import Part

NO_IMAGE = "choose-an-image"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its value as TOML has it, and the old key that it comes from."""

    value: str | int | list[str]
    origin: str


@dataclass(frozen=True, slots=True)
class Result:
    """The settings by their names, the layers, and the machines that the old program owned.

    `cloud` and `worker` are the keys of [clouds.ec2] and [classes.default] in the order in which they are
    written; `remarks` are comments for the head of the file.
    """

    files: tuple[str, ...]
    pool: str
    cloud: Mapping[str, Setting]
    worker: Mapping[str, Setting]
    layers: tuple[Part, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    owned: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
