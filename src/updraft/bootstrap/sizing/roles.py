"""HTCondor's settings for a pool of a size, by role, each with why it is there. Nothing but arithmetic.

What a value rests on is in `size`; what of it a release knows, and needs no telling, in `setting`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from updraft.bootstrap.sizing.setting import (
    ESTIMATE,
    FEATURE,
    MANUAL,
    TREE,
    UPDRAFT,
    WIKI,
    Setting,
    knowledge,
)
from updraft.bootstrap.sizing.size import (
    JOBS_PER_SCHEDD,
    MACHINES_PER_COLLECTOR,
    SMALL,
    PoolSize,
    child_collectors,
    child_of,
    collector_descriptors,
    schedd_descriptors,
    update_interval,
)

_WATCHED = (
    "State,Cpus,Memory,IdleJobs,ClaimId,Capability,ClaimIdList,ChildClaimIds,"  # HTCondor's own list
    "Activity,Draining"
)
_LARGEST_BACKLOG = 65_535
MATCH_LIMITS = "SCHEDD_ENABLE_PER_USER_MATCH_LIMITS"
"""Whether a schedd offers only so many jobs of one user in a cycle as it would send the input of at once."""

_VERY_LARGE = 10_000  # machines from which one submitter's turn at the negotiator gets longer


def settings(size: PoolSize, role: str, *, version: str = FEATURE, machine: str = "") -> tuple[Setting, ...]:
    """The settings of a "head", a "submit" node or a "worker", without the version's own defaults.

    `machine` is a worker's id, by which it chooses its collector; without one that isn't told. Raises
    BootstrapError for a version that can't be told.
    """
    known = knowledge()
    made = _worker(size, machine) if role == "worker" else _MADE[role](size)
    return tuple(known.worth_saying(made, known.release(version)))


def tree(children: int) -> Iterator[Setting]:
    """The children of the top collector, on the same machine and behind the same port.

    The same as `use FEATURE:ChildCollector(N)`, and with files of their own: without, the last that starts
    would pass for the pool's collector on this machine.
    """
    if not children:
        return
    why = (
        f"Machines report to one of {children} collectors, about {MACHINES_PER_COLLECTOR} to each; "
        "they pass on "
        "to the top one what matching looks at. All of them are behind the one shared port."
    )
    names = [f"COLLECTOR{number}" for number in range(1, children + 1)]
    yield Setting("DAEMON_LIST", " ".join(["$(DAEMON_LIST)", *names]), why, TREE)
    for number, name in enumerate(names, 1):
        for setting, value in {
            name: "$(COLLECTOR)",
            f"{name}_ARGS": f"-sock collector{number}",
            f"{name}_LOG": f"$(LOG)/Collector{number}Log",
            f"{name}.COLLECTOR_LOG": f"$(LOG)/Collector{number}Log",
            f"{name}.COLLECTOR_NAME": f"Collector{number}",
            f"{name}.CONDOR_VIEW_HOST": "$(COLLECTOR_HOST)",
            f"{name}.COLLECTOR_ADDRESS_FILE": f"$(LOG)/.collector{number}_address",
            f"{name}.COLLECTOR_SUPER_ADDRESS_FILE": f"$(LOG)/.collector{number}_address.super",
            f"{name}.CCB_RECONNECT_FILE": f"$(SPOOL)/collector{number}.ccb_reconnect",
        }.items():
            yield Setting(setting, value, f"Child {number} of {children}.", TREE)


def _forwarding(size: PoolSize) -> Iterator[Setting]:
    if not child_collectors(size.machines):
        return
    yield Setting(
        "UPDATE_VIEW_COLLECTOR_WITH_TCP",
        "true",
        "What a child passes on arrives, and arrives whole: by UDP, HTCondor's default for this one "
        "way, ads are "
        "lost under load.",
        MANUAL,
    )
    yield Setting(
        "COLLECTOR_FORWARD_FILTERING",
        "true",
        "A child passes on an ad when something changed that matching looks at, and every five minutes.",
        TREE,
    )
    yield Setting(
        "COLLECTOR_FORWARD_WATCH_LIST",
        _WATCHED,
        "HTCondor's own list, and what updraft looks at: whether a claim is at work, and whether a "
        "machine drains.",
        UPDRAFT,
    )
    yield Setting(
        "COLLECTOR_UPDATE_INTERVAL",
        "30",
        "How often a child tells the top collector how it is, in seconds: updraft lets machines join more "
        "slowly where one has too much to do.",
        UPDRAFT,
    )
    yield Setting(
        "CONDOR_VIEW_CLASSAD_TYPES",
        "Machine,Submitter,DaemonMaster,StartD",
        "Masters' and startds' own ads are passed on as well: condor_off and condor_drain look for "
        "them at the top.",
        TREE,
    )


def _listening(size: PoolSize) -> Iterator[Setting]:
    descriptors = collector_descriptors(size)
    yield from _at_least(
        "COLLECTOR_MAX_FILE_DESCRIPTORS",
        descriptors,
        10_240,
        f"Each machine keeps {size.sockets} connections to its collector open; twice that, as the "
        "manual says.",
        MANUAL,
    )
    most = max(descriptors, schedd_descriptors(size) if size.head_submits else 0)
    yield from _shared_port(most)
    yield from _at_least(
        "SOCKET_LISTEN_BACKLOG",
        backlog(size),
        4096,
        "After a restart of the head all machines come at once; whom the queue doesn't hold tries "
        "again seconds "
        "later. The kernel's net.core.somaxconn must be as large.",
        ESTIMATE,
    )


def backlog(size: PoolSize) -> int:
    """How many connections may wait to be taken: master and startd of each machine, as far as it goes."""
    return min(2 * size.machines, _LARGEST_BACKLOG)


def _negotiating(size: PoolSize) -> Iterator[Setting]:
    machines = size.machines
    if machines > SMALL:
        yield Setting(
            "NEGOTIATOR_CONSIDER_PREEMPTION",
            "false",
            "No busy slot is looked at in a cycle, which makes it much shorter. Leave it away where "
            "a job is to be "
            "evicted for a better one (PREEMPTION_REQUIREMENTS, RANK of machines).",
            MANUAL,
        )
    for name, value in negotiator_pace(machines).items():
        yield Setting(
            name, str(value), "A small pool may look for matches often; a larger one needs its time.", UPDRAFT
        )
    if machines > _VERY_LARGE:
        for what in ("SUBMITTER", "SCHEDD", "PIESPIN"):
            yield Setting(
                f"NEGOTIATOR_MAX_TIME_PER_{what}",
                "300",
                "One user's jobs may be most of the pool's: a minute of a cycle is too short to match them.",
                WIKI,
            )


def negotiator_pace(machines: int) -> Mapping[str, int]:
    """Seconds between the negotiator's cycles: from often, in a small pool, to HTCondor's own."""
    return {
        "NEGOTIATOR_INTERVAL": _between(5, machines // 20, 60),
        "NEGOTIATOR_CYCLE_DELAY": _between(1, machines // 60, 20),
        "NEGOTIATOR_MIN_INTERVAL": _between(1, machines // 240, 5),
    }


def schedd_interval(machines: int) -> int:
    """Seconds between the schedd's rounds: from often, in a small pool, to HTCondor's own."""
    return _between(5, machines // 20, 300)


def _submit(size: PoolSize) -> Iterator[Setting]:
    if size.jobs_each > JOBS_PER_SCHEDD:
        yield Setting(
            "MAX_JOBS_RUNNING",
            str(size.jobs_each),
            f"HTCondor stops at {JOBS_PER_SCHEDD} jobs per schedd; more schedds serve better than this does.",
            MANUAL,
        )
    yield from _at_least(
        "SCHEDD_MAX_FILE_DESCRIPTORS",
        schedd_descriptors(size),
        20_000,
        f"Three for each of {size.jobs_each} running jobs: its shadow, its claim, and a transfer or a "
        "question.",
        ESTIMATE,
    )
    yield Setting(
        MATCH_LIMITS,
        "false",
        "By itself a schedd since 25.11 offers at most 20 jobs of one user in a cycle (a fifth of "
        "MAX_CONCURRENT_UPLOADS, less those whose input is on its way): new machines would wait for the "
        "next cycles. Leave it away where users with large inputs get in each other's way.",
        UPDRAFT,
    )
    if schedd_interval(size.machines) < 300:
        yield Setting(
            "SCHEDD_INTERVAL",
            str(schedd_interval(size.machines)),
            "A small pool's schedd may tell often that jobs wait; a larger one needs its time.",
            UPDRAFT,
        )
    yield Setting(
        "JOB_DEFAULT_LEASE_DURATION",
        str(size.job_lease),
        "A vanished machine's job starts again after so many seconds, where nobody requeues it "
        "before; and so "
        "long may this machine be away. updraft wants to know it: pool.job_lease.",
        UPDRAFT,
    )


def _only_submit(size: PoolSize) -> Iterator[Setting]:
    yield from _shared_port(schedd_descriptors(size))
    yield from _submit(size)


def _shared_port(most: int) -> Iterator[Setting]:
    why = "It hands each connection on to another daemon, and needs as many as the one with most."
    yield from _at_least("SHARED_PORT_MAX_FILE_DESCRIPTORS", most, 20_000, why, MANUAL)


def _head(size: PoolSize) -> Iterator[Setting]:
    yield from tree(child_collectors(size.machines))
    yield from _forwarding(size)
    yield from _listening(size)
    yield from _negotiating(size)
    if size.head_submits:
        yield from _submit(size)


def _worker(size: PoolSize, machine: str) -> Iterator[Setting]:
    children = child_collectors(size.machines)
    if children and machine:
        yield Setting(
            "COLLECTOR_HOST",
            f"$(CONDOR_HOST)?sock=collector{child_of(machine, children)}",
            f"The child of this machine, by a hash of its id ({machine}): the same after each "
            "restart, so that "
            "its jobs find it again.",
            TREE,
        )
    if size.reach == "ccb":
        yield Setting(
            "CCB_ADDRESS",
            "$(COLLECTOR_HOST)",
            "Nothing can connect to this machine: it is asked to connect back by way of its own "
            "collector. Its token "
            "needs the DAEMON right there.",
            WIKI,
        )
    interval = update_interval(size.machines, size.slots)
    why = (
        "How often it advertises itself. Also how long an emptied startd takes to go by itself, which is why "
        "a small pool's is short."
    )
    yield Setting("UPDATE_INTERVAL", str(interval), why, UPDRAFT)
    yield Setting("MASTER_UPDATE_INTERVAL", str(max(60, interval)), why, UPDRAFT)


def _at_least(name: str, wanted: int, own: int, reason: str, source: str) -> Iterator[Setting]:
    """Never fewer than HTCondor's own."""
    yield Setting(name, str(max(wanted, own)), reason, source)


