"""Simulations for the scenarios: usual settings, and a watch for what must never happen."""

from collections.abc import Mapping
from typing import Any

from updraft.clouds.base import TAG_POOL
from updraft.clouds.fake import FakeInstance, site_settings
from updraft.core.model import Action, Drain, Known, Plan, Resources, Snapshot, Terminate
from updraft.core.settings import Limits, Policy, Timings, WorkerClass
from updraft.sim.engine import Crash, Engine
from updraft.sim.workloads.workload import Shape

ONE = Resources(1, 1000, 1024)
WHOLE = Resources(2, 3000, 1024)  # all cores of a small machine


NO_LIMITS = Limits()


def policy(
    *clouds: str, limits: Limits = NO_LIMITS, timings: Mapping[str, float] | None = None, **worker: Any
) -> Policy:
    clouds = clouds or ("f",)
    images = dict.fromkeys(clouds, "worker")
    made = WorkerClass("w", "g1", clouds, **{"images": images, "idle_limit": 60.0, **worker})
    return Policy("p", {"w": made}, limits, timings=Timings(**(timings or {})))


def shape(seconds: float, request: Resources = ONE) -> Shape:
    return Shape(request, seconds, spread=0.2)


class Watch:
    """Looks on all the time, and fails the moment something happens that never may."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.actions: list[tuple[float, Action]] = []
        self.plans: list[tuple[float, Snapshot, Plan]] = []
        self.most = 0
        self.foreign = {
            (name, one.id)
            for name, site in engine.sites.items()
            for one in site.current()
            if one.tags.get(TAG_POOL) != engine.policy.pool
        }
        engine.on_cycle.append(self._on_cycle)
        for site in engine.sites.values():
            site.watchers.append(self._on_instance)

    def _on_instance(self, _instance: FakeInstance) -> None:
        self.look()

    def look(self) -> None:
        """Fail if, right now, something is as it must never be."""
        engine, limits = self.engine, self.engine.policy.limits
        count = engine.alive()
        self.most = max(self.most, count)
        if limits.machines is not None:
            assert count <= limits.machines, f"{count} machines"
        for name, site in engine.sites.items():
            quota = site.settings.quota_machines
            assert quota is None or site.occupied() <= quota, f"{name} is above its quota"
        assert not any(job.killed for job in engine.pool.jobs), "a job was killed"

    def follow(self, cycles: int) -> None:
        """Let the engine cycle so often, and look after each."""
        for _ in range(cycles):
            self.engine.cycle()
            self.look()

    def _on_cycle(self, snapshot: Snapshot, plan: Plan) -> None:
        self.plans.append((snapshot.now, snapshot, plan))
        self.actions.extend((snapshot.now, action) for action in plan.actions)
        for action in plan.actions:
            if not isinstance(action, Drain | Terminate):
                continue
            view = snapshot.clouds[action.cloud]
            assert isinstance(view.machines, Known), f"{action} on a cloud that does not answer"
            assert isinstance(snapshot.collector, Known), f"{action} without the collector's word"

    def of(self, *kinds: type) -> list[Action]:
        return [action for _, action in self.actions if isinstance(action, kinds)]

    def between(self, start: float, end: float, *kinds: type) -> list[Action]:
        return [action for at, action in self.actions if start <= at < end and isinstance(action, kinds)]

    def closing(self) -> None:
        """What must hold at the end of any scenario that ran to its end."""
        result = self.engine.result()
        assert result.completed == result.submitted
        assert result.killed == 0
        assert result.left == 0
        for name, machine in self.foreign:
            site = self.engine.sites[name]
            assert site.instances[machine].up(self.engine.timeline()), "a foreign machine was touched"


def engine(made: Policy, settings: Mapping[str, Mapping[str, Any]] | None = None, **more: Any) -> Engine:
    clouds = {name: site_settings(name, tuning) for name, tuning in (settings or {"f": {}}).items()}
    return Engine(made, clouds, **more)


class Killer:
    """Ends the controller at the n-th time that it comes by a step."""

    def __init__(self, name: str, time: int = 1) -> None:
        self.name, self.left, self.struck = name, time, False

    def __call__(self, name: str) -> None:
        if name == self.name and not self.struck:
            self.left -= 1
            if self.left == 0:
                self.struck = True
                raise Crash(name)
