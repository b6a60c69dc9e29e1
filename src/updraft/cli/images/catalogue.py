"""`images` and `offers`: what the clouds have, as tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import click

from updraft.app.call import Call
from updraft.cli.output import (
    Column,
    ago,
    console,
    count,
    is_narrow,
    json_option,
    megabytes,
    say_json,
    table,
    waiting,
)
from updraft.errors import ProblemFound
from updraft.watching.documents import Document

DEADLINE = 60.0  # a cloud with thousands of images takes its time
GIB = 1 << 20  # in KiB
Row = Document
Cell = Callable[[Row], str]

part_argument = click.argument("part", required=False, default="")
cloud_option = click.option("--cloud", metavar="NAME", help="Only this cloud.")


@click.command()
@part_argument
@cloud_option
@json_option
@click.pass_obj
def images(call: Call, part: str, cloud: str | None, as_json: bool) -> None:
    """List the images of the clouds; PART of a name or id shows only those that have it.

    A name or an id serves wherever updraft.toml asks for an image. A cloud that doesn't answer is named, the
    others are shown, and the exit code is 1.
    """
    rows, errors = _of_clouds(call, cloud, "listed")
    found = [row for row in rows if _has(part, row["name"], row["id"])]
    found.sort(key=lambda row: (row["cloud"], row["name"], row["id"]))
    _show("images", found, errors, _IMAGE_COLUMNS, as_json=as_json, part=part)


@click.command()
@part_argument
@cloud_option
@json_option
@click.pass_obj
def offers(call: Call, part: str, cloud: str | None, as_json: bool) -> None:
    """List what can be bought, the cheapest first; PART of a flavor or zone shows only those that have it.

    Prices are per hour; `?` is one that isn't known, and never counts as zero. A cloud that doesn't answer is
    named, the others are shown, and the exit code is 1.
    """
    rows, errors = _of_clouds(call, cloud, "sold")
    found = [row for row in rows if _has(part, row["flavor"], row["zone"])]
    found.sort(key=lambda row: (row["price"] is None, row["price"] or 0.0, row["flavor"], row["zone"]))
    _show("offers", found, errors, _OFFER_COLUMNS, as_json=as_json, part=part)


def _of_clouds(
    call: Call, only: str | None, what: Literal["listed", "sold"]
) -> tuple[list[Row], Mapping[str, str]]:
    """The rows of all clouds that answer, and the errors of the others; all are asked at the same time."""
    from updraft.app.clouds import named_clouds, rows_of
    from updraft.app.images import places

    settings = call.settings
    names = named_clouds(settings, () if only is None else (only,))
    with waiting(f"asking {', '.join(names)}"):
        return rows_of(settings, names, getattr(places, what), DEADLINE)


def _has(part: str, *texts: str) -> bool:
    return any(part.lower() in text.lower() for text in texts)


def _show(
    what: str,
    rows: Sequence[Row],
    errors: Mapping[str, str],
    columns: Sequence[tuple[Column, bool, Cell]],
    *,
    as_json: bool,
    part: str,
) -> None:
    if as_json:
        say_json({what: rows, "errors": [{"cloud": name, "text": text} for name, text in errors.items()]})
    elif rows:
        out = console()
        several = len({row["cloud"] for row in rows}) > 1
        chosen = [
            (column, cell)
            for column, always, cell in columns
            if (always or not is_narrow(out)) and (several or column.title != "cloud")
        ]
        out.print(
            table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
        )
    elif not errors:
        click.echo(f'no {what} have "{part}" in their names' if part else f"the cloud has no {what}")
    if errors:
        said = "; ".join(f"{name} doesn't answer: {' '.join(text.split())}" for name, text in errors.items())
        raise ProblemFound(f"{count(len(errors), 'cloud')} left out: {said}")


def price(amount: float | None) -> str:
    """A price per hour; `?` where it isn't known."""
    if amount is None:
        return "?"
    return f"{amount:.4g}" if amount >= 0.001 or amount == 0 else f"{amount:.6f}".rstrip("0")


def _gib(disk: int) -> str:
    return f"{disk / GIB:.0f} GiB" if disk else "?"


def _left(row: Row) -> str:
    return "" if row["left"] is None else str(row["left"])


def _made(row: Row) -> str:
    import time

    return "" if row["created"] is None else f"{ago(time.time() - row['created'])} ago"


def _text(key: str) -> Cell:
    return lambda row: str(row[key])


def _resource(key: str, form: Callable[[Any], str] = str) -> Cell:
    return lambda row: form(row["resources"][key])


# column, whether a narrow table has it too, its text
_IMAGE_COLUMNS: Sequence[tuple[Column, bool, Cell]] = (
    (Column("cloud"), True, _text("cloud")),
    (Column("id"), True, _text("id")),
    (Column("name", wide=True), True, _text("name")),
    (Column("state"), True, _text("state")),
    (Column("architecture"), True, _text("arch")),
    (Column("owner"), False, _text("owner")),
    (Column("made", right=True), False, _made),
)
_OFFER_COLUMNS: Sequence[tuple[Column, bool, Cell]] = (
    (Column("cloud"), True, _text("cloud")),
    (Column("flavor"), True, _text("flavor")),
    (Column("cpus", right=True), True, _resource("cpus")),
    (Column("memory", right=True), True, _resource("memory", megabytes)),
    (Column("disk", right=True), False, _resource("disk", _gib)),
    (Column("GPUs", right=True), False, _resource("gpus")),
    (Column("architecture"), False, _text("arch")),
    (Column("price/h", right=True), True, lambda row: price(row["price"])),
    (Column("zone"), True, _text("zone")),
    (Column("market"), True, _text("market")),
    (Column("left", right=True), True, _left),
)
