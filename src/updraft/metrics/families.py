"""Every metric: its name, its kind, what it says, and its labels.

The names go by Prometheus' own rules (https://prometheus.io/docs/practices/naming/): a prefix, base units
(seconds, bytes), the unit last, `_total` behind counters, a moment as its Unix time and not as its age.
Money has no base unit: it is in the currency of the site's prices, for an hour where the name says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "updraft_"


class FamilyKind(StrEnum):
    """What Prometheus may do with a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric; `counted` is what its values are called in the ledger's counters, "" of those that aren't."""

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...] = ()
    counted: str = ""


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(PREFIX + name, FamilyKind.GAUGE, text, labels)


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(f"{PREFIX}{name}_total", FamilyKind.COUNTER, text, labels, name)


def _histogram(name: str, text: str, *labels: str) -> Family:
    return Family(PREFIX + name, FamilyKind.HISTOGRAM, text, labels, name)


_PLACE = ("cloud", "class", "market")
_LIMITED = ("scope", "name")
_SCOPES = "scope is pool, cloud or class, and name says which; empty for the pool."
_BUDGET_SCOPES = "scope is pool, cloud, class or group, and name says which; empty for the pool."

_CONTROLLER = (
    _gauge("info", "Always 1: the version of updraft, and the pool that it looks after.", "version", "pool"),
    _gauge("ledger_readable", "1 if the ledger could be read; else nothing that is in it is told."),
    _gauge(
        "controller_up", "1 if the controller has looked at the pool within a minute, and its process lives."
    ),
    _gauge("controller_acting", "1 if the controller is up and acts; 0 also while it waits for another one."),
    _gauge("controller_standing", "1 for the reason for which the controller does not act.", "reason"),
    _gauge("controller_start_time_seconds", "When the controller started, in Unix time."),
    _gauge("look_timestamp_seconds", "When the controller last looked at the pool, in Unix time."),
    _gauge("cycle_stage_duration_seconds", "How long each stage of the last written cycle took.", "stage"),
    _counter("cycles", "Cycles of the controller: looking, planning and acting once."),
    _counter("cycle_stage_seconds", "Time that the cycles took, by stage.", "stage"),
    _gauge("sources", "Sources that the last look knew, and those that did not answer.", "source", "state"),
    _gauge("warnings", "Warnings that stand, by their code.", "reason"),
    _gauge(
        "credential_expiry_timestamp_seconds",
        "When a credential of the controller ends, in Unix time.",
        "credential",
    ),
)
_JOBS = (
    _gauge("jobs", "Jobs in the queues, by state.", "state"),
    _gauge(
        "jobs_waiting",
        "Waiting jobs by the first reason for it; has-room, machines-coming, launching find room.",
        "reason",
    ),
    _gauge(
        "oldest_waiting_timestamp_seconds",
        "When the oldest waiting job was submitted; absent where none waits.",
    ),
    _counter(
        "jobs_lost",
        "Jobs that updraft has ended with neither an order nor a deadline: stays 0, or is a fault.",
    ),
    _counter("jobs_cut_short", "Jobs that ended with their machine, by order or after a deadline.", "reason"),
    _counter(
        "jobs_requeued", "Jobs of machines that are gone which were given back to their queue.", "reason"
    ),
)
_MACHINES = (
    _gauge("machines", "Machines, those on their way included.", *_PLACE, "phase"),
    _gauge("machine_cores", "Cores of the machines.", *_PLACE, "phase"),
    _gauge("machine_cost_per_hour", "What the machines of known price cost per hour.", *_PLACE),
    _gauge(
        "machines_without_price", "Machines whose price isn't known: their cost is in no figure.", *_PLACE
    ),
    _counter(
        "machine_cost",
        "What the machines have cost at list prices: an estimate, not the bill.",
        "cloud",
        "currency",
    ),
    _counter("launches", "Launches that were asked of clouds.", *_PLACE),
    _counter("launched_machines_wanted", "Machines that launches asked for.", *_PLACE),
    _counter("launched_machines", "Machines that clouds accepted to make.", *_PLACE),
    _counter(
        "launch_failures",
        "Launches that failed, or that had no answer, by the code of the reason.",
        *_PLACE,
        "reason",
    ),
    _histogram(
        "machine_boot_seconds",
        "From when its cloud first showed a machine to when it joined.",
        "cloud",
        "class",
    ),
    _histogram(
        "machine_join_seconds", "From the request for a machine to when it joined the pool.", "cloud", "class"
    ),
    _counter("machine_ends", "Machines that are over, by the code of the reason.", *_PLACE, "reason"),
    _gauge("machines_not_ending", "Machines that their cloud does not end though it was told to.", "cloud"),
)
_CLOUDS = (
    _gauge("cloud_state", "1 for the state that a cloud is in.", "cloud", "state"),
    _counter(
        "cloud_calls", "Calls of a cloud's driver; what is answered from memory is none.", "cloud", "call"
    ),
    _counter("cloud_call_seconds", "Time that the calls took.", "cloud", "call"),
    _counter(
        "cloud_call_errors",
        "Calls that failed, by code; throttled is a cloud that wants fewer.",
        "cloud",
        "call",
        "reason",
    ),
    _gauge(
        "quota_left_machines", "Machines that a cloud's quota leaves; absent where it isn't known.", "cloud"
    ),
    _gauge("quota_left_cores", "Cores that a cloud's quota leaves; absent where it isn't known.", "cloud"),
    _gauge(
        "cooldowns", "Rests after failures that stand, by what rests: an offer, an image or a cloud.", "scope"
    ),
    _gauge("cooldown_failures", "The most failures in a row of what rests.", "scope"),
)
_LIMITS = (
    _gauge("limit_machines", f"Machines at one time, at most; {_SCOPES}", *_LIMITED),
    _gauge("limit_cores", f"Cores at one time, at most; {_SCOPES}", *_LIMITED),
    _gauge("limit_memory_bytes", f"Memory at one time, at most; {_SCOPES}", *_LIMITED),
    _gauge("limit_cost_per_hour", f"Cost per hour, at most; {_SCOPES}", *_LIMITED),
    _gauge("used_machines", f"Machines that count for the limit; {_SCOPES}", *_LIMITED),
    _gauge("used_cores", f"Cores that count for the limit; {_SCOPES}", *_LIMITED),
    _gauge("used_memory_bytes", f"Memory that counts for the limit; {_SCOPES}", *_LIMITED),
    _gauge("used_cost_per_hour", f"Cost per hour that counts for the limit; {_SCOPES}", *_LIMITED),
    _gauge("budget", f"What may be spent in the period; {_BUDGET_SCOPES}", *_LIMITED, "period"),
    _gauge(
        "budget_spent",
        f"What was spent of it in the period, as estimated; {_BUDGET_SCOPES}",
        *_LIMITED,
        "period",
    ),
    _gauge(
        "budget_exhausted_timestamp_seconds",
        "When a budget will be spent at this rate; absent where it won't.",
        *_LIMITED,
        "period",
    ),
)
_NOTIFY = (
    _counter(
        "notifications",
        "Messages to people since this process started, by receiver and outcome.",
        "receiver",
        "outcome",
    ),
)
GROUPS: Mapping[str, tuple[Family, ...]] = {
    "The controller": _CONTROLLER,
    "Jobs": _JOBS,
    "Machines and money": _MACHINES,
    "Clouds": _CLOUDS,
    "Limits and budgets": _LIMITS,
    "Messages": _NOTIFY,
}
"""All of them, by what they are about, in the order of the reference."""
FAMILIES: Mapping[str, Family] = {one.name: one for group in GROUPS.values() for one in group}
"""All of them by name."""
