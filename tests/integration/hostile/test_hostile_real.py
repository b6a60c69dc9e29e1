"""Ten thousand hostile jobs and a thousand hostile slots at a real pool: an honest user's machines are asked
for as if there were none, and who wrote what can't be read is named."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.chaos.judged.evidence import read_cloud
from tests.rigs.pools import hostile
from tests.rigs.pools.controlling import sleepers
from tests.rigs.pools.realpool import RealPools, patience, say, settings, until
from updraft.demo.pool import RealPool, Wishes

pytestmark = [pytest.mark.extended, pytest.mark.long, pytest.mark.timeout(3000)]

JOBS, MACHINES = 10_000, 1_000
HONEST, CULPRIT = "alice", "bob"
SCRIPT = Path(hostile.__file__).read_text(encoding="utf-8")
ROUNDS = 7
# As often as HTCondor does it by itself: our other pools are in a hurry, and a schedd that negotiates for
# thousands of jobs answers nobody meanwhile.
USUAL_PACE = {
    "NEGOTIATOR_INTERVAL": "60",
    "NEGOTIATOR_CYCLE_DELAY": "20",
    "NEGOTIATOR_MIN_INTERVAL": "5",
    "SCHEDD_INTERVAL": "300",
    "SCHEDD_MIN_INTERVAL": "5",
}
LARGE = 'TARGET.UpdraftFlavor == "large"'
WHOLE = 4  # cpus of a large machine: each job needs one of its own, and no other job is worth one


@pytest.fixture(params=["forky", "trixie"])
def pool(real_pool: RealPools, request: pytest.FixtureRequest) -> RealPool:
    most, worker = {"machines": 40, "cores": 160}, {"flavors": ["small", "large"], "idle_limit": "10m"}
    text = settings(worker=worker, limits=most, timings={"cycle": "2s"})
    wishes = Wishes(settings=text, head_settings=USUAL_PACE)
    return real_pool(wishes, suite=request.param)


@pytest.fixture
def seed(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> int:
    """That of all generated cases, where the run has one."""
    given = request.config.getoption("--hypothesis-seed")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 32)
    record_property("seed", seed)
    return seed


def asked(pool: RealPool) -> list[float]:
    """When large machines were asked for, by the cloud's own log."""
    seen = read_cloud(pool.cloud.events.read_text().splitlines())
    made = {machine.key for machine in seen.machines.values() if machine.cores == WHOLE}
    return [call.at for call in seen.calls if call.name == "run" and call.key in made]


def served(pool: RealPool) -> float:
    """How many seconds after its submission the machine of an honest user's job was asked for.

    Of none where it runs on one that was bought for somebody else.
    """
    before = len(asked(pool))
    cluster = pool.submit(sleepers(1, 3600, requirements=LARGE, cpus=WHOLE, user=HONEST), user=HONEST)
    at = time.time()
    begun = ("grep", "-q", "^001 ", f"/home/{HONEST}/{cluster}.log")

    def told() -> bool:
        return len(asked(pool)) > before or pool.on_head(*begun).returncode == 0

    until(told, 120, "a machine is asked for, or there is one", every=0.1)
    took = (asked(pool)[before:] or [at])[0] - at
    say(f"asked for after {took:.2f} s")
    return max(0.0, took)


def made(pool: RealPool, user: str | None, *numbers: int) -> list[int]:
    """Of a seed, so many hostile jobs and so many hostile slots: how many were taken."""
    words = ("env", "PYTHONPATH=/opt/updraft/lib", "python3", "-", *map(str, numbers))
    done = pool.on_head(*words, user=user, stdin=SCRIPT, timeout=600 * patience())
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_an_honest_users_machines_are_asked_for_as_ever(
    pool: RealPool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    alone = [served(pool) for _ in range(ROUNDS)]
    record_property("alone", alone)
    until(lambda: len(pool.queue("JobStatus == 2")) == ROUNDS, 180, "all of these jobs run", every=1)
    jobs, _ = made(pool, CULPRIT, seed, JOBS, 0)
    _, slots = made(pool, None, seed, 0, MACHINES)
    assert jobs == JOBS
    assert slots > MACHINES / 2
    beside = [served(pool) for _ in range(ROUNDS)]
    record_property("beside", beside)
    # With such jobs a schedd stands still for seconds now and then, whoever asks: so most of them count.
    assert median(beside) <= 2 * max(median(alone), patience()), (seed, alone, beside)

    def told() -> dict[str, Any] | None:
        document: dict[str, Any] = pool.show("status", "--users")
        # An accounting group is another user's name to all that counts by users.
        waiting = sum(one["waiting"] for one in document["users"] if one["user"].partition("@")[0] != HONEST)
        return document if waiting == JOBS else None

    document = until(told, 180, "all of the other's jobs are counted", every=2)
    named = [one["text"] for one in document["warnings"] if CULPRIT in one["text"]]
    record_property("named", named)
    assert named, "who wrote what can't be read"
    assert CULPRIT in pool.updraft("check", timeout=120).stdout
