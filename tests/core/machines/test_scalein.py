"""Which idle machines go for want of work, which stay, and what is said of each."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    DOWN,
    NOW,
    instance,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
    worker,
)
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.entries import by_rank
from updraft.core.machines.pressing import CALM, Pressing
from updraft.core.machines.scalein import AHEAD, ScaleIn, scale_in
from updraft.core.model import (
    Billing,
    CloudView,
    DrainMode,
    LedgerView,
    MachineRecord,
    Phase,
    Snapshot,
    Unknown,
    variant,
)
from updraft.core.reasons import moment
from updraft.core.settings import CloudRule, Policy

IDLE = worker().idle_limit
HOUR = 3600.0
PRESSED = Pressing(1, anywhere=True)
KEEP_LONG = variant("keep_alive=5000")


def joined(name: str, idle: float = IDLE, **changes: object) -> MachineRecord:
    """The record of a machine that has been in the pool, and for so long without a claim."""
    return record(name, joined_at=NOW - 3500, last_claimed_at=NOW - idle, **changes)


def pool(*records: MachineRecord, busy: frozenset[str] = frozenset(), **changes: object) -> Snapshot:
    """Joined machines with these records; the `busy` ones have a claim."""
    return snapshot(
        instances=[instance(one.id) for one in records],
        slots=[slot(one.id, busy=one.id in busy) for one in records],
        records=records,
        **changes,  # type: ignore[arg-type]
    )


def decided(
    shown: Snapshot,
    rules: Policy,
    *,
    promised: int = 0,
    needed: frozenset[tuple[str, str]] = frozenset(),
    complete: bool = True,
    pressing: Pressing = CALM,
) -> ScaleIn:
    """What is decided of all machines of this snapshot that have joined."""
    cache = MachineCache()
    cache.look(shown, rules)
    entries = [one for one in cache.entries.values() if one.machine.phase is Phase.JOINED]
    staying = sorted(entries, key=by_rank)
    return scale_in(staying, {"default": promised}, needed, complete, shown, rules, pressing)


def said(found: ScaleIn) -> dict[str, str]:
    """What is said of each idle machine; those that go in capitals."""
    goes = {drain.machine for drain in found.drains}
    codes = {one.machine: one.reason.code for one in found.outlooks.values()}
    return {name: code.upper() if name in goes else code for name, code in sorted(codes.items())}


@pytest.mark.parametrize(
    ("shown", "rules", "words", "expected"),
    [
        (pool(joined("i-1")), policy(), {}, "IDLE-LIMIT"),
        (pool(joined("i-1", IDLE - 1)), policy(), {}, "idle"),
        (pool(joined("i-1", IDLE - 1)), policy(worker(idle_limit=60.0)), {}, "IDLE-LIMIT"),
        (pool(replace(joined("i-1"), last_claimed_at=None)), policy(), {}, "idle"),
        (pool(joined("i-1")), policy(), {"needed": frozenset({("c1", "i-1")})}, "needed"),
        (pool(joined("i-1")), policy(), {"needed": frozenset({("c2", "i-1")})}, "IDLE-LIMIT"),
        (pool(joined("i-1")), policy(), {"complete": False}, "queue-unknown"),
        (pool(joined("i-1")), policy(worker(min_machines=1)), {}, "minimum"),
        (pool(joined("i-1")), policy(worker(min_machines=1)), {"promised": 1}, "IDLE-LIMIT"),
        (pool(joined("i-1", variant=KEEP_LONG)), policy(worker(min_machines=1)), {}, "IDLE-LIMIT"),
        (pool(joined("i-1", IDLE - 1)), policy(), {"pressing": PRESSED}, "MAKE-ROOM"),
        (pool(joined("i-1", IDLE - 1)), policy(), {"pressing": PRESSED, "complete": False}, "idle"),
        (pool(joined("i-1", IDLE - 1)), policy(), {"pressing": Pressing(1)}, "idle"),
        (pool(joined("i-1", 0)), policy(worker(min_machines=1)), {"pressing": PRESSED}, "minimum"),
    ],
)
def test_what_becomes_of_one_idle_machine(
    shown: Snapshot, rules: Policy, words: dict[str, object], expected: str
) -> None:
    found = decided(shown, rules, **words)  # type: ignore[arg-type]
    assert said(found) == {"i-1": expected}


def billed(period: float, least: float = 0.0) -> Policy:
    """A policy whose cloud bills in such steps."""
    return policy(clouds={"c1": CloudRule(billing=Billing(period, least))})


@pytest.mark.parametrize(
    ("age", "rules", "expected"),
    [
        (1800, billed(HOUR), "paid-for"),
        (HOUR - AHEAD - 1, billed(HOUR), "paid-for"),
        (HOUR - AHEAD, billed(HOUR), "IDLE-LIMIT"),
        (HOUR - 1, billed(HOUR), "IDLE-LIMIT"),
        (HOUR + 1, billed(HOUR), "paid-for"),
        (1800, billed(0.0), "IDLE-LIMIT"),
        (1800, billed(0.0, least=HOUR), "paid-for"),
        (HOUR + 1, billed(0.0, least=HOUR), "IDLE-LIMIT"),
        (1830, billed(60.0), "IDLE-LIMIT"),
        (200, billed(0.0, least=3 * AHEAD), "IDLE-LIMIT"),
    ],
)
def test_a_paid_hour_is_used_before_the_machine_goes(age: float, rules: Policy, expected: str) -> None:
    """By the minute nobody waits: the way out takes longer."""
    shown = pool(joined("i-1", requested_at=NOW - age))
    assert said(decided(shown, rules)) == {"i-1": expected}


def test_it_says_until_when_the_machine_is_paid_for() -> None:
    (outlook,) = decided(pool(joined("i-1", requested_at=NOW - 1800)), billed(HOUR)).outlooks.values()
    assert outlook.deadline == NOW + 1800 - AHEAD
    assert moment(NOW + 1800 - AHEAD) in outlook.reason.text


def test_a_machine_that_has_outstayed_its_limit_by_a_paid_hour_goes_whenever_a_look_comes() -> None:
    shown = pool(joined("i-1", idle=IDLE + HOUR, requested_at=NOW - 3 * HOUR - 1800))
    assert said(decided(shown, billed(HOUR))) == {"i-1": "IDLE-LIMIT"}


def test_a_machine_that_is_paid_for_makes_room_for_a_job_of_high_priority() -> None:
    shown = pool(joined("i-1", requested_at=NOW - 1800))
    assert said(decided(shown, billed(HOUR), pressing=PRESSED)) == {"i-1": "MAKE-ROOM"}


def test_a_machine_asked_for_by_hand_goes_at_its_own_idle_limit() -> None:
    shown = pool(joined("i-1", requested_at=NOW - 1800, variant=variant("annex=a")))
    assert said(decided(shown, billed(HOUR)))["i-1"] == "IDLE-LIMIT"


def test_it_says_when_the_machine_would_go() -> None:
    (outlook,) = decided(pool(joined("i-1", IDLE - 25)), policy()).outlooks.values()
    assert outlook.deadline == NOW + 25


def test_nothing_goes_on_a_cloud_that_is_silent() -> None:
    shown = pool(joined("i-1"))
    seen = MachineCache()
    seen.look(shown, policy())
    staying = list(seen.entries.values())
    down = Unknown(DOWN, NOW)
    silent = replace(shown, clouds={"c1": CloudView(down, down, down)})
    for pressing in (CALM, PRESSED):
        found = scale_in(staying, {}, frozenset(), True, silent, policy(), pressing)
        assert said(found) == {"i-1": "cloud-silent"}


def test_the_dearest_and_then_the_oldest_go_and_the_minimum_stays() -> None:
    shown = pool(
        joined("cheap", price=0.1),
        joined("dear", price=0.3),
        joined("old", price=0.1, requested_at=NOW - 9999),
        joined("unpriced", price=None),
    )
    expected = ["unpriced", "dear", "old", "cheap"]
    for least in range(5):
        found = decided(shown, policy(worker(min_machines=least)))
        assert [drain.machine for drain in found.drains] == expected[: 4 - least]


def test_busy_machines_count_towards_the_minimum_and_nothing_is_said_of_them() -> None:
    shown = pool(joined("i-1"), joined("i-2"), busy=frozenset({"i-1"}))
    assert said(decided(shown, policy(worker(min_machines=1)))) == {"i-2": "IDLE-LIMIT"}
    assert said(decided(shown, policy(worker(min_machines=2)))) == {"i-2": "minimum"}


def test_for_each_pressing_job_one_machine_goes_before_its_time() -> None:
    shown = pool(*(joined(f"i-{at}", 1) for at in range(4)))
    found = decided(shown, policy(), pressing=Pressing(2, anywhere=True))
    assert sorted(said(found).values()) == ["MAKE-ROOM", "MAKE-ROOM", "idle", "idle"]


@pytest.mark.parametrize(
    ("pressing", "helps"),
    [
        (Pressing(1, clouds=frozenset({"c1"})), True),
        (Pressing(1, clouds=frozenset({"c2"})), False),
        (Pressing(1, classes=frozenset({"default"})), True),
        (Pressing(1, classes=frozenset({"other"})), False),
        (Pressing(0, anywhere=True), False),
    ],
)
def test_only_where_it_helps(pressing: Pressing, helps: bool) -> None:
    found = decided(pool(joined("i-1", 1)), policy(), pressing=pressing)
    assert bool(found.drains) == helps


def test_one_that_will_soon_be_wanted_again_stays_unless_somebody_is_pressed() -> None:
    """Five machines of the class were idle for a little longer than this one, and a boot takes 100 s."""
    before = [replace(joined(f"o-{at}"), gaps=(IDLE + 10,), ended_at=NOW - 50) for at in range(5)]
    shown = pool(joined("i-1"))
    ledger = LedgerView(
        machines=(*before, *shown.ledger.machines), boots={("img", "small"): (100.0, 100.0, 100.0)}
    )
    shown = replace(shown, ledger=ledger)
    assert said(decided(shown, policy()))["i-1"] == "wave-expected"
    assert said(decided(shown, policy(), pressing=PRESSED))["i-1"] == "MAKE-ROOM"


def test_what_is_not_configured_any_more_is_none_of_its_business() -> None:
    other = replace(policy(), classes={"other": worker("other")})
    assert decided(pool(joined("i-1")), other) == ScaleIn((), {})


@given(
    snapshots(),
    policies(),
    st.booleans(),
    st.sampled_from([CALM, PRESSED, Pressing(9, clouds=frozenset({"c2"}))]),
    st.sets(st.sampled_from([("c1", f"i-{n}") for n in range(5)])),
)
def test_whatever_is_there_only_idle_machines_go_that_nothing_holds(
    shown: Snapshot,
    rules: Policy,
    complete: bool,
    pressing: Pressing,
    needed: set[tuple[str, str]],
) -> None:
    cache = MachineCache()
    cache.look(shown, rules)
    machines = {one.key: one.machine for one in cache.entries.values() if one.machine.phase is Phase.JOINED}
    found = decided(shown, rules, needed=frozenset(needed), complete=complete, pressing=pressing)
    gone = [(drain.cloud, drain.machine) for drain in found.drains]
    assert len(set(gone)) == len(gone)
    assert not set(gone) & needed
    assert complete or not gone
    for drain in found.drains:
        machine = machines[drain.cloud, drain.machine]
        assert drain.mode is DrainMode.EMPTY
        assert not machine.busy
        idle = NOW - machine.record.last_claimed_at if machine.record.last_claimed_at is not None else 0
        assert idle >= rules.classes["default"].idle_limit or drain.reason.code == "make-room"
    early = [drain for drain in found.drains if drain.reason.code == "make-room"]
    assert len(early) <= pressing.jobs
    plain = [one for one in machines.values() if not one.record.variant]
    left = len(plain) - len(gone)
    assert not gone or left >= rules.classes["default"].min_machines
