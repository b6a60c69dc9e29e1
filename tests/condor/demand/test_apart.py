"""Odd owners' jobs are asked for apart: nobody waits long for them, and no more are planned for than wait."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import deadline, until
from updraft.condor.demand import apart
from updraft.condor.demand.apart import Apart, ApartView, joined
from updraft.condor.demand.groups import left_out, pending
from updraft.condor.demand.schedd import ScheddMemory
from updraft.core.model import JobGroup, ScheddView
from updraft.errors import PoolTimeout

ODD = ScheddMemory(location="here", names=("Owner",), newest=7, looks=2, odd=frozenset({"eve"}))


def some(owner: str, idle: int, key: str = "") -> JobGroup:
    return replace(left_out("s", owner, "1.0", idle, 0, ""), key=key or owner, evaluable=True)


def view(waiting: int = 5) -> ScheddView:
    """A look: ada's jobs are told, eve's are counted."""
    groups = (some("ada", 3), *([pending("s", "eve", waiting, 1)] if waiting else []))
    return ScheddView(groups, idle_total=3 + waiting, running_total=1)


def idle(seen: ScheddView) -> dict[str, int]:
    return {g.key if g.evaluable else f"{g.owner}?": g.idle for g in seen.groups}


KNOWN = ApartView((some("eve", 2, "small"), some("eve", 3, "large")), {"eve": 5})


def test_before_anything_is_known_the_number_is_told_and_nothing_planned() -> None:
    assert idle(joined("s", view(), None, fresh=False)) == {"ada": 3, "eve?": 5}


def test_what_is_fresh_stands_in_place_of_the_number() -> None:
    seen = joined("s", view(6), KNOWN, fresh=True)
    assert idle(seen) == {"ada": 3, "small": 2, "large": 3}
    assert (seen.idle_total, seen.running_total) == (8, 1)


@pytest.mark.parametrize(
    ("waiting", "told"),
    [(5, {"small": 2, "large": 3}), (4, {"small": 1, "large": 3}), (1, {"large": 1}), (0, {}),
     (7, {"small": 2, "large": 3, "eve?": 2})],
)  # fmt: skip
def test_what_is_older_counts_as_far_as_so_many_wait(waiting: int, told: dict[str, int]) -> None:
    seen = joined("s", view(waiting), KNOWN, fresh=False)
    assert idle(seen) == {"ada": 3, **told}
    assert seen.idle_total == 3 + waiting


def test_jobs_that_are_yet_to_be_made_are_not_taken_for_waiting_ones() -> None:
    known = ApartView((some("eve", 9, "factory"), some("eve", 2, "small")), {"eve": 2})
    assert idle(joined("s", view(2), known, fresh=False)) == {"ada": 3, "factory": 9, "small": 2}


def test_of_whom_not_all_are_told_the_rest_is_counted() -> None:
    known = replace(KNOWN, cut=frozenset({"eve"}))
    assert idle(joined("s", view(8), known, fresh=True)) == {"ada": 3, "small": 2, "large": 3, "eve?": 3}


class Asked:
    """In place of the children: answers what a test says, when it says so."""

    def __init__(self) -> None:
        self.answer: Callable[[], ApartView] = lambda: KNOWN
        self.calls = 0
        self.dropped: list[str] = []

    def call(self, _source: str, _deadline: float, _function: Any, *_args: Any) -> ApartView:
        self.calls += 1
        return self.answer()

    def drop(self, sources: Any) -> None:
        self.dropped += sources


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def made(asked: Asked) -> Iterator[Apart]:
    found = Apart(asked, deadline(60))  # type: ignore[arg-type]
    yield found
    found.close()


@pytest.fixture
def hasty(asked: Asked) -> Iterator[Apart]:
    """One whose looks wait for nothing."""
    found = Apart(asked, 0.0)  # type: ignore[arg-type]
    yield found
    found.close()


def test_without_odd_owners_nothing_is_asked(made: Apart, asked: Asked) -> None:
    memory = replace(ODD, odd=frozenset())
    assert made.complete("s", view(0), memory) == (view(0), memory)
    assert asked.calls == 0


def test_an_answer_that_comes_at_once_is_part_of_the_look(made: Apart, asked: Asked) -> None:
    asked.answer = lambda: replace(KNOWN, brought=frozenset({"Mine"}), unread={"eve": (3,), "ada": (4,)})
    seen, memory = made.complete("s", view(), ODD)
    assert idle(seen) == {"ada": 3, "small": 2, "large": 3}
    # All are looked through once more: with this name its jobs may be like any other's.
    assert (memory.brought, memory.newest) == ({"Mine"}, 0)
    assert memory.unread == {"eve": (3,)}
    _, again = made.complete("s", view(), replace(memory, newest=9))
    assert (asked.calls, again.newest) == (2, 9)


def test_no_look_waits_for_one_that_takes_long(hasty: Apart, asked: Asked) -> None:
    go_on = threading.Event()

    def slow() -> ApartView:
        assert go_on.wait(deadline(60))
        return KNOWN

    asked.answer = slow
    assert idle(hasty.complete("s", view(), ODD)[0]) == {"ada": 3, "eve?": 5}
    assert idle(hasty.complete("s", view(4), ODD)[0]) == {"ada": 3, "eve?": 4}
    assert asked.calls == 1
    go_on.set()
    seen = lambda: idle(hasty.complete("s", view(4), ODD)[0])  # noqa: E731
    until(lambda: "eve?" not in seen(), 60, "the answer that took long is known", every=0.01)
    assert sum(seen().values()) == 7


def test_the_first_look_waits_longer_as_far_as_there_is_time(asked: Asked) -> None:
    """A command has no second one."""
    first = replace(ODD, looks=1)
    go_on = threading.Event()

    def slow() -> ApartView:
        assert go_on.wait(deadline(60))
        return KNOWN

    asked.answer = slow
    hasty = Apart(asked, 0.0, deadline(60))  # type: ignore[arg-type]
    assert idle(hasty.complete("other", view(), first, left=0.0)[0]) == {"ada": 3, "eve?": 5}
    threading.Timer(0.2, go_on.set).start()
    assert idle(hasty.complete("s", view(), first)[0]) == {"ada": 3, "small": 2, "large": 3}
    hasty.close()


def test_what_takes_long_is_asked_for_in_a_tenth_of_the_time(
    made: Apart, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SimpleNamespace(at=100.0)
    monkeypatch.setattr(apart, "time", SimpleNamespace(monotonic=lambda: now.at))

    def slow() -> ApartView:
        now.at += 6
        return KNOWN

    asked.answer = slow
    made.complete("s", view(), ODD)
    for later, calls in ((53, 1), (2, 2)):
        now.at += later
        assert idle(made.complete("s", view(2), ODD)[0])["ada"] == 3
        assert asked.calls == calls


def test_a_schedd_that_does_not_answer_keeps_what_was_known_of_it(made: Apart, asked: Asked) -> None:
    made.complete("s", view(), ODD)

    def silent() -> ApartView:
        raise PoolTimeout("no answer")

    asked.answer = silent
    for _ in range(3):
        assert idle(made.complete("s", view(4), ODD)[0]) == {"ada": 3, "small": 1, "large": 3}
    assert asked.calls == 2, "it is left alone for a while"


def test_whoever_asked_ends_when_there_is_nobody_to_ask_for(made: Apart, asked: Asked) -> None:
    made.complete("s", view(), ODD)
    made.complete("s", view(0), replace(ODD, odd=frozenset()))
    assert len(asked.dropped) == 1


@pytest.mark.parametrize(("priority", "then"), [(0, 10), (10, 10), (19, 19)])
def test_who_reads_them_steps_back_and_never_forward(priority: int, then: int) -> None:
    """Only root with CAP_SYS_NICE may step forward: a controller at a low priority was refused, for ever."""
    program = f"""
import os
from updraft.condor.demand.apart import step_back
os.setpriority(os.PRIO_PROCESS, 0, {priority})
step_back()
print(os.getpriority(os.PRIO_PROCESS, 0))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == then
