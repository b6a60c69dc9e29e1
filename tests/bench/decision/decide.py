"""Decisions about a pool of any size, in a process of its own: cold, warm, and how much memory they take.

A cold one knows nothing, as the first one of a daemon. Warm ones are made as a daemon makes them, with what
it remembers of the last one, and between any two of them one machine in twenty has told something new.

`python -m tests.bench.decision.decide JOBS GROUPS MACHINES OFFERS` prints what it measured as JSON.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import astuple, replace
from typing import Any

from tests.bench.daemon.whole import children, memory, timed
from tests.bench.decision import large
from tests.bench.decision.large import Size
from tests.bench.rows import Measured, spread
from updraft.condor.process.judge import Judge
from updraft.core.model import AtWork, Known, Plan, Snapshot
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy
from updraft.garbage import look_seldom

TIMES = 5
STEP = 2.0  # seconds from look to look
NEWS = 20  # one machine of so many has a new ad at each look
DEADLINE = 60.0
ROOM = {"bought_out": 0, "room_for_100_more": 100, "no_limit": None}
WHOLE = Size()
FEW_GROUPS = Size(jobs=100_000, groups=100)
FEW_OFFERS = Size(offers=200)


def measure(size: Size) -> dict[str, Any]:
    """One decision with nothing remembered, then others with all of it; garbage as in the daemon."""
    look_seldom()
    bare = large.snapshot(size)
    before = memory(os.getpid())["VmRSS"]
    with Judge() as judge:
        begun = time.perf_counter()
        judged, snapshot = timed(_judged, judge, bare)
        planned, made = timed(plan, snapshot, large.policy(size))
        cold = time.perf_counter() - begun
        again = [timed(_judged, judge, bare)[0] for _ in range(TIMES)]
        looks = _Looks(_judged(judge, bare))
        plans = {name: looks.plans(large.policy(size, more)) for name, more in ROOM.items()}
        return {
            "size": dict(zip(("jobs", "groups", "machines", "offers"), astuple(size), strict=True)),
            "cold_s": {"all": round(cold, 3), "verdicts": round(judged, 3), "plan": round(planned, 3)},
            "verdicts_warm_s": spread(again),
            **{f"plan_{name}_s": spread(taken) for name, taken in plans.items()},
            "processor_s_of_a_plan": round(looks.processor / looks.planned, 3),
            "processor_s_of_a_cold_plan": round(_processor(snapshot, size), 3),
            "resident_mib": {"of_the_snapshot": before, **memory(os.getpid())},
            "children_mib": children(),
            "outcome": outcome(snapshot, made),
        }


class _Looks:
    """One look after the other: what was planned is remembered, and some machines' ads are new each time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._planning = Planning()
        at_work = AtWork(frozenset(), snapshot.now - STEP)
        self._now = replace(snapshot, ledger=replace(snapshot.ledger, at_work=at_work))
        self.planned = 0
        self.processor = 0.0

    def plans(self, policy: Policy) -> list[float]:
        """How long each of some warm plans took; the first one of a policy is none."""
        self._plan(policy)
        return [self._plan(policy) for _ in range(TIMES)]

    def _plan(self, policy: Policy) -> float:
        begun = time.process_time()
        took, made = timed(self._planning, self._now, policy)
        self.processor += time.process_time() - begun
        self.planned += 1
        self._go_on(made)
        return took

    def _go_on(self, made: Plan) -> None:
        was, records = self._now, {(one.cloud, one.id): one for one in made.records}
        ledger = replace(
            was.ledger,
            machines=tuple(records.get((one.cloud, one.id), one) for one in was.ledger.machines),
            at_work=AtWork(made.at_work or frozenset(), was.now),
        )
        pool = was.collector.value  # type: ignore[union-attr]
        now = was.now + STEP
        slots = tuple(
            replace(slot, heard=now) if at % NEWS == self.planned % NEWS else slot
            for at, slot in enumerate(pool.slots)
        )
        collector = Known(replace(pool, slots=slots), now)
        self._now = replace(was, now=now, ledger=ledger, collector=collector)


def _processor(snapshot: Snapshot, size: Size) -> float:
    """The processor's seconds of one plan that remembers nothing, where nothing else is at work."""
    begun = time.process_time()
    plan(snapshot, large.policy(size))
    return time.process_time() - begun


def _judged(judge: Judge, snapshot: Snapshot) -> Snapshot:
    view = snapshot.schedds[large.crowd.SCHEDD].value  # type: ignore[union-attr]
    kinds = list(snapshot.kinds.values())
    return replace(snapshot, verdicts=judge.verdicts(view.groups, kinds, snapshot.now, DEADLINE))


def outcome(snapshot: Snapshot, made: Plan) -> dict[str, Any]:
    """What was decided, so that a fast decision that decides nothing is seen."""
    table: Any = snapshot.verdicts
    return {
        "pairs": int(table.copies.size),
        "pairs_decided": int((table.copies >= 0).sum()),
        "pairs_that_match": int((table.copies > 0).sum()),
        "jobs_on_joined_machines": sum(group.joined for group in made.groups),
        "jobs_on_machines_on_their_way": sum(group.coming for group in made.groups),
        "jobs_on_new_machines": sum(group.new for group in made.groups),
        "jobs_without_room": sum(group.unmet for group in made.groups),
        "machines_bought": sum(getattr(action, "count", 0) for action in made.actions),
        "actions": len(made.actions),
    }


def in_a_process(size: Size) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.decision.decide", *map(str, astuple(size))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return dict(json.loads(done.stdout))


def warm(seen: dict[str, Any]) -> float:
    """Seconds of a warm decision: verdicts and plan by their medians, of the plans the slowest."""
    plans = max(value["median"] for name, value in seen.items() if name.startswith("plan_"))
    return float(seen["verdicts_warm_s"]["median"] + plans)


def cold(seen: dict[str, Any]) -> Measured:
    """The first decision of all."""
    return Measured(seen["cold_s"]["all"], seen["cold_s"])


def memory_of(seen: dict[str, Any]) -> float:
    """MiB at the highest, with what the judge's children had in the end."""
    return float(seen["resident_mib"]["VmHWM"] + sum(seen["children_mib"].values()))


def growth(small: dict[str, Any], whole: dict[str, Any]) -> Measured:
    """How many times as long a warm decision takes at ten times the size."""
    taken = {"small": warm(small), "whole": warm(whole)}
    return Measured(taken["whole"] / taken["small"], {**taken, "sizes": [small["size"], whole["size"]]})


if __name__ == "__main__":
    print(json.dumps(measure(Size(*map(int, sys.argv[1:])))))
