"""A job as a person names it."""

import pytest

from updraft.core.demand.jobnames import JobName, job_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("12", JobName(12)),
        ("12.3", JobName(12, 3)),
        ("12.3@head.example.org", JobName(12, 3, "head.example.org")),
        ("12@head", JobName(12, None, "head")),
    ],
)
def test_a_job_is_a_cluster_a_number_and_a_schedd(text: str, name: JobName) -> None:
    assert job_name(text) == name


@pytest.mark.parametrize("text", ["", "i-12", "12.", "12.3.4", "1234567890", "12@", "12 ", "12@-x", "12@a;b"])
def test_what_is_no_job(text: str) -> None:
    assert job_name(text) is None


def test_a_schedd_is_named_in_full_or_by_its_first_part() -> None:
    assert JobName(1).may_be_at("any.where")
    assert JobName(1, None, "head").may_be_at("head.example.org")
    assert not JobName(1, None, "hea").may_be_at("head.example.org")


def test_the_constraint_leaves_the_clusters_own_ad_out() -> None:
    assert JobName(12, 3).constraint == "ClusterId == 12 && ProcId == 3 && ProcId >= 0"
