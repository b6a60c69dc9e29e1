"""A machine with more slots than any has, at a real collector, which takes them all."""

from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from updraft.condor.collector.crowds import MOST
from updraft.condor.pool import HTCondorPool
from updraft.core.model import Slot

pytestmark = pytest.mark.integration

FORGED = MOST + 200
AD = (
    'MyType = "Machine"\nName = "{name}"\nMachine = "w"\nMyAddress = "<10.99.0.77:9618>"\n'
    'State = "Unclaimed"\nActivity = "Idle"\nPartitionableSlot = true\nCpus = 4\nMemory = 99\nStart = true\n'
)
OTHERS = ("slot1@plain", "slot1@i-2@w2")


@pytest.fixture(params=["", "trixie"], ids=["forky", "trixie"])
def live(request: pytest.FixtureRequest) -> Iterator[LivePool]:
    with live_pool(suite=request.param) as pool:
        yield pool


def test_so_many_of_them_are_read_and_the_others_slots_all(live: LivePool) -> None:
    names = [*OTHERS, *(f"slot{n}@i-1@w" for n in range(1, FORGED + 1))]
    live.nodes["head"].run(
        *("condor_advertise", "-tcp", "-multiple", "UPDATE_STARTD_AD", "-"),
        text="\n".join(AD.format(name=name) for name in names),
    )
    with live.network(), HTCondorPool(live.access()) as pool:

        def seen() -> list[Slot]:
            slots = list(pool.slots(60).view.slots)
            return slots if len(slots) > MOST else []

        first = wait_for("slots", seen, 120)
        looks = [first, *(list(pool.slots(60).view.slots) for _ in range(3))]
    for slots in looks:
        assert set(OTHERS) <= {one.name for one in slots}
        assert {one.name for one in slots} == {one.name for one in first}
        assert len(slots) == MOST + len(OTHERS)
        assert [one.name for one in slots if one.fault] == ["slot1@i-1@w"]
        assert f"{FORGED} slots" in next(one.fault for one in slots if one.fault)
