"""What the smaller parts of a cloud must do wherever a cloud has them; and which suite holds which part."""

from collections.abc import Mapping
from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.imaging_conformance import ImagingConformance
from tests.clouds.network_conformance import NetworkConformance
from tests.rigs.clouds.harness import Harness
from updraft.clouds.base import Catalogue, FindingState, ImageFinder, Leases, Leavings
from updraft.clouds.cloud import Cloud, Traits
from updraft.core.leftovers import Kind
from updraft.errors import BadRequest

KEY = "conformance-key"


def contracts() -> Mapping[str, type]:
    """What each part of a cloud has to be, by the part's name, as `Cloud` itself says it."""
    hints = get_type_hints(Cloud)
    kinds = {one.name: get_args(hints[one.name]) or (hints[one.name],) for one in fields(Cloud)}
    return {name: next(one for one in kind if one is not type(None)) for name, kind in kinds.items()}


def parts_of(cloud: Cloud) -> Mapping[str, object]:
    """Those that this cloud has."""
    return {one.name: part for one in fields(Cloud) if (part := getattr(cloud, one.name)) is not None}


class PartsConformance:
    """The suite. Each test stands for a sentence of `updraft/clouds/base.py` or `cloud.py`."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("a driver's test class brings its harness")

    @pytest.fixture
    def cloud(self, harness: Harness) -> Cloud:
        return harness.made("conformance")

    @pytest.fixture
    def catalogue(self, cloud: Cloud) -> Catalogue:
        if cloud.catalogue is None:
            pytest.skip("this cloud has no catalogue")
        return cloud.catalogue

    @pytest.fixture
    def finder(self, cloud: Cloud) -> ImageFinder:
        if cloud.finder is None:
            pytest.skip("this cloud looks for no images")
        return cloud.finder

    @pytest.fixture
    def leavings(self, cloud: Cloud) -> Leavings:
        if cloud.leavings is None:
            pytest.skip("this cloud tells of nothing else that was made")
        return cloud.leavings

    def test_each_part_is_what_it_has_to_be(self, cloud: Cloud) -> None:
        for name, part in parts_of(cloud).items():
            assert isinstance(part, contracts()[name]), f"{name} lacks a method of its contract"
        assert cloud.name == cloud.machines.name

    def test_what_it_is_like_is_known_without_asking(self, cloud: Cloud) -> None:
        traits = cloud.traits
        assert isinstance(traits, Traits)
        assert isinstance(traits.leases(), Leases)
        assert traits.no_network
        if traits.pace is not None:
            assert min(traits.pace.machines, traits.pace.quota, traits.pace.offers, traits.pace.page) > 0

    def test_it_looks_after_what_it_has_until_it_is_told_not_to(self, cloud: Cloud) -> None:
        if cloud.tending is None:
            pytest.skip("this cloud has nothing but machines to look after")
        assert cloud.tending.tends is True
        cloud.tending.tends = False
        assert cloud.tending.tends is False

    # --------------------------------------------------------------------------------------- catalogue

    def test_what_is_launched_from_is_among_the_images(self, harness: Harness, catalogue: Catalogue) -> None:
        images = catalogue.images()
        assert harness.image in {word for one in images for word in (one.id, one.name)}
        assert len(images) == len({one.id for one in images})

    def test_a_key_pair_is_made_once_listed_and_gone(self, catalogue: Catalogue) -> None:
        try:
            private = catalogue.create_key_pair(KEY)
        except BadRequest:
            assert catalogue.key_pairs() == ()
            pytest.skip("this cloud has no key pairs")
        assert private
        assert KEY in catalogue.key_pairs()
        with pytest.raises(BadRequest):
            catalogue.create_key_pair(KEY)
        catalogue.delete_key_pair(KEY)
        catalogue.delete_key_pair(KEY)
        assert KEY not in catalogue.key_pairs()

    def test_each_finding_that_is_not_well_says_what_to_do(self, catalogue: Catalogue) -> None:
        for one in catalogue.findings():
            assert one.state in get_args(FindingState)
            assert one.what
            assert one.text
            assert one.state == "ok" or one.remedy

    # ---------------------------------------------------------------------------------- images by name

    def test_the_image_of_a_launch_is_found_and_another_is_not(
        self, harness: Harness, finder: ImageFinder
    ) -> None:
        found = finder.image(harness.image)
        assert found is not None
        assert harness.image in (found.id, found.name)
        assert finder.image("nothing-of-this-name") is None

    # ---------------------------------------------------------------------------------- what else is made

    def test_where_nothing_was_made_nothing_is_left(self, leavings: Leavings) -> None:
        assert leavings.kinds
        for kind in leavings.kinds:
            assert kind not in (Kind.MACHINE, Kind.IMAGE, Kind.GROUP), "these have parts of their own"
            assert leavings.of(kind) == ()


HELD: Mapping[str, type | None] = {
    "name": None,
    "machines": MachinesConformance,
    "memory": None,  # of a wrapper's making: see `test_paced`
    "catalogue": PartsConformance,
    "finder": PartsConformance,
    "images": ImagingConformance,
    "network": NetworkConformance,
    "leavings": PartsConformance,
    "tending": PartsConformance,
    "traits": PartsConformance,
}
"""The suite by which a driver shows that it keeps the contract of this part."""
