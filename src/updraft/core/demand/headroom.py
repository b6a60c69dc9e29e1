"""Room kept ready: groups of jobs that nobody submitted, and that count as waiting while their hours last."""

from datetime import datetime, timedelta

from classad2 import ClassAd, ExprTree, quote

from updraft.core.model import JobGroup, Resources
from updraft.core.settings import Policy, Spare
from updraft.core.sharing.submitters import ready
from updraft.core.slots.catalogue import ATTRIBUTES

_PREFIX = "spare/"  # a word for readers: what is ours is known by `JobGroup.ready`


def spare_groups(policy: Policy, now: float) -> tuple[JobGroup, ...]:
    """A group for each kind of spare room that is wanted at `now` (POSIX seconds), classes in their order."""
    if policy.closing:
        return ()
    return tuple(
        _group(worker.name, number, spare, now)
        for worker in policy.classes.values()
        for number, spare in enumerate(worker.spare)
        if spare.jobs > 0 and due(spare, now)
    )


def due(spare: Spare, now: float) -> bool:
    """Whether `now` is within the hours of a day on which the room is wanted."""
    local = datetime.fromtimestamp(now, spare.zone)
    second = local.hour * 3600 + local.minute * 60 + local.second
    yesterday = (local - timedelta(days=1)).weekday()
    if spare.begin < spare.end:
        return local.weekday() in spare.days and spare.begin <= second < spare.end
    # Over midnight: what is left of yesterday's hours, or the beginning of today's.
    return (yesterday in spare.days and second < spare.end) or (
        local.weekday() in spare.days and second >= spare.begin
    )


def _group(worker_class: str, number: int, spare: Spare, now: float) -> JobGroup:
    return JobGroup(
        key=f"{_PREFIX}{worker_class}/{number}",
        schedd="",
        owner=f"{_PREFIX}{worker_class}",
        submitter=ready(worker_class),
        ad=_ad(worker_class, spare.request),
        request=spare.request,
        idle=spare.jobs,
        oldest=now,
        ready=True,
    )


def _ad(worker_class: str, request: Resources) -> str:
    ad = ClassAd({"MyType": "Job", "Owner": "nobody", "JobStatus": 1, "JobUniverse": 5})
    for name, value in (
        ("RequestCpus", request.cpus),
        ("RequestMemory", request.memory),
        ("RequestDisk", request.disk),
        ("RequestGPUs", request.gpus),
    ):
        if value or name != "RequestGPUs":
            ad[name] = value
    ad["Requirements"] = ExprTree(f"TARGET.{ATTRIBUTES['class']} == {quote(worker_class)}")
    return repr(ad)
