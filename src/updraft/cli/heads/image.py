"""`head image`: a seed image, with HTCondor and updraft on it and no credential of anybody."""

from pathlib import Path
from typing import Any

import click

from updraft.app.call import Call
from updraft.cli.endings import ended_by_term
from updraft.cli.heads.options import condor_option, index_option, source_option
from updraft.cli.images.image import cloud_option, name_option, watch


@click.command(short_help="A seed image for heads: HTCondor and updraft, no credentials.")
@name_option
@cloud_option
@click.option(
    "--from", "base", default="", metavar="IMAGE", help="The base. Default: the first class's image."
)
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What to do to it besides, as a class's layer; several in their order.",
)
@click.option(
    "--flavor", default="", help="Its machine's flavor. Default: the cheapest with 2 cpus and 2 GiB."
)
@source_option
@index_option
@condor_option
@click.pass_obj
def image(call: Call, /, **wish: Any) -> None:
    """Build an image for heads: launch a machine, put HTCondor and updraft in, clean it, keep it.

    It knows of no pool. A scan looks for keys, tokens, credentials of clouds and what people typed: what it
    finds is named, and there is no image then. The machine is ended in any case. Where `updraft head launch
    --image NAME` boots it, the head makes its own keys, and has its configuration from its user-data.
    """
    from updraft.app.heads.seeding import SeedWish, seed

    with ended_by_term():
        place, made = seed(call.settings, SeedWish(**wish), watch())
    name, cloud = made.info.name, place.cloud
    click.echo(f"{name} ({made.info.id}) is ready in cloud {cloud}; for a head:")
    click.echo(
        f"  updraft head launch NAME --cloud {cloud} --image {wish['name']} --condor image --source image"
    )
