"""A slot whose ad can't be read costs itself, whichever attribute it is, and is named."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import classad2
import pytest

from tests.rigs.bindings import htcondor2
from updraft.condor.collector.odd_ads import Odd
from updraft.condor.collector.slot_ads import SlotAds, whole
from updraft.condor.collector.views import SlotMemory, learn, settle_children, slot
from updraft.condor.demand.reread import Reread
from updraft.core.model import Slot

POISON = '"can\'t be read"'
MANY = 50
BY_OWNER = ("Offline", "DaemonStartTime", "UpdateSequenceNumber", "MyAddress", "Start", "DrainReason", "Cpus")


class Collector:
    """Answers like a collector of the bindings, and fails where an ad that it would send has `POISON`."""

    def __init__(self, slots: int) -> None:
        self.ads = {f"slot1@w{n:03}": machine(n) for n in range(slots)}
        self.asked = 0
        self.down = False

    def query(self, _type: Any, constraint: str = "true", projection: Sequence[str] = ()) -> list[Any]:
        self.asked += 1
        # By its old rules, in which a backslash stands for itself but before a quote.
        wanted = classad2.ExprTree(re.sub(r'\\(?!")', r"\\\\", constraint))
        found = [ad for ad in self.ads.values() if wanted.eval(ad) is True]
        told = [{n: ad.lookup(n) for n in projection or ad if n in ad} for ad in found]
        if self.down or any(str(one) == POISON for ad in told for one in ad.values()):
            raise htcondor2.HTCondorException("Failed communication with collector.")
        return [classad2.ClassAd(ad) for ad in told]


def machine(number: int) -> Any:
    return classad2.ClassAd(
        {
            "MyType": "Machine", "Name": f"slot1@w{number:03}", "MyAddress": f"<10.0.0.1:{number}>",
            "LastHeardFrom": 7, "UpdateSequenceNumber": 1, "DaemonStartTime": 5, "State": "Unclaimed",
            "Start": True, "Cpus": 4, "PartitionableSlot": True, "UpdraftPool": "test",
            "UpdraftInstance": f"i-{number}",
        }
    )  # fmt: skip


@pytest.fixture
def there() -> Collector:
    return Collector(MANY)


@pytest.fixture
def last() -> Reread:
    return Reread(slot, settle_children)


def looked(there: Collector, last: Reread, odd: Odd) -> dict[str, Slot]:
    return {one.name: one for one in last.slots(SlotAds(there, odd), "test")}


@pytest.mark.parametrize("name", BY_OWNER)
@pytest.mark.parametrize("later", [False, True])
def test_one_that_cannot_be_read_costs_itself(there: Collector, last: Reread, name: str, later: bool) -> None:
    odd = Odd()
    if later:
        assert len(looked(there, last, odd)) == MANY
    there.ads["slot1@w042"].update({name: classad2.ExprTree(POISON), "LastHeardFrom": 8})
    for _ in range(3):
        seen = looked(there, last, odd)
        assert len(seen) == MANY
        assert [one.name for one in seen.values() if one.fault] == ["slot1@w042"]
        assert "can't be read" in seen["slot1@w042"].fault
        assert not seen["slot1@w042"].accepting
        there.ads["slot1@w007"]["LastHeardFrom"] += 1
        there.ads["slot1@w042"]["LastHeardFrom"] += 1


def test_custom_resources_are_found_and_asked_for(there: Collector, last: Reread) -> None:
    """Which there are, no look knows beforehand; one slot's own cost nobody else's."""
    odd = Odd()
    assert len(looked(there, last, odd)) == MANY
    said = "Cpus Memory Disk Swap GPUs FPGAs"
    ad = {
        "MachineResources": said,
        "FPGAs": 1,
        "TotalSlotFPGAs": 2,
        "ChildFPGAs": [1],
        "ChildState": ["Claimed"],
    }
    there.ads["slot1@w007"].update({**ad, "TotalSlotCpus": 4, "LastHeardFrom": 8})
    there.ads["slot1@w008"].update({"MachineResources": f"{said} ( {'x' * 900}", "LastHeardFrom": 8})
    for _ in range(2):
        seen = looked(there, last, odd)
        assert len(seen) == MANY
        one = seen["slot1@w007"]
        assert (one.free.custom, one.total.custom) == ((("fpgas", 1),), (("fpgas", 2),))
        assert one.children[0].resources.custom == (("fpgas", 1),)
        assert seen["slot1@w008"].free.custom == (("fpgas", 0),)
        assert seen["slot1@w009"].free.custom == ()
        there.ads["slot1@w007"]["LastHeardFrom"] += 1


def test_no_slot_makes_the_collector_be_asked_for_more_and_more(there: Collector, last: Reread) -> None:
    odd = Odd()
    for number in range(MANY):
        there.ads[f"slot1@w{number:03}"]["MachineResources"] = " ".join(f"R{number}x{n}" for n in range(90))
    seen = looked(there, last, odd)
    assert len(seen) == MANY
    assert len(odd.custom) == 64


NAMES_THAT_ARE_NONE = (
    'strcat("slot1@", "w042")',
    "error",
    "undefined",
    "7",
    'strcat("a", undefined)',
    "{1}",
    f'"{"x" * 600}"',
    r'"slot1@w042\n"',
    r'"slot1@\033[2J"',
    r'"slot1@w\\042"',
)


@pytest.mark.parametrize("name", NAMES_THAT_ARE_NONE)
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("another", [False, True])
def test_one_whose_name_is_none_is_counted_under_another(
    there: Collector, last: Reread, name: str, later: bool, another: bool
) -> None:
    odd = Odd()
    if later:
        assert len(looked(there, last, odd)) == MANY
    if another:  # which is looked for by its name
        there.ads["slot1@w007"]["Offline"] = classad2.ExprTree(POISON)
    there.ads["slot1@w042"].update(
        {"Name": classad2.ExprTree(name), "Machine": "w042", "SlotID": 3, "LastHeardFrom": 8}
    )
    for _ in range(3):
        seen = looked(there, last, odd)
        assert len(seen) == MANY
        one = seen["slot3@w042"]
        assert (one.instance_id, one.state, one.free.cpus) == ("i-42", "Claimed", 0)
        assert "can't be read" in one.fault
        assert not one.accepting
        there.ads["slot1@w042"]["LastHeardFrom"] += 1
        there.ads["slot1@w008"]["LastHeardFrom"] += 1
    there.ads["slot1@w042"].update({"Name": "slot1@w042", "LastHeardFrom": 50})
    for _ in range(31 if odd.hidden else 1):
        seen = looked(there, last, odd)
    assert len(seen) == MANY
    assert not seen["slot1@w042"].fault


def test_several_without_names_are_told_apart_by_whatever_they_have(there: Collector, last: Reread) -> None:
    for n, more in ((1, {"Machine": "m", "SlotID": 1}), (2, {"Machine": "m", "SlotID": 2}), (3, {})):
        there.ads[f"slot1@w{n:03}"].update({"Name": 7, **more})
    seen = looked(there, last, Odd())
    assert {one.name for one in seen.values() if one.fault} == {"slot1@m", "slot2@m", "<10.0.0.1:3>"}
    assert len(seen) == MANY


@pytest.mark.parametrize("later", [False, True])
def test_one_whose_name_the_library_cannot_read_costs_its_machine(
    there: Collector, last: Reread, later: bool
) -> None:
    odd = Odd()
    for n, ad in enumerate(there.ads.values()):
        ad["Machine"] = f"w{n:03}"
    if later:
        assert len(looked(there, last, odd)) == MANY
    there.ads["slot1@w042"].update({"Name": classad2.ExprTree(POISON), "LastHeardFrom": 8})
    for _ in range(3):
        seen = looked(there, last, odd)
        assert len(seen) == MANY
        assert [(one.name, one.instance_id) for one in seen.values() if one.fault] == [("w042", "i-42")]
        for ad in there.ads.values():
            ad["LastHeardFrom"] += 1
    there.asked = 0
    looked(there, last, odd)
    assert there.asked <= 6, "the search is paid for once"
    there.ads["slot1@w042"]["Name"] = "slot1@w042"
    for _ in range(40):
        for ad in there.ads.values():
            ad["LastHeardFrom"] += 1
        seen = looked(there, last, odd)
    assert not [one for one in seen.values() if one.fault]


WHOSE = {"AuthenticatedIdentity": "worker-7"}


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("name", "machine_says", "address"),
    [
        (POISON, POISON, POISON),
        (POISON, "undefined", "undefined"),
        (POISON, "7", POISON),
        ('strcat("slot1@", "w002")', POISON, "undefined"),
        ('strcat("slot1@", "w002")', "undefined", POISON),
        ("7", POISON, POISON),
        ("undefined", "7", "undefined"),
    ],
)
def test_one_with_neither_name_nor_machine_is_counted_by_who_advertised_it(
    last: Reread, later: bool, name: str, machine_says: str, address: str
) -> None:
    """Its identity is what the collector writes itself, whatever the ad says."""
    there, odd = Collector(5), Odd()
    for n, ad in enumerate(there.ads.values()):
        ad.update({"AuthenticatedIdentity": f"worker-{n}", "Machine": f"w{n:03}"})
    if later:
        assert len(looked(there, last, odd)) == 5
    said = {"Name": name, "Machine": machine_says, "MyAddress": address}
    culprit = there.ads["slot1@w002"]
    culprit.update({key: classad2.ExprTree(text) for key, text in said.items()})
    for _ in range(3):
        culprit["LastHeardFrom"] += 1
        there.ads["slot1@w003"]["LastHeardFrom"] += 1
        seen = looked(there, last, odd)
        assert len(seen) == 5
        (one,) = (one for one in seen.values() if one.fault)
        assert (one.name, one.state, one.accepting) == ("unnamed-1 of worker-2", "Claimed", False)
        assert one.free.cpus == 0
    there.asked = 0
    looked(there, last, odd)
    assert there.asked <= 10, "the search is paid for once"
    culprit.update({"Name": "slot1@w002", "Machine": "w002", "MyAddress": "<10.0.0.1:2>"})
    for _ in range(40):
        for ad in there.ads.values():
            ad["LastHeardFrom"] += 1
        seen = looked(there, last, odd)
    assert not [one for one in seen.values() if one.fault]


def test_several_of_one_advertiser_with_nothing_else_to_tell_them_by_are_counted(
    there: Collector, last: Reread
) -> None:
    for n in (1, 2, 3):
        ad = there.ads[f"slot1@w{n:03}"]
        ad.update({"Name": 7, "LastHeardFrom": n, **(WHOSE if n < 3 else {})})
        del ad["MyAddress"]
    seen = looked(there, last, Odd())
    assert len(seen) == MANY
    names = {one.name for one in seen.values() if one.fault}
    assert names == {"unnamed-1 of worker-7", "unnamed-2 of worker-7", "unnamed-1 of an unknown advertiser"}


def test_of_what_cannot_be_read_as_much_as_can_be_is_known(there: Collector, last: Reread) -> None:
    there.ads["slot1@w042"]["Offline"] = classad2.ExprTree(POISON)
    seen = looked(there, last, Odd())["slot1@w042"]
    assert (seen.instance_id, seen.state, seen.total.cpus, seen.heard) == ("i-42", "Unclaimed", 4, 7.0)


def test_the_search_is_paid_for_once_and_each_gets_another_chance(there: Collector, last: Reread) -> None:
    for n in range(0, MANY, 5):
        there.ads[f"slot1@w{n:03}"]["Offline"] = classad2.ExprTree(POISON)
    odd = Odd()
    looked(there, last, odd)
    looked(there, last, odd)
    dear, there.asked = there.asked, 0
    for ad in there.ads.values():
        ad["LastHeardFrom"] += 1
    seen = looked(there, last, odd)
    assert len([one for one in seen.values() if one.fault]) == 10
    assert there.asked <= 6 < 40 < dear
    for ad in there.ads.values():
        ad["Offline"] = False
    for _ in range(40):
        for ad in there.ads.values():
            ad["LastHeardFrom"] += 1
        seen = looked(there, last, odd)
    assert not [one for one in seen.values() if one.fault]


def test_what_has_left_is_forgotten(there: Collector, last: Reread) -> None:
    there.ads["slot1@w042"]["Offline"] = classad2.ExprTree(POISON)
    odd = Odd()
    looked(there, last, odd)
    del there.ads["slot1@w042"]
    for _ in range(2):
        assert len(looked(there, last, odd)) == MANY - 1
    assert not odd.names()


def test_a_collector_that_fails_is_no_slots_fault(there: Collector, last: Reread) -> None:
    odd = Odd()
    looked(there, last, odd)
    there.down = True
    with pytest.raises(htcondor2.HTCondorException):
        looked(there, last, odd)
    assert not odd.names()


def test_a_foreign_slot_that_cannot_be_read_whole_is_looked_for_once(there: Collector) -> None:
    del there.ads["slot1@w000"]["UpdraftPool"]
    for n in (3, 4):
        del there.ads[f"slot1@w{n:03}"]["UpdraftPool"]
        there.ads[f"slot1@w{n:03}"]["Essay"] = classad2.ExprTree(POISON)
    slots = [slot(there.ads[f"slot1@w{n:03}"], "test") for n in (0, 3, 4)]
    placed, memory = learn(slots, SlotMemory(), lambda names: whole(there, names), False)
    assert [bool(one.kind) for one in placed] == [True, False, False]
    there.asked = 0
    again, memory = learn(slots, memory, lambda names: whole(there, names), False)
    assert (again, there.asked) == (placed, 0)
    learn([replace(slots[2], started=9.0)], memory, lambda names: whole(there, names), False)
    assert there.asked == 1, "a startd that was restarted may say another thing"


def test_who_cannot_be_read_whole_teaches_no_kind_and_keeps_no_other_from_it(there: Collector) -> None:
    marks = {f"Updraft{name}": "x" for name in ("Class", "Generation", "Cloud", "Flavor")}
    for ad in there.ads.values():
        ad.update(marks)
    there.ads["slot1@w000"]["Essay"] = classad2.ExprTree(POISON)
    slots = [slot(ad, "test") for ad in there.ads.values()]
    memory = SlotMemory()
    for _ in range(2):
        _, memory = learn(slots, memory, lambda names: whole(there, names), False)
    assert list(memory.templates) == ["x/x/x/x"]
