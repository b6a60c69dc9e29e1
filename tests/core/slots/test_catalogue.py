"""What is imagined of a machine that nobody has seen yet."""

from dataclasses import replace

import pytest

from updraft.core.matching.match import judge
from updraft.core.model import CloudOffer, JobGroup, Resources
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine, learned, usable
from updraft.core.slots.kinds import foreign_kind_key, template

GIB = 1024 * 1024


@pytest.mark.parametrize("gib", [1, 4, 8, 100])
def test_a_small_disk_is_not_taken_for_none(gib: int) -> None:
    """What can't be imagined is never bought, and what is never bought is never learned."""
    found = usable(Resources(1, 1024, gib * GIB)).disk
    assert gib * GIB // 2 <= found < gib * GIB
    assert found >= (gib - 4) * GIB


def test_custom_resources_are_imagined_as_a_class_has_them_and_learned_as_a_slot_has_them() -> None:
    worker = WorkerClass("w", "g", ("c",), resources={"FPGAs": 4, "Tapes": 1})
    sold = CloudOffer("c", "z", "f", "on-demand", Resources(8, 16_000, 90 * GIB), 0.1)
    whole = imagine(worker, sold, "i", "p")
    assert whole.resources.custom == (("fpgas", 4), ("tapes", 1))
    assert learned("k", whole.ad).resources == whole.resources
    halves = imagine(replace(worker, static_slots=2), sold, "i", "p")
    assert halves.resources.custom == (("fpgas", 2), ("tapes", 0))
    one = Resources(1, 1000, 1000, 0, (("fpgas", 1),))
    ad = "[ RequestCpus = 1; RequestMemory = 1000; RequestDisk = 1000; RequestFPGAs = 1; "
    job = JobGroup("g", "s", "o", "o", f"{ad} Requirements = TARGET.FPGAs >= RequestFPGAs ]", one, 9)
    assert judge(job, whole, 0.0).copies == 4
    five = replace(one, custom=(("fpgas", 5),))
    many = replace(job, request=five, ad=job.ad.replace("As = 1", "As = 5"))
    assert judge(many, whole, 0.0).copies == 0


def test_a_template_has_the_whole_of_a_custom_resource_and_its_amount_tells_no_kinds_apart() -> None:
    ad = (
        '[ MachineResources = "Cpus Memory Disk Swap GPUs FPGAs"; PartitionableSlot = true;'
        " TotalSlotFPGAs = 2; FPGAs = 0; "
        "TotalSlotCpus = 4; Cpus = 1; TotalSlotMemory = 512; TotalSlotDisk = 9 ]"
    )
    assert learned("k", template(ad)).resources == Resources(4, 512, 9, 0, (("fpgas", 2),))
    assert foreign_kind_key(ad) == foreign_kind_key(ad.replace(" FPGAs = 0", " FPGAs = 1"))


@pytest.mark.parametrize("said", ["1e308", "-5", "error", '"caf\\351"', "true", "{ 4 }"])
def test_what_no_machine_has_is_nothing_in_a_learned_kind(said: str) -> None:
    ad = f"[ PartitionableSlot = true; TotalSlotCpus = {said}; TotalSlotMemory = 512; TotalSlotDisk = 9 ]"
    assert learned("k", ad).resources == Resources(0, 512, 9, 0)
