"""What the integration tests share: a real pool that leaves nothing behind, waiting, and short settings."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.remains import Remains, leave, watched
from tests.rigs.pools.resident import WatchedPool
from tests.waiting import deadline, patience, until
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes, bring_up

__all__ = [
    "Footprint",
    "RealPools",
    "at_a_terminal",
    "patience",
    "pool_up",
    "say",
    "settings",
    "tell",
    "until",
    "until_nothing",
    "write_story",
]
STORY = {
    "updraft-events": ("updraft", "events", "--last", "1000"),
    "updraft-status": ("updraft", "status"),
    "updraft-check": ("updraft", "check"),
    "condor_status": ("condor_status", "-any"),
    "condor_q": ("condor_q", "-allusers", "-nobatch"),
    "condor_history": ("condor_history", "-limit", "200"),
    "processes": ("ps", "-ww", "-eo", "pid,ppid,stat,etime,args"),
}
RealPools = Callable[..., RealPool]


def at_a_terminal() -> None:
    """For a child before it begins: what a shell runs in the background ignores Ctrl-C, and hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def settings(
    *,
    pool: Mapping[str, Any] | None = None,
    worker: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    timings: Mapping[str, Any] | None = None,
    more: str = "",
) -> str:
    """An updraft.toml for `Wishes.settings`: short times, with these keys added or changed.

    Values are strings, numbers, truth values or lists of them. `more` is further text at the end, with
    `{image}` and the like as in `demo.pool.SETTINGS`.
    """
    tables: dict[str, dict[str, Any]] = {
        "pool": {"name": "{pool}", "job_lease": "5m", "announce": "1s"},
        "clouds.{cloud}": {"driver": "local", "endpoint": "{endpoint}"},
        "classes.worker": {
            "image": "{image}",
            "flavors": ["small", "medium", "large"],
            "idle_limit": "6s",
            "boot_deadline": "2m",
            "lifetime": "12h",
            "head_gone_after": "5m",
        },
        "limits": {"machines": 8, "cores": 16},
        "timings": {"cycle": "1s", "cooldown_first": "8s"},
    }
    for name, changes in (
        ("pool", pool),
        ("classes.worker", worker),
        ("limits", limits),
        ("timings", timings),
    ):
        tables[name].update(changes or {})
    parts = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    ]
    return "\n".join([*parts, more])


@contextmanager
def pool_up(image: Image, state_dir: Path, wishes: Wishes | None = None) -> Iterator[RealPool]:
    """A pool that runs meanwhile; it is stopped at the end, and then nothing of it may be left.

    A test that fails meanwhile, or a head that doesn't come up, leaves what the pool wrote.
    """
    wishes = wishes or Wishes()
    if wishes.settings is None:
        wishes = replace(wishes, settings=settings() + "{class_settings}{limits}{timings}")
    pool = WatchedPool.of(bring_up(image, state_dir, lambda _line: None, wishes, lost=tell))
    footprint = Footprint.of(pool)
    try:
        with watched(lambda remains: write_story(pool, remains)):
            yield pool
    finally:
        if pool.cloud.alive():
            footprint.close()
            footprint = Footprint.of(pool)
        pool.resident.close()
        pool.cloud.stop()
    left = until_nothing(footprint, 10)
    assert not left, f"left behind by the pool in {state_dir}: {left}"


def say(text: str) -> None:
    """For the report of a failed test."""
    sys.stdout.write(text + "\n")


def tell(pool: RealPool) -> None:
    """Leave what the head's controller and the machines wrote, for who looks at the test that fails now."""
    leave(lambda remains: write_story(pool, remains))


