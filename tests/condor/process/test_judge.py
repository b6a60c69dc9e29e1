"""The child that judges: hostile requirements are stopped and cost nobody else a verdict."""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

import pytest
from pebble.pool.base_pool import PoolStatus

from tests.waiting import until
from updraft.condor.process.judge import Judge
from updraft.core.matching.bulk import Work
from updraft.core.matching.memory import Memo
from updraft.core.model import JobGroup, Kind, Resources

ONE = Resources(1, 1, 1)
SLOT = '[ Memory = 5; CondorVersion = "$CondorVersion: 25.14.1 x $"; Requirements = true ]'
KIND = Kind("k", SLOT, Resources(4, 512, 4096))
# A backtracking expression gives up after some tenths of a second; a hundred of them are one evaluation.
SLOW = f'isError(regexp("^(a+)+$", "{"a" * 40}!"))'
ENDLESS = f"[ Requirements = strcat({', '.join([SLOW] * 100)}) == TARGET.Memory ]"
# The same one by one: each is a question of its own, and ends.
LONG = f"[ Requirements = {' && '.join(SLOW.replace('!', f'!{n}') for n in range(60))} ]"
COMPARED = "[ Requirements = TARGET.Memory > 1 ]"
PLAIN = '[ Requirements = versionGE(split(TARGET.CondorVersion)[1], "25.0.0") && TARGET.Memory > 1 ]'


def group(key: str, owner: str, ad: str = PLAIN) -> JobGroup:
    return JobGroup(key, "s", owner, owner, ad, ONE, 3)


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Judge(budget_per_owner=0.5) as made:
        yield made


@pytest.fixture
def children(judge: Judge) -> Callable[[], list[BaseProcess]]:
    """The processes that the judge has begun: none, or one."""
    others = {one.pid for one in active_children()}
    return lambda: [one for one in active_children() if one.pid not in others]


def test_htcondors_functions_are_there_and_a_second_look_costs_little(judge: Judge) -> None:
    groups = [group("a", "alice"), group("b", "bob")]
    first = judge.verdicts(groups, [KIND], 0.0, 30.0)
    assert {key: verdict.copies for key, verdict in first.items()} == {("a", "k"): 4, ("b", "k"): 4}
    again = judge.verdicts(groups, [KIND], 1.0, 30.0)
    assert again == first
    assert again["a", "k"] is again["b", "k"] is first["a", "k"]  # by content, without asking the child


@pytest.mark.slow
def test_a_runaway_is_stopped_isolated_and_left_out_for_a_while(
    judge: Judge, children: Callable[[], list[BaseProcess]]
) -> None:
    groups = [group("evil", "eve", ENDLESS), group("good", "eve"), group("a", "alice"), group("b", "bob")]
    first = judge.verdicts(groups, [KIND], 0.0, 30.0)
    assert (first["a", "k"].copies, first["b", "k"].copies) == (4, 4)
    assert not first["evil", "k"].decided, "it would end by itself, after half a minute"
    assert first["evil", "k"].reasons[0].code == "not-evaluated"
    second = judge.verdicts(groups, [KIND], 2.0, 30.0)
    assert second["good", "k"].copies == 4
    assert not second["evil", "k"].decided
    child = until(children, 20, "another child")  # that takes the place of the one that was stopped
    third = judge.verdicts(groups, [KIND], 4.0, 30.0)
    assert children() == child, "nothing had to be stopped"
    assert "tried again" in third["evil", "k"].reasons[0].text
    retried = judge.verdicts(groups, [KIND], 100.0, 30.0)
    assert "stopped" in retried["evil", "k"].reasons[0].text
    assert retried["good", "k"].copies == 4


@pytest.mark.slow
def test_many_costly_parts_end_in_their_owners_budget(judge: Judge) -> None:
    groups = [group("long", "eve", LONG), group("a", "alice")]
    first = judge.verdicts(groups, [KIND], 0.0, 30.0)
    assert first["a", "k"].copies == 4
    # Between two parts, or in the middle of one that outlasts the child's grace on a busy machine.
    text = first["long", "k"].reasons[0].text
    assert "need more than the 0.5 s" in text or "stopped" in text
    # At the next look it rests; where the child was stopped, once its parts were asked one by one.
    later = [judge.verdicts(groups, [KIND], now, 30.0) for now in (1.0, 2.0, 3.0, 4.0)]
    assert any("tried again" in one["long", "k"].reasons[0].text for one in later)
    assert {one["a", "k"].copies for one in later} == {4}


def test_plain_comparisons_need_no_child_and_no_time(
    judge: Judge, children: Callable[[], list[BaseProcess]]
) -> None:
    found = judge.verdicts([group("a", "alice", COMPARED)], [KIND], 0.0, 0.0)
    assert found["a", "k"].copies == 4
    assert children() == []


def test_why_a_costly_pair_does_not_match_is_told_without_evaluating_it_again(
    judge: Judge, children: Callable[[], list[BaseProcess]]
) -> None:
    no = '[ Requirements = regexp("^9", TARGET.CondorVersion) && TARGET.Memory > 1 ]'
    found = judge.verdicts([group("a", "alice", no)], [KIND], 0.0, 30.0)
    judge.close()
    (reason,) = found["a", "k"].reasons
    assert reason.code == "requirements"
    assert reason.text.startswith('regexp("^9", TARGET.CondorVersion): the slot has CondorVersion "$Condor')
    assert children() == []


