"""Annexes: golden cases (`cases/annexes/plan.json`), and what must hold whatever is seen.

Covers `progress` and `annex_leaving`.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_obedient import World
from tests.core.test_plan import _policy, _snapshot, _told
from tests.rigs.annexworlds import annex, with_annexes
from tests.rigs.snapshots import (
    NOW,
    gone,
    group,
    instance,
    offer,
    pick,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
)
from updraft.core.annexes.progress import left_of_itself
from updraft.core.machines.annex_leaving import GRACE
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.model import (
    PLAIN,
    Annex,
    CloudState,
    Drain,
    DrainMode,
    DrainRecord,
    Known,
    Launch,
    Plan,
    Reason,
    Snapshot,
    Terminate,
    Variant,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy
from updraft.core.slots.variants import idle_limit, refusal

CASES = json.loads((Path(__file__).parents[1] / "cases" / "annexes" / "plan.json").read_text())
BIG = annex().variant
STOPPED = Reason("annex-stopped", "as the test says")


def of_case(name: str, about: dict[str, Any]) -> Annex:
    said = dict(about)
    until = NOW + said.pop("until_in", 3600)
    stopped = STOPPED if said.pop("stopped", False) else None
    return annex(name, **{"machines": 0, "until": until, "stopped": stopped, **said})


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    """Actions, how each annex stands (state, reason, what is missing), and what is forgotten."""
    case = json.loads(json.dumps(CASES[name]).replace('"BIG"', json.dumps(BIG.text)))
    shown = with_annexes(_snapshot(case), [of_case(*one) for one in case["annexes"].items()])
    made = plan(shown, _policy(case))
    assert sorted(_told(action) for action in made.actions) == sorted(case["actions"])
    for one in made.annexes:
        if one.name in case.get("outlook", {}):
            assert [one.state, one.reason.code, one.missing] == case["outlook"][one.name]
    assert [one.name for one in made.annexes if one.forget] == case.get("forgotten", [])
    if "collector_silent" not in case:
        assert sorted(w.code for w in made.warnings) == sorted(case.get("warnings", []))


# --------------------------------------------------------------------------------------------- properties


@st.composite
def annexes(draw: st.DrawFn) -> tuple[Annex, ...]:
    """Up to two annexes in any state."""
    found = []
    for name in pick(draw, [("a",), ("a", "b")]):
        cores = pick(draw, [0, 0, 7])
        found.append(
            annex(
                name,
                machines=0 if cores else draw(st.integers(1, 6)),
                cores=cores,
                until=NOW + pick(draw, [-500.0, -20.0, 0.0, 1.0, 3600.0]),
                for_all=draw(st.booleans()),
                max_price=pick(draw, [None, 0.2]),
                left=draw(st.integers(0, 2)),
                stopped=pick(draw, [None, None, STOPPED]),
                kill_jobs=draw(st.booleans()),
            )
        )
    return tuple(found)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Any pool, some of whose machines and launches are of annexes."""
    shown, some = draw(snapshots()), draw(annexes())
    texts = st.sampled_from([PLAIN, *(one.variant for one in some)])
    ledger = replace(
        shown.ledger,
        machines=tuple(replace(one, variant=draw(texts)) for one in shown.ledger.machines),
        launches=tuple(replace(one, variant=draw(texts)) for one in shown.ledger.launches),
    )
    return with_annexes(replace(shown, ledger=ledger), some)


def launched(made: Plan) -> list[Launch]:
    return [one for one in made.actions if isinstance(one, Launch)]


@given(worlds(), policies())
def test_the_end_of_a_lease_is_certain(shown: Snapshot, rules: Policy) -> None:
    """Whatever answers, each machine of it that isn't gone, or asked to end just now, is ended."""
    made = plan(shown, rules)
    ended = {(one.cloud, m) for one in made.actions if isinstance(one, Terminate) for m in one.machines}
    over = {one.name for one in shown.annexes if one.until + GRACE <= NOW}
    begun = {one.name for one in shown.annexes if one.until <= NOW}
    cache = MachineCache()
    for machine in cache.look(shown, rules).machines:
        kept = machine.record
        name = kept.variant.annex
        if (name in over or (name in begun and not machine.busy)) and machine.phase != "gone":
            asked = kept.terminate_asked_at
            assert (machine.cloud, machine.id) in ended or (asked is not None and NOW - asked < 15)


