"""What two looks in succession add to the records of machines and of who used them.

What a look says holds until the next one. Two looks that are far apart, since no controller was at work or a
clock has jumped, say nothing of the time between: a machine that lives at both ends lived meanwhile, and what
it did then isn't known; one that is over at the second may have ended at any time. Neither counts as idle,
and neither as nothing.

A machine of which nothing has changed costs nothing: its meter says since when it is as it is, and one time
of the last look does for all. `pending` is what meters add that isn't in the records yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from updraft.core.model import MachineId, Reason
from updraft.core.model.used import (
    ABSENT,
    Booking,
    Day,
    InPool,
    MachineDay,
    MachineFacts,
    Meter,
    Meters,
    Sighting,
    UserClaim,
    UserDay,
)
from updraft.core.settings import DAY
from updraft.core.usage.days import day_of, days

LONGEST = 300.0
"""Seconds between two looks for which the first one holds."""
OLDEST = 366 * DAY
"""How long ago a machine may have begun that is seen for the first time: clouds say odd things."""
MOST_JOBS = 1_000_000
"""Jobs that a machine may have begun between two looks: an ad may say any number."""
NONE: Mapping[MachineId, float] = {}
FORGOTTEN = Reason("forgotten", "nothing is known of its end")


def turn(
    meters: Meters,
    seen: Mapping[MachineId, Sighting],
    now: float,
    *,
    jumped: bool = False,
    booked: Mapping[MachineId, float] = NONE,
) -> tuple[Meters, Booking]:
    """The additions of this look, and the meters after it.

    `jumped` says that the clock has, since the last look. `booked` says of machines that have no meter and
    are in the records, since they were taken for ended once, up to when they are.
    """
    books = Booking(now)
    last = now if meters.at is None else meters.at
    quiet = 0 <= now - last <= LONGEST and day_of(last) == day_of(now)
    for key, sighting in seen.items():
        meter = meters.machines.get(key)
        if meter is None:
            _begin(books, sighting, meters.at, now, booked.get(key))
        elif not (quiet and meter.sighting is sighting) and not (quiet and meter.sighting == sighting):
            _go_on(books, meter, sighting, last, now, jumped=jumped)
    for key in meters.machines.keys() - seen.keys():
        meter = meters.machines[key]
        over = replace(meter.sighting, lives=None, pool=None, ended=(now, FORGOTTEN))
        _go_on(books, meter, over, last, now, jumped=jumped)
    return Meters(now, _applied(meters.machines, books.meters)), books


def pending(meters: Meters) -> Booking:
    """The amounts that these meters have counted up to the last look that isn't in the records."""
    books = Booking(meters.at or 0.0)
    for meter in meters.machines.values():
        if meters.at is not None and meter.sighting.lives:
            _alive(books, meter.sighting.facts, meter.since, meters.at, meter.sighting.pool)
    return books


def _applied(
    machines: Mapping[MachineId, Meter], changes: Mapping[MachineId, Meter | None]
) -> Mapping[MachineId, Meter]:
    if not changes:
        return machines
    made = {**machines, **changes}
    return {key: meter for key, meter in made.items() if meter is not None}


def _begin(books: Booking, sighting: Sighting, last: float | None, now: float, booked: float | None) -> None:
    """A machine that has no meter: launched since the last look, or of nobody knows what past."""
    begin = max(sighting.facts.begin, booked or 0.0)
    if not now - OLDEST <= begin <= now:
        begin = now
    fresh = last is not None and begin >= last - LONGEST and booked is None
    before = Sighting(sighting.facts, lives=fresh or sighting.lives, pool=ABSENT if fresh else None)
    known = ABSENT if fresh else sighting.pool
    _close(books, Meter(before, begin, known), sighting, begin, now, jumped=False)


def _go_on(
    books: Booking, meter: Meter, sighting: Sighting, last: float, now: float, *, jumped: bool
) -> None:
    """A machine that was known: what is certain up to the last look, and what this one says since."""
    old = meter.sighting
    start = meter.since
    if old.lives and last > start:
        _alive(books, old.facts, start, last, old.pool)
        start = last
    _close(books, meter, sighting, start, now, jumped=jumped)


def _close(
    books: Booking, meter: Meter, sighting: Sighting, start: float, now: float, *, jumped: bool
) -> None:
    """Count the time since `start`, up to which it is known, and go on from now."""
    old, facts = meter.sighting, sighting.facts
    end = now if sighting.ended is None else min(now, sighting.ended[0])
    short = end - start <= LONGEST
    gone = sighting.ended is not None or sighting.lives is False
    doubtful = not short and (jumped or gone)
    settled = doubtful or gone or bool(sighting.lives) or (bool(old.lives) and short)
    if settled and end > start and not (gone and old.lives is False):
        if doubtful:
            _doubtful(books, facts, start, end)
        else:
            _alive(books, facts, start, end, old.pool if old.lives and short else None)
    known = sighting.pool or meter.known
    _count_jobs(books, facts, meter.known, sighting.pool, now)
    _count_lost(books, meter, sighting, end)
    if sighting.ended is not None:
        row = _row(books, facts, day_of(end), end, end)
        row.ended = sighting.ended[1]
        books.meters[facts.key] = None
        return
    books.meters[facts.key] = Meter(sighting, now if settled or start > now else start, known)


