"""What can't be read in a schedd's queue is found, costs itself, and is said with its owner."""

from collections.abc import Sequence
from typing import Any

import classad2
import pytest

from tests.rigs.bindings import htcondor2
from updraft.condor.demand.conditions import RUNNING, WAITING_OR_RUNNING
from updraft.condor.demand.groups import unread_groups
from updraft.condor.demand.naming import bounded, names_to_group_by
from updraft.condor.demand.places import running_jobs
from updraft.condor.demand.queue import UNTOLD, JobQueue
from updraft.condor.demand.unread import ALL
from updraft.core.slots.kinds import problem

NAMES = ("JobStatus", "JobUniverse", "Owner", "Requirements")
POISON = "Poison"


class Schedd:
    """Answers like a schedd of the bindings, and fails where an ad that it would send has `POISON`."""

    def __init__(self, *jobs: dict[str, object], down: bool = False) -> None:
        self.ads = [classad2.ClassAd({"JobStatus": 1, "JobUniverse": 5, **job}) for job in jobs]
        self.down = down
        self.asked = 0

    def query(
        self, constraint: str = "true", projection: Sequence[str] = (), limit: int = -1, opts: Any = None
    ) -> list[Any]:
        self.asked += 1
        if self.down:
            raise htcondor2.HTCondorException("Failed to fetch ads from schedd, errmsg=")
        wanted = classad2.ExprTree(constraint)
        groups, whole = htcondor2.QueryOpt.GroupBy, htcondor2.QueryOpt.IncludeClusterAd
        if opts == htcondor2.QueryOpt.AutoCluster:
            found = self.ads
        elif opts == groups:
            found = self._grouped(wanted, projection)
        else:
            found = [ad for ad in self.ads if opts == whole or "ProcId" in ad]
        found = [ad for ad in found if wanted.eval(ad) is True][: limit if limit >= 0 else None]
        sent = [ad for ad in found if not projection or {"Requirements"} & set(projection)]
        if any(POISON in str(ad.get("Requirements")) for ad in sent):
            raise htcondor2.HTCondorException("Failed to fetch ads from schedd, errmsg=")
        kept = (*projection, "JobCount", "JobIds")
        return [
            classad2.ClassAd(
                {n: ad.lookup(n) for n in ad if not projection or n in {*kept, *brought(ad, kept)}}
            )
            for ad in found
        ]

    def _grouped(self, wanted: Any, names: Sequence[str]) -> list[Any]:
        """A real one tests the condition twice: of each job, and of what it groups by."""
        groups: dict[str, Any] = {}
        for ad in self.ads:
            if "ProcId" not in ad or wanted.eval(ad) is not True:
                continue
            own = classad2.ClassAd(
                {name: ad.lookup(name) for name in ad if name in {*names, *brought(ad, names)}}
            )
            known = groups.setdefault(repr(own), own)
            known["JobCount"] = known.get("JobCount", 0) + 1
            known["JobIds"] = f"{ad['ClusterId']}.{ad['ProcId']}"
        return list(groups.values())


def brought(ad: Any, names: Sequence[str]) -> set[str]:
    """What a schedd sends with these attributes: all that they refer to. It looks for as long as it takes."""
    found: set[str] = set()
    fresh = [name for name in names if name in ad]
    while fresh:
        more = {ref for name in fresh for ref in ad.internalRefs(ad.lookup(name)) if ref} - found
        assert not any(name.startswith("Rung") for name in more), "the schedd looks through this for ever"
        found |= more
        fresh = sorted(more)
    return found


def job(cluster: int, owner: str, requirements: str = "true", proc: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "ClusterId": cluster, "ProcId": proc, "Owner": owner, "Requirements": requirements,
        "AutoClusterAttrs": "Foo,Bar", **more,
    }  # fmt: skip


def grouped(queue: JobQueue, names: Sequence[str]) -> list[Any]:
    """Everybody's jobs, those of odd owners included."""
    return [*queue.grouped(WAITING_OR_RUNNING, names), *queue.apart(WAITING_OR_RUNNING, names)]


def counts(rows: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row["Owner"]] = found.get(row["Owner"], 0) + row["JobCount"]
    return found


@pytest.fixture
def schedd() -> Schedd:
    """Fifty honest users with three jobs each; of eve's ten clusters two can't be read."""
    honest = [job(n * 20 + p, f"u{n}", proc=p) for n in range(50) for p in range(3)]
    eve = [job(5 + 20 * n, "eve", POISON if n in (3, 7) else "true", proc=9) for n in range(10)]
    return Schedd(*honest, *eve)


