"""`updraft demo --fake`: the story of the demo on a fake cloud, in virtual time, for those without root."""

import time
from collections import Counter

from rich.console import Console

from updraft.cli.demo.show import Closing, Scene, ShownDecision, Stage, closing_table, sentence
from updraft.cli.output import console
from updraft.clouds.fake import site_settings
from updraft.core.model import Forget, Phase, Plan, Resources, Snapshot
from updraft.core.settings import Limits, Policy, Timings, WorkerClass
from updraft.sim.conditions import Pace
from updraft.sim.engine import Engine, Result
from updraft.sim.workloads.workload import DISK, GIB, Shape, burst

POOL = "demo"
CLOUD = "fake"
LONGEST = 3600.0  # virtual seconds after which something must be wrong
SPEED = 10.0  # virtual seconds in a second at a terminal
TITLE = "updraft demo on a fake cloud"
SMALL = Shape(Resources(1, 1 * GIB, DISK), seconds=25.0)
WIDE = Shape(Resources(4, 6 * GIB, DISK), seconds=60.0)


def demo_fake(
    out: Console | None = None, *, fast: bool = False, jobs: int = 48, seed: int = 0, speed: float = SPEED
) -> int:
    """Play the demo and print its closing table; the exit code is 0 if all went as it must, else 1.

    At a terminal a table moves, for 15 to 20 s unless it is `fast`; elsewhere there are plain lines, at once.
    """
    out = out or console()
    engine = demo_engine(jobs, seed)
    live = out.is_terminal
    pace = "as fast as it goes" if fast else f"{speed:.0f} times as fast"
    note = f"virtual time, {pace}; nothing of this is real"
    decisions: list[ShownDecision] = []
    scene = Scene(TITLE, 0.0, jobs, 0, 0)

    def on_cycle(snapshot: Snapshot, plan: Plan) -> None:
        nonlocal scene
        elapsed = snapshot.now - begun
        decisions.extend(
            ShownDecision(elapsed, sentence(action))
            for action in plan.actions
            if not isinstance(action, Forget)
        )
        scene = _scene(engine, plan, elapsed, decisions, note)

    begun = engine.timeline()
    engine.on_cycle.append(on_cycle)
    with Stage(out, live=live) as stage:
        while engine.timeline() - begun < LONGEST and not over(engine):
            due = time.monotonic() + engine.policy.timings.cycle / speed
            engine.cycle()
            stage.show(scene)
            if live and not fast:
                time.sleep(max(0.0, due - time.monotonic()))
    closing = closing_of(engine.result())
    out.print(closing_table(closing, f"{TITLE}: {engine.timeline() - begun:.0f} virtual seconds"))
    return 0 if closing.good else 1


def demo_engine(jobs: int = 48, seed: int = 0) -> Engine:
    """The demo's policy, cloud and queue: many small jobs, one in six wide, two users."""
    wide = jobs // 6
    worker = WorkerClass("worker", "g1", (CLOUD,), images={CLOUD: "worker"}, idle_limit=20.0)
    policy = Policy(POOL, {"worker": worker}, Limits(machines=12), timings=Timings(cycle=2.0))
    settings = site_settings(CLOUD, {"quota_machines": 20, "seed": seed})
    queue = (
        *burst(jobs - wide, over=3.0, shapes=(SMALL,), seed=seed),
        *burst(wide, over=3.0, shapes=(WIDE,), seed=seed + 1),
    )
    return Engine(policy, {CLOUD: settings}, queue, pace=Pace(negotiation=5.0))


def over(engine: Engine) -> bool:
    """Is the story at its end: jobs came, all are done, and no machine is left?"""
    return bool(engine.pool.jobs) and engine.pool.finished() and not engine.alive()


def closing_of(result: Result) -> Closing:
    """A simulation's result as the closing table shows it."""
    return Closing(
        jobs=result.submitted,
        completed=result.completed,
        launched=result.launched,
        paid=result.paid,
        used=result.used,
        median_wait=result.median_wait,
        killed=result.killed,
        left=result.left,
    )


def _scene(engine: Engine, plan: Plan, elapsed: float, decisions: list[ShownDecision], note: str) -> Scene:
    states = Counter(job.state.value for job in engine.pool.jobs)
    phases: Counter[Phase] = Counter(
        outlook.phase for outlook in plan.machines if outlook.phase is not Phase.GONE
    )
    return Scene(
        title=TITLE,
        elapsed=elapsed,
        waiting=states["idle"] + states["starting"],
        running=states["running"],
        completed=states["completed"],
        phases=phases,
        decisions=tuple(decisions),
        note=note,
    )
