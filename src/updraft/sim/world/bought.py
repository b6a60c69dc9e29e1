"""What machines of a simulated cloud were bought as, and the slots that they bring for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_IDENTITY, TAG_LAUNCH, TAG_VARIANT
from updraft.core.model import PLAIN, CloudOffer, Kind, Resources, Variant, variant
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import kind_key


@dataclass(frozen=True, slots=True)
class Bought:
    """What a machine was bought as, and what it is tagged as: alike for all machines of one launch."""

    cloud: str
    zone: str
    flavor: str
    market: str
    image: str
    resources: Resources
    price: float | None
    arch: str
    worker_class: str
    generation: str
    launch_key: str
    variant: Variant
    identity: str


def bought_as(offer: CloudOffer, image: str, tags: Mapping[str, str]) -> Bought:
    """What a machine of this offer, image and tags was bought as."""
    return Bought(
        *(offer.cloud, offer.zone, offer.flavor, offer.market, image),
        *(offer.resources, offer.price, offer.arch),
        worker_class=tags.get(TAG_CLASS, ""),
        generation=tags.get(TAG_GENERATION, ""),
        launch_key=tags.get(TAG_LAUNCH, ""),
        variant=variant(tags.get(TAG_VARIANT, "")),
        identity=tags.get(TAG_IDENTITY, ""),
    )


class Brings:
    """What slots machines bring, made once for all that are alike. Calling it says it of one."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._made: dict[Bought, Kind] = {}

    def __call__(self, bought: Bought) -> Kind:
        """As `brings` says."""
        alike = replace(bought, launch_key="")
        if alike not in self._made:
            self._made[alike] = brings(self._policy, bought)
        return self._made[alike]


def brings(policy: Policy, bought: Bought) -> Kind:
    """The kind of slots that such a machine really brings: as the catalogue imagines it, of its tags.

    Of a class that is configured no more it is a plain one.
    """
    name, generation, cloud = bought.worker_class, bought.generation, bought.cloud
    worker = policy.classes.get(name) or WorkerClass(name, generation, (cloud,))
    sold = CloudOffer(
        cloud, bought.zone, bought.flavor, bought.market, bought.resources, bought.price, arch=bought.arch
    )
    key = kind_key(name, generation, cloud, bought.flavor, bought.variant.text)
    made = PLAIN if bought.variant.unreadable else bought.variant
    return imagine(replace(worker, generation=generation), sold, bought.image, policy.pool, key, made)