@pytest.mark.slow
@given(worlds(), policies())
def test_nothing_is_bought_for_an_annex_that_is_over_nor_more_than_was_asked_for(
    shown: Snapshot, rules: Policy
) -> None:
    made = launched(plan(shown, rules))
    for one in shown.annexes:
        mine = [launch for launch in made if launch.annex == one]
        if one.over(NOW) or rules.closing or not isinstance(shown.collector, Known):
            assert not mine
        if one.machines:
            living = [r for r in shown.ledger.machines if r.variant.annex == one.name and not r.ended_at]
            gone = [
                r
                for r in living
                for view in [shown.clouds[r.cloud].machines]
                if r.missing_since is not None
                or (isinstance(view, Known) and not any(i.id == r.id and i.alive for i in view.value))
            ]
            there = len(living) - len(gone)
            assert sum(launch.count for launch in mine) <= max(0, one.machines - one.left - there)
        for launch in mine:
            assert launch.offer.variant.annex == one.name
            if one.max_price is not None:
                assert launch.offer.price is not None
                assert launch.offer.price <= one.max_price


@pytest.mark.slow
@given(worlds(), policies())
def test_jobs_never_buy_the_machines_of_an_annex_and_limits_hold_over_both(
    shown: Snapshot, rules: Policy
) -> None:
    made = launched(plan(shown, rules))
    for launch in made:
        assert launch.offer.variant.annex == ("" if launch.annex is None else launch.annex.name)
    assert len({launch.key for launch in made}) == len(made)
    there = len([m for m in MachineCache().look(shown, rules).machines if m.phase != "gone"])
    most = rules.limits.machines
    if most is not None and made:
        assert there + sum(launch.count for launch in made) <= most


@given(worlds(), policies())
def test_unknown_is_not_zero(shown: Snapshot, rules: Policy) -> None:
    """Before its end, and not stopped, a machine of an annex is drained for want of work only when all is
    known, or by hand."""
    made = plan(shown, rules)
    running = {one.name for one in shown.annexes if not one.over(NOW)}
    by_id = {(r.cloud, r.id): r for r in shown.ledger.machines}
    for one in made.actions:
        kept = by_id.get((one.cloud, one.machine)) if isinstance(one, Drain) else None
        if kept is None or kept.variant.annex not in running or rules.closing or kept.wanted_drain:
            continue
        assert one.reason.code in ("idle-limit", "lifetime") or kept.drain is not None
        if one.reason.code == "idle-limit":
            assert all(isinstance(source, Known) for source in shown.schedds.values())


@given(worlds(), policies())
def test_a_decision_that_remembers_is_the_same(shown: Snapshot, rules: Policy) -> None:
    cache = MachineCache()
    plan(shown, rules, cache)
    later = replace(shown, annexes=tuple(replace(one, until=NOW - 1) for one in shown.annexes))
    assert plan(later, rules, cache) == plan(later, rules)


class AnnexWorld(World):
    """An obedient world with annexes."""

    some: tuple[Annex, ...] = ()

    def look(self) -> Snapshot:
        return with_annexes(super().look(), self.some)

    def step(self, seconds: float = 2.0) -> Plan:
        made = super().step(seconds)
        # What the ledger knows of each launch, its machines have.
        for launch in launched(made):
            text = launch.offer.variant
            for name, kept in self.records.items():
                if kept.launch_key == launch.key:
                    self.records[name] = replace(kept, variant=text)
            self.launches = [
                replace(one, variant=text) if one.key == launch.key else one for one in self.launches
            ]
        return made


@given(st.integers(1, 30), st.booleans(), st.sampled_from([None, 5]), st.booleans())
def test_a_plan_carried_out_leaves_nothing_to_do(
    size: int, by_cores: bool, most: int | None, joins: bool
) -> None:
    world = AnnexWorld(policy(limits=Limits(machines=most)), joins=joins)
    world.some = (annex(machines=0 if by_cores else size, cores=size if by_cores else 0),)
    for _ in range(6):
        world.step()
    assert world.step().actions == ()
    if joins:
        wanted = -(-size // 8) if by_cores else size
        assert len(world.alive) == (wanted if most is None else min(most, wanted))
    else:
        assert 0 < len(world.alive) <= 8, "an image that nobody has seen join is tried first"


@given(st.integers(1, 12))
def test_a_lease_runs_out_and_all_is_over(size: int) -> None:
    world = AnnexWorld(policy())
    world.some = (annex(machines=size, until=NOW + 100),)
    for _ in range(5):
        world.step()
    assert len(world.alive) == size
    world.now = NOW + 100
    world.step()
    assert world.alive == []
    for _ in range(7):  # its cloud is asked for each by its id, twice, 10 s apart
        world.step()
    assert world.step().annexes[0].state == "over"


def test_idle_machines_leave_and_are_not_bought_again() -> None:
    world = AnnexWorld(policy())
    world.some = (annex(machines=3, idle=60.0, until=NOW + 100_000),)
    for _ in range(5):
        world.step()
    assert len(world.alive) == 3
    for _ in range(80):
        made = world.step()
        # What the daemon writes down: those that ended of themselves make the annex smaller.
        gone = [one for one in made.records if one.ended_at is not None]
        assert all(left_of_itself(one) for one in gone)
        left = world.some[0].left + len(gone)
        world.some = (replace(world.some[0], left=left, left_cores=2 * left),)
    assert world.alive == []
    assert (world.some[0].left, len(world.instances)) == (3, 3)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"end": Reason("never-joined", "")}, False),
        ({"end": Reason("vanished", "")}, False),
        ({"end": Reason("spot-notice", "")}, False),
        ({"end": Reason("gone", "")}, False),
        ({"end": Reason("powered-off", "")}, True),
        ({"end": Reason("operator", "")}, True),
        ({"end": Reason(LET_GO, "")}, True),
        ({"end": Reason("gone", ""), "drain": ("idle-limit", True)}, True),
        ({"end": Reason("gone", ""), "drain": ("idle-limit", False)}, False),
        ({"end": Reason("gone", ""), "drain": ("spot-notice", True)}, False),
        ({"end": Reason("powered-off", ""), "drain": ("lease", True)}, False),
    ],
)
def test_who_has_left_of_itself(changes: dict[str, Any], left: bool) -> None:
    drain = changes.pop("drain", None)
    if drain is not None:
        code, accepted = drain
        changes["drain"] = DrainRecord(DrainMode.EMPTY, NOW, Reason(code, ""), NOW if accepted else None)
    assert left_of_itself(record("i-1", ended_at=NOW, **changes)) is left


