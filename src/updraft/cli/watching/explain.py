"""`explain`: why a job waits; what will become of a machine and why."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from updraft.app.call import Call
from updraft.app.terminal import printable
from updraft.cli.output import (
    ago,
    clock,
    console,
    json_option,
    say_json,
    waiting,
)
from updraft.cli.watching.budgets import over_line
from updraft.cli.watching.misses import OfferVerdict, offer_documents, offer_table
from updraft.condor.support.lookup import JobSeen
from updraft.core.model import GroupOutlook, Reason, Resources
from updraft.documents import IN_PLACE, Document, plain
from updraft.documents.cycle import BudgetOver, Room
from updraft.errors import ProblemFound
from updraft.ledger.reader import Reader
from updraft.watching.documents import Machine
from updraft.watching.machine import ExplainedMachine, life, machine_document
from updraft.watching.sentences import asked_for, room_found

if TYPE_CHECKING:
    from updraft.core.demand.jobnames import JobName
    from updraft.core.model import JobGroup, Plan, Snapshot

DEADLINE = 20.0
JOBS_SHOWN = 5
CONSOLE_LINES = 40


class SilentSchedd(Document):
    """A schedd that was not heard."""

    schedd: Annotated[str, "Its name."]
    why: Annotated[str, "Why there was no answer."]


class ExplainedGroup(Document):
    """A job group: waiting jobs alike in everything that matching looks at."""

    key: Annotated[str, "Its name within this document."]
    owner: str
    request: Resources
    evaluable: bool
    room: Room = field(metadata=IN_PLACE)
    budgets: Annotated[Sequence[BudgetOver], "Budgets that are spent and hold them back."]
    offers: Annotated[Sequence[OfferVerdict], "Those that can run it first, and then the nearest miss."]


class ExplainedJobs(Document):
    """Why jobs wait."""

    jobs: Annotated[Sequence[JobSeen], "The jobs of this name."]
    groups: Annotated[Sequence[ExplainedGroup], "The groups that those of them that wait are planned for in."]
    silent: Annotated[Sequence[SilentSchedd], "Schedds that were not heard: they may have such jobs, too."]
    left_out: Annotated[Sequence[Reason], "Offers, classes, annexes and clouds without which it is planned."]


@click.command()
@click.argument("what", metavar="JOB|MACHINE")
@json_option
@click.pass_obj
def explain(call: Call, what: str, as_json: bool) -> None:
    """Say why a job waits, or what will become of a machine.

    A JOB is CLUSTER, CLUSTER.PROC or CLUSTER.PROC@SCHEDD: for each offer the clause of the requirements that
    fails, each limit that holds it back, each rest after failures with its end. A MACHINE is an id or the
    beginning of one: its phase, its deadlines, what happened to it, and the end of its console, as its cloud
    shows it now, or as it was kept of a machine that never joined.
    """
    from updraft.core.demand.jobnames import job_name

    name = job_name(what)
    if name is None or _is_machine(call, what):
        _machine(call, what, as_json)
    else:
        _job(call, name, what, as_json)


def _say_watching(call: Call) -> None:
    if not call.place.acts:
        click.echo("updraft only watches ([pool] act = false): what it would do is said, and nothing is done")


def _is_machine(call: Call, what: str) -> bool:
    ledger = call.place.ledger
    if not ledger.exists():
        return False
    with Reader(ledger) as reader:
        return reader.machine(what) is not None


# ------------------------------------------------------------------------------------------------- a job


def _job(call: Call, name: "JobName", what: str, as_json: bool) -> None:
    from updraft.app.look import looked
    from updraft.app.wiring import access
    from updraft.condor.demand.groups import unread_of
    from updraft.condor.support.lookup import find_jobs
    from updraft.core.demand.left_out import OTHERS
    from updraft.core.model import Known

    with waiting("looking at the pool and the clouds"), looked(call) as (settings, snapshot, plan):
        unread = {
            at: unread_of(known.value.groups)
            for at, known in snapshot.schedds.items()
            if isinstance(known, Known)
        }
        found = find_jobs(access(settings), _schedds(snapshot), name, DEADLINE, unread)
    if not found.jobs and found.unmade:
        raise ProblemFound(f"job {what} is in no queue yet: {found.unmade}")
    if not found.jobs:
        raise ProblemFound(
            f"no schedd of the pool has a job {what} in its queue; "
            f"`condor_history {name.cluster}` tells if it has ended"
        )
    document = ExplainedJobs(
        jobs=found.jobs,
        groups=[group_document(group, snapshot, plan) for group in found.groups],
        silent=[SilentSchedd(schedd, why) for schedd, why in found.silent],
        left_out=[warning for warning in plan.warnings if warning.code in OTHERS],
    )
    if as_json:
        say_json(document)
        return
    _say_watching(call)
    out = console()
    for part in job_story(document, snapshot.now):
        out.print(part)


def _schedds(snapshot: "Snapshot") -> list[str]:
    """The schedds that can be asked. Raises ProblemFound where the collector names none."""
    from updraft.core.model import Unknown
    from updraft.observe.schedds import ANY

    unnamed = snapshot.schedds.get(ANY)
    if len(snapshot.schedds) == 1 and isinstance(unnamed, Unknown):
        why = unnamed.error.text.rstrip(".")
        raise ProblemFound(f"the pool's schedds can't be found: {why}; `updraft check` says what to do")
    return sorted(set(snapshot.schedds) - {ANY})


def group_document(group: "JobGroup", snapshot: "Snapshot", plan: "Plan") -> ExplainedGroup:
    """A group with what the plan says of it, and every offer with the reason why it can or can't run it."""
    outlook = next((one for one in plan.groups if one.group == group.key), GroupOutlook(group.key, 0))
    return ExplainedGroup.of(
        group,
        room=Room.planned(outlook),
        budgets=_budgets_over(outlook, plan),
        offers=offer_documents(group, snapshot, plan.cooldowns),
    )