def test_who_cannot_be_read_costs_nobody_else_a_job(schedd: Schedd) -> None:
    queue = JobQueue(schedd, {})
    found = counts(queue.grouped(WAITING_OR_RUNNING, NAMES))
    assert found == {**{f"u{n}": 3 for n in range(50)}, "eve": 8}
    assert queue.unread == {"eve": (65, 145)}


def test_the_search_is_paid_for_once(schedd: Schedd) -> None:
    queue = JobQueue(schedd, {})
    queue.grouped(WAITING_OR_RUNNING, NAMES)
    dear, schedd.asked = schedd.asked, 0
    again = JobQueue(schedd, queue.unread)
    assert sum(counts(again.grouped(WAITING_OR_RUNNING, NAMES)).values()) == 158
    assert schedd.asked == 2 < dear < 60


def test_what_is_left_out_is_named_with_its_owner_and_forgotten_when_it_is_gone(schedd: Schedd) -> None:
    queue = JobQueue(schedd, {})
    queue.grouped(WAITING_OR_RUNNING, NAMES)
    groups = unread_groups("s", queue)
    assert [(g.owner, g.first_id, g.idle, g.evaluable) for g in groups] == [
        ("eve", "65.0", 1, False),
        ("eve", "145.0", 1, False),
    ]
    assert "can't be read" in problem(groups[0].ad)
    schedd.ads = [ad for ad in schedd.ads if ad["ClusterId"] != 65]
    assert [g.first_id for g in unread_groups("s", queue)] == ["145.0"]
    assert queue.unread == {"eve": (145,)}
    schedd.ads = []
    assert unread_groups("s", queue) == ()
    assert queue.unread == {}


def test_a_job_that_was_mended_is_read_again(schedd: Schedd) -> None:
    queue = JobQueue(schedd, {})
    queue.grouped(WAITING_OR_RUNNING, NAMES)
    for ad in schedd.ads:
        if ad["ClusterId"] == 65:
            ad["Requirements"] = "true"
    queue.try_again(NAMES)
    assert queue.unread == {"eve": (145,)}
    assert counts(queue.grouped(WAITING_OR_RUNNING, NAMES))["eve"] == 9


def test_names_are_had_from_the_jobs_where_the_autoclusters_cannot_be_read(schedd: Schedd) -> None:
    assert {"Foo", "Bar"} <= set(names_to_group_by(JobQueue(schedd, {})))


@pytest.mark.parametrize("status", [2, 3, 5, 6, 7])
def test_one_that_cannot_be_read_runs_all_the_same_whatever_becomes_of_it(status: int) -> None:
    eve = job(5, "eve", POISON, JobStatus=status, RemoteHost="slot1@w")
    queue = JobQueue(Schedd(eve, job(6, "ann", JobStatus=2, RemoteHost="slot1@v")), {})
    assert [row["ClusterId"] for row in queue.jobs(RUNNING, ("ClusterId", *NAMES))] == [6]
    assert [row["ClusterId"] for row in queue.running_unread(("ClusterId", "RemoteHost"))] == [5]
    assert unread_groups("s", queue) == ()
    assert queue.unread == {"eve": (5,)}


def test_a_cluster_that_is_yet_to_be_made_is_found_as_well() -> None:
    factory = {"ClusterId": 7, "Owner": "eve", "Requirements": POISON, "JobMaterializeDigestFile": "x"}
    schedd = Schedd(job(1, "ada"), job(2, "eve"), factory)
    queue = JobQueue(schedd, {})
    which = "ProcId is undefined && JobMaterializeDigestFile isnt undefined"
    assert queue.jobs(which, NAMES, opts=htcondor2.QueryOpt.IncludeClusterAd) == []
    assert queue.unread == {"eve": (7,)}
    assert [(g.owner, g.first_id, g.idle) for g in unread_groups("s", queue)] == [("eve", "7.0", 1)]
    assert len(queue.jobs("true", NAMES)) == 2


def test_a_running_job_that_cannot_be_read_is_still_known_to_run() -> None:
    schedd = Schedd(job(1, "ada"), job(2, "eve", POISON, JobStatus=2, RemoteHost="slot1@w1"))
    queue = JobQueue(schedd, {})
    queue.grouped(WAITING_OR_RUNNING, NAMES)
    (seen,) = queue.running_unread(("ClusterId", "ProcId", "Owner", "RemoteHost"))
    assert seen["RemoteHost"] == "slot1@w1"


