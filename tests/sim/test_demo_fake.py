"""`updraft demo --fake`: the whole story, as lines and live."""

import io
import re
import time

import pytest
from rich.console import Console

from tests.waiting import patience
from updraft.cli.demo.fake import closing_of, demo_engine, demo_fake, over
from updraft.cli.demo.show import Closing, Scene, ShownDecision, Stage, closing_table
from updraft.core.model import Phase


def played(terminal: bool, **options: object) -> tuple[int, str]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, height=40, color_system=None)
    return demo_fake(console, **options), out.getvalue()  # type: ignore[arg-type]


def test_in_plain_lines_it_tells_the_story_and_ends_with_the_table() -> None:
    begun = time.monotonic()
    code, text = played(terminal=False)
    assert code == 0
    assert time.monotonic() - begun < 20 * patience()
    for said in ("launch", "drain", "terminate", "waiting jobs", "0 waiting"):
        assert said in text
    table = text[text.index("virtual seconds") :]
    for row in ("jobs killed", "machines left", "machine-seconds paid", "median wait"):
        assert row in table
    assert "\x1b" not in text


@pytest.mark.slow
def test_at_a_terminal_it_draws_and_keeps_its_pace() -> None:
    begun = time.monotonic()
    code, text = played(terminal=True, jobs=12, speed=100.0)
    took = time.monotonic() - begun
    assert code == 0
    assert "joined" in text
    assert "jobs killed" in text
    assert took > 1.0


def test_fast_is_one_moving_table_at_a_terminal_too() -> None:
    """It was forty lines of drains there."""
    code, text = played(terminal=True, fast=True, jobs=12)
    assert code == 0
    assert "as fast as it goes" in text
    assert "\x1b[1A" in text, "it is drawn in place"
    assert not re.search(r"^ +[0-9]+ s  (launch|drain)", text, re.MULTILINE), "and no line stands for itself"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_every_demo_ends_well(seed: int) -> None:
    engine = demo_engine(seed=seed)
    assert engine.run(1800, lambda: over(engine))
    closing = closing_of(engine.result())
    assert closing.good
    assert closing.jobs >= 40
    assert 0 < closing.used < closing.paid
    assert closing.median_wait is not None


def test_a_demo_that_kills_a_job_or_leaves_a_machine_did_not_go_well() -> None:
    well = Closing(40, 40, 5, 900.0, 500.0, 20.0, 0, 0)
    assert well.good
    assert not Closing(40, 40, 5, 900.0, 500.0, 20.0, 1, 0).good
    assert not Closing(40, 40, 5, 900.0, 500.0, 20.0, 0, 1).good
    assert not Closing(40, 39, 5, 900.0, 500.0, 20.0, 0, 0).good


def test_the_closing_table_without_a_job_or_a_machine() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(closing_table(Closing(3, 0, 0, 0.0, 0.0, None, 0, 0)))
    assert "none started" in out.getvalue()


def test_plain_lines_say_each_decision_once() -> None:
    out = io.StringIO()
    first = ShownDecision(1.0, "launch 1 × small in [a/b]: why not")
    with Stage(Console(file=out, width=60)) as stage:
        for elapsed in (1.0, 2.0, 3.0):
            stage.show(Scene("t", elapsed, 1, 0, 0, {Phase.BOOTING: 1}, (first,)))
    assert out.getvalue().count("in [a/b]: why not") == 1
    assert out.getvalue().count("1 waiting") == 1
