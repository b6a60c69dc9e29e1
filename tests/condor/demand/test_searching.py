"""The search for jobs that can't be read has its time in each look, and goes on at the next."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.condor.demand.test_queue import NAMES, POISON, Schedd, job
from tests.rigs.bindings import htcondor2
from updraft.condor.demand.conditions import WAITING_OR_RUNNING
from updraft.condor.demand.groups import is_suspect
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.schedd import ScheddMemory, looked
from updraft.condor.demand.searching import AdSearch, SearchBudget, suspects
from updraft.condor.support.lookup import jobs_in
from updraft.core.demand.jobnames import JobName
from updraft.core.model import JobGroup, ScheddView
from updraft.core.slots.kinds import problem

TOOK = 0.5
LIMIT = 3.0
HONEST = [f"u{n:02}" for n in range(40)]
CULPRITS = {"eve": (1030, 1070), "mal": (2007,)}


class Slow(Schedd):
    """A schedd that takes half a second for each question."""

    now = 0.0

    def clock(self) -> float:
        return self.now

    def query(self, *args: Any, **how: Any) -> list[Any]:
        self.now += TOOK
        return super().query(*args, **how)

    def history(self, *_: Any, **__: Any) -> list[Any]:
        return []


HEAVY = "Heavy"
DEADLINE, SENDS = 20.0, 25.0  # seconds for a whole look, and that a schedd takes for somebody's jobs


class Heavy(Slow):
    """A schedd that takes longer to send some jobs than a look may take, or than HTCondor waits."""

    def query(self, *args: Any, **how: Any) -> list[Any]:
        found = super().query(*args, **how)
        if any(HEAVY in str(ad.get("Requirements")) for ad in found):
            patience = float(htcondor2.param["Q_QUERY_TIMEOUT"])
            self.now += min(patience, SENDS)
            if patience < SENDS:
                raise htcondor2.HTCondorException("Failed to fetch ads from schedd, errmsg=")
        return found


@pytest.fixture
def slow() -> Slow:
    jobs = [job(n, owner) for n, owner in enumerate(HONEST)]
    jobs += [job(1000 + n, "eve", POISON if 1000 + n in CULPRITS["eve"] else "true") for n in range(100)]
    jobs += [job(2000 + n, "mal", POISON if 2000 + n in CULPRITS["mal"] else "true") for n in range(20)]
    return Slow(*jobs)


def look(slow: Slow, memory: ScheddMemory) -> tuple[ScheddView, ScheddMemory]:
    return looked(slow, "test", "s", True, memory, LIMIT, slow.clock)


def read(groups: Sequence[JobGroup]) -> int:
    return sum(group.idle for group in groups if group.evaluable)


@pytest.mark.slow
def test_a_search_ends_with_the_culprits_and_others_are_served_meanwhile(slow: Slow) -> None:
    memory, seen = ScheddMemory(location="there", names=NAMES, looks=1), []
    for _ in range(60):
        view, memory = look(slow, memory)
        seen.append(read(view.groups))
        assert view.idle_total == sum(group.idle for group in view.groups) == 160, "unknown is not zero"
        assert view.running == ()
        left_out = [group for group in view.groups if not group.evaluable]
        assert all("can't be read" in problem(group.ad) for group in left_out)
        assert bool(memory.searches) == any(map(is_suspect, left_out))
        slow.now += 30
        if len(seen) > 5 and not memory.searches:
            break
    assert memory.unread == CULPRITS
    assert memory.searches == ()
    assert seen[-1] == 157
    assert seen == sorted(seen), "who was told apart stays so"
    assert len(set(seen)) > 3, "the search makes progress over looks"
    assert seen[4] >= len(HONEST), "whose they are not is known soon"


def test_a_search_is_over_its_time_by_one_question_at_most(slow: Slow) -> None:
    searches: tuple[AdSearch, ...] = ()
    unread: Any = {}
    for _ in range(60):
        budget = SearchBudget(LIMIT, clock=slow.clock)
        queue = JobQueue(slow, unread, (), searches, budget)
        queue.go_on()
        queue.grouped(WAITING_OR_RUNNING, NAMES)
        assert budget.spent <= LIMIT + 2 * TOOK, "a question, and whether the schedd answers at all"
        before, searches, unread = searches, queue.searches, queue.unread
        assert searches != before or not searches
        if not searches:
            break
    assert (unread, searches) == (CULPRITS, ())


@pytest.mark.slow
def test_within_ones_own_jobs_it_takes_a_tenth_of_the_time(slow: Slow) -> None:
    memory = ScheddMemory(location="there", names=NAMES, looks=1)
    while not memory.searches or any(not part.clusters for part in suspects(memory.searches)):
        _, memory = look(slow, memory)
    searched = 0
    while memory.searches:
        before, start = memory, slow.now
        _, memory = look(slow, memory)
        if memory.searches != before.searches:
            searched += 1
            assert start >= before.rest_until
            assert memory.rest_until >= slow.now + 9 * TOOK
        slow.now += 2
    assert searched > 1


def test_a_job_whose_turn_is_to_come_is_explained_as_such(slow: Slow) -> None:
    queue = JobQueue(slow, {}, budget=SearchBudget(1.0, clock=slow.clock))
    found = jobs_in(queue, "s", JobName(3, 0))
    assert [(one.id, one.owner, one.state) for one in found.jobs] == [("3.0", "u03", "idle")]
    assert [is_suspect(group) for group in found.groups] == [True]


def test_a_search_that_is_handed_on_is_whole(slow: Slow) -> None:
    """What is suspect is no other question's, and what isn't, is."""
    queue = JobQueue(slow, {}, budget=SearchBudget(LIMIT, clock=slow.clock))
    rows = queue.grouped(WAITING_OR_RUNNING, NAMES)
    served = {row["Owner"] for row in rows}
    suspect = {owner for part in suspects(queue.searches) for owner in part.owners}
    assert served | suspect == {*HONEST, *CULPRITS}
    assert not served & suspect


def test_jobs_that_take_longer_than_a_look_keep_nobody_else_waiting() -> None:
    """A look that had no answer in time is followed by a careful one, which finds out whose jobs they are."""
    heavy = Heavy(*[job(n, owner) for n, owner in enumerate(HONEST)], job(1000, "eve", f'"{HEAVY}" == "x"'))
    memory, served = ScheddMemory(location="there", names=NAMES, looks=1), []
    for _ in range(12):
        begun = heavy.now
        view, after = looked(heavy, "test", "s", True, memory, DEADLINE / 4, heavy.clock)
        if heavy.now - begun > DEADLINE:  # its child is ended, and what it has learned is lost
            served.append(0)
            memory = replace(memory, careful=True)
            continue
        served.append(read(view.groups))
        assert view.idle_total == len(HONEST) + 1, "unknown is not zero"
        memory = after
    assert served[0] == 0
    assert served[-1] == len(HONEST)
    assert served[5:] == [len(HONEST)] * 7, "what is known is known"
    assert memory.unread == {"eve": (1000,)}
    assert int(htcondor2.param["Q_QUERY_TIMEOUT"]) == 20
