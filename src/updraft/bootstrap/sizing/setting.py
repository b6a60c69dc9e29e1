"""One line of a configuration with why it is there, and what each release of HTCondor knows of settings."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated

from updraft.errors import BootstrapError

FEATURE = "feature"
"""The word for the newest release that was looked at."""

MANUAL = "HTCondor's manual"
TREE = "HTCondor's recipe for a collector tree"
WIKI = "HTCondor's wiki, large pools"
ESTIMATE = "estimate"
UPDRAFT = "updraft"

_CHILD = re.compile(r"COLLECTOR[0-9]+")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of HTCondor's."""

    name: Annotated[str, "Its name."]
    value: Annotated[str, "Its value."]
    reason: Annotated[str, "Why it is so."]
    source: Annotated[str, "Whose advice it is."]
    since: Annotated[str, "The oldest release known to have it."] = ""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Defaults of HTCondor's settings by release (oldest first), without those that it lacks."""

    releases: tuple[str, ...]
    defaults: Mapping[str, Mapping[str, str]]

    def release(self, asked: str) -> str:
        """The release that `asked` ("24.0", "24.0.7", "feature") is taken for: the newest not newer than it.

        Raises BootstrapError for what is no version, or older than all of them.
        """
        if asked == FEATURE:
            return self.releases[-1]
        if not re.fullmatch(r"[0-9]+\.[0-9]+(\.[0-9]+)?", asked):
            raise BootstrapError(f'"{asked}" is no version of HTCondor: 25.0, 24.0.7 or {FEATURE}')
        # 24.0 stands for all of 24.0.*, which nobody has counted.
        wanted = [*map(int, asked.split(".")), *([] if asked.count(".") == 2 else [999])]
        fitting = [one for one in self.releases if [*map(int, one.split("."))] <= wanted]
        if not fitting:
            series = self.releases[0].rpartition(".")[0]
            older = asked.rpartition(".")[0] if asked.count(".") == 2 else asked
            if older == series:
                return self.releases[0]
            raise BootstrapError(
                f"HTCondor {asked} is older than what is known here, which begins at {series}"
            )
        return fitting[-1]

    def since(self, name: str) -> str:
        """The oldest release that knows the setting, as `23.0`; empty where none does."""
        known = next((one for one in self.releases if name in self.defaults[one]), "")
        return known.rpartition(".")[0]

    def worth_saying(self, wanted: Iterable[Setting], release: str) -> Iterator[Setting]:
        """Of these settings, those that this release knows and doesn't have so by itself."""
        for one in wanted:
            name = parameter(one.name)
            default = self.defaults[release].get(name)
            own = one.name == name  # a child's own value is said also where it is the default of others
            if default is not None and not (own and default.lower() == one.value.lower()):
                yield Setting(one.name, one.value, one.reason, one.source, self.since(name))


def parameter(name: str) -> str:
    """The setting that a line's name is of: `COLLECTOR3.COLLECTOR_LOG` is a COLLECTOR_LOG.

    A daemon of a name of its own has its program, its arguments and its log as `<NAME>`, `<NAME>_ARGS` and
    `<NAME>_LOG`; they are written here with that placeholder.
    """
    return _CHILD.sub("<NAME>", name) if "." not in name else name.partition(".")[2]


@cache
def knowledge() -> Knowledge:
    """What known.toml says."""
    text = files("updraft.bootstrap.sizing").joinpath("known.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text)
    releases = tuple(read["releases"])
    defaults: dict[str, dict[str, str]] = {one: {} for one in releases}
    for name, row in read["defaults"].items():
        columns = [row] * len(releases) if isinstance(row, str) else row
        for release, value in zip(releases, columns, strict=True):
            if value is not False:
                defaults[release][name] = value
    return Knowledge(releases, defaults)
