"""Mixed queues and 90 offers, what holding them must cost at least, and a plain rule to compare with.

Everything follows from a seed. Prices are those of no cloud in particular, but of their shape: about linear
in the size, spot at a quarter to a half of on-demand, families with 2, 4 and 8 GiB for each core, two with
GPUs.
"""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from tests.bench.rows import Measured
from updraft.core.buying.shopping import Shopping, buy
from updraft.core.matching.match import asked, by_quantity
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, Kind, Offer, Reason, Resources, Verdict
from updraft.core.slots.catalogue import usable

CLOUDS = ("c1", "c2", "c3")
# Family: GiB for each core, price of a core, GPUs for each eight cores, sizes in cores.
FAMILIES = {
    "compute": (2, 0.0425, 0, (4, 16, 64)),
    "general": (4, 0.048, 0, (1, 2, 4, 8, 32)),
    "memory": (8, 0.063, 0, (2, 8, 16, 64)),
    "gpu": (4, 0.094, 1, (8, 32)),
    "big-gpu": (8, 0.38, 1, (8,)),
}
MARKETS = ("on-demand", "spot")
GIB = 1024
DISK_OF_A_CORE = 20 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """A queue and what is on sale for it. `queue` is groups with counts, as `buy` takes them."""

    name: str
    queue: tuple[tuple[JobGroup, int], ...]
    offers: tuple[Offer, ...]
    kinds: dict[str, Kind]
    table: VerdictTable


def offers_and_kinds(seed: int, zones: int = 1) -> tuple[tuple[Offer, ...], dict[str, Kind]]:
    """90 offers a zone: 3 clouds, 15 flavors, on-demand and spot. Every market has kinds of its own."""
    dice = random.Random(f"offers {seed}")
    offers, kinds = [], {}
    for cloud in CLOUDS:
        level = dice.uniform(0.93, 1.08)
        for family, (gib, price, gpus, sizes) in FAMILIES.items():
            dear = dice.uniform(0.95, 1.05)
            for cpus in sizes:
                sold = Resources(
                    cpus, cpus * gib * GIB, (cpus * DISK_OF_A_CORE) + (30 << 20), gpus * cpus // 8
                )
                for zone, market in ((z, m) for z in range(zones) for m in MARKETS):
                    share = 1.0 if market == "on-demand" else dice.uniform(0.26, 0.5)
                    key = f"{cloud}/z{zone}/{family}-{cpus}/{market}"
                    whole = usable(sold)
                    kinds[key] = Kind(key, "", whole)
                    cost = round(cpus * price * level * dear * share, 5)
                    offers.append(
                        Offer("w", cloud, f"z{zone}", f"{family}-{cpus}", market, "i", "g", whole, key, cost)
                    )
    return tuple(offers), kinds


def queue_of(seed: int, groups: int, cores: float) -> tuple[tuple[JobGroup, int], ...]:
    """Job groups of twenty owners whose jobs ask for about so many cores together."""
    dice = random.Random(f"queue {seed} {groups}")
    weights = [dice.paretovariate(1.3) for _ in range(groups)]
    found = []
    for at, weight in enumerate(weights):
        cpus = dice.choice((1, 1, 1, 1, 2, 2, 4, 4, 8, 16))
        memory = max(128, min(200 * GIB, round(cpus * dice.lognormvariate(0.9, 0.6) * 10) * 102))
        gpus = dice.choice((1, 1, 2)) if dice.random() < 0.04 else 0
        disk = min(cpus * 30, round(dice.lognormvariate(1.5, 1.0)) + 1) << 20
        count = max(1, round(cores * weight / sum(weights) / cpus))
        owner = f"user{dice.randrange(20)}"
        request = Resources(cpus, memory, disk, gpus)
        group = JobGroup(f"g{at:04d}", "s", owner, owner, "", request, count, oldest=float(at))
        found.append((group, count))
    return tuple(found)


