"""A run is judged: which of the things that must never happen did, by what the cloud and the jobs say.

Every rule takes values and returns findings. None asks updraft what it meant to do.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from tests.chaos.judged.evidence import ABORTED, ENDED, HELD, CloudLog, Deed, JobLog, MachineLife, Run
from tests.chaos.troubles.script import Side, side_of

# What ends the jobs of a machine whoever else does something: from then on nobody else can have ended them.
FATAL = frozenset(
    {
        *("ended-by-somebody", "crashed", "notice-of-120-s", "notice-of-40-s", "taken-without-notice"),
        *("startd-killed", "shadow-killed"),
    }
)
# Where nobody hears of a job any more it is its schedd that gives it up, when its lease ends.
SILENT = frozenset({"system-dead"})
_UNLISTED = frozenset({"listing-leaves-out", "listing-lags", "tag-removed"})
_OF_A_RUN = frozenset({"startd-killed", "shadow-killed", "job-held", "job-removed"})
AILING = FATAL | SILENT | {"cut-from-head", "cut-from-everything", "cut-from-metadata", "tag-removed"}
LONG_TO_ASK = frozenset({"long-queue"})
LEASE = 120.0
"""Seconds of the lease that every honest job asks for."""
_EXACT = 2.0  # seconds: an event log has whole ones, and what writes it may be late
_YOUNG = 90.0  # until then a machine may be one that never boots, hangs or crashes
_LATELY = 60.0
_DRAINS = (
    6.0  # seconds from a drain's beginning to the end; as long as a new machine is idle before it is drained
)
SECOND_LOG = "updraft-second.log"
_ACTS = re.compile(r"^(\S+Z) .*\bcode=acting\b", re.MULTILINE)
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must never happen, and did: which rule, when, and what exactly."""

    rule: str
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What must not be exceeded. `prices` are the least per hour of a machine with so many cores."""

    machines: int
    cost_per_day: float | None = None
    prices: Mapping[int, float] = field(default_factory=dict)
    calls_a_minute: int = 400
    seconds_between_looks: float = 45.0
    memory_kib: int = 200 * 1024
    descriptors: int = 96


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a run left: `clusters` has how many jobs each honest cluster is, and when it was submitted.

    `slow` is by how much longer things took than on a quiet machine: so is what is allowed to take a while.
    """

    cloud: CloudLog
    jobs: JobLog
    deeds: tuple[Deed, ...]
    clusters: Mapping[int, tuple[int, float]]
    ended: float
    logs: Mapping[str, str]
    secrets: Collection[str] = ()
    memory_kib: int = 0
    descriptors: int = 0
    slow: float = 1.0

    @property
    def exact(self) -> float:
        """Seconds by which what an event log says may be off."""
        return _EXACT * self.slow

    def lately(self, deed: Deed, at: float) -> bool:
        """Did this happen by then, and may what it has begun not be over?"""
        return deed.begun <= at <= deed.ended + _LATELY * self.slow


def judged(seen: Evidence, bounds: Bounds) -> list[Finding]:
    """All that must never happen and did, in the order of time."""
    found = [
        *killed(seen),
        *lost(seen),
        *left_over(seen),
        *doubled(seen),
        *beyond_limits(seen, bounds),
        *beyond_budget(seen, bounds),
        *too_many_calls(seen, bounds),
        *two_act(seen),
        *looks_missed(seen, bounds),
        *told_secrets(seen),
    ]
    if seen.memory_kib > bounds.memory_kib:
        found.append(Finding("memory", seen.ended, f"the controller has {seen.memory_kib // 1024} MiB"))
    if seen.descriptors > bounds.descriptors:
        found.append(
            Finding("descriptors", seen.ended, f"the controller has {seen.descriptors} descriptors open")
        )
    return sorted(found, key=lambda one: one.at)


def killed(seen: Evidence) -> Iterator[Finding]:
    """Jobs that ran on a machine when the controller ended it, though nothing had happened to either."""
    for call in seen.cloud.calls:
        if call.name != "terminate" or call.who != "controller":
            continue
        for machine in (seen.cloud.machines[id_] for id_ in call.ids if id_ in seen.cloud.machines):
            out = _out(machine)
            if not call.at - 1 <= out <= call.at + call.took + 1:
                continue  # it was on its way out already, or the call came to nothing
            for run in _running(seen, machine, call.at):
                if not _excused(seen, machine.id, run, call.at):
                    text = f"job {run.job} ran on {machine.id} since {call.at - run.start:.0f} s"
                    yield Finding("killed", call.at, f"{text} when the controller ended that machine")


