"""An annex on real parts: its owner's jobs and nobody else's, until its lease ends."""

import json
import time
from typing import Any

from tests.rigs.pools.controlling import (
    await_done,
    await_running,
    events,
    in_machine,
    outcomes,
    runs,
    sh,
    sleepers,
)
from tests.rigs.pools.realpool import patience, say, settings, until
from updraft.bootstrap.lease import CLOSING
from updraft.clouds.base import TAG_VARIANT
from updraft.core.variants import annex_of
from updraft.demo.pool import RealPool, Wishes

USERS = ("ann", "ben")
LATE = 60.0  # seconds after its lease by which a machine must be gone
ON_ANNEX = 'TARGET.UpdraftUser == "ann"'
LAYER = "#cloud-config\nwrite_files: [{path: /etc/lab, content: of the lab}]\n"


def updraft(pool: RealPool, *arguments: str) -> Any:
    """The document that a verb prints on the head; it has to succeed."""
    done = pool.updraft(*arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def machines(pool: RealPool, *states: str) -> list[dict[str, Any]]:
    """The cloud's machines of the annex, by their tags."""
    return [one for one in pool.workers(*states) if annex_of(one["tags"].get(TAG_VARIANT, "")) == "lab"]


def test_an_annex_takes_its_owners_jobs_until_its_lease_ends(real_pool: Any) -> None:
    pool: RealPool = real_pool(Wishes(settings=settings(worker={"boot_deadline": "3m", "lifetime": "2h"})))
    sh(pool, f"for user in {' '.join(USERS)}; do useradd -m $user; done; cat >/root/lab <<'END'\n{LAYER}END")
    ask = ("annex", "create", "lab", "--count", "1", "--owner", "ann", "--tag", "project=x")
    lease = CLOSING + 40 * patience()  # a boot and two jobs' beginning, before no job begins any more
    ask = (*ask, "--duration", f"{lease:.0f}s", "--user-data", "/root/lab")
    would = updraft(pool, *ask, "--dry-run")
    assert sum(one["count"] for one in would["launches"]) == 1
    assert pool.workers() == [], "a dry run buys nothing"
    ends = updraft(pool, *ask)["annex"]["until"]

    def stands() -> dict[str, Any]:
        found: dict[str, Any] = updraft(pool, "annex", "status", "lab")["annexes"][0]
        return found

    until(lambda: (stands()["look"] or {}).get("joined") == 1, 60, "its machine has joined")
    [machine] = machines(pool, "running")
    assert machine["tags"]["project"] == "x"
    assert in_machine(pool, machine["id"], "cat", "/etc/lab") == "of the lab"
    short = pool.submit(sleepers(1, 2, requirements=ON_ANNEX, user="ann"), user="ann")
    other = pool.submit(sleepers(1, 2, requirements=ON_ANNEX, user="ben"), user="ben")
    await_done(pool, [short], 40)
    assert [row[0] for row in outcomes(pool, short)] == [4]
    long = pool.submit(sleepers(1, 900, requirements=ON_ANNEX, user="ann"), user="ann")
    await_running(pool, long)
    until(lambda: stands()["look"]["busy"] == 1, 15, "it is known to be busy")
    while time.time() < ends - 8:
        assert [one["id"] for one in machines(pool, "running")] == [machine["id"]]
        assert not runs(pool, other), "nobody else's job runs there"
        time.sleep(2)
    until(lambda: not machines(pool, "pending", "running", "stopping"), LATE, "its machine has gone")
    late = time.time() - ends
    say(f"gone {late:.1f} s after the end of the lease")
    assert 0 <= late <= LATE
    until(lambda: not runs(pool, long), 20, "the job that ran there waits again")
    assert len(machines(pool, "pending", "running", "stopping", "terminated")) == 1, "it was made once"
    over = until(lambda: _ended(pool), 20, "the controller has seen that it is gone")
    assert [row["machine"] for row in over] == [machine["id"]]
    assert updraft(pool, "annex", "delete", "lab")["annex"]["deleted"]
    until(lambda: not updraft(pool, "annex", "list")["annexes"], 15, "it is forgotten")


def _ended(pool: RealPool) -> list[dict[str, Any]]:
    return [{"machine": event["subject"]} for event in events(pool, "lease-over") if event["kind"] == "gone"]
