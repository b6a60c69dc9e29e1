"""A real pool lives through whatever `make chaos` has for it: a hundred seconds, and ten minutes of new ones.

UPDRAFT_CHAOS_MINUTES says for how long the second goes on, UPDRAFT_CHAOS_SEED draws the same again.
"""

import os
import random
from pathlib import Path

import pytest

from tests.chaos.judged.report import told
from tests.chaos.running import Order, run
from tests.remains import leave
from tests.rigs.pools.realpool import say
from updraft.clouds.local.images.image import Image

MINUTES = float(os.environ.get("UPDRAFT_CHAOS_MINUTES", "10"))
SEED = int(os.environ.get("UPDRAFT_CHAOS_SEED", str(random.SystemRandom().randrange(1 << 31))))


def survives(image: Image, home: Path, order: Order) -> None:
    """Nothing that must never happen does."""
    outcome = run(image, home, order, say)
    say(f"SEED={order.seed}\n{told(outcome)}")
    if outcome.folder is not None:
        folder = outcome.folder
        leave(lambda remains: remains.folder("chaos", folder))
    assert [f"{one.rule}: {one.text}" for one in outcome.findings] == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1])
def test_a_hundred_seconds_of_trouble_end_no_job_and_leave_nothing(
    image: Image, tmp_path: Path, seed: int
) -> None:
    survives(image, tmp_path, Order(seed, 100))


@pytest.mark.extended
@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 1800)
def test_minutes_of_trouble_that_nobody_has_seen_yet(image: Image, tmp_path: Path) -> None:
    survives(image, tmp_path, Order(SEED, 60 * MINUTES))