def _count_jobs(
    books: Booking, facts: MachineFacts, old: InPool | None, new: InPool | None, now: float
) -> None:
    """The jobs that were begun since: by the machine's counter, shared out by the cores of those who may."""
    if old is None or new is None or new.begun is None:
        return
    before = (old.begun or 0) if old.started == new.started else 0
    jobs = min(MOST_JOBS, new.begun - before)
    if jobs <= 0:
        return
    weights: dict[tuple[str, str], int] = {}
    for claim in {*old.claims, *new.claims}:
        name = (claim.user, claim.group)
        weights[name] = weights.get(name, 0) + max(1, claim.cores)
    _row(books, facts, day_of(now), now, now).jobs += jobs
    for name, number in shared(jobs, weights or {("", ""): 1}).items():
        _user(books, facts.key, day_of(now), name).jobs += number


def shared(number: int, weights: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """So many, by these weights, in whole numbers that come to as many together."""
    total = sum(weights.values())
    found = {name: number * weight // total for name, weight in weights.items()}
    rest = sorted(weights, key=lambda name: (-(number * weights[name] % total), name))
    for name in rest[: number - sum(found.values())]:
        found[name] += 1
    return found


def _count_lost(books: Booking, meter: Meter, sighting: Sighting, end: float) -> None:
    """Jobs that ran when their machine was over, or had left the pool, were cut short."""
    pool, known = sighting.pool, meter.known
    left = pool is not None and not pool.joined
    if not left and sighting.ended is None:
        return
    running = known if left or pool is None else pool
    claims = () if running is None else running.claims
    scale = _scale(sighting.facts, claims)
    for claim in claims:
        if claim.running:
            began = max(claim.began or meter.since, sighting.facts.begin)
            lost = claim.cores * scale * max(0.0, end - began)
            _row(books, sighting.facts, day_of(end), end, end).lost += lost
            _user(books, sighting.facts.key, day_of(end), (claim.user, claim.group)).lost += lost


# ---------------------------------------------------------------------------------------------- the rows


def _alive(books: Booking, facts: MachineFacts, begin: float, end: float, pool: InPool | None) -> None:
    """Count time that it existed, with what the pool said of it meanwhile, None where nobody knows."""
    for day, first, last in days(begin, end):
        row, seconds = _row(books, facts, day, first, last), last - first
        row.alive += seconds
        if facts.price is None:
            row.unpriced += seconds
        else:
            row.cost += facts.paid_between(first, last) * facts.price / 3600
        if pool is None:
            row.unseen += seconds
        elif pool.joined:
            row.joined += seconds
            row.claimed += seconds if pool.claims else 0.0
            _claims(books, row, facts, day, pool.claims, seconds)


def _claims(
    books: Booking,
    row: MachineDay,
    facts: MachineFacts,
    day: Day,
    claims: Sequence[UserClaim],
    seconds: float,
) -> None:
    scale = _scale(facts, claims)
    for claim in claims:
        user = _user(books, facts.key, day, (claim.user, claim.group))
        for one in (row, user):
            one.core_seconds += claim.cores * scale * seconds
            one.gpu_seconds += claim.gpus * seconds


def _scale(facts: MachineFacts, claims: Sequence[UserClaim]) -> float:
    """By what the cores of claims are multiplied, so that they come to no more than the cloud sold.

    A site may let its machines run more jobs than they have cores, and an ad may say any number.
    """
    total = sum(claim.cores for claim in claims)
    return facts.cores / total if 0 < facts.cores < total else 1.0


def _doubtful(books: Booking, facts: MachineFacts, begin: float, end: float) -> None:
    for day, first, last in days(begin, end):
        _row(books, facts, day, first, last).doubtful += last - first


def _row(books: Booking, facts: MachineFacts, day: Day, begin: float, end: float) -> MachineDay:
    found = books.machines.get((facts.key, day))
    if found is None:
        found = books.machines[facts.key, day] = facts, MachineDay(begin, end)
    row = found[1]
    row.begin, row.end = min(row.begin, begin), max(row.end, end)
    return row


def _user(books: Booking, key: MachineId, day: Day, name: tuple[str, str]) -> UserDay:
    return books.users.setdefault((key, day, *name), UserDay())
