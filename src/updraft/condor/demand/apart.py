"""Jobs that take their schedd long to answer for are asked for apart, so that nobody else waits for them.

Owners whose jobs refer to what nobody knows (see `written`) have their jobs asked for singly, which takes
longer than all the others' in groups. So that is a question of its own, to which a child of its own listens.
A look waits for its answer for a moment, the first one for longer: it may be the only one, of a command. What
takes longer is asked for in a tenth of the time; meanwhile the last answer counts, as far as so many jobs
still wait.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import FACTORIES, WAITING, WAITING_OR_RUNNING
from updraft.condor.demand.groups import FACTORY, group, pending
from updraft.condor.demand.naming import bounded, referred_names, with_terms
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.schedd import First, ScheddMemory, first_jobs, timed
from updraft.condor.demand.searching import AdSearch, SearchBudget, suspects
from updraft.condor.demand.terms import NAMES
from updraft.condor.demand.unread import Unread
from updraft.condor.process.children import Children
from updraft.core.model import JobGroup, ScheddView
from updraft.errors import PoolError

WAIT, FIRST_WAIT = 1.0, 10.0  # seconds that a look waits for it, and the first look at a schedd
_SHARE = 0.1  # of the time for what takes longer
_DEADLINE = 120.0
_SEARCH = 40.0  # seconds of these for jobs that can't be read
_AT_ONCE = 4
_NICE = 10  # whoever reads these jobs leaves processors to whoever else wants them


@dataclass(frozen=True, slots=True)
class ApartView:
    """The odd owners' jobs, as far as they are known: groups, and how many of each owner waited then.

    Of those `cut` not all are told. `firsts`, `unread` and `brought` are to be remembered, as of the other
    jobs; `brought` are names by which these jobs could be grouped.
    """

    groups: tuple[JobGroup, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()
    firsts: dict[str, First] = field(default_factory=dict)
    unread: Unread = field(default_factory=dict)
    brought: frozenset[str] = frozenset()
    searches: tuple[AdSearch, ...] = ()


def step_back() -> None:
    """Let other processes go first. One that has been put further back stays there: forward isn't allowed."""
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def read_apart(schedd: str, memory: ScheddMemory, last: ApartView) -> ApartView:
    """The jobs of `memory.odd` at this schedd, by what its last look has told. Runs in a child process."""
    import classad2
    import htcondor2

    step_back()
    source = htcondor2.Schedd(classad2.ClassAd(memory.location))
    queue = JobQueue(source, memory.unread, memory.odd, last.searches, SearchBudget(_SEARCH))
    queue.go_on()
    rows = queue.apart(WAITING_OR_RUNNING, memory.names)
    whole = htcondor2.QueryOpt.IncludeClusterAd
    hidden = queue.odd_jobs(FACTORIES, with_terms(memory.names, NAMES), FACTORY, opts=whole)
    groups = group(schedd, rows, hidden)
    firsts = first_jobs(queue, groups, last.firsts)
    wider = bounded(referred_names(rows, memory.names), queue.brought)
    return ApartView(
        tuple(timed(one, firsts, memory.finished) for one in groups),
        _waiting(rows),
        queue.cut | {owner for part in suspects(queue.searches) for owner in part.owners},
        firsts,
        queue.unread,
        frozenset(wider) - frozenset(memory.names),
        queue.searches,
    )


