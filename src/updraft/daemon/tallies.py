"""What there is by cloud, class and user, as JSON values for `status`.

Each is counted from the look and the plan of one cycle, and is as old as these.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from updraft.core.machines.cooldowns import CLOUD_ERROR
from updraft.core.matching.verdicts import table_of
from updraft.core.model import (
    NEW_PRIORITY,
    CloudView,
    JobGroup,
    Known,
    MachineId,
    MachineRecord,
    Plan,
    Quota,
    Reason,
    Snapshot,
    Source,
)
from updraft.core.settings import Limits, Policy
from updraft.core.sharing.caps import user_caps
from updraft.core.sharing.shares import standing
from updraft.core.sharing.submitters import sharing, short, trusted
from updraft.daemon.figures import present
from updraft.documents import Row, plain
from updraft.documents.cycle import (
    Both,
    Ceilings,
    ClassTally,
    CloudTally,
    Counted,
    LastError,
    NotEnding,
    Rest,
    Silence,
    UserTally,
)
from updraft.ledger.clouds import Override

USERS_SHOWN = 1000


@dataclass(slots=True)
class _MachineCount:
    """Machines of one cloud or class, and what they are."""

    machines: int = 0
    cores: int = 0
    memory: int = 0
    cost: float = 0.0
    unknown_prices: int = 0
    phases: Counter[str] = field(default_factory=Counter)

    def add(self, record: MachineRecord, phase: str) -> None:
        """Count this machine too."""
        self.machines += 1
        self.cores += record.resources.cpus
        self.memory += record.resources.memory
        self.cost += record.price or 0.0
        self.unknown_prices += record.price is None
        self.phases[phase] += 1

    def told(self) -> Counted:
        """The same as it is shown."""
        cost, phases = round(self.cost, 6), dict(sorted(self.phases.items()))
        return Counted(self.machines, self.cores, self.memory, cost, self.unknown_prices, phases)


def tallies(snapshot: Snapshot, plan: Plan, policy: Policy, decided: Mapping[str, Override]) -> Row:
    """`clouds`, `classes` and `users`; and what `updraft metrics` has besides: see `figures.present`."""
    by_cloud: dict[str, _MachineCount] = {}
    by_class: dict[str, _MachineCount] = {}
    failing: dict[str, list[MachineRecord]] = {}
    phases = {one.key: str(one.phase) for one in plan.machines}
    cores: dict[MachineId, int] = {}
    fleet = present.FleetFigures(policy)
    for record in _living(snapshot, plan):
        cores[record.key] = record.resources.cpus
        phase = phases.get(record.key, "requested")
        by_cloud.setdefault(record.cloud, _MachineCount()).add(record, phase)
        by_class.setdefault(record.worker_class, _MachineCount()).add(record, phase)
        fleet.add(record, phase)
        if record.end_failed is not None:
            failing.setdefault(record.cloud, []).append(record)
    groups = _groups(snapshot)
    found: Row = plain(
        {
            "clouds": list(_clouds(snapshot, plan, policy, decided, by_cloud, failing, cores)),
            "classes": list(_classes(snapshot, policy, groups, by_class)),
            "users": _users(snapshot, policy, groups)[:USERS_SHOWN],
            "fleet": fleet.rows(),
            "waiting": present.waiting(plan, groups, snapshot.now),
            "limits": present.limits(policy),
        }
    )
    return found


def _living(snapshot: Snapshot, plan: Plan) -> Iterator[MachineRecord]:
    """The machines as they are remembered after this plan, those that are over left out."""
    new = {one.key: one for one in plan.records}
    for record in snapshot.ledger.machines:
        now = new.pop(record.key, record)
        if now.ended_at is None:
            yield now
    yield from (one for one in new.values() if one.ended_at is None)


def _groups(snapshot: Snapshot) -> list[JobGroup]:
    known = [_last(source) for source in snapshot.schedds.values()]
    return [group for view in known if view is not None for group in view.groups]


def _last(source: Source[Any]) -> Any:
    """What a source said last, None where it never answered."""
    if isinstance(source, Known):
        return source.value
    return None if source.last is None else source.last.value


# ---------------------------------------------------------------------------------------------- clouds


def _clouds(
    snapshot: Snapshot,
    plan: Plan,
    policy: Policy,
    decided: Mapping[str, Override],
    counts: Mapping[str, _MachineCount],
    failing: Mapping[str, list[MachineRecord]],
    cores: Mapping[MachineId, int],
) -> Iterator[CloudTally]:
    rests = {one.key: one for one in plan.cooldowns if one.scope == "cloud"}
    errors = _errors(snapshot)
    for name in sorted({*policy.clouds, *snapshot.clouds, *counts}):
        rule, view, said = policy.rule(name), snapshot.clouds.get(name), decided.get(name)
        rest = rests.get(name)
        silent, not_ending = _silence(view), _not_ending(failing.get(name, []))
        switched = said.switched if said is not None and said.enabled is not None else None
        left, foreign = _quota(name, view, cores)
        yield CloudTally(
            name=name,
            state="silent" if silent
            else "disabled" if rule.closed
            else "resting" if rest
            else "not-ending" if not_ending
            else "ok",
            silent=silent,
            not_ending=not_ending,
            disabled=rule.closed,
            disabled_at=switched.at if rule.closed is not None and switched is not None else None,
            leaving=rule.leaving is not None,
            rest=None if rest is None else Rest(rest.until, rest.reason),
            priority=rule.priority,
            counted=counts.get(name, _MachineCount()).told(),
            limits=Ceilings.of(policy.cloud_limits.get(name, Limits())),
            last_error=_latest(errors.get(name), silent),
            quota_left=left,
            foreign=foreign,
            credentials_end=None if view is None else view.credentials_end,
        )  # fmt: skip


def _silence(view: CloudView | None) -> Silence | None:
    """Since when a cloud doesn't say what machines it has, and why."""
    if view is None or isinstance(view.machines, Known):
        return None
    last = view.machines.last
    return Silence(view.machines.since, None if last is None else last.at, view.machines.error)


