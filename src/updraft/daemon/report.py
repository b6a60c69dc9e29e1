"""A cycle in words and as a document: for the log, and for `status` and `explain`."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from updraft.clouds.odd import readable
from updraft.core.demand.left_out import LEFT_OUT_REPORT
from updraft.core.limits.spending import holds
from updraft.core.model import (
    Action,
    Adopt,
    Disown,
    Drain,
    Forget,
    GroupOutlook,
    JobGroup,
    Known,
    Launch,
    LaunchState,
    MachineOutlook,
    Plan,
    Reason,
    RequeueJobs,
    Snapshot,
    Source,
    Spending,
    Terminate,
    Undrain,
)
from updraft.documents import Row, plain
from updraft.documents.cycle import (
    ActionRow,
    BudgetRow,
    GroupRow,
    JobCounts,
    Look,
    Refused,
    Room,
    SourceState,
)
from updraft.ledger import Event
from updraft.observe.schedds import ANY

# A document is written every few seconds: what it holds of each is bounded, however large the pool.
GROUPS_SHOWN = 500
MACHINES_SHOWN = 10_000
ACTIONS_SHOWN = 500
WARNINGS_SHOWN = 500
REFUSALS_SHOWN = 30
LINES = 100  # of actions in the log of one cycle
_JSON = json.JSONEncoder(allow_nan=False)


def document(
    snapshot: Snapshot, plan: Plan, *, standing: Reason | None, timings: Mapping[str, float], generation: int
) -> tuple[dict[str, Any], Plan]:
    """The cycle as JSON values, and the plan as they tell it: without what can't be written, which its
    warnings name. `generation` counts the configurations that were loaded.
    """
    plan, rows = _written(snapshot, plan)
    look = Look(
        version=1,
        at=snapshot.now,
        pool=snapshot.pool,
        acting=standing is None,
        standing=standing,
        configuration=generation,
        timings={name: round(seconds, 3) for name, seconds in timings.items()},
        sources=sources(snapshot),
        jobs=jobs(snapshot),
        phases=Counter(str(outlook.phase) for outlook in plan.machines),
        **rows,
    )
    return plain(look), plan


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the plan's lists: what one of it is called, how a row is made of it, how many rows are shown."""

    what: str
    row: Callable[[Any], Any]
    name: Callable[[Any], str]
    shown: int | None = None


def _written(snapshot: Snapshot, plan: Plan) -> tuple[Plan, dict[str, list[dict[str, Any]]]]:
    """The plan without that of which no row can be made, and the rows by the name of their list."""
    rows: dict[str, list[dict[str, Any]]] = {}
    kept: dict[str, Any] = {}
    odd: dict[str, str] = {}
    for name, part in _parts(snapshot, plan).items():
        items = getattr(plan, name)
        both, lost = readable(items[: part.shown], partial(_row, part.row), part.name)
        rows[name] = [row for row, _ in both]
        rest = () if part.shown is None else items[part.shown :]
        kept[name] = (*(one for _, one in both), *rest) if lost else items
        odd |= {f"{part.what} {what}": why for what, why in lost.items()}
    if odd:
        said = [
            Reason(LEFT_OUT_REPORT, f"left out of the report: {what}: {why}") for what, why in odd.items()
        ]
        rows["warnings"] += map(plain, said)
        kept["warnings"] = (*kept["warnings"], *said)
    return replace(plan, **kept), rows


def _parts(snapshot: Snapshot, plan: Plan) -> Mapping[str, _Part]:
    groups, known = _known_groups(snapshot), classes(snapshot, plan)

    def action(one: Action) -> ActionRow:
        return ActionRow(type(one).__name__.lower(), words(one, known), _checked(one.reason))

    return {
        "groups": _Part("group", partial(_group, groups), lambda one: str(one.group), GROUPS_SHOWN),
        "machines": _Part("machine", _machine, lambda one: str(one.machine), MACHINES_SHOWN),
        "cooldowns": _Part("cooldown", plain, lambda one: f"{one.scope} {one.key}"),
        "annexes": _Part("annex", plain, lambda one: str(one.name)),
        "spending": _Part("budget", partial(_budget, plan), lambda one: str(one.whose)),
        "warnings": _Part("warning", _checked, lambda one: str(one.code), WARNINGS_SHOWN),
        "actions": _Part("action", action, lambda one: type(one).__name__.lower(), ACTIONS_SHOWN),
    }


def _row(make: Callable[[Any], Any], one: Any) -> tuple[Row, Any]:
    """What is made of it, and itself. Raises where that is no JSON."""
    made = plain(make(one))
    if not isinstance(made, dict):
        raise TypeError(f"{made!r} is none")
    _JSON.encode(made)
    return made, one


def _checked(reason: Reason) -> Reason:
    if not (isinstance(reason.code, str) and isinstance(reason.text, str)):
        raise TypeError("its reason is no text")
    return reason


def _machine(outlook: MachineOutlook) -> MachineOutlook:
    _checked(outlook.reason)
    return outlook


def _budget(plan: Plan, one: Spending) -> BudgetRow:
    return BudgetRow.of(
        one,
        spent=None if one.spent is None else round(one.spent, 6),
        cost_per_hour=None if one.burn is None else round(one.burn, 6),
        waiting=sum(group.unmet for group in plan.groups if holds(one, group.held_back)),
    )


