"""The simulated world outside the controller: clouds, boots, faults and the pace of the pool, as data.

And an example of clouds and a policy, to simulate with where there is no configuration.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from updraft.core.model import CloudOffer, Resources
from updraft.core.settings import DAY, Policy, WorkerClass
from updraft.sim.world.agenda import START


@dataclass(frozen=True, slots=True)
class Boots:
    """How long machines take from the request to their first ad, and how many never join.

    The time is lognormal: `median` in seconds, `spread` the standard deviation of its logarithm (0 is always
    the median). `failures` is the share of machines that never join and are paid for until they are ended.
    """

    median: float = 90.0
    spread: float = 0.25
    failures: float = 0.0


@dataclass(frozen=True, slots=True)
class SimCloud:
    """What a cloud sells and how much of it there is.

    `offers` are sold all the time; an offer's `left` is how many of its machines there are at most at one
    time, None without end. `machines` and `cores` are the quotas, None unlimited. `boots` None is as
    everywhere. With `tells_left` the cloud tells what is left of each offer, without it nothing of that.
    """

    offers: tuple[CloudOffer, ...]
    machines: int | None = None
    cores: int | None = None
    boots: Boots | None = None
    tells_left: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the pool's parts are, in seconds.

    `negotiation` is from one cycle of the negotiator to the next, `first` from the beginning to the first of
    them (None: as long as from one to the next), `start` from a match to the job's start,
    `reuse` from the end of a job to the start of the next in the same claim, `exit` from an accepted atomic
    drain to the end of the startd's ads, `worklife` how old a claim may be that takes another job. `joins` is
    how many machines its collector takes in a second, None for any number: then it says nothing of what it
    has to do.
    """

    negotiation: float = 5.0
    start: float = 1.0
    reuse: float = 0.2
    exit: float = 4.0
    worklife: float = 1200.0
    joins: float | None = None
    first: float | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """The pace and the faults of a simulated world; times in seconds.

    `cycle`: from one look of the controller to the next. `negotiation`: from one cycle of the negotiator to
    the next. `start`: from a match to the job's start; `reuse`: from the end of a job to the start of the
    next in the same claim; `worklife`: how old a claim may be that takes another job. `exit`: from an
    accepted atomic drain until the machine's ads are gone. `answer`: from a look until its plan is carried
    out (the clouds' and the pool's answers). `shows_after`: how long a cloud's listing lags behind launches.
    `stop_takes`: how long an ended machine is listed as stopping; nothing is paid for it after the order to
    end it. `interruptions`: how often a spot machine is taken away, per hour. `begins`: the POSIX time of the
    workload's second 0. `horizon`: when the simulation ends at the latest, in seconds of the workload; None
    when the last job is done and the last machine gone. `thorough` asks for a decision in every cycle, also
    where nothing has changed and nothing can be due: the outcome is the same, later.
    """

    cycle: float = 60.0
    negotiation: float = 60.0
    start: float = 1.0
    reuse: float = 0.2
    worklife: float = 1200.0
    exit: float = 4.0
    answer: float = 0.5
    shows_after: float = 0.0
    stop_takes: float = 3.0
    boots: Boots = Boots()
    interruptions: float = 0.0
    seed: int = 0
    begins: float = START
    horizon: float | None = None
    thorough: bool = False

    @property
    def pace(self) -> Pace:
        """How fast the pool is under these conditions."""
        # Half a period after the looks: neither waits for the other in the real world.
        first = self.negotiation / 2
        return Pace(self.negotiation, self.start, self.reuse, self.exit, self.worklife, first=first)


GIB = 1024  # MiB
PRICE = 0.05  # per core and hour
SIZES = (1, 2, 4, 8, 16, 32)


def example_clouds(sizes: Sequence[int] = SIZES) -> dict[str, SimCloud]:
    """One cloud that sells machines of so many cores, 4 GiB of memory with each, at one price per core."""
    offers = tuple(
        CloudOffer(
            cloud="cloud",
            zone="a",
            flavor=f"c{cpus}",
            market="on-demand",
            resources=Resources(cpus, cpus * 4 * GIB, (20 + 10 * cpus) * 1024 * 1024),
            price=round(PRICE * cpus, 4),
        )
        for cpus in sizes
    )
    return {"cloud": SimCloud(offers)}


def example_policy() -> Policy:
    """One worker class that takes any of them, with the usual settings and without limits.

    Its lifetime is longer than most workloads: what ends at a lifetime's deadline would count as killed.
    """
    worker = WorkerClass("worker", "1", ("cloud",), lifetime=30 * DAY)
    return Policy(pool="example", classes={worker.name: worker})
