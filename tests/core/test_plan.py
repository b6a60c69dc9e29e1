"""Golden cases: `cases/plan/*.json`, a situation in and the actions out, in the words of the house.

A case says what differs from a quiet pool: machines (each with what cloud, ledger and pool say of it), job
groups, settings. Times are in seconds before now where a key ends in `_ago`.

Covers `plan` and what only whole plans show: `lifecycle`, `staying`, `placing`, `cooldowns`, `room`,
`outlooks`, `warnings` and `kinds`.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.snapshots import (
    ASK,
    DOWN,
    FLAVORS,
    NOW,
    SMALL,
    group,
    instance,
    offer,
    policy,
    record,
    slot,
    snapshot,
    worker,
)
from updraft.core.model import (
    Action,
    Child,
    CloudState,
    Drain,
    DrainMode,
    DrainRecord,
    JoinPace,
    Kind,
    Known,
    Launch,
    LaunchRecord,
    LaunchState,
    LedgerView,
    Quota,
    Reason,
    RequeueJobs,
    Resources,
    RunningJob,
    ScheddView,
    Snapshot,
    Terminate,
    Terms,
    Undrain,
    Unknown,
    Untaken,
    Verdict,
    variant,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Timings, UserLimits
from updraft.core.slots.kinds import kind_key

CASES = sorted((Path(__file__).parent / "cases" / "plan").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    """The plan's actions, its held-back reasons and its warnings are those of the file."""
    case = json.loads(path.read_text())
    made = plan(_snapshot(case), _policy(case))
    assert sorted(_told(action) for action in made.actions) == sorted(case["actions"])
    if "held_back" in case:
        codes = {outlook.group: [reason.code for reason in outlook.held_back] for outlook in made.groups}
        assert codes == case["held_back"]
    if "refused" in case:
        assert {r.code for outlook in made.groups for _, r in outlook.refused} == set(case["refused"])
    if "machines" in case.get("outlook", {}):
        assert {o.machine: o.reason.code for o in made.machines} == case["outlook"]["machines"]
    if "texts" in case:
        texts = {o.machine: o.reason.text for o in made.machines}
        assert {machine: texts[machine] for machine in case["texts"]} == case["texts"]
    assert sorted(w.code for w in made.warnings) == sorted(case.get("warnings", []))


def _told(action: Action) -> str:
    match action:
        case Launch(offer=what, count=count, reason=reason):
            return f"launch {count} {what.flavor} on {what.cloud} ({reason.code})"
        case Drain(machine=machine, mode=mode, reason=reason, deadline=deadline):
            by = "" if deadline is None else f" by {deadline - NOW:+.0f} s"
            return f"drain {machine} {mode}{by} ({reason.code})"
        case Terminate(machines=machines, reason=reason):
            return f"terminate {' '.join(sorted(machines))} ({reason.code})"
        case Undrain(machine=machine, reason=reason):
            return f"undrain {machine} ({reason.code})"
        case RequeueJobs(jobs=jobs, machine=machine):
            return f"requeue {' '.join(jobs)} of {machine}" if machine else f"release {' '.join(jobs)}"
        case _:
            return f"{type(action).__name__.lower()} {action.machine} ({action.reason.code})"


def _policy(case: dict[str, Any]) -> Policy:
    limits = Limits(**case.get("limits", {}))
    timings = Timings(**case.get("timings", {}))
    users = {name: UserLimits(**about) for name, about in case.get("users", {}).items()}
    made = worker(**{**case.get("class", {}), "per_user": UserLimits(**case.get("per_user", {}))})
    return policy(made, limits=limits, timings=timings, users=users, **case.get("policy", {}))


def _snapshot(case: dict[str, Any]) -> Snapshot:
    machines = case.get("machines", {})
    groups = [
        group(
            key,
            **{
                **about,
                "request": Resources(**{**_quantities(ASK), **about.get("request", {})}),
                "terms": Terms(**about.get("terms", {})),
            },
        )
        for key, about in case.get("groups", {}).items()
    ]
    running = None
    if "running" in case:
        running = tuple(
            RunningJob(
                "schedd",
                job,
                f"slot1_1@{machine}@host",
                "alice",
                NOW + lease,
                *(NOW - ago for ago in started),
            )
            for job, machine, lease, *started in case["running"]
        )
    offers = [
        offer(flavor, **about) for flavor, about in case.get("offers", {"small": {}, "large": {}}).items()
    ]
    shown = snapshot(
        instances=[
            _instance(name, about)
            for name, about in machines.items()
            if about.get("cloud", "running") != "absent"
        ],
        slots=[
            _slot(name, about["slot"], about.get("flavor", "small"))
            for name, about in machines.items()
            if "slot" in about
        ],
        records=[_record(name, about) for name, about in machines.items() if about.get("ledger", True)],
        groups=groups,
        running=running,
        offers=offers,
        found={
            name: _found(name, about) for name, about in machines.items() if {"gone", "by_id"} & set(about)
        },
    )
    if "held" in case:
        view = ScheddView((), running, held=tuple(case["held"]))
        shown = replace(shown, schedds={"schedd": Known(view, NOW)})
    if "jumped_ago" in case:
        shown = replace(shown, jumped_at=NOW - case["jumped_ago"])
    if "pace" in case:
        shown = replace(shown, pace=JoinPace(case["pace"], "c was busy 95% of the time", NOW - 20))
    return _silenced(_refused(_with_site(shown, case), case), case)


