"""When simulated machines join, update and vanish."""

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from updraft.load.schedule import REPLACED_AFTER, Event, Kind, Load, events

loads = st.builds(
    Load,
    machines=st.integers(1, 40),
    updates_every=st.floats(5, 600),
    jitter=st.floats(0, 0.5),
    join_rate=st.floats(0.5, 50),
    loss_rate=st.floats(0, 20),
    seconds=st.floats(1, 900),
    seed=st.integers(0, 9),
)


def of_machines(found: list[Event]) -> dict[tuple[int, int], list[Event]]:
    machines: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in found:
        machines[event.seat, event.life].append(event)
    return machines


@given(loads, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_parts_together_are_the_whole_and_in_order(load: Load, parts: int) -> None:
    whole = events(load)
    assert whole == sorted(event for part in range(parts) for event in events(load, part, parts))
    assert events(load) == whole
    assert all(0 <= event.at <= load.ends_after for event in whole)


@given(loads)
@settings(max_examples=60, deadline=None)
def test_each_machine_joins_first_and_counts_its_updates(load: Load) -> None:
    for (seat, life), course in of_machines(events(load)).items():
        joins, *rest = course
        assert joins.kind is Kind.JOIN
        assert joins.number == 1
        if life == 0:
            assert joins.at == pytest.approx(seat / load.join_rate)
        updates = [event for event in rest if event.kind is Kind.UPDATE]
        assert [event.number for event in updates] == list(range(2, len(updates) + 2))
        times = [joins.at, *(event.at for event in updates)]
        least, most = (load.updates_every * (1 + sign * load.jitter) for sign in (-1, 1))
        assert all(least - 1e-6 <= b - a <= most + 1e-6 for a, b in pairwise(times))
        assert [event.kind for event in rest].count(Kind.LOSS) <= 1
        assert all(event.kind is not Kind.LOSS for event in rest[:-1])


@given(loads)
@settings(max_examples=60, deadline=None)
def test_a_machine_that_vanished_is_replaced(load: Load) -> None:
    machines = of_machines(events(load))
    for (seat, life), course in machines.items():
        if course[-1].kind is Kind.LOSS and course[-1].at + REPLACED_AFTER <= load.ends_after:
            assert machines[seat, life + 1][0].at == pytest.approx(course[-1].at + REPLACED_AFTER)
        else:
            assert (seat, life + 1) not in machines


def test_without_losses_none_vanishes_and_the_rate_of_losses_is_about_as_asked() -> None:
    calm = Load(400, seconds=3600.0, updates_every=900.0)
    assert {event.kind for event in events(calm)} == {Kind.JOIN, Kind.UPDATE}
    spot = Load(400, seconds=3600.0, updates_every=900.0, loss_rate=0.5)
    lost = sum(event.kind is Kind.LOSS for event in events(spot))
    assert 150 < lost < 250


def test_every_machine_updates_within_an_interval_and_its_jitter() -> None:
    load = Load(200, updates_every=300.0, jitter=0.1, seconds=331.0)
    updated = {event.seat for event in events(load) if event.kind is Kind.UPDATE}
    assert updated == set(range(200))


def test_another_seed_is_another_course() -> None:
    one, other = (events(Load(5, seconds=1000.0, seed=seed)) for seed in (1, 2))
    assert one != other