def test_a_child_that_dies_is_replaced(judge: Judge, children: Callable[[], list[BaseProcess]]) -> None:
    groups = [group("a", "alice")]
    assert judge.verdicts(groups, [KIND], 0.0, 30.0)["a", "k"].copies == 4
    (child,) = children()
    child.kill()
    child.join(5.0)
    other = replace(KIND, ad=SLOT.replace("25.14.1", "26.0.0"))
    cycles = [judge.verdicts(groups, [other], now, 30.0)["a", "k"] for now in (1.0, 2.0)]
    assert cycles[-1].copies == 4


def test_a_pool_that_takes_no_more_is_replaced(judge: Judge) -> None:
    """What pebble makes of a child that dies while its pipes are in use: no look would succeed any more."""
    groups = [group("a", "alice")]
    assert judge.verdicts(groups, [KIND], 0.0, 30.0)["a", "k"].copies == 4
    broken = judge._pool
    broken._context.status = PoolStatus.ERROR
    other = replace(KIND, ad=SLOT.replace("25.14.1", "26.0.0"))
    assert judge.verdicts(groups, [other], 1.0, 30.0)["a", "k"].copies == 4
    assert judge._pool is not broken


@pytest.mark.slow
def test_a_question_that_is_handed_over_just_when_the_child_dies_is_asked_again(judge: Judge) -> None:
    groups = [group("a", "alice")]
    assert judge.verdicts(groups, [KIND], 0.0, 30.0)["a", "k"].copies == 4
    pool = judge._pool
    (child,) = pool._pool_manager.worker_manager.workers.values()

    def too_late(*_: object, **__: object) -> "Future[object]":
        """What pebble does with a task that comes while it aborts all it knows: nothing, for ever."""
        child.kill()
        return Future()

    pool.schedule = too_late
    other = replace(KIND, ad=SLOT.replace("25.14.1", "26.0.0"))
    assert judge.verdicts(groups, [other], 1.0, 30.0)["a", "k"].copies == 4
    assert judge._pool is not pool


def test_a_child_that_was_begun_early_is_the_one_that_is_asked(
    judge: Judge, children: Callable[[], list[BaseProcess]]
) -> None:
    judge.begin()
    child = until(children, 20, "a child")
    assert judge.verdicts([group("a", "alice")], [KIND], 0.0, 30.0)["a", "k"].copies == 4
    judge.begin()
    assert children() == child


def test_an_ad_that_could_end_the_process_is_not_read(judge: Judge) -> None:
    deep = "[ Requirements = " + "(" * 400_000 + "true" + ")" * 400_000 + " ]"
    first = judge.verdicts([group("deep", "eve", deep), group("a", "alice")], [KIND], 0.0, 30.0)
    assert first["a", "k"].copies == 4
    assert not first["deep", "k"].decided
    assert "too long" in first["deep", "k"].reasons[0].text


def test_what_is_handed_to_the_child_is_small() -> None:
    """Only what an expression reads, and once for all pairs that are the same to it."""
    wide = "; ".join(f'Padding{n} = "{"x" * 100}"' for n in range(100))
    kinds = [
        replace(KIND, key=f"k{n}", ad=SLOT.replace("[ ", f"[ Serial = {n}; {wide}; ")) for n in range(200)
    ]
    work = Work(
        Memo(), [group(f"g{n}", "alice", PLAIN.replace("[ ", f"[ N = {n}; ")) for n in range(50)], kinds, 0.0
    )
    wanted = work.step()
    assert len(wanted) == 1
    assert len(pickle.dumps([one.question for one in wanted])) < 1_000


def test_a_text_that_is_not_utf_8_is_no_match_and_costs_nobody_else_theirs(judge: Judge) -> None:
    odd = '[ Requirements = strcat("caf\\351", TARGET.CondorVersion) ]'
    groups = [
        group("odd", "eve", odd),
        group("literal", "eve", '[ Requirements = "caf\\351" ]'),
        group("a", "alice"),
    ]
    found = judge.verdicts(groups, [KIND], 0.0, 30.0)
    assert [found[key, "k"].copies for key in ("odd", "literal", "a")] == [0, 0, 4]
    assert found["odd", "k"].decided


def test_out_of_time_is_said_and_made_good_in_the_next_cycle(judge: Judge) -> None:
    groups = [group("a", "alice")]
    late = judge.verdicts(groups, [KIND], 0.0, 0.0)
    assert not late["a", "k"].decided
    assert late["a", "k"].reasons[0].code == "not-evaluated"
    assert judge.verdicts(groups, [KIND], 2.0, 30.0)["a", "k"].copies == 4


@pytest.mark.parametrize("value", ['{"a\\351"}', '{"a\\351", {}}[0]', '"a\\351"'])
def test_a_value_that_the_bindings_cannot_hand_over_is_an_error_of_its_own(judge: Judge, value: str) -> None:
    """They raise a SystemError where a list has a text that isn't UTF-8."""
    odd = f"[ Odd = {value}; Requirements = Odd == regexps(TARGET.CondorVersion, TARGET.CondorVersion) ]"
    found = judge.verdicts([group("odd", "eve", odd), group("a", "alice")], [KIND], 0.0, 30.0)
    assert found["a", "k"].copies == 4
    assert found["odd", "k"].copies == 0