def _with_site(shown: Snapshot, case: dict[str, Any]) -> Snapshot:
    """The same with slots of the site's own machines: `static` ones, busy, closed, and of several kinds."""
    collector = shown.collector
    if "site" not in case or not isinstance(collector, Known):
        return shown
    slots, kinds, verdicts_ = list(collector.value.slots), dict(shown.kinds), dict(shown.verdicts)
    for name, about in case["site"].items():
        changes = {key: about[key] for key in ("state", "draining", "accepting") if key in about}
        free = Resources(**{**_quantities(SMALL), **about.get("free", {})})
        site = f"foreign/{about.get('kind', 'site')}"
        made = slot(
            name, instance_id="", cloud="", launch_key="", kind=site, total=SMALL, free=free,
            partitionable=not about.get("static"), heard=NOW - about.get("heard_ago", 5), **changes,
        )  # fmt: skip
        slots.append(made)
        kinds[site] = Kind(site, "[]", SMALL, partitionable=not about.get("static"))
        for key in case.get("groups", {}):
            fits = 0 if about.get("refuses") else 1 if about.get("static") else SMALL.holds(ASK)
            reasons = () if fits else (Reason("requirements", "the slot's Start is false for the job"),)
            verdicts_[key, site] = Verdict(fits, ASK, reasons)
    seen = Known(replace(collector.value, slots=tuple(slots)), NOW)
    return replace(shown, collector=seen, kinds=kinds, verdicts=verdicts_)


def _quantities(resources: Resources) -> dict[str, int]:
    return {name: getattr(resources, name) for name in ("cpus", "memory", "disk", "gpus")}


def _instance(name: str, about: dict[str, Any]) -> Any:
    return instance(
        name,
        CloudState(about.get("cloud", "running")),
        flavor=about.get("flavor", "small"),
        generation=about.get("generation", "g1"),
        retiring=about.get("retiring", False),
        fault=about.get("fault", ""),
    )


def _found(name: str, about: dict[str, Any]) -> Any:
    """What the cloud says of its id: nothing of one that is gone, else its state, with the tag or without."""
    by_id = about.get("by_id")
    if by_id is None:
        return None
    return replace(_instance(name, {**about, "cloud": by_id}), tagged=about.get("tagged", True))


def _slot(name: str, about: dict[str, Any], flavor: str) -> Any:
    whole = FLAVORS[flavor][0]
    changes: dict[str, Any] = {"kind": kind_key("default", "g1", "c1", flavor), "total": whole}
    changes["free"] = whole - ASK if about.get("busy") else whole
    for key in ("draining", "drain_reason", "accepting", "job_starts", "launch_key"):
        if key in about:
            changes[key] = about[key]
    if "retirement" in about:
        changes["children"] = (Child("Claimed", "Busy", ASK, "alice@pool", about["retirement"]),)
    if "heard_ago" in about:
        changes["heard"] = NOW - about["heard_ago"]
    return slot(name, about.get("busy", False), **changes)


def _record(name: str, about: dict[str, Any]) -> Any:
    flavor = about.get("flavor", "small")
    changes: dict[str, Any] = {
        "flavor": flavor,
        "variant": variant(about.get("variant", "")),
        "resources": FLAVORS[flavor][0],
        "price": about.get("price", FLAVORS[flavor][1]),
        "generation": about.get("generation", "g1"),
        "job_starts": 3 if "slot" in about else None,
        "joined_at": NOW - 3500 if "slot" in about or about.get("joined") else None,
        "last_claimed_at": NOW - about.get("idle", 10.0) if "slot" in about else None,
    }
    for key in ("requested", "silent", "missing", "terminate_asked", "joined"):
        if f"{key}_ago" in about:
            field = {
                "requested": "requested_at",
                "joined": "joined_at",
                "terminate_asked": "terminate_asked_at",
            }
            changes[field.get(key, f"{key}_since")] = NOW - about[f"{key}_ago"]
    if "gone" in about:
        # Its cloud has said so before, asked by its id; since then nothing was heard of it.
        changes["seen_at"], changes["gone_since"], changes["gone_heard"] = NOW - 3500, NOW - 12, NOW - 5
        changes.setdefault("missing_since", NOW - 12)
    if "drain" in about:
        changes["drain"] = _drain(about["drain"])
    if about.get("let_go"):
        changes["let_go"] = Reason("let-go", "as the case says")
    if "unanswered" in about:
        changes["unanswered_since"], changes["unanswered_at"] = (NOW - ago for ago in about["unanswered"])
    if "wanted" in about:
        changes["wanted_drain"] = _drain(about["wanted"])
    return record(name, **changes)


