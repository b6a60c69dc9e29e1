"""`image`: machine images, from looking at them to moving them between clouds."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.output import Column, ago, console, count, json_option, say_json, table, waiting
from updraft.errors import ProblemFound, UsageError
from updraft.watching.documents import Document

if TYPE_CHECKING:
    from updraft.clouds.imaging import MachineImage
    from updraft.config.model import Settings
    from updraft.provision.images.transfer import Place
    from updraft.provision.images.waiting import Watch

_LOOK = 60.0

cloud_option = click.option("--cloud", default="", metavar="NAME", help="The cloud. Default: the only one.")
name_option = click.option("--name", required=True, help="What the image will be called.")
image_argument = click.argument("image")


@click.group()
def image() -> None:
    """Build, make, move, share and delete machine images.

    IMAGE is a name or an id. Images made here are labelled with the pool's name; no other is deleted.
    """


@image.command("list", short_help="The images of CLOUD, or of all: size, and who made them.")
@click.argument("clouds", nargs=-1, metavar="[CLOUD…]")
@click.option("--made", is_flag=True, help="Only those that updraft made for this pool.")
@json_option
@click.pass_obj
def list_(call: Call, clouds: tuple[str, ...], made: bool, as_json: bool) -> None:
    """List images with their size, their state, and what those that updraft made were made from.

    A cloud that doesn't answer is named, the others are shown, and the exit code is 1.
    """
    from updraft.app import clouds as at
    from updraft.app.images import places

    settings = call.settings
    names = at.named_clouds(settings, clouds)
    with waiting(f"asking {', '.join(names)}"):
        found, errors = at.rows_of(settings, names, places.rows_of, _LOOK)
    rows = [row for row in found if row["ours"] or not made]
    if as_json:
        told = [{"cloud": name, "text": text} for name, text in errors.items()]
        say_json({"images": rows, "errors": told})
    elif rows:
        console().print(table(_COLUMNS, [_cells(row) for row in rows]))
    elif not errors:
        click.echo("no images")
    if errors:
        said = "; ".join(f"{name} doesn't answer: {' '.join(text.split())}" for name, text in errors.items())
        raise ProblemFound(f"{count(len(errors), 'cloud')} left out: {said}")


@image.command(short_help="All that the cloud says of an image.")
@image_argument
@cloud_option
@json_option
@click.pass_obj
def show(call: Call, image: str, cloud: str, as_json: bool) -> None:
    """Show an image: its id, state, form, size, checksum, labels, and with whom it is shared."""
    from updraft.app.images.places import row_of

    settings, place = _place(call, cloud)
    row = row_of(place.cloud, place.found(image), settings.pool.name)
    if as_json:
        say_json({"image": row})
        return
    for key in ("cloud", "id", "name", "state", "architecture", "form", "checksum", "from", "pool"):
        click.echo(f"{key + ':':14}{row[key] or '-'}")
    click.echo(f"{'size:':14}{_size(row)}")
    click.echo(f"{'shared with:':14}{', '.join(row['shared']) or '-'}")


@image.command(short_help="Make an image of a FILE.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@name_option
@cloud_option
@click.option(
    "--form", default="", help="The form of FILE (qcow2, raw, tar, …). Default: what it looks like."
)
@click.pass_obj
def upload(call: Call, file: Path, name: str, cloud: str, form: str) -> None:
    """Upload FILE as an image, and wait until it can be launched; its checksum is compared.

    OpenStack takes qcow2, raw, vmdk, vdi and vhd; the local cloud a tar file of a root file system. EC2 has
    no call for image files.
    """
    from updraft.provision.images import transfer

    _, place = _place(call, cloud)
    tell(place, transfer.upload(place, file, name, form, transfer.DEADLINE, watch()))


@image.command(short_help="Write IMAGE into a FILE.")
@image_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@cloud_option
@click.option("--overwrite", is_flag=True, help="Also where FILE is there.")
@click.pass_obj
def download(call: Call, image: str, file: Path, cloud: str, overwrite: bool) -> None:
    """Download an image's file: compared with the cloud's checksum, and called FILE once it is whole."""
    from updraft.provision.images import transfer

    if file.exists() and not overwrite:
        raise UsageError(f"{file} is there; name another file, or say --overwrite")
    _, place = _place(call, cloud)
    transfer.download(place, place.found(image), file, watch())


@image.command(short_help="Copy IMAGE from one cloud to another.")
@image_argument
@click.option("--from", "source", required=True, metavar="CLOUD", help="Where it is.")
@click.option("--to", "target", required=True, metavar="CLOUD", help="Where it shall be.")
@click.option("--name", default="", help="What it will be called there. Default: the same.")
@click.pass_obj
def copy(call: Call, image: str, source: str, target: str, name: str) -> None:
    """Copy an image to another cloud, project or region; checksums are compared on both sides.

    Regions of EC2 copy by themselves; else the file comes through a temporary file here.
    """
    from updraft.provision.images import transfer

    _, here = _place(call, source)
    _, there = _place(call, target)
    found = here.found(image)
    tell(there, transfer.copy(here, found, there, name or found.info.name, transfer.DEADLINE, watch()))


@image.command(short_help="Let another project, account or cloud use IMAGE.")
@image_argument
@click.option(
    "--with", "who", required=True, metavar="ACCOUNT|CLOUD", help="Its id, or a cloud of updraft.toml."
)
@cloud_option
@click.pass_obj
def share(call: Call, image: str, who: str, cloud: str) -> None:
    """Let another OpenStack project or AWS account launch from an image.

    ACCOUNT is the project's id or the account's number. Where it is a cloud of updraft.toml, its id is looked
    up, and the image is accepted there too.
    """
    from updraft.app.images.places import share as share_with

    settings, place = _place(call, cloud)
    one, account = share_with(settings, place, image, who)
    click.echo(f"{image} ({one}) is shared with {account}")


@image.command(short_help="Delete images that updraft made.")
@click.argument("images", nargs=-1, required=True, metavar="IMAGE…")
@cloud_option
@click.option("--force", is_flag=True, help="Also one that updraft didn't make, or that a class names.")
@click.pass_obj
def delete(call: Call, images: tuple[str, ...], cloud: str, force: bool) -> None:
    """Delete images, with the volume snapshots that they alone are made of. There is no way back.

    Refused without --force for an image that this pool's updraft didn't make, and for one that a class of
    updraft.toml would boot. Machines that run go on.
    """
    from updraft.app.images.places import check_deletable

    settings, place = _place(call, cloud)
    found = [place.found(one) for one in images]
    for one in () if force else found:
        check_deletable(settings, place.cloud, one)
    for one in found:
        place.images.delete(one.info.id)
        click.echo(f"deleted {one.info.name} ({one.info.id})")


# ------------------------------------------------------------------------------------------------ inside


def _place(call: Call, cloud: str) -> "tuple[Settings, Place]":
    from updraft.app.images.places import place_of

    settings = call.settings
    return settings, place_of(settings, cloud)


def watch() -> "Watch":
    """Real time, and a line on stderr for each step."""
    from updraft.provision.images.waiting import Watch

    return Watch(say=lambda line: click.echo(f"updraft: {line}", err=True))


def tell(place: "Place", image: "MachineImage") -> None:
    """Say that an image is there, and what to write into updraft.toml."""
    click.echo(f"{image.info.name} ({image.info.id}) is ready in cloud {place.cloud}; in updraft.toml:")
    click.echo(f'  image = "{image.info.name}"')


def _size(row: Mapping[str, object]) -> str:
    size = row["size"]
    if not isinstance(size, int):
        return "-"
    mib = size / 2**20
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.1f} MiB"


def _cells(row: Document) -> list[str]:
    import time

    made = "" if row["created"] is None else f"{ago(time.time() - row['created'])} ago"
    whose = f"made here from {row['from']}" if row["ours"] else row["pool"]
    return [row["cloud"], row["id"], row["name"], row["state"], _size(row), made, whose]


_COLUMNS = (
    Column("cloud"),
    Column("id"),
    Column("name", wide=True),
    Column("state"),
    Column("size", right=True),
    Column("made", right=True),
    Column("by", wide=True),
)


def _add_making() -> None:
    from updraft.cli.images import making as image_making  # it uses what is above

    image.add_command(image_making.build)
    image.add_command(image_making.make)


_add_making()
