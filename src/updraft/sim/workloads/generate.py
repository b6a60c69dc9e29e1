"""Made-up workloads: sessions of alike jobs by users of unequal zeal, by day more than by night.

One model for all of them. Sessions arrive at random (a Poisson process whose rate follows the day and the
week); each is one user's, has a lognormal number of jobs with exponential pauses between them, and its jobs
run about equally long: the run times of a session are correlated (a Gaussian copula over the table of run
times), while all run times together have exactly the distribution of the table. Same recipe and seed, same
jobs.
"""

import bisect
import itertools
import math
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, model_validator

from updraft.config.values.units import Duration, Size, spell
from updraft.core.model import Resources
from updraft.errors import UsageError
from updraft.sim.workloads.sources import DAY, Workload, made
from updraft.sim.workloads.workload import DISK, Arrival

PREFIX = "gen:"
MOST_JOBS = 5_000_000
_NORMAL = NormalDist()
_KINDS_OF_PROGRAM = 5


class Shape(BaseModel):
    """What some of the jobs ask for; `share` is how many of them, in proportion to the other shapes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    share: float = Field(default=1.0, gt=0)
    """How many of the jobs, in proportion to the shares of the other shapes."""
    cpus: int = Field(default=1, gt=0)
    """Cores of a job."""
    memory: Size = ByteSize(1 << 30)
    """Memory of a job, as in "2GiB"."""
    gpus: int = Field(default=0, ge=0)
    """GPUs of a job."""

    @property
    def request(self) -> Resources:
        """The same in the units of the core."""
        return Resources(self.cpus, max(1, int(self.memory) >> 20), DISK, self.gpus)


class Recipe(BaseModel):
    """What is made. Every key may be given after `gen:NAME?`, and in a file of TOML."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    jobs: int = Field(default=2000, gt=0, le=MOST_JOBS)
    """Jobs in all."""
    days: float = Field(default=1.0, gt=0, le=3660)
    """Days from the first to the last, about."""
    seed: int | None = None
    """Where chance begins; None: what `--seed` says."""
    session: float = Field(default=20.0, ge=1)
    """Jobs in a session, the median."""
    session_spread: float = Field(default=1.0, ge=0, le=4)
    """How unequal sessions are: the standard deviation of the logarithm of their number of jobs."""
    pause: Duration = 2.0
    """Mean time between two jobs of a session."""
    night: float = Field(default=0.0, ge=0, le=1)
    """How much quieter the night is than the day: 0 is no difference, 1 is silence in its middle."""
    weekend: float = Field(default=1.0, ge=0, le=1)
    """Activity at weekends (the sixth and seventh day), as a part of that of the other days."""
    users: int = Field(default=8, gt=0, le=10_000)
    """Users."""
    zeal: float = Field(default=1.0, ge=0, le=5)
    """How unequal users are: the nth most active starts sessions in proportion to 1/n to this power."""
    alike: float = Field(default=0.7, ge=0, lt=1)
    """How alike the run times of one session are: a correlation, 0 for not at all."""
    run_time: Duration = 600.0
    """The median run time."""
    run_spread: float = Field(default=1.0, ge=0, le=4)
    """The standard deviation of the logarithm of run times (lognormal), unless there is a `tail`."""
    tail: float | None = Field(default=None, gt=0.2, le=10)
    """The exponent of a Pareto tail from the median on: 1 is very heavy. None: no such tail."""
    longest: Duration = 2 * DAY
    """No job runs longer."""
    quantiles: tuple[tuple[float, float], ...] = ()
    """Run times as a table instead: pairs of a part (0 to 1) and seconds, both rising; between them
    logarithms are interpolated."""
    limit: float | None = Field(default=None, ge=1)
    """Jobs name the longest that they may run: so many times their run time, the median; None: they don't."""
    shapes: tuple[Shape, ...] = Field(default=(Shape(),), min_length=1)
    """What the jobs of a session ask for; drawn for each session."""

    @model_validator(mode="after")
    def _table_rises(self) -> "Recipe":
        table = self.quantiles
        rising = all(a < b and s <= t for (a, s), (b, t) in itertools.pairwise(table))
        if table and not (rising and len(table) > 1 and table[0][0] == 0 and table[-1][0] == 1):
            raise ValueError("quantiles: pairs rise from part 0 to part 1, with seconds that don't fall")
        if any(seconds < 0 for _, seconds in table):
            raise ValueError("quantiles: a run time isn't negative")
        return self


