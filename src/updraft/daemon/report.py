"""A cycle in words and as a document: for the log, and for `status` and `explain`."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from updraft.core.model import (
    Action,
    Adopt,
    Disown,
    Drain,
    Forget,
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
    Terminate,
    Undrain,
)
from updraft.core.remedies import held_back
from updraft.ledger import Event
from updraft.observe.schedds import ANY

# A document is written every few seconds: what it holds of each is bounded, however large the pool.
GROUPS_SHOWN = 500
MACHINES_SHOWN = 10_000
ACTIONS_SHOWN = 500
WARNINGS_SHOWN = 500
REFUSALS_SHOWN = 30
LINES = 100  # of actions in the log of one cycle


def document(
    snapshot: Snapshot, plan: Plan, *, standing: Reason | None, timings: Mapping[str, float], generation: int
) -> dict[str, Any]:
    """The cycle as JSON values. `generation` counts the configurations that were loaded."""
    known = classes(snapshot, plan)
    return {
        "version": 1,
        "at": snapshot.now,
        "pool": snapshot.pool,
        "acting": standing is None,
        "standing": None if standing is None else asdict(standing),
        "configuration": generation,
        "timings": {name: round(seconds, 3) for name, seconds in timings.items()},
        "sources": sources(snapshot),
        "jobs": jobs(snapshot),
        "groups": _groups(snapshot, plan),
        "machines": [_machine(outlook) for outlook in plan.machines[:MACHINES_SHOWN]],
        "phases": dict(Counter(str(outlook.phase) for outlook in plan.machines)),
        "cooldowns": [asdict(cooldown) for cooldown in plan.cooldowns],
        "annexes": [asdict(outlook) for outlook in plan.annexes],
        "warnings": [asdict(warning) for warning in plan.warnings[:WARNINGS_SHOWN]],
        "actions": [
            {
                "what": type(action).__name__.lower(),
                "text": words(action, known),
                "reason": asdict(action.reason),
            }
            for action in plan.actions[:ACTIONS_SHOWN]
        ],
    }


def _machine(outlook: MachineOutlook) -> dict[str, Any]:
    # By hand: `asdict` copies whatever it finds, and there are thousands of these.
    return {
        "machine": outlook.machine,
        "cloud": outlook.cloud,
        "phase": str(outlook.phase),
        "reason": {"code": outlook.reason.code, "text": outlook.reason.text},
        "deadline": outlook.deadline,
    }


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


def sources(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
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


def _source(source: Source[Any]) -> dict[str, Any]:
    if isinstance(source, Known):
        return {"state": "known", "at": source.at}
    last = None if source.last is None else source.last.at
    return {"state": "unknown", "since": source.since, "error": asdict(source.error), "last": last}


def jobs(snapshot: Snapshot) -> dict[str, int]:
    """How many jobs wait and run, by the last that each schedd said."""
    idle = running = 0
    for source in snapshot.schedds.values():
        known = source if isinstance(source, Known) else source.last
        if known is not None:
            idle += known.value.idle_total
            running += known.value.running_total
    return {"idle": idle, "running": running}


def _groups(snapshot: Snapshot, plan: Plan) -> list[dict[str, Any]]:
    groups: dict[str, JobGroup] = {}
    for source in snapshot.schedds.values():
        known = source if isinstance(source, Known) else source.last
        if known is not None:
            groups.update({group.key: group for group in known.value.groups})
    shown = []
    for outlook in plan.groups[:GROUPS_SHOWN]:
        doc: dict[str, Any] = {
            "key": outlook.group,
            **{name: getattr(outlook, name) for name in ("idle", "joined", "coming", "new", "unmet")},
            "held_back": [held_back(reason) for reason in outlook.held_back],
            "refused": [
                {"offer": offer, **asdict(reason)} for offer, reason in outlook.refused[:REFUSALS_SHOWN]
            ],
        }
        group = groups.get(outlook.group)
        if group is not None:
            names = ("schedd", "owner", "submitter", "running", "oldest", "priority", "first_id", "evaluable")
            doc.update({name: getattr(group, name) for name in names}, request=asdict(group.request))
        shown.append(doc)
    return shown


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
