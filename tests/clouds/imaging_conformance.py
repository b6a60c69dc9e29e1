"""What every driver that handles images must do; a harness is that of `conformance`."""

from io import BytesIO
from typing import Any

import pytest

from tests.rigs.clouds.harness import Harness, request
from updraft.clouds.base import TAG_POOL, Machines
from updraft.clouds.cloud import Cloud
from updraft.clouds.imaging import Imaging, MachineImage
from updraft.errors import BadRequest, CloudUnavailable

TAGS = {TAG_POOL: "conformance", "updraft:from": "a plain image"}


class ImagingConformance:
    """The suite. Each test stands for one sentence of the contract in `updraft/clouds/imaging.py`."""

    file = b"the file of an image" * 1000
    stranger = "222222222222"

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("a driver's test class brings its harness")

    @pytest.fixture
    def cloud(self, harness: Harness) -> Cloud:
        return harness.made("conformance")

    @pytest.fixture
    def driver(self, cloud: Cloud) -> Machines:
        return cloud.machines

    @pytest.fixture
    def images(self, cloud: Cloud) -> Imaging:
        assert cloud.images is not None
        return cloud.images

    def ready(self, harness: Harness, images: Imaging, image: str) -> MachineImage:
        def seen() -> Any:
            found = images.show(image)
            return found is not None and found.state == "ready"

        harness.wait(seen, "the image is ready")
        found = images.show(image)
        assert found is not None
        return found

    def uploaded(self, harness: Harness, images: Imaging, name: str = "mine") -> MachineImage:
        if not images.forms:
            pytest.skip("no image files on this cloud")
        made = images.upload(name, images.forms[0], BytesIO(self.file), len(self.file), TAGS)
        return self.ready(harness, images, made)

    def of_a_machine(self, harness: Harness, driver: Machines, images: Imaging) -> MachineImage:
        (made,) = driver.launch(request(harness))
        harness.wait(
            lambda: any(one.id == made.id and one.state == "running" for one in driver.machines()), "it runs"
        )
        return self.ready(harness, images, images.create(made.id, "of-a-machine", TAGS))

    def test_an_image_of_a_machine_can_be_launched(
        self, harness: Harness, driver: Machines, images: Imaging
    ) -> None:
        made = self.of_a_machine(harness, driver, images)
        assert (made.info.name, made.pool, made.tags["updraft:from"]) == (
            "of-a-machine",
            "conformance",
            "a plain image",
        )
        assert made.info.id in {one.info.id for one in images.all()}
        assert len(driver.launch(request(harness, image=made.info.id))) == 1

    def test_making_an_image_neither_stops_nor_ends_the_machine(
        self, harness: Harness, driver: Machines, images: Imaging
    ) -> None:
        self.of_a_machine(harness, driver, images)
        assert [one.state for one in driver.machines()] == ["running"]

    def test_an_image_of_a_machine_that_is_not_there(self, images: Imaging) -> None:
        with pytest.raises(BadRequest):
            images.create("i-00000000000000000", "nothing", TAGS)

    def test_a_halted_machine_rests_until_it_is_ended(
        self, harness: Harness, driver: Machines, images: Imaging
    ) -> None:
        (made,) = driver.launch(request(harness))
        harness.wait(lambda: any(one.state == "running" for one in driver.machines()), "it runs")
        if not images.halt(made.id):
            pytest.skip("a disk is whole here without that")
        harness.wait(lambda: any(one.state == "stopped" for one in driver.machines()), "it rests")

    def test_a_file_comes_back_as_it_was(self, harness: Harness, images: Imaging) -> None:
        image, back = self.uploaded(harness, images), BytesIO()
        images.download(image.info.id, back)
        assert back.getvalue() == self.file
        assert (image.size, image.form, image.pool) == (len(self.file), images.forms[0], "conformance")

    def test_the_newest_of_a_name_is_meant(self, harness: Harness, images: Imaging) -> None:
        first, second = self.uploaded(harness, images), self.uploaded(harness, images)
        found = images.show("mine")
        assert found is not None
        assert found.info.id in (first.info.id, second.info.id)
        assert found.info.created == max(first.info.created or 0, second.info.created or 0)

    def test_a_form_that_the_cloud_does_not_know(self, images: Imaging) -> None:
        with pytest.raises(BadRequest):
            images.upload("mine", "floppy", BytesIO(b"x"), 1, {})

    def test_what_is_not_there(self, images: Imaging) -> None:
        assert images.show("nothing-of-this-name") is None
        with pytest.raises(BadRequest):
            images.download("nothing-of-this-name", BytesIO())

    def test_shared_with_another(self, harness: Harness, driver: Machines, images: Imaging) -> None:
        image = self.of_a_machine(harness, driver, images)
        images.share(image.info.id, self.stranger)
        images.share(image.info.id, self.stranger)  # twice is once
        found = images.show(image.info.id)
        assert found is not None
        assert found.shared == (self.stranger,)

    def test_a_deleted_image_is_gone_and_twice_is_success(
        self, harness: Harness, driver: Machines, images: Imaging
    ) -> None:
        image = self.of_a_machine(harness, driver, images).info.id
        images.delete(image)
        images.delete(image)
        assert images.show(image) is None

    def test_an_upload_that_fails_leaves_nothing(self, harness: Harness, images: Imaging) -> None:
        failing = harness.failing(CloudUnavailable)
        if failing is None or not images.forms:
            pytest.skip("can't be arranged")
        before = {one.info.id for one in images.all()}
        with failing, pytest.raises(CloudUnavailable):
            images.upload("broken", images.forms[0], BytesIO(self.file), len(self.file), TAGS)
        assert {one.info.id for one in images.all()} == before
