"""The EC2 driver makes, copies and shares images; it says what it can't do with files."""

from io import BytesIO

import pytest

from tests.clouds.imaging_conformance import TAGS, ImagingConformance
from tests.rigs.clouds.ec2endpoint import REGION, Quirks, Served
from tests.rigs.clouds.ec2harness import EC2Harness
from updraft.errors import BadRequest


class TestEC2Imaging(ImagingConformance):
    @pytest.fixture
    def harness(self, served: Served) -> EC2Harness:
        return EC2Harness(served)

    def test_files_are_refused_with_what_to_do(self, harness: EC2Harness) -> None:
        images = harness.driver().imaging
        with pytest.raises(BadRequest, match="import-image"):
            images.upload("x", "raw", BytesIO(), 0, {})
        with pytest.raises(BadRequest, match="export-image"):
            images.download("x", BytesIO())

    test_what_is_not_there = None  # nothing is downloaded here

    @pytest.mark.slow
    def test_a_deleted_image_takes_its_snapshots_along(self, harness: EC2Harness) -> None:
        driver = harness.driver()
        image = self.of_a_machine(harness, driver, driver.imaging).info.id
        described = harness.own.describe_images(ImageIds=[image])["Images"][0]
        (snapshot,) = [one["Ebs"]["SnapshotId"] for one in described["BlockDeviceMappings"]]
        driver.imaging.delete(image)
        left = harness.own.describe_snapshots(OwnerIds=["self"])["Snapshots"]
        assert snapshot not in {one["SnapshotId"] for one in left}

    def test_between_regions_no_file_passes_through_here(self, harness: EC2Harness) -> None:
        driver = harness.driver()
        there = harness.driver(region="eu-central-1").imaging
        made = self.of_a_machine(harness, driver, driver.imaging)
        copied = there.fetch(driver.imaging, made, "copied", TAGS)
        assert copied is not None
        call = harness.endpoint.calls("CopyImage")[0].parameters
        assert (call["SourceRegion"], call["SourceImageId"]) == (REGION, made.info.id)

    def test_an_endpoint_without_tags_at_the_call(self, served: Served) -> None:
        harness = EC2Harness(served, Quirks(tag_on_create="refuse"))
        driver = harness.driver()
        assert self.of_a_machine(harness, driver, driver.imaging).pool == "conformance"

    @pytest.mark.slow
    def test_an_image_that_is_still_in_the_making_takes_its_snapshots_along_too(
        self, harness: EC2Harness
    ) -> None:
        """It doesn't name them yet. Those of another image made of this one stay."""
        driver = harness.driver()
        image = self.of_a_machine(harness, driver, driver.imaging).info.id
        snapshot = harness.endpoint.backend.amis[image].ebs_snapshot
        volume = harness.own.create_volume(Size=1, AvailabilityZone=harness.zone)["VolumeId"]
        said = f"Copied for DestinationAmi ami-0ff from SourceAmi {image} for SourceSnapshot {snapshot.id}"
        other = harness.own.create_snapshot(VolumeId=volume, Description=said)["SnapshotId"]
        harness.endpoint.making.add(image)
        seen = driver.imaging.show(image)
        assert seen is not None
        assert (seen.state, seen.size) == ("making", None)
        driver.imaging.delete(image)
        left = {one["SnapshotId"] for one in harness.own.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
        assert snapshot.id not in left
        assert other in left
