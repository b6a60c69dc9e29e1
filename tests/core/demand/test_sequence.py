"""Which jobs wait their turn, which are worth a machine; and room kept ready by the clock.

Covers `sequence`, `runtimes` and `headroom`.
"""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, policy, worker
from updraft.core.demand.headroom import due, spare_groups
from updraft.core.demand.runtimes import expected, needs
from updraft.core.demand.sequence import BootPace, Paces, turns
from updraft.core.matching.verdicts import table_of
from updraft.core.model import JobGroup, Kind, LedgerView, Offer, Resources, Verdict
from updraft.core.settings import Spare

MINUTE = 60.0
ASK = Resources(1, 1024, 1024)
BOOT = BootPace(boot=100.0, wait=100.0)


def group(run_time: float | None, running: int = 0, waited: float = 0.0) -> JobGroup:
    return JobGroup(
        "g", "head", "ada", "ada@x", "[]", ASK, 100, running=running, oldest=NOW - waited, run_time=run_time
    )


def test_a_job_whose_run_time_nobody_knows_gets_a_slot() -> None:
    assert turns(group(None), 7, 0, 0, BOOT, NOW).slots == 7
    assert turns(group(10.0), 7, 0, 0, None, NOW).slots == 7


def test_long_jobs_get_a_slot_each() -> None:
    assert turns(group(3600.0), 50, 0, 0, BOOT, NOW).slots == 50


def test_short_jobs_share_a_slot_in_sequence() -> None:
    found = turns(group(10.0), 100, 0, 0, BOOT, NOW)
    assert (found.slots, found.in_turn) == (10, 90)
    assert found.reason is not None
    assert "90 jobs wait their turn" in found.reason.text


def test_jobs_that_would_be_gone_before_a_machine_has_joined_buy_none() -> None:
    """Two running jobs of 10 s end twenty times each in the 200 s that a boot and the wait take."""
    assert turns(group(10.0, running=2), 40, 0, 0, BOOT, NOW).slots == 0
    assert turns(group(10.0, running=2), 51, 0, 0, BOOT, NOW).slots == 2


def test_free_slots_and_those_that_come_take_several_in_turn() -> None:
    assert turns(group(50.0), 3, 1, 0, BOOT, NOW).slots == 0
    assert turns(group(50.0), 1, 0, 1, BOOT, NOW).slots == 0
    assert turns(group(50.0), 4, 1, 0, BOOT, NOW).slots == 1


def test_an_expectation_that_does_not_come_about_is_given_up() -> None:
    assert turns(group(10.0, running=2, waited=1000.0), 40, 0, 0, BOOT, NOW).slots == 40


def test_no_wait_is_a_slot_for_each() -> None:
    assert turns(group(10.0), 9, 0, 0, replace(BOOT, wait=0.0), NOW).slots == 9


@given(
    run=st.floats(0.1, 1e6),
    left=st.integers(0, 10_000),
    here=st.integers(0, 100),
    coming=st.integers(0, 100),
    running=st.integers(0, 100),
)
def test_nobody_is_forgotten(run: float, left: int, here: int, coming: int, running: int) -> None:
    """Each job gets a slot or waits its turn, and somebody works while any waits for a turn."""
    found = turns(group(run, running=running), left, here, coming, BOOT, NOW)
    assert found.slots + found.in_turn == left
    assert found.slots >= 0
    assert found.in_turn >= 0
    if found.in_turn:
        assert found.slots + here + coming + running > 0


def test_how_fast_machines_come_is_learned_and_the_impatient_class_decides() -> None:
    fast, slow = _offer("quick", "small"), _offer("slow", "large")
    rules = policy(worker("quick"), worker("slow", wait_target=30.0))
    seen = LedgerView(boots={("img", "small"): (10.0, 20.0, 30.0), ("img", "large"): (90.0,)})
    waiting = (replace(group(60.0), key="both"), replace(group(60.0), key="quick"))
    kinds = [Kind(offer.kind, "[]", ASK) for offer in (fast, slow)]
    fits = {("both", kind.key): Verdict(1, ASK) for kind in kinds} | {("quick", fast.kind): Verdict(1, ASK)}
    table = table_of(fits, waiting, kinds)
    paces = Paces((fast, slow), table, seen, rules)
    assert paces.of(waiting[0]) == BootPace(90.0, 30.0)
    assert paces.of(waiting[1]) == BootPace(20.0, 20.0)
    assert Paces((fast, slow), table, LedgerView(), rules).of(waiting[0]) is None
    assert Paces((), table, seen, rules).of(waiting[0]) is None


def _offer(worker_class: str, flavor: str) -> Offer:
    return Offer(worker_class, "c1", "a", flavor, "on-demand", "img", "g1", ASK, f"{worker_class}/{flavor}")


def test_what_a_job_may_need_is_its_own_bound_or_what_is_expected() -> None:
    assert needs(group(3600.0)) == 3600.0
    assert needs(replace(group(3600.0), longest=600.0)) == 600.0
    assert needs(group(None)) == 0.0


def test_few_finished_jobs_say_little_and_many_say_much() -> None:
    assert expected(0, 0.0) is None
    few, many = expected(1, 10.0), expected(1000, 10_000.0)
    assert few is not None
    assert many is not None
    assert few > 1000
    assert many < 15


# ------------------------------------------------------------------------------------------- room kept ready

ROME = ZoneInfo("Europe/Rome")
WORKING = Spare(4, ASK, frozenset(range(5)), 8 * 3600.0, 18 * 3600.0, ROME)
NIGHT = Spare(2, ASK, frozenset({4}), 22 * 3600.0, 6 * 3600.0, UTC)


def _at(*when: int, zone: ZoneInfo | None = None) -> float:
    year, month, day, hour, minute = when
    return datetime(year, month, day, hour, minute, tzinfo=zone or UTC).timestamp()


def test_room_is_kept_in_its_hours_only() -> None:
    assert due(WORKING, _at(2026, 11, 20, 8, 0, zone=ROME))
    assert due(WORKING, _at(2026, 11, 20, 17, 59, zone=ROME))
    assert not due(WORKING, _at(2026, 11, 20, 18, 0, zone=ROME))
    assert not due(WORKING, _at(2026, 11, 21, 12, 0, zone=ROME)), "that is a Saturday"
    assert due(WORKING, _at(2026, 7, 20, 6, 30)), "08:30 in Rome's summer"


def test_hours_over_midnight_belong_to_the_day_on_which_they_begin() -> None:
    assert due(NIGHT, _at(2026, 11, 20, 23, 0))
    assert due(NIGHT, _at(2026, 11, 21, 5, 0))
    assert not due(NIGHT, _at(2026, 11, 21, 23, 0))
    assert not due(NIGHT, _at(2026, 11, 20, 5, 0))


def test_spare_room_is_a_group_of_jobs_for_its_class() -> None:
    rules = policy(worker("a", spare=(WORKING,)), worker("b", spare=(Spare(3, ASK),)))
    weekend = _at(2026, 11, 21, 12, 0)
    (found,) = spare_groups(rules, weekend)
    assert (found.key, found.idle, found.request) == ("spare/b/0", 3, ASK)
    assert 'TARGET.UpdraftClass == "b"' in found.ad
    assert len(spare_groups(rules, _at(2026, 11, 20, 12, 0))) == 2
    assert spare_groups(replace(rules, closing=True), weekend) == ()
