"""The ads of the crowd's machines, as their startds would send them, and a child that sends them."""

import time
from collections.abc import Iterator
from typing import Any

from tests.bench.decision import crowd
from updraft.condor.base import ATTR_CLOUD, ATTR_FLAVOR, ATTR_GENERATION, ATTR_INSTANCE, ATTR_LAUNCH
from updraft.core.model import Slot

AT_ONCE = 250


def send(clouds: tuple[str, ...], part: int, parts: int) -> float:
    """Advertise every `parts`-th machine of these clouds, from `part` on; the seconds that it took."""
    import classad2
    import htcondor2

    slots = crowd.pool_slots(time.time(), clouds).view.slots[part::parts]
    whole = crowd.templates(clouds)
    ads = [_ad(classad2.ClassAd(whole[slot.kind]), slot) for slot in slots]
    begun = time.monotonic()
    collector = htcondor2.Collector()
    for some in _parts(ads):
        collector.advertise(some, "UPDATE_STARTD_AD")
    return time.monotonic() - begun


def _parts(ads: list[Any]) -> Iterator[list[Any]]:
    for begin in range(0, len(ads), AT_ONCE):
        yield ads[begin : begin + AT_ONCE]


def _ad(ad: Any, slot: Slot) -> Any:
    """The ad of its kind, with what is this one machine's own."""
    worker_class, generation, cloud, flavor = slot.kind.split("/")
    ad.update(
        {
            "Name": slot.name,
            "Machine": slot.name.rpartition("@")[2],
            "MyAddress": slot.address,
            "State": slot.state,
            "Activity": slot.activity,
            "Cpus": slot.free.cpus,
            "Memory": slot.free.memory,
            "Disk": slot.free.disk,
            "JobStarts": slot.job_starts or 0,
            "DaemonStartTime": int(slot.started),
            "ClassAdLifetime": 7200,
            "UpdraftClass": worker_class,
            ATTR_GENERATION: generation,
            ATTR_CLOUD: cloud,
            ATTR_FLAVOR: flavor,
            ATTR_INSTANCE: slot.instance_id,
            ATTR_LAUNCH: slot.launch_key,
            "NumDynamicSlots": len(slot.children),
        }
    )
    if slot.children:
        jobs = slot.children
        ad["ChildName"] = [f"slot1_{at + 1}@{slot.name.partition('@')[2]}" for at in range(len(jobs))]
        ad["ChildState"] = [one.state for one in jobs]
        ad["ChildActivity"] = [one.activity for one in jobs]
        ad["ChildRemoteUser"] = [one.user for one in jobs]
        for name in ("cpus", "memory", "disk"):
            ad[f"Child{name.capitalize()}"] = [getattr(one.resources, name) for one in jobs]
    return ad
