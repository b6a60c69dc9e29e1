"""What the machines of the local cloud have of updraft: by the lock and its hashes, as a head elsewhere."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from updraft import DISTRIBUTION, __version__, requirements
from updraft.clouds.local.images import contents


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    root = tmp_path / "rootfs"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/python3").symlink_to("python3.14")
    return root


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Every program that is started, with what it is told on its standard input."""
    calls: list[tuple[list[str], str]] = []

    def run(command: list[str], **how: Any) -> "subprocess.CompletedProcess[str]":
        calls.append((command, how.get("input") or ""))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(contents.subprocess, "run", run)
    return calls


@pytest.mark.parametrize(
    ("bindings", "left_out"), [("25.14.1", ("htcondor",)), ("23.9.6", ()), ("", ("htcondor",))]
)
def test_packages_are_those_of_the_lock_by_their_hashes(
    tmp_path: Path,
    rootfs: Path,
    called: list[tuple[list[str], str]],
    bindings: str,
    left_out: tuple[str, ...],
) -> None:
    if bindings:
        (rootfs / f"usr/lib/python3/dist-packages/htcondor-{bindings}.egg-info").mkdir(parents=True)
    contents.dependencies_layer(tmp_path / "store", rootfs, lambda _line: None)
    (pip, told), *_ = called
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(pip)
    assert pip[pip.index("--requirement") + 1] == "/dev/stdin"
    assert told == requirements.locked(without=left_out)


def test_updraft_is_known_there_by_its_own_name(
    tmp_path: Path, rootfs: Path, called: list[tuple[list[str], str]]
) -> None:
    made = contents.source_layer(tmp_path / "store", rootfs)
    home = made / "opt/updraft/src"
    assert (home / "updraft" / requirements.NAME).read_text() == requirements.locked()
    (info,) = home.glob("*.dist-info")
    assert info.name == f"{DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info"
    assert "[updraft.drivers]" in (info / "entry_points.txt").read_text()
    assert called, "compiled with the image's own Python"
