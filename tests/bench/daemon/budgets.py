"""What budgets of money cost a cycle: one daemon with them and one without, in turns, in one process.

`python -m tests.bench.daemon.budgets FOLDER` prints what it measured as JSON: seconds of the processor, of
this process alone, so that what else runs has no say. Both look at the crowd of `whole`, 1,000
machines of which every second one is full of jobs, and have the same records of a month: on each day before
this one as many machines, used by 200 people in 20 groups. Budgets are for a day and a month, of the pool,
each cloud, each class, each of the users, and annexes. The records are read when a daemon reads them that
looks every 2 s: at one look of fifteen.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.daemon import usage, whole
from tests.bench.decision import crowd
from tests.bench.rows import Measured, Row, spread
from updraft.app import serving
from updraft.condor.process.judge import Judge
from updraft.core.model import BudgetPeriod, BudgetScope
from updraft.core.settings import DAY, Policy, SpendingLimit
from updraft.daemon import Daemon
from updraft.garbage import look_seldom
from updraft.ledger import Ledger
from updraft.ledger.usage_sums import sum_up
from updraft.observe.spending import EVERY

LOOKS = 2.0  # seconds from one look to the next, where the schedds answer fast
EACH = round(EVERY / LOOKS)
ROUNDS = 3
PLENTY = 1e6
NAMED = {BudgetScope.POOL: ("",), BudgetScope.CLOUD: crowd.CLOUDS, BudgetScope.CLASS: crowd.CLASSES}
NAMED |= {BudgetScope.USER: ("*",), BudgetScope.ANNEXES: ("*",)}


def policy(budgets: bool) -> Policy:
    """The crowd's policy, with or without budgets; nothing is ever short of money."""
    limits = [
        SpendingLimit(scope, name, period, PLENTY)
        for scope, names in NAMED.items()
        for name in names
        for period in BudgetPeriod
    ]
    return replace(crowd.policy(), spending=tuple(limits) if budgets else ())


def fill(ledger: Ledger, now: float) -> None:
    """The records of the month's days before this one; of at least one day."""
    today, first = int(now // DAY), int(BudgetPeriod.MONTH.begin(now) // DAY)
    with ledger._writing() as rows:
        usage.write_machines(rows, crowd.MACHINES, first)
        for day in range(first, today):
            usage.write_day(rows, day, crowd.MACHINES)
            sum_up(rows, day, over=True)


class Timed:
    """A controller whose cycles, decisions and readings of the records are timed."""

    def __init__(self, controller: Daemon) -> None:
        self._controller = controller
        self.cycles: list[float] = []
        self.plans: list[float] = []
        self.reads: list[float] = []
        asker = controller._observer._spending
        controller._plan = self._watched(controller._plan, self.plans)
        if asker._read is not None:
            asker._read = self._watched(asker._read, self.reads)
        self._asker = asker

    def _watched(self, real: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begun = time.thread_time()
            value = real(*arguments)
            into.append(time.thread_time() - begun)
            return value

        return timed

    def cycle(self, *, due: bool) -> None:
        """One cycle; where that is due, the records are read in it."""
        if due:
            self._asker._last = None
        elif self._asker._last is not None:
            self._asker._last = replace(self._asker._last, at=time.time())
        begun = time.process_time()
        self._controller.cycle()
        self.cycles.append(time.process_time() - begun)

    def forget(self) -> None:
        """Begin to measure."""
        for times in (self.cycles, self.plans, self.reads):
            times.clear()


def measure(folder: Path) -> dict[str, Any]:
    """Cycles of both in turns: by how many per cent those with budgets take longer."""
    with ExitStack() as stack:
        judge = stack.enter_context(Judge())
        now = time.time()
        both = {
            name: _controller(stack, folder / name, name == "with", judge, now)
            for name in ("without", "with")
        }
        look_seldom()
        for one in both.values():
            for _ in range(3):
                one.cycle(due=True)
            one.forget()
        for number in range(ROUNDS * EACH):
            turn = list(both.values())
            for one in turn if number % 2 else reversed(turn):
                one.cycle(due=number % EACH == 0)
    return found(both["without"], both["with"])


def _controller(stack: ExitStack, folder: Path, budgets: bool, judge: Judge, now: float) -> Timed:
    folder.mkdir()
    ledger = stack.enter_context(Ledger(folder / whole.LEDGER))
    fill(ledger, now)
    pool = whole.CrowdPool()
    stack.callback(pool.close)
    with ledger.together():
        drivers = {name: whole.cloud(name, ledger, now) for name in crowd.CLOUDS}
    return Timed(whole.daemon(ledger, drivers, pool, judge, policy(budgets)))


def found(without: Timed, paid: Timed) -> dict[str, Any]:
    """The figures by medians; of each reading every cycle has a part."""
    plain, other = statistics.median(without.plans), statistics.median(paid.plans)
    cycle, read = statistics.median(without.cycles), statistics.median(paid.reads) / EACH
    return {
        "plan_without_s": spread(without.plans),
        "plan_with_s": spread(paid.plans),
        "read_s": spread(paid.reads),
        "cycle_without_s": spread(without.cycles),
        "cycle_with_s": spread(paid.cycles),
        "plan_percent": round(100 * (other / plain - 1), 2),
        "cycle_percent": round(100 * (other - plain + read) / cycle, 2),
    }


def in_a_process(folder: Path) -> dict[str, Any]:
    """What was measured. Raises RuntimeError where that failed."""
    folder.mkdir()
    command = [sys.executable, "-m", __name__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return dict(json.loads(done.stdout))


def rows(folder: Path) -> list[Row]:
    """The rows of budgets."""
    seen: dict[str, Any] = {}

    def of(name: str) -> Callable[[], Measured]:
        def measured() -> Measured:
            if not seen:
                seen.update(in_a_process(folder / "budgets"))
            return Measured(seen[name], seen)

        return measured

    what = "what budgets of the pool, its clouds, classes and 200 users add to"
    return [
        Row(
            "budgets-cycle", f"{what} a cycle, 1,000 machines: of one without", 5.0, "%", of("cycle_percent")
        ),
        Row("budgets-plan", f"{what} its decision", None, "%", of("plan_percent")),
    ]


if __name__ == "__main__":
    serving.start_log("json")
    print(json.dumps(measure(Path(sys.argv[1]))))
