"""Writes down what a fast simulation does, cycle by cycle, and makes an outcome of it."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from updraft.clouds.fake import Site, Taken
from updraft.core.settings import Limits, Policy
from updraft.sim.conditions import Conditions
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.fleet import Worker
from updraft.sim.world.outcome import JobColumns, MachineColumns, Outcome, SeriesColumns
from updraft.sim.world.pool import SimPool

_CENT = 1e-6  # costs are sums of floats: less than this is no violation
_Row = tuple[float, int, int, int, int, int, int, float]


class Recorder:
    """The account of one simulation. `machines` are those of each cloud that ever were, by their ids."""

    def __init__(
        self,
        policy: Policy,
        conditions: Conditions,
        pool: SimPool,
        clouds: Mapping[str, Site],
        machines: Sequence[Mapping[str, Worker]],
    ) -> None:
        self._policy = policy
        self._begins = conditions.begins
        self._pool, self._life = pool, pool.life
        self._clouds = clouds
        self._workers = machines
        self._rows: list[_Row] = []
        self._violations: Counter[str] = Counter()
        self.cycles = 0
        self.decisions = 0

    def note(self, begun: float, *, decided: bool) -> None:
        """Write down this cycle."""
        self.cycles += 1
        self.decisions += decided
        queue, floor = self._life.queue, self._life.floor
        paid = {name: site.paid for name, site in self._clouds.items()}
        whole = paid.values()
        self._rows.append(
            (
                begun - self._begins,
                queue.idle,
                queue.idle_cores + queue.running_cores,
                floor.claimed_cores,
                floor.booted_cores,
                sum(one.cores for one in whole),
                sum(one.machines for one in whole),
                sum(one.cost for one in whole),
            )
        )
        self._exceeds(self._policy.limits, whole)
        for name, limits in self._policy.cloud_limits.items():
            if name in paid:
                self._exceeds(limits, (paid[name],))

    def _exceeds(self, limits: Limits, paid: Collection[Taken]) -> None:
        for name, most in (
            ("machines", limits.machines),
            ("cores", limits.cores),
            ("memory", limits.memory),
            ("cost", limits.cost_per_hour),
        ):
            if most is not None and sum(getattr(one, name) for one in paid) - _CENT > most:
                self._violations[name] += 1

    def outcome(self, arrivals: Sequence[Arrival], now: float) -> Outcome:
        """Everything up to now, with times as seconds of the workload."""
        calls: Counter[str] = Counter()
        for site in self._clouds.values():
            calls.update(site.calls_by_name())
        return Outcome(
            jobs=self._jobs(arrivals, now),
            machines=self._machines(now),
            series=self._series(),
            begun=0.0,
            ended=now - self._begins,
            killed=self._life.killed,
            lost=self._life.lost,
            refused_drains=self._pool.refused_drains,
            cycles=self.cycles,
            decisions=self.decisions,
            calls=dict(calls),
            violations=dict(self._violations),
        )

    def _jobs(self, arrivals: Sequence[Arrival], now: float) -> JobColumns:
        table = self._life.queue.jobs
        ran = list(table.ran)
        for job, claim in enumerate(table.claim):
            if claim is not None and claim.running and claim.job == job:
                ran[job] += (claim.room.worker.died_at or now) - table.started[job]
        owners = {name: index for index, name in enumerate(sorted({one.owner for one in arrivals}))}
        return JobColumns(
            submitted=np.array(table.submitted, dtype=np.float64) - self._begins,
            first_start=np.array(table.first_start, dtype=np.float64) - self._begins,
            ended=np.array(table.ended, dtype=np.float64) - self._begins,
            seconds=np.array(table.seconds, dtype=np.float64),
            ran=np.array(ran, dtype=np.float64),
            cpus=np.array([group.request.cpus for group in table.group], dtype=np.int64),
            owner=np.array([owners[group.owner] for group in table.group], dtype=np.int64),
            runs=np.array(table.runs, dtype=np.int64),
            kills=np.array(table.kills, dtype=np.int64),
            owners=tuple(owners),
        )

    def _machines(self, now: float) -> MachineColumns:
        made = [worker for workers in self._workers for worker in workers.values()]
        everyone = sorted(made, key=lambda worker: worker.asked_at)

        def times(moments: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            plain = [math.nan if moment is None else moment for moment in moments]
            return np.array(plain, dtype=np.float64) - self._begins

        return MachineColumns(
            asked_at=times([worker.asked_at for worker in everyone]),
            joined_at=times([worker.joined_at for worker in everyone]),
            ended_at=times([worker.stop_asked_at or worker.died_at for worker in everyone]),
            cpus=np.array([worker.bought.resources.cpus for worker in everyone], dtype=np.int64),
            price=np.array([worker.bought.price or 0.0 for worker in everyone], dtype=np.float64),
            paid=np.array([self._paid(worker, now) for worker in everyone], dtype=np.float64),
            worker_class=tuple(worker.bought.worker_class for worker in everyone),
            cloud=tuple(worker.bought.cloud for worker in everyone),
            flavor=tuple(worker.bought.flavor for worker in everyone),
            market=tuple(worker.bought.market for worker in everyone),
        )

    def _paid(self, worker: Worker, now: float) -> float:
        ended = worker.stop_asked_at or worker.died_at or now
        return self._policy.rule(worker.bought.cloud).billing.paid(ended - worker.asked_at)

    def _series(self) -> SeriesColumns:
        columns = list(zip(*self._rows, strict=True)) or [()] * 8
        t, cost = (np.array(columns[index], dtype=np.float64) for index in (0, 7))
        waiting, wanted, running, booted, paid, machines = (
            np.array(column, dtype=np.int64) for column in columns[1:7]
        )
        return SeriesColumns(t, waiting, wanted, running, booted, paid, machines, cost)