def _out(machine: MachineLife) -> float:
    """When it was on its way out; endless where it isn't."""
    return min(machine.times.get(state, float("inf")) for state in ("stopping", "terminated"))


def _running(seen: Evidence, machine: MachineLife, at: float) -> Iterator[Run]:
    for run in seen.jobs.runs:
        there = run.address == machine.address and machine.alive_at(run.start + seen.exact)
        later = at + seen.exact if run.how in (ENDED, ABORTED, HELD) else at - 1
        if there and run.start + seen.exact < at and (run.end is None or run.end > later):
            yield run


def _excused(seen: Evidence, machine: str, run: Run, at: float) -> bool:
    for deed in seen.deeds:
        if deed.what == "schedd-killed" and _given_up(run, deed.begun, at):
            return True
        mine = deed.machine == machine or (deed.job == run.job and deed.job)
        if not mine or deed.begun > at:
            continue
        if deed.what in _OF_A_RUN and deed.begun < run.start - seen.exact:
            continue  # that was an earlier run: this one began on what had been mended
        if deed.what in FATAL or deed.what in ("job-held", "job-removed"):
            return True
        if deed.what in SILENT and at >= deed.begun + LEASE:
            return True
    return False


def _given_up(run: Run, killed: float, at: float) -> bool:
    """Has HTCondor itself given up a run whose schedd was killed then?

    By then if its lease is over without a word of the schedd's; at once if it was older than that (tried on
    25.14: its startd says "claim lease expired").
    """
    return run.start < killed < at and (at >= killed + LEASE or killed >= run.start + LEASE)


def lost(seen: Evidence) -> Iterator[Finding]:
    """Jobs that didn't end exactly once, were left on hold, or were removed by nobody."""
    removed = {deed.job for deed in seen.deeds if deed.what == "job-removed"}
    held = {deed.job for deed in seen.deeds if deed.what == "job-held"}
    for cluster, (count, at) in sorted(expected(seen).items()):
        for job in (f"{cluster}.{proc}" for proc in range(count)):
            ends = seen.jobs.ends.get(job, 0)
            if job in removed and (ends == 1 or (ends == 0 and job in seen.jobs.aborted)):
                continue
            if job in seen.jobs.aborted:
                yield Finding("lost", at, f"job {job} was removed, and nobody here did that")
            elif job in seen.jobs.held:
                yield Finding("held", at, f"job {job} was left on hold")
            elif ends != 1 and not (
                ends == 2 and job in held
            ):  # held as it ended, it ends again once released
                yield Finding("lost", at, f"job {job} ended {ends} times")


def expected(seen: Evidence) -> dict[int, tuple[int, float]]:
    """The honest clusters, with how many jobs each is, and since when.

    A `condor_submit` that wasn't waited for to its end may have come to something: its jobs count, too.
    """
    found = dict(seen.clusters)
    for job, at in seen.jobs.submitted.items():
        cluster, proc = map(int, job.split("."))
        if cluster not in seen.clusters:
            count, since = found.get(cluster, (0, at))
            found[cluster] = (max(count, proc + 1), min(since, at))
    return found


def left_over(seen: Evidence) -> Iterator[Finding]:
    """Machines that are there when everything is over."""
    for machine in seen.cloud.machines.values():
        if "terminated" not in machine.times:
            at = machine.times["pending"]
            yield Finding("leaked", at, f"machine {machine.id} ({machine.key}) is {machine.state} at the end")


