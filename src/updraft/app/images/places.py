"""The images of clouds, and what they sell: one place to act on, and rows of each."""

from dataclasses import asdict
from typing import Any

from updraft.app import wiring
from updraft.app.clouds import one_cloud
from updraft.clouds.base import catalogue_of
from updraft.clouds.imaging import TAG_FROM, MachineImage, imaging_of
from updraft.config.model import Settings
from updraft.errors import ProblemFound, UsageError
from updraft.provision.images.transfer import Place

Row = dict[str, Any]


def place_of(settings: Settings, cloud: str) -> Place:
    """The images of this cloud, or of the only one. UsageError where its driver has no verbs for them."""
    name = one_cloud(settings, cloud)
    images = imaging_of(wiring.make_driver(settings, name, settings.clouds[name]))
    if images is None:
        raise UsageError(f'the driver "{settings.clouds[name].driver}" does nothing with images')
    return Place(name, images, wiring.labels(settings))


def share(settings: Settings, place: Place, image: str, who: str) -> tuple[str, str]:
    """Let an account, or that of a cloud of the settings, use an image: the image's id, and the account."""
    one = place.found(image).info.id
    other = place_of(settings, who) if who in settings.clouds else None
    account = who if other is None else other.images.account()
    if not account:
        raise UsageError(f"the account of cloud {who} can't be told; say its number")
    place.images.share(one, account)
    if other is not None:
        other.images.accept(one)
    return one, account


def check_deletable(settings: Settings, cloud: str, image: MachineImage) -> None:
    """Raise UsageError for an image that isn't this pool's, or that a class would boot."""
    name = f"{image.info.name} ({image.info.id})"
    if image.pool != settings.pool.name:
        whose = f"pool {image.pool}'s updraft" if image.pool else "somebody else"
        raise UsageError(f"{name} was made by {whose}; say --force to delete it all the same")
    for class_name, worker in settings.classes.items():
        if settings.images_of(worker).get(cloud) in (image.info.id, image.info.name):
            raise UsageError(f"class {class_name} boots {name}; say --force to delete it all the same")


# ------------------------------------------------------------------------------------------------- rows


def rows_of(settings: Settings, name: str) -> list[Row]:
    """What `image list` shows of this cloud's images. Raises CloudError, and UsageError as `place_of`."""
    return [row_of(name, one, settings.pool.name) for one in place_of(settings, name).images.all()]


def row_of(cloud: str, one: MachineImage, pool: str) -> Row:
    """One image as a document; `pool` is ours."""
    info = one.info
    return {
        "cloud": cloud,
        "id": info.id,
        "name": info.name,
        "state": one.state,
        "architecture": info.arch,
        "created": info.created,
        "size": one.size,
        "form": one.form,
        "checksum": one.checksum,
        "pool": one.pool,
        "ours": one.pool == pool,
        "from": one.tags.get(TAG_FROM, ""),
        "shared": list(one.shared),
    }


def listed(settings: Settings, name: str) -> list[Row]:
    """The images that this cloud lists. Raises CloudError, ProblemFound where its driver lists none."""
    catalogue = catalogue_of(wiring.make_driver(settings, name, settings.clouds[name]))
    if catalogue is None:
        raise ProblemFound(f'the driver "{settings.clouds[name].driver}" doesn\'t list images')
    return [{"cloud": name, **asdict(one)} for one in catalogue.images()]


def sold(settings: Settings, name: str) -> list[Row]:
    """What this cloud sells. Raises CloudError."""
    driver = wiring.make_driver(settings, name, settings.clouds[name])
    return [{**asdict(one), "cloud": name} for one in driver.offers()]