@pytest.mark.slow
def test_thousands_of_such_clusters_cost_their_owner_all_and_nobody_else_any() -> None:
    schedd = Schedd(
        *(job(n, f"u{n % 7}" if n % 2 else "eve", "true" if n % 2 else POISON) for n in range(2_000))
    )
    queue = JobQueue(schedd, {})
    assert sum(counts(queue.grouped(WAITING_OR_RUNNING, NAMES)).values()) == 1_000
    assert queue.unread == {"eve": ALL}
    assert schedd.asked < 250
    (one,) = unread_groups("s", queue)
    assert (one.owner, one.idle) == ("eve", 1_000)


def test_a_schedd_that_does_not_answer_is_nobodys_fault(schedd: Schedd) -> None:
    schedd.down = True
    queue = JobQueue(schedd, {})
    with pytest.raises(htcondor2.HTCondorException):
        queue.grouped(WAITING_OR_RUNNING, NAMES)
    assert queue.unread == {}
    assert schedd.asked < 5


def ladder(**said: str) -> dict[str, Any]:
    rungs = {f"Rung{n}": classad2.ExprTree(f"Rung{n + 1} + Rung{n + 1}") for n in range(60)}
    return {**rungs, **{name: classad2.ExprTree(text) for name, text in said.items()}}


WIDER = (*NAMES, "JobPrio", "UpdraftRunTime", "UpdraftSpot", "Foo", "RequestGPUs")


def test_what_refers_to_what_nobody_looks_through_comes_singly_or_is_named() -> None:
    """Each with as much as is safe to ask for: nothing else is said of it."""
    schedd = Schedd(
        job(1, "ada", UpdraftRunTime=60),
        job(2, "eve", **ladder(UpdraftRunTime="Rung0")),
        job(3, "eve", **ladder(Foo="Rung0"), UpdraftRunTime=60),
        job(4, "eve", **ladder(UpdraftSpot="Rung0")),
        job(5, "eve", **ladder(UpdraftRunTime="RequestCpus * 60", RequestCpus="2")),
    )
    queue = JobQueue(schedd, {})
    queue.look_for_odd(WAITING_OR_RUNNING, WIDER)
    assert queue.odd == {"eve"}
    rows = {row["JobIds"]: row for row in grouped(queue, WIDER)}
    assert set(rows) == {"1.0", "2.0", "3.0", "4.0", "5.0"}
    assert [("UpdraftRunTime" in rows[id_], UNTOLD in rows[id_]) for id_ in sorted(rows)] == [
        (True, False), (False, False), (True, False), (False, True), (True, False),
    ]  # fmt: skip
    assert "Foo" not in rows["3.0"]
    assert {row["JobStatus"] for row in rows.values()} == {1}


def test_new_clusters_are_looked_at_and_all_from_time_to_time() -> None:
    schedd = Schedd(job(1, "eve", **ladder(Foo="Rung0")), job(2, "bob", **ladder(Foo="Rung0")))
    queue = JobQueue(schedd, {})
    queue.look_for_odd(WAITING_OR_RUNNING, WIDER, 1)
    assert queue.odd == {"bob"}
    queue.look_for_odd(WAITING_OR_RUNNING, WIDER)
    assert queue.odd == {"bob", "eve"}
    schedd.ads.pop()
    queue.look_again(WAITING_OR_RUNNING, WIDER)
    assert queue.odd == {"eve"}


def test_who_has_jobs_in_no_group_is_found_by_their_number() -> None:
    """Without a second look at all jobs; the odd one's other jobs are no groups of everybody's either."""
    honest = [job(n, f"u{n}", proc=p, JobPrio=n) for n in range(1, 5) for p in range(3)]
    schedd = Schedd(*honest, job(7, "eve"), job(8, "eve", **ladder(Foo="Rung0")))
    queue = JobQueue(schedd, {})
    rows = queue.grouped(WAITING_OR_RUNNING, WIDER)
    assert counts(rows) == {"u1": 3, "u2": 3, "u3": 3, "u4": 3, "eve": 1}
    assert "eve" not in counts(queue.without_odd(rows, WAITING_OR_RUNNING, WIDER))
    assert queue.odd == {"eve"}
    assert counts(queue.apart(WAITING_OR_RUNNING, WIDER)) == {"eve": 2}
    schedd.ads.pop()
    queue = JobQueue(schedd, {})
    rows = queue.grouped(WAITING_OR_RUNNING, WIDER)
    schedd.ads += Schedd(job(9, "u1"), job(10, "new")).ads
    assert queue.without_odd(rows, WAITING_OR_RUNNING, WIDER) == rows, "who has come since isn't odd"
    assert queue.odd == frozenset()