def write_story(pool: RealPool, remains: Remains) -> None:
    name, cloud = pool.cloud.state_dir.name, pool.cloud
    remains.file(f"{name}/cloud.log", cloud.state_dir / "cloud.log")
    if not cloud.alive():
        return
    client = cloud.client()
    remains.text(f"{name}/machines", json.dumps(client.machines(), indent=1))
    for id_ in sorted((machine["id"] for machine in client.machines()), key=pool.head.__ne__):
        place = f"{name}/{'head' if id_ == pool.head else id_}"
        remains.text(f"{place}/console", client.console(id_))
        disk = Path(f"/proc/{cloud.pid}/root{cloud.state_dir}/machines/{id_}/disk/upper")
        remains.folder(place, disk / "var/lib/updraft", "ledger.*")
        remains.folder(place, disk / "var/log")
    for title, argv in STORY.items():
        try:
            done = pool.on_head(*argv, timeout=20)
            remains.text(f"{name}/{title}", f"{done.stdout}{done.stderr}")
        except Exception as error:
            remains.text(f"{name}/{title}", f"cannot be read: {error}")


# ------------------------------------------------------------------------------------- nothing left behind


@dataclass(frozen=True)
class Footprint:
    """What a cloud has on this host: its processes with their start, its networks, its cables, its folder.

    The networks are held until `close`: else another cloud's, made meanwhile, could have one's number.
    """

    state_dir: Path
    processes: frozenset[tuple[int, str]]
    networks: frozenset[str]
    cables: frozenset[str]
    held: tuple[int, ...] = ()

    @classmethod
    def of(cls, pool: RealPool) -> "Footprint":
        """Of a pool that runs."""
        family = _family(pool.cloud.pid)
        cables = {"v" + machine["id"][-12:] for machine in pool.cloud.client().machines()}
        held: dict[int, int] = {Path("/proc/self/ns/net").stat().st_ino: -1}
        for pid, _ in family:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
                known = held.setdefault(os.fstat(network).st_ino, network)
                if known != network:
                    os.close(network)
        theirs = {number: network for number, network in held.items() if network >= 0}
        networks = frozenset(f"net:[{number}]" for number in theirs)
        return cls(
            pool.cloud.state_dir, frozenset(family), networks, frozenset(cables), tuple(theirs.values())
        )

    def close(self) -> None:
        """Let go of the networks."""
        for network in self.held:
            os.close(network)

    def left(self) -> list[str]:
        """What of it is still there."""
        found = [f"process {pid}" for pid, start in self.processes if _start(pid) == start]
        for pid in _pids():
            if _link(pid, "net") in self.networks:
                found.append(f"network namespace of process {pid}")
            if str(self.state_dir) in _read(pid, "mountinfo"):
                found.append(f"mount seen by process {pid}")
        links = set(os.listdir("/sys/class/net"))  # noqa: PTH208  # names are what is wanted
        found += [f"network device {name}" for name in self.cables & links]
        named = Path("/run/netns")
        if named.is_dir():
            inodes = {str(path.stat().st_ino): path.name for path in named.iterdir()}
            found += [f"named network {inodes[n]}" for n in inodes if any(n in net for net in self.networks)]
        return found


def until_nothing(footprint: Footprint, seconds: float) -> list[str]:
    """What is left after at most `deadline(seconds)`; empty as soon as nothing is."""
    end = time.monotonic() + deadline(seconds)
    while (left := footprint.left()) and time.monotonic() < end:
        time.sleep(0.2)
    footprint.close()
    return left


def _family(pid: int) -> set[tuple[int, str]]:
    """A process and all that come from it, as (pid, start)."""
    children: dict[int, list[int]] = {}
    for other in _pids():
        fields = _read(other, "stat").rpartition(")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(other)
    found, waiting = set(), [pid]
    while waiting:
        one = waiting.pop()
        found.add((one, _start(one)))
        waiting += children.get(one, [])
    return {(pid, start) for pid, start in found if start}  # without those that have ended meanwhile


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _start(pid: int) -> str:
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return "" if not fields or fields[0] in "ZX" else fields[19]


def _read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(errors="replace")
    except OSError:
        return ""


def _link(pid: int, space: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{space}")  # noqa: PTH115  # not a path of a file
    except OSError:
        return ""