def _budgets_over(outlook: GroupOutlook, plan: "Plan") -> list[BudgetOver]:
    """The budgets that are spent and hold this group back."""
    from updraft.core.limits.spending import holds

    return [BudgetOver.of(one) for one in plan.spending if one.over and holds(one, outlook.held_back)]


def job_story(document: ExplainedJobs, now: float) -> Iterator[Any]:
    """What is to be said of the jobs of one name, for people."""
    for job in document.jobs[:JOBS_SHOWN]:
        yield _job_line(job, now)
    if len(document.jobs) > JOBS_SHOWN:
        yield f"and {len(document.jobs) - JOBS_SHOWN} more of this cluster"
    for group in document.groups:
        yield ""
        yield from _group_story(group)
    for one in document.silent:
        yield ""
        yield f"schedd {one.schedd} was not heard, and may have jobs of this name, too: {one.why}"
    for reason in document.left_out:
        yield f"\n{reason.text} [{reason.code}]"


def _job_line(job: JobSeen, now: float) -> str:
    line = f"job {job.id} of {job.owner} at {job.schedd}: {job.state}"
    if job.state == "held":
        return f"{line} ({job.hold_reason}); a held job is no demand: condor_release gives it back"
    if job.state == "running":
        return f"{line} on {job.host}"
    return f"{line}, submitted {ago(now - job.since)} ago"


def _group_story(group: ExplainedGroup) -> Iterator[Any]:
    told = plain(group)
    yield f"planned together with all jobs alike: {asked_for(told)}"
    yield f"of these, {room_found(told)}"
    for reason in group.room.held_back:
        yield f"  held back: {reason.text} [{reason.code}]"
        if reason.remedy:
            yield f"    what would change that: {reason.remedy}"
    for budget in group.budgets:
        yield f"  {over_line(budget, group.room.unmet)}"
    if group.offers:
        yield ""
        yield offer_table(group.offers)
    else:
        yield "  no cloud offers anything at the moment; `updraft status` says which doesn't answer"


# --------------------------------------------------------------------------------------------- a machine


def _machine(call: Call, what: str, as_json: bool) -> None:
    now = time.time()
    with Reader(call.place.ledger) as reader:
        document = machine_document(reader, what, now)
    if document.console is None:
        text, why = _console_now(call, document.machine)
        document = replace(document, console=text, no_console=why)
    if as_json:
        say_json(document)
        return
    _say_watching(call)
    for line in machine_story(document, now):
        click.echo(line)


def _console_now(call: Call, machine: Machine) -> tuple[str | None, str]:
    """The console of a machine of which none was kept, or why there is none: its cloud is asked, unless it is
    gone.
    """
    from updraft.app.clouds import live_console

    if machine.phase == "gone":
        return None, "it was not kept, and is gone with the machine"
    with waiting(f"asking the cloud {machine.cloud} for its console"):
        text, why = live_console(call, machine.cloud, machine.id)
    return text or None, why


def machine_story(document: ExplainedMachine, now: float) -> Iterator[str]:
    """What is to be said of a machine, for people."""
    machine = document.machine
    where = f"{machine.cloud}/{machine.zone}" if machine.zone else machine.cloud
    yield f"{machine.id}: {machine.phase}; {machine.reason.text} [{machine.reason.code}]"
    price = "unknown price" if machine.price is None else f"{machine.price:.4g} per hour"
    yield f"  {machine.flavor} of class {machine.class_} on {where}, {machine.market}, {price}"
    yield f"  image {machine.image}, generation {machine.generation}, launch {machine.launch}"
    yield f"  {life(machine, now)}"
    if machine.deadline is not None:
        yield f"  deadline {clock(machine.deadline)} (in {ago(machine.deadline - now)})"
    if machine.drain:
        yield f"  drains since {clock(machine.drain.asked_at)}: {machine.drain.reason.text}"
    if not document.daemon.alive and machine.phase != "gone":
        yield "  no daemon is at work: nothing becomes of it until one is"
    for reason in document.left_out:
        yield f"  {reason.text} [{reason.code}]"
    if document.events:
        yield "what happened"
        for event in document.events:
            yield f"  {clock(event.at)}  {event.kind}: {event.text} [{event.code}]"
    if document.console:
        yield "the end of its console (all of it with --json)"
        for line in document.console.splitlines()[-CONSOLE_LINES:]:
            yield f"  | {printable(line)}"
    else:
        yield f"no console: {document.no_console}"
