"""A machine's life as parts of a time axis: asked for, booting, busy, idle, draining, gone."""

from collections.abc import Iterator, Mapping
from typing import Any

from updraft.core.machines.entries import BUSY
from updraft.core.model import Phase
from updraft.documents import Row

WIDTH = 1000
LEAST = 8.0
"""How wide the shortest part is: to be seen."""
LIVING = tuple(str(one) for one in Phase if one is not Phase.GONE)


def is_busy(machine: Mapping[str, Any]) -> bool:
    """Whether it has a claim, by the last look."""
    return bool(machine["reason"]["code"] == BUSY.code)


def never_joined(machine: Mapping[str, Any]) -> bool:
    """Whether it failed: it is over, or as good as over, and no job could ever have run there."""
    over = machine["ended_at"] is not None or machine["phase"] in ("failed", "lost")
    return over and machine["joined_at"] is None


def parts(machine: Mapping[str, Any], now: float) -> Iterator[tuple[str, float, float]]:
    """What it was from when to when. Of the past nobody knows when it idled."""
    end = machine["ended_at"] or now
    drain = machine["drain"]["asked_at"] if machine["drain"] else end
    joined = machine["joined_at"]
    if joined is None:
        yield ("failed" if never_joined(machine) else "booting"), machine["requested_at"], end
        return
    yield "booting", machine["requested_at"], joined
    idle = min(drain, max(joined, machine["busy_at"] or joined))
    if machine["ended_at"] is not None or machine["phase"] != "joined" or is_busy(machine):
        idle = drain
    yield "busy", joined, idle
    yield "idle", idle, drain
    yield "draining", drain, end


def drawn(machine: Mapping[str, Any], begin: float, now: float) -> list[Row]:
    """The parts as places on an axis of WIDTH from `begin` to `now`; what is before it is left out."""
    scale = WIDTH / max(1.0, now - begin)
    found = []
    for kind, first, last in parts(machine, now):
        left, right = max(first, begin), min(last, now)
        if right > left:
            width = max(LEAST, (right - left) * scale)
            x = min((left - begin) * scale, WIDTH - width)
            found.append({"kind": kind, "x": round(x, 1), "width": round(width, 1)})
    return found
