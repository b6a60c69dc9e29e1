"""Matching: golden cases, equality with the ClassAd library's own matching, counts replayed one by one.

Covers `match`, and `expressions` that it reads.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from classad2 import ClassAd
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from updraft.core.matching.expressions import complete, conjuncts
from updraft.core.matching.match import asked, judge
from updraft.core.model import CloudOffer, JobGroup, Kind, Resources
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine, learned

CASES = sorted((Path(__file__).parents[1] / "cases" / "match").glob("*.json"))


def group_of(ad: str, request: Resources, key: str = "g", owner: str = "u1", **more: Any) -> JobGroup:
    return JobGroup(key, "schedd", owner, owner, ad, request, idle=10, **more)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    case = json.loads(path.read_text())
    group = group_of(case["job"], Resources(*case["request"]), evaluable=case["evaluable"])
    kind = Kind("k", case["slot"], Resources(*case["resources"]), case["partitionable"])
    verdict = judge(group, kind, case["now"])
    expect = case["expect"]
    assert verdict.copies == expect["copies"], verdict.reasons
    assert verdict.decided == expect.get("decided", True)
    if "asks" in expect:
        assert verdict.asks == Resources(*expect["asks"])
    if "codes" in expect:
        assert list(dict.fromkeys(reason.code for reason in verdict.reasons)) == expect["codes"]
    if "reasons" in expect:
        assert [[reason.code, reason.text] for reason in verdict.reasons] == expect["reasons"]
    assert bool(verdict.reasons) == (verdict.copies == 0)


def test_there_are_golden_cases_and_htcondors_functions() -> None:
    assert len(CASES) > 20
    assert complete()


NAMES = ["Cpus", "Memory", "Disk", "Arch", "Owner", "RequestMemory", "Nobody", "Extra"]
LITERALS = ["0", "1", "1000", "2048", "2.5", '"X86_64"', '"u1"', "true", "false", "undefined", '"a && b"']
names = st.builds(
    lambda scope, name: scope + name, st.sampled_from(["", "MY.", "TARGET."]), st.sampled_from(NAMES)
)
atoms = st.one_of(names, names, st.sampled_from(LITERALS))
comparisons = st.builds(
    lambda a, op, b: f"({a} {op} {b})",
    atoms,
    st.sampled_from(["<", "<=", ">=", "==", "!=", "=?=", "=!=", "+", "?:"]),
    atoms,
)
functions = st.sampled_from(
    [
        'regexp("^u", Owner)',
        'stringListMember("u1", "u1,u2")',
        'versionGE(split("v 25.1.0")[1], "24.0.0")',
        "isUndefined(TARGET.Extra)",
        'ifThenElse(Memory > 1000, Arch == "X86_64", false)',
        "member(1, { 1,2,Cpus })",
    ]
)
expressions = st.recursive(
    st.one_of(comparisons, functions, atoms),
    lambda inner: st.one_of(
        st.builds(lambda a, op, b: f"({a} {op} {b})", inner, st.sampled_from(["&&", "||"]), inner),
        st.builds(lambda a, b, c: f"({a} ? {b} : {c})", inner, inner, inner),
        st.builds(lambda a: f"!{a}", inner),
    ),
    max_leaves=8,
)


@given(mine=expressions, theirs=expressions, extra=expressions, side=st.booleans())
def test_equal_to_the_librarys_own_matching(mine: str, theirs: str, extra: str, side: bool) -> None:
    job = f'[ Owner = "u1"; RequestMemory = 1000; Requirements = {mine};'
    job += f" {f'Extra = {extra};' if side else ''} ]"
    slot = (
        f'[ Cpus = 1; Memory = 2048; Disk = 100000; Arch = "X86_64"; Requirements = {theirs};'
        f" {'' if side else f'Extra = {extra};'} ]"
    )
    expected = ClassAd(job).symmetricMatch(ClassAd(slot))
    verdict = judge(group_of(job, Resources(1, 1000, 10)), Kind("k", slot, Resources(1, 2048, 100000)), 5.0)
    assert verdict.decided
    assert (verdict.copies > 0) == expected
    assert bool(verdict.reasons) != expected
    assert all(len(reason.text) <= 400 for reason in verdict.reasons)


@given(
    total=st.builds(Resources, st.integers(1, 16), st.integers(100, 9000), st.integers(1000, 90000)),
    request=st.builds(Resources, st.integers(1, 2), st.integers(1, 900), st.integers(1, 6000)),
    share=st.floats(0.0, 1.1),
)
def test_copies_are_those_that_start_one_by_one(total: Resources, request: Resources, share: float) -> None:
    job = f"[ RequestMemory = {request.memory}; Requirements = TARGET.Memory >= {int(share * total.memory)} ]"
    slot = "[ Cpus = %d; Memory = %d; Disk = %d; Requirements = TARGET.RequestMemory <= Memory ]"
    kind = Kind("k", slot % (total.cpus, total.memory, total.disk), total)
    verdict = judge(group_of(job, request), kind, 0.0)
    rounded, free, started = asked(request, kind), total, 0
    while free.holds(request) and ClassAd(job).symmetricMatch(
        ClassAd(slot % (free.cpus, free.memory, free.disk))
    ):
        started += 1
        free = free - (rounded if free.holds(rounded) else Resources(*map(min, _four(rounded), _four(free))))
    assert verdict.copies == started


def _four(resources: Resources) -> tuple[int, int, int, int]:
    return (resources.cpus, resources.memory, resources.disk, resources.gpus)


def test_conjuncts_see_through_parentheses_and_not_into_strings() -> None:
    assert conjuncts('((a && (b > 1)) && s == "x && y")') == ["a", "b > 1", 's == "x && y"']
    assert conjuncts("a && b || c") == ["a && b || c"]
    assert conjuncts("f(a && b) && c") == ["f(a && b)", "c"]


def test_hostile_nesting_is_an_answer() -> None:
    deep = "[ Requirements = " + "(true && " * 3000 + "false" + ")" * 3000 + " ]"
    verdict = judge(
        group_of(deep, Resources(1, 1, 1)), Kind("k", "[ Requirements = true ]", Resources(1, 1, 1)), 0
    )
    assert verdict.copies == 0
    assert sum(len(reason.text) for reason in verdict.reasons) < 1000


def test_an_imagined_slot_runs_a_plain_vanilla_job_and_learning_from_it_changes_nothing() -> None:
    worker = WorkerClass("big", "g1", ("cloud",), attributes={"HasFoo": "true", "Start": 'Owner == "u1"'})
    offer = CloudOffer("cloud", "z1", "m4", "spot", Resources(4, 16384, 40 * 1024 * 1024))
    kind = imagine(worker, offer, "debian", "pool", "key")
    case = json.loads((Path(__file__).parents[1] / "cases" / "match" / "rounded-to-quantum.json").read_text())
    job = case["job"].replace("Requirements = ", 'Requirements = HasFoo && UpdraftMarket == "spot" && ')
    group = group_of(job, Resources(1, 600, 1000))
    assert judge(group, kind, 0.0).copies == 4
    again = learned("key", kind.ad, offer)
    assert (again.resources, again.partitionable, again.slots) == (kind.resources, True, 1)
    assert judge(group, again, 0.0) == judge(group, kind, 0.0)
    assert kind.resources.memory < 16384


def test_static_slots_share_the_machine() -> None:
    worker = WorkerClass("s", "g", ("cloud",), static_slots=4)
    kind = imagine(
        worker, CloudOffer("cloud", "", "m", "on-demand", Resources(4, 8192, 40 * 1024 * 1024)), "i", "p"
    )
    assert (kind.slots, kind.partitionable, kind.resources.cpus) == (4, False, 1)
    assert not learned("k", kind.ad).partitionable
    assert learned("k", kind.ad).resources == kind.resources