def doubled(seen: Evidence) -> Iterator[Finding]:
    """More machines of one launch than it asked for, or more than there were jobs of late."""
    made: Counter[str] = Counter(machine.key for machine in seen.cloud.machines.values())
    asked = {call.key: call.count for call in seen.cloud.calls if call.name == "run"}
    for key, count in made.items():
        if count > asked.get(key, count):
            yield Finding("doubled", seen.ended, f"launch {key} asked for {asked[key]} and made {count}")
    left = {job: seen.jobs.left_at(job) for job in seen.jobs.submitted}
    for machine in seen.cloud.machines.values():
        at = machine.times["pending"]
        sound = [m.id for m in seen.cloud.machines.values() if m.alive_at(at) and not _ails(seen, m, at)]
        wanted = max(_waiting(seen, left, at - ago) for ago in range(0, int(_LATELY * seen.slow), 2))
        if len(sound) > wanted:
            text = f"{len(sound)} sound machines with {machine.id}, and {wanted} jobs at most of late"
            yield Finding("doubled", at, text)


def _waiting(seen: Evidence, left: Mapping[str, float], at: float) -> int:
    """How many honest jobs there were in the queue, those to be made yet included."""
    found = 0
    for cluster, (count, since) in expected(seen).items():
        if since - seen.exact <= at:
            found += sum(left.get(f"{cluster}.{proc}", float("inf")) > at for proc in range(count))
    return found


def _ails(seen: Evidence, machine: MachineLife, at: float) -> bool:
    """May it be one that is of no use, or of which nobody could know that it is?"""
    hurt = any(d.machine == machine.id and d.what in AILING and d.begun <= at for d in seen.deeds)
    drained = _out(machine) <= at + _DRAINS * seen.slow
    used = any(run.address == machine.address and machine.alive_at(run.start) for run in seen.jobs.runs)
    lied_to = any(
        d.what in ("listing-leaves-out", "wrong-state", "tag-removed") and seen.lately(d, at)
        for d in seen.deeds
    )
    return hurt or drained or lied_to or (not used and at - machine.times["pending"] < _YOUNG * seen.slow)


def beyond_limits(seen: Evidence, bounds: Bounds) -> Iterator[Finding]:
    """Moments at which there were more machines than the site allows."""
    for machine in seen.cloud.machines.values():
        at = machine.times["pending"]
        alive = sum(other.alive_at(at) for other in seen.cloud.machines.values())
        if alive > bounds.machines and not _unknowable(seen, at):
            yield Finding("limit", at, f"{alive} machines with {machine.id}, where {bounds.machines} may be")


def beyond_budget(seen: Evidence, bounds: Bounds) -> Iterator[Finding]:
    """Machines that were bought though the day's budget doesn't pay for them and all others for an hour.

    So what a day costs is never more than its budget and what ran when that was spent. Counted is what the
    machines cost at least, of midnight in UTC on; not what nobody can know any more: those that ended before
    the ledger was lost, and those whose tag was taken off. Nothing is said while the clock is wrong.
    """
    if bounds.cost_per_day is None:
        return
    for machine in seen.cloud.machines.values():
        at = machine.times["pending"]
        if _unknowable(seen, at) or any(d.what in _WRONG_CLOCK and seen.lately(d, at) for d in seen.deeds):
            continue
        day = at - at % _DAY
        lost = max(
            (d.ended for d in seen.deeds if d.what.startswith("ledger-") and d.begun <= at), default=day
        )
        hidden = {d.machine for d in seen.deeds if d.what == "tag-removed"}
        counted = [m for m in seen.cloud.machines.values() if m.id not in hidden and _gone(m) >= lost]
        spent = sum(
            _price(m, bounds) * max(0.0, _until(m, at) - max(day, m.times["pending"])) for m in counted
        )
        burn = sum(_price(m, bounds) for m in counted if m.alive_at(at))
        committed = spent / _HOUR + burn * min(1.0, (day + _DAY - at) / _HOUR)
        if committed > bounds.cost_per_day * _INEXACT:
            text = f"{machine.id} was bought with {spent / _HOUR:.4f} spent and {burn:.3f} an hour running"
            yield Finding("limit", at, f"{text}, where {bounds.cost_per_day:.4f} may be spent a day")


_HOUR, _DAY = 3600.0, 86400.0
_INEXACT = 1.05  # looks are seconds apart, and a machine's life begins with the call, not with its answer
_WRONG_CLOCK = frozenset({"clock-forward", "clock-back", "second-controller"})


def _gone(machine: MachineLife) -> float:
    return machine.times.get("terminated", float("inf"))


def _until(machine: MachineLife, at: float) -> float:
    return min(at, _gone(machine))


