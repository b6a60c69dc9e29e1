"""Settings simulated one after the other over one workload, and the figures of all of them as a document."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from updraft.core.model import CloudOffer
from updraft.documents import As, Document
from updraft.sim.conditions import Conditions
from updraft.sim.reports.metrics import Metrics, clairvoyant, metrics
from updraft.sim.sweep import Setting, front
from updraft.sim.workloads.sources import Workload
from updraft.sim.world.outcome import Outcome
from updraft.sim.world.simulation import simulate
from updraft.sim.world.stock import bought

HOUR = 3600.0
Tell = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Run:
    """One setting, and what became of it.

    `bound` is the least that the jobs can cost on its offers, `cycle` the seconds between two of its looks.
    """

    setting: Setting
    outcome: Outcome
    metrics: Metrics
    bound: float | None
    cycle: float

    @property
    def name(self) -> str:
        """The setting's."""
        return self.setting.name


def run_all(
    workload: Workload,
    settings: Sequence[Setting],
    conditions: Conditions,
    tell: Tell = lambda _name, _share: None,
) -> list[Run]:
    """Simulate each setting under the same conditions; `tell` hears its name and the share that is done."""
    bounds: dict[tuple[CloudOffer, ...], float] = {}
    made: list[Run] = []
    for setting in settings:
        own = _conditions_of(setting, conditions)
        outcome = simulate(
            workload.arrivals,
            setting.policy,
            setting.clouds,
            decide=setting.decider(workload.arrivals),
            conditions=own,
            progress=lambda share, name=setting.name: tell(name, share),  # type: ignore[misc]
        )
        tell(setting.name, 1.0)
        offers = bought(setting.policy, setting.clouds)
        if offers not in bounds:
            bounds[offers] = clairvoyant(workload.arrivals, offers)
        found = metrics(outcome, bounds[offers])
        made.append(Run(setting, outcome, found, bounds[offers], own.cycle))
    return made


def _conditions_of(setting: Setting, conditions: Conditions) -> Conditions:
    """The same, with looks as frequent as the setting's rule is made for."""
    return conditions if setting.cycle is None else replace(conditions, cycle=setting.cycle)


class WorkloadRow(Document):
    """The jobs."""

    name: Annotated[str, "The file or the generator."]
    jobs: Annotated[int, "How many."]
    seconds: Annotated[float, "From the first arrival to the last."]
    core_hours: Annotated[float, "The work in them."]
    begins: Annotated[float | None, "When the first arrived, in POSIX seconds, or null."]
    sha256: Annotated[str, "The file's; empty where there is none."]
    notes: Annotated[Sequence[str], "What was done to them on the way."]
    left_out: Annotated[Mapping[str, int], "How many records were left out, by the reason."]


class ConditionsRow(Document):
    """What all settings share."""

    cycle: Annotated[float, "Seconds between two looks."]
    seed: Annotated[int, "Where chance begins."]
    boot: Annotated[float, "Seconds until a machine joins, the median, unless its cloud says otherwise."]
    failures: Annotated[float, "Part of the machines that never join."]
    interruptions: Annotated[float, "How often an hour a spot machine is taken away."]


class SimulatedSetting(Document):
    """A setting, and what became of it."""

    name: Annotated[str, "Its name."]
    rival: Annotated[bool, "Whether another system's rule decided."]
    metrics: Annotated[Mapping[str, float | None], As(Metrics, nullable=True)]
    to_cores: Annotated[Mapping[str, float | None], "Cores, and the seconds until so many had joined."]
    bound: Annotated[float | None, "The least that these jobs can cost on these offers, or null."]
    calls: Annotated[Mapping[str, int], "How many API calls of each kind there were."]
    violations: Annotated[Mapping[str, int], "At how many looks which limit was exceeded."]
    refused_drains: Annotated[int, "Drains that found a machine busy: it stayed."]
    cycle: Annotated[float, "Seconds between two of its looks."]
    cycles: Annotated[int, "Looks."]
    decisions: Annotated[int, "Looks at which anything had changed, so that it was decided anew."]
    machines_of: Annotated[Mapping[str, int], "How many machines of each flavor (and market) were launched."]


class Simulated(Document):
    """Settings that were simulated over one workload."""

    workload: WorkloadRow
    conditions: ConditionsRow
    settings: Annotated[Sequence[SimulatedSetting], "Each setting, in the order of the call."]
    front: Annotated[Sequence[str], "Settings that no other beats in cost and mean wait, the cheapest first."]


def document(workload: Workload, conditions: Conditions, runs: Sequence[Run]) -> Simulated:
    """What `updraft simulate --json` prints (docs/reference/json.md)."""
    jobs = WorkloadRow.of(
        workload,
        jobs=len(workload.arrivals),
        seconds=workload.span,
        core_hours=workload.core_seconds / HOUR,
    )
    shared = ConditionsRow.of(conditions, conditions.boots, boot=conditions.boots.median)
    return Simulated(jobs, shared, list(map(_row, runs)), [runs[index].name for index in best(runs)])


def best(runs: Sequence[Run]) -> list[int]:
    """The runs that no other beats in cost and in mean wait, those that finished every job; by cost."""
    whole = [index for index, run in enumerate(runs) if run.metrics.completed == run.metrics.jobs]
    points = [(runs[index].metrics.cost, runs[index].metrics.wait_mean) for index in whole]
    return [whole[index] for index in front(points)]


def _row(run: Run) -> SimulatedSetting:
    return SimulatedSetting.of(
        run.outcome,
        run,
        run.setting,
        metrics={name: known(value) for name, value in asdict(run.metrics).items() if name != "to_cores"},
        to_cores={str(cores): known(at) for cores, at in run.metrics.to_cores.items()},
        bound=known(run.bound),
        cycle=run.cycle,
        machines_of=machines_of(run.outcome),
    )


def known(value: float | None) -> float | None:
    """The number, None where it is none: JSON has no infinity and no NaN."""
    return value if value is not None and math.isfinite(value) else None


def machines_of(outcome: Outcome) -> Mapping[str, int]:
    """How many machines of each flavor and market were bought, the most frequent first."""
    counts: dict[str, int] = {}
    for flavor, market in zip(outcome.machines.flavor, outcome.machines.market, strict=True):
        name = flavor if market == "on-demand" else f"{flavor} ({market})"
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