# Fitted to LCG-2005 (docs/explanation/traces.md says how): sessions are a user's jobs with less than a minute
# between two of them.
_LCG: Mapping[str, Any] = {
    "jobs": 188_041,
    "days": 11.0,
    "session": 2.0,
    "session_spread": 2.0,
    "pause": "12s",
    "night": 0.25,
    "users": 216,
    "zeal": 1.4,
    "alike": 0.69,
    "longest": "48h",
    "limit": 8.8,
    "quantiles": (
        (0.0, 1), (0.01, 12), (0.05, 69), (0.1, 79), (0.2, 133), (0.3, 141), (0.4, 194), (0.5, 255),
        (0.6, 504), (0.61, 593), (0.7, 2293), (0.8, 7386), (0.85, 10950), (0.9, 15265), (0.95, 39938),
        (0.975, 77614), (0.985, 138561), (0.99, 172800), (1.0, 172800),
    ),
}  # fmt: skip
PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "bursts": (
        "a few large bursts of short jobs, and nothing in between",
        {"session": 150, "session_spread": 0.8, "pause": "200ms", "run_time": "5m", "run_spread": 0.5},
    ),
    "days": (
        "a week of days, nights and a weekend",
        {"days": 7, "jobs": 6000, "session": 10, "night": 0.9, "weekend": 0.3, "run_time": "20m"},
    ),
    "tails": (
        "most jobs are short, a few run for a day or more",
        {"days": 3, "jobs": 3000, "session": 10, "run_time": "4m", "tail": 0.8, "alike": 0.3},
    ),
    "lcg": (
        "a grid like that of LCG-2005: 188,041 jobs of 216 users in 11 days; give jobs and days for less",
        _LCG,
    ),
}


def generated(source: str, seed: int = 0) -> Workload:
    """The workload of `gen:NAME?key=value&…`, NAME being one of `PRESETS`.

    With `jobs` and without `days`, the days change in proportion: the load stays what it is. Raises
    UsageError that names what is wrong.
    """
    name, _, query = source.removeprefix(PREFIX).partition("?")
    if name not in PRESETS:
        raise UsageError(f'there is no generator "{name}"; there are {", ".join(PRESETS)}')
    preset = PRESETS[name][1]
    try:
        pairs = parse_qsl(query, strict_parsing=bool(query))
    except ValueError as error:
        raise UsageError(f'"{query}" is no list of key=value joined by "&"') from error
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key in given:
            raise UsageError(f"{source}: {key} is there twice")
        given[key] = value
    recipe = _checked(source, {**preset, **given})
    if "jobs" in given and "days" not in given:
        usual = Recipe.model_validate(preset)
        recipe = recipe.model_copy(update={"days": usual.days * recipe.jobs / usual.jobs})
    return _workload(source, recipe, seed)


