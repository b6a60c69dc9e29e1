"""When each simulated machine joins, updates its ads and vanishes: pure, the same for the same seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

HOUR = 3600.0
REPLACED_AFTER = 60.0
"""Seconds until a machine that vanished has been replaced by another one that joins."""


class Kind(StrEnum):
    """What a simulated machine does."""

    JOIN = "join"
    UPDATE = "update"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Load:
    """What is put on a pool. `machines` join at `join_rate` a second, one after the other.

    Each updates its ads every `updates_every` seconds, give or take the part `jitter` of that. `loss_rate` is
    the part of the machines that vanishes in an hour without a word; each is replaced. It goes on for
    `seconds` after the last of the first `machines` has joined.
    """

    machines: int
    updates_every: float = 300.0
    jitter: float = 0.1
    join_rate: float = 25.0
    loss_rate: float = 0.0
    seconds: float = 330.0
    seed: int = 0

    @property
    def joined_after(self) -> float:
        """Seconds until the last of the first machines is due to join."""
        return (self.machines - 1) / self.join_rate

    @property
    def ends_after(self) -> float:
        """Seconds until nothing more happens."""
        return self.joined_after + self.seconds


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something due `at` so many seconds after the begin. `seat` is one of the `machines` places of the pool.

    `life` counts the machines that had this seat before; `number` is the update's sequence number, from 1.
    """

    at: float
    seat: int
    life: int
    number: int
    kind: Kind


def events(load: Load, part: int = 0, parts: int = 1) -> list[Event]:
    """What is due at the seats `part`, `part + parts`, …, in the order of time.

    A seat's course doesn't depend on how many parts there are.
    """
    return sorted(event for seat in range(part, load.machines, parts) for event in _course(load, seat))


def _course(load: Load, seat: int) -> Iterator[Event]:
    chance = Random(f"{load.seed}/{seat}")  # noqa: S311  # a load, not a secret
    begins, life, rate = seat / load.join_rate, 0, load.loss_rate / HOUR
    while begins <= load.ends_after:
        ends = begins + chance.expovariate(rate) if rate else float("inf")
        yield from _life(load, chance, Event(begins, seat, life, 1, Kind.JOIN), ends)
        begins, life = ends + REPLACED_AFTER, life + 1


def _life(load: Load, chance: Random, joins: Event, ends: float) -> Iterator[Event]:
    yield joins
    at, number = joins.at, 1
    while True:
        at += load.updates_every * chance.uniform(1 - load.jitter, 1 + load.jitter)
        if at >= min(ends, load.ends_after):
            break
        number += 1
        yield Event(at, joins.seat, joins.life, number, Kind.UPDATE)
    if ends < load.ends_after:
        yield Event(ends, joins.seat, joins.life, number, Kind.LOSS)
