"""One run: a pool comes up, what is written happens to it, all of it is mended, and the run is judged."""

import contextlib
import heapq
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.chaos.judged import timeline
from tests.chaos.judged.evidence import read_jobs
from tests.chaos.judged.judging import LEASE, Bounds, Evidence, Finding, judged
from tests.chaos.troubles import cloudside, hostside, jobs, poolside
from tests.chaos.troubles.hostside import SECOND_LOG
from tests.chaos.troubles.script import NAMES, Happening, written
from tests.chaos.troubles.world import HOSTILE, JOB_LOG, SERVICE, USER, Does, End, World
from tests.remains import Remains
from tests.rigs.pools.controlling import ALIVE, LOG, acting
from tests.rigs.pools.realpool import pool_up, settings, write_story
from tests.waiting import deadline, patience, slowness, until, work
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import Wishes

DEEDS: dict[str, Does] = {**jobs.DEEDS, **cloudside.DEEDS, **poolside.DEEDS, **hostside.DEEDS}
MACHINES = 6
CALMS_DOWN = 2 * LEASE + 120
"""Seconds that it may take until nothing is left to do: a dead system's lease, and all that comes after."""
PRICES = {1: 0.020, 2: 0.034}
"""The least that a small and a medium machine of the local cloud cost per hour."""


def cost_per_day(seconds: float) -> float:
    """The budget of a run of so many seconds: it holds some machines back, and lets every job end.

    What is bought pays for an hour of all that runs, so in each hour at least 1/e of what is left stays left.
    """
    return round(5 * max(PRICES.values()) * math.exp((seconds + CALMS_DOWN) / 3600), 4)


def site(seconds: float) -> str:
    """The settings for a run of so many seconds."""
    return settings(
        pool={"job_lease": "2m"},
        worker={
            "flavors": ["small", "medium"],
            "markets": ["on-demand", "spot"],
            "boot_deadline": "1m",
            "head_gone_after": "5m",
        },
        limits={"machines": MACHINES, "cores": 10, "cost_per_day": cost_per_day(seconds)},
        timings={
            "cycle": "1s",
            "cooldown_first": "3s",
            "cooldown_longest": "20s",
            "trial": MACHINES,
            "settle": "30s",
            "end_patience": "10s",
            "collector_age": "60s",
            "stale_ad": "60s",
        },
    )


def bounds(seconds: float) -> Bounds:
    """What must not be exceeded in a run of so many seconds."""
    return Bounds(machines=MACHINES, cost_per_day=cost_per_day(seconds), prices=PRICES)


PATIENCE = 60.0
"""Seconds for which what can't be ended is tried again: longer than anything that it may need is taken."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; `folder` has its logs, None where nothing was kept."""

    seed: int
    seconds: float
    script: tuple[Happening, ...]
    seen: Evidence
    findings: tuple[Finding, ...]
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Order:
    """Which run: of its script only these kinds, without these numbers. `keep`: a good run's logs, too."""

    seed: int
    seconds: float
    only: Collection[str] = NAMES
    without: Collection[int] = ()
    keep: bool = False


def run(image: Image, home: Path, order: Order, say: Say) -> Outcome:
    """Carry out a run; what it leaves is in a folder of `home` with the seed's name.

    Raises ProblemFound where the pool doesn't come up, AssertionError where anything of it is left behind.
    """
    script = written(order.seed, order.seconds, order.only, order.without)
    folder, cloud = home / f"seed-{order.seed}", home / f"cloud-{order.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    with pool_up(image, cloud, Wishes(settings=site(order.seconds))) as pool:
        world = World(pool)
        hostside.arranged(world)
        until(lambda: acting(pool), 40, "the controller acts")
        _play(world, script, say)
        seen = _seen(world)
        findings = tuple(judged(seen, bounds(order.seconds)))
        if findings or order.keep:
            _keep(world, folder, script, findings)
    shutil.rmtree(cloud, ignore_errors=True)
    kept = folder if findings or order.keep else None
    return Outcome(order.seed, order.seconds, script, seen, findings, kept)


def _play(world: World, script: Sequence[Happening], say: Say) -> None:
    """Let everything happen when it is due, mend it, and wait until nothing is left to do."""
    begun, mender = time.monotonic(), Mender(say)
    mender.start()
    try:
        for one in script:
            _sleep_until(begun + one.at)
            if (end := _begin(world, one, say)) is not None:
                mender.add(time.monotonic() + one.lasts, one, end)
    finally:
        mender.close(deadline(CALMS_DOWN))
    world.client.set_faults([])
    say("everything is mended; waiting until nothing is left to do")
    _calm_down(world, say)


def _begin(world: World, one: Happening, say: Say) -> End | None:
    """Do it. What can't be done at this moment is left out: it may need what another happening has taken."""
    try:
        end = DEEDS[one.what](world, one)
    except Exception as error:
        say(f"{one.at:7.1f} s  {one.number:3} {one.what} can't be done: {str(error)[:200]}")
        world.failed(one, str(error))
        return None
    say(f"{one.at:7.1f} s  {one.number:3} {one.what}{f' for {one.lasts:g} s' if one.lasts else ''}")
    return end


