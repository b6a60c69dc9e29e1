"""What jobs say of the machines that they want, as it is read from their ads."""

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import classad2
import pytest

from updraft.condor.demand.groups import group
from updraft.condor.demand.naming import MAX_NAMES, newest, terms_said, with_terms
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.terms import LONGEST, MOST, NAMES, TERM_REFUSED, terms_of
from updraft.core.model import NO_TERMS, Terms
from updraft.recording.codec import Decoder, Encoder

CASES = tomllib.loads((Path(__file__).parents[1] / "data" / "terms.toml").read_text())["case"]


def expected(terms: dict[str, Any]) -> Terms:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in terms.items()}
    return replace(NO_TERMS, **values)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_terms_are_read_from_literal_values_and_nothing_else(case: dict[str, Any]) -> None:
    read = terms_of(classad2.ClassAd(f"[ {case['ad']} ]"))
    if "fault" in case:
        assert [fault.code for fault in read.faults] == [TERM_REFUSED]
        assert case["fault"] in read.faults[0].text
        assert replace(read, faults=()) == NO_TERMS
    else:
        assert read == expected(case["terms"])


def test_the_cases_have_each_term_and_each_name() -> None:
    """A term that no case reads could be read wrongly."""
    seen = {name for case in CASES for name in case.get("terms", {})}
    assert seen == {field.name for field in fields(Terms)} - {"faults"}
    text = " ".join(case["ad"] for case in CASES).lower()
    assert [name for name in NAMES if name.lower() not in text] == []


@pytest.mark.parametrize(
    "value", ["x" * (LONGEST + 1), ",".join(f"c{n}:a" for n in range(MOST + 1)), "y" * 300, "\x1b[2J", "a\nb"]
)
def test_what_is_too_long_or_not_for_eyes_is_a_fault_in_a_short_sentence(value: str) -> None:
    read = terms_of(classad2.ClassAd({"VMAMI": value, "UpdraftFlavor": "small"}))
    (fault,) = read.faults
    assert fault.text.isprintable()
    assert len(fault.text) < 300
    assert read.flavors == {"": "small"}  # each term is read for itself


def test_groups_are_told_apart_by_their_terms_and_carry_them() -> None:
    rows = [
        classad2.ClassAd({"Owner": "a", "JobStatus": 1, "JobCount": 2, "JobIds": "1.0", "VMAMI": image})
        for image in ("x", "y")
    ]
    groups = group("schedd", rows)
    assert {found.terms.images[""] for found in groups} == {"x", "y"}
    (encoded,) = [Encoder().encode(found) for found in groups if found.terms.images[""] == "x"]
    assert Decoder().decode(encoded).terms == Terms(images={"": "x"})


def test_an_ad_that_is_too_large_has_no_terms_and_is_not_planned_for() -> None:
    row = classad2.ClassAd({"Owner": "a", "JobStatus": 1, "JobCount": 2, "VMAMI": "x" * 100_000})
    (found,) = group("schedd", [row])
    assert not found.evaluable
    assert found.terms == NO_TERMS


class Schedd:
    """A schedd's jobs as ads; it answers as far as `terms_said` asks."""

    def __init__(self, *jobs: dict[str, object]) -> None:
        self.jobs = [classad2.ClassAd(job) for job in jobs]
        self.constraints: list[str] = []

    def query(self, constraint: str, names: list[str], limit: int) -> list[Any]:
        self.constraints.append(constraint)
        wanted = classad2.ExprTree(constraint)
        found = [job for job in self.jobs if wanted.eval(job) is True][:limit]
        return [classad2.ClassAd({name: job[name] for name in names if name in job}) for job in found]


def test_terms_are_asked_for_where_some_new_job_has_them() -> None:
    schedd = Schedd(
        *({"ClusterId": at, "ProcId": 0, "JobStatus": 1, "UpdraftImage": "a"} for at in range(200)),
        {"ClusterId": 300, "ProcId": 0, "JobStatus": 1, "vmami": "b", "UpdraftSpot": True},
        {"ClusterId": 301, "ProcId": 0, "JobStatus": 5, "VMMem": 1},
        {"ClusterId": 302, "ProcId": 0, "JobStatus": 1},
    )
    queue = JobQueue(schedd, {})
    names = ("JobStatus", "Owner")
    assert not set(NAMES) & set(names)
    assert terms_said(queue, "JobStatus == 1", 0, names) == ("UpdraftImage", "UpdraftSpot", "VMAMI")
    assert terms_said(queue, "JobStatus == 1", 299, (*names, "updraftspot")) == ("VMAMI",)
    schedd.constraints.clear()
    assert terms_said(queue, "JobStatus == 1", 300, names) == ()
    assert len(schedd.constraints) == 1
    assert terms_said(queue, "JobStatus == 1", 0, NAMES) == ()
    assert len(schedd.constraints) == 1, "there is nothing left to ask"


def test_no_number_of_other_names_keeps_a_term_out() -> None:
    crowd = tuple(f"a{at}" for at in range(MAX_NAMES))
    assert set(NAMES) <= set(with_terms(crowd, NAMES))
    assert len(with_terms(crowd, NAMES)) == MAX_NAMES
    assert with_terms(("VMAMI", "b"), ("vmami",)) == ("VMAMI", "b")


def test_the_newest_cluster_is_read_from_the_groups_first_and_last_jobs() -> None:
    rows = [{"JobIds": "7.0 ... 12.3"}, {"JobIds": "9.0"}, {"JobIds": 40}, {}]
    assert newest(rows) == 12
    assert newest([]) == 0
