"""What a real schedd and a real collector pass on, and HTCondor's library can't read, costs itself.

An older HTCondor (23.9) takes expressions of any depth, and the library of a newer one gives the whole answer
up for one of them; a newer one refuses them at once. With both, everything else is seen.
"""

import time
from collections.abc import Iterator

import pytest

from tests.condor.test_livepool import SCHEDD
from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from tests.waiting import patience
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.lookup import find_jobs
from updraft.core.demand.jobnames import JobName
from updraft.core.model import JobGroup, ScheddView, Slot
from updraft.core.slots.kinds import problem

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
    return live.access()


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


def advertised(live: LivePool, name: str, lines: str) -> None:
    text = f'Name = "{name}"\n{AD}{lines}'
    live.nodes["head"].run("condor_advertise", "-tcp", "UPDATE_STARTD_AD", "-", text=text, check=False)


# What updraft asks a schedd about, and a job's owner may write.
ASKED = (
    *("UpdraftRunTime", "AllowedExecuteDuration", "MaxRuntime", "AccountingGroup", "JobPrio", "QDate"),
    *("VMAMI", "UpdraftSpot", "RemoteHost", "RemoteHosts", "JobLeaseDuration", "JobMaterializeDigestFile"),
    *("HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Cmd", "Owned"),
)
RUNGS = 40


def workers(live: LivePool) -> int:
    """The processes of the schedd: one of its own, and one for each question that isn't answered yet."""
    said = live.nodes["head"].run("ps", "-eo", "comm=")
    return said.split().count("condor_schedd")


def test_a_ladder_of_references_keeps_no_schedd_busy(live: LivePool, access: PoolAccess) -> None:
    """Grouped by such an attribute, its schedd would look through it for ever, once for each look."""
    head = live.nodes["head"]
    if " 23." in head.run("condor_version"):
        pytest.skip("a schedd of 23.9 stops as soon as a job says it, whoever asks")
    rungs = [word for rung in range(RUNGS) for word in (f"Rung{rung}", f"Rung{rung + 1} + Rung{rung + 1}")]
    for name in ASKED:
        number = submitted(
            live, f"requirements = TARGET.Nowhere =?= 1\nqueue {3 if name == 'JobPrio' else 1}\n"
        )
        head.run("condor_qedit", number, *rungs, name, "Rung0", user="bob")
    # What one job's requirements refer to is what jobs are told apart by, and no safer in another job.
    number = submitted(live, "+Rung5 = 1\nrequirements = Rung5 > 0 && TARGET.Nowhere =?= 1\nqueue\n")
    advertised(live, "slot1@first", "Memory = 1000\nStart = true\n")  # without machines no job is looked at
    by = ("condor_q", number, "-af", "AutoClusterAttrs")
    wait_for("jobs are told apart by it", lambda: "Rung5" in head.run(*by, user="bob"), 90)
    number = submitted(live, "requirements = TARGET.Nowhere =?= 1\nqueue\n")
    head.run("condor_qedit", number, *rungs, "UpdraftRunTime", "Rung5", user="bob")
    held = submitted(live, "hold = true\nqueue\n")
    head.run("condor_qedit", held, *rungs, "HoldReasonCode", "Rung0", user="bob")
    head.run("condor_submit", "-terse", text=JOB + "request_cpus = 7\nqueue 2\n", user="alice")
    slow = []
    with live.network(), HTCondorPool(access) as pool:
        for _ in range(3):
            begun = time.monotonic()
            view = pool.demand(SCHEDD, running=True, deadline=60)
            slow.append(time.monotonic() - begun)
            assert ("alice", 7, 2) in {(g.owner, g.request.cpus, g.idle) for g in view.groups if g.evaluable}
    theirs = sum(group.idle for group in view.groups if group.owner == "bob")
    assert theirs >= len(ASKED) + 4, "each of them is counted"
    assert max(slow) < 10 * patience(), slow
    wait_for("nobody is busy with it", lambda: workers(live) == 1, 20)
    head.run("condor_rm", "bob")


def named(group: JobGroup, owner: str) -> bool:
    why = problem(group.ad)
    return group.owner == owner and ("can't be read" in why or "can't be asked for" in why)


def test_a_slot_that_cannot_be_read_is_no_room_and_the_others_are_seen(
    live: LivePool, pool: HTCondorPool
) -> None:
    ads = {
        "slot1@deep": f"Memory = 1000\nStart = {DEEP}\n",
        "slot1@hidden": f"Memory = 1000\nStart = true\nUpdraftOdd = {DEEP}\n",
        "slot1@offline": f"Memory = 1000\nStart = true\nOffline = {DEEP}\n",
        "slot1@since": f"Memory = 1000\nStart = true\nDaemonStartTime = {DEEP}\n",
        "slot1@count": f"Memory = 1000\nStart = true\nUpdateSequenceNumber = {DEEP}\n",
        "slot1@much": "Memory = 1e308\nStart = true\n",
        "slot1@text": 'Memory = 1000\nStart = true\nUpdraftPool = "caf\\351"\n',
        "slot1@plain": "Memory = 1000\nStart = true\n",
    }
    head = live.nodes["head"]
    for name, lines in ads.items():
        advertised(live, name, lines)
    unspelled = "slot1@o\\dd"  # in a condition its backslash is another thing
    advertised(live, unspelled, 'Memory = 1000\nStart = true\nMachine = "odd"\nSlotID = 3\n')

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
    assert unspelled in there
    for name in ads.keys() & there:
        assert name in slots, "whatever it says, it is there"
    for name in {"slot1@deep", "slot1@offline", "slot1@since", "slot1@count"} & there:
        assert "can't be read" in slots[name].fault
        assert not slots[name].accepting
        assert slots[name].free.memory in (0, 1000)
    assert slots["slot3@odd"].fault, "it is told of under another name"
    again = {slot.name: slot for slot in pool.slots(60).view.slots}
    assert again.keys() == slots.keys(), "and again, when nothing has changed"
    advertised(live, "slot1@later", f"Memory = 1000\nStart = true\nOffline = {DEEP}\n")
    advertised(live, "slot1@plain", "Memory = 2000\nStart = true\nUpdateSequenceNumber = 2\n")
    wait_for("its news", lambda: free_memory(pool)["slot1@plain"] == 2000, 60)


def free_memory(pool: HTCondorPool) -> dict[str, int]:
    return {slot.name: slot.free.memory for slot in pool.slots(60).view.slots}