class Mender(threading.Thread):
    """Mends in time what happenings have begun, also while another one takes its time to begin.

    What can't be mended is tried again, for `PATIENCE`: it may need what another happening has taken.
    """

    def __init__(self, say: Say) -> None:
        super().__init__(name="mender", daemon=True)
        self._say = say
        self._news = threading.Condition()
        self._due: list[tuple[float, int, str, End]] = []
        self._tried: dict[int, float] = {}
        self._given_up: list[str] = []
        self._closed = False

    def add(self, moment: float, one: Happening, end: End) -> None:
        """Mend this at a moment, by the monotonic clock."""
        with self._news:
            heapq.heappush(self._due, (moment, one.number, one.what, end))
            self._news.notify()

    def close(self, seconds: float) -> None:
        """Mend what is left, when it is due. Raises AssertionError where so many seconds don't do, or where
        something was given up.
        """
        with self._news:
            self._closed = True
            self._news.notify()
        self.join(seconds)
        left = [*self._given_up, *(what for _, _, what, _ in self._due)]
        over = not left and not self.is_alive()
        assert over, f"what was begun can't be ended: {', '.join(left) or 'it is under way'}"

    def run(self) -> None:
        """Until it is closed and nothing is left."""
        while (pending := self._next()) is not None:
            _, number, what, end = pending
            try:
                end()
            except Exception as error:
                self._say(f"           {number:3} {what} isn't over yet: {str(error)[:200]}")
                self._put_off(number, what, end)

    def _put_off(self, number: int, what: str, end: End) -> None:
        """Try it again soon, unless that was done for long enough."""
        now = time.monotonic()
        with self._news:
            if now - self._tried.setdefault(number, now) > deadline(PATIENCE):
                self._given_up.append(what)
            else:
                heapq.heappush(self._due, (now + _AGAIN, number, what, end))

    def _next(self) -> tuple[float, int, str, End] | None:
        with self._news:
            while True:
                if not self._due and self._closed:
                    return None
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._due)
                self._news.wait(left)


_AGAIN = 2.0  # seconds until what couldn't be mended is tried again


def _sleep_until(moment: float) -> None:
    """The script says when things happen."""
    time.sleep(max(0.0, moment - time.monotonic()))


_GO_ON = """
condor_release -constraint 'HoldReasonCode == 1 && HoldReasonSubCode == 0' >/dev/null 2>&1
condor_continue -constraint 'JobStatus == 7' >/dev/null 2>&1 || :
"""


# A job that is released while its shadow still ends is missing in its schedd's list of jobs that may run: the
# list was made while the job had a host, and the shadow's end doesn't make it anew (`PrioRecArrayIsDirty` in
# HTCondor's qmgmt.cpp; 25.14 always, 23.9 now and then). The schedd does so every 20 minutes, or where a
# priority is edited. That is done while a machine is free; where none is, what is missing is ours.
_OFFER_AGAIN = """
free=$(condor_status -constraint 'PartitionableSlot && State == "Unclaimed" && Cpus > 0' -af Name)
[ -z "$free" ] || condor_qedit -constraint 'JobStatus == 1' JobPrio 1 2>/dev/null || :
"""


def _calm_down(world: World, say: Say) -> None:
    """Wait until no honest job is left and no machine; what still is there then is for the judge.

    A job that was held and released, or suspended, while its shadow had lost its machine may be so again once
    the shadow ends: who has held it goes on releasing it. What updraft holds says so, and is left alone.
    """
    end = time.monotonic() + deadline(CALMS_DOWN)
    offer_again = time.monotonic() + 2 * LEASE
    world.sh(f"condor_rm {HOSTILE} || :; condor_rm -forcex {HOSTILE} || :")
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            world.sh(_GO_ON)
            if time.monotonic() > offer_again and (edited := world.sh(_OFFER_AGAIN).strip()):
                say(f"HTCondor offers waiting jobs to nobody, and a machine is free: {edited}")
            if not world.pool.queue(f'Owner == "{USER}"') and not world.pool.workers(*ALIVE):
                return
        time.sleep(1)


def _seen(world: World) -> Evidence:
    """All that the run left. Logs are read from the head and the machines that are still there."""
    pid = f"$(cat {SERVICE}.main)"
    logs = {Path(log).name: world.sh(f"cat {log} 2>/dev/null || :") for log in (LOG, SECOND_LOG)}
    for title, argv in (("events", ("events", "--last", "5000")), ("status", ("status",))):
        done = world.pool.updraft(*argv)
        logs[f"updraft {title}"] = done.stdout + done.stderr
    for path in (world.pool.cloud.events, world.pool.cloud.state_dir / "cloud.log"):
        logs[path.name] = path.read_text(errors="replace")
    return Evidence(
        cloud=world.log(),
        jobs=read_jobs(world.sh(f"cat {JOB_LOG} 2>/dev/null || :")),
        deeds=tuple(world.deeds),
        clusters=dict(world.clusters),
        ended=time.time(),
        logs=logs,
        secrets=(world.pool.cloud.credential_file.read_text().strip(),),
        memory_kib=int(world.sh(f"ps -o rss= -p {pid} || echo 0")),
        descriptors=int(world.sh(f"ls /proc/{pid}/fd | wc -l")),
        slow=max(patience(), slowness(work(), 1, os.cpu_count() or 1)),
    )


def _keep(world: World, folder: Path, script: Sequence[Happening], findings: Sequence[Finding]) -> None:
    """Write down the findings, the script, all logs, and one time line of them all."""
    remains = Remains(folder)
    remains.text("script.json", json.dumps([asdict(one) for one in script], indent=1))
    remains.text("deeds.json", json.dumps([asdict(deed) for deed in world.deeds], indent=1))
    remains.text("findings", "".join(f"{one.at:.1f} {one.rule}: {one.text}\n" for one in findings))
    remains.file("cloud-events.log", world.pool.cloud.events)
    remains.text("jobs.log", world.sh(f"cat {JOB_LOG}"))
    write_story(world.pool, remains)
    timeline.write(folder, [*timeline.of_deeds(world.deeds), *timeline.of_findings(findings)])
