"""What a demo leaves behind when it ends, is refused or is interrupted: nothing of its own."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from updraft.cli import endings, main
from updraft.cli.demo import demo
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.process import LocalCloud
from updraft.errors import ProblemFound


def put_files(folder: Path) -> None:
    """What a cloud keeps in its folder while it runs, and after it was killed."""
    (folder / "machines").mkdir(parents=True)
    for name in ("config.json", "cloud.json", "api.sock", "admin.token", "controller.token", "cloud.log"):
        (folder / name).write_text("")


@pytest.fixture
def no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host where the image is there, and where no pool comes up."""

    def fails(_image: Any, folder: Path, *_others: Any) -> None:
        put_files(folder)
        raise ProblemFound("the head did not come up")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("updraft.demo.pool.find_or_build", lambda *_: None)
    monkeypatch.setattr("updraft.demo.pool.bring_up", fails)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The signals' handlers, given back at the end."""
    before = {number: signal.getsignal(number) for number in endings.ENDINGS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("no_pool")
@pytest.mark.parametrize("keep", [(), ("--keep",)], ids=["", "keep"])
def test_a_folder_that_held_something_keeps_it(tmp_path: Path, keep: tuple[str, ...]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main.call(["demo", "--state", str(tmp_path), *keep]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("no_pool")
def test_a_folder_of_the_demo_alone_goes_with_it(tmp_path: Path) -> None:
    assert main.call(["demo", "--state", str(tmp_path / "new")]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_pool")
def test_a_pool_that_is_kept_is_not_touched_by_a_second_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_files(tmp_path)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(process, "find", lambda folder: LocalCloud(folder, 4711, "1"))
    assert main.call(["demo", "--keep", "--state", str(tmp_path)]) == 2
    assert f"local down --state {tmp_path}" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("no_pool")
def test_without_root_it_names_the_demo_that_needs_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main.call(["demo"]) == 2
    said = capsys.readouterr().err
    assert "sudo" in said
    assert "demo --fake" in said


def test_a_second_interrupt_does_not_stop_the_cleaning_up() -> None:
    endings.clean_up_after_signals()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    for number in endings.ENDINGS:
        signal.raise_signal(number)


def test_a_cloud_whose_start_is_interrupted_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: list[subprocess.Popen[bytes]] = []

    def spawn(_state: Path, _tied: bool) -> "subprocess.Popen[bytes]":
        spawned.append(subprocess.Popen(["sleep", "60"]))
        return spawned[-1]

    def find(_state: Path) -> None:
        if spawned:
            raise KeyboardInterrupt

    monkeypatch.setattr(process, "_spawn", spawn)
    monkeypatch.setattr(process, "find", find)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(KeyboardInterrupt):
        process.start(LocalCloudConfig(images={}), tmp_path)
    assert spawned[0].returncode is not None


@pytest.mark.parametrize(("found", "called"), [("/opt/bin/updraft", "updraft"), (None, ".venv/bin/updraft")])
def test_the_commands_it_ends_with_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, found: str | None, called: str
) -> None:
    monkeypatch.setattr("sys.argv", [found or ".venv/bin/updraft", "demo", "--keep"])
    monkeypatch.setattr("shutil.which", lambda _name: found)
    assert demo.ourselves() == called


def test_what_was_decided_and_why_fits_a_narrow_terminal() -> None:
    launch = {
        "kind": "launch",
        "subject": "worker-1a200bd1893-0",
        "text": "14 waiting jobs of alice have no room",
        "detail": {"asked": 8, "offer": "worker@here/zone-a/large/on-demand"},
    }
    drain = {"kind": "drain", "subject": "i-dd1149d1f18c7146", "text": "idle since 00:50:03", "detail": None}
    assert demo.told(launch) == "launch 8 × large in zone-a: 14 waiting jobs of alice have no room"
    assert demo.told(drain) == "drain i-dd1149d1f18c7146: idle since 00:50:03"
    assert len(demo.told(launch)) <= 66  # what a panel of 80 columns has beside the time
