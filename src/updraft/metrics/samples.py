"""From a picture of the ledger to the values of the metrics.

What is in the ledger is of its own making; still nothing is taken for granted: a document of an older daemon
has fewer keys, and what isn't known has no value, for unknown is not zero.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from updraft import __version__
from updraft.core.model import Phase
from updraft.ledger.counters import BOUNDS, BUCKET, NUMBER, SUM, Labels
from updraft.metrics.families import FAMILIES, PREFIX, FamilyKind
from updraft.metrics.reading import FiguresRead

Sample = tuple[str, Mapping[str, str], float]
"""The metric, its labels, its value."""
Row = Mapping[str, Any]

MIB = 2**20
STATES = ("ok", "silent", "disabled", "resting", "not-ending")
"""The states of a cloud, as `status` has them."""
SCOPES = ("offer", "image", "cloud")
ALWAYS = frozenset({"jobs_lost", "cycles"})
"""Counters without labels that are told before anything was counted: 0 is what they are to say."""
_LIMITS = (
    ("machines", "machines", 1),
    ("cores", "cores", 1),
    ("memory_bytes", "memory", MIB),
    ("cost_per_hour", "cost_per_hour", 1),
)
"""Of limits and of what counts for them: the metric's last words, the row's key, and its unit."""
_SITE_SCOPES = ("pool", "cloud", "class", "group")


def samples(picture: FiguresRead) -> Iterator[Sample]:
    """All values that are known; histograms are in `histograms`."""
    for name, labels, value in _every(picture):
        if value is not None:
            yield PREFIX + name, {key: str(text) for key, text in labels.items()}, float(value)
    yield from counted(picture)


def _every(picture: FiguresRead) -> Iterator[tuple[str, Row, Any]]:
    yield from _controller(picture)
    yield from _jobs(picture.cycle)
    fleet = picture.cycle.get("fleet", [])
    yield from _machines(fleet)
    for (cloud, currency), cost in sorted(picture.costs.items()):
        yield "machine_cost_total", {"cloud": cloud, "currency": currency}, cost
    yield from _clouds(picture.cycle)
    yield from _limits(picture.cycle, fleet)
    yield from _budgets(picture.cycle)


# ------------------------------------------------------------------------------------------ gauges


def _controller(picture: FiguresRead) -> Iterator[tuple[str, Row, Any]]:
    state, cycle = picture.state, picture.cycle
    yield "info", {"version": __version__, "pool": picture.pool}, 1
    yield "ledger_readable", {}, picture.unread is None
    yield "controller_up", {}, picture.up
    yield "controller_acting", {}, picture.acting
    if picture.up and state.get("standing"):
        yield "controller_standing", {"reason": state["standing"]["code"]}, 1
    yield "controller_start_time_seconds", {}, state.get("since")
    yield "look_timestamp_seconds", {}, state.get("looked_at")
    for stage, seconds in cycle.get("timings", {}).items():
        yield "cycle_stage_duration_seconds", {"stage": stage}, seconds
    known = Counter((_source(name), one["state"]) for name, one in cycle.get("sources", {}).items())
    for source in {source for source, _ in known}:
        for said in ("known", "unknown"):
            yield "sources", {"source": source, "state": said}, known[source, said]
    for code, number in Counter(one["code"] for one in cycle.get("warnings", [])).items():
        yield "warnings", {"reason": code}, number
    for credential, end in picture.expiries.items():
        yield "credential_expiry_timestamp_seconds", {"credential": credential}, end


def _source(name: str) -> str:
    """What sort of source this is: the names of schedds aren't the site's alone."""
    if name.startswith("schedd"):
        return "schedd"
    return f"cloud-{name.rpartition(': ')[2]}" if name.startswith("cloud ") else name


def _jobs(cycle: Row) -> Iterator[tuple[str, Row, Any]]:
    for state, number in cycle.get("jobs", {}).items():
        yield "jobs", {"state": state}, number
    waiting = cycle.get("waiting", {})
    for reason, number in waiting.get("reasons", {}).items():
        yield "jobs_waiting", {"reason": reason}, number
    yield "oldest_waiting_timestamp_seconds", {}, waiting.get("oldest")


def _machines(fleet: Iterable[Row]) -> Iterator[tuple[str, Row, Any]]:
    fleet = list(fleet)
    places: dict[tuple[str, str, str], list[Row]] = {}
    for row in fleet:
        places.setdefault((row["cloud"], row["class"], row["market"]), []).append(row)
    for place, rows in places.items():
        labels = dict(zip(("cloud", "class", "market"), place, strict=True))
        phases = {row["phase"]: row for row in rows}
        for phase in Phase:  # each of them, so that a line falls to 0 and doesn't end
            row = phases.get(phase, {})
            yield "machines", {**labels, "phase": phase}, row.get("machines", 0)
            yield "machine_cores", {**labels, "phase": phase}, row.get("cores", 0)
        yield "machine_cost_per_hour", labels, sum(row["cost_per_hour"] for row in rows)
        yield "machines_without_price", labels, sum(row["unknown_prices"] for row in rows)


def _clouds(cycle: Row) -> Iterator[tuple[str, Row, Any]]:
    for row in cycle.get("clouds", []):
        cloud = {"cloud": row["name"]}
        for state in STATES:
            yield "cloud_state", {**cloud, "state": state}, row["state"] == state
        yield "machines_not_ending", cloud, (row.get("not_ending") or {}).get("machines", 0)
        left = row.get("quota_left") or {}
        yield "quota_left_machines", cloud, left.get("machines")
        yield "quota_left_cores", cloud, left.get("cores")
    rests = cycle.get("cooldowns", []) if cycle else None
    for scope in SCOPES if rests is not None else ():
        failures = [one["failures"] for one in rests or () if one["scope"] == scope]
        yield "cooldowns", {"scope": scope}, len(failures)
        yield "cooldown_failures", {"scope": scope}, max(failures, default=0)


# ------------------------------------------------------------------------------ limits and budgets


def _limits(cycle: Row, fleet: Iterable[Row]) -> Iterator[tuple[str, Row, Any]]:
    rows = cycle.get("clouds", [])
    if "limits" in cycle:
        sums = {what: sum(row.get(what, 0) for row in rows) for _, what, _ in _LIMITS}
        yield from _limited("pool", "", cycle["limits"], sums)
    for row in rows:
        yield from _limited("cloud", row["name"], row["limits"], row)
    for row in cycle.get("classes", []):
        yield from _limited("class", row["name"], {"machines": row["max"], "cores": row["max_cores"]}, row)


def _limited(scope: str, name: str, most: Row, used: Row) -> Iterator[tuple[str, Row, Any]]:
    labels = {"scope": scope, "name": name}
    for metric, what, unit in _LIMITS:
        limit, use = most.get(what), used.get(what)
        yield f"limit_{metric}", labels, None if limit is None else limit * unit
        yield f"used_{metric}", labels, None if use is None else use * unit


def _budgets(cycle: Row) -> Iterator[tuple[str, Row, Any]]:
    """Budgets of money for a day or a month, where the last cycle has any.

    Those that each user has are left out: there may be as many as there are users.
    """
    for row in cycle.get("spending", []):
        if row.get("scope") not in _SITE_SCOPES:
            continue
        labels = {"scope": row["scope"], "name": row.get("name", ""), "period": row["period"]}
        yield "budget", labels, row["most"]
        yield "budget_spent", labels, row.get("spent")
        yield "budget_exhausted_timestamp_seconds", labels, row.get("runs_out")


# ---------------------------------------------------------------------------------------- counters


def counted(picture: FiguresRead) -> Iterator[Sample]:
    """What the ledger has counted, of every metric that is such a counter."""
    for family in FAMILIES.values():
        if family.kind is not FamilyKind.COUNTER:
            continue
        found = picture.counters.get(family.counted, {})
        if family.counted in ALWAYS and not picture.unread and not found:
            yield family.name, {}, 0.0
        for labels, value in found.items():
            yield family.name, dict(labels), value


def histograms(
    picture: FiguresRead, name: str
) -> Iterator[tuple[Mapping[str, str], list[tuple[str, float]], float]]:
    """For each place its labels, the numbers up to each bound (the last is all), and the values' sum."""
    numbers = picture.counters.get(name + NUMBER, {})
    within = picture.counters.get(name + BUCKET, {})
    sums = picture.counters.get(name + SUM, {})
    for labels in numbers:
        below, buckets = 0.0, []
        for bound in (*(f"{one:g}" for one in BOUNDS[name]), "+Inf"):
            below += within.get(_with(labels, bound), 0.0)
            buckets.append((bound, below))
        yield dict(labels), buckets, sums.get(labels, 0.0)


def _with(labels: Labels, bound: str) -> Labels:
    return tuple(sorted((*labels, ("le", bound))))
