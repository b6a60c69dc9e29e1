"""The metrics of a controller at work: what they say, and that nobody can make a thousand of them."""

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.rigs.manyclouds import SMALL, Make, ManyClouds, worlds
from tests.rigs.monitoring.prometheus import tool
from tests.rigs.snapshots import NOW, policy, snapshot
from updraft.clouds.fake.faults import Fault
from updraft.core.model import BudgetPeriod, BudgetScope, Known, Spent, SpentRow
from updraft.core.plan import plan
from updraft.core.settings import DAY, Limits, SpendingLimit
from updraft.daemon.report import document
from updraft.errors import UsageError
from updraft.ledger import Ledger, Reader
from updraft.ledger.counters import Count
from updraft.metrics.exposition import LedgerCollector, serve, text, write
from updraft.metrics.families import FAMILIES, FamilyKind
from updraft.metrics.reading import FiguresRead, LedgerSource
from updraft.metrics.samples import samples
from updraft.watching.known import daemon_state

UNPRICED = {"flavors": {"small": {"cpus": 2, "memory": "4GiB"}}}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with worlds(tmp_path) as made:
        yield made


def collector(world: ManyClouds, **changes: Any) -> LedgerCollector:
    source = LedgerSource(world.state / "ledger.db", "test", daemon_state, clock=world.clock, **changes)
    return LedgerCollector(source.picture)


def values(world: ManyClouds) -> dict[str, float]:
    """All values by the name with the labels, as in `updraft_jobs{state="idle"}`."""
    found = {}
    for family in text_string_to_metric_families(text(collector(world)).decode()):
        for one in family.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(one.labels.items()))
            found[one.name + (f"{{{labels}}}" if labels else "")] = one.value
    return found


def where(cloud: str, **more: str) -> str:
    labels = {"class": "default", "cloud": cloud, "market": "on-demand", **more}
    return ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))


def test_they_say_when_the_credentials_of_a_cloud_end(make: Make) -> None:
    world = make({"a": SMALL, "b": SMALL})
    clouds = world.daemon.parts.clouds
    traits = replace(clouds["a"].traits, credentials_end=lambda: 1_900_000_000.0)
    clouds["a"] = replace(clouds["a"], traits=traits)  # type: ignore[index]
    world.turn(4)
    told = values(world)
    assert told['updraft_credential_expiry_timestamp_seconds{credential="cloud a"}'] == 1_900_000_000
    assert 'updraft_credential_expiry_timestamp_seconds{credential="cloud b"}' not in told


def test_they_say_what_there_is(make: Make) -> None:
    world = make({"a": SMALL, "b": SMALL}, limits={"a": Limits(machines=3)}, pool_limits=Limits(cores=8))
    world.idle = 20
    world.turn(60)
    told = values(world)
    assert world.alive() == {"a": 3, "b": 1}
    assert told["updraft_controller_up"] == told["updraft_controller_acting"] == 1
    assert world.clock() - told["updraft_look_timestamp_seconds"] < 10
    assert told[f"updraft_machines{{{where('a', phase='joined')}}}"] == 3
    assert told[f"updraft_machine_cores{{{where('b', phase='joined')}}}"] == 2
    assert told[f"updraft_machines{{{where('b', phase='booting')}}}"] == 0
    assert told[f"updraft_machine_cost_per_hour{{{where('a')}}}"] == pytest.approx(0.3)
    assert told['updraft_limit_machines{name="a",scope="cloud"}'] == 3
    assert told['updraft_used_machines{name="a",scope="cloud"}'] == 3
    assert (
        told['updraft_limit_cores{name="",scope="pool"}']
        == told['updraft_used_cores{name="",scope="pool"}']
        == 8
    )
    assert 'updraft_limit_machines{name="b",scope="cloud"}' not in told, "no limit is not a limit of 0"
    waiting = told['updraft_jobs_waiting{reason="limit-cores"}']
    assert waiting == told['updraft_jobs{state="idle"}'] == 20 - 8
    assert 0 < world.clock() - told["updraft_oldest_waiting_timestamp_seconds"] <= world.clock()
    assert told["updraft_jobs_lost_total"] == 0
    assert told["updraft_cycles_total"] == 30
    assert told[f"updraft_launched_machines_total{{{where('a')}}}"] == 3
    assert told['updraft_machine_join_seconds_count{class="default",cloud="a"}'] == 3
    assert told['updraft_machine_join_seconds_bucket{class="default",cloud="a",le="+Inf"}'] == 3
    assert told['updraft_sources{source="cloud-machines",state="known"}'] == 2
    assert told['updraft_cloud_state{cloud="a",state="ok"}'] == 1
    assert told['updraft_machine_cost_total{cloud="a",currency=""}'] > 0


