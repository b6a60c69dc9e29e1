"""Reasons in words: times and numbers in sentences, and what would change what holds a purchase back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

from updraft.core.model import Reason

REMEDIES: Mapping[str, str] = {
    "budget-low": "the next day or month; a larger `cost_per_day` or `cost_per_month`, or cheaper flavors",
    "budget-spent": "the next day or month; or a larger `cost_per_day` or `cost_per_month`",
    "cloud-disabled": "`updraft cloud enable` of that cloud",
    "cloud-silent": "the cloud's answer; `updraft check` says what is amiss with it",
    "cooling-down": "the end of the rest, or an image, flavor or cloud that works: see `updraft events`",
    "group-quota": "a larger quota of the accounting group at the negotiator, or surplus for it",
    "in-turn": "a shorter `wait_target` of the class buys more machines at once",
    "join-pace": "time; or more collectors: see `updraft pool config`, and `updraft pool load`",
    "limit-class": "a larger `max` or `max_cores` of the class",
    "limit-cores": "a larger `cores` in the limits",
    "limit-cost": "a larger `cost_per_hour` in the limits, or cheaper flavors",
    "limit-memory": "a larger `memory` in the limits",
    "limit-machines": "a larger `machines` in the limits, or larger flavors",
    "no-capacity": "time, or more flavors, zones or clouds for the class",
    "no-launches": "the collector's answer, or the end of `updraft destroy`",
    "no-negotiation": "a negotiator that finishes its cycles: see its log",
    "no-offer": "a flavor that is large enough, attributes of the class, or other requirements",
    "not-evaluable": "a plainer request or requirements of the job",
    "not-taken": "what keeps the negotiator from matching: `condor_q -better-analyze`, concurrency limits; "
    "where nothing does, `condor_hold` and `condor_release` of the job",
    "price-unknown": "the flavor's price under `prices`, or no limit on cost",
    "probing": "the probe's success, or an image, flavor or cloud that works: see `updraft events`",
    "quota": "a larger quota of the cloud's project, or machines in it that end",
    "schedd-silent": "the schedd's answer",
    "sold-out": "time, or more flavors, zones or clouds for the class",
    "spending-unknown": "the daemon's next look; where it stays so, see its log for what can't be recorded",
    "term-cloud": "another cloud in the job's terms, or one more cloud for the class",
    "term-flavor": "another flavor in the job's terms, or the flavor in `flavors` of a class",
    "term-image": "`images_allowed` of the class, or an image that it allows",
    "term-label": "`vm_types` of the class, or the name of a class as VMType",
    "term-layer": "`offered_layers` of the class, or layers that it offers",
    "term-market": "the market in `markets` of the class",
    "term-network": "`networks_allowed` of the class, or a network that it allows",
    "term-price": "a higher price in the job's terms, or cheaper flavors or clouds",
    "term-refused": "`condor_qedit` of what the sentence names, or another submit file",
    "term-size": "a smaller machine in the job's terms, or larger flavors",
    "too-early": "time; or a shorter `min_wait` in [demand]",
    "too-few": "more jobs, room that comes free, or a smaller `min_jobs` in [demand]",
    "too-long": "a longer `lifetime` of the class, or a shorter bound of the job",
    "unproven": "the first machine of that image that joins",
    "type-limit": "a larger `VMTypeLimit` of the job, or jobs of this user that end",
    "user-class-limit": "a larger `max_per_user` or `max_cores_per_user` of the class",
    "user-limit": "a larger `cores_per_user` or `machines_per_user` in the limits, or a table [users.NAME]",
}


@dataclass(frozen=True, slots=True)
class HeldBack(Reason):
    """A reason that holds a purchase back."""

    remedy: Annotated[str, "What would change it."] = ""


def held_back(reason: Reason) -> HeldBack:
    """The reason with what would change it; empty where nobody knows."""
    return HeldBack(reason.code, reason.text, REMEDIES.get(reason.code, ""))


@lru_cache(maxsize=1024)
def spell(length: float) -> str:
    """A duration in seconds in words of the configuration: 5400 is "1h30m"."""
    rest, parts = round(length, 3), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count:.0f}{unit}")
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return "".join(parts)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 machine", "3 machines"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str], most: int) -> str:
    """The first names with commas, and how many more there are: "a, b and 3 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def moment(at: float) -> str:
    """A POSIX time to the second, in UTC: it says the same on every machine whose log it is in."""
    return _moment(int(at))


# The same moments are told of the same machines from decision to decision.
@lru_cache(maxsize=16384)
def _moment(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
