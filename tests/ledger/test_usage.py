"""The records of what was used: added to, kept for good, the same after a restart, bounded."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from updraft.core.model import Reason
from updraft.core.model.used import (
    ABSENT,
    Booking,
    InPool,
    MachineFacts,
    MachineId,
    Meters,
    Sighting,
    UserClaim,
)
from updraft.core.settings import DAY
from updraft.core.usage.booking import turn
from updraft.core.usage.days import day_of
from updraft.ledger import Ledger, Reader
from updraft.ledger.migrations import MIGRATIONS, migrate
from updraft.ledger.usage import MOST_USERS

T = 20_000 * DAY + 1000.0
TODAY = day_of(T)
FACTS = MachineFacts(
    "pool", "c1", "m1", "north", "z1", "small", "spot", "img", "default", "", "", 4, 8192, 1, T, 0.36, "EUR",
    "site", "hepscore23", 12.5,
)  # fmt: skip
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3b3JrZXIifQ.c2lnbmF0dXJl"  # noqa: S105
ALICE = UserClaim("alice@pool", "physics", 2, 1, T)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def busy(*claims: UserClaim) -> Sighting:
    return Sighting(FACTS, True, InPool(True, tuple(sorted(claims)), 0, T))


def over(at: float, why: str = "idle") -> Sighting:
    return Sighting(FACTS, None, ABSENT, (at, Reason("idle-limit", why)))


def book(ledger: Ledger, looks: Mapping[float, Sighting | None], meters: Meters | None = None) -> Meters:
    """These looks, each written."""
    meters = ledger.meters() if meters is None else meters
    for at, one in looks.items():
        seen: dict[MachineId, Sighting] = {} if one is None else {one.facts.key: one}
        meters, books = turn(meters, seen, at, booked=ledger.booked(seen.keys() - meters.machines.keys()))
        ledger.book(books)
    return meters


def asked(path: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as rows:
        return rows.execute(sql).fetchall()


def test_a_machine_that_works_and_ends(path: Path) -> None:
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(), T + 20: busy(ALICE), T + 40: busy(), T + 50: over(T + 50)})
        assert ledger.meters() == Meters(T + 50)
    columns = "day, cloud, machine, region, market, cores, gpus, alive, joined, claimed, core_seconds, ended"
    [row] = asked(path, f"SELECT {columns}, why FROM usage_days d JOIN usage_machines m ON m.id = machine")  # noqa: S608
    assert row == (TODAY, "c1", 1, "north", "spot", 4, 1, 50, 40, 20, 40, "idle-limit", "idle")
    [row] = asked(path, "SELECT user, grp, core_seconds, gpu_seconds FROM usage_users")
    assert row == ("alice@pool", "physics", 40, 20)
    [row] = asked(path, "SELECT price, currency, source, benchmark, score FROM usage_days")
    assert row == (0.36, "EUR", "site", "hepscore23", 12.5)


def test_a_restart_goes_on_where_it_was(path: Path) -> None:
    looks = {T: None, T + 10: busy(ALICE), T + 110: busy(ALICE)}
    with Ledger(path) as ledger:
        meters = book(ledger, looks)
    with Ledger(path) as ledger:
        again = ledger.meters()
        assert again == meters
        book(ledger, {T + 130: busy(ALICE), T + 150: over(T + 150)})
    with Reader(path) as reader:
        assert reader.meters().machines == {}
    assert asked(path, "SELECT alive, core_seconds, unseen FROM usage_days") == [(150, 280, 0)]


def test_one_that_was_taken_for_ended_and_is_back_is_counted_once(path: Path) -> None:
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(), T + 20: over(T + 20), T + 60: busy(), T + 70: over(T + 70)})
    assert asked(path, "SELECT alive, unseen FROM usage_days") == [(70, 40)]


def test_an_id_that_comes_back_is_another_machine(path: Path) -> None:
    later = replace(FACTS, begin=T + 100, flavor="large", cores=8)
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(), T + 20: over(T + 20)})
        book(ledger, {T + 110: replace(busy(), facts=later)})
        book(ledger, {T + 120: replace(over(T + 120), facts=later)})
    rows = asked(
        path,
        "SELECT flavor, alive FROM usage_days d JOIN usage_machines m ON m.id = d.machine ORDER BY asked",
    )
    assert rows == [("small", 20), ("large", 20)]


def test_days_are_cut_at_midnight_and_summed_up_then(path: Path) -> None:
    midnight = (TODAY + 1) * DAY
    facts = replace(FACTS, begin=midnight - 200)

    def busy(*claims: UserClaim) -> Sighting:
        return Sighting(facts, True, InPool(True, claims, 0, T))

    looks = {T: None, **{at: busy(ALICE) for at in (midnight - 190, midnight - 100)}}
    with Ledger(path) as ledger:
        meters = book(ledger, looks)
        assert asked(path, "SELECT count(*) FROM usage_summed") == [(0,)]
        meters = book(ledger, {midnight + 100: busy(ALICE)}, meters)
        assert asked(path, "SELECT day, core_seconds FROM usage_people") == [
            (TODAY, 2 * 190),
        ]
        place = asked(path, "SELECT day, machines, alive, room, core_seconds FROM usage_places")
        assert place == [
            (TODAY, 1, 200, 4 * 200, 2 * 190),
        ]
        # A clock that was ahead: the day goes on, and is no longer summed up.
        book(ledger, {midnight - 50: busy(), midnight - 40: busy(ALICE)}, meters)
        assert asked(path, "SELECT count(*) FROM usage_summed") == [(0,)]
        assert asked(path, "SELECT count(*) FROM usage_people") == [(0,)]


def test_what_was_paid_is_parted_by_machine(path: Path) -> None:
    """Of 4 cores alice has 2 and bob 1 for half of the time; what idles is theirs by their shares."""
    bob, day = UserClaim("bob@pool", "", 1, 0, T), (TODAY + 1) * DAY
    facts = replace(FACTS, begin=day)
    both = Sighting(facts, True, InPool(True, (ALICE, bob), 0, T))
    none = Sighting(facts, True, InPool(True, (), 0, T))
    with Ledger(path) as ledger:
        looks = {day - 1: None, day: both}
        looks |= {day + 200 * each: both for each in range(1, 18)}
        looks |= {day + 3600: none}
        looks |= {day + 3600 + 200 * each: none for each in range(1, 18)}
        book(ledger, {**looks, day + 7200: replace(over(day + 7200), facts=facts)})
        book(ledger, {day + 2 * DAY: None})
        with ledger._writing() as rows:
            from updraft.ledger.usage_sums import sum_up

            sum_up(rows, TODAY + 1, over=True)
    found = asked(path, "SELECT user, cost, idle_cost, idle_core_seconds FROM usage_people ORDER BY user")
    paid = 2 * 0.36
    assert found[0][1:] == pytest.approx((paid / 4, paid * 5 / 8 * 2 / 3, 18000 * 2 / 3))
    assert found[1][1:] == pytest.approx((paid / 8, paid * 5 / 8 / 3, 18000 / 3))


def test_no_number_of_names_fills_the_disk(path: Path) -> None:
    names = [UserClaim(f"u{number}@pool", "", 1, 0, T) for number in range(MOST_USERS + 50)]
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(*names), T + 20: busy(), T + 30: busy(*names), T + 40: busy()})
    rows = asked(path, "SELECT user, core_seconds FROM usage_users ORDER BY core_seconds DESC")
    assert len(rows) == MOST_USERS + 1
    assert rows[0] == ("", pytest.approx(50 * 20 * 4 / len(names)))


def test_no_secret_and_no_odd_text_stays(path: Path) -> None:
    odd = UserClaim(f"{TOKEN}@pool", "\udcff", 1, 0, T)
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(odd), T + 20: busy(), T + 30: over(T + 30, f"said {TOKEN}")})
    assert TOKEN.encode() not in path.read_bytes()


def test_it_is_kept_for_good_and_a_crash_keeps_it_whole(path: Path) -> None:
    with Ledger(path) as ledger:
        book(ledger, {T: None, T + 10: busy(ALICE), T + 20: over(T + 20)})
        ledger.prune(T + 3000 * DAY)
        with pytest.raises(ZeroDivisionError), ledger.together():  # noqa: PT012
            book(ledger, {T + 30: busy(ALICE), T + 40: over(T + 40)})
            raise ZeroDivisionError
    assert asked(path, "SELECT alive FROM usage_days") == [(20,)]


def test_a_ledger_of_an_earlier_updraft_has_no_meters_yet(path: Path) -> None:
    with sqlite3.connect(path, isolation_level=None) as rows:
        migrate(rows, "old", MIGRATIONS[:3])
    with Reader(path) as reader:
        assert reader.meters() == Meters()
    with Ledger(path) as ledger:
        assert ledger.meters() == Meters()
        ledger.book(Booking(T))
        assert ledger.meters() == Meters(T)
