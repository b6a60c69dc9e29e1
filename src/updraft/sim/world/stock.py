"""What a configuration's clouds sell in a simulation, in which no cloud is asked.

It comes from what the clouds said to `updraft offers --json`, else from the settings alone, where the driver
can tell it from them (see `updraft.clouds.cloud.Driver`).
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from updraft.clouds.base import Sold
from updraft.clouds.cloud import driver_of
from updraft.config.drivers import checked_settings
from updraft.config.model import CloudTable, Settings
from updraft.core.model import CloudOffer, Resources, of_amounts
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.catalogue import outfitted, share, usable
from updraft.core.slots.choice import chosen
from updraft.errors import UsageError
from updraft.sim.conditions import Boots, SimCloud

Saved = Mapping[str, tuple[CloudOffer, ...]]
_BOOT_SPREAD = 0.25


def clouds_of(settings: Settings, saved: Saved) -> dict[str, SimCloud]:
    """The clouds of a configuration; `saved` are offers that were written down, by cloud.

    The site's own prices go before all others. Raises UsageError for a cloud whose offers nobody knows, and
    where none of the saved offers is of these clouds.
    """
    if saved and not set(saved) & set(settings.clouds):
        raise UsageError(
            f"the offers are of {', '.join(saved)}, and the configuration has {', '.join(settings.clouds)}: "
            "write them down with the same configuration"
        )
    return {name: _cloud(name, cloud, saved.get(name)) for name, cloud in settings.clouds.items()}


def _cloud(name: str, cloud: CloudTable, saved: tuple[CloudOffer, ...] | None) -> SimCloud:
    sold = _sold(name, cloud)
    if saved is not None:
        sold = replace(sold or Sold(()), offers=saved)
    if sold is None or not sold.offers:
        raise UsageError(
            f"what cloud {name} sells isn't known here, and a simulation asks no cloud: where it can be "
            "reached, run `updraft offers --json > offers.json`, and add --offers offers.json"
        )
    offers = tuple(
        replace(offer, price=cloud.prices[offer.flavor]) if offer.flavor in cloud.prices else offer
        for offer in sold.offers
    )
    boots = None if sold.boot is None else Boots(max(sold.boot, 1.0), _BOOT_SPREAD)
    return SimCloud(offers, sold.machines, sold.cores, boots, saved is not None and _told(saved))


def _told(saved: tuple[CloudOffer, ...]) -> bool:
    """Whether the cloud tells what is left: it did when these were written down."""
    return any(offer.left is not None for offer in saved)


def _sold(name: str, cloud: CloudTable) -> Sold | None:
    try:
        driver = driver_of(cloud.driver)
    except UsageError:
        return None  # one that isn't installed here, or whose library isn't
    return driver.sold(name, checked_settings(driver.settings, name, cloud.settings))


def on_saved(policy: Policy, saved: Saved) -> tuple[Policy, dict[str, SimCloud]]:
    """A policy with each of its classes on all the clouds of the saved offers, and these clouds."""
    names = tuple(saved)
    classes = {name: replace(worker, clouds=names) for name, worker in policy.classes.items()}
    clouds = {name: SimCloud(offers, tells_left=_told(offers)) for name, offers in saved.items()}
    return replace(policy, classes=classes), clouds


def read_offers(path: Path) -> dict[str, tuple[CloudOffer, ...]]:
    """The offers of a file that `updraft offers --json` wrote, by cloud. Raises UsageError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        offers = [_offer(row) for row in document["offers"]]
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path.name} doesn't hold offers; write it with `updraft offers --json > {path.name}`"
        ) from error
    if not offers:
        raise UsageError(f"{path.name} has no offer in it; `updraft offers` says why")
    return {name: tuple(o for o in offers if o.cloud == name) for name in sorted({o.cloud for o in offers})}


def offers_of(rows: Iterable[Mapping[str, Any]]) -> tuple[CloudOffer, ...]:
    """The offers of these rows of JSON, those that make sense: a cloud may say odd things."""
    found = []
    for row in rows:
        try:
            found.append(_offer(row))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return tuple(found)


def _offer(row: Mapping[str, Any]) -> CloudOffer:
    resources = of_amounts([int(row["resources"][name]) for name in ("cpus", "memory", "disk", "gpus")])
    price = None if row["price"] is None else float(row["price"])
    left = None if row["left"] is None else int(row["left"])
    names = ("cloud", "zone", "flavor", "market", "arch")
    cloud, zone, flavor, market, arch = (str(row[key]) for key in names)
    if resources.cpus < 1 or min(resources.memory, resources.disk, resources.gpus) < 0:
        raise ValueError(f"{flavor}: a machine has a core at least, and nothing below zero")
    if price is not None and not 0 <= price < math.inf:
        raise ValueError(f"{flavor}: this is no price")
    return CloudOffer(cloud, zone, flavor, market, resources, price, left, arch)


def bought(policy: Policy, clouds: Mapping[str, SimCloud]) -> tuple[CloudOffer, ...]:
    """The offers that the policy's classes may buy, each once."""
    return tuple(offer for offer, _ in _bought(policy, clouds))


def slots_of(policy: Policy, clouds: Mapping[str, SimCloud]) -> tuple[Resources, ...]:
    """What a job may find on whole, empty machines that the policy may buy: each size once."""
    found = {
        _slot(outfitted(usable(offer.resources), worker), worker.static_slots)
        for offer, some in _bought(policy, clouds)
        for worker in some
    }
    return tuple(sorted(found, reverse=True))


def _bought(policy: Policy, clouds: Mapping[str, SimCloud]) -> list[tuple[CloudOffer, list[WorkerClass]]]:
    """Each offer that some class may buy, with those classes."""
    found: dict[CloudOffer, list[WorkerClass]] = {}
    for worker in policy.classes.values():
        for name in worker.clouds:
            for offer in clouds[name].offers if name in clouds else ():
                wanted = chosen(offer.flavor, worker.flavors)
                if wanted and offer.market in worker.markets:
                    found.setdefault(offer, []).append(worker)
    return list(found.items())


def _slot(whole: Resources, slots: int | None) -> Resources:
    return share(whole, slots) if slots else whole