def test_what_fails_is_counted_and_what_rests_is_told(make: Make) -> None:
    world = make({"a": SMALL})
    world.sites["a"].faults.add(Fault("quota-exceeded"))
    world.idle = 2
    world.turn(200)
    told = values(world)
    failed = told[f"updraft_launch_failures_total{{{where('a', reason='quota-exceeded')}}}"]
    assert failed == told[f"updraft_launches_total{{{where('a')}}}"] > 1
    assert told['updraft_cooldowns{scope="cloud"}'] == 1
    assert told['updraft_cooldown_failures{scope="cloud"}'] == failed
    assert told['updraft_cloud_state{cloud="a",state="resting"}'] == 1


def test_a_price_that_is_not_known_is_told_and_is_no_zero(make: Make) -> None:
    world = make({"a": UNPRICED})
    world.idle = 2
    world.turn(60)
    assert values(world)[f"updraft_machines_without_price{{{where('a')}}}"] == 1


def test_what_was_spent_of_each_budget_of_the_site_is_told() -> None:
    whose = ((BudgetScope.POOL, ""), (BudgetScope.CLASS, "default"), (BudgetScope.USER, "alice"))
    limits = tuple(SpendingLimit(scope, name, BudgetPeriod.MONTH, 10.0) for scope, name in whose)
    rows = (SpentRow(False, 4.0, worker_class="default"),)
    seen = snapshot(spent=Known(Spent(NOW, int(NOW // DAY), rows), NOW))
    cycle, _ = document(seen, plan(seen, policy(spending=limits)), standing=None, timings={}, generation=1)
    told = [one for one in samples(FiguresRead(NOW, "lab", {}, cycle)) if "budget" in one[0]]
    pool, own = ({"scope": scope, "name": name, "period": "month"} for scope, name in whose[:2])
    assert told == [
        ("updraft_budget", pool, 10.0),
        ("updraft_budget_spent", pool, 4.0),
        ("updraft_budget", own, 10.0),
        ("updraft_budget_spent", own, 4.0),
    ]


def test_lines_of_machines_fall_to_zero_and_counters_only_grow(make: Make) -> None:
    world = make({"a": SMALL})
    world.idle = 2
    world.turn(60)
    before = values(world)
    world.idle = 0
    for worker in world.pool.workers.values():
        worker.jobs = 0
    world.turn(300)
    world.restart()
    world.turn(4)
    after = values(world)
    assert world.alive() == {"a": 0}
    assert after[f"updraft_machines{{{where('a', phase='joined')}}}"] == 0
    assert after[f"updraft_machine_ends_total{{{where('a', reason='idle-limit')}}}"] == 1
    for name, value in before.items():
        family = FAMILIES.get(name.partition("{")[0])
        if family is not None and family.kind is FamilyKind.COUNTER:
            assert after[name] >= value, name


def test_a_dead_controller_does_not_act_whatever_it_wrote_last(make: Make) -> None:
    world = make({"a": SMALL})
    world.turn(10)
    assert values(world)["updraft_controller_acting"] == 1
    world.clock.forward(120)
    told = values(world)
    assert told["updraft_controller_up"] == told["updraft_controller_acting"] == 0
    assert told["updraft_ledger_readable"] == 1


def test_a_ledger_that_is_not_there_or_damaged_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for _ in range(2):
        told = text(LedgerCollector(LedgerSource(path, "test", daemon_state).picture)).decode()
        assert "updraft_ledger_readable 0.0" in told
        assert "updraft_controller_acting 0.0" in told
        assert "updraft_jobs_lost_total 0.0" not in told, "nobody knows"
        path.write_bytes(b"no database" * 1000)
    path.unlink()
    with Ledger(path) as ledger:
        ledger.save_cycle({}, 1.0)
        ledger._connection.execute("UPDATE notes SET doc = '{'")
    picture = LedgerSource(path, "test", daemon_state).picture()
    assert picture.unread is not None
    assert "can't be read" in picture.unread


def test_what_users_make_up_is_no_label(make: Make) -> None:
    world = make({"a": SMALL}, pool_limits=Limits(machines=1))
    world.idle = 9
    world.turn(40)
    assert world.ledger is not None
    cycle = world.ledger.last_cycle()
    assert cycle is not None
    assert "alice" in str(cycle["groups"]), "else this proves nothing"
    told = text(collector(world)).decode()
    assert "alice" not in told
    # These are all labels that there are: each has its values from the site or from us, whatever users do.
    site = {"cloud", "class", "market", "currency", "pool", "version", "name", "scope", "credential"}
    ours = {"phase", "state", "reason", "source", "stage", "call", "le", "period", "receiver", "outcome"}
    assert {label for one in FAMILIES.values() for label in one.labels} <= site | ours


def test_a_thousand_groups_make_no_more_series(make: Make) -> None:
    world = make({"a": SMALL}, pool_limits=Limits(machines=1))
    world.idle = 5
    world.turn(30)
    few = len(values(world))
    assert world.ledger is not None
    cycle = world.ledger.last_cycle()
    assert cycle is not None
    cycle["groups"] = [{**cycle["groups"][0], "key": str(one), "owner": f"u{one}"} for one in range(1000)]
    cycle["sources"] |= {f"schedd s{one}": {"state": "known", "at": 1.0} for one in range(1000)}
    world.ledger.save_cycle(cycle, world.clock())
    assert len(values(world)) == few


def test_each_name_goes_by_the_rules() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"updraft_[a-z]+(_[a-z]+)*", name), name
        assert name.endswith("_total") == (family.kind is FamilyKind.COUNTER), name
        assert re.fullmatch(r"[A-Z01].{15,}\.", family.help), name
        assert family.kind is not FamilyKind.HISTOGRAM or name.endswith("_seconds"), name


def test_costs_never_shrink_by_a_last_digit(make: Make) -> None:
    world = make({"a": SMALL})
    world.idle = 2
    world.turn(60)
    source = LedgerSource(world.state / "ledger.db", "test", daemon_state, clock=world.clock)
    first = source.picture().costs
    source._costs = (float("-inf"), {key: value + 1.0 for key, value in first.items()})
    assert source.picture().costs == {key: value + 1.0 for key, value in first.items()}


def test_a_file_is_written_whole_and_for_all_to_read(make: Make, tmp_path: Path) -> None:
    world = make({"a": SMALL})
    world.turn(4)
    file = tmp_path / "out" / "updraft.prom"
    with pytest.raises(UsageError, match="name another with --textfile"):
        write(collector(world), file)
    file.parent.mkdir()
    write(collector(world), file)
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in file.parent.iterdir()] == ["updraft.prom"]
    assert b"updraft_controller_acting 1.0" in file.read_bytes()


def test_a_scrape_leaves_the_ledger_as_it_is(make: Make) -> None:
    world = make({"a": SMALL})
    world.idle = 2
    world.turn(30)
    with Reader(world.state / "ledger.db") as reader:
        version = reader._connection.execute("PRAGMA data_version").fetchone()
        for _ in range(3):
            text(collector(world))
        assert reader._connection.execute("PRAGMA data_version").fetchone() == version


def test_an_address_that_is_taken_is_told() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="name another with --listen"):
            serve(LedgerCollector(lambda: None), "127.0.0.1", taken.getsockname()[1])  # type: ignore[arg-type,return-value]


@pytest.mark.slow
def test_promtool_has_nothing_against_them(make: Make) -> None:
    promtool = tool("promtool")
    world = make({"a": SMALL, "b": UNPRICED}, limits={"a": Limits(1, 2, 0.5, memory=4096)})
    world.sites["a"].faults.add(Fault("no-capacity"))
    world.idle = 9
    world.turn(200)
    assert world.ledger is not None
    world.ledger.count([Count("cloud_calls", {"cloud": "a", "call": "launch"})])
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text(collector(world)), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


@pytest.mark.slow
def test_a_large_pool_is_told_quickly(tmp_path: Path) -> None:
    """Ten thousand machines: the document of a cycle is read, and no record of a machine."""
    path = tmp_path / "ledger.db"
    machine = {
        "cloud": "a",
        "phase": "joined",
        "reason": {"code": "needed", "text": "x" * 60},
        "deadline": None,
    }
    with Ledger(path) as ledger:
        doc = {"at": 1.0, "machines": [{**machine, "machine": f"i-{one:08x}"} for one in range(10_000)]}
        ledger.save_cycle(doc, 1.0)
    source = LedgerSource(path, "test", daemon_state)
    text(LedgerCollector(source.picture))
    begun = time.process_time()
    text(LedgerCollector(source.picture))
    assert time.process_time() - begun < 1.0
