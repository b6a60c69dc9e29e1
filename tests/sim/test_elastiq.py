"""elastiq's documented failures, each by its name: elastiq's rule runs into it, updraft's plan does not."""

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import classad2
import pytest

from tests.rigs.sim.simtools import Watch, engine, policy, shape
from tests.rigs.snapshots import NOW, group, instance, record, slot, snapshot, worker
from tests.rigs.snapshots import policy as site_policy
from updraft import importers
from updraft.cli.main import call
from updraft.condor.collector.views import slot as slot_of
from updraft.core.model import (
    CloudState,
    Drain,
    Launch,
    Resources,
    Terminate,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy
from updraft.sim.conditions import Pace
from updraft.sim.engine import Engine
from updraft.sim.rivals.elastiq import Elastiq, ElastiqRule, Numbers, Seen, hosts_of
from updraft.sim.workloads.workload import Arrival, burst, stream

HOUR = 3600.0
ALONE = ("ada",)
TICK = {"cycle": 5.0}  # elastiq looks every 5 s: the same for both


def ours(made: Policy, cloud: dict[str, Any], work: tuple[Arrival, ...], **more: Any) -> Engine:
    sim = engine(made, {"f": cloud}, workload=work, **more)
    Watch(sim)
    return sim


def theirs(
    numbers: Numbers, made: Policy, cloud: dict[str, Any], work: tuple[Arrival, ...], **more: Any
) -> Engine:
    how = {name: more.pop(name) for name in ("resolve",) if name in more}
    rule = ElastiqRule(numbers, flavor="small", **how)
    sim = engine(made, {"f": cloud}, workload=work, decide=rule, **more)
    sim.on_cycle.append(lambda _snapshot, _plan: _show_strangers(sim, rule))
    return sim


def _show_strangers(sim: Engine, rule: ElastiqRule) -> None:
    """Its credentials show every running instance, and it makes no difference between them."""
    rule.strangers = tuple(one.id for one in sim.sites["f"].current() if not one.tags)


def small(**more: Any) -> Policy:
    """One flavor of two cores, as elastiq would have it."""
    return policy(**{"flavors": ("small",), "timings": TICK, **more})


def daemon(numbers: Numbers, **more: Any) -> tuple[Elastiq, list[str], list[str]]:
    """A bare one, with what it boots and what it ends."""
    booted: list[str] = []
    killed: list[str] = []

    def boot(count: int) -> list[str]:
        made = [f"n{len(booted) + number}" for number in range(count)]
        booted.extend(made)
        return made

    return Elastiq(numbers, boot, killed.append, **more), booted, killed


# ------------------------------------------------------------------------------------- growing and limits


def test_running_machines_counted_twice_against_the_quota() -> None:
    """Of ten machines five run; five more are wanted, and elastiq has no room for them for ten minutes."""
    work = (
        *burst(10, shapes=(shape(3000),), owners=ALONE),
        *burst(20, at=200, shapes=(shape(600),), owners=ALONE),
    )
    old = theirs(Numbers(per_vm=2, max_vms=10), small(), {}, work)
    old.run(400)
    assert old.alive() == 5

    new = ours(small(limits=Limits(machines=10)), {}, work)
    new.run(400)
    assert new.alive() == 10


def test_the_head_and_strangers_counted_against_the_quota() -> None:
    work = burst(8, shapes=(shape(600),), owners=ALONE)
    old = theirs(Numbers(per_vm=2, max_vms=4), small(), {}, work)
    new = engine(small(max_machines=4), {"f": {}}, workload=work)
    for sim in (old, new):
        for _ in range(3):
            sim.sites["f"].add_foreign()
        sim.run(300)
    assert (old.alive(), new.alive()) == (1, 4)


@pytest.mark.slow
def test_the_boot_kill_loop() -> None:
    """Machines need twelve minutes to join, and have ten: each is ended just before it joins."""
    slow = {"boots": [{"start": "60s", "join": "660s", "spread": 0.0}]}
    work = burst(8, shapes=(shape(300),), owners=ALONE)
    old = theirs(Numbers(per_vm=2, max_vms=4), small(), slow, work)
    old.run(2 * HOUR)
    assert (old.result().completed, old.result().joined) == (0, 0)
    assert old.result().launched > 20

    new = ours(small(limits=Limits(machines=4)), slow, work)
    assert new.run_to_zero(HOUR)
    assert new.result().completed == 8


@pytest.mark.slow
def test_the_boot_kill_loop_with_the_deadline_that_an_import_has_brought() -> None:
    """Ten minutes are too short for updraft too; but it rests after failures, and says what is wrong."""
    slow = {"boots": [{"start": "60s", "join": "660s", "spread": 0.0}]}
    work = burst(8, shapes=(shape(300),), owners=ALONE)
    new = engine(
        small(limits=Limits(machines=4), boot_deadline=600.0, timings={"cycle": 10.0}),
        {"f": slow},
        workload=work,
    )
    watch = Watch(new)
    new.run(4 * HOUR)
    assert new.result().launched <= 16
    reasons = {cooldown.reason.code for _, _, made in watch.plans for cooldown in made.cooldowns}
    assert "never-joined" in reasons, reasons


def test_credits_of_other_machines_taken() -> None:
    """Five machines are on their way for ten jobs when five idle ones go: elastiq orders five more."""
    rule, booted, killed = daemon(Numbers(per_vm=2, max_vms=0, idle=600))
    idle = [f"i-{number}" for number in range(5)]
    rule.alleged, rule.owned = 5, set(idle)
    rule.workers = dict.fromkeys(idle, (0, NOW - 700))
    seen = Seen(NOW, waiting=10, hosts=dict.fromkeys(idle, 0), running=tuple(idle))
    rule.check_queue(seen)
    assert not booted
    rule.check_vms(seen)
    assert sorted(killed) == idle
    for later in (15, 30, 45, 60, 75):
        rule.check_queue(Seen(NOW + later, waiting=10, hosts={}, running=()))
    assert len(booted) == 5, "for the same ten jobs"

    coming = [f"b-{number}" for number in range(5)]
    world = snapshot(
        instances=[
            *(instance(name) for name in idle),
            *(instance(name, CloudState.PENDING, launched_at=NOW - 30) for name in coming),
        ],
        slots=[replace(slot(name), accepting=False, draining=True) for name in idle],
        records=[
            *(record(name, joined_at=NOW - 3500, last_claimed_at=NOW - 700, job_starts=3) for name in idle),
            *(record(name, requested_at=NOW - 30) for name in coming),
        ],
        groups=[group(idle=10)],
    )
    assert not [action for action in plan(world, site_policy()).actions if isinstance(action, Launch)]


@pytest.mark.slow
def test_min_violated() -> None:
    """Two machines are never to go. Two strangers in the pool make elastiq end all four."""
    left = []
    for seed in range(12):
        rule, _, killed = daemon(Numbers(min_vms=2, idle=600), seed=seed)
        names = ["i-0", "i-1", "stranger-0", "stranger-1"]
        rule.owned, rule.workers = {"i-0", "i-1"}, dict.fromkeys(names, (0, NOW - 700))
        rule.check_vms(Seen(NOW, 0, dict.fromkeys(names, 0), tuple(names)))
        left.append(len(set(names) - set(killed)))
    assert min(left) < 2

    sim = engine(small(min_machines=2, idle_limit=60.0), {"f": {}}, workload=burst(20, shapes=(shape(60),)))
    for _ in range(2):
        sim.sites["f"].add_foreign()
    watch = Watch(sim)
    assert sim.run(HOUR, lambda: len(sim.pool.listed) > 2)
    fewest = 99
    for _ in range(400):
        sim.cycle()
        fewest = min(fewest, len([one for one in sim.pool.machines.values() if one.works]))
    assert fewest == 2
    watch.look()


# --------------------------------------------------------------------------------------- ending machines


@pytest.mark.slow
def test_busy_machine_shot_between_samples() -> None:
    """A job starts right after each sample: idle to elastiq for five minutes, and shot with a job on it."""
    work = stream(40, at=1.0, every=45.0, shape=shape(10))
    quick = Pace(negotiation=1.0, start=0.5)
    old = theirs(Numbers(idle=300, per_vm=2), small(), {}, work, latency=4.5, pace=quick)
    old.run(HOUR)
    assert old.result().killed > 0

    new = ours(small(idle_limit=33.0), {}, work, latency=4.5, pace=quick)
    assert new.run_to_zero(HOUR)
    assert new.result().killed == 0
    assert new.result().refused_drains > 0, "the same bad moment has come, and the machine has said no"


def test_not_owned_machine_shot() -> None:
    """In the pool: one machine of ours, one that somebody started by hand, one that only says it is ours."""
    by_hand = replace(slot("by-hand"), instance_id="", launch_key="", kind="foreign")
    world = snapshot(
        instances=[instance("i-0")],
        slots=[slot("i-0"), by_hand, replace(slot("pretender"), launch_key="")],
        records=[record("i-0", joined_at=NOW - 3500, last_claimed_at=NOW - 3000, job_starts=3)],
    )
    hosts = hosts_of(world) or {}
    seen = Seen(NOW, 0, hosts, tuple(hosts))
    rule, _, killed = daemon(Numbers(idle=600))
    rule.owned = {"L-i-0"}
    rule.workers = dict.fromkeys(hosts, (0, NOW - 3000))
    rule.check_vms(seen)
    assert set(killed) == {"L-i-0", "by-hand@host", "pretender@host"}

    made = plan(world, site_policy(worker(idle_limit=600.0)))
    touched = [action for action in made.actions if isinstance(action, Drain | Terminate)]
    assert [action.machine for action in touched if isinstance(action, Drain)] == ["i-0"]
    assert not [action for action in touched if isinstance(action, Terminate)]
    assert [reason.code for reason in made.warnings] == ["unexplained-slot"], "the pretender is reported"


# ----------------------------------------------------------------------------------------------- churning


@pytest.mark.slow
def test_unmatchable_jobs_churning_machines() -> None:
    impossible = shape(60, Resources(64, 1000, 1024))
    work = burst(20, shapes=(impossible,), owners=ALONE)
    old = theirs(Numbers(idle=1800, per_vm=2), small(), {}, work)
    old.run(3 * HOUR)
    assert old.result().launched > 6
    assert old.result().used == 0

    new = engine(small(), {"f": {}}, workload=work)
    watch = Watch(new)
    new.run(HOUR)
    assert new.result().launched == 0
    (outlook,) = watch.plans[-1][2].groups
    assert outlook.unmet == 20
    assert outlook.refused, "and it says why"


@pytest.mark.slow
def test_error_machines_replaced_without_pause() -> None:
    broken = {"boots": [{"breaks": 1.0}]}
    work = burst(20, shapes=(shape(60),), owners=ALONE)
    old = theirs(Numbers(per_vm=2), small(), broken, work)
    old.run(HOUR)
    assert old.result().launched > 150

    new = ours(small(limits=Limits(machines=3), timings={"cycle": 15.0}), broken, work)
    new.run(2 * HOUR)
    assert new.result().launched <= 20


# --------------------------------------------------------------------------------- the daemon, and its log


def nowhere(*_: object, **__: object) -> Any:
    raise socket.gaierror("Name or service not known")


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose resolver finds nothing."""
    for name in ("gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getaddrinfo"):
        monkeypatch.setattr(socket, name, nowhere)


@pytest.mark.usefixtures("no_names")
def test_an_unresolvable_host_name_ending_the_daemon() -> None:
    work = burst(8, shapes=(shape(900),), owners=ALONE)
    old = theirs(Numbers(per_vm=2), small(), {}, work, resolve=socket.gethostbyname)
    with pytest.raises(socket.gaierror):
        old.run(HOUR)

    new = ours(small(), {}, work)
    assert new.run_to_zero(HOUR)
    assert new.result().completed == 8


@pytest.mark.usefixtures("no_names")
def test_a_slot_of_a_host_without_a_name_is_read_like_any_other() -> None:
    recorded = Path(__file__).parents[1] / "condor" / "data" / "slot-busy.ad"
    ad = classad2.parseOne(recorded.read_text(), classad2.ParserType.Old)
    ad.update({"Machine": "no.such.host.invalid", "Name": "slot1@i-9@no.such.host.invalid"})
    assert slot_of(ad, "test").name == "slot1@i-9@no.such.host.invalid"


def startup_log(configuration: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What elastiq logs at its start: every value that it was given."""
    return [
        f"Configuration: {section}.{key} = {value} (from file)"
        for section, values in configuration.items()
        for key, value in values.items()
    ]


SECRET = "9ab1edcaf0secret0canary"  # noqa: S105 (of no account)


def test_the_secret_key_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = {"ec2": {"api_url": "https://c.example", "aws_secret_access_key": SECRET}}
    assert any(SECRET in line for line in startup_log(conf))

    old = tmp_path / "elastiq.conf"
    old.write_text("[ec2]\n" + "".join(f"{key} = {value}\n" for key, value in conf["ec2"].items()))
    assert SECRET not in str(importers.run([old]))
    new = tmp_path / "updraft.toml"
    new.write_text(importers.run([old]).toml + f'[clouds.other]\ndriver = "ec2"\nsecret_key = "{SECRET}"\n')
    for verb in (
        ["import", str(old)],
        ["--config", str(new), "config", "check"],
        ["--config", str(new), "run"],
    ):
        call(verb)
    out, err = capsys.readouterr()
    assert "secret_key" in err, "it is named"
    assert SECRET not in out + err, "and not shown"


# ------------------------------------------------------------------------------------ does the rule work?


def test_elastiqs_rule_runs_ordinary_jobs() -> None:
    """It is no straw man: where its assumptions hold, its machines come, work and go."""
    work = burst(12, shapes=(shape(300),), owners=ALONE)
    old = theirs(Numbers(per_vm=2, max_vms=10, idle=600), small(), {}, work)
    assert old.run_to_zero(2 * HOUR)
    result = old.result()
    assert (result.completed, result.killed, result.launched) == (12, 0, 6)
