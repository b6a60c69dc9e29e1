"""`make demo-jobs` on a real pool: the three submit files as they are, and what they print."""

from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    FILE,
    await_running,
    events,
    in_machine,
    of_class,
    reload,
    sh,
    sleepers,
    slot_of,
)
from tests.rigs.pools.realpool import until
from updraft.demo import examples
from updraft.demo.pool import Wishes

pytestmark = pytest.mark.extended

WAITS = """\
executable = /bin/true
transfer_executable = false
requirements = HAS_CVMFS_software_example_org
queue
"""
FOLDER = Path(__file__).parents[3] / "examples"


def test_the_demonstration_jobs_run_unchanged(real_pool: Any) -> None:
    pool = real_pool(Wishes())
    said: list[str] = []
    outcomes = examples.run(pool, FOLDER, said.append)
    assert [(one.job, one.wrong) for one in outcomes] == [(job, "") for job in examples.JOBS]
    assert outcomes[0].output == (FOLDER / "demo-1.expected").read_text()
    assert f"/cvmfs/{examples.REPOSITORY}" not in outcomes[0].output
    # The second and third waited for a machine that has the repository, and nothing else would do for them.
    mounted = [m["id"] for m in of_class(pool, "software")]
    assert mounted
    hosts = {
        str(row["LastRemoteHost"])
        for row in pool.history(("ClusterId", "LastRemoteHost", "Requirements"))
        if "UpdraftCVMFS" in str(row["Requirements"])
    }
    assert len(hosts) in (1, 2)
    assert all(any(machine in host for machine in mounted) for host in hosts)


def test_after_a_reboot_the_repository_is_mounted_and_said_again(real_pool: Any) -> None:
    pool = real_pool(Wishes())
    examples.serve(pool, FOLDER / "repository")
    asks = sleepers(1, 120, requirements="HAS_CVMFS_software_example_org")
    await_running(pool, pool.submit(asks), deadline=120)
    [machine] = [m["id"] for m in of_class(pool, "software")]

    def mounted() -> dict[str, Any] | None:
        slot = slot_of(pool, machine)
        return slot if slot and slot.get("UpdraftCVMFS") == examples.REPOSITORY else None

    before = mounted()
    assert before is not None
    pool.cloud.client().reboot(machine)

    def again() -> bool:
        slot = mounted()
        return slot is not None and slot["DaemonStartTime"] > before["DaemonStartTime"]

    until(again, 60, "its startd is back, and says that it has the repository")
    assert "Hello" in in_machine(pool, machine, "ls", f"/cvmfs/{examples.REPOSITORY}")


def test_a_repository_that_cannot_be_mounted_fails_the_boot_and_says_why(real_pool: Any) -> None:
    pool = real_pool(Wishes())
    examples.serve(pool, FOLDER / "repository")
    sh(pool, "rm /srv/software/cvmfs/*/files.tar")
    sh(pool, f'sed -i \'s/boot_deadline = "3m"/boot_deadline = "30s"/\' {FILE}')
    reload(pool, "reloaded")
    pool.submit(WAITS)
    failed = until(lambda: events(pool, "never-joined"), 90, "the machine's boot is told to have failed")
    assert "CernVM-FS cannot mount software.example.org" in failed[0]["text"]
    assert not [slot for slot in pool.slots() if "UpdraftCVMFS" in slot]
