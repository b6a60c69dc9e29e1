"""Slots without a name at a real collector: it takes them in, and each is one slot that nobody can use.

A collector tells ads apart by `Name`, and by `Machine` where there is none; it refuses an ad with neither
("Neither 'Name' nor 'Machine' found in ad").
"""

from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from updraft.condor.pool import HTCondorPool
from updraft.core.model import Slot

pytestmark = pytest.mark.integration

USABLE = 'MyType = "Machine"\nState = "Unclaimed"\nActivity = "Idle"\nPartitionableSlot = true\nCpus = 4\n'
NAMES = {
    "missing": "",
    "undefined": "Name = undefined\n",
    "empty": 'Name = ""\n',
    "number": "Name = 17\n",
    "computed": 'Name = strcat("a", "b")\n',
}
"""What an ad says of its name, by the machine that says it."""


@pytest.fixture(params=["", "trixie"], ids=["forky", "trixie"])
def live(request: pytest.FixtureRequest) -> Iterator[LivePool]:
    with live_pool(suite=request.param) as pool:
        yield pool


def advertised(live: LivePool, ad: str) -> None:
    address = 'MyAddress = "<10.99.0.77:9618>"\nMemory = 1000\nDisk = 100000000\nStart = true\n'
    live.nodes["head"].run(
        "condor_advertise", "-tcp", "UPDATE_STARTD_AD", "-", text=USABLE + address + ad, check=False
    )


def test_slots_without_a_name_are_counted_and_are_no_room(live: LivePool) -> None:
    advertised(live, 'Name = "slot1@plain"\nMachine = "plain"\n')
    advertised(live, "")
    for machine, name in NAMES.items():
        advertised(live, f'Machine = "{machine}"\n{name}')
    whole = sorted(["plain", *NAMES])
    shown = lambda: sorted(live.status("-af", "Machine").split()) == whole  # noqa: E731
    wait_for("all but the one with neither", shown, 20)
    with live.network(), HTCondorPool(live.access()) as pool:

        def seen() -> list[Slot]:
            slots = list(pool.slots(60).view.slots)
            return slots if len(slots) == len(whole) else []

        first = wait_for("all slots", seen, 60)
        again = list(pool.slots(60).view.slots)
    slots = {one.name: one for one in first}
    assert len(slots) == len(whole), "each has a name of its own here"
    plain = slots.pop("slot1@plain")
    assert (plain.fault, plain.accepting) == ("", True)
    usable = {name for name, one in slots.items() if not one.fault and one.accepting}
    assert usable <= {"ab"}, "a name that is computed is a name"
    assert sorted(one.name for one in again) == sorted(one.name for one in first), "and again"
