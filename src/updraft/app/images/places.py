"""The images of clouds, and what they sell: one place to act on, and rows of each."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated

from updraft.app import wiring
from updraft.app.clouds import one_cloud
from updraft.clouds.base import ImageInfo
from updraft.clouds.imaging import TAG_FROM, MachineImage
from updraft.config.model import Settings
from updraft.core.model import CloudOffer
from updraft.documents import IN_PLACE, Document, LeftOutCloud
from updraft.errors import ProblemFound, UsageError
from updraft.provision.images.transfer import Place


def place_of(settings: Settings, cloud: str) -> Place:
    """The images of this cloud, or of the only one. UsageError where its driver has no verbs for them."""
    name = one_cloud(settings, cloud)
    images = wiring.make_cloud(settings, name, settings.clouds[name]).images
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


class MachineImageRow(Document):
    """A machine image."""

    cloud: Annotated[str, "Its cloud."]
    id: Annotated[str, "The cloud's name for it."]
    name: Annotated[str, "Its name."]
    state: Annotated[str, '"ready", "making" or "failed".']
    architecture: Annotated[str, "As the cloud says it."]
    created: Annotated[float | None, "When it was made."]
    size: Annotated[int | None, "Bytes of its file or its volumes."]
    form: Annotated[str, 'The form of its file ("qcow2", "raw", "tar"), empty where it has none.']
    checksum: Annotated[str, '"ALGORITHM:HEX" of its file, empty where the cloud tells none.']
    pool: Annotated[str, "The pool whose updraft made it, empty where somebody else did."]
    ours: Annotated[bool, "This pool's updraft made it."]
    from_: Annotated[str, "What it was made from, where updraft made it."]
    shared: Annotated[Sequence[str], "Who else may use it, as far as the cloud told; `show` asks."]


class MachineImages(Document):
    """Machine images."""

    images: Annotated[Sequence[MachineImageRow], "By cloud, as it lists them."]
    errors: Annotated[Sequence[LeftOutCloud], "Clouds that didn't answer."]


class ShownImage(Document):
    """One machine image."""

    image: MachineImageRow


class ListedImage(Document):
    """An image, and where it is."""

    cloud: Annotated[str, "Its cloud."]
    listed: ImageInfo = field(metadata=IN_PLACE)


class Images(Document):
    """The images of the clouds."""

    images: Annotated[Sequence[ListedImage], "By cloud and name."]
    errors: Annotated[Sequence[LeftOutCloud], "The clouds that didn't answer."]


class Offers(Document):
    """What can be bought."""

    offers: Annotated[Sequence[CloudOffer], "The cheapest first."]
    errors: Annotated[Sequence[LeftOutCloud], "The clouds that didn't answer."]


def rows_of(settings: Settings, name: str) -> list[MachineImageRow]:
    """What `image list` shows of this cloud's images. Raises CloudError, and UsageError as `place_of`."""
    return [row_of(name, one, settings.pool.name) for one in place_of(settings, name).images.all()]


def row_of(cloud: str, one: MachineImage, pool: str) -> MachineImageRow:
    """One image as a document; `pool` is ours."""
    return MachineImageRow.of(
        one,
        one.info,
        cloud=cloud,
        architecture=one.info.arch,
        ours=one.pool == pool,
        from_=one.tags.get(TAG_FROM, ""),
    )


def listed(settings: Settings, name: str) -> list[ListedImage]:
    """The images that this cloud lists. Raises CloudError, ProblemFound where its driver lists none."""
    catalogue = wiring.make_cloud(settings, name, settings.clouds[name]).catalogue
    if catalogue is None:
        raise ProblemFound(f'the driver "{settings.clouds[name].driver}" doesn\'t list images')
    return [ListedImage(name, one) for one in catalogue.images()]


def sold(settings: Settings, name: str) -> list[CloudOffer]:
    """What this cloud sells. Raises CloudError."""
    machines = wiring.make_cloud(settings, name, settings.clouds[name]).machines
    return [replace(one, cloud=name) for one in machines.offers()]