def from_file(path: Path, seed: int = 0) -> Workload:
    """The workload of a recipe in TOML: its keys, and `preset` for what they begin with. Or UsageError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: this is no recipe for a workload, it isn't TOML: {error}") from error
    preset = tables.pop("preset", None)
    if preset is not None and preset not in PRESETS:
        raise UsageError(f'{path.name}: there is no preset "{preset}"; there are {", ".join(PRESETS)}')
    base = PRESETS[preset][1] if preset else {}
    return _workload(path.name, _checked(path.name, {**base, **tables}), seed)


def _checked(name: str, values: Mapping[str, Any]) -> Recipe:
    try:
        return Recipe.model_validate(dict(values))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            raise UsageError(
                f"{name}: there is no {key}; a generator has {', '.join(Recipe.model_fields)}"
            ) from error
        what = fault["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {f'{key}: ' if key else ''}{what[:1].lower()}{what[1:]}") from error


def _workload(name: str, recipe: Recipe, seed: int) -> Workload:
    chosen = seed if recipe.seed is None else recipe.seed
    note = f"{recipe.jobs} jobs in about {spell(round(recipe.days * DAY))}, seed {chosen}"
    return made(name, jobs(recipe, chosen), notes=(note,))


def jobs(recipe: Recipe, seed: int) -> Iterator[Arrival]:
    """As many jobs as the recipe says, session by session."""
    chance = random.Random(seed)  # noqa: S311 - a simulated queue is no secret
    shares = [1 / (rank + 1) ** recipe.zeal for rank in range(recipe.users)]
    weights = [shape.share for shape in recipe.shapes]
    requests = [shape.request for shape in recipe.shapes]
    sizes = list(_sizes(recipe, chance))
    starts, levels = _starts(recipe, len(sizes), chance), _levels(sizes, chance)
    for at, size, level in zip(starts, sizes, levels, strict=True):
        user = f"user{chance.choices(range(recipe.users), shares)[0] + 1}"
        request = chance.choices(requests, weights)[0]
        program = f"{user}/program{_kind(level)}"
        for _ in range(size):
            run = _run_time(recipe, level, chance)
            longest = _limit(recipe, run, chance)
            yield Arrival(at, user, request, run, longest=longest, executable=program)
            at += chance.expovariate(1 / recipe.pause) if recipe.pause else 0.0


def _sizes(recipe: Recipe, chance: random.Random) -> Iterator[int]:
    """Jobs in each session: together exactly as many as are wanted."""
    left = recipe.jobs
    # No session is more than a fiftieth of everything, or chance alone would decide what the load is.
    most = max(2.0 * recipe.session, recipe.jobs / 50)
    while left:
        drawn = recipe.session * math.exp(chance.gauss(0, recipe.session_spread))
        size = min(left, max(1, round(min(drawn, most))))
        left -= size
        yield size


def _starts(recipe: Recipe, count: int, chance: random.Random) -> list[float]:
    """When sessions begin: `count` points of a Poisson process with the rate of the day and the week."""
    starts: list[float] = []
    while len(starts) < count:
        at = chance.uniform(0, recipe.days * DAY)
        if chance.random() < _activity(recipe, at):
            starts.append(at)
    return sorted(starts)


def _levels(sizes: Sequence[int], chance: random.Random) -> list[float]:
    """How long the jobs of each session run, as a standard normal score.

    Drawn so that the scores of all jobs together are as normal as they can be, or the few largest sessions
    would decide how much work there is.
    """
    order = list(range(len(sizes)))
    chance.shuffle(order)
    total, before = sum(sizes), 0.0
    levels = [0.0] * len(sizes)
    for index in order:
        levels[index] = _NORMAL.inv_cdf((before + sizes[index] / 2) / total)
        before += sizes[index]
    return levels


def _activity(recipe: Recipe, at: float) -> float:
    """How much is going on then, as a part of the most: the middle of the day is at 14 o'clock."""
    day, hour = divmod(at / 3600, 24)
    by_day = 1 - recipe.night * (1 - math.cos((hour - 14) / 12 * math.pi)) / 2
    return by_day * (recipe.weekend if day % 7 >= 5 and recipe.days > 5 else 1.0)


def _run_time(recipe: Recipe, level: float, chance: random.Random) -> float:
    score = math.sqrt(recipe.alike) * level + math.sqrt(1 - recipe.alike) * chance.gauss(0, 1)
    # `alike` is a correlation between two jobs; the copula's loading is its root.
    return max(1.0, min(recipe.longest, _quantile(recipe, score)))


def _quantile(recipe: Recipe, score: float) -> float:
    """The run time at a standard normal score."""
    if recipe.quantiles:
        return interpolated(recipe.quantiles, _NORMAL.cdf(score))
    if recipe.tail is not None and score > 0:
        beyond = 2 * (1 - min(_NORMAL.cdf(score), 1 - 1e-12))
        return recipe.run_time * math.pow(beyond, -1 / recipe.tail)
    return recipe.run_time * math.exp(recipe.run_spread * score)


def interpolated(table: Sequence[tuple[float, float]], part: float) -> float:
    """The seconds at this part of the table, between two entries by their logarithms."""
    place = min(max(1, bisect.bisect_left(table, (part, -1.0))), len(table) - 1)
    (low, least), (high, most) = table[place - 1], table[place]
    if least <= 0 or least == most:
        return most if part >= high else least
    return float(least * (most / least) ** ((part - low) / (high - low)))


def _limit(recipe: Recipe, run: float, chance: random.Random) -> float | None:
    if recipe.limit is None:
        return None
    asked = run * math.pow(recipe.limit, 2 * chance.random())
    return max(run, min(recipe.longest, asked))


def _kind(level: float) -> int:
    """A program for each fifth of the levels: who runs it again runs about as long again."""
    return min(_KINDS_OF_PROGRAM, 1 + int(_NORMAL.cdf(level) * _KINDS_OF_PROGRAM))
