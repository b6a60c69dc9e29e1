"""What `init` asks of a cloud: which it is, how it is reached, and what of its lists is chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from updraft.app.first_cloud import CloudAnswers, known_here
from updraft.cli.images.catalogue import price
from updraft.cli.output import megabytes
from updraft.cli.setup.asking import Asker, Choice, SetupQuestion
from updraft.clouds.base import ImageInfo
from updraft.config.drivers import driver_names
from updraft.core.model import CloudOffer

ANY_IMAGE = "*"
NO_KEY = "none"
# What a driver has to know before it can answer; each is a setting of the driver, asked in this order.
ASKED: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "ec2": {
        "endpoint": ("Address of the EC2 endpoint (empty: Amazon's)", False),
        "region": ("Region (empty: that of the profile)", False),
        "profile": (
            "Profile with the credentials (empty: the default one, the environment, or the machine's role)",
            False,
        ),
    },
    "local": {
        "endpoint": ("Where the local cloud listens (unix:/… or http://…)", True),
        "credential_file": ("File with its credential (empty: the machine's role)", False),
    },
    "openstack": {
        "os_cloud": ("The cloud's name in clouds.yaml (empty: the only one there is)", False),
        "region": ("Region (empty: that of clouds.yaml)", False),
    },
}


def choose_driver(asker: Asker, given: str | None) -> str:
    """The driver of the cloud."""
    drivers = [Choice(name, (), (name, ABOUT.get(name, ""))) for name in driver_names()]
    question = SetupQuestion("--driver", "Which kind of cloud?", f"one of {', '.join(driver_names())}")
    return asker.one_of(question, given, None, drivers)


ABOUT = {
    "ec2": "Amazon's EC2, and every cloud that speaks its API",
    "local": "the cloud on one machine, for trying things",
    "fake": "a cloud in memory, for trying things",
    "openstack": "a project on an OpenStack cloud, by its native API",
}


def driver_settings(asker: Asker, driver: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The driver's own settings: those that are given, and those that it must be asked for."""
    found: dict[str, Any] = dict(given)
    defaults = known_here(driver, given)
    for key, (words, needed) in ASKED.get(driver, {}).items():
        flag = f"--{key.replace('_', '-')}"
        default = defaults.get(key, None if needed else "")
        answer = asker.text(SetupQuestion(flag, words), given.get(key), default, str.strip)
        if answer:
            found[key] = answer
    return found


def image_choices(images: Sequence[ImageInfo]) -> list[Choice]:
    """The images to choose from; none where the cloud takes any name."""
    if any(one.name == ANY_IMAGE for one in images):
        return []
    return [image_choice(one) for one in sorted(images, key=lambda one: (one.name, one.id))]


def image_choice(one: ImageInfo) -> Choice:
    """An image to choose: its id is written."""
    return Choice(one.id, (one.name,), (one.id, one.name if one.name != one.id else "", one.state, one.arch))


def find_image(seen: CloudAnswers, wanted: str) -> Choice | None:
    """An image that isn't among those listed: somebody else's, by its id."""
    info = None if seen.finder is None or not wanted else seen.finder.image(wanted)
    return None if info is None else image_choice(info)


def flavor_choices(offers: Sequence[CloudOffer]) -> list[Choice]:
    """The flavors to choose from, the cheapest first, each once."""
    cheapest: dict[str, CloudOffer] = {}
    for offer in sorted(offers, key=_price):
        if offer.market == "on-demand" or offer.flavor not in cheapest:
            known = cheapest.get(offer.flavor)
            if known is None or (known.market != "on-demand" and offer.market == "on-demand"):
                cheapest[offer.flavor] = offer
    return [
        Choice(one.flavor, (), (one.flavor, _size(one), f"{price(one.price)} per hour", one.arch.lower()))
        for one in sorted(cheapest.values(), key=_price)
    ]


def _price(offer: CloudOffer) -> tuple[bool, float, int, int, str]:
    """The cheapest first, and of those whose price isn't known the smallest."""
    what = offer.resources
    return (offer.price is None, offer.price or 0.0, what.cpus, what.memory, offer.flavor)


def _size(offer: CloudOffer) -> str:
    what = offer.resources
    gpus = f", {what.gpus} GPU" + ("s" if what.gpus > 1 else "") if what.gpus else ""
    return f"{what.cpus} cpu{'s' if what.cpus > 1 else ''}, {megabytes(what.memory)}{gpus}"


def choose_key(asker: Asker, seen: CloudAnswers, pool: str, given: str | None) -> str:
    """The key pair's name, one that is there or one to be made; empty for none."""
    fresh = f"updraft-{pool}"
    here = [Choice(name, (), (name, "")) for name in seen.key_pairs]
    others = [] if fresh in seen.key_pairs else [Choice(fresh, (), (fresh, "make it now"))]
    if given is not None or not asker.person:
        return "" if given in (None, NO_KEY) else str(given)
    nobody = Choice(NO_KEY, (), (NO_KEY, "nobody logs in to the machines"))
    question = SetupQuestion("--key", "Which key pair opens the machines (SSH)?")
    default = NO_KEY if here or seen.catalogue is None else fresh
    answer = asker.one_of(question, None, default, [*here, *others, nobody])
    return "" if answer == NO_KEY else answer
