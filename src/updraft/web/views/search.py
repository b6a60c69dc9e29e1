"""*Why does job N wait?*, and where is machine M: what was asked for in the search box."""

from typing import Any

from updraft.core.demand.jobnames import JobName, job_name
from updraft.documents import Row
from updraft.web.looking import Look
from updraft.web.views.waiting import group_story, may_see

NEAREST = 5


def view(look: Look) -> Row:
    """What is known of a job (CLUSTER[.PROC][@SCHEDD]), a machine (the beginning of its id), or a user.

    Of the jobs of a group the ledger has the first one. So of another job it can be said in which groups it
    may be: those of its schedd that begin before it, the nearest first.
    """
    what = look.query.text("what")
    job = job_name(what)
    groups, exact = _groups(look, job) if job else ([], False)
    machines = [one for one in _machines(look, what) if what] if look.visitor.operator else []
    users = [
        row["user"] for row in look.picture.status["users"] if look.visitor.operator and row["user"] == what
    ]
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "what": what,
        "job": job is not None,
        "exact": exact,
        "groups": [group_story(look, group) for group in groups],
        "machines": machines,
        "users": users,
        "rows": [],
    }


def _groups(look: Look, job: JobName) -> tuple[list[Row], bool]:
    """The groups that a job is in, or may be in, and whether that is sure."""
    seen = [
        group
        for group in look.picture.status["groups"]
        if group["idle"] and may_see(look, group) and job.may_be_at(group.get("schedd") or "")
    ]
    exact = [group for group in seen if _cluster(group) == job.cluster]
    if exact:
        of_proc = [group for group in exact if group["first_id"] == f"{job.cluster}.{job.proc}"]
        return of_proc or exact, bool(of_proc) or job.proc is None or len(exact) == 1
    before = [group for group in seen if 0 <= _cluster(group) < job.cluster]
    return sorted(before, key=lambda group: -_cluster(group))[:NEAREST], False


def _cluster(group: Row) -> int:
    number: Any = (group.get("first_id") or "").partition(".")[0]
    return int(number) if number.isdigit() else -1


def _machines(look: Look, what: str) -> list[Row]:
    every = [*look.picture.machines, *look.picture.gone]
    found = [row for row in every if row["id"] == what] or [
        row for row in every if row["id"].startswith(what)
    ]
    return [{name: row[name] for name in ("id", "cloud", "class", "flavor", "phase")} for row in found[:20]]
