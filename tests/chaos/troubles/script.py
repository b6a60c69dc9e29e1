"""What is to happen in a run, drawn from its seed before anything begins.

The same seed and time give the same script. What a happening does besides depends on what is there when it
comes (which machines run, say): for that it carries a number of its own, `draw`.
"""

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Side(StrEnum):
    """Who misbehaves."""

    JOBS = "jobs"
    CLOUD = "cloud"
    POOL = "pool"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of happening: how often it comes (`weight`), and how long it lasts, in seconds.

    One that is `dear` takes a small machine's processors for a minute: short runs go without it.
    """

    name: str
    side: Side
    weight: float = 1.0
    least: float = 0.0
    most: float = 0.0
    dear: bool = False


def _kinds(side: Side, *rows: tuple[str, float, float, float]) -> Iterator[Kind]:
    for name, weight, least, most in rows:
        yield Kind(name, side, weight, least, most)


KINDS: tuple[Kind, ...] = (
    *_kinds(
        Side.JOBS,
        ("jobs-short", 16, 0, 0),
        ("jobs-long", 4, 0, 0),
        ("jobs-that-ignore-sigterm", 2, 0, 0),
        ("jobs-made-late", 2, 0, 0),
        ("job-suspended", 2, 3, 12),
        ("job-held", 2, 2, 12),
        ("job-removed", 2, 0, 0),
    ),
    *_kinds(
        Side.CLOUD,
        ("calls-fail", 1, 5, 15),
        ("some-calls-fail", 1, 15, 40),
        ("some-launches-fail", 1, 10, 30),
        ("credential-refused", 1, 4, 12),
        ("throttled", 1, 5, 12),
        ("throttled-by-a-bucket", 1, 20, 40),
        ("calls-slow", 1, 10, 25),
        ("no-answer", 1, 10, 25),
        ("late-answer", 1, 10, 25),
        ("lost-answer", 2, 20, 20),
        ("no-capacity", 1, 10, 30),
        ("listing-leaves-out", 2, 12, 40),
        ("listing-lags", 1, 10, 30),
        ("listings-contradict", 1, 10, 30),
        ("wrong-state", 2, 12, 40),
        ("never-boots", 1, 10, 20),
        ("boot-crashes", 1, 10, 20),
        ("boot-hangs", 1, 10, 20),
        ("boot-late", 1, 10, 20),
        ("no-user-data", 1, 10, 20),
        ("address-again", 1, 30, 60),
        ("tag-removed", 1, 10, 40),
        ("ended-by-somebody", 1, 0, 0),
        ("crashed", 2, 0, 0),
        ("system-dead", 1, 0, 0),
        ("cut-from-head", 1, 8, 40),
        ("cut-from-metadata", 1, 10, 40),
        ("cut-from-everything", 1, 8, 40),
        ("notice-of-120-s", 1, 0, 0),
        ("notice-of-40-s", 1, 0, 0),
        ("taken-without-notice", 1, 0, 0),
    ),
    *_kinds(
        Side.POOL,
        ("collector-stopped", 1, 3, 15),
        ("collector-killed", 1, 0, 0),
        ("negotiator-stopped", 1, 3, 20),
        ("negotiator-killed", 1, 0, 0),
        ("schedd-stopped", 1, 3, 15),
        ("schedd-killed", 1, 0, 0),
        ("startd-stopped", 1, 3, 15),
        ("startd-killed", 1, 0, 0),
        ("shadow-stopped", 1, 3, 10),
        ("shadow-killed", 1, 0, 0),
    ),
    Kind("hostile-ads", Side.POOL, 0.7, 30, 60, dear=True),
    Kind("long-queue", Side.POOL, 0.4, 60, 120, dear=True),
    *_kinds(
        Side.HOST,
        ("controller-killed", 2, 0, 0),
        ("controller-killed-at-a-step", 4, 20, 20),
        ("controller-stopped", 1, 3, 20),
        ("controller-stopped-at-a-step", 2, 15, 25),
        ("ledger-deleted", 1, 0, 0),
        ("ledger-old", 1, 10, 30),
        ("ledger-damaged", 1, 8, 8),
        ("disk-full", 1, 8, 25),
        ("disk-read-only", 1, 8, 25),
        ("clock-forward", 1, 10, 40),
        ("clock-back", 1, 10, 40),
        ("second-controller", 1, 15, 45),
    ),
)
NAMES = tuple(kind.name for kind in KINDS)
SHORT = 300.0
"""Seconds of a run that goes without what is dear."""
_PAUSE = (0.5, 4.5)  # seconds between two happenings: there are two dozen a minute
_SHARES = {Side.JOBS: 10.0, Side.CLOUD: 8.0, Side.POOL: 3.0, Side.HOST: 3.0}


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happens: `at` so many seconds after the beginning, for `lasts` seconds."""

    number: int
    at: float
    what: str
    lasts: float
    draw: int


def written(
    seed: int, seconds: float, only: Collection[str] = NAMES, without: Collection[int] = ()
) -> tuple[Happening, ...]:
    """The script of a run; of it only these kinds, and without these numbers.

    What is left out changes nothing else: the others come when they would have come.
    """
    draw = random.Random(seed)  # no secret
    kinds = [kind for kind in KINDS if not kind.dear or seconds > SHORT]
    total = {side: sum(kind.weight for kind in kinds if kind.side is side) for side in Side}
    weights = [kind.weight * _SHARES[kind.side] / total[kind.side] for kind in kinds]
    found = []
    at, number = 0.0, 0
    while at < seconds:
        [kind] = draw.choices(kinds, weights)
        lasts = round(min(draw.uniform(kind.least, kind.most), max(0.0, seconds - at)), 1)
        one = Happening(number, round(at, 2), kind.name, lasts, draw.getrandbits(31))
        if kind.name in only and number not in without:
            found.append(one)
        at += draw.uniform(*_PAUSE)
        number += 1
    return tuple(found)


def side_of(what: str) -> Side:
    """Whose happening it is. Raises KeyError where there is no such kind."""
    return {kind.name: kind.side for kind in KINDS}[what]
