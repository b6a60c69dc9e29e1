"""`images` and `offers`: what the clouds have, as tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

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
from updraft.documents import Document, left_out_of
from updraft.errors import ProblemFound

if TYPE_CHECKING:
    from updraft.app.images.places import ListedImage
    from updraft.config.model import Settings
    from updraft.core.model import CloudOffer

DEADLINE = 60.0  # a cloud with thousands of images takes its time
GIB = 1 << 20  # in KiB
R = TypeVar("R", "ListedImage", "CloudOffer")

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
    from updraft.app.images import places

    rows, errors = _of_clouds(call, cloud, places.listed)
    found = [row for row in rows if _has(part, row.listed.name, row.listed.id)]
    found.sort(key=lambda row: (row.cloud, row.listed.name, row.listed.id))
    document = places.Images(found, left_out_of(errors))
    _show("images", found, errors, _IMAGE_COLUMNS, document if as_json else None, part=part)


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
    from updraft.app.images import places

    rows, errors = _of_clouds(call, cloud, places.sold)
    found = [row for row in rows if _has(part, row.flavor, row.zone)]
    found.sort(key=lambda row: (row.price is None, row.price or 0.0, row.flavor, row.zone))
    document = places.Offers(found, left_out_of(errors))
    _show("offers", found, errors, _OFFER_COLUMNS, document if as_json else None, part=part)


def _of_clouds(
    call: Call, only: str | None, rows: "Callable[[Settings, str], list[R]]"
) -> tuple[list[R], Mapping[str, str]]:
    """The rows of all clouds that answer, and the errors of the others; all are asked at the same time."""
    from updraft.app.clouds import named_clouds, rows_of

    settings = call.settings
    names = named_clouds(settings, () if only is None else (only,))
    with waiting(f"asking {', '.join(names)}"):
        return rows_of(settings, names, rows, DEADLINE)


def _has(part: str, *texts: str) -> bool:
    return any(part.lower() in text.lower() for text in texts)


def _show(
    what: str,
    rows: Sequence[R],
    errors: Mapping[str, str],
    columns: "Sequence[tuple[Column, bool, Callable[[R], str]]]",
    document: Document | None,
    *,
    part: str,
) -> None:
    if document is not None:
        say_json(document)
    elif rows:
        out = console()
        several = len({row.cloud for row in rows}) > 1
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


def _made(created: float | None) -> str:
    import time

    return "" if created is None else f"{ago(time.time() - created)} ago"


# column, whether a narrow table has it too, its text
_IMAGE_COLUMNS: "Sequence[tuple[Column, bool, Callable[[ListedImage], str]]]" = (
    (Column("cloud"), True, lambda row: row.cloud),
    (Column("id"), True, lambda row: row.listed.id),
    (Column("name", wide=True), True, lambda row: row.listed.name),
    (Column("state"), True, lambda row: row.listed.state),
    (Column("architecture"), True, lambda row: row.listed.arch),
    (Column("owner"), False, lambda row: row.listed.owner),
    (Column("made", right=True), False, lambda row: _made(row.listed.created)),
)
_OFFER_COLUMNS: "Sequence[tuple[Column, bool, Callable[[CloudOffer], str]]]" = (
    (Column("cloud"), True, lambda row: row.cloud),
    (Column("flavor"), True, lambda row: row.flavor),
    (Column("cpus", right=True), True, lambda row: str(row.resources.cpus)),
    (Column("memory", right=True), True, lambda row: megabytes(row.resources.memory)),
    (Column("disk", right=True), False, lambda row: _gib(row.resources.disk)),
    (Column("GPUs", right=True), False, lambda row: str(row.resources.gpus)),
    (Column("architecture"), False, lambda row: row.arch),
    (Column("price/h", right=True), True, lambda row: price(row.price)),
    (Column("zone"), True, lambda row: row.zone),
    (Column("market"), True, lambda row: row.market),
    (Column("left", right=True), True, lambda row: "" if row.left is None else str(row.left)),
)