def case(seed: int, groups: int, cores: float, zones: int = 1) -> Case:
    """One queue with its offers; a few groups insist on a cloud, or refuse spot machines."""
    dice = random.Random(f"wishes {seed} {groups}")
    queue = queue_of(seed, groups, cores)
    offers, kinds = offers_and_kinds(seed, zones)
    names = list(kinds)
    copies = np.zeros((len(queue), len(names)), dtype=np.int32)
    for row, (group, _) in enumerate(queue):
        cloud = dice.choice(CLOUDS) if dice.random() < 0.06 else ""
        market = "on-demand" if dice.random() < 0.06 else ""
        for column, name in enumerate(names):
            if name.startswith(cloud) and name.endswith(market):
                whole = kinds[name]
                asks = asked(group.request, whole)
                copies[row, column] = by_quantity(whole.resources, asks, group.request)
    keys = [group.key for group, _ in queue]

    def explain(row: int, column: int) -> Verdict:
        return Verdict(int(copies[row, column]), asked(queue[row][0].request, kinds[names[column]]))

    at = {key: n for n, key in enumerate(keys)}, {key: n for n, key in enumerate(names)}
    table = VerdictTable(keys, names, copies, explain, *at)
    return Case(f"{groups} groups, seed {seed}", _servable(queue, copies), offers, kinds, table)


def _servable(queue: Sequence[tuple[JobGroup, int]], copies: np.ndarray) -> tuple[tuple[JobGroup, int], ...]:
    return tuple(item for row, item in enumerate(queue) if copies[row].max() > 0)


# ------------------------------------------------------------------------------------------ the lower bound


def lower_bound(this: Case) -> tuple[float, float]:
    """The least that fractional machines and jobs cost, and how many machines that is.

    Each group only on offers that hold one of its jobs; cpus, memory, disk and GPUs are held together.
    """
    offers, queue = this.offers, this.queue
    pairs = [
        (g, o)
        for g, (group, _) in enumerate(queue)
        for o, offer in enumerate(offers)
        if this.table.copies[this.table.group_at[group.key], this.table.kind_at[offer.kind]] > 0
    ]
    starts, index, value = [], [], []
    rows = len(queue) + 4 * len(offers)
    for g, o in pairs:
        starts.append(len(index))
        index.append(g)
        value.append(1.0)
        asks = _four(asked(queue[g][0].request, this.kinds[offers[o].kind]))
        for d, want in enumerate(asks):
            if want:
                index.append(len(queue) + 4 * o + d)
                value.append(want / _SCALE[d])
    for o, offer in enumerate(offers):
        starts.append(len(index))
        for d, have in enumerate(_four(this.kinds[offer.kind].resources)):
            if have:
                index.append(len(queue) + 4 * o + d)
                value.append(-have / _SCALE[d])
    columns = len(pairs) + len(offers)
    cost = np.array([0.0] * len(pairs) + [offer.price or 0.0 for offer in offers])
    lower = np.array([float(n) for _, n in queue] + [-highspy.kHighsInf] * (4 * len(offers)))
    upper = np.array([float(n) for _, n in queue] + [0.0] * (4 * len(offers)))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(
        columns, rows, len(index), 1, 1, 0.0, cost, np.zeros(columns),
        np.full(columns, highspy.kHighsInf), lower, upper,
        np.array(starts, dtype=np.int32), np.array(index, dtype=np.int32), np.array(value),
        np.zeros(columns, dtype=np.int32),
    )  # fmt: skip
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"no bound for {this.name}: {solver.getModelStatus()}")
    machines = float(np.array(solver.getSolution().col_value)[len(pairs) :].sum())
    return float(solver.getInfo().objective_function_value), machines


_SCALE = (1.0, 1024.0, 1024.0 * 1024.0, 1.0)


def _four(size: Resources) -> tuple[int, int, int, int]:
    return size.cpus, size.memory, size.disk, size.gpus


# ------------------------------------------------------------------------------- first fit, the plain rule


def first_fit(this: Case) -> float:
    """First-fit decreasing: each job, the largest first, onto the first machine that has room for it; where
    none has, a machine of the offer that is cheapest for one of these jobs when it is full of them.
    """
    groups = sorted(this.queue, key=lambda item: (-max(_share(item[0])), item[0].key))
    machines: list[list[object]] = []  # [offer, free, count]: equal machines are kept together
    paid = 0.0
    for group, count in groups:
        row = this.table.copies[this.table.group_at[group.key]]
        left = count
        for at in range(len(machines)):
            offer = machines[at][0]
            if not left or row[this.table.kind_at[offer.kind]] <= 0:
                continue
            left = _onto(machines, at, asked(group.request, this.kinds[offer.kind]), left)
        if left:
            best = min(
                (o for o in this.offers if row[this.table.kind_at[o.kind]] > 0),
                key=lambda o: ((o.price or 0.0) / row[this.table.kind_at[o.kind]], o.key),
            )
            whole, asks = this.kinds[best.kind].resources, asked(group.request, this.kinds[best.kind])
            each = whole.holds(asks)
            full, rest = divmod(left, each)
            if full:
                machines.append([best, whole - asks.times(each), full])
            if rest:
                machines.append([best, whole - asks.times(rest), 1])
            paid += (best.price or 0.0) * (full + (rest > 0))
    return paid


