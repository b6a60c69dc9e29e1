"""Clouds and a policy to simulate with where there is no configuration."""

from collections.abc import Sequence

from updraft.core.model import CloudOffer, Resources
from updraft.core.settings import DAY, Policy, WorkerClass
from updraft.sim.conditions import SimCloud

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
