"""What a real schedd and a real collector pass on, and HTCondor's library can't read, costs itself.

An older HTCondor (23.9) takes expressions of any depth, and the library of a newer one gives the whole answer
up for one of them; a newer one refuses them at once. With both, everything else is seen.
"""

from collections.abc import Iterator

import pytest

from tests.condor.test_livepool import SCHEDD
from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, live_pool, wait_for
from updraft.condor.access import PoolAccess
from updraft.condor.lookup import JobName, find_jobs
from updraft.condor.pool import HTCondorPool
from updraft.core.kinds import problem
from updraft.core.model import JobGroup, ScheddView, Slot

pytestmark = pytest.mark.integration

DEEP = "!" * 500 + "true"
JOB = "executable = /bin/sleep\narguments = 600\n"
AD = """\
MyType = "Machine"
Machine = "odd"
MyAddress = "<10.99.0.77:9618>"
State = "Unclaimed"
Activity = "Idle"
PartitionableSlot = true
Cpus = 8
Disk = 100000000
Requirements = Start
"""


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def access(live: LivePool) -> PoolAccess:
    return PoolAccess(
        "test", collector=COLLECTOR, token_dir=live.token_dir(), trust_domain=TRUST_DOMAIN,
        tools=live.nodes["head"].enter(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def pool(live: LivePool, access: PoolAccess) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(access) as made:
        yield made


def submitted(live: LivePool, text: str) -> str:
    """The cluster, empty where this HTCondor refuses such a job."""
    said = live.nodes["head"].run("condor_submit", "-terse", text=JOB + text, user="bob", check=False)
    number = said.split(".")[0].strip()
    return number if number.isdigit() else ""


def test_jobs_that_cannot_be_read_are_named_and_the_others_are_served(
    live: LivePool, pool: HTCondorPool, access: PoolAccess
) -> None:
    deep = [
        number
        for text in (
            f"requirements = {DEEP}\nqueue\n",
            f"+Foo = {DEEP}\nrequirements = Foo\nqueue\n",
            f"+UpdraftSpot = {DEEP}\nqueue\n",
            f"+JobLeaseDuration = {DEEP}\nqueue\n",
            f"max_materialize = 1\nrequirements = {DEEP}\nqueue 5\n",
        )
        if (number := submitted(live, text))
    ]
    own = submitted(live, "request_cpus = 3\nqueue 2\n")
    live.nodes["head"].run("condor_submit", "-terse", text=JOB + "request_cpus = 2\nqueue 3\n", user="alice")

    def seen() -> ScheddView | None:
        view = pool.demand(SCHEDD, running=True, deadline=60)
        return view if {"alice", "bob"} <= {group.owner for group in view.groups} else None

    view = wait_for("all jobs", seen, 60)
    assert isinstance(view, ScheddView)
    served = {(g.owner, g.request.cpus, g.idle) for g in view.groups if g.evaluable}
    assert {("alice", 2, 3), ("bob", 3, 2)} <= served
    left_out = {group.first_id: group for group in view.groups if not group.evaluable}
    # Whether a job's lease can be read matters only while it runs.
    assert set(left_out) >= {f"{number}.0" for number in (*deep[:3], *deep[4:])}
    assert all(named(group, "bob") for group in left_out.values())
    assert view.running == ()
    if deep:
        found = find_jobs(access, (SCHEDD,), JobName(int(deep[0])), 60)
        assert [named(group, "bob") for group in found.groups] == [True]
    assert find_jobs(access, (SCHEDD,), JobName(int(own)), 60).groups[0].evaluable

    live.nodes["head"].run("condor_rm", "bob")

    def gone() -> bool:
        groups = pool.demand(SCHEDD, running=True, deadline=60).groups
        return [(g.owner, g.evaluable) for g in groups] == [("alice", True)]

    wait_for("only the honest ones", gone, 60)


def named(group: JobGroup, owner: str) -> bool:
    return group.owner == owner and "can't be read" in problem(group.ad)


def test_a_slot_that_cannot_be_read_is_no_room_and_the_others_are_seen(
    live: LivePool, pool: HTCondorPool
) -> None:
    ads = {
        "slot1@deep": f"Memory = 1000\nStart = {DEEP}\n",
        "slot1@hidden": f"Memory = 1000\nStart = true\nUpdraftOdd = {DEEP}\n",
        "slot1@much": "Memory = 1e308\nStart = true\n",
        "slot1@text": 'Memory = 1000\nStart = true\nUpdraftPool = "caf\\351"\n',
        "slot1@plain": "Memory = 1000\nStart = true\n",
    }
    head = live.nodes["head"]
    for name, lines in ads.items():
        text = f'Name = "{name}"\n{AD}{lines}'
        head.run("condor_advertise", "-tcp", "UPDATE_STARTD_AD", "-", text=text, check=False)

    def seen() -> dict[str, Slot] | None:
        slots = {slot.name: slot for slot in pool.slots(60).view.slots}
        return slots if slots.keys() >= {"slot1@much", "slot1@plain", "slot1@text"} else None

    slots = wait_for("the slots", seen, 60)
    assert isinstance(slots, dict)
    plain = slots["slot1@plain"]
    assert (plain.free.memory, plain.fault, plain.busy) == (1000, "", False)
    assert slots["slot1@much"].free.memory == 0
    assert "Memory is 1e+308" in slots["slot1@much"].fault
    assert slots["slot1@text"].fault == ""
    there = set(head.run("condor_status", "-af", "Name", check=False).split())
    for name in {"slot1@deep", "slot1@hidden"} & there:
        assert name in slots, "whatever it says, it is there"
    if "slot1@deep" in there:
        assert "can't be read" in slots["slot1@deep"].fault
        assert not slots["slot1@deep"].accepting
        assert slots["slot1@deep"].free.memory in (0, 1000)
    assert pool.slots(60).view.slots, "and again, when nothing has changed"
