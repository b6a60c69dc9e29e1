"""A first boot on a full disk says so: real scripts, in an image whose disk is full.

The image is below an overlay whose upper side is a small tmpfs, in name spaces that end with the test.
"""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.rigs.pools.livepool import image
from tests.rigs.reading import cloud_config, worker
from updraft.bootstrap import worker_user_data

pytestmark = pytest.mark.integration

MACHINE = """\
set -e
mount --make-rprivate /
ip link set lo up
mount -t tmpfs -o size=8m tmpfs /mnt
mkdir /mnt/up /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$IMAGE,upperdir=/mnt/up,workdir=/mnt/work" /mnt/root
mount -t tmpfs tmpfs /mnt/root/run
mount -t tmpfs tmpfs /mnt/root/dev
for one in null zero urandom; do touch /mnt/root/dev/$one; mount --bind /dev/$one /mnt/root/dev/$one; done
mount -t proc proc /mnt/root/proc
cp -r "$FILES" /mnt/root/run/told
fill() { head -c 9000000 /dev/zero >/mnt/root/var/fill 2>/dev/null || :; }
room() { fill; truncate -s -$1 /mnt/root/var/fill; }
inside() { chroot /mnt/root "$@" || echo "ended: $?"; }
mkdir -p /mnt/root/var/lib/cloud/data
echo i-1 >/mnt/root/var/lib/cloud/data/instance-id
"""
# In place of the last program that runs before HTCondor may start: afterwards, nothing can be written there.
SPOIL = """\
import os
os.rename("/var/lib/updraft", "/var/lib/elsewhere")
open("/var/lib/updraft", "w").close()
"""
# As cloud-init's stage "init" does; a module that fails is logged, and the next one runs.
WRITE = """\
import yaml, cloudinit.config.cc_write_files as module
from cloudinit.helpers import Paths
from types import SimpleNamespace as Some
told = yaml.safe_load(open("/run/told/config"))
module.handle("write_files", told, Some(paths=Paths({}), distro=Some(default_owner="root:root")), [])
"""


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """What cloud-init is told of a worker, as files: its configuration, its first step and its last."""
    config = cloud_config(worker_user_data(worker()))
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    for name, steps in (("early", config["bootcmd"]), ("last", config["runcmd"])):
        [[*words]] = steps
        (tmp_path / name).write_text(words[-1] if words[1] == "-c" else " ".join(words))
    (tmp_path / "write.py").write_text(WRITE)
    (tmp_path / "spoil.py").write_text(SPOIL)
    return tmp_path


def boot(told: Path, how: str) -> list[str]:
    """What that way through a boot says on its console, beginning with the mark that people search for."""
    done = subprocess.run(
        ["unshare", "-mn", "--kill-child", "sh", "-c", MACHINE + how],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "IMAGE": str(image()), "FILES": str(told)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("updraft-boot:")]


FAILED = "updraft-boot: FAILED: "


def test_a_disk_that_is_full_from_the_start_is_said_before_anything_is_written(told: Path) -> None:
    assert boot(told, "fill; inside sh /run/told/early") == [FAILED + "the disk is full"]


def test_a_disk_with_room_says_nothing_of_it_and_keeps_its_room(told: Path) -> None:
    assert boot(told, "inside sh /run/told/early; inside test ! -e /var/lib/updraft/room") == []


def test_files_that_could_not_be_written_are_said_by_the_last_step(told: Path) -> None:
    write = "room 20000; inside python3 /run/told/write.py 2>&1 | grep -q 'No space left on device'; "
    some = "test -s /mnt/root/etc/condor/config.d/01-updraft-security.conf; "
    said = boot(told, write + some + "inside sh /run/told/last")
    assert said == [FAILED + "cloud-init could not write its files"]


def test_a_disk_that_fills_up_afterwards_is_said_too(told: Path) -> None:
    way = "inside sh /run/told/early; inside python3 /run/told/write.py; {}; inside sh /run/told/last"
    [line] = boot(told, way.format("fill"))
    assert line.startswith(FAILED)
    assert line.endswith("(the disk is full)")


def test_what_cannot_be_written_for_another_reason_is_said_and_is_no_full_disk(told: Path) -> None:
    way = "inside sh /run/told/early; inside python3 /run/told/write.py; {}; inside sh /run/told/last"
    # There is no systemd, and no network in which HTCondor's tool could look its host up.
    tools = "cd /usr/bin; rm condor_config_val; ln -sf true systemctl; ln -s pwd condor_config_val; "
    spoilt = tools + "cp /run/told/spoil.py /usr/local/lib/updraft/handover"
    said = boot(told, way.format(f"inside sh -c '{spoilt}'"))
    assert said == [FAILED + "nothing can be written to /var/lib/updraft"]
