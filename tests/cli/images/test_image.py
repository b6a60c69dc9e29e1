"""`image`: two clouds in memory under one configuration, and files between them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.app import wiring
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.clouds.fake.imaging import FakeImaging
from updraft.config.model import CloudTable, Settings

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
images = ["debian"]

[clouds.there]
driver = "fake"
images = ["debian"]

[classes.default]
image = { here = "debian", there = "worker" }
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Site]:
    file = tmp_path / "updraft.toml"
    file.write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(file))
    monkeypatch.setenv("COLUMNS", "200")
    made = {
        name: Site(name, site_settings(name, {"images": ["debian"]}), lambda: 1e9)
        for name in ("here", "there")
    }

    def driver(settings: Settings, name: str, cloud: CloudTable) -> Cloud:
        found = FakeCloud(made[name], settings.pool.name)
        found.imaging = FakeImaging(made[name], found._call, f"project-of-{name}")
        return found.cloud

    monkeypatch.setattr(wiring, "make_cloud", driver)
    return made


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["image", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def document(capsys: Capture, *words: str) -> Any:
    code, out, _ = run(capsys, *words, "--json")
    found = json.loads(out)
    validate(found, FORMS[f"image {words[0]}"])
    return code, found


def uploaded(capsys: Capture, tmp_path: Path, name: str = "mine", data: bytes = b"QFI\xfb and more") -> None:
    (tmp_path / "disk").write_bytes(data)
    assert run(capsys, "upload", "disk", "--name", name, "--cloud", "here")[0] == 0


def test_a_file_goes_up_is_seen_and_comes_down(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path
) -> None:
    uploaded(capsys, tmp_path)
    code, found = document(capsys, "list", "here", "--made")
    (row,) = found["images"]
    assert (code, row["name"], row["form"], row["ours"], row["from"]) == (0, "mine", "qcow2", True, "disk")
    assert run(capsys, "download", "mine", "back", "--cloud", "here")[0] == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "disk").read_bytes()
    assert run(capsys, "download", "mine", "back", "--cloud", "here")[0] == 2  # it is there already


def test_a_copy_has_the_same_file_and_says_where_it_is_from(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path
) -> None:
    uploaded(capsys, tmp_path)
    code, out, _ = run(capsys, "copy", "mine", "--from", "here", "--to", "there", "--name", "worker")
    assert code == 0
    assert 'image = "worker"' in out
    _, there = document(capsys, "show", "worker", "--cloud", "there")
    _, here = document(capsys, "show", "mine", "--cloud", "here")
    assert there["image"]["checksum"] == here["image"]["checksum"]
    assert there["image"]["from"] == "here:mine"


def test_a_file_that_changed_on_its_way_is_no_image(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = FakeImaging._keep
    monkeypatch.setattr(
        FakeImaging, "_keep", lambda self, name, form, data, tags: plain(self, name, form, data[:-1], tags)
    )
    (tmp_path / "disk").write_bytes(b"QFI\xfb and more")
    code, _, err = run(capsys, "upload", "disk", "--name", "mine", "--cloud", "here")
    assert code == 1
    assert "what went up is not the image" in err
    assert not sites["here"].made


def test_a_broken_download_leaves_no_file(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded(capsys, tmp_path)
    monkeypatch.setattr(FakeImaging, "download", lambda self, image, file: file.write(b"half"))
    assert run(capsys, "download", "mine", "back", "--cloud", "here")[0] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "updraft.toml"]


def test_a_name_is_given_once(sites: dict[str, Site], capsys: Capture, tmp_path: Path) -> None:
    uploaded(capsys, tmp_path)
    code, _, err = run(capsys, "upload", "disk", "--name", "mine", "--cloud", "here")
    assert code == 2
    assert "already" in err


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("debian", (), "made by somebody else"),
        ("worker", ("--cloud", "there"), "class default boots"),
    ],
)
def test_what_is_not_ours_or_is_used_is_deleted_by_force_only(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path, name: str, words: tuple[str, ...], why: str
) -> None:
    uploaded(capsys, tmp_path)
    run(capsys, "copy", "mine", "--from", "here", "--to", "there", "--name", "worker")
    code, _, err = run(capsys, "delete", name, *(words or ("--cloud", "here")))
    assert code == 2
    assert why in err
    assert run(capsys, "delete", name, "--force", *(words or ("--cloud", "here")))[0] == 0


def test_one_that_updraft_made_is_deleted(sites: dict[str, Site], capsys: Capture, tmp_path: Path) -> None:
    uploaded(capsys, tmp_path)
    assert run(capsys, "delete", "mine", "--cloud", "here")[0] == 0
    assert not sites["here"].made


def test_all_are_looked_at_before_the_first_is_deleted(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path
) -> None:
    uploaded(capsys, tmp_path)
    assert run(capsys, "delete", "mine", "debian", "--cloud", "here")[0] == 2
    assert len(sites["here"].made) == 1


def test_sharing_with_a_cloud_of_ours_accepts_there(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: list[tuple[str, str]] = []
    monkeypatch.setattr(FakeImaging, "accept", lambda self, image: accepted.append((self.account(), image)))
    uploaded(capsys, tmp_path)
    assert run(capsys, "share", "mine", "--with", "there", "--cloud", "here")[0] == 0
    (one,) = sites["here"].made
    assert accepted == [("project-of-there", one)]
    assert sites["here"].made[one].image.shared == ("project-of-there",)
    assert run(capsys, "share", "mine", "--with", "somebody", "--cloud", "here")[0] == 0
    assert accepted == [("project-of-there", one)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("show", "debian"), "more than one cloud"),
        (("show", "nothing", "--cloud", "here"), "no image nothing"),
        (("list", "nowhere"), "no cloud nowhere"),
        (("upload", "disk", "--name", "x", "--cloud", "here"), "--form raw or qcow2"),
        (("upload", "disk", "--name", "x", "--cloud", "here", "--form", "tar"), "no image files of the form"),
        (("copy", "debian", "--from", "here", "--to", "there", "--name", "x"), "without a file"),
    ],
)
def test_wrong_calls_say_what_to_do(
    sites: dict[str, Site], capsys: Capture, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "disk").write_bytes(b"who knows what this is")
    code, _, err = run(capsys, *words)
    assert code in (1, 2)
    assert why in err