def substance(doc: Mapping[str, Any]) -> str:
    """What of a document is worth writing again; a cycle that only grew older by two seconds is not."""
    kept = {key: doc[key] for key in ("acting", "standing", "configuration", "jobs", "phases", "warnings")}
    kept["sources"] = {name: source["state"] for name, source in doc["sources"].items()}
    kept["groups"] = [{**group, "oldest": 0} for group in doc["groups"]]
    kept["machines"] = [(m["cloud"], m["machine"], m["phase"], m["reason"]["code"]) for m in doc["machines"]]
    kept["actions"] = doc["actions"]
    kept["annexes"] = doc["annexes"]
    kept["cooldowns"] = [(c["scope"], c["key"], c["failures"]) for c in doc["cooldowns"]]
    return json.dumps(kept, sort_keys=True, default=str)


def sources(snapshot: Snapshot) -> dict[str, SourceState]:
    """Each source by name: known, and as of when, or unknown, since when and why."""
    found = {
        "schedds" if name == ANY else f"schedd {name}": _source(source)
        for name, source in snapshot.schedds.items()
    }
    found["collector"] = _source(snapshot.collector)
    for name, view in snapshot.clouds.items():
        found[f"cloud {name}: machines"] = _source(view.machines)
        found[f"cloud {name}: offers"] = _source(view.offers)
        found[f"cloud {name}: quota"] = _source(view.quota)
    return found


def _source(source: Source[Any]) -> SourceState:
    if isinstance(source, Known):
        return SourceState("known", source.at)
    last = None if source.last is None else source.last.at
    return SourceState("unknown", since=source.since, error=source.error, last=last)


def jobs(snapshot: Snapshot) -> JobCounts:
    """How many jobs wait and run, by the last that each schedd said."""
    idle = running = 0
    for source in snapshot.schedds.values():
        known = source if isinstance(source, Known) else source.last
        if known is not None:
            idle += known.value.idle_total
            running += known.value.running_total
    return JobCounts(idle, running)


def _known_groups(snapshot: Snapshot) -> Mapping[str, JobGroup]:
    groups: dict[str, JobGroup] = {}
    for source in snapshot.schedds.values():
        known = source if isinstance(source, Known) else source.last
        if known is not None:
            groups.update({group.key: group for group in known.value.groups})
    return groups


def _group(groups: Mapping[str, JobGroup], outlook: GroupOutlook) -> GroupRow:
    refused = tuple(Refused(offer, reason) for offer, reason in outlook.refused[:REFUSALS_SHOWN])
    known = (groups[outlook.group],) if outlook.group in groups else ()
    return GroupRow.of(*known, key=outlook.group, room=Room.planned(outlook), refused=refused)


def words(action: Action, classes: Mapping[str, str]) -> str:
    """An action in words that a person understands. `classes` are those of the machines, by id."""
    if isinstance(action, Launch):
        offer = action.offer
        what = f"launching {action.count} × {offer.flavor} of class {offer.worker_class} on {offer.cloud}"
        return f"{what}: {action.reason.text}"
    if isinstance(action, Terminate):
        names = ", ".join(action.machines[:3]) + (" and others" if len(action.machines) > 3 else "")
        return f"ending {len(action.machines)} on {action.cloud} ({names}): {action.reason.text}"
    if isinstance(action, RequeueJobs) and not action.machine:
        return f"releasing {len(action.jobs)} jobs of {action.schedd}: {action.reason.text}"
    known = classes.get(action.machine, "")
    machine = f"machine {action.machine}" + (f" of class {known}" if known else "")
    if isinstance(action, Drain) and action.reason.code == "idle-limit":
        return f"{machine} is {action.reason.text}: draining"
    return f"{_VERBS[type(action)]} {machine}: {action.reason.text}"


_VERBS: Mapping[type[Action], str] = {
    Drain: "draining",
    Undrain: "taking back",
    Adopt: "adopting",
    Disown: "letting go of",
    RequeueJobs: "giving back the jobs of",
    Forget: "clearing the ads of",
}


def classes(snapshot: Snapshot, plan: Plan) -> Mapping[str, str]:
    """The class of each machine that is known, by its id."""
    return {record.id: record.worker_class for record in (*snapshot.ledger.machines, *plan.records)}


# The kinds of events that are told in the log as well: what is begun is told by its own line before.
OUTCOMES = (
    *("joined", "gone", "launch", "failed", "drain-failed", "busy-again", "cloud"),
    *(f"launch-{state}" for state in LaunchState),
)


def outcome(event: Event) -> str:
    """What became of an action, or what happened to a machine, in words."""
    if event.kind == "launch":
        ids = [str(one) for one in event.detail.get("ids", ())]
        names = ", ".join(ids[:20]) + (" and others" if len(ids) > 20 else "")
        return f"launch {event.subject}: {len(ids)} of {event.detail.get('asked')} accepted: {names}"
    if event.kind in ("joined", "gone"):
        return f"machine {event.subject}: {event.text}"
    return (
        event.text if event.kind in ("busy-again", "cloud") else f"{event.kind} {event.subject}: {event.text}"
    )


def lines(snapshot: Snapshot, plan: Plan) -> list[tuple[str, str]]:
    """What is done in this cycle, a line for each action: its words, and the code of its reason."""
    known = classes(snapshot, plan)
    said = [(words(action, known), action.reason.code) for action in plan.actions[:LINES]]
    rest = len(plan.actions) - len(said)
    return [*said, (f"and {rest} actions more", "more")] if rest > 0 else said
