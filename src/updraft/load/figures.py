"""What came of a load test: from what was sent and what was seen to the figures that are reported. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from updraft.documents import IN_PLACE, Document
from updraft.load.ads import KINDS, SENT

MIB = 1024.0 * 1024.0
LATE = 5.0
"""Seconds after which an update that was heard counts as delayed."""

COLLECTOR_DESCRIPTORS = "descriptors of each child collector"
MOST_STATUS = 3.0
MOST_CYCLE = 60.0
_FULL = 0.8  # of a limit
_BEHIND = 10.0  # seconds: more, and it was the load itself that came too slowly


@dataclass(frozen=True, slots=True)
class Updates:
    """Ads of the simulated machines: three a machine and update."""

    sent: Annotated[int, "Sent without an error."]
    taken: Annotated[int, "Of these, counted by the collectors that they were sent to."]
    lost: Annotated[int, "Of these, counted by none."]
    delayed: Annotated[int, "Machines' last ads that were heard more than 5 s after they were sent."]
    failed: Annotated[int, "Calls that had an error."]
    call: Annotated[float | None, "Seconds of one machine's update, the median."]
    slowest: Annotated[float | None, "Seconds of the slowest update or join."]
    join_call: Annotated[float | None, "Seconds of a join with its authentication, the median."]
    behind: Annotated[float, "By how many seconds the load itself came late at worst."]
    errors: Annotated[tuple[str, ...], "What failed calls said, some of it."]


@dataclass(frozen=True, slots=True)
class Daemon:
    """All processes of one name."""

    name: Annotated[str, 'Such as "collector 1", "schedd" or "shadow".']
    processes: Annotated[int, "How many."]
    memory: Annotated[float, "MiB of all together; shared pages count by share."]
    peak: Annotated[float, "MiB that the largest had at most, shared pages included."]
    descriptors: Annotated[int, "Open file descriptors of the one with the most."]
    descriptor_limit: Annotated[int, "How many it may have."]
    cpu: Annotated[float, "Seconds of processor time of all together."]


@dataclass(frozen=True, slots=True)
class Cycle:
    """The longest of the negotiation cycles that had all slots."""

    seconds: Annotated[float, "How long it took."]
    cpu: Annotated[float, "Processor time of it."]
    slots: Annotated[int, "How many it had."]
    idle_jobs: Annotated[int, "How many waited."]
    considered: Annotated[int, "How many of them it looked at: one of a group stands for all."]
    out_of_time: Annotated[str, "Submitters that it had no time for."]


@dataclass(frozen=True, slots=True)
class Real:
    """Real startds on this machine. MiB are proportional: shared pages count by share."""

    asked: Annotated[int, "How many were asked for."]
    joined: Annotated[int, "How many joined."]
    running: Annotated[int, "How many ran a job."]
    seconds_to_join: Annotated[float, "Until the last one was shown."]
    seconds_to_run: Annotated[float, "From the submission until the last one ran."]
    startd: Annotated[float | None, "MiB of a startd."]
    starter: Annotated[float | None, "MiB of a starter."]
    shadow: Annotated[float | None, "MiB of a shadow, on the head."]
    collector_descriptors: Annotated[float | None, "Descriptors of a collector for each startd."]
    schedd_descriptors: Annotated[float | None, "Descriptors of the schedd for each job."]

    @property
    def memory(self) -> float | None:
        """MiB of one startd with its job: startd, starter; the shadow is the head's."""
        return None if self.startd is None or self.starter is None else self.startd + self.starter


@dataclass(frozen=True, slots=True)
class Figures:
    """A load test with one number of machines; None is not known."""

    machines: Annotated[int, "Simulated machines asked for."]
    children: Annotated[int, "Collectors that they advertise to."]
    joined: Annotated[int, "Machines that had joined and not vanished at the end."]
    lost_machines: Annotated[int, "Machines that vanished, as asked for."]
    seconds_to_join: Annotated[float, "Until the last one had joined."]
    updates: Updates
    shown: Annotated[int, "Of the joined, how many the top collector shows."]
    status: Annotated[float | None, "Seconds of condor_status over all, the median."]
    status_longest: Annotated[float | None, "The longest of them; null where one failed."]
    cycle: Annotated[Cycle | None, "The longest negotiation cycle with all slots; null where there was none."]
    groups: Annotated[int, "Job groups of the dummy jobs."]
    daemons: Annotated[tuple[Daemon, ...], "By name."]
    duty: Annotated[float | None, "Part of its time that the busiest child collector is busy."]
    sessions: Annotated[int, "Security sessions that the child collectors say they keep."]
    extrapolated: Annotated[Mapping[str, float], "What real machines would add, by the real startds' costs."]
    gives_out: Annotated[tuple[str, ...], "What is beyond its bound; empty where all is well."]


def updates(results: Sequence[Mapping[str, Any]], heard: Iterable[Mapping[str, Any]]) -> Updates:
    """What the senders sent, against what the collectors at the leaves have had of it.

    A collector counts the updates of each ad in the ad (`UpdatesTotal`). That of a machine that vanished may
    have expired: then nothing is known of its updates, and they count on neither side.
    """
    taken, late = _taken(heard)
    sent = lost = got = 0
    for result in results:
        for machine, (count, _, vanished) in result["machines"].items():
            for kind in KINDS:
                has = taken.get((machine, kind))
                if has is None and vanished:
                    continue
                sent += int(count)
                got += min(has or 0, int(count))
                lost += max(0, int(count) - (has or 0))
    calls = sorted(call for result in results for call in result["calls"])
    joins = [call for result in results for call in result["join_calls"]]
    return Updates(
        sent=sent,
        taken=got,
        lost=lost,
        delayed=late,
        failed=sum(result["failed"] for result in results),
        call=statistics.median(calls) if calls else None,
        slowest=max([*calls, *joins], default=None),
        join_call=statistics.median(joins) if joins else None,
        behind=max((result["behind"] for result in results), default=0.0),
        errors=tuple(sorted({error for result in results for error in result["errors"]})),
    )


