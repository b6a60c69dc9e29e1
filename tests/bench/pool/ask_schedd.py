"""Runs on a head: its schedd's demand, cold and warm, with the collector asked meanwhile. Prints JSON."""

import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool

WARM = 5
DEADLINE = 60.0


def main() -> None:
    with HTCondorPool(PoolAccess("bench")) as pool:
        (schedd,) = pool.schedds(DEADLINE)
        pool.slots(DEADLINE)  # the collector's child is up, as in a daemon at work
        cold, view = timed(lambda: pool.demand(schedd, running=False, deadline=DEADLINE))
        quiet = [timed(lambda: pool.slots(DEADLINE))[0] for _ in range(5)]
        warm: list[float] = []

        def read() -> None:
            look = partial(pool.demand, schedd, running=False, deadline=DEADLINE)
            warm.extend(timed(look)[0] for _ in range(WARM))

        reader = threading.Thread(target=read)
        reader.start()
        others, standstill = meanwhile(pool, reader)
        seen = {
            "idle": view.idle_total,
            "groups": len(view.groups),
            "cold_s": cold,
            "warm_s": warm,
            "other_reads_quiet_s": {"all": quiet},
            "other_reads_meanwhile_s": {"count": len(others), "all": others[:50]},
            "longest_standstill_s": standstill,
            "children_mib": children(),
        }
    print(json.dumps(seen))


def meanwhile(pool: HTCondorPool, reader: threading.Thread) -> tuple[list[float], float]:
    """How long the collector took while the schedd was asked, and the longest standstill of a thread."""
    others: list[float] = []
    longest, last = 0.0, time.perf_counter()
    ticking = threading.Event()

    def tick() -> None:
        nonlocal longest, last
        while not ticking.wait(0.01):
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    ticker = threading.Thread(target=tick)
    ticker.start()
    while reader.is_alive():
        others.append(timed(lambda: pool.slots(DEADLINE))[0])
        time.sleep(0.1)
    ticking.set()
    ticker.join()
    return others, longest


def timed(call: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    value = call()
    return round(time.perf_counter() - begun, 4), value


def children() -> dict[str, float]:
    """The resident memory of the children, in MiB."""
    found = {}
    for path in Path("/proc/self/task").glob("*/children"):
        for pid in path.read_text().split():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            found[pid] = round(kib / 1024, 1)
    return found


if __name__ == "__main__":
    main()