def _onto(machines: list[list[object]], at: int, asks: Resources, left: int) -> int:
    """Fill up equal machines with up to `left` jobs; returns how many found no room."""
    offer, free, number = machines[at]
    each = free.holds(asks)
    if not each:
        return left
    full = min(number, left // each)
    parts = []
    if full:
        parts.append([offer, free - asks.times(each), full])
    left -= full * each
    if full < number and left:
        parts.append([offer, free - asks.times(left), 1])
        full, left = full + 1, 0
    if full < number:
        parts.append([offer, free, number - full])
    machines[at] = parts[0]
    machines.extend(parts[1:])
    return left


def _share(group: JobGroup) -> tuple[float, ...]:
    have = (64.0, 512.0 * GIB, float(64 * DISK_OF_A_CORE), 4.0)
    return tuple(want / most for want, most in zip(_four(group.request), have, strict=True))


# ------------------------------------------------------------------------------------- what comes of buying

CASES = 40
SIZES = (12, 16, 25, 40, 60, 100, 160, 250, 400, 1000)
ENOUGH_MACHINES = 10.0


def freely(offer: Offer, count: int) -> tuple[int, Reason | None]:
    """Nothing is limited."""
    return count, None


def paid(shopping: Shopping) -> float:
    """What a shopping costs, per hour."""
    return sum((purchase.offer.price or 0.0) * purchase.count for purchase in shopping.purchases)


def cases() -> Iterator[Case]:
    """The mixed queues of the benchmark: 12 to 1,000 groups, each with 15, 40 or 120 cores' worth of jobs."""
    dice = random.Random("sizes")
    for seed in range(CASES):
        groups = SIZES[seed % len(SIZES)]
        yield case(seed, groups, groups * dice.choice((15, 40, 120)))


def prices() -> dict[str, Any]:
    """The price of each queue's shopping over its lower bound, and that of first fit, where ten machines or
    more are needed.
    """
    seen = []
    for this in cases():
        least, machines = lower_bound(this)
        if machines < ENOUGH_MACHINES:
            continue
        begun = time.perf_counter()
        shopping = buy(this.queue, this.offers, this.kinds, this.table, freely)
        took = time.perf_counter() - begun
        if shopping.left:
            raise RuntimeError(f"{this.name}: jobs were left without a machine")
        ratios = {"ratio": paid(shopping) / least, "first_fit": first_fit(this) / least}
        counts = {"groups": len(this.queue), "jobs": sum(count for _, count in this.queue)}
        seen.append({"case": this.name, **counts, "machines": machines, "seconds": took, **ratios})
    return {
        "cases": len(seen),
        "median": statistics.median(each["ratio"] for each in seen),
        "worst": max(each["ratio"] for each in seen),
        "first_fit_median": statistics.median(each["first_fit"] for each in seen),
        "first_fit_worst": max(each["first_fit"] for each in seen),
        "above_first_fit": [each["case"] for each in seen if each["ratio"] > each["first_fit"] + 1e-9],
        "each": seen,
    }


def speed() -> Measured:
    """The largest question's time; the others are in the detail."""
    seen = speeds()
    return Measured(list(seen.values())[-1]["median_s"], seen)


def speeds(times: int = 3) -> dict[str, dict[str, float]]:
    """How long buying takes for large queues, by groups, jobs and offers; the median of some times."""
    found = {}
    for groups, zones in ((100, 22), (1000, 2), (1000, 22)):
        this = case(1, groups, 1_750_000.0, zones)
        taken = []
        for _ in range(times):
            begun = time.perf_counter()
            buy(this.queue, this.offers, this.kinds, this.table, freely)
            taken.append(time.perf_counter() - begun)
        jobs = sum(count for _, count in this.queue)
        found[f"{groups} groups, {jobs} jobs, {len(this.offers)} offers"] = {
            "median_s": statistics.median(taken),
            "least_s": min(taken),
        }
    return found
