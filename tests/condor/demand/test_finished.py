"""How long jobs run, by their own word and by a history."""

import classad2
import pytest

from updraft.condor.demand.finished import Finished, added, likely, refreshed, said
from updraft.condor.demand.groups import group
from updraft.core.demand.runtimes import expected


def row(**values: object) -> classad2.ClassAd:
    return classad2.ClassAd(values)


def ended(owner: str, command: str, at: float, ran: float) -> classad2.ClassAd:
    return row(Owner=owner, Cmd=command, CompletionDate=int(at), JobCurrentStartDate=int(at - ran))


def test_what_a_job_says_of_itself() -> None:
    assert said(row()) == (None, None)
    assert said(row(UpdraftRunTime=90)) == (90.0, None)
    assert said(row(MaxWallTimeMins=10, AllowedExecuteDuration=300)) == (None, 300.0)
    assert said(row(MaxWallTimeMins=10)) == (None, 600.0)


@pytest.mark.parametrize("value", ["ten", True, -5, 0, float("nan"), float("inf")])
def test_nonsense_says_nothing(value: object) -> None:
    assert said(row(UpdraftRunTime=value, MaxRuntime=value)) == (None, None)


def test_an_expression_is_not_evaluated() -> None:
    ad = classad2.ClassAd("[ UpdraftRunTime = 60 * 60 * 24 ]")
    assert said(ad) == (None, None)


def test_the_mean_of_finished_jobs_is_of_their_user_and_executable() -> None:
    rows = [ended("ada", "/bin/a", 1000 + n, 50) for n in range(100)] + [ended("ada", "/bin/b", 20_000, 9000)]
    known = added(Finished(), rows)
    assert likely(None, None, "ada", "/bin/a", known) == expected(100, 5000.0)
    assert likely(None, None, "ada", "/bin/b", known) == expected(1, 9000.0)
    assert likely(None, None, "grace", "/bin/a", known) is None
    assert likely(70.0, None, "ada", "/bin/a", known) == 70.0
    assert likely(None, 60.0, "ada", "/bin/a", known) == 60.0


def test_a_job_is_counted_once_and_what_is_old_fades() -> None:
    first = added(Finished(), [ended("ada", "a", 1000, 10)])
    again = added(first, [ended("ada", "a", 1000, 10), ended("ada", "a", 1001, 10)])
    assert again.runs["ada", "a"] == (2.0, 20.0)
    old = added(Finished(), [ended("ada", "a", 1000 + n, 1000) for n in range(1000)])
    changed = added(old, [ended("ada", "a", 3000 + n, 10) for n in range(2000)])
    now = likely(None, None, "ada", "a", changed)
    assert now is not None
    assert now < 250


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    known = added(Finished(), [ended("ada", f"job{n}.sh", 1000 + n, 10) for n in range(5000)])
    assert len(known.runs) <= 2000
    assert ("ada", "job4999.sh") in known.runs


def test_a_row_of_nonsense_is_left_out() -> None:
    odd = [row(), row(Owner=3, Cmd="a", CompletionDate=5, JobCurrentStartDate=1), row(CompletionDate="x")]
    assert added(Finished(), odd) == Finished()


def test_a_history_that_cannot_be_read_changes_nothing() -> None:
    class Broken:
        def history(self, *_words: object, **_more: object) -> list[object]:
            raise OSError("no history")

    known = Finished(5.0, {("ada", "a"): (1.0, 10.0)})
    assert refreshed(Broken(), known) == known


def test_a_group_carries_what_its_jobs_say() -> None:
    ad = row(JobStatus=1, JobCount=3, Owner="ada", JobIds="1.0", UpdraftRunTime=90, MaxRuntime=600)
    (found,) = group("head", [ad])
    assert (found.run_time, found.longest) == (90.0, 600.0)