def _price(machine: MachineLife, bounds: Bounds) -> float:
    return bounds.prices.get(machine.cores, 0.0)


def _unknowable(seen: Evidence, at: float) -> bool:
    """Was what the ledger knew lost while the cloud's listing left machines out? Then nobody counts them.

    A second controller has never known it.
    """
    lately = [deed.what for deed in seen.deeds if seen.lately(deed, at)]
    lost = any(what.startswith("ledger-") or what == "second-controller" for what in lately)
    return lost and any(what in _UNLISTED for what in lately)


def too_many_calls(seen: Evidence, bounds: Bounds) -> Iterator[Finding]:
    """The worst minute, where it has more calls than a cloud should be asked."""
    at, calls = worst_minute(seen.cloud)
    if calls > bounds.calls_a_minute:
        yield Finding("calls", at, f"{calls} calls of the cloud's API in one minute")


def worst_minute(cloud: CloudLog) -> tuple[float, int]:
    """When the minute with most of the controller's calls began, and how many they were."""
    times = sorted(call.at for call in cloud.calls if call.who == "controller")
    best, first = (0.0, 0), 0
    for last, at in enumerate(times):
        while times[first] < at - 60:
            first += 1
        if last - first + 1 > best[1]:
            best = (times[first], last - first + 1)
    return best


def looks_missed(seen: Evidence, bounds: Bounds) -> Iterator[Finding]:
    """Times in which the controller didn't list its machines, though nothing was done to its host."""
    first = min((at for _, at in seen.clusters.values()), default=seen.ended)
    for since, at in pairwise(sorted((first, *listings(seen)))):
        if at - since > bounds.seconds_between_looks * seen.slow and not _may_look_seldom(seen, since, at):
            yield Finding("hang", since, f"the controller didn't look for {at - since:.0f} s")


def two_act(seen: Evidence) -> Iterator[Finding]:
    """A second controller that acts although nothing was done to the first one's host."""
    host = [d for d in seen.deeds if side_of(d.what) is Side.HOST and d.what != "second-controller"]
    for at in map(_moment, _ACTS.findall(seen.logs.get(SECOND_LOG, ""))):
        if not any(seen.lately(deed, at) for deed in host):
            yield Finding("doubled", at, "a second controller acts")


def _moment(when: str) -> float:
    return datetime.fromisoformat(when).timestamp()


def listings(seen: Evidence) -> list[float]:
    """When the controller asked the cloud for its machines, and the end."""
    times = [call.at for call in seen.cloud.calls if call.name == "list" and call.who == "controller"]
    return [*sorted(times), seen.ended]


def _may_look_seldom(seen: Evidence, since: float, at: float) -> bool:
    """Was its host hurt, or is the schedd long to answer, so that it is asked a tenth of the time?"""
    return any(
        (side_of(deed.what) is Side.HOST or deed.what in LONG_TO_ASK)
        and deed.begun <= at
        and deed.ended + _LATELY * seen.slow >= since
        for deed in seen.deeds
    )


def told_secrets(seen: Evidence) -> Iterator[Finding]:
    """Tokens in what is written down."""
    for name, text in sorted(seen.logs.items()):
        if _JWT.search(text) or any(secret in text for secret in seen.secrets):
            yield Finding("secret", seen.ended, f"{name} has a token in it")


def back_to_normal(seen: Evidence) -> dict[str, list[float]]:
    """By kind of happening: seconds from its end until a job began to run, where one was waiting then."""
    starts = sorted(run.start for run in seen.jobs.runs)
    found: dict[str, list[float]] = {}
    left = {job: seen.jobs.left_at(job) for job in seen.jobs.submitted}
    for deed in seen.deeds:
        later = next((at for at in starts if at >= deed.ended), None)
        waits = _waiting(seen, left, deed.ended) > sum(
            run.start < deed.ended and (run.end is None or run.end > deed.ended) for run in seen.jobs.runs
        )
        if later is not None and side_of(deed.what) is not Side.JOBS and not deed.failed and waits:
            found.setdefault(deed.what, []).append(later - deed.ended)
    return found


def done(seen: Evidence) -> int:
    """How many jobs ended well."""
    return sum(run.how == ENDED for run in seen.jobs.runs)
