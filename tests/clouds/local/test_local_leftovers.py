"""On a real local cloud: what a build left goes, what is in use, named or another's stays."""

import io
import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clouds.local.test_local_conformance import LocalHarness
from tests.rigs.clouds.harness import request
from updraft.cli import main
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.images import image
from updraft.core.leftovers import SPARED, Kind
from updraft.ledger.identity import Host, kept

pytestmark = pytest.mark.integration
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LocalHarness]:
    built = image.build()
    config = LocalCloudConfig(
        images={built.name: tuple(str(layer) for layer in built.layers)}, stop_grace=1.0
    )
    cloud = process.start(config, tmp_path / "cloud", tie_to_parent=True)
    try:
        yield LocalHarness(cloud)
    finally:
        cloud.stop()


def root_file_system() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        folder = tarfile.TarInfo("etc")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
    return file.getvalue()


def called(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["leftovers", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def listed(capsys: Capture) -> dict[str, Any]:
    code, out, err = called(capsys, "--all", "--json")
    assert code == 0, err
    return {row["id"]: row["fate"] for row in json.loads(out)["leftovers"]}


def test_what_a_build_left_goes_and_the_rest_stays(
    harness: LocalHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "updraft.toml").write_text(
        f'[pool]\nname = "demo"\nstate_dir = "state"\n[clouds.lab]\ndriver = "local"\n'
        f'endpoint = "{harness.cloud.endpoint}"\ncredential_file = "{harness.cloud.credential_file}"\n'
        f'[classes.default]\nimage = "named"\n'
    )
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "200")
    identity = kept(tmp_path / "state", Host()).pool
    mine = {TAG_POOL: "demo", TAG_IDENTITY: identity}

    images, data = harness.driver("demo").imaging, root_file_system()

    def upload(name: str, tags: dict[str, str]) -> str:
        return images.upload(name, "tar", io.BytesIO(data), len(data), tags)

    named, spare, strange = (
        upload("named", mine),
        upload("spare", mine),
        upload("strange", {TAG_POOL: "demo"}),
    )
    upload("theirs", {TAG_POOL: "other"})
    (builder,) = harness.driver("demo.images").launch(request(harness, tags={TAG_IDENTITY: identity}))
    (worker,) = harness.driver("demo").launch(request(harness, tags={TAG_IDENTITY: identity}))
    fates = {named: "kept", spare: "unused", strange: "refused", builder.id: "kept", worker.id: "kept"}
    assert listed(capsys) == fates
    assert called(capsys, "--remove", "--yes")[:2] == (0, "nothing to remove\n")

    # Hours later the machine of the build is nobody's any more.
    now = time.time() + SPARED[Kind.MACHINE]
    monkeypatch.setattr("updraft.app.operating.leftovers.time.time", lambda: now)
    assert listed(capsys) == fates | {builder.id: "left"}
    code, out, err = called(capsys, "--remove", "--yes")
    assert code == 0, err
    assert builder.id in out
    harness.wait(lambda: not harness.exists(builder.id), "the machine of the build is ended")
    assert harness.exists(worker.id)
    code, _, err = called(capsys, "strange", "--remove", "--yes")
    assert code == 1
    assert "not its identity" in err
    assert called(capsys, "spare", "--remove", "--yes")[0] == 0
    assert {one.info.name for one in images.all() if one.tags} == {"named", "strange", "theirs"}
