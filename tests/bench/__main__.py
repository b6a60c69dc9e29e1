"""Measures the rows that are asked for, prints them as a table, and writes them as JSON."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.bench import rows
from tests.bench.daemon import budgets, ec2, projects, tenclouds, usage, whole
from tests.bench.decision import buying, decide, matching
from tests.bench.pool import burst, cycle, ec2live, headinit, live, queue
from tests.bench.rows import Measured, Row, spread
from tests.bench.simulation import apidown, monthly, ramp, rivals, simulated
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import find_or_build

STORE = Path("/var/lib/updraft/local")
STATUS_RUNS = 11
STATUS_TOML = """\
[pool]
name = "crowd"
state_dir = "{folder}"

[clouds.c1]
driver = "fake"

[classes.general]
image = "image-1"
"""


def say(what: str) -> None:
    """Progress, out of the table's way."""
    print(what, file=sys.stderr, flush=True)


class Bench:
    """What the rows share, each made when it is asked for: a real pool's run, a large pool in memory.

    `beside` is the file of the figures: pictures go to the same place.
    """

    def __init__(self, folder: Path, beside: Path) -> None:
        self._folder = folder
        self._rivals = rivals.Field(beside, say)

    @cached_property
    def image(self) -> Image:
        """The machine image, built now where there is none."""
        if os.geteuid() != 0:
            raise PermissionError("a real pool takes root")
        return find_or_build(STORE, say)

    @cached_property
    def story(self) -> live.Story:
        """What a real pool did."""
        return live.play(self.image, self._folder / "live", say)

    @cached_property
    def crowd(self) -> dict[str, Any]:
        """What a controller needed for 1,000 machines, measured in a process of its own."""
        say("A controller at work on 1,000 machines and 100,000 jobs in memory.")
        folder = self._folder / "crowd"
        folder.mkdir()
        command = [sys.executable, "-m", whole.__name__, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-1000:])
        (folder / "updraft.toml").write_text(STATUS_TOML.format(folder=folder))
        return dict(json.loads(done.stdout))

    @cached_property
    def ec2_story(self) -> ec2live.EC2Story:
        """What a real pool did whose cloud is an EC2 endpoint."""
        return ec2live.play(self.image, self._folder / "ec2-live", say)

    @cached_property
    def ec2_batch(self) -> dict[str, Any]:
        """500 machines wanted of one kind."""
        return self._ec2("batch", "A controller in want of 500 machines of an EC2 endpoint.")

    def _ec2(self, what: str, line: str) -> dict[str, Any]:
        say(line)
        folder = self._folder / f"ec2-{what}"
        folder.mkdir()
        command = [sys.executable, "-m", ec2.__name__, what, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-1000:])
        return dict(json.loads(done.stdout))

    def once(self, name: str) -> Any:
        """A shared part; where it failed it isn't tried again for the next row."""
        known = self.__dict__.get(f"failed {name}")
        if known is not None:
            raise known
        try:
            return getattr(self, name)
        except Exception as error:
            self.__dict__[f"failed {name}"] = error
            raise

    # -------------------------------------------------------------------------------------------- rows

    def decision(self) -> Measured:
        """Warm verdicts and the plan, by their medians; of the three plans the slowest counts."""
        seen = self.once("crowd")
        parts = seen["decision"]
        plans = max(value["median"] for name, value in parts.items() if name.startswith("plan_"))
        first = {"first_cycle_cold_s": seen["first_cycle_s"], "cycle_s": seen["cycle_s"]}
        return Measured(
            parts["verdicts_warm_s"]["median"] + plans, {**parts, **first, "world": seen["world"]}
        )

    def memory(self) -> Measured:
        """The most that the daemon itself had after any cycle; its children are in the detail."""
        seen = self.once("crowd")
        names = ("resident_mib", "peak_mib", "children_mib", "world")
        return Measured(seen["resident_mib"]["max"], {name: seen[name] for name in names})

    def demand(self) -> Measured:
        """The slowest of all reads, the first one included."""
        return queue.measure(self.once("image"), self._folder / "queue", say)

    def head_init(self) -> Measured:
        """A plain machine of the local cloud, made a head; the image is at hand."""
        return headinit.measure(self.once("image"), self._folder / "head-init", say)

    def status(self) -> Measured:
        """Whole processes, on the large pool's ledger; the demo's pool is measured too where it was up."""
        self.once("crowd")
        toml = self._folder / "crowd" / "updraft.toml"
        command = [str(Path(sys.executable).with_name("updraft")), "--config", str(toml), "status"]
        taken, lines = [], 0
        for _ in range(STATUS_RUNS):
            begun = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            taken.append(time.perf_counter() - begun)
            lines = len(done.stdout.splitlines())
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip())
        small = list(self.once("story").status_s)
        detail = {"large_pool_s": spread(taken), "lines_shown": lines, "demo_on_its_head_s": spread(small)}
        return Measured(max(statistics.median(taken), statistics.median(small)), detail)

    def of_story(self, judge: Callable[[live.Story], Measured]) -> Callable[[], Measured]:
        """A row that is read from the real pool's run."""
        return lambda: judge(self.once("story"))

    def ec2_calls(self) -> Measured:
        """RunInstances calls from the first to the last machine and ten seconds more."""
        seen = self.once("ec2_batch")
        return Measured(seen["run_instances_calls"], seen)

    def ec2_time(self) -> Measured:
        """All the time until the last machine was made, less that in which the endpoint was at work."""
        seen = self.once("ec2_batch")
        return Measured(max(seen["own_s"], seen["own_cpu_s"]), seen)

    def ec2_quiet(self) -> Measured:
        """A minute of the daemon's own cycles, and once more what is asked for more seldom."""
        seen = self._ec2("quiet", "A minute of 1,000 quiet machines at an EC2 endpoint.")
        return Measured(seen["most_in_a_minute"], seen)

    def of_ec2_story(self, judge: Callable[[ec2live.EC2Story], Measured]) -> Callable[[], Measured]:
        """A row that is read from the run of the real pool on EC2."""
        return lambda: judge(self.once("ec2_story"))

    def ec2_rows(self) -> list[Row]:
        """The rows of the EC2 driver."""
        launch, check = self.of_ec2_story(ec2live.launch_asked), self.of_ec2_story(ec2live.check)
        wanted = "500 machines wanted of one kind on the EC2 endpoint"
        quiet = "EC2: API calls per minute in a quiet pool of 1,000 machines"
        asked = "EC2: submitted → RunInstances, p95 of 20, daemon on a real head against the moto server"
        return [
            Row("ec2-batch", f"{wanted}: RunInstances calls", 10, "calls", self.ec2_calls),
            Row("ec2-own", f"{wanted}: updraft's own time", 10.0, "s", self.ec2_time),
            Row("ec2-quiet", quiet, 12, "calls", self.ec2_quiet),
            Row("ec2-launch", asked, 5.0, "s", launch),
            Row("check", "`updraft check` with everything in order", 10.0, "s", check),
        ]

    @cached_property
    def large(self) -> dict[str, Any]:
        """Decisions about 10,000 machines and 1,000,000 jobs, in a process of its own."""
        return self._decisions(decide.WHOLE)

    @cached_property
    def ten_clouds(self) -> dict[str, Any]:
        """Cycles with 5,000 machines on ten clouds."""
        say("A controller of ten clouds with 500 machines each.")
        return tenclouds.in_a_process()

    @cached_property
    def cycle_5000(self) -> dict[str, Any]:
        """Cycles about 5,000 machines on a real head."""
        return cycle.measure(self.image, self._folder / "cycle", say)

    @cached_property
    def hundred(self) -> burst.Story:
        """A hundred real machines at once."""
        return burst.play(self.image, self._folder / "burst", say)

    @cached_property
    def few_groups(self) -> dict[str, Any]:
        """The same with a tenth of the groups, and of the jobs."""
        return self._decisions(decide.FEW_GROUPS)

    @cached_property
    def few_offers(self) -> dict[str, Any]:
        """The same with a tenth of the offers."""
        return self._decisions(decide.FEW_OFFERS)

    def _decisions(self, size: decide.Size) -> dict[str, Any]:
        say(f"Decisions about {size.machines} machines, {size.groups} job groups and {size.offers} offers.")
        return decide.in_a_process(size)

    def large_rows(self) -> list[Row]:
        """The rows of a decision about a large pool."""
        what = "one decision, 10,000 machines, 1,000,000 idle jobs in 1,000 groups, 2,000 offers"

        def whole() -> dict[str, Any]:
            return dict(self.once("large"))

        return [
            Row("decision-large", f"{what}, warm", 1.0, "s", lambda: Measured(decide.warm(whole()), whole())),
            Row("decision-large-cold", f"{what}, cold", 10.0, "s", lambda: decide.cold(whole())),
            Row(
                "memory-large", "resident memory of that, the child included", 1024.0, "MiB",
                lambda: Measured(decide.memory_of(whole())),
            ),
            Row(
                "growth-groups", "its time, 1,000 groups ÷ 100 groups", 10.0, "×",
                lambda: decide.growth(self.once("few_groups"), whole()),
            ),
            Row(
                "growth-offers", "its time, 2,000 offers ÷ 200 offers", 10.0, "×",
                lambda: decide.growth(self.once("few_offers"), whole()),
            ),
        ]  # fmt: skip

    @cached_property
    def prices(self) -> dict[str, Any]:
        """What buying pays for the mixed queues, beside their lower bounds."""
        say("Mixed queues, their lower bounds, and what is bought for them.")
        return buying.prices()

    def buying_rows(self) -> list[Row]:
        """The rows of what to buy."""
        what = "plan's price ÷ lower bound, mixed queues of 12 to 1,000 groups, 90 offers"
        speed = "what to buy alone: 1,000,000 idle jobs in 1,000 groups, 2,000 offers"

        def price(name: str) -> Callable[[], Measured]:
            return lambda: Measured(self.once("prices")[name], self.once("prices"))

        return [
            Row("price", f"{what}: median", 1.03, "×", price("median")),
            Row("price-worst", f"{what}: worst", 1.08, "×", price("worst")),
            Row("buying", speed, 0.4, "s", buying.speed),
        ]

    @cached_property
    def two_projects(self) -> dict[str, Any]:
        """200 machines over two OpenStack projects, up and down."""
        say("200 machines over two OpenStack projects, and all gone again: ten minutes and more.")
        return projects.in_a_process(self._folder / "projects")

    def openstack_rows(self) -> list[Row]:
        """The rows of two real projects."""
        what = "200 machines over two OpenStack projects, up and down"

        def of(name: str) -> Callable[[], Measured]:
            return lambda: Measured(self.once("two_projects")[name], self.once("two_projects"))

        return [
            Row("openstack-200", f"{what}: updraft's own CPU, of the time", 5.0, "%", of("cpu_percent")),
            Row("openstack-200-calls", f"{what}: create calls", 12, "calls", of("create_calls")),
            Row(
                "openstack-200-machines", f"{what}: machines at the top, the quotas' last included", 200, "",
                of("at_top"), at_least=True,
            ),
            Row(
                "openstack-200-failed", f"{what}: failed changes made again", 0, "calls",
                of("repeated_failures"),
            ),
        ]  # fmt: skip

    def matching_rows(self) -> list[Row]:
        """The rows of matching alone."""
        pairs = "matching 1,000 job groups × 2,000 kinds"
        cold = f"{pairs}, cold, 5 % of the groups only decided by the ClassAd library"
        rate = "matching, plain comparisons, cold: group × kind pairs per second of one core"
        return [
            Row("match-rate", rate, 1e6, "/s", matching.rate, at_least=True),
            Row("match-cold", cold, 5.0, "s", matching.cold),
            Row("match-warm", f"{pairs}, warm", 0.05, "s", matching.warm),
        ]

    def rows(self) -> list[Row]:
        """The table, from the top."""
        launch, join, gone = (
            self.of_story(judge) for judge in (live.launch_requested, live.slot_joined, live.machine_gone)
        )
        decided = "one decision, 1,000 machines, 100,000 idle jobs in 200 groups, 100 offers, warm"
        demand = "demand read from a real schedd with 100,000 idle jobs, the loop not blocked by it"
        return [
            Row("launch", "job submitted → launch requested, p95 of 20", 5.0, "s", launch),
            Row("join", "launch requested → slot in the collector, median", 15.0, "s", join),
            Row("gone", "idle limit reached → machine gone, p95", 15.0, "s", gone),
            Row("decision", decided, 1.0, "s", self.decision),
            Row("memory", "the daemon's resident memory then", 200.0, "MiB", self.memory),
            Row("demand", demand, 3.0, "s", self.demand),
            Row("status", "`updraft status`", 0.5, "s", self.status),
            *self.matching_rows(),
            *self.buying_rows(),
            *self.large_rows(),
            *tenclouds.rows(lambda: dict(self.once("ten_clouds"))),
            *cycle.rows(lambda: dict(self.once("cycle_5000"))),
            *usage.rows(self._folder),
            *budgets.rows(self._folder),
            *monthly.rows(self._folder),
            *apidown.rows(),
            *burst.rows(lambda: self.once("hundred")),
            Row(
                "simulate-lcg",
                "LCG-2005 (188,041 jobs), whole, simulated: one core's time",
                120.0,
                "s",
                simulated.whole,
            ),
            *self._rivals.rows(),
            Row(
                "ramp-csv2",
                "1,000 joined machines: csv2's time ÷ updraft's, same demand and boots, simulated",
                20.0,
                "×",
                ramp.sooner,
                at_least=True,
            ),
            Row("head-init", "`updraft head init` → its self-test's job done", 90.0, "s", self.head_init),
            *self.ec2_rows(),
            *self.openstack_rows(),
        ]


def main() -> int:
    """Measure the rows that were asked for; 0 where all are met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    # `make bench ROWS=…` reaches us as a variable of the environment.
    rows_wanted = os.environ.get("ROWS", "")
    parser.add_argument(
        "--rows",
        default=rows_wanted,
        help="names of rows, with blanks between; default: all but the long ones; all: every row",
    )
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where the figures are written")
    asked = parser.parse_args()
    about = rows.machine()
    with tempfile.TemporaryDirectory(prefix="updraft-bench-") as folder:
        table = Bench(Path(folder), asked.json).rows()
        try:
            wanted = rows.chosen(asked.rows.split(), table)
        except ValueError as error:
            parser.error(str(error))
        results = [rows.run(row) for row in wanted]
    about["load_after"] = os.getloadavg()[0]
    rows.show(results)
    left = [row.name for row in table if row.by_name and not asked.rows]
    if left:
        print(f'not measured, since they take long: make bench ROWS="{" ".join(left)}"')
    rows.save(asked.json, about, results)
    print(f"written to {asked.json}")
    return 0 if all(result.met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
