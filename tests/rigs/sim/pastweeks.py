"""A record as a daemon would have written it in some days beside another system, made from a seed."""

import heapq
import json
import math
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from updraft.condor.support.history import RECORDED
from updraft.core.model import CloudOffer, Resources
from updraft.recording.pool_record import DAY, Fields, PoolLook, PoolRecord, SeenMachine, Waited

BEGIN = 20_700 * DAY + 7 * 3600.0  # 2026-09-04 07:00 UTC
OFFERS = (
    CloudOffer("c1", "z", "small", "on-demand", Resources(4, 16384, 80_000_000), 0.2),
    CloudOffer("c1", "z", "large", "on-demand", Resources(16, 65536, 300_000_000), 0.75),
)
Ad = dict[str, Any]
USERS = ("ada", "grace", "edsger", "barbara")


def job(number: int, arrived: float, started: float | None, ended: float | None, **more: Any) -> Ad:
    """The ad of a job, in the form of a history."""
    status = more.pop("JobStatus", 4 if ended else 2 if started else 1)
    return {
        "Owner": USERS[number % len(USERS)],
        "QDate": int(arrived),
        "JobStatus": status,
        "JobUniverse": 5,
        "GlobalJobId": f"head.site.example#{number}.0#{int(arrived)}",
        "ClusterId": number,
        "ProcId": 0,
        "RequestCpus": 1,
        "RequestMemory": 2000,
        "RequestDisk": 1_000_000,
        "Cmd": f"/home/{USERS[number % len(USERS)]}/run.sh",
        **({} if started is None else {"JobStartDate": int(started), "JobCurrentStartDate": int(started)}),
        **(
            {}
            if ended is None
            else {"CompletionDate": int(ended), "EnteredCurrentStatus": int(ended), "ExitCode": 0}
        ),
        **more,
    }


def fields(ad: Ad) -> Fields:
    return [ad.get(name) for name in RECORDED]


def write(path: Path, *, days: float = 1.0, per_day: int = 300, seed: int = 1, acts: bool = False) -> int:
    """A record of so many days: bursts of jobs on a cluster of 40 cores. Returns the number of jobs."""
    chance = random.Random(seed)
    end = BEGIN + days * DAY
    free = [BEGIN] * max(40, per_day // 10)
    jobs: list[Ad] = []
    arrived = BEGIN + 60
    while arrived < end:
        size = chance.randrange(1, max(2, per_day // 6))
        for _ in range(size):
            started = max(arrived + chance.uniform(5, 60), heapq.heappop(free))
            ended = started + chance.lognormvariate(6.5, 0.8)
            heapq.heappush(free, ended)
            made = job(
                len(jobs), arrived, started if started < end else None, ended if ended < end else None,
                RequestCpus=chance.choice((1, 1, 1, 4)),
            )  # fmt: skip
            jobs.append(made | {"ExitCode": 1} if ended < end and chance.random() < 0.04 else made)
        arrived += chance.expovariate(per_day / DAY) * size
    with PoolRecord(path) as record:
        _write_jobs(record, jobs, end)
        _write_looks(record, jobs, end, acts=acts)
    return len(jobs)


def _write_jobs(record: PoolRecord, jobs: list[Ad], end: float) -> None:
    ended = sorted((one for one in jobs if one["JobStatus"] == 4), key=lambda one: one["CompletionDate"])
    queued = [fields(one) for one in jobs if one["JobStatus"] != 4]
    at, place = BEGIN, 0
    while at < end:
        at, first = at + 300, place
        while place < len(ended) and ended[place]["CompletionDate"] < at:
            place += 1
        now = [fields(one) for one in ended[first:place]]
        record.add_jobs("head", RECORDED, now, queued if at >= end else [], at)


def _write_looks(record: PoolRecord, jobs: list[Ad], end: float, *, acts: bool) -> None:
    """A look each minute."""
    came, began, over, cpus = (
        np.array([one.get(name, math.inf) for one in jobs])
        for name in ("QDate", "JobStartDate", "CompletionDate", "RequestCpus")
    )
    owner = np.arange(len(jobs)) % len(USERS)
    at, cores = BEGIN, 2 * max(40, len(jobs) // 70)
    offers = {"c1": json.dumps([asdict(one) for one in OFFERS])}
    while at < end:
        waits, runs = (came <= at) & (at < began), (began <= at) & (at < over)
        claimed = min(cores, int(cpus[runs].sum()))
        wanted = claimed + int(cpus[waits].sum())
        look = PoolLook(at, acts, int(waits.sum()), int(runs.sum()), wanted, claimed, cores, 5, 5)
        machines = [SeenMachine(f"node{one}", 1.0, cores // 5, False, at, at) for one in range(5)]
        waited = [
            Waited(int(at // DAY), user, "would-launch", 60.0 * number, "updraft would have launched")
            for index, user in enumerate(USERS)
            if (number := int((waits & (owner == index)).sum()))
        ]
        record.add_look(look, machines, waited, offers if at == BEGIN else {})
        at += 60