def _waiting(rows: Iterable[Any]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        if integer(row, "JobStatus") == WAITING:
            found[text(row, "Owner")] += integer(row, "JobCount")
    return dict(found)


def joined(schedd: str, view: ScheddView, known: ApartView | None, fresh: bool) -> ScheddView:
    """The look with what is known of the odd owners' jobs in place of their numbers.

    What isn't `fresh` counts as far as so many of the owner's jobs wait now; of more, the number is known.
    """
    if known is None:
        return view
    here = {
        g.owner: g for g in view.groups if not g.evaluable and g.key == pending(schedd, g.owner, 0, 0).key
    }
    groups = [g for g in view.groups if here.get(g.owner) is not g]
    theirs = list(known.groups)
    if not fresh:
        now = {owner: g.idle for owner, g in here.items()}
        theirs = _cut(theirs, {owner: known.waiting[owner] - now.get(owner, 0) for owner in known.waiting})
    for owner, place in here.items():
        more = place.idle - known.waiting.get(owner, 0)
        if more > 0 and (not fresh or owner in known.cut):
            groups.append(replace(place, idle=more))
    return replace(view, groups=(*groups, *theirs), idle_total=sum(g.idle for g in (*groups, *theirs)))


def _cut(groups: Iterable[JobGroup], over: Mapping[str, int]) -> list[JobGroup]:
    """The groups with so many jobs fewer of each owner: nobody knows which have left, any will do."""
    left = Counter({owner: count for owner, count in over.items() if count > 0})
    found = []
    for one in groups:
        fewer = min(one.idle, left[one.owner])
        left[one.owner] -= fewer
        if one.idle > fewer:
            found.append(replace(one, idle=one.idle - fewer))
    return found


_Answer = tuple[ApartView, float]  # and how many seconds it took


@dataclass(slots=True)
class _Turn:
    """The answer of a schedd that is awaited, the last one, and when it is asked again at the earliest."""

    asked: "Future[_Answer] | None" = None
    known: ApartView | None = None
    after: float = 0.0


class Apart:
    """Asks the schedds of one pool for their odd owners' jobs. Its methods are called by any thread, for one
    schedd by one at a time."""

    def __init__(self, children: Children, wait: float = WAIT, first: float = FIRST_WAIT) -> None:
        self._children = children
        self._wait, self._first = wait, first
        self._turns: dict[str, _Turn] = {}
        self._askers = ThreadPoolExecutor(_AT_ONCE, "updraft-apart")

    def close(self) -> None:
        """Ask no more."""
        self._askers.shutdown(wait=False, cancel_futures=True)

    def forget(self, schedds: Iterable[str]) -> None:
        """End what listens to these schedds, which are no more."""
        for one in schedds:
            self._turns.pop(one, None)
            self._children.drop([_source(one)])

    def complete(
        self, schedd: str, view: ScheddView, memory: ScheddMemory, left: float = math.inf
    ) -> tuple[ScheddView, ScheddMemory]:
        """The look with the odd owners' jobs, and what to remember for the next; `left` seconds are left."""
        turn = self._turns.get(schedd) or _Turn()
        if turn.asked is not None and turn.asked.done():
            memory = self._take(turn, turn.asked, memory)
        if not memory.odd:
            if turn.asked is None and schedd in self._turns:
                self.forget([schedd])
            return view, memory
        self._turns[schedd] = turn
        fresh = False
        if turn.asked is None and time.monotonic() >= turn.after:
            last = turn.known
            turn.asked = self._askers.submit(self._ask, schedd, memory, last or ApartView())
            patience = min(left, self._wait if memory.looks > 1 else self._first)
            if wait([turn.asked], patience).done:
                memory = self._take(turn, turn.asked, memory)
                fresh = turn.known is not last
        return joined(schedd, view, turn.known, fresh), memory

    def _ask(self, schedd: str, memory: ScheddMemory, last: ApartView) -> _Answer:
        begun = time.monotonic()
        seen = self._children.call(_source(schedd), _DEADLINE, read_apart, schedd, memory, last)
        return seen, time.monotonic() - begun

    def _take(self, turn: _Turn, asked: "Future[_Answer]", memory: ScheddMemory) -> ScheddMemory:
        """Take the answer that has come; the memory with what it tells of names and of the unreadable."""
        turn.asked = None
        try:
            seen, took = asked.result()
        except PoolError:
            # The last answer counts on, or the number of jobs alone, which is told with its owner's name.
            turn.after = time.monotonic() + _DEADLINE
            return memory
        turn.known = seen
        turn.after = time.monotonic() + (took / _SHARE - took if took > WAIT else 0.0)
        unread = {**memory.unread, **{owner: seen.unread[owner] for owner in memory.odd & set(seen.unread)}}
        if seen.brought <= memory.brought:
            return replace(memory, unread=unread)
        # By these names their jobs may be no longer odd: all are looked through once more.
        return replace(memory, unread=unread, brought=memory.brought | seen.brought, newest=0)


def _source(schedd: str) -> str:
    return f"schedd {schedd}, its odd jobs"
