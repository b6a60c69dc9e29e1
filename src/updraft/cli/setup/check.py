"""`check`: everything that troubleshooting would look at by hand, each with what to do about it."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.output import console, count, is_narrow, json_option, say_json, waiting
from updraft.errors import ConfigError, ProblemFound
from updraft.watching.documents import Document

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from updraft.checks import Finding

STYLES: Mapping[str, str] = {"ok": "green", "warning": "yellow", "problem": "bold red", "skipped": "cyan"}
LONGEST_WHAT = 32


@click.command()
@json_option
@click.option("--all/--brief", "everything", default=True, help="Also what is ok, or only what isn't.")
@click.pass_obj
def check(call: Call, as_json: bool, everything: bool) -> None:
    """Look at everything that a working pool needs, and say what to do about what is amiss.

    Configuration, daemon, pool, rights, tokens, clouds, images, flavors, keys, quotas, boots that failed.
    Each line is ok, a warning, a problem, or skipped with the reason. All is asked at the same time, and
    nothing is waited for longer than 8 s. The exit code is 1 where there is a problem. Nothing is changed.
    """
    from updraft.app.check import findings

    file, begun = call.file, time.monotonic()
    with waiting("looking at this machine, the pool and the clouds"):
        found = findings(file)
    document = checked(found, file, time.monotonic() - begun)
    if as_json:
        say_json(document)
    else:
        out = console()
        out.print(picture(found if everything else [one for one in found if one.state != "ok"], out))
        click.echo(_summary(document))
    problems = document["counts"]["problem"]
    if any(one.what == "configuration" and one.state == "problem" for one in found):
        raise ConfigError(f"{file} is wrong, so that nothing else was looked at")
    if problems:
        raise ProblemFound(f"{count(problems, 'problem')}: see what to do above")


def checked(found: Sequence["Finding"], file: Path, seconds: float) -> Document:
    """The findings as a document."""
    counts = Counter(str(one.state) for one in found)
    return {
        "file": str(file),
        "seconds": round(seconds, 2),
        "counts": {state: counts.get(state, 0) for state in STYLES},
        "findings": [{**asdict(one), "state": str(one.state)} for one in found],
    }


def picture(found: Iterable["Finding"], out: "Console") -> "RenderableType":
    """The findings for people, by area: state, what it is, how it stands, and below it what to do."""
    from rich.table import Table
    from rich.text import Text

    narrow = is_narrow(out)
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(overflow="fold", max_width=LONGEST_WHAT)
    if not narrow:
        made.add_column(overflow="fold", max_width=LONGEST_WHAT)
    made.add_column(overflow="fold", ratio=1)
    area = ""
    for one in found:
        if one.area != area:
            made.add_row(Text(f"\n{one.area}" if area else one.area, style="bold"))
            area = one.area
        text = Text(one.text)
        if one.remedy:
            text.append(f"\n→ {one.remedy}", style="italic")
        state = Text(str(one.state), style=STYLES[one.state])
        if narrow:
            made.add_row(state, Text.assemble((f"{one.what}: ", "bold"), text))
        else:
            made.add_row(state, Text(one.what), text)
    return made


def _summary(document: Document) -> str:
    counts: Mapping[str, int] = document["counts"]
    plural = {"warning": "warnings", "problem": "problems"}
    parts = [
        f"{number} {plural.get(state, state) if number > 1 else state}"
        for state, number in counts.items()
        if number
    ]
    return f"\n{', '.join(parts)}; {document['seconds']:.1f} s"
