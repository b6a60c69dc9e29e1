"""What comes before an annex is written down: what is asked for, can its machines join, what would it buy."""

import getpass
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.config.values.units import seconds
from updraft.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.checks import Finding

ME, ALL = "me", "all"
_LONGEST_LAYER = 256 * 1024
_DEADLINE = 7.5
_BLOCKING = ("collector", "right ", "workers' tokens", "broker of ", "address for machines")


class Span(click.ParamType):  # type: ignore[type-arg]
    """A duration with a unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        """The duration in seconds."""
        if isinstance(value, float):
            return value
        try:
            return seconds(value)
        except ValueError as error:
            self.fail(str(error), param, context)


SPAN = Span()


def me() -> str:
    """Whose jobs "me" means: the user who called, also through sudo."""
    user = getpass.getuser()
    return os.environ.get("SUDO_USER", user) if user == "root" else user


def tags_of(pairs: Sequence[str]) -> dict[str, str]:
    """Tags from `K=V`. Raises UsageError for what is none, or said twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise UsageError(f"--tag takes KEY=VALUE, each key once, and not {pair[:80]!r}")
        found[key] = value
    return found


def layer_of(path: Path | None) -> str:
    """The text of the file with user-data; "" without one. Raises UsageError for what can't be read."""
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}") from error
    if len(text) > _LONGEST_LAYER or not text.strip():
        raise UsageError(
            f"{path}: user-data is a text of at most {_LONGEST_LAYER // 1024} KiB, and not empty"
        )
    return text


def refuse(found: Sequence["Finding"]) -> None:
    """Say what is doubtful; raises ProblemFound, in one sentence, where its machines could not join."""
    for one in found:
        if one.state == "warning":
            click.echo(f"updraft: {one.text}; {one.remedy}", err=True)
    bad = [one for one in found if one.state == "problem"]
    if bad:
        text = f"its machines could not join: {bad[0].text}; {bad[0].remedy}"
        raise ProblemFound(f"{text}; nothing was asked for (--unchecked asks all the same)")
