"""What a pool's size asks of the machine itself: the unit, the kernel, memory and disk. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from updraft.bootstrap.sizing.roles import backlog
from updraft.bootstrap.sizing.setting import ESTIMATE, MANUAL
from updraft.bootstrap.sizing.size import (
    PoolSize,
    child_collectors,
    collector_descriptors,
    schedd_descriptors,
)

UNIT_LIMIT = 32_768
"""LimitNOFILE of the unit that HTCondor ships."""

DROP_IN = "/etc/systemd/system/condor.service.d/90-pool-size.conf"
SYSCTL = "/etc/sysctl.d/90-pool-size.conf"

# What common kernels have at least, without being told: below it there is nothing to raise.
_COMMON: Mapping[str, int] = {
    "fs.file-max": 100_000,
    "fs.nr_open": 1_048_576,
    "net.core.somaxconn": 4_096,
    "net.netfilter.nf_conntrack_max": 65_536,
}


@dataclass(frozen=True, slots=True)
class Least:
    """Something of the machine that must be at least so much; leave a larger one alone."""

    name: Annotated[str, "Its name."]
    at_least: Annotated[int, "How much."]
    unit: Annotated[str, "Of what."]
    reason: Annotated[str, "Why so much."]
    source: Annotated[str, "Whose advice it is."]


def unit_limit(size: PoolSize, role: str) -> Least | None:
    """LimitNOFILE for HTCondor's unit; None where the one that it ships is enough."""
    most = max(_descriptors(size, role), default=0)
    if most <= UNIT_LIMIT:
        return None
    why = (
        "HTCondor's unit has 32768. Its daemons raise their own limit where they run as root; where "
        "they may not "
        "(no root, no CAP_SYS_RESOURCE), this is the end of it."
    )
    return Least("LimitNOFILE", most, "descriptors", why, MANUAL)


def kernel(size: PoolSize, role: str) -> tuple[Least, ...]:
    """The kernel's own limits that must be raised, as far as what common kernels have isn't enough."""
    return tuple(one for one in _kernel(size, role) if one.at_least > _COMMON[one.name])


def needs(size: PoolSize, role: str) -> tuple[Least, ...]:
    """Memory and disk, in MiB, beside what the system itself takes."""
    return tuple(_needs(size, role))


def submits(size: PoolSize, role: str) -> bool:
    """Whether a schedd runs there."""
    return role == "submit" or (role == "head" and size.head_submits)


def _descriptors(size: PoolSize, role: str) -> Iterator[int]:
    if role == "head":
        yield collector_descriptors(size)
    if submits(size, role):
        yield schedd_descriptors(size)


def _kernel(size: PoolSize, role: str) -> Iterator[Least]:
    opened, flows = 0, 0
    if role == "head":
        collectors = child_collectors(size.machines) + 1
        opened += collectors * collector_descriptors(size)
        flows += 2 * size.machines * size.sockets
    if submits(size, role):
        opened += schedd_descriptors(size) + 40 * size.jobs_each
        flows += 4 * size.jobs_each
    if not opened:
        return
    yield Least(
        "fs.file-max",
        opened,
        "files",
        "All daemons together, and 40 for each shadow of a running job.",
        ESTIMATE,
    )
    most = max(_descriptors(size, role))
    yield Least(
        "fs.nr_open", most, "descriptors", "No process can have more than this, root's neither.", MANUAL
    )
    yield Least(
        "net.netfilter.nf_conntrack_max",
        flows,
        "connections",
        "Twice what is open, for what is being opened and has just been closed; where a firewall on "
        "this machine "
        "tracks connections, and full, it drops new ones.",
        ESTIMATE,
    )
    if role == "head":
        why = "As long as SOCKET_LISTEN_BACKLOG, or that is cut."
        yield Least("net.core.somaxconn", backlog(size), "connections", why, MANUAL)


def _needs(size: PoolSize, role: str) -> Iterator[Least]:
    if role == "head":
        copies = 2 if child_collectors(size.machines) else 1
        ads = size.machines * (1 + size.slots) * copies
        why = (
            f"{ads} slot ads of 24 KiB{', at the children and again at the top' * (copies > 1)}, "
            "and half as much"
        )
        text = f"{why} for those who answer questions meanwhile (the collectors and the negotiator)."
        yield Least("memory", 256 + math.ceil(1.5 * ads * 24 / 1024), "MiB", text, ESTIMATE)
    if submits(size, role):
        each = size.jobs_each
        yield Least(
            "memory for shadows", each, "MiB", f"{each} running jobs, with 1 MiB each for its shadow.", MANUAL
        )
        text = (
            f"The queue's log, of ten times the {each} running jobs, 20 KiB each; jobs' spooled "
            "files come on top."
        )
        yield Least("disk for the spool", 1024 + math.ceil(10 * each * 20 / 1024), "MiB", text, ESTIMATE)
        text = (
            f"2.1 local ports for each of {each} running jobs; HTCondor opens 1024-65535 for a "
            "schedd as root."
        )
        yield Least("ephemeral ports", math.ceil(2.1 * each), "ports", text, MANUAL)
