"""The controller killed with -9 between any two steps of launch, drain and terminate, on real parts.

Whatever step it dies at: every job is done exactly once, no machine is launched twice, none is left behind.
Each step has a worker class of its own, so that a machine too many can't hide among the others.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import updraft.act
from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    LONG_AT_FIRST,
    acting,
    await_done,
    await_running,
    disturbed,
    edit,
    kill_service,
    of_class,
    outcomes,
    run_killer,
    runs,
    sleepers,
    slot_of,
    start_and_wait,
    start_service,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_POOL, TAG_RETIRING
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.demo.pool import RealPool, Wishes

LAUNCH = (
    "plan: before the records",
    "plan: recorded",
    "launch: before the intent",
    "launch: intended",
    "launch: prepared",
    "launch: asked",
    "launch: recorded",
    "launch: failed",
)
LEAVE = (
    "drain: before the tag",
    "drain: tagged",
    "drain: recorded",
    "drain: asked",
    "drain: accepted",
    "terminate: before the record",
    "terminate: recorded",
    "terminate: asked",
)
REFUSED = ("drain: refused", "drain: untagged")
TAKEN_BACK = ("undrain: asked",)
LET_GO = ("disown: half", "disown: untagged")
TAKEN_IN = ("adopt: tagged",)
FORCED = {"drain: asked": "forced-drain", "terminate: asked": "forced-end"}
CLASSES = (*(f"step{number}" for number in range(len(LAUNCH))), "refused", "back", "let-go", *FORCED.values())
RUNS_THERE = "condor_q -allusers -format '%d\\n' JobStatus -constraint 'ClusterId == '$cluster | grep -q 2"


def classes() -> str:
    """The tables of the further worker classes."""
    tables = (
        f'[classes.{name}]\nimage = "{{image}}"\nflavors = ["small"]\nidle_limit = "1h"  # of {name}\n'
        for name in CLASSES
    )
    return "\n".join(tables)


def wants(name: str) -> str:
    """What a job requires that only a machine of this class satisfies."""
    return f'TARGET.UpdraftClass == "{name}"'


@pytest.fixture(scope="module")
def pool(module_pool: RealPools) -> RealPool:
    text = settings(
        limits={"machines": 30, "cores": 60},
        timings={"settle": "8s", "cooldown_first": "3s", "trial": 20, "end_patience": "15s"},
        more=classes(),
    )
    pool = module_pool(Wishes(settings=text))
    until(lambda: acting(pool), 40, "the controller acts")
    return pool


def test_every_step_of_the_actor_is_in_these_lists() -> None:
    folder = Path(updraft.act.__file__).parent
    named = {
        step for file in folder.glob("*.py") for step in re.findall(r'_step\("(.+?)"\)', file.read_text())
    }
    assert named == {*LAUNCH, *LEAVE, *REFUSED, *TAKEN_BACK, *LET_GO, *TAKEN_IN}


def die_at(pool: RealPool, step: str, *before: str) -> None:
    """In place of the service, which is dead, a daemon that dies at this step; then the service again."""
    run_killer(pool, step, *before)
    start_service(pool)


def launch_through(pool: RealPool, name: str, step: str) -> int:
    """A job that needs a machine of this class; the controller dies at this step of launching it."""
    kill_service(pool)
    cluster = pool.submit(sleepers(1, 4, requirements=wants(name)))
    if step == "launch: failed":  # the machine is made, and the answer lost
        pool.cloud.set_faults(Fault(FaultKind.LOST_ANSWER, times=1))
    die_at(pool, step)
    until(lambda: of_class(pool, name), 40, f"after a death at {step!r} a machine is launched")
    return cluster


def go_through(pool: RealPool, name: str, step: str) -> None:
    """The idle machine of this class goes; the controller dies at this step of it."""
    kill_service(pool)
    edit(pool, f'"1h"  # of {name}\n', f'"1s"  # of {name}\n')
    die_at(pool, step)
    gone = lambda: not of_class(pool, name, *ALIVE)  # noqa: E731
    until(gone, 40, f"after a death at {step!r} the machine of {name} is gone")


def no_claim_of(pool: RealPool, name: str) -> None:
    """Wait until no claim of an earlier job is shown: while one is, a further job would buy a machine."""
    claims = lambda: [slot_of(pool, m["id"]) or {} for m in of_class(pool, name, "running")]  # noqa: E731
    until(
        lambda: not any(ad.get("NumDynamicSlots") for ad in claims()), 30, "no claim of earlier jobs is left"
    )


def only(pool: RealPool, expected: Mapping[str, int]) -> None:
    """So many machines of each class were ever launched, and no other."""
    assert {name: len(of_class(pool, name)) for name in expected} == dict(expected)


def test_it_dies_at_each_step_of_a_launch_and_of_the_machines_end(pool: RealPool) -> None:
    steps = dict(zip(CLASSES, LAUNCH, strict=False))
    clusters = {name: launch_through(pool, name, step) for name, step in steps.items()}
    await_done(pool, clusters.values(), 90)
    only(pool, dict.fromkeys(steps, 1))
    ended = {step: outcomes(pool, clusters[name]) for name, step in steps.items()}
    assert {step: found for step, found in ended.items() if found != [DONE_ONCE]} == {}

    staying = set(steps)
    for name, step in zip(tuple(steps), LEAVE, strict=True):
        staying.discard(name)
        go_through(pool, name, step)
        assert {m["tags"]["updraft:class"] for m in pool.workers("running")} >= staying, step
    only(pool, dict.fromkeys(steps, 1))
    until(lambda: not pool.show("machines")["machines"], 20, "the ledger knows of no machine any more")


@pytest.mark.parametrize("step", REFUSED)
def test_a_job_starts_between_the_decision_and_the_drain(pool: RealPool, step: str) -> None:
    name = "refused"
    no_claim_of(pool, name)  # the machine of the case before is used again
    first = pool.submit(sleepers(1, 1, requirements=wants(name)))
    await_done(pool, [first], 60)
    (machine,) = of_class(pool, name, "running")
    kill_service(pool)
    edit(pool, f'"1h"  # of {name}\n', f'"1s"  # of {name}\n')
    # Decided, written down, and not yet asked: now a job starts there. The startd refuses the drain.
    job = sleepers(1, 20, requirements=wants(name)).replace("\n", "\\n")
    starts = (
        f"cluster=$(printf '{job}' | runuser -u alice -- condor_submit -terse - | cut -d. -f1); "
        f"until {RUNS_THERE}; do sleep 0.2; done"
    )
    run_killer(pool, step, "drain: recorded", starts)
    second = first + 1
    assert runs(pool, second)
    edit(pool, f'"1s"  # of {name}\n', f'"1h"  # of {name}\n')
    start_and_wait(pool)
    untagged = lambda: TAG_RETIRING not in of_class(pool, name, "running")[0]["tags"]  # noqa: E731
    until(untagged, 20, "the machine is not marked as retiring any more")
    await_done(pool, [second], 60)
    assert outcomes(pool, second) == [DONE_ONCE]
    assert disturbed(pool, second) == ""
    assert [m["id"] for m in of_class(pool, name)] == [machine["id"]]


def test_it_dies_between_taking_a_drain_back_and_writing_that_down(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, 25, requirements=wants("back")))
    await_running(pool, cluster)
    (machine,) = of_class(pool, "back", "running")
    assert pool.updraft("drain", machine["id"]).returncode == 0
    until(
        lambda: (slot_of(pool, machine["id"]) or {}).get("Draining"), 20, "the machine is closed to new jobs"
    )
    kill_service(pool)
    done = pool.updraft("undrain", machine["id"])
    assert done.returncode == 1  # nobody is there to do it
    assert "no daemon is at work" in done.stderr
    die_at(pool, "undrain: asked")
    open_again = lambda: not slot_of(pool, machine["id"]).get("Draining")  # type: ignore[union-attr]  # noqa: E731
    until(lambda: acting(pool) and open_again(), 30, "the machine is open again")
    await_done(pool, [cluster], 60)
    no_claim_of(pool, "back")
    next_one = pool.submit(sleepers(1, 1, requirements=wants("back")))
    await_done(pool, [next_one], 40)
    assert outcomes(pool, cluster) == outcomes(pool, next_one) == [DONE_ONCE]
    only(pool, {"back": 1})


def test_it_dies_while_it_lets_a_machine_go_and_takes_it_in_again(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, 1, requirements=wants("let-go")))
    await_done(pool, [cluster], 60)
    (machine,) = of_class(pool, "let-go", "running")
    tags = lambda: next(m["tags"] for m in pool.workers("running") if m["id"] == machine["id"])  # noqa: E731
    known = lambda: machine["id"] in {m["id"] for m in pool.show("machines")["machines"]}  # noqa: E731
    for letting_go in LET_GO:
        kill_service(pool)
        pool.updraft("disown", machine["id"])
        die_at(pool, letting_go)
        until(lambda: TAG_POOL not in tags() and not known(), 30, f"after {letting_go!r} it is let go")
        kill_service(pool)
        pool.updraft("adopt", machine["id"], "--class", "let-go", "--cloud", "here")
        die_at(pool, *TAKEN_IN)
        until(lambda: TAG_POOL in tags() and known(), 30, "it is this pool's again")
    no_claim_of(pool, "let-go")
    again = pool.submit(sleepers(1, 1, requirements=wants("let-go")))
    await_done(pool, [again], 60)
    assert outcomes(pool, again) == [DONE_ONCE]
    only(pool, {"let-go": 1})


@pytest.mark.parametrize("step", FORCED)
def test_it_dies_while_it_ends_a_busy_machine_by_force(pool: RealPool, step: str) -> None:
    name = FORCED[step]
    cluster = pool.submit(sleepers(1, LONG_AT_FIRST, requirements=wants(name)))
    await_running(pool, cluster)
    (machine,) = of_class(pool, name, "running")
    kill_service(pool)
    pool.updraft("terminate", "--kill-jobs", machine["id"])
    die_at(pool, step)
    ended = lambda: machine["id"] not in {m["id"] for m in of_class(pool, name, *ALIVE)}  # noqa: E731
    until(ended, 40, "the machine is ended")
    await_running(pool, cluster)
    await_done(pool, [cluster], 90)
    assert outcomes(pool, cluster) == [(4, 0, 2)]  # one start was lost by order, and no other
    only(pool, {name: 2})
