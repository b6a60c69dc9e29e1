"""Filling in bulk: the same as a plain filling, bin by bin, that anyone can follow.

Covers `filling` and `fitting`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import pick
from updraft.core.demand.filling import Bin, Filling, fill
from updraft.core.demand.fitting import FitGrid, choosing
from updraft.core.matching.match import asked, by_quantity
from updraft.core.model import JobGroup, Kind, Resources, Verdict, counted, of_amounts
from updraft.core.model.basics import Custom

CUSTOM: list[Custom] = [(), (), (("fpgas", 2),), (("fpgas", 3), ("tapes", 1))]
ASKED: list[Custom] = [(), (), (("fpgas", 1),), (("tapes", 1), ("unknown", 9))]
MEBI = 1024
Pairs = Mapping[tuple[str, str], Verdict]


@dataclass(frozen=True)
class World:
    """A queue, bins of some kinds, and verdicts on all pairs, not all of them decided."""

    queue: list[tuple[JobGroup, int]]
    kinds: dict[str, Kind]
    bins: list[Bin]
    verdicts: dict[tuple[str, str], Verdict]


@st.composite
def worlds(draw: st.DrawFn, most_bins: int = 8) -> World:
    kinds = {}
    for at in range(draw(st.integers(1, 4))):
        size = Resources(
            draw(st.integers(1, 16)),
            draw(st.integers(100, 20_000)),
            draw(st.integers(1, 40)) * MEBI + pick(draw, [0, 300]),
            pick(draw, [0, 0, 2]),
            pick(draw, CUSTOM),
        )
        kinds[f"k{at}"] = Kind(f"k{at}", "", size, partitionable=draw(st.integers(0, 3)) > 0)
    queue = []
    for at in range(draw(st.integers(1, 6))):
        request = Resources(
            draw(st.integers(0, 6)),
            draw(st.integers(0, 5000)),
            pick(draw, [0, 100, MEBI, 7 * MEBI + 5]),
            pick(draw, [0, 0, 0, 1]),
            pick(draw, ASKED),
        )
        owner = pick(draw, "xy")
        group = JobGroup(f"g{at}", "s", owner, owner, "", request, 0, oldest=float(draw(st.integers(0, 3))))
        queue.append((group, draw(st.integers(0, 90))))
    verdicts = {}
    for group, _ in queue:
        for kind in kinds.values():
            verdict = draw(verdicts_of(group, kind))
            if verdict is not None:
                verdicts[group.key, kind.key] = verdict
    return World(queue, kinds, draw(bins_of(kinds, most_bins)), verdicts)


@st.composite
def verdicts_of(draw: st.DrawFn, group: JobGroup, kind: Kind) -> Verdict | None:
    """No, undecided, missing, as many as the quantities allow, or fewer because of the requirements."""
    takes = asked(group.request, kind)
    most = by_quantity(kind.resources, takes, group.request) if kind.partitionable else 1
    if not kind.resources.holds(group.request):
        most = 0
    what = pick(draw, ["all", "all", "all", "few", "no", "undecided", "missing"])
    if what == "missing":
        return None
    if what == "undecided":
        return Verdict(0, takes, decided=False)
    return Verdict({"all": most, "few": min(most, 2), "no": 0}[what], takes)


@st.composite
def bins_of(draw: st.DrawFn, kinds: Mapping[str, Kind], most: int) -> list[Bin]:
    bins = []
    for at in range(draw(st.integers(0, most))):
        kind = kinds[pick(draw, sorted(kinds))]
        size = kind.resources
        whole = replace(
            size,
            memory=max(1, size.memory + pick(draw, [-1, 0, 0, 1])),
            disk=size.disk + pick(draw, [-6, 0, 0, 6]),
        )
        free = whole
        if kind.partitionable and draw(st.booleans()):
            amounts = [draw(st.integers(0, amount)) for amount in free.amounts(free.names)]
            free = of_amounts(amounts, free.names)
        total = pick(draw, [None, whole]) if whole == size else whole
        bins.append(Bin(f"b{at}", kind.key, free, float(draw(st.integers(0, 2))), total=total))
    return bins


# ---------------------------------------------------------------------------------------- the plain way


def wasted(kind: Kind, takes: Resources, copies: int) -> float:
    """Of what nobody who waits has asked for, `takes` and the kind are expected to say nothing."""
    names = kind.resources.names
    idle = [
        1.0 - min(1.0, copies * take / have) if have else 0.0
        for take, have in zip(takes.amounts(names), kind.resources.amounts(names), strict=True)
    ]
    return idle[0] + idle[1] + 0.1 * idle[2] + sum(10.0 * each for each in idle[3:])


def starts(item: Bin, free: Resources, group: JobGroup, kind: Kind, verdict: Verdict) -> bool:
    """Does one more job start there? One known only to start with more than it asked for needs that much, or
    the whole slot, where this one is smaller than its kind's.
    """
    if not kind.partitionable:
        return free == item.free and free.holds(group.request) > 0
    total = item.total or kind.resources
    takes = asked(group.request, kind)
    most = by_quantity(kind.resources, takes, group.request)
    names = kind.resources.names
    least = list(group.request.amounts(names))
    if verdict.copies < most:
        rests = (kind.resources - takes.times(verdict.copies - 1)).amounts(names)
        least = [max(a, min(b, c)) for a, b, c in zip(least, rests, total.amounts(names), strict=True)]
    return all(have >= need for have, need in zip(free.amounts(names), least, strict=True))


def plainly(world: World) -> Filling:
    """Job by job and bin by bin."""
    kinds, verdicts = world.kinds, world.verdicts
    free = {item.key: item.free for item in world.bins}
    open_ = [item for item in world.bins if item.free.cpus > 0 and item.free.memory > 0]
    left = {group.key: count for group, count in world.queue}
    waiting = [group for group, count in world.queue if count > 0]
    with_room = {item.kind for item in open_}

    def can(group: JobGroup) -> list[str]:
        return [
            key
            for key in sorted(with_room)
            if (verdict := verdicts.get((group.key, key))) and verdict.decided and verdict.copies
        ]

    named = counted([group.request for group in waiting], [kinds[key].resources for key in with_room])
    order = [waiting[at] for at in choosing(waiting, [len(can(group)) for group in waiting], named)]
    placed: dict[str, dict[str, int]] = {}
    for group in order:

        def waste(key: str, group: JobGroup = group) -> float:
            kind = replace(kinds[key], resources=kinds[key].resources.only(named))
            takes = asked(group.request, kind) if kind.partitionable else group.request
            return wasted(kind, takes, verdicts[group.key, key].copies)

        for key in sorted(can(group), key=lambda key: (waste(key), key)):
            for item in sorted((b for b in open_ if b.kind == key), key=lambda b: (b.order, b.key)):
                number = 0
                verdict, kind = verdicts[group.key, key], kinds[key]
                while left[group.key] and number < verdict.copies and full_of(free[item.key]) is False:
                    if not starts(item, free[item.key], group, kind, verdict):
                        break
                    number += 1
                    left[group.key] -= 1
                    takes = asked(group.request, kind) if kind.partitionable else free[item.key]
                    free[item.key] = less(free[item.key], takes)
                if number:
                    placed.setdefault(group.key, {})[item.key] = number
    return Filling(placed, left)


def full_of(free: Resources) -> bool:
    return free.cpus <= 0 or free.memory <= 0


def less(free: Resources, takes: Resources) -> Resources:
    left = free - takes
    return of_amounts([max(0, amount) for amount in left.amounts(left.names)], left.names)


@given(worlds())
def test_filling_in_bulk_is_the_plain_filling(world: World) -> None:
    assert fill(world.queue, world.bins, world.verdicts, world.kinds) == plainly(world)


def test_many_bins_of_many_kinds_are_filled_as_plainly() -> None:
    # Enough for several blocks of slots, for pages of groups, and for the shelf to close up in between.
    kinds = {
        f"k{n:03d}": Kind(f"k{n:03d}", "", Resources(1 + n % 7, 700 * (1 + n % 5), 9 << 20))
        for n in range(90)
    }
    queue = []
    for at in range(70):
        request = Resources(1 + at % 3, 128 * (1 + at % 9), 1 << 20)
        queue.append((JobGroup(f"g{at}", "s", "o", "o", "", request, 0, oldest=float(at)), 3 + 7 * (at % 11)))
    verdicts = {
        (group.key, kind.key): Verdict(
            by_quantity(kind.resources, asked(group.request, kind), group.request) if (n + m) % 4 else 0,
            asked(group.request, kind),
        )
        for n, (group, _) in enumerate(queue)
        for m, kind in enumerate(kinds.values())
    }
    bins = [
        Bin(f"b{n:04d}", kind.key, kind.resources, float(n % 3))
        for n, kind in enumerate([*kinds.values()] * 9)
    ]
    world = World(queue, kinds, bins, verdicts)
    filling = fill(queue, bins, verdicts, kinds)
    assert filling == plainly(world)
    assert any(filling.left.values())
    assert sum(len(where) for where in filling.placed.values()) > len(bins) / 2


def test_a_job_that_asks_for_no_cores_finds_no_room_on_a_full_slot() -> None:
    kind = Kind("k", "", Resources(4, 4096, 1 << 20))
    group = JobGroup("g", "s", "o", "o", "", Resources(0, 128, 0), 3)
    verdicts = {("g", "k"): Verdict(32, asked(group.request, kind))}
    full = Bin("full", "k", Resources(0, 2048, 1 << 20))
    assert fill([(group, 3)], [full], verdicts, {"k": kind}) == Filling({}, {"g": 3})


def test_without_kinds_jobs_go_by_quantities_and_copies() -> None:
    group = JobGroup("g", "s", "o", "o", "", Resources(1, 128, 1024), 9)
    verdicts = {("g", "k"): Verdict(2, group.request)}
    free = Resources(8, 8192, 1 << 20)
    filling = fill([(group, 9)], [Bin("a", "k", free), Bin("b", "k", free)], verdicts)
    assert filling == Filling({"g": {"a": 2, "b": 2}}, {"g": 5})


@pytest.mark.parametrize("static", [True, False])
def test_a_whole_slot_a_little_smaller_than_the_first_of_its_kind_is_room(static: bool) -> None:
    """Machines of one flavor differ by a few KiB of disk: a real pool bought one too many for that."""
    size = Resources(1, 2048, 4_194_124)
    kind = Kind("k", "", size, partitionable=not static)
    group = JobGroup("g", "s", "o", "o", "", Resources(1, 128, 1024), 1)
    # The requirements are known to be met by a whole slot only.
    verdicts = {("g", "k"): Verdict(1, asked(group.request, kind))}
    other = replace(size, disk=4_194_118)
    filling = fill([(group, 1)], [Bin("b", "k", other, total=other)], verdicts, {"k": kind})
    assert filling == Filling({"g": {"b": 1}}, {"g": 0})


@given(worlds(most_bins=0))
def test_who_can_go_onto_what_is_what_the_verdicts_say(world: World) -> None:
    groups = [group for group, _ in world.queue]
    grid = FitGrid(groups, world.kinds, world.verdicts)
    names: Sequence[str] = sorted(world.kinds)
    for row, group in enumerate(groups):
        for column, name in enumerate(names):
            verdict = world.verdicts.get((group.key, name))
            expected = verdict is not None and verdict.decided and verdict.copies > 0
            assert bool(grid.serves[row, column]) is expected
