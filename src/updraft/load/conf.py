"""The texts that a load test gives HTCondor: configurations of the head and of real startds, and jobs."""

import math
from collections.abc import Sequence

from updraft.load.ads import LAUNCH

CONFIG = "/etc/condor/config.d/95-load.conf"
OURS = "/etc/condor/config.d/94-load.conf"
MEASURING = "/etc/condor/config.d/99-load-measuring.conf"
REAL_HOME = "/var/lib/updraft-load"
REAL_PORT = 9620
_MACHINES_PER_CHILD = 1250
_SOCKETS_PER_MACHINE = 4
_LEAST_DESCRIPTORS = 10240

# The head that is tested was made for a demonstration: its intervals become HTCondor's own again. The test's
# one user stands for the many of a pool, and all of its job groups are offered in each cycle. (By default a
# schedd of 25.14 offers no more jobs of a user in one cycle than it would upload at once, which is 20.) Where
# the configuration under test says otherwise, that holds.
_OURS = """\
NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_CYCLE_DELAY = 20
NEGOTIATOR_MIN_INTERVAL = 5
SCHEDD_INTERVAL = 300
SCHEDD_ENABLE_PER_USER_MATCH_LIMITS = False
"""
# What is only there to be measured: daemons tell at once what they otherwise tell every quarter of an hour.
_MEASURING = """\
COLLECTOR_UPDATE_INTERVAL = 10
NEGOTIATOR_UPDATE_AFTER_CYCLE = True
"""


def children_for(machines: int) -> int:
    """How many child collectors a pool of that many machines gets unless it is told."""
    return max(2, math.ceil(machines / _MACHINES_PER_CHILD))


def tuned(machines: int, children: int) -> str:
    """A head's configuration for that many machines, where none is given: no more than what matters here."""
    descriptors = max(_LEAST_DESCRIPTORS, 2 * _SOCKETS_PER_MACHINE * machines)
    lines = [f"use FEATURE:ChildCollector({child})" for child in range(1, children + 1)]
    return "\n".join(
        [
            *lines,
            f"COLLECTOR_MAX_FILE_DESCRIPTORS = {descriptors}",
            f"SHARED_PORT_MAX_FILE_DESCRIPTORS = {descriptors}",
            "COLLECTOR_FORWARD_FILTERING = True",
            "UPDATE_VIEW_COLLECTOR_WITH_TCP = True",
            "NEGOTIATOR_CONSIDER_PREEMPTION = False",
            "",
        ]
    )


def ours() -> str:
    """What the test's own part of the head is told, before the configuration that is tested."""
    return _OURS


def measuring() -> str:
    """What is added to any configuration so that its daemons can be measured."""
    return _MEASURING


def leaves(host: str, daemon_list: str, arguments: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The addresses of the child collectors of this head; that of the top one where it has none.

    `daemon_list` is the head's DAEMON_LIST, `arguments` each daemon's name with its …_ARGS.
    """
    known = dict(arguments)
    found = []
    for name in daemon_list.replace(",", " ").split():
        words = known.get(name, "").split()
        if name.startswith("COLLECTOR") and name != "COLLECTOR":
            if "-sock" in words[:-1]:
                found.append(f"{host}?sock={words[words.index('-sock') + 1]}")
            elif "-p" in words[:-1]:
                found.append(f"{host}:{words[words.index('-p') + 1]}")
    return tuple(found) or (host,)


def real_startds(count: int, host: str, collectors: Sequence[str], domain: str) -> str:
    """The configuration of one master with `count` startds of one core each, apart from the head's own."""
    home = REAL_HOME
    lines = [
        "include : /etc/condor/condor_config",
        *("LOCAL_CONFIG_DIR =", "LOCAL_CONFIG_FILE =", f"LOCAL_DIR = {home}"),
        *(f"{name} = {home}/{name.lower()}" for name in ("LOG", "SPOOL", "EXECUTE", "LOCK", "RUN")),
        "use security:recommended",
        *(f"CONDOR_HOST = {host}", f"COLLECTOR_HOST = {collectors[0]}"),
        *(f"TRUST_DOMAIN = {domain}", f"UID_DOMAIN = {domain}", "FILESYSTEM_DOMAIN = updraft-load"),
        *(f"SEC_TOKEN_SYSTEM_DIRECTORY = {home}/tokens", f"SEC_PASSWORD_DIRECTORY = {home}/keys"),
        "SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS, FAMILY",
        f"SHARED_PORT_PORT = {REAL_PORT}",
        *("NUM_CPUS = 1", "MEMORY = 1024", "RUNBENCHMARKS = False", "MOUNT_UNDER_SCRATCH ="),
        # The collector takes a worker's slot only with the launch that its token is for.
        *("UpdraftLoadReal = True", f'UpdraftLaunch = "{LAUNCH}"', f'UpdraftPool = "{LAUNCH}"'),
        "STARTD_ATTRS = UpdraftLoadReal UpdraftLaunch UpdraftPool UpdraftInstance",
        "DAEMON_LIST = MASTER",
    ]
    for number in range(1, count + 1):
        name = f"STARTD{number}"
        lines += [
            f"{name} = $(STARTD)",
            f"{name}_ARGS = -f -local-name {name}",
            f"{name}.STARTD_NAME = real{number}",
            f'{name}.UpdraftInstance = "real{number}"',
            f"{name}.COLLECTOR_HOST = {collectors[number % len(collectors)]}",
            f"{name}.EXECUTE = {home}/execute/{number}",
            f"{name}.STARTD_LOG = {home}/log/StartLog.{number}",
            f"{name}.STARTD_ADDRESS_FILE = {home}/run/startd.{number}",
            f"DAEMON_LIST = $(DAEMON_LIST) {name}",
        ]
    return "\n".join(lines) + "\n"


def dummy_jobs(groups: int, each: int) -> str:
    """Jobs of so many groups, tried on all slots and taken by none: a simulated one can't run any."""
    return _jobs("60", "TARGET.UpdraftLoadNever =?= True", "$(memory)") + (
        f"queue {each} memory in ({', '.join(str(256 + group) for group in range(groups))})\n"
    )


def real_jobs(count: int, seconds: int) -> str:
    """Jobs for the real startds, one for each."""
    return _jobs(str(seconds), "TARGET.UpdraftLoadReal =?= True", "64") + f"queue {count}\n"


def _jobs(seconds: str, requirements: str, memory: str) -> str:
    return (
        "executable = /bin/sleep\n"
        f"arguments = {seconds}\n"
        "transfer_executable = false\n"
        "should_transfer_files = YES\n"
        "request_cpus = 1\n"
        f"request_memory = {memory}\n"
        "request_disk = 1MB\n"
        f"requirements = {requirements}\n"
    )