def _drain(about: dict[str, Any]) -> DrainRecord:
    return DrainRecord(
        DrainMode(about["mode"]),
        NOW - about.get("asked_ago", 10.0),
        Reason(about.get("code", "idle-limit"), "as the case says"),
        NOW - about["accepted_ago"] if "accepted_ago" in about else None,
        NOW + about["deadline"] if "deadline" in about else None,
    )


def _refused(shown: Snapshot, case: dict[str, Any]) -> Snapshot:
    """Verdicts that say no, and launches that the ledger remembers."""
    verdicts = dict(shown.verdicts)
    for key in case.get("matches_nothing", []):
        for pair in verdicts:
            if pair[0] == key:
                verdicts[pair] = Verdict(0, ASK, (Reason("requirements", "TARGET.HasMoon is undefined"),))
    launches = tuple(
        LaunchRecord(
            f"K{number}", "c1", "z1", row.get("flavor", "small"), "on-demand", "default", "img", "g1",
            row.get("count", 1), FLAVORS[row.get("flavor", "small")][0], 0.1, NOW - row["asked_ago"],
            LaunchState(row["state"]), error=Reason(row["error"], "no") if "error" in row else None,
            variant=variant(row.get("variant", "")),
        )
        for number, row in enumerate(case.get("launches", []))
    )  # fmt: skip
    untaken = {
        key: Untaken(times, NOW - ago, NOW + rest)
        for key, (times, ago, rest) in case.get("untaken", {}).items()
    }
    ledger = LedgerView(
        launches,
        shown.ledger.machines,
        {tuple(k.split("/")): v for k, v in case.get("boots", {}).items()},  # type: ignore[misc]
        untaken=untaken,
    )
    return replace(shown, verdicts=verdicts, ledger=ledger)


def _silenced(shown: Snapshot, case: dict[str, Any]) -> Snapshot:
    """Sources that don't answer, a young collector, a quota."""
    view = shown.clouds["c1"]
    if "quota" in case:
        view = replace(view, quota=Known(Quota(**case["quota"]), NOW))
    if "cloud_looked_ago" in case and isinstance(view.machines, Known):
        view = replace(view, machines=replace(view.machines, at=NOW - case["cloud_looked_ago"]))
    if case.get("cloud_silent"):
        view = replace(view, machines=Unknown(DOWN, NOW - 60))
    collector = shown.collector
    if case.get("collector_silent"):
        collector = Unknown(DOWN, NOW - 60)
    elif isinstance(collector, Known):
        changes: dict[str, Any] = {}
        if "collector_started_ago" in case:
            changes["started"] = NOW - case["collector_started_ago"]
        if "cycle_ended_ago" in case:
            changes["cycle_ended"] = NOW - case["cycle_ended_ago"]
            changes["cycle_began"] = NOW - case.get("cycle_began_ago", case["cycle_ended_ago"] + 1)
            changes["cycle_heard"] = NOW - case.get("cycle_heard_ago", 0)
        collector = Known(replace(collector.value, **changes), NOW)
    schedds = dict(shown.schedds)
    if "schedd_silent_ago" in case:
        at = NOW - case["schedd_silent_ago"]
        schedds = {
            name: Unknown(DOWN, at, Known(s.value, at)) for name, s in schedds.items() if isinstance(s, Known)
        }
    return replace(shown, clouds={"c1": view}, collector=collector, schedds=schedds)


def test_a_machine_in_a_state_that_nobody_knows_counts_as_running_and_is_named() -> None:
    there = snapshot(
        instances=[instance("i-1", unknown_state="resi\x1bze")],
        records=[record("i-1", joined_at=NOW - 3000)],
        slots=[slot("i-1", busy=True)],
    )
    made = plan(there, policy())
    assert made.actions == ()
    (said,) = made.warnings
    assert said.code == "unknown-state"
    assert "machine i-1: its cloud says that it is 'resi\\x1bze', which nobody here knows" in said.text
