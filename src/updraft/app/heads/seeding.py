"""A seed image, with HTCondor and updraft on it and no credential of anybody, for `head image`."""

from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from updraft.app import wiring
from updraft.app.heads.places import usual_image
from updraft.app.heads.spec import installed
from updraft.app.images.places import place_of
from updraft.bootstrap import compose
from updraft.bootstrap.head.source import chosen_source
from updraft.bootstrap.images.seeding import SeedSpec, seed_layers
from updraft.bootstrap.layers import parse_layer
from updraft.clouds.base import TAG_CLASS, LaunchRequest
from updraft.clouds.imaging import MachineImage
from updraft.config.model import Settings
from updraft.provision.heads.machines import fitting
from updraft.provision.images.making import Order, SeedMaker, pool_name
from updraft.provision.images.transfer import Place
from updraft.provision.images.waiting import Watch

CLASS = "head-image"


@dataclass(frozen=True, slots=True)
class SeedWish:
    """What is asked for; see the options of `head image`."""

    name: str
    cloud: str
    base: str
    layers: tuple[Path, ...]
    flavor: str
    source: str
    index: str
    condor: str


def seed(settings: Settings, wish: SeedWish, watch: Watch) -> tuple[Place, MachineImage]:
    """A seed image: its machine is launched, prepared, cleaned and kept; it is ended in any case."""
    place = place_of(settings, wish.cloud)
    spec = SeedSpec(
        install=installed(wish.condor),
        source=chosen_source(wish.source, wish.index),
        index=wish.index,
        layers=tuple(parse_layer(path.name, path.read_text(encoding="utf-8")) for path in wish.layers),
    )
    base = wish.base or usual_image(settings, place.cloud)
    own = pool_name(settings.pool.name)
    alone = settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})})
    machines = wiring.make_cloud(alone, place.cloud, alone.clouds[place.cloud]).machines
    maker = SeedMaker(place, machines, watch)
    maker.sweep()
    offer = fitting(machines.offers(), wish.flavor, "")
    request = LaunchRequest(
        key=f"image-{token_hex(6)}", count=1, image=base, flavor=offer.flavor, zone=offer.zone,
        market="on-demand", user_data=compose(seed_layers(spec)), tags={TAG_CLASS: CLASS},
    )  # fmt: skip
    return place, maker.make(Order(wish.name, base, request))