def test_an_annexes_machines_may_be_launched_and_idle_as_long_as_it_says() -> None:
    worker = policy().classes["default"]
    assert refusal(BIG, worker, "img") is None
    assert refusal(replace(annex(), for_all=True).variant, worker, "img") is None
    assert refusal(Variant(user="alice"), worker, "img") is not None
    private = replace(worker, owner_only=True)
    assert refusal(BIG, private, "img") is None
    assert refusal(replace(annex(), for_all=True).variant, private, "img") is not None
    assert idle_limit(replace(worker, keep_alive_max=10.0), BIG) == 900.0


def test_a_job_that_runs_beyond_the_lease_is_bought_another_machine() -> None:
    """An hour of work finds no room on a machine whose lease ends in ten minutes."""
    kept = record("i-1", variant=BIG, joined_at=NOW - 3500, last_claimed_at=NOW - 5, job_starts=3)
    shown = snapshot(
        instances=[instance("i-1", CloudState.RUNNING)],
        slots=[slot("i-1")],
        records=[kept],
        groups=[group("g", 1, run_time=3600.0, longest=3600.0)],
        offers=[offer("small")],
    )
    for until, launches in ((600.0, 1), (7200.0, 0)):
        seen = with_annexes(shown, [annex(until=NOW + until)])
        assert len(launched(plan(seen, policy()))) == launches


def test_what_is_bought_for_an_annex_is_room_for_jobs_at_once() -> None:
    seen = with_annexes(snapshot(groups=[group("g", 5)]), [annex(machines=2)])
    made = launched(plan(seen, policy()))
    assert [(one.count, one.annex is None) for one in made if one.annex is not None] == [(2, False)]
    assert [one.count for one in made if one.annex is None] == [1], "four of five find room on the annex"


def test_no_machine_of_an_annex_is_kept_for_the_next_wave_of_jobs() -> None:
    """One of its class is: machines like it were wanted again soon after as long an idle time."""
    told = {"joined_at": NOW - 3500, "last_claimed_at": NOW - 650, "job_starts": 3, "gaps": (700.0,) * 6}
    for text, drained in ((PLAIN, []), (replace(annex(), idle=600.0).variant, ["i-1"])):
        shown = snapshot(
            instances=[instance("i-1")], slots=[slot("i-1")], records=[record("i-1", variant=text, **told)]
        )
        shown = replace(shown, ledger=replace(shown.ledger, boots={("img", "small"): (300.0,)}))
        made = plan(with_annexes(shown, [annex(idle=600.0)]), policy())
        assert [one.machine for one in made.actions if isinstance(one, Drain)] == drained


def test_one_that_ended_itself_with_its_lease_is_gone_for_that() -> None:
    kept = gone("i-1", variant=BIG, gone_heard=0.0)
    over = instance("i-1", CloudState.TERMINATED)
    shown = snapshot(instances=[over], found={"i-1": over}, records=[kept])
    for until, code in ((NOW - 5, "lease-over"), (NOW + 5, "gone")):
        made = plan(with_annexes(shown, [annex(until=until)]), policy())
        assert [one.end.code for one in made.records if one.end] == [code]
        assert [one.code for one in made.warnings] == (["gone"] if code == "gone" else [])
