"""A job is found and explained, whatever somebody else's jobs and schedds do."""

import threading

import pytest

from tests.condor.demand.test_queue import POISON, Schedd, job
from tests.waiting import deadline
from updraft.condor.demand.groups import unread_groups, unread_of
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.unread import ALL
from updraft.condor.support.lookup import JobName, JobSeen, JobsFound, gathered, jobs_in
from updraft.core.model import JobGroup
from updraft.errors import PoolError, PoolTimeout

ALICES = JobName(12, 0)


def found(*ids: str) -> JobsFound:
    return JobsFound(tuple(JobSeen(one, "home", "alice", "idle", 0.0) for one in ids), ())


def answer(schedd: str) -> JobsFound:
    if schedd == "silent":
        raise PoolTimeout("schedd silent gave no answer within 20 s")
    return found("12.0") if schedd == "home" else found()


@pytest.mark.parametrize("order", [("home", "silent"), ("silent", "home")])
def test_a_silent_schedd_keeps_no_job_of_another_from_being_explained(order: tuple[str, ...]) -> None:
    seen = gathered(order, answer)
    assert [one.id for one in seen.jobs] == ["12.0"]
    assert seen.silent == (("silent", "schedd silent gave no answer within 20 s"),)


def test_where_nothing_is_found_a_silent_schedd_is_the_reason() -> None:
    assert gathered(("other",), answer) == JobsFound((), ())
    with pytest.raises(PoolError, match="schedd silent gave no answer"):
        gathered(("other", "silent"), answer)


def test_all_schedds_are_asked_at_once() -> None:
    both = threading.Barrier(2)

    def ask(schedd: str) -> JobsFound:
        both.wait(deadline(30))
        return answer(schedd)

    assert gathered(("home", "other"), ask).jobs


def queue_of(*jobs: dict[str, object]) -> Schedd:
    return Schedd(job(12, "alice"), *jobs)


def groups_of(jobs: Schedd, name: JobName, queue: JobQueue | None = None) -> list[JobGroup]:
    return list(jobs_in(queue or JobQueue(jobs, {}), "home", name).groups)


def test_jobs_of_others_that_cannot_be_read_keep_no_job_from_being_explained() -> None:
    bobs = [job(20 + n, "bob", POISON) for n in range(5)]
    crowded = queue_of(*bobs)
    seen = jobs_in(JobQueue(crowded, {}), "home", ALICES)
    assert [(one.id, one.owner, one.state) for one in seen.jobs] == [("12.0", "alice", "idle")]
    assert [(one.owner, one.idle, one.evaluable) for one in seen.groups] == [("alice", 1, True)]
    assert [(one.owner, one.evaluable) for one in groups_of(crowded, JobName(22))] == [("bob", False)]


def test_what_a_look_has_found_is_not_looked_for_again() -> None:
    crowded = queue_of(*(job(20 + n, "bob", POISON) for n in range(5)))
    looked = JobQueue(crowded, {})
    looked.grouped("true", ("JobStatus", "JobUniverse", "Owner", "Requirements"))
    known = unread_of(unread_groups("home", looked))
    assert known == looked.unread == {"bob": (20, 21, 22, 23, 24)}
    crowded.asked = 0
    (anew,) = groups_of(crowded, ALICES)
    dear, crowded.asked = crowded.asked, 0
    assert groups_of(crowded, ALICES, JobQueue(crowded, known)) == [anew]
    assert crowded.asked < dear - 5


def test_who_has_too_many_of_them_is_known_as_such() -> None:
    crowded = queue_of(*(job(20 + n, "bob", POISON) for n in range(5)))
    assert unread_of(unread_groups("home", JobQueue(crowded, {"bob": ALL}))) == {"bob": ALL}