def test_what_one_job_refers_to_makes_it_no_safer_in_another() -> None:
    """The schedd tells jobs apart by what their own requirements refer to; it looks through no others."""
    schedd = Schedd(
        job(1, "bob", "Rung5 > 0", Rung5=1), job(2, "eve", **ladder(UpdraftRunTime="Rung5"), UpdraftSpot=True)
    )
    queue = JobQueue(schedd, {})
    names = bounded(names_to_group_by(queue), ("Rung5",))
    queue.look_for_odd(WAITING_OR_RUNNING, names)
    assert queue.odd == {"eve"}
    rows = {row["JobIds"]: row for row in grouped(queue, names)}
    assert set(rows) == {"1.0", "2.0"}
    assert "UpdraftRunTime" not in rows["2.0"]


USUAL = (
    {"RequestDisk": "MAX({ 1024,(TransferInputSizeMB + 1) * 1.25 }) * 1024", "TransferInputSizeMB": "1"},
    {"RequestDisk": "DiskUsage", "DiskUsage": "17", "MemoryUsage": "((ResidentSetSize + 1023) / 1024)"},
    {"RequestMemory": "ifThenElse(MemoryUsage isnt undefined,MAX({MemoryUsage * 3 / 2,2000}),2000)",
     "MemoryUsage": "((ResidentSetSize + 1023) / 1024)", "ResidentSetSize": "70000"},
    {"RequestMemory": "2048 * RequestCpus", "RequestCpus": "2", "UpdraftRunTime": "600 * MY.RequestCpus"},
    {"RequestMemory": "1024 * (NumJobStarts + 1)", "NumJobStarts": "2"},
    {"RequestMemory": "Foo * 2", "Foo": "512"},
)  # fmt: skip


@pytest.mark.parametrize("said", USUAL)
def test_usual_jobs_come_in_groups(said: dict[str, str]) -> None:
    own = {name: classad2.ExprTree(text) for name, text in said.items()}
    schedd = Schedd(*(job(n, "ada", **own) for n in range(3)))
    queue = JobQueue(schedd, {})
    queue.look_for_odd(WAITING_OR_RUNNING, WIDER)
    assert queue.odd == frozenset()
    (row,) = queue.grouped(WAITING_OR_RUNNING, WIDER)
    assert row["JobCount"] == 3


def test_a_request_made_of_what_only_its_owner_knows_comes_with_the_requirements() -> None:
    """Singly, until its names are known; one that the requirements don't bring along can't be planned for."""
    own = {"RequestMemory": classad2.ExprTree("Mine * 2"), "Mine": 512}
    bringing = classad2.ExprTree("TARGET.Memory >= RequestMemory")
    schedd = Schedd(
        job(1, "ada", **own, RequestCpus=1) | {"Requirements": bringing},
        job(2, "ada", **own, RequestCpus=1),
        job(3, "ada", RequestMemory=7),
    )
    queue = JobQueue(schedd, {})
    names = (*NAMES, "RequestMemory")
    queue.look_for_odd(WAITING_OR_RUNNING, names)
    rows = grouped(queue, names)
    seen = {row["JobIds"]: (UNTOLD in row, "Mine" in row) for row in rows}
    assert seen == {"1.0": (False, True), "2.0": (True, False), "3.0": (False, False)}
    wider = bounded(names, queue.brought)
    assert "Mine" in wider
    queue.look_again(WAITING_OR_RUNNING, wider)
    assert queue.odd == frozenset()


def test_an_owner_whose_name_is_read_otherwise_than_it_is_written_ends_the_search() -> None:
    class Misread(Schedd):
        def query(self, constraint: str = "true", *args: Any, **how: Any) -> list[Any]:
            return [*super().query("true", *args, **how)]

    schedd = Misread(job(1, "eve", Foo=classad2.ExprTree("Rung0")))
    queue = JobQueue(schedd, {})
    queue.look_for_odd(WAITING_OR_RUNNING, WIDER)
    assert schedd.asked < 5


def test_a_running_job_that_can_only_be_asked_where_it_runs_runs_there() -> None:
    """Its lease is whatever its owner has made of it: it counts until the end of time."""
    schedd = Schedd(job(1, "eve", JobStatus=2, RemoteHost="slot1@w", **ladder(JobLeaseDuration="Rung0")))
    (seen,) = running_jobs(JobQueue(schedd, {}), "s")
    assert (seen.slot, seen.lease_until) == ("slot1@w", float("inf"))
