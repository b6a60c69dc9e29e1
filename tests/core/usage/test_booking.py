"""What two looks add to the records: nothing twice, nothing lost, and what nobody knows is neither.

Covers `booking` and `days`.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.core.model import Reason
from updraft.core.model.used import (
    ABSENT,
    Booking,
    InPool,
    MachineDay,
    MachineFacts,
    Meters,
    Sighting,
    UserClaim,
    UserDay,
)
from updraft.core.settings import DAY
from updraft.core.usage.booking import LONGEST, OLDEST, pending, shared, turn
from updraft.core.usage.days import day_of, days

T = 20_000 * DAY + 40_000.0
FACTS = MachineFacts(
    "pool", "c1", "m1", "", "z1", "small", "on-demand", "img", "default", "", "", 4, 8192, 0, T, 0.36
)
KEY = FACTS.key
MIDNIGHT = 20_001 * DAY
END = Reason("idle", "nothing to do")
ALICE, BOB = UserClaim("alice@pool", "", 1, began=T), UserClaim("bob@pool", "physics", 2, began=T)


def seen(pool: InPool | None = ABSENT, *, lives: bool | None = True, **changes: object) -> Sighting:
    return replace(Sighting(FACTS, lives, pool), **changes)  # type: ignore[arg-type]


def ended(at: float, pool: InPool | None = ABSENT) -> Sighting:
    return Sighting(FACTS, None, pool, (at, END))


def busy(*claims: UserClaim, begun: int | None = None, started: float = T) -> InPool:
    return InPool(True, tuple(sorted(claims)), begun, started)


class Told:
    """All that was added up to now."""

    def __init__(self) -> None:
        self.machines: dict[int, MachineDay] = {}
        self.users: dict[tuple[int, str, str], UserDay] = {}

    def add(self, books: Booking) -> "Told":
        for (_, day), (_, row) in books.machines.items():
            known = self.machines.setdefault(day, MachineDay(row.begin, row.end))
            known.begin, known.end = min(known.begin, row.begin), max(known.end, row.end)
            known.ended = row.ended or known.ended
            _plus(known, row, skip=("begin", "end", "ended"))
        for (_, day, user, group), used in books.users.items():
            _plus(self.users.setdefault((day, user, group), UserDay()), used)
        return self

    def sum(self, name: str) -> float:
        return sum(getattr(row, name) for row in self.machines.values())

    def of(self, name: str, user: str = "alice@pool") -> float:
        return sum(getattr(row, name) for (_, who, _), row in self.users.items() if who == user)


def _plus(known: object, more: object, skip: Sequence[str] = ()) -> None:
    for name in more.__dataclass_fields__:  # type: ignore[attr-defined]
        if name not in skip:
            setattr(known, name, getattr(known, name) + getattr(more, name))


def through(
    looks: Iterable[tuple[float, Sighting | None]], jumps: Mapping[float, bool] | None = None
) -> tuple[Told, Meters]:
    """What these looks have added, with what the meters have on top; the first is of an empty pool."""
    told, meters = Told(), Meters()
    for at, sighting in looks:
        found = {} if sighting is None else {KEY: sighting}
        meters, books = turn(meters, found, at, jumped=(jumps or {}).get(at, False))
        told.add(books)
    return told.add(pending(meters)), meters


def test_a_life_of_a_machine() -> None:
    told, meters = through(
        [
            (T - 2, None),
            (T + 2, seen()),
            (T + 100, seen(busy())),
            (T + 200, seen(busy(ALICE, BOB))),
            (T + 300, seen(busy(BOB))),
            (T + 400, ended(T + 400)),
        ]
    )
    row = told.machines[day_of(T)]
    assert (row.begin, row.end, row.ended) == (T, T + 400, END)
    assert (row.alive, row.joined, row.claimed, row.unseen, row.doubtful) == (400, 300, 200, 0, 0)
    assert row.cost == pytest.approx(400 * 0.36 / 3600)
    assert (told.of("core_seconds"), told.of("core_seconds", "bob@pool")) == (100, 400)
    assert row.core_seconds == 500
    assert meters.machines == {}


@pytest.mark.parametrize(
    ("period", "least", "lives", "paid"),
    [
        (3600.0, 0.0, 400.0, 3600.0),
        (3600.0, 0.0, 3600.0, 3600.0),
        (3600.0, 0.0, 3601.0, 7200.0),
        (60.0, 0.0, 61.0, 120.0),
        (0.0, 600.0, 400.0, 600.0),
        (0.0, 600.0, 700.0, 700.0),
        (60.0, 600.0, 630.0, 660.0),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_what_is_begun_is_paid_for(period: float, least: float, lives: float, paid: float) -> None:
    """However often somebody looks, and over midnight."""
    facts = replace(FACTS, period=period, least=least, begin=MIDNIGHT - 200)
    sight = Sighting(facts, True, ABSENT)
    end = facts.begin + lives
    looks = [(facts.begin - 1, None), *((facts.begin + at, sight) for at in range(0, int(lives), 90))]
    told, _ = through([*looks, (end, Sighting(facts, None, ABSENT, (end, END)))])
    assert told.sum("cost") == pytest.approx(paid * 0.36 / 3600)
    assert told.sum("alive") == pytest.approx(lives)


def test_what_has_not_changed_is_not_written() -> None:
    meters, _ = turn(Meters(), {}, T)
    meters, _ = turn(meters, {KEY: seen(busy(ALICE))}, T + 2)
    for at in range(4, 1000, 2):
        meters, books = turn(meters, {KEY: seen(busy(ALICE))}, T + at)
        assert not books.machines
        assert not books.meters
    assert Told().add(pending(meters)).of("core_seconds") == 996


def test_what_the_price_of_is_not_known_costs_nothing_that_is_known() -> None:
    free = replace(FACTS, price=None)
    told, _ = through([(T, None), (T + 50, Sighting(free, True, ABSENT)), (T + 100, ended(T + 100))])
    assert told.sum("unpriced") + told.sum("cost") * 3600 / 0.36 == pytest.approx(100)
    assert told.sum("unpriced") == 50


def test_a_controller_that_was_away_knows_that_it_lived_and_not_what_it_did() -> None:
    away = T + 2 * DAY
    told, _ = through([(T, None), (T + 100, seen(busy(ALICE))), (away, seen(busy(ALICE)))])
    assert told.sum("alive") == 2 * DAY
    assert told.sum("unseen") == 2 * DAY - 100
    assert told.of("core_seconds") == 0
    assert len(told.machines) == 3


def test_what_ended_while_nobody_looked_is_doubtful() -> None:
    told, _ = through([(T, None), (T + 100, seen(busy())), (T + 5000, ended(T + 5000))])
    assert (told.sum("alive"), told.sum("doubtful")) == (100, 4900)
    told, _ = through([(T, None), (T + 100, seen(busy())), (T + 5000, ended(T + 130))])
    assert (told.sum("alive"), told.sum("doubtful")) == (130, 0), "the ledger knows when"


def test_a_cloud_that_is_silent_is_waited_for() -> None:
    looks = [(T, None), (T + 100, seen(busy(ALICE)))]
    silent = [(T + 200 + each, seen(busy(ALICE), lives=None)) for each in range(0, 2000, 100)]
    told, _ = through([*looks, *silent])
    assert told.sum("alive") == 200, "no further than it was shown"
    told, _ = through([*looks, *silent, (T + 2200, seen(busy(ALICE)))])
    assert (told.sum("alive"), told.sum("unseen"), told.sum("doubtful")) == (2200, 2000, 0)
    told, _ = through([*looks, *silent, (T + 2200, ended(T + 2200))])
    assert (told.sum("alive"), told.sum("unseen"), told.sum("doubtful")) == (200, 0, 2000)


def test_what_the_cloud_lists_no_more_costs_nothing_until_it_is_back() -> None:
    looks = [(T, None), (T + 100, seen(busy(ALICE)))]
    missing = [(T + 110 + each, seen(None, lives=False)) for each in range(0, 1000, 10)]
    told, _ = through([*looks, *missing, (T + 1110, ended(T + 1110))])
    assert (told.sum("alive"), told.sum("doubtful")) == (110, 0)
    told, _ = through([*looks, *missing, (T + 1110, seen(busy(ALICE)))])
    assert (told.sum("alive"), told.sum("unseen")) == (1110, 1000)
    silent = [(T + 110 + each, seen(None, lives=None)) for each in range(0, 1000, 100)]
    told, _ = through([*looks, *silent, (T + 1110, seen(None, lives=False)), (T + 1130, ended(T + 1130))])
    assert (told.sum("alive"), told.sum("doubtful")) == (110, 1000)


def test_a_clock_that_is_set_counts_no_time_that_was_not() -> None:
    looks = [(T, None), (T + 2, seen(busy(ALICE))), (T + 100, seen(busy(ALICE)))]
    told, _ = through([*looks, (T + 9 * DAY, seen(busy(ALICE)))], {T + 9 * DAY: True})
    assert (told.sum("alive"), told.of("core_seconds")) == (100, 98)
    assert told.sum("doubtful") == 9 * DAY - 100
    back = [(T - 5000, seen(busy(ALICE))), (T - 4900, seen(busy(ALICE)))]
    told, _ = through([*looks, *back], {T - 5000: True})
    assert (told.sum("alive"), told.of("core_seconds"), told.sum("doubtful")) == (200, 198, 0)


def test_a_machine_of_before_the_records_counts_from_its_begin() -> None:
    old = replace(FACTS, begin=T - 3 * DAY)
    meters, books = turn(Meters(), {KEY: Sighting(old, True, busy(ALICE, begun=70))}, T)
    told = Told().add(books)
    assert (told.sum("alive"), told.sum("unseen"), told.sum("jobs")) == (3 * DAY, 3 * DAY, 0)
    odd = replace(FACTS, begin=T - 2 * OLDEST)
    _, books = turn(Meters(), {KEY: Sighting(odd, True, busy(ALICE))}, T)
    assert Told().add(books).sum("alive") == 0
    _, books = turn(meters, {KEY: Sighting(old, True, busy(ALICE, begun=75))}, T + 2)
    assert Told().add(books).of("jobs") == 5


def test_jobs_are_counted_by_the_machine_and_shared_by_cores() -> None:
    told, _ = through(
        [
            (T, None),
            (T + 10, seen(busy(begun=0))),
            (T + 20, seen(busy(ALICE, begun=1))),
            (T + 30, seen(busy(ALICE, BOB, begun=11))),
            (T + 40, seen(busy(begun=11))),
            (T + 50, seen(busy(begun=14))),  # shorter than a look
            (T + 60, seen(busy(ALICE, begun=2, started=T + 55))),  # its startd was started anew
        ]
    )
    assert told.sum("jobs") == 16
    assert (told.of("jobs"), told.of("jobs", "bob@pool"), told.of("jobs", "")) == (1 + 3 + 2, 7, 3)


def test_work_is_lost_with_the_machine_only() -> None:
    running = replace(ALICE, cores=2, began=T + 50)
    waiting = replace(BOB, running=False)
    looks = [(T, None), (T + 10, seen(busy(begun=0))), (T + 100, seen(busy(running, waiting)))]
    told, _ = through([*looks, (T + 150, seen(busy(waiting))), (T + 160, seen())])
    assert told.sum("lost") == 0, "its job ended before"
    for last in (ended(T + 150), ended(T + 150, None), seen(), ended(T + 150, busy(running))):
        told, _ = through([*looks, (T + 150, last), (T + 160, ended(T + 160))])
        assert (told.of("lost"), told.sum("lost")) == (200, 200), last


def test_claims_come_to_no_more_than_was_sold() -> None:
    """Twice as many jobs as cores, or an ad that lies: it is theirs by their shares, and not more."""
    greedy = replace(BOB, cores=10**9, began=-1e12)
    told, _ = through([(T, None), (T + 100, seen(busy(ALICE, greedy))), (T + 200, ended(T + 200, None))])
    assert told.sum("core_seconds") == pytest.approx(4 * 100)
    assert told.of("core_seconds", "bob@pool") == pytest.approx(4 * 100, abs=1e-3)
    assert told.sum("lost") <= 4 * 200
    twice = replace(ALICE, cores=4)
    both = busy(twice, replace(twice, user="eve"))
    told, _ = through([(T, None), (T + 100, seen(both)), (T + 200, seen())])
    assert told.of("core_seconds") == pytest.approx(2 * 100)


@given(
    st.integers(0, 1000), st.dictionaries(st.tuples(st.text(), st.just("")), st.integers(1, 9), min_size=1)
)
def test_what_is_shared_out_is_all_of_it(number: int, weights: dict[tuple[str, str], int]) -> None:
    found = shared(number, weights)
    assert sum(found.values()) == number
    assert all(abs(found[one] - number * weights[one] / sum(weights.values())) < 1 for one in weights)


@given(st.floats(-1e6, 3e9), st.floats(0, 4e5))
def test_days_are_cut_where_they_end(begin: float, length: float) -> None:
    parts = list(days(begin, begin + length))
    assert sum(last - first for _, first, last in parts) == pytest.approx(length, abs=1e-3)
    assert all(day_of(first) == day and last <= (day + 1) * DAY for day, first, last in parts)


# -------------------------------------------------------------------------------------------- properties

POOLS = st.one_of(
    st.none(),
    st.just(ABSENT),
    st.builds(
        lambda some, n: busy(*some, begun=n), st.sets(st.sampled_from([ALICE, BOB])), st.integers(0, 9)
    ),
)
GAPS = st.one_of(st.floats(0.5, 30), st.floats(30, LONGEST - 1), st.floats(LONGEST + 1, 5 * DAY))


@st.composite
def lives(
    draw: st.DrawFn, gaps: st.SearchStrategy[float] = GAPS, end: bool = True, gone: bool | None = None
) -> list[tuple[float, Sighting | None]]:
    """The looks at one machine, from before it was asked for to its end.

    `gone` False is for lives in which the cloud leaves it out now and then.
    """
    at, looks = T + draw(st.floats(0, 10)), [(T - 1.0, None)]
    for pool in draw(st.lists(POOLS, max_size=12)):
        alive = draw(st.sampled_from([True, True, True, None, gone]))
        looks.append((at, seen(pool, lives=alive)))
        at += draw(gaps)
    if end:
        looks.append((at, ended(at)))
    return looks


@given(lives())
def test_the_days_come_to_its_lifetime(looks: list[tuple[float, Sighting | None]]) -> None:
    told, meters = through(looks)
    lifetime = looks[-1][0] - T
    assert told.sum("alive") + told.sum("doubtful") == pytest.approx(lifetime)
    assert meters.machines == {}
    for day, row in told.machines.items():
        assert row.alive + row.doubtful <= DAY * (1 + 1e-9)
        assert row.joined + row.unseen <= row.alive + 1e-6
        assert row.claimed <= row.joined + 1e-6
        assert day * DAY <= row.begin <= row.end <= (day + 1) * DAY
        mine = [used for (when, _, _), used in told.users.items() if when == day]
        for name in ("core_seconds", "jobs", "lost", "gpu_seconds"):
            assert getattr(row, name) == pytest.approx(sum(getattr(one, name) for one in mine))


@given(lives(gone=False))
def test_what_is_left_out_is_no_more_than_its_lifetime(looks: list[tuple[float, Sighting | None]]) -> None:
    told, _ = through(looks)
    assert 0 <= told.sum("alive") + told.sum("doubtful") <= (looks[-1][0] - T) * (1 + 1e-9)


@given(lives(st.floats(0.5, LONGEST - 1)))
def test_each_look_holds_until_the_next(looks: list[tuple[float, Sighting | None]]) -> None:
    told, _ = through(looks)
    used: Counter[str] = Counter()
    for (at, one), (then, _) in itertools.pairwise(looks):
        if one is not None and one.lives and one.pool is not None:
            for claim in one.pool.claims:
                used[claim.user] += claim.cores * (then - at)  # type: ignore[assignment]
    for user in ("alice@pool", "bob@pool"):
        assert told.of("core_seconds", user) == pytest.approx(used[user])


@given(lives(), st.data())
def test_what_is_seen_twice_is_not_counted_twice(
    looks: list[tuple[float, Sighting | None]], data: st.DataObject
) -> None:
    """A look that is made again at the same moment, as after a restart, adds nothing.

    An end is seen once: its record is in the ledger then, and no other look is asked about it.
    """
    again = data.draw(st.integers(0, len(looks) - 2))
    once, twice = through(looks)[0], through([*looks[: again + 1], *looks[again:]])[0]
    for name in ("alive", "joined", "claimed", "unseen", "doubtful", "core_seconds", "cost", "jobs", "lost"):
        assert twice.sum(name) == pytest.approx(once.sum(name)), name


@given(lives(st.floats(0.5, LONGEST / 2 - 1)), st.data())
def test_a_look_that_is_lost_costs_no_more_than_itself(
    looks: list[tuple[float, Sighting | None]], data: st.DataObject
) -> None:
    gone = data.draw(st.integers(1, len(looks) - 1))
    if gone == len(looks) - 1:
        return
    whole, less = through(looks)[0], through([*looks[:gone], *looks[gone + 1 :]])[0]
    length = looks[gone + 1][0] - looks[gone][0]
    assert less.sum("alive") + less.sum("doubtful") == pytest.approx(
        whole.sum("alive") + whole.sum("doubtful")
    )
    for user in ("alice@pool", "bob@pool"):
        assert abs(less.of("core_seconds", user) - whole.of("core_seconds", user)) <= 2 * length + 1e-6


@given(lives(end=False), st.floats(-10 * DAY, 10 * DAY), st.data())
def test_no_clock_makes_more_time_than_there_was(
    looks: list[tuple[float, Sighting | None]], by: float, data: st.DataObject
) -> None:
    if len(looks) < 3:
        return
    where = data.draw(st.integers(2, len(looks) - 1))
    moved = [(at + (by if place >= where else 0), one) for place, (at, one) in enumerate(looks)]
    told, _ = through(moved, {moved[where][0]: True})
    real = looks[-1][0] - T
    # What is within a look's length can't be told from a look.
    assert told.sum("alive") <= real + LONGEST + 1e-6
    assert all(
        getattr(row, name) >= 0 for row in told.machines.values() for name in ("alive", "doubtful", "cost")
    )
