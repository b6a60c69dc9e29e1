"""What a head is given for the number of its machines, beside what every head has."""

from collections.abc import Mapping
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.sizing.roles import MATCH_LIMITS, settings
from updraft.bootstrap.sizing.size import JOBS_PER_SCHEDD, PoolSize, broker_descriptors, child_collectors
from updraft.bootstrap.sizing.system import DROP_IN, UNIT_LIMIT, kernel, unit_limit

CHILDREN = "UPDRAFT_CHILD_COLLECTORS"
"""The setting by which the controller knows how many children there are for its workers to report to."""

_SLOTS = 8
# The head's own: by the number of machines too, but always written.
_OWN = (
    "DAEMON_LIST",
    "JOB_DEFAULT_LEASE_DURATION",
    "NEGOTIATOR_INTERVAL",
    "NEGOTIATOR_CYCLE_DELAY",
    "NEGOTIATOR_MIN_INTERVAL",
    "SCHEDD_INTERVAL",
    MATCH_LIMITS,
)


def _size(machines: int) -> PoolSize:
    """The one schedd of a head runs no more jobs than HTCondor lets it: a further submit node does."""
    return PoolSize(machines, _SLOTS, jobs=min(machines * _SLOTS, JOBS_PER_SCHEDD))


def scaled_settings(machines: int | None, daemons: str, broker: bool) -> Mapping[str, str | int]:
    """The further settings of such a head; `daemons` is its DAEMON_LIST without children."""
    if not machines:
        return {}
    made: dict[str, str | int] = {
        one.name: one.value for one in settings(_size(machines), "head") if one.name not in _OWN
    }
    if children := child_collectors(machines):
        named = (f"COLLECTOR{number}" for number in range(1, children + 1))
        made |= {"DAEMON_LIST": " ".join([daemons, *named]), CHILDREN: children}
    if broker and (most := broker_descriptors(machines, _SLOTS)) > 10_240:
        made["BROKER.COLLECTOR_MAX_FILE_DESCRIPTORS"] = most
        made["SHARED_PORT_MAX_FILE_DESCRIPTORS"] = max(
            most, int(made.get("SHARED_PORT_MAX_FILE_DESCRIPTORS", 20_000))
        )
    return made


def scaled_files(machines: int | None, broker: bool) -> list[dict[str, Any]]:
    """The unit's and the kernel's limits of such a head, where what they are isn't enough."""
    if not machines:
        return []
    size = _size(machines)
    limit, least = _unit_limit(size, broker), kernel(size, "head")
    text = "[Service]\n"
    if limit > UNIT_LIMIT:
        text += f"LimitNOFILE={limit}\n"
    if least:
        text += f"ExecStartPre=-/bin/sh {machine.SCRIPTS}/raise-kernel\n"
    files = [machine.file(DROP_IN, text)] if limit > UNIT_LIMIT or least else []
    if least:
        lines = "".join(f"{one.name} {one.at_least}\n" for one in least)
        files.append(machine.file("/etc/updraft/kernel.conf", lines))
        script = machine.shipped("raise-kernel.sh")
        files.append(machine.file(f"{machine.SCRIPTS}/raise-kernel", script, "0755"))
    return files


def _unit_limit(size: PoolSize, broker: bool) -> int:
    found = unit_limit(size, "head")
    own = UNIT_LIMIT if found is None else found.at_least
    return max(own, broker_descriptors(size.machines, size.slots)) if broker else own
