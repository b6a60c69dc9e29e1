"""`head image`: a seed image, with HTCondor and updraft on it and no credential of anybody."""

from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.heads.making import usual_image
from updraft.cli.heads.spec import condor_option, index_option, installed, source_option
from updraft.cli.images.image import cloud_option, name_option, place_of, watch
from updraft.cli.images.making import ended_by_term

if TYPE_CHECKING:
    from updraft.bootstrap.images.seeding import SeedSpec
    from updraft.config.model import Settings

CLASS = "head-image"


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
@click.option("--flavor", default="", help="On which flavor. Default: the cheapest with 2 cpus and 2 GiB.")
@source_option
@index_option
@condor_option
@click.pass_obj
def image(
    call: Call,
    name: str,
    cloud: str,
    base: str,
    layers: tuple[Path, ...],
    flavor: str,
    source: str,
    index: str,
    condor: str,
) -> None:
    """Build an image for heads: launch a machine, put HTCondor and updraft in, clean it, keep it.

    It knows of no pool. A scan looks for keys, tokens, credentials of clouds and what people typed: what it
    finds is named, and there is no image then. The machine is ended in any case. Where `updraft head launch
    --image NAME` boots it, the head makes its own keys, and has its configuration from its user-data.
    """
    from updraft.bootstrap.head.source import chosen_source
    from updraft.bootstrap.images.seeding import SeedSpec
    from updraft.bootstrap.layers import parse_layer

    settings = call.settings
    place = place_of(settings, cloud)
    spec = SeedSpec(
        install=installed(condor),
        source=chosen_source(source, index),
        index=index,
        layers=tuple(parse_layer(path.name, path.read_text(encoding="utf-8")) for path in layers),
    )
    with ended_by_term():
        _make(settings, place.cloud, name, base or usual_image(settings, place.cloud), flavor, spec)


def _make(settings: "Settings", cloud: str, name: str, base: str, flavor: str, spec: "SeedSpec") -> None:
    from updraft.app.wiring import make_driver
    from updraft.bootstrap import compose
    from updraft.bootstrap.images.seeding import seed_layers
    from updraft.clouds.base import TAG_CLASS, LaunchRequest
    from updraft.provision.heads.machines import fitting
    from updraft.provision.images.making import Order, SeedMaker, pool_name

    own = pool_name(settings.pool.name)
    alone = settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})})
    driver, place = make_driver(alone, cloud, alone.clouds[cloud]), place_of(settings, cloud)
    maker = SeedMaker(place, driver, watch())
    maker.sweep()
    offer = fitting(driver.offers(), flavor, "")
    request = LaunchRequest(
        key=f"image-{token_hex(6)}", count=1, image=base, flavor=offer.flavor, zone=offer.zone,
        market="on-demand", user_data=compose(seed_layers(spec)), tags={TAG_CLASS: CLASS},
    )  # fmt: skip
    made = maker.make(Order(name, base, request))
    click.echo(f"{made.info.name} ({made.info.id}) is ready in cloud {cloud}; for a head:")
    click.echo(f"  updraft head launch NAME --cloud {cloud} --image {name} --condor image --source image")
