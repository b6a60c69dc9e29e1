"""The sentences of the contract that an endpoint without tags at launch keeps in another way."""

import gzip
from dataclasses import replace
from typing import Any

import pytest

from tests.rigs.clouds.harness import Harness, request
from updraft.clouds.base import Machines
from updraft.core.model import CloudState
from updraft.errors import CloudUnavailable


class Untagged:
    """Without tags at launch, what a lost answer has made is known by its user-data."""

    def test_a_launch_without_an_answer_is_settled_by_its_tags(self, harness: Any, driver: Machines) -> None:
        asked = request(harness, 2)
        lines = (
            f'UpdraftPool = "conformance"\nUpdraftClass = "small"\nUpdraftGeneration = "g1"\n'
            f'UpdraftLaunch = "{asked.key}"\n'
        )
        asked = replace(asked, user_data=gzip.compress(lines.encode()))
        with harness.mute_after_launch(), pytest.raises(CloudUnavailable):
            driver.launch(asked)
        later = harness.made("conformance").machines  # whoever asked may be dead by now
        made = later.launch(asked)
        assert len(made) == 2
        assert {one.id for one in later.machines()} == {one.id for one in made}
        assert {one.launch_key for one in later.machines()} == {asked.key}
        self.check_tags(harness, made)

    def check_tags(self, harness: Harness, made: Any) -> None:
        """What the cloud itself has to say; the harness may be able to ask it."""
        assert all(one.state is not CloudState.TERMINATED for one in made)
