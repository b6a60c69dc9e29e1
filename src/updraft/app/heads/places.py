"""Where heads are: those of a pool in one cloud, and their addresses."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from updraft.app import wiring
from updraft.clouds.cloud import Cloud, driver_of
from updraft.clouds.heads import HeadPlace, HeadTraits
from updraft.config.model import CloudTable, Settings
from updraft.core.model import Instance
from updraft.documents import Document
from updraft.errors import CloudError, UsageError
from updraft.provision.heads.machines import Heads, Patience, heads_pool


def usual_image(settings: Settings, cloud: str) -> str:
    """The image of the first class that is for this cloud. UsageError where there is none."""
    for worker in settings.classes.values():
        if cloud in settings.clouds_of(worker):
            return settings.images_of(worker)[cloud]
    raise UsageError(f"no class of updraft.toml names an image in cloud {cloud}; say one with --image")


def traits_of(settings: Settings, cloud: str) -> HeadTraits:
    """What launching heads there takes, by the cloud's driver."""
    return driver_of(settings.clouds[cloud].driver).heads


def heads_of(settings: Settings, cloud: str, place: HeadPlace, patience: Patience | None = None) -> Heads:
    """The heads of this pool there, launched as heads need it."""
    return Heads(_for_heads(settings, cloud, place).machines, patience)


def _for_heads(settings: Settings, cloud: str, place: HeadPlace) -> Cloud:
    plain = settings.clouds[cloud]
    own: Mapping[str, object] = traits_of(settings, cloud).settings(plain.settings, place)
    given = CloudTable.model_validate({"driver": plain.driver, **own})
    pool = settings.pool.model_copy(update={"name": heads_pool(settings.pool.name)})
    return wiring.make_cloud(settings.model_copy(update={"pool": pool}), cloud, given)


def address_of(settings: Settings, cloud: str, machine: Instance) -> str:
    """The address by which a machine there is reached from outside; "" where it has none, or none is told."""
    groups = wiring.make_cloud(settings, cloud, settings.clouds[cloud]).network
    try:
        return machine.address if groups is None else groups.address(machine.id)
    except CloudError:
        return ""


class HeadRow(Document):
    """A head."""

    cloud: Annotated[str, "Its cloud."]
    name: Annotated[str, "What `head launch` called it."]
    id: Annotated[str, "The instance's id."]
    state: Annotated[str, "As the cloud says it: pending, running, stopped, error."]
    address: Annotated[str, "Where it is reached; empty while it has none."]
    flavor: Annotated[str, "Its flavor."]
    zone: Annotated[str, "Its zone."]
    image: Annotated[str, "What it booted."]
    launched: Annotated[float, "When, in POSIX seconds."]


class HeadList(Document):
    """The heads of the pool."""

    heads: Annotated[Sequence[HeadRow], "By cloud."]


def rows_of(settings: Settings, cloud: str) -> list[HeadRow]:
    """What `head list` shows of this cloud's heads. Raises CloudError."""
    return [
        HeadRow.of(
            one,
            cloud=cloud,
            name=one.worker_class,
            address=address_of(settings, cloud, one),
            launched=one.launched_at,
        )
        for one in heads_of(settings, cloud, HeadPlace()).all()
    ]
