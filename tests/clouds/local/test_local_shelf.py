"""Image files of the local cloud: sent, kept, sent back, refused where they are none."""

import io
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from updraft.clouds.local.client import Client
from updraft.clouds.local.imaging import LocalImaging
from updraft.clouds.local.service import server as servers
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.events import EventLog
from updraft.clouds.local.service.server import ApiServer, Tokens
from updraft.clouds.local.service.shelf import Shelf
from updraft.errors import BadRequest, CloudUnavailable


def rootfs(**files: str) -> bytes:
    """The tar file of a very small root file system."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in {"etc/hostname": "small\n", **files}.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf({"plain": ("/nowhere",)}, tmp_path / "images")


@pytest.fixture
def images(shelf: Shelf) -> Iterator[LocalImaging]:
    cloud: Any = SimpleNamespace(
        shelf=shelf, faults_before=lambda *_: [], faults_after=lambda *_: [], log=EventLog(None)
    )
    server = ApiServer(("127.0.0.1", 0), cast(Cloud, cloud), Tokens("admin", "controller"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield LocalImaging("local", Client(f"http://127.0.0.1:{server.server_address[1]}", "controller"))
    server.shutdown()
    thread.join()
    server.server_close()


def put(images: LocalImaging, data: bytes, name: str = "mine") -> str:
    return images.upload(name, "tar", io.BytesIO(data), len(data), {"updraft:pool": "p"})


def test_what_was_uploaded_can_be_launched_and_comes_back(images: LocalImaging, shelf: Shelf) -> None:
    made = put(images, rootfs(**{"opt/tool": "x" * 3_000_000}))
    assert {made, "mine"} <= set(shelf.names())
    back = io.BytesIO()
    images.download(made, back)
    back.seek(0)
    with tarfile.open(fileobj=back) as tar:
        assert tar.getmember("./opt/tool").size == 3_000_000
    found = images.show("mine")
    assert found is not None
    assert (found.state, found.pool, found.form) == ("ready", "p", "tar")


@pytest.mark.parametrize("data", [b"no tar at all" * 100_000, rootfs()[:700], b""])
def test_what_is_no_root_file_system_leaves_nothing(images: LocalImaging, shelf: Shelf, data: bytes) -> None:
    with pytest.raises(BadRequest, match="no tar of a root file system"):
        put(images, data)
    assert shelf.names() == ("plain",)


def test_a_file_cannot_leave_its_image(images: LocalImaging, tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        put(images, rootfs(**{"../../escaped": "x"}))
    assert not list(tmp_path.rglob("escaped"))


def test_a_file_that_arrives_changed_is_said_to(
    images: LocalImaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = put(images, rootfs())
    monkeypatch.setattr(servers, "CHECKSUM", "X-Other")
    with pytest.raises(CloudUnavailable, match="isn't whole"):
        images.download(made, io.BytesIO())


def test_the_newest_of_a_name_is_launched(images: LocalImaging, shelf: Shelf) -> None:
    put(images, rootfs())
    second = put(images, rootfs())
    assert shelf.layers("mine")[0].endswith(second)


def test_images_of_the_cloud_itself_stay(images: LocalImaging) -> None:
    with pytest.raises(BadRequest, match="of the cloud itself"):
        images.delete("plain")
    made = put(images, rootfs())
    images.delete(made)
    images.delete(made)
    assert images.show(made) is None


def test_nobody_takes_the_name_of_an_image_of_the_cloud(images: LocalImaging) -> None:
    with pytest.raises(BadRequest, match="can't be called"):
        put(images, rootfs(), "plain")
