"""A drive with the user-data, in real mounts: none is left once HTCondor starts. Covers close-drives.sh."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rigs.drives import made_drive
from tests.rigs.reading import worker, written
from updraft.bootstrap import machine, worker_user_data

SCRIPT = Path(__file__).parents[2] / "src/updraft/bootstrap/files/close-drives.sh"
TEXT = "the boot token\n"
TOOLS = ("mke2fs", "losetup", "blkid", "findmnt", "unshare")
WITHOUT = os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS)


def ran(folder: Path, script: str) -> str:
    """A script in mounts of its own; they and their loop devices end with it."""
    for place in ("one", "two", "other"):
        (folder / place).mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-e", "-c", script], cwd=folder, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    if "failed to set up loop device" in done.stderr:
        pytest.skip("this host has no loop device to spare")
    assert done.returncode == 0, done.stderr
    return done.stdout


real = pytest.mark.skipif(WITHOUT, reason="needs root, e2fsprogs and util-linux")


@real
@pytest.mark.integration
@pytest.mark.parametrize("label", ["config-2", "cidata"])
def test_a_drive_with_user_data_is_mounted_nowhere_afterwards_and_other_drives_stay(
    tmp_path: Path, label: str
) -> None:
    image, other = made_drive(tmp_path, label, TEXT), made_drive(tmp_path, "data", TEXT)
    said = ran(
        tmp_path,
        f"""mount -o loop,ro {image} one
mount --bind one two
mount -o loop,ro {other} other
exec 9<one
cat one/openstack/latest/user_data two/openstack/latest/user_data
sh {SCRIPT}
ls one two
ls other/openstack
""",
    )
    assert said.split("\n") == ["the boot token"] * 2 + ["one:", "", "two:", "latest", ""]


@real
@pytest.mark.integration
def test_one_that_stays_mounted_is_named(tmp_path: Path) -> None:
    image = made_drive(tmp_path, "config-2", TEXT)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "umount").symlink_to("/bin/false")
    said = ran(
        tmp_path,
        f"mount -o loop,ro {image} one\nPATH={programs}:$PATH sh {SCRIPT} && echo closed || echo failed\n",
    )
    assert said == f"{tmp_path}/one\nfailed\n"


def test_it_runs_before_each_start_of_htcondor() -> None:
    files = written(worker_user_data(worker()))
    assert files["/usr/local/lib/updraft/close-drives"]["permissions"] == "0755"
    boot = files["/usr/local/lib/updraft/boot"]["content"]
    assert boot.index("close-drives") < boot.index("systemctl start condor.service")
    assert 'fail "a drive with the user-data is open to jobs: $why"' in boot
    early = machine.early_steps()[0][2]
    assert "ExecStartPre=/bin/sh /usr/local/lib/updraft/close-drives" in early, "at later boots"
