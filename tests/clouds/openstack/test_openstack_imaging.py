"""The OpenStack driver makes, moves and shares images, in a project in memory."""

from contextlib import AbstractContextManager
from io import BytesIO

import pytest

from tests.clouds.imaging_conformance import TAGS, ImagingConformance
from tests.rigs.clouds.fakecloud import PROJECT
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.errors import CloudError, CloudUnavailable

FILE = r"GET .*/file$"


class BrokenUploads(OpenStackHarness):
    """A record can be made, and the file that should come after it can't."""

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self.front.trouble(Trouble(r"PUT .*/file$", Reply(503, "the store is full")))


class TestOpenStackImaging(ImagingConformance):
    @pytest.fixture
    def harness(self, front: Front) -> OpenStackHarness:
        return BrokenUploads(front)

    def test_a_download_that_ends_too_soon_is_an_error(self, harness: OpenStackHarness) -> None:
        images = harness.driver().imaging
        image = self.uploaded(harness, images).info.id
        short = Reply(200, b"x", {"Content-Type": "application/octet-stream", "Content-Length": "2"})
        with harness.front.trouble(Trouble(FILE, short)), pytest.raises(CloudUnavailable):
            images.download(image, BytesIO())

    def test_an_image_that_was_shared_is_accepted_by_the_member(self, harness: OpenStackHarness) -> None:
        images = harness.driver().imaging
        image = self.uploaded(harness, images).info.id
        images.share(image, images.account())
        images.accept(image)
        assert harness.cloud.members[image] == {PROJECT: "accepted"}

    def test_a_snapshot_of_a_volume_takes_the_blocks_along(self, harness: OpenStackHarness) -> None:
        images = harness.driver().imaging
        image = self.uploaded(harness, images).info.id
        record = next(one for one in harness.cloud.told["images"]["images"] if one["id"] == image)
        record |= {"size": 0, "block_device_mapping": '[{"snapshot_id": "s-1", "boot_index": 0}]'}
        images.delete(image)
        assert [call.path.rpartition("/")[2] for call in harness.front.calls("DELETE .*/snapshots/")] == [
            "s-1"
        ]

    def test_the_checksum_is_the_strongest_that_is_told(self, harness: OpenStackHarness) -> None:
        assert self.uploaded(harness, harness.driver().imaging).checksum.startswith("sha512:")

    def test_a_name_with_a_colon_is_looked_for_among_all(self, harness: OpenStackHarness) -> None:
        images = harness.driver().imaging
        made = images.upload("in:mine", "raw", BytesIO(b"x"), 1, TAGS)
        found = images.show("in:mine")
        assert found is not None
        assert found.info.id == made

    def test_an_upload_that_stays_is_named_in_the_error(self, harness: OpenStackHarness) -> None:
        images = harness.driver().imaging
        lasting = Trouble(r"DELETE .*/images/", Reply(503, "down"))
        with (
            harness.failing(CloudUnavailable),
            harness.front.trouble(lasting),
            pytest.raises(CloudUnavailable, match=r"the store is full.*stays.*updraft leftovers") as raised,
        ):
            images.upload("broken", "raw", BytesIO(b"x"), 1, TAGS)
        left = [one["id"] for one in harness.cloud.told["images"]["images"] if one["name"] == "broken"]
        assert left
        assert left[0] in str(raised.value)
