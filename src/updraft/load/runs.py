"""Load tests, one after the other: for each number of machines a new head, the load, looks and figures."""

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from updraft.clouds.local import process
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo import pool as demo
from updraft.demo.pool import Say
from updraft.errors import ProblemFound, UsageError
from updraft.load import conf, figures, real
from updraft.load.figures import Figures, Real
from updraft.load.head import TOKENS, Head, Jobs, bring_up_head
from updraft.load.schedule import Load
from updraft.load.sender import Order

_JITTER = 0.1
_SPARE = 30.0  # seconds beyond one interval, so that every machine has updated
_SENDERS = 2
_LEAD = 4.0  # seconds for the senders to start
_LOOK_EVERY = 20.0
_CYCLE_DEADLINE = 120.0
_END = 90.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What a load test is asked for: the load but for its number of machines, which are `machines` in turn.

    `children` None is as many as fit the number; `config` is a head's configuration instead of our own.
    """

    machines: tuple[int, ...]
    load: Load
    groups: int = 100
    jobs: int = 10_000
    children: int | None = None
    config: str | None = None
    real: int = 0


@dataclass(slots=True)
class _Seen:
    """What was collected while the load went on."""

    status: list[float]
    cycles: dict[float, dict[str, Any]]
    last: dict[str, Any]


def wish_of(
    *, updates_every: float, join_rate: float, loss_rate: float, seed: int, file: Path | None, **asked: Any
) -> Wish:
    """What the options of `pool load` ask for. Raises UsageError for what doesn't go together.

    Without `seconds` it goes on until every machine has updated.
    """
    if file is not None and asked["children"] is not None:
        raise UsageError("--children is for our own configuration; the file of --config says its own")
    seconds = asked.pop("seconds") or updates_every * (1 + _JITTER) + _SPARE
    load = Load(max(asked["machines"]), updates_every, _JITTER, join_rate, loss_rate, seconds, seed)
    return Wish(load=load, config=None if file is None else file.read_text(), **asked)


def prove(wish: Wish, store: Path | None, say: Say) -> tuple[list[Figures], Real | None]:
    """`run_all` on the image in `store`, which is built where there is none."""
    return run_all(wish, demo.find_or_build(store or DEFAULT_STORE, say), say)


def run_all(wish: Wish, image: Image, say: Say) -> tuple[list[Figures], Real | None]:
    """The figures for each number of machines; real startds are beside the first of them."""
    made: list[Figures] = []
    startds: Real | None = None
    for index, machines in enumerate(wish.machines):
        one = replace(wish, real=wish.real if index == 0 else 0)
        with tempfile.TemporaryDirectory(prefix="updraft-load-", ignore_cleanup_errors=True) as name:
            found, costs = _run(one, machines, image, Path(name), say)
        startds = startds or costs
        extra = figures.extrapolated(startds, machines, found.children)
        made.append(replace(found, extrapolated=extra))
    return made, startds


def _run(wish: Wish, machines: int, image: Image, folder: Path, say: Say) -> tuple[Figures, Real | None]:
    children = conf.children_for(machines) if wish.children is None else wish.children
    config = conf.tuned(machines, children) if wish.config is None else wish.config
    head = bring_up_head(image, folder, say, config)
    try:
        costs = None
        if wish.real:
            say(f"Starting {wish.real} real startds, and a job for each.")
            costs = real.start(head, wish.real)
        return _measure(wish, replace(wish.load, machines=machines), head, say), costs
    finally:
        head.pool.cloud.stop()
        process.tidy(folder)


def _measure(wish: Wish, load: Load, head: Head, say: Say) -> Figures:
    """Put the load on this head, and look until it ends."""
    jobs = Jobs(head, wish.groups, wish.jobs)
    begins = time.time() + _LEAD
    senders = [_send(head, load, part, begins) for part in range(_SENDERS)]
    say(
        f"{load.machines} machines join {len(head.leaves)} collectors in {load.joined_after:.0f} s, "
        f"and update for {load.seconds:.0f} s."
    )
    try:
        seen = _watch(head, jobs, begins, load, senders)
        results = [_result(sender, load) for sender in senders]
    except BaseException:
        for sender in senders:
            sender.kill()
        raise
    joined_at = begins + max(result["joined_at"] for result in results)
    present = sum(
        1 for result in results for count, _, lost in result["machines"].values() if count and not lost
    )
    _look(head, seen, whole=True)
    _await_cycle(head, seen, joined_at, present)
    return _figures(wish, load, head, results, seen, (joined_at, begins, present))


def _send(head: Head, load: Load, part: int, begins: float) -> "subprocess.Popen[str]":
    sender = head.start("updraft.load.sender")
    assert sender.stdin is not None  # noqa: S101  # a pipe
    sender.stdin.write(Order(load, part, _SENDERS, begins, head.leaves, TOKENS).text())
    sender.stdin.close()
    sender.stdin = None  # communicate would close it again
    return sender


def _watch(
    head: Head, jobs: Jobs, begins: float, load: Load, senders: "Sequence[subprocess.Popen[str]]"
) -> _Seen:
    """Jobs come and go while machines join; from the last join on there are looks as well."""
    seen = _Seen([], {}, {})
    ends = begins + load.ends_after
    while time.time() < ends and not any(sender.poll() for sender in senders):
        jobs.move()
        if time.time() > begins + load.joined_after:
            _look(head, seen, whole=False)
        time.sleep(max(0.0, min(_LOOK_EVERY, ends - time.time())))
    return seen


def _look(head: Head, seen: _Seen, *, whole: bool) -> None:
    found = head.look(whole=whole)
    seen.status += found["status"]
    seen.cycles.update({cycle["Time"]: cycle for cycle in found["cycles"]})
    if whole:
        seen.last = found


def _result(sender: "subprocess.Popen[str]", load: Load) -> dict[str, Any]:
    try:
        out, said = sender.communicate(timeout=_END)
    except subprocess.TimeoutExpired as error:
        raise ProblemFound(
            f"the load did not end {_END:.0f} s after its time: this machine gives out first, which has "
            "to send it, too; try fewer machines, a lower --join-rate or longer --updates-every"
        ) from error
    if sender.returncode != 0:
        last = (said.strip().splitlines() or ["no message"])[-1]
        raise ProblemFound(f"what sends the load has failed: {last}")
    result: dict[str, Any] = json.loads(out)
    return result


def _await_cycle(head: Head, seen: _Seen, since: float, slots: int) -> None:
    """Where no cycle had all machines yet, ask for one and wait for it, so long as it may take."""
    until = time.monotonic() + _CYCLE_DEADLINE
    while figures.cycle(seen.cycles.values(), since, slots) is None and time.monotonic() < until:
        head.run("condor_reschedule")
        time.sleep(5.0)
        _look(head, seen, whole=False)


def _figures(
    wish: Wish,
    load: Load,
    head: Head,
    results: Sequence[dict[str, Any]],
    seen: _Seen,
    when: tuple[float, float, int],
) -> Figures:
    joined_at, begins, present = when
    last = seen.last
    median, longest = figures.middle(seen.status)
    statistics = [one for one in last["statistics"].values() if one]
    alive = {name for result in results for name, (_, _, lost) in result["machines"].items() if not lost}
    found = Figures(
        machines=load.machines,
        children=len(head.leaves),
        joined=present,
        lost_machines=sum(result["losses"] for result in results),
        seconds_to_join=joined_at - begins,
        updates=figures.updates(results, [ad for ads in last["heard"].values() for ad in ads]),
        shown=sum(ad["Machine"] in alive for ad in last["top"]),
        status=median,
        status_longest=longest,
        cycle=figures.cycle(seen.cycles.values(), joined_at, present),
        groups=wish.groups if wish.jobs else 0,
        daemons=figures.daemons(last["daemons"]),
        duty=max((one["RecentDaemonCoreDutyCycle"] or 0.0 for one in statistics), default=None),
        sessions=sum(one["MonitorSelfSecuritySessions"] or 0 for one in statistics),
        extrapolated={},
        gives_out=(),
    )
    return replace(found, gives_out=figures.gives_out(found))
