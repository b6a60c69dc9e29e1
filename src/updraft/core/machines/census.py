"""Who is in the pool: which slots are whose, and where instances come from that the ledger doesn't know."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from updraft.core.machines.lifecycle import LET_GO
from updraft.core.machines.witnesses import ANOTHERS
from updraft.core.model import (
    CloudOffer,
    Instance,
    LaunchRecord,
    Machine,
    MachineId,
    MachineRecord,
    Offer,
    Reason,
    Resources,
    Slot,
)
from updraft.core.reasons import counted

Sold = Offer | CloudOffer


@dataclass(frozen=True, slots=True)
class Census:
    """All machines, the adopted among them, and the slots that claim to be ours and are explained by none.

    `others` are instances that carry our pool's name and the identity of another.
    """

    machines: tuple[Machine, ...]
    adopted: tuple[Machine, ...]
    unexplained: tuple[Slot, ...]
    site_slots: tuple[Slot, ...]
    others: tuple[Instance, ...] = ()


class Origins:
    """Where instances without a record come from: the launches that are known, and what classes may buy."""

    def __init__(self, now: float, launches: Iterable[LaunchRecord], sold: Sequence[Sold]) -> None:
        self._now = now
        self._launches: dict[str, LaunchRecord] = {}
        for launch in launches:
            self._launches.setdefault(launch.key, launch)
        self._sold = sold
        self._offers: dict[tuple[str, str, str], Sold] = {}
        for offer in sold:
            self._offers.setdefault((offer.cloud, offer.flavor, offer.market), offer)

    def record(self, instance: Instance) -> MachineRecord:
        """A record of what is known of it: by its launch, else by an offer of its flavor.

        One of which neither is known counts as the largest that its cloud sells, and its price is unknown.
        """
        launch = self._launches.get(instance.launch_key)
        worth = launch or self._offers.get((instance.cloud, instance.flavor, instance.market))
        size = worth or largest(self._sold, instance.cloud)
        return MachineRecord(
            id=instance.id,
            cloud=instance.cloud,
            launch_key=instance.launch_key,
            worker_class=instance.worker_class,
            flavor=instance.flavor,
            generation=instance.generation,
            requested_at=launch.asked_at if launch else instance.launched_at or self._now,
            resources=size.resources if size else Resources(),
            zone=instance.zone,
            market=instance.market,
            image=instance.image,
            price=worth.price if worth else None,
            seen_at=self._now,
            adopted=launch is None,
            variant=launch.variant if launch else instance.variant,
        )


def largest(offers: Iterable[Sold], cloud: str) -> Sold | None:
    """The largest machine that a cloud sells, which one of unknown size may be; None where it sells none."""
    sold = (offer for offer in offers if offer.cloud == cloud)
    return max(sold, key=lambda offer: (offer.resources.cpus, offer.resources.memory), default=None)


def revived(past: MachineRecord) -> MachineRecord:
    """The record of one that was taken for ended, and that its cloud shows again: it goes on where it was."""
    return replace(past, ended_at=None, missing_since=None, gone_since=None)


def by_machine(
    slots: Iterable[Slot],
    records: Mapping[MachineId, MachineRecord],
    ended: Mapping[MachineId, MachineRecord],
    instances: Mapping[MachineId, Instance],
    others: Container[MachineId] = (),
) -> tuple[dict[MachineId, tuple[Slot, ...]], list[Slot], list[Slot]]:
    """Slots by the machine that explains them; slots of the site's own; slots that nobody explains.

    Those of machines of `others`, which another pool of our name has launched, are the site's own to us.
    """
    explained: dict[MachineId, tuple[Slot, ...]] = {}
    site: list[Slot] = []
    strangers: list[Slot] = []
    launches: set[str] | None = None
    for slot in slots:
        if not slot.instance_id:
            if slot.launch_key and launches is None:
                launches = {record.launch_key for record in records.values()}
            # With a token of ours, and it says that it is of another pool.
            lies = bool(slot.launch_key) and slot.launch_key in (launches or ())
            (strangers if lies else site).append(slot)
            continue
        key = slot.machine_id
        if key in others and key not in records:
            site.append(slot)
            continue
        ours = instances.get(key) or records.get(key)
        past = None if ours is not None else ended.get(key)
        if ours is not None and ours.launch_key == slot.launch_key:
            explained[key] = (*explained[key], slot) if key in explained else (slot,)
        elif past is not None and past.end is not None and past.end.code == LET_GO:
            site.append(slot)
        elif past is None or past.launch_key != slot.launch_key:
            strangers.append(slot)
    return explained, site, strangers


def of_others(found: Sequence[Instance]) -> list[Reason]:
    """What is said of instances with our pool's name that another pool of that name has launched."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found:
        groups.setdefault((one.cloud, one.identity), []).append(one.id)
    reasons = []
    for (cloud, identity), ids in sorted(groups.items()):
        names = ", ".join(sorted(ids)[:_NAMED]) + (" and more" if len(ids) > _NAMED else "")
        text = f"{counted(len(ids), 'machine')} of another pool of this name on cloud {cloud}: {names}"
        text += f", of identity {identity[:_SHOWN]!r}; not counted and not touched"
        if _IDENTITY.fullmatch(identity):
            text += f". Is that pool this one? Then say `updraft adopt --take-over --identity {identity}`"
        reasons.append(Reason(ANOTHERS, text))
    return reasons


_NAMED = 3
_SHOWN = 40
_IDENTITY = re.compile(r"[0-9a-f]{12}")  # of the form that identities have: a tag may say anything
