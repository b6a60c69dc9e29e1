"""The EC2 driver keeps the contract: on an endpoint as it should be, and on awkward ones."""

from collections.abc import Sequence

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.parts_conformance import PartsConformance
from tests.rigs.clouds.ec2endpoint import Quirks, Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.untagged import Untagged
from updraft.clouds.base import TAG_CLASS
from updraft.core.model import Instance


class TestEC2(MachinesConformance):
    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served)


class _Awkward(MachinesConformance):
    """The sentences of the contract that an awkward endpoint makes harder; the others are the same code."""

    test_errors_are_mapped = None
    test_a_look_that_fails_is_never_empty = None
    test_what_the_cloud_does_not_know_is_a_bad_request = None
    test_the_console_of_a_machine_is_text = None
    test_a_machine_that_never_was_has_no_console = None
    test_offers_are_sane = None
    test_user_data_arrives_byte_for_byte = None
    test_a_running_machine_has_an_address = None
    test_quotas_are_none_only_where_unknown_or_unlimited = None
    test_terminating_nothing_ends_nothing = None


class TestSlowToShow(_Awkward):
    """New machines are listed late, and ended ones long."""

    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served, Quirks(shows_after=0.2, stops_in=0.25))


class _Untagged(Untagged, _Awkward):
    """What the endpoint itself has of them is right, too."""

    def check_tags(self, harness: EC2Harness, made: Sequence[Instance]) -> None:
        assert {one.id for one in made} == set(harness.endpoint.standing())
        assert all(harness.tags(one.id)[TAG_CLASS] == "small" for one in made)


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


class TestEC2Parts(PartsConformance):
    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served)
