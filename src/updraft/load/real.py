"""Real startds beside the simulated ones: many in one master on the head, each with a job of its own."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from updraft.clouds.local.config import DOMAIN
from updraft.demo.pool import USER
from updraft.errors import ProblemFound
from updraft.load import conf
from updraft.load.figures import MIB, Real
from updraft.load.head import TOKENS, Head

_DEADLINE = 30.0
_MORE_FOR_EACH = 1.5  # seconds
_ONLY = "UpdraftLoadReal =?= True"
_JOB_SECONDS = 7200

_START = f"""\
set -e
home={conf.REAL_HOME}
mkdir -p $home/log $home/spool $home/execute $home/lock $home/run $home/tokens $home/keys
cat > $home/condor_config
for number in $(seq 1 $1); do mkdir -p $home/execute/$number; done
chown -R condor:condor $home
cp {TOKENS}/load $home/tokens/load
chown -R root:root $home/tokens $home/keys
chmod 700 $home/tokens $home/keys
CONDOR_CONFIG=$home/condor_config setsid condor_master -f </dev/null >/dev/null 2>&1 &
"""


def start(head: Head, count: int) -> Real:
    """Start them, give each a job, wait until all run, and say what it took. They end with the head."""
    before = head.daemons()
    config = conf.real_startds(count, head.address, head.leaves, DOMAIN)
    deadline = _DEADLINE + _MORE_FOR_EACH * count
    head.run("bash", "-c", _START, "bash", str(count), stdin=config)
    joined, to_join = _reach(lambda: _slots(head, "DynamicSlot =!= True"), count, deadline)
    idle = head.daemons()
    head.pool.submit(conf.real_jobs(joined, _JOB_SECONDS), USER)
    head.run("condor_reschedule")
    running, to_run = _reach(lambda: _slots(head, 'Activity == "Busy"'), joined, deadline)
    return costs(before, idle, head.daemons(), (count, joined, running), (to_join, to_run))


def _slots(head: Head, constraint: str) -> int:
    """Slots of real startds, as the collectors at the leaves have them: the top one may hear of it later."""
    words = ("condor_status", "-af", "Name", "-constraint", f"{_ONLY} && {constraint}", "-pool")
    return sum(len(head.pool.on_head(*words, leaf).stdout.splitlines()) for leaf in head.leaves)


def _reach(count: Any, wanted: int, deadline: float) -> tuple[int, float]:
    """How many there were at last, and after how many seconds: all, or as many as the deadline let."""
    began, found = time.monotonic(), 0
    while found < wanted and time.monotonic() - began < deadline:
        found = count()
        if found < wanted:
            time.sleep(1.0)
    if not found:
        raise ProblemFound(f"of {wanted} real startds none came so far within {deadline:.0f} s")
    return found, time.monotonic() - began


def costs(
    before: Sequence[Mapping[str, Any]],
    idle: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    counts: tuple[int, int, int],
    seconds: tuple[float, float],
) -> Real:
    """What a real startd, a starter and a shadow cost, by looks before, without jobs and with them."""
    asked, joined, running = counts
    of_collectors = _descriptors(idle, "collector ") - _descriptors(before, "collector ")
    if not any(
        str(one["name"]).startswith("collector ") for one in before
    ):  # a head without child collectors
        of_collectors = _descriptors(idle, "collector") - _descriptors(before, "collector")
    of_schedd = _descriptors(after, "schedd") - _descriptors(idle, "schedd")
    return Real(
        asked=asked,
        joined=joined,
        running=running,
        seconds_to_join=seconds[0],
        seconds_to_run=seconds[1],
        startd=_each(after, "startd"),
        starter=_each(after, "starter"),
        shadow=_each(after, "shadow"),
        collector_descriptors=of_collectors / joined if joined else None,
        schedd_descriptors=of_schedd / running if running else None,
    )


def _descriptors(seen: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(one["descriptors"] for one in seen if str(one["name"]).startswith(name))


def _each(seen: Iterable[Mapping[str, Any]], name: str) -> float | None:
    """MiB of one of them, shared pages by share."""
    found = [one["pss"] for one in seen if str(one["name"]).split(" ")[0] == name]
    return sum(found) / len(found) / MIB if found else None
