"""Each panel's query, and each rule, in a real Prometheus that scrapes a controller at work."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.monitoring.test_rules import FOLDER, queries
from tests.rigs.manyclouds import ManyClouds
from tests.rigs.monitoring.prometheus import PATIENCE, Prometheus, prometheus, tool
from updraft.clouds.cloud import Cloud
from updraft.clouds.counted import CallTally, Counted
from updraft.clouds.fake import FakeCloud
from updraft.clouds.fake.faults import Fault
from updraft.config import LEDGER_FILE
from updraft.core.settings import Limits
from updraft.daemon.figures.counting import TurnCounter

pytestmark = pytest.mark.slow

SMALL = {
    "flavors": {"small": {"cpus": 2, "memory": "4GiB", "price": 0.1}},
    "boots": [{"start": "1s", "join": "1s"}],
}
CONFIG = """
[pool]
name = "test"
state_dir = "{state}"

[clouds.a]
driver = "fake"

[classes.default]
image = "img"
"""


class Living:
    """A controller of two clouds, whose time is the real one once it has lived for a while."""

    def __init__(self, state: Path) -> None:
        self.world = world = ManyClouds(
            state, {"a": SMALL, "b": SMALL}, limits={"a": Limits(machines=2)}, pool_limits=Limits(cores=12)
        )
        self.world.clock.forward(time.time() - 700 - world.clock())
        tally = CallTally()
        clouds = {
            name: Cloud(name, Counted(FakeCloud(site, "test"), tally)) for name, site in world.sites.items()
        }
        world.restart()
        daemon, parts = world.daemon, world.daemon.parts
        daemon._observer.reconfigure(parts.policy, parts.pool, clouds)
        daemon._actor.reconfigure(parts.policy, parts.pool, clouds, parts.user_data)
        assert world.ledger is not None
        daemon._seen = TurnCounter(world.ledger, tally).watch
        world.sites["b"].faults.add(Fault("no-capacity", times=1))
        world.idle = 9
        world.turn(120)
        world.pool.finish()
        world.turn(200)
        (state / LEDGER_FILE).symlink_to("ledger.db")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Live on until that is so."""
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, f"never: {what}"
            self.world.clock.forward(time.time() - self.world.clock())
            self.world.daemon.cycle()
            self.world.pool.negotiate()
            time.sleep(0.2)


@contextmanager
def served(state: Path) -> Iterator[str]:
    """`updraft metrics` as a process; where it listens."""
    config, log = state / "updraft.toml", state / "metrics.log"
    config.write_text(CONFIG.format(state=state))
    call = [sys.executable, "-m", "updraft.cli.main", "--config", str(config), "metrics"]
    with log.open("w") as out:
        process = subprocess.Popen([*call, "--listen", "127.0.0.1:0"], stderr=out, env={**os.environ})
    try:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)/metrics", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield found[1]
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def shown(query: str) -> str:
    """A query as Grafana asks it, with all jobs and instances chosen."""
    return query.replace("$job", ".+").replace("$instance", ".+").replace("$__range", "1h")


def test_each_panel_shows_something_and_each_rule_is_well(tmp_path: Path) -> None:
    tool("prometheus")  # before anything is begun
    living = Living(tmp_path / "state")
    with served(tmp_path / "state") as target:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(FOLDER / "rules.yml")],
            "scrape_configs": [{"job_name": "updraft", "static_configs": [{"targets": [target]}]}],
        }
        with prometheus(tmp_path / "prometheus", config) as server:
            _watch(living, server)
    living.world.close()


def _watch(living: Living, server: Prometheus) -> None:
    living.until(lambda: bool(server.query("updraft_controller_acting == 1")), "it acts, as scraped")
    living.world.idle = 20
    joined = "sum(increase(updraft_machine_join_seconds_count[1h])) > 0"
    living.until(lambda: bool(server.query(joined)), "machines join, as scraped")
    living.until(lambda: bool(server.query("rate(updraft_cycles_total[5m]) > 0")), "cycles are counted")
    for title, query in queries():
        found = server.query(shown(query))
        assert found, f"{title}: {query} shows nothing"
    # Not only something: what is so.
    assert server.query("sum(updraft_machines) == 6")
    assert server.query('sum(updraft_jobs_waiting{reason="limit-cores"}) == 20 - 12')
    assert server.query("sum(updraft_jobs_lost_total) == 0")
    assert server.query('updraft_launch_failures_total{cloud="b",reason="no-capacity"} == 1')
    assert server.query("histogram_quantile(0.5, sum by (le) (updraft_machine_join_seconds_bucket)) < 30")
    rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}, [one.get("lastError") for one in rules]
    firing = {
        alert["labels"]["alertname"] for alert in server.ask("alerts")["alerts"] if alert["state"] == "firing"
    }
    assert not firing
