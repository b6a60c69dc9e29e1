"""Settings simulated one after the other over one workload, and the figures of all of them as a document."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from updraft.core.model import CloudOffer
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
    if setting.cycle is None or setting.cycle >= conditions.cycle:
        return conditions
    return replace(conditions, cycle=setting.cycle)


def document(workload: Workload, conditions: Conditions, runs: Sequence[Run]) -> dict[str, Any]:
    """What `updraft simulate --json` prints (docs/reference/json.md)."""
    return {
        "workload": {
            "name": workload.name,
            "jobs": len(workload.arrivals),
            "seconds": workload.span,
            "core_hours": workload.core_seconds / HOUR,
            "begins": workload.begins,
            "sha256": workload.sha256,
            "notes": list(workload.notes),
            "left_out": dict(workload.left_out),
        },
        "conditions": {
            "cycle": conditions.cycle,
            "seed": conditions.seed,
            "boot": conditions.boots.median,
            "failures": conditions.boots.failures,
            "interruptions": conditions.interruptions,
        },
        "settings": [_row(run) for run in runs],
        "front": [runs[index].name for index in best(runs)],
    }


def best(runs: Sequence[Run]) -> list[int]:
    """The runs that no other beats in cost and in mean wait, those that finished every job; by cost."""
    whole = [index for index, run in enumerate(runs) if run.metrics.completed == run.metrics.jobs]
    points = [(runs[index].metrics.cost, runs[index].metrics.wait_mean) for index in whole]
    return [whole[index] for index in front(points)]


def _row(run: Run) -> dict[str, Any]:
    figures = {name: known(value) for name, value in asdict(run.metrics).items() if name != "to_cores"}
    return {
        "name": run.name,
        "rival": run.setting.rival,
        "metrics": figures,
        "to_cores": {str(cores): known(at) for cores, at in run.metrics.to_cores.items()},
        "bound": known(run.bound),
        "calls": dict(run.outcome.calls),
        "violations": dict(run.outcome.violations),
        "refused_drains": run.outcome.refused_drains,
        "cycle": run.cycle,
        "cycles": run.outcome.cycles,
        "decisions": run.outcome.decisions,
        "machines_of": machines_of(run.outcome),
    }


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