def _not_ending(records: list[MachineRecord]) -> NotEnding | None:
    """How many machines a cloud does not end, since when, and why not the one for which it is longest."""
    first = min(records, key=_not_ended_since, default=None)
    if first is None or first.end_failed is None:
        return None
    return NotEnding(len(records), _not_ended_since(first), first.end_failed)


def _not_ended_since(record: MachineRecord) -> float:
    return record.end_failed_at or record.terminate_asked_at or record.requested_at


def _quota(name: str, view: CloudView | None, cores: Mapping[MachineId, int]) -> tuple[Both, Both]:
    """What the quota leaves, and what others have of it; None where that isn't known. `cores` are ours."""
    quota: Quota = (None if view is None else _last(view.quota)) or Quota()
    ours = [] if view is None else [one.id for one in _last(view.machines) or () if one.alive]
    mine = (len(ours), sum(cores.get(MachineId(name, one), 0) for one in ours))
    used = (quota.used_machines, quota.used_cores)
    foreign = (None if n is None else max(0, n - own) for n, own in zip(used, mine, strict=True))
    return Both(quota.machines, quota.cores), Both(*foreign)


def _errors(snapshot: Snapshot) -> dict[str, tuple[float, Reason]]:
    """The latest error of each cloud in the last day: a launch that failed, a machine that it broke,
    or does not end."""
    found: dict[str, tuple[float, Reason]] = {}

    def note(cloud: str, at: float, reason: Reason) -> None:
        if cloud not in found or at > found[cloud][0]:
            found[cloud] = at, reason

    for launch in snapshot.ledger.launches:
        if launch.error is not None:
            note(launch.cloud, launch.asked_at, launch.error)
    for record in snapshot.ledger.machines:
        if record.ended_at is None and record.end_failed is not None:
            note(record.cloud, record.terminate_asked_at or snapshot.now, record.end_failed)
        elif record.end is not None and record.end.code == CLOUD_ERROR:
            note(record.cloud, record.terminate_asked_at or record.ended_at or snapshot.now, record.end)
    return found


def _latest(error: tuple[float, Reason] | None, silent: Silence | None) -> LastError | None:
    if silent is not None and (error is None or silent.since >= error[0]):
        return LastError(silent.since, silent.reason)
    return None if error is None else LastError(*error)


# --------------------------------------------------------------------------------------------- classes


def _classes(
    snapshot: Snapshot, policy: Policy, groups: list[JobGroup], counts: Mapping[str, _MachineCount]
) -> Iterator[ClassTally]:
    waiting = _waiting(snapshot, groups)
    for name in sorted({*policy.classes, *counts}):
        worker = policy.classes.get(name)
        yield ClassTally(
            name=name,
            counted=counts.get(name, _MachineCount()).told(),
            min=None if worker is None else worker.min_machines,
            max=None if worker is None else worker.max_machines,
            max_cores=None if worker is None else worker.max_cores,
            waiting=waiting.get(name, 0),
        )


def _waiting(snapshot: Snapshot, groups: list[JobGroup]) -> dict[str, int]:
    """How many waiting jobs some offer of a class would run; a job may count for several classes."""
    kinds = list(snapshot.kinds.values())
    if not groups or not kinds:
        return {}
    table = table_of(snapshot.verdicts, groups, kinds)
    columns: dict[str, set[int]] = {}
    for offer in snapshot.offers:
        if offer.kind in table.kind_at:
            columns.setdefault(offer.worker_class, set()).add(table.kind_at[offer.kind])
    found = {}
    for name, mine in columns.items():
        served: list[bool] = np.any(table.copies[:, sorted(mine)] > 0, axis=1).tolist()
        found[name] = sum(group.idle for group, serves in zip(groups, served, strict=True) if serves)
    return found


# ----------------------------------------------------------------------------------------------- users


def _users(snapshot: Snapshot, policy: Policy, groups: Iterable[JobGroup]) -> list[UserTally]:
    """Who has or wants anything, those with the most cores first.

    `share` is the part of the claimed cores that the negotiator would give each, by their priorities alone.
    """
    view = _last(snapshot.collector)
    who = standing(view, policy)
    waiting: Counter[str] = Counter()
    for group in groups:
        waiting[short(trusted(group, policy).submitter)] += group.idle
    names = {name for name in (*who.cores, *waiting) if who.cores.get(name, 0) or waiting[name]}
    machines: dict[str, set[str]] = {}
    for slot in view.slots if view is not None else ():
        for child in slot.children:
            name = short(sharing(child.user, child.submitter, policy))
            machines.setdefault(name, set()).add(slot.instance_id or slot.name)
    weights = {name: 1.0 / (who.shares.priorities.get(name) or NEW_PRIORITY) for name in names}
    total, claimed = sum(weights.values()), sum(who.cores.get(name, 0) for name in names)
    rows = []
    for name in names:
        caps = {cap.of: cap.most for cap in user_caps((name,), policy)}
        cores = who.cores.get(name, 0)
        rows.append(
            UserTally(
                user=name,
                cores=cores,
                waiting=waiting[name],
                machines=len(machines.get(name, ())),
                max_cores=caps.get("cores"),
                max_machines=caps.get("machines"),
                part=cores / claimed if claimed else None,
                share=weights[name] / total,
            )
        )
    return sorted(rows, key=lambda row: (-row.cores, -row.waiting, row.user))
