"""Kinds apart by zone and market, for as long as somebody's requirements read them.

A kind stands for the machines of a class, generation, cloud and flavor wherever they are and however they
were bought: fewer kinds, and one ad that teaches for all of them. Where a job says
`TARGET.UpdraftZone == "a"`, an ad of zone b would be the wrong one to ask.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from updraft.core.model import CloudOffer, CollectorView, Known, MachineRecord, Slot, Source
from updraft.core.settings import Policy
from updraft.core.slots.kinds import apart_key

_READ = ("updraftzone", "updraftmarket", "updraftspot", "updraftprice", "updraftmaxprice", "vmmaximumprice")


def read(policy: Policy, jobs: Iterable[str]) -> bool:
    """Whether these jobs' ads (or requirements), or a class's attributes, can depend on zone, market or
    price."""
    texts = [text for worker in policy.classes.values() for text in worker.attributes.values()]
    return any(map(_reads, chain(texts, jobs)))


@lru_cache(maxsize=4096)  # mostly those of the last look
def _reads(text: str) -> bool:
    low = text.lower()
    return ("pdraft" in low or "maximum" in low) and any(name in low for name in _READ)


@dataclass(frozen=True, slots=True)
class Placed:
    """The collector's word with kinds apart, the templates of those, and what they were bought as."""

    view: Source[CollectorView]
    templates: Mapping[str, str]
    bought: Mapping[str, CloudOffer]


def placed(
    view: Source[CollectorView], machines: Iterable[MachineRecord], templates: Mapping[str, str]
) -> Placed:
    """The same with our own machines' slots of kinds that say where the machine is."""
    if not isinstance(view, Known):
        return Placed(view, templates, {})
    records = {record.key: record for record in machines if record.ended_at is None}
    found, texts, bought = [], dict(templates), {}
    for slot in view.value.slots:
        record = records.get(slot.machine_id)
        if record is None or slot.launch_key != record.launch_key:
            found.append(slot)
            continue
        key = apart_key(slot.kind, record.zone, record.market)
        found.append(replace(slot, kind=key))
        if key not in bought and slot.kind in templates:
            texts[key], bought[key] = templates[slot.kind], _bought(slot, record)
    return Placed(replace(view, value=replace(view.value, slots=tuple(found))), texts, bought)


def _bought(slot: Slot, record: MachineRecord) -> CloudOffer:
    return CloudOffer(record.cloud, record.zone, record.flavor, record.market, slot.total, record.price)
