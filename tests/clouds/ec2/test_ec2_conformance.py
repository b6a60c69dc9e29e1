"""The EC2 driver keeps the contract: on an endpoint as it should be, and on awkward ones."""

import gzip
from dataclasses import replace

import pytest
from conformance import DriverConformance
from ec2endpoint import Quirks, Served
from ec2harness import EC2Harness
from harness import request

from updraft.clouds.base import TAG_CLASS, Driver
from updraft.errors import CloudUnavailable


class TestEC2(DriverConformance):
    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served)


class _Awkward(DriverConformance):
    """The sentences of the contract that an awkward endpoint makes harder; the others are the same code."""

    test_errors_are_mapped = None
    test_a_listing_that_fails_is_never_empty = None
    test_what_the_cloud_does_not_know_is_a_bad_request = None
    test_the_console_of_a_machine_is_text = None
    test_a_machine_that_never_was_has_no_console = None
    test_offers_are_sane = None
    test_user_data_arrives_byte_for_byte = None
    test_a_running_machine_has_an_address = None
    test_quotas_are_none_only_where_unknown_or_unlimited = None
    test_terminating_nothing_is_success = None


class TestSlowToShow(_Awkward):
    """New machines are listed late, and ended ones long."""

    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served, Quirks(shows_after=0.2, stops_in=0.25))


class _Untagged(_Awkward):
    """Without tags at launch, what a lost answer has made is known by its user-data."""

    def test_a_launch_without_an_answer_is_settled_by_its_tags(
        self, harness: EC2Harness, driver: Driver
    ) -> None:
        asked = request(harness, 2)
        lines = (
            f'UpdraftPool = "conformance"\nUpdraftClass = "small"\nUpdraftGeneration = "g1"\n'
            f'UpdraftLaunch = "{asked.key}"\n'
        )
        asked = replace(asked, user_data=gzip.compress(lines.encode()))
        with harness.mute_after_launch(), pytest.raises(CloudUnavailable):
            driver.launch(asked)
        later = harness.driver("conformance")  # whoever asked may be dead by now
        assert len(later.launch(asked)) == 2
        assert len(later.machines()) == 2
        assert {one.launch_key for one in later.machines()} == {asked.key}
        assert len(harness.endpoint.standing()) == 2
        assert all(harness.tags(one)[TAG_CLASS] == "small" for one in harness.endpoint.standing())


class TestOldEndpoint(_Untagged):
    """Neither tokens nor tags at launch, no spot, no metadata options: and it says so."""

    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(
            served,
            Quirks(
                client_token="refuse",  # noqa: S106
                tag_on_create="refuse",
                metadata_options="refuse",
                shutdown_behavior="refuse",
                spot="refuse",
                paging="refuse",
                instance_types=False,
            ),
            instance_types={"t3.small": {"cpus": 2, "memory": "2GiB", "disk": "10GiB"}},
        )


class TestDeafEndpoint(_Untagged):
    """The same, and it says nothing: what it doesn't know it leaves aside."""

    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        quirks = Quirks(
            client_token="ignore",  # noqa: S106
            tag_on_create="ignore",
            metadata_options="ignore",
            paging="ignore",
        )
        return EC2Harness(served, quirks)
