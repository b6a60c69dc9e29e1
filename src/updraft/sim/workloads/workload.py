"""What people submit: arrivals as data, made from a seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from updraft.core.model import Resources

GIB = 1024  # MiB
DISK = 1024 * 1024  # KiB: what a job asks for unless it says otherwise


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of job: what one asks for, how long it runs (seconds, even around `seconds` by `spread`)."""

    request: Resources
    seconds: float
    spread: float = 0.3
    weight: float = 1.0
    requirements: str = "true"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job that arrives `at` seconds after the start and runs `seconds`.

    `estimate` is how long its owner says it runs, `longest` how long it may run at most (a limit that the
    site or the job itself sets), each None where nobody says. Of one owner's jobs those of higher `priority`
    go first. `executable` is what jobs have in common that run about as long.
    """

    at: float
    owner: str
    request: Resources
    seconds: float
    schedd: str = "head"
    requirements: str = "true"
    estimate: float | None = None
    longest: float | None = None
    priority: int = 0
    executable: str = ""


SMALL = Shape(Resources(1, 1 * GIB, DISK), seconds=60.0, weight=8.0)
WIDE = Shape(Resources(4, 6 * GIB, DISK), seconds=180.0, weight=2.0)


def burst(
    count: int,
    *,
    at: float = 0.0,
    over: float = 0.0,
    shapes: Sequence[Shape] = (SMALL, WIDE),
    owners: Sequence[str] = ("ada", "grace"),
    schedd: str = "head",
    seed: int = 0,
) -> tuple[Arrival, ...]:
    """`count` jobs within `over` seconds of `at`, of mixed shapes and owners; same seed, same jobs."""
    chance = random.Random(f"{seed}/{at}/{count}")  # noqa: S311 - a simulated queue is no secret
    picks = chance.choices(shapes, weights=[shape.weight for shape in shapes], k=count)
    return tuple(
        Arrival(
            at=at + chance.uniform(0, over),
            owner=chance.choice(owners),
            request=shape.request,
            seconds=max(1.0, shape.seconds * chance.uniform(1 - shape.spread, 1 + shape.spread)),
            schedd=schedd,
            requirements=shape.requirements,
        )
        for shape in picks
    )


def stream(
    count: int, *, at: float = 0.0, every: float = 1.0, shape: Shape = SMALL, owner: str = "ada"
) -> tuple[Arrival, ...]:
    """`count` jobs of one shape and owner, one `every` seconds."""
    return tuple(
        Arrival(at + number * every, owner, shape.request, shape.seconds, requirements=shape.requirements)
        for number in range(count)
    )


def bursts(
    hours: float, *, mean_gap: float = 900.0, mean_size: float = 60.0, seed: int = 0
) -> Iterator[Arrival]:
    """Bursts at random times for so many hours: exponential gaps (seconds) and sizes (jobs)."""
    chance = random.Random(seed)  # noqa: S311 - as above
    at = 0.0
    while at < hours * 3600:
        size = 1 + int(chance.expovariate(1 / mean_size))
        yield from burst(size, at=at, over=30.0, seed=chance.randrange(2**32))
        at += chance.expovariate(1 / mean_gap)
