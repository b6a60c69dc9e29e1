"""`[pool] act = false` on a real pool, beside an updraft that acts: nothing is touched, and all is told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.pools.controlling import ALIVE, FILE, acting, await_done, sh, sleepers
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_POOL
from updraft.demo.pool import RealPool, Wishes

# In two runs of five the record lacked jobs that ended in the second in which it was asked: mended.
# Until it has passed often it is no part of `make test`.
pytestmark = [pytest.mark.long, pytest.mark.extended]

WATCH = "/etc/updraft/watch.toml"
WATCHED = 'act = false\\nrecord_every = "3s"\\nstate_dir = "/var/lib/updraft-watch"'


@pytest.fixture(scope="module")
def shared(module_pool: RealPools) -> RealPool:
    return module_pool(Wishes(settings=settings(worker={"idle_limit": "3s"}, timings={"settle": "4s"})))


@pytest.fixture
def watched(shared: RealPool) -> Iterator[RealPool]:
    """The pool, with a second updraft on its head that only watches, under another name."""
    until(lambda: acting(shared), 60, "the controller acts")
    edit = f's|^name = .*|name = "watching"\\n{WATCHED}|'
    sh(shared, f"sed '{edit}' {FILE} >{WATCH} && mkdir -p /var/lib/updraft-watch")
    run = f"nohup updraft --config {WATCH} run </dev/null >/var/log/watch.log 2>&1 & echo $!"
    process = sh(shared, run).strip()
    try:
        yield shared
    finally:
        sh(shared, f"kill {process}; while kill -0 {process} 2>/dev/null; do sleep 0.2; done")


def controllers(pool: RealPool) -> list[str]:
    return sh(pool, "condor_status -generic -constraint 'PoolIdentity =!= undefined' -af Name").split()


def watches(pool: RealPool) -> bool:
    done = pool.updraft("--config", WATCH, "status", "--json")
    if done.returncode != 0:
        return False
    daemon = json.loads(done.stdout)["daemon"]
    return bool(daemon["alive"] and not daemon["acting"] and daemon["standing"]["code"] == "watching")


def test_it_touches_nothing_and_its_record_makes_a_report(watched: RealPool) -> None:
    pool = watched
    until(lambda: watches(pool), 60, "the second one watches")
    assert len(controllers(pool)) == 1, "who watches says nothing in the collector"
    assert acting(pool)
    looked = lambda: pool.updraft("--config", WATCH, "report", "--json").returncode == 0  # noqa: E731
    until(looked, 60, "its record has a look")
    cluster = pool.submit(sleepers(3, 8))
    await_done(pool, [cluster], 120)
    until(lambda: not pool.workers(*ALIVE), 60, "the machines of the one that acts go when they are idle")

    def reported() -> Any:
        done = pool.updraft("--config", WATCH, "report", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return found if found["jobs"]["ended"] == 3 else None

    told = until(reported, 150, "the record has the jobs, and a look after their end")
    assert told["watched"]
    assert told["really"]["jobs"] == told["would"]["jobs"] == 3
    assert 0 < told["really"]["mean_wait"] < 120
    assert told["would"]["machines"] >= 1
    assert told["would"]["ended"] == 3
    assert told["users"][0]["jobs"] == 3
    assert len(controllers(pool)) == 1
    assert {machine["tags"][TAG_POOL] for machine in pool.workers()} == {pool.show("status")["pool"]}
    said = pool.updraft("--config", WATCH, "events", "--last", "1000", "--json").stdout
    kinds = {json.loads(line)["kind"] for line in said.splitlines()}
    assert kinds <= {"started", "standing", "warning", "stopped"}
    refused = pool.updraft("--config", WATCH, "destroy", "--yes")
    assert (refused.returncode, "only watches" in refused.stderr) == (2, True)
    assert acting(pool), "the one that acts was never kept from it"