def _between(least: int, value: int, most: int) -> int:
    return min(max(value, least), most)


_MADE: Mapping[str, Callable[[PoolSize], Iterator[Setting]]] = {"head": _head, "submit": _only_submit}
ROLES: Sequence[str] = ("head", "submit", "worker")

_ANY, _HEAD = ("head", "submit", "worker"), ("head",)
LEFT_OUT: Mapping[str, tuple[Sequence[str], str]] = {
    "USE_SHARED_PORT": (_ANY, "one inbound port"),
    "COLLECTOR_USES_SHARED_PORT": (_HEAD, "the collectors, too, are behind it"),
    "UPDATE_COLLECTOR_WITH_TCP": (_ANY, "TCP updates"),
    "SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION": (
        _ANY,
        "a claim's secret opens the session between schedd and startd",
    ),
    "NEGOTIATOR_INFORM_STARTD": (_HEAD, "no notice of a match, on which vanished machines would hang it"),
    "NEGOTIATOR_PREFETCH_REQUESTS": (_HEAD, "jobs are fetched ahead, many in one message"),
    "ENABLE_KERNEL_TUNING": (
        ("head", "submit"),
        "as root it raises somaxconn to 4096, and where a schedd is, local ports are 1024-65535",
    ),
}
"""What large pools need and HTCondor does by itself: for which roles, and what it is good for."""
