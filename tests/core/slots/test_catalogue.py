"""What is imagined of a machine that nobody has seen yet."""

import pytest

from updraft.core.model import Resources
from updraft.core.slots.catalogue import learned, usable

GIB = 1024 * 1024


@pytest.mark.parametrize("gib", [1, 4, 8, 100])
def test_a_small_disk_is_not_taken_for_none(gib: int) -> None:
    """What can't be imagined is never bought, and what is never bought is never learned."""
    found = usable(Resources(1, 1024, gib * GIB)).disk
    assert gib * GIB // 2 <= found < gib * GIB
    assert found >= (gib - 4) * GIB


@pytest.mark.parametrize("said", ["1e308", "-5", "error", '"caf\\351"', "true", "{ 4 }"])
def test_what_no_machine_has_is_nothing_in_a_learned_kind(said: str) -> None:
    ad = f"[ PartitionableSlot = true; TotalSlotCpus = {said}; TotalSlotMemory = 512; TotalSlotDisk = 9 ]"
    assert learned("k", ad).resources == Resources(0, 512, 9, 0)