def _taken(heard: Iterable[Mapping[str, Any]]) -> tuple[dict[tuple[str, str], int], int]:
    taken: dict[tuple[str, str], int] = {}
    late = 0
    for ad in heard:
        taken[str(ad["Machine"]), str(ad["MyType"])] = int(ad["UpdatesTotal"] or 0)
        # The collector's clock has whole seconds.
        late += (ad["LastHeardFrom"] or 0) - float(ad[SENT]) > LATE
    return taken, late


def daemons(seen: Iterable[Mapping[str, Any]]) -> tuple[Daemon, ...]:
    """The processes of a look, together by their names."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in seen:
        name = str(one["name"])
        by_name.setdefault("startd" if name.startswith("startd ") else name, []).append(one)
    return tuple(
        Daemon(
            name,
            len(all_),
            memory=sum(one["pss"] for one in all_) / MIB,
            peak=max(one["peak"] for one in all_) / MIB,
            descriptors=max(one["descriptors"] for one in all_),
            descriptor_limit=min(one["descriptor_limit"] for one in all_),
            cpu=sum(one["cpu"] for one in all_),
        )
        for name, all_ in sorted(by_name.items())
    )


def cycle(found: Iterable[Mapping[str, Any]], since: float, slots: int) -> Cycle | None:
    """The longest cycle that began after `since` and had at least `slots` slots; None where none did."""
    whole = [one for one in found if one["Time"] >= since and (one["TotalSlots"] or 0) >= slots]
    if not whole:
        return None
    longest = max(whole, key=lambda one: (one["Duration"], one["CpuTime"] or 0.0))
    return Cycle(
        seconds=float(longest["Duration"]),
        cpu=float(longest["CpuTime"] or 0.0),
        slots=int(longest["TotalSlots"]),
        idle_jobs=int(longest["NumIdleJobs"] or 0),
        considered=int(longest["NumJobsConsidered"] or 0),
        out_of_time=str(longest["SubmittersOutOfTime"] or ""),
    )


def middle(seconds: Iterable[float]) -> tuple[float | None, float | None]:
    """The median and the longest; None where any is missing, since a failed call isn't a fast one."""
    values = list(seconds)
    if not values or any(math.isnan(value) for value in values):
        return None, None
    return statistics.median(values), max(values)


def extrapolated(real: Real | None, machines: int, children: int) -> dict[str, float]:
    """What so many real machines with a job each would add, by what the real startds took: not measured."""
    if real is None or not real.running:
        return {}
    per = {
        COLLECTOR_DESCRIPTORS: (real.collector_descriptors, machines / children),
        "descriptors of the schedd": (real.schedd_descriptors, float(machines)),
        "shadows, MiB": (real.shadow, float(machines)),
    }
    return {name: each * times for name, (each, times) in per.items() if each is not None}


def gives_out(figures: Figures) -> tuple[str, ...]:
    """What is beyond its bound or nearly so, in sentences; none where the pool carries this load."""
    found = []
    sent = figures.updates
    if sent.lost or sent.failed:
        found.append(f"updates: {sent.lost} lost, {sent.failed} calls failed")
    if sent.delayed:
        found.append(f"updates: {sent.delayed} heard more than {LATE:g} s late")
    if figures.shown < figures.joined:
        found.append(f"the top collector shows {figures.shown} of {figures.joined} machines")
    if figures.status_longest is None or figures.status_longest > MOST_STATUS:
        found.append(f"condor_status: {_seconds(figures.status_longest)}, more than {MOST_STATUS:g} s")
    if figures.cycle is None:
        found.append("the negotiator: no whole cycle in this time")
    elif figures.cycle.seconds > MOST_CYCLE or figures.cycle.out_of_time:
        found.append(f"the negotiator: a cycle of {_seconds(figures.cycle.seconds)}")
    elif figures.cycle.considered < figures.groups:
        found.append(
            f"the negotiator: a cycle considered {figures.cycle.considered} of {figures.groups} job groups "
            "(SCHEDD_ENABLE_PER_USER_MATCH_LIMITS limits what is offered of one user)"
        )
    found += [
        f"{one.name}: {one.descriptors} of {one.descriptor_limit} descriptors"
        for one in figures.daemons
        if one.descriptors > _FULL * one.descriptor_limit
    ]
    if figures.duty is not None and figures.duty > 0.95:
        found.append(f"a child collector is busy {figures.duty:.0%} of its time")
    if sent.behind > _BEHIND:
        found.append(f"this machine: the load itself was up to {sent.behind:.0f} s late")
    return tuple(found)


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} s"


class RealStartds(Document):
    """Real startds on this machine."""

    real: Real = field(metadata=IN_PLACE)
    memory: Annotated[float | None, "MiB of a startd with its starter."]


class LoadTest(Document):
    """A pool's configuration under load."""

    runs: Annotated[Sequence[Figures], "One for each number of machines."]
    real: Annotated[RealStartds | None, "Real startds, or null."]


def document(runs: Sequence[Figures], real: Real | None) -> LoadTest:
    """The figures as `--json` prints them."""
    return LoadTest(runs, None if real is None else RealStartds(real, real.memory))
