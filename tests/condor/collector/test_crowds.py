"""A machine that advertises more slots than any has costs itself, whatever it goes on to advertise."""

import re
from collections.abc import Sequence
from typing import Any

import classad2
import pytest

from tests.rigs.bindings import htcondor2
from updraft.condor.collector.crowds import MOST, Crowds, Uncrowded, named_crowds
from updraft.condor.collector.slot_ads import Odd, SlotAds
from updraft.condor.collector.views import settle_children, slot
from updraft.condor.demand.reread import Reread
from updraft.core.model import Slot

FORGED = 3 * MOST


class Collector:
    """Answers as a collector of the bindings does; `sent` are the ads that it has sent."""

    def __init__(self) -> None:
        self.ads = {name: ad(name) for name in ("slot1@i-1@w1", "slot1@i-2@w2", "slot1@site")}
        self.ads |= {name: ad(name) for name in (f"slot{n}@i-1@w{n}" for n in range(2, FORGED + 1))}
        self.sent = 0

    def query(self, _type: Any, constraint: str = "true", projection: Sequence[str] = ()) -> list[Any]:
        wanted = classad2.ExprTree(re.sub(r'\\(?!")', r"\\\\", constraint))
        found = [one for one in self.ads.values() if wanted.eval(one) is True]
        self.sent += len(found)
        return [classad2.ClassAd({n: one.lookup(n) for n in projection or one if n in one}) for one in found]


def ad(name: str, sequence: int = 1) -> Any:
    whose = name.split("@")[1] if name.count("@") == 2 else ""
    return classad2.ClassAd(
        {
            "MyType": "Machine", "Name": name, "MyAddress": f"<10.0.0.1:{name}>", "LastHeardFrom": sequence,
            "UpdateSequenceNumber": sequence, "DaemonStartTime": 5, "State": "Unclaimed", "Start": True,
            "Cpus": 4, "Memory": 100, "PartitionableSlot": True, "UpdraftPool": "test",
            "UpdraftInstance": whose,
        }
    )  # fmt: skip


def look(there: Collector, last: Reread, crowds: Crowds, odd: Odd) -> dict[str, Slot]:
    there.sent = 0
    found = last.slots(Uncrowded(SlotAds(there, odd), there, crowds), "test")
    return {one.name: one for one in named_crowds(found, crowds)}


def test_of_one_machine_so_many_are_read_and_of_the_others_all() -> None:
    assert htcondor2 is not None
    there, last, crowds, odd = Collector(), Reread(slot, settle_children), Crowds(), Odd()
    first = look(there, last, crowds, odd)
    for number in range(3):
        seen = look(there, last, crowds, odd)
        assert set(seen) == set(first)
        assert {"slot1@i-2@w2", "slot1@site", "slot1@i-1@w1"} <= set(seen)
        assert len(seen) == MOST + 2
        assert [one.name for one in seen.values() if one.fault] == ["slot1@i-1@w1"]
        assert seen["slot1@i-1@w1"].fault == f"its machine has {FORGED} slots, of which {MOST} are read"
        assert there.sent <= 2 * MOST + 4, "the others aren't even sent"
        there.ads["slot1@i-2@w2"] = ad("slot1@i-2@w2", 10 + number)
        there.ads |= {name: ad(name, 10 + number) for name in list(there.ads)[5:]}


def test_once_it_has_no_more_than_others_it_is_one_of_them() -> None:
    there, last, crowds, odd = Collector(), Reread(slot, settle_children), Crowds(), Odd()
    look(there, last, crowds, odd)
    there.ads = dict(list(there.ads.items())[:6])
    for _ in range(31):
        seen = look(there, last, crowds, odd)
    assert set(seen) == set(there.ads)
    assert [one for one in seen.values() if one.fault] == []
    assert crowds.machines == {}


@pytest.mark.parametrize("names", [["slot1@a", "slot2@a"], ["slot1@u@a@b", "slot1@u@c"]])
def test_few_slots_are_left_alone_whatever_their_names(names: list[str]) -> None:
    there = Collector()
    there.ads = {name: ad(name) for name in names}
    assert set(look(there, Reread(slot, settle_children), Crowds(), Odd())) == set(names)
