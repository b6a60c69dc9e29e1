"""`make chaos`: real pools that live through whatever comes, for as long as they are told to.

    python -m tests.chaos --minutes 10 --seed 7

Long ones are runs of a quarter of an hour at most, each with its own pool; the seed of each is one more than
that of the one before. The last lines say what was seen; the exit code is 1 where something
happened that must never happen.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.chaos.judged.report import told, total
from tests.chaos.running import Order, Outcome, run
from tests.chaos.shrinking import shrunk
from tests.chaos.troubles.script import NAMES, Happening
from tests.integration.conftest import why_not
from tests.waiting import measured
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo.pool import find_or_build

HOME = Path("build/chaos")
LONGEST = 15 * 60.0
Numbers = tuple[int, ...]


def say(text: str) -> None:
    """A line at once, also into a pipe."""
    click.echo(text)
    sys.stdout.flush()


@click.command(help=__doc__)
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--seed", type=int, help="Draw the same again; else a new one, which is printed.")
@click.option("--only", default=",".join(NAMES), help="Kinds of happenings, with commas. Default: all.")
@click.option("--without", default="", help="Numbers of happenings to leave out, with commas.")
@click.option("--keep", is_flag=True, help="Keep the logs of good runs, too.")
@click.option("--shrink", is_flag=True, help="Leave out of a run that fails whatever it fails without.")
def main(minutes: float, seed: int | None, only: str, without: str, keep: bool, shrink: bool) -> None:
    if reason := why_not():
        raise click.UsageError(reason)
    kinds = tuple(only.split(","))
    if odd := sorted(set(kinds) - set(NAMES)):
        raise click.UsageError(f"there is no kind {odd[0]!r}; there are {', '.join(NAMES)}")
    first = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    measured()
    image = find_or_build(DEFAULT_STORE, say)
    numbers = tuple(int(number) for number in without.split(",") if number)
    outcomes = []
    for number, seconds in enumerate(pieces(60 * minutes)):
        order = Order(first + number, seconds, kinds, numbers, keep)
        say(f"SEED={order.seed}: {seconds:.0f} s")
        outcomes.append(run(image, HOME, order, say))
        say(told(outcomes[-1]))
        if outcomes[-1].findings and shrink:
            _shrink(image, order, outcomes[-1])
    say(total(outcomes))
    sys.exit(any(outcome.findings for outcome in outcomes))


def pieces(seconds: float) -> list[float]:
    """The lengths of the runs that so many seconds are."""
    count = max(1, -int(-seconds // LONGEST))
    return [seconds / count] * count


def _shrink(image: Image, order: Order, failed: Outcome) -> None:
    """Say with which few happenings the same rule is still broken."""
    rules = {finding.rule for finding in failed.findings}

    def fails(items: Sequence[Happening]) -> bool:
        left_out = {one.number for one in failed.script} - {one.number for one in items}
        again = run(
            image, HOME / "shrinking", Order(order.seed, order.seconds, order.only, (*left_out,)), _quiet
        )
        broken = rules & {finding.rule for finding in again.findings}
        say(f"with {len(items)} happenings: {', '.join(sorted(broken)) or 'nothing'}")
        return bool(broken)

    few = shrunk(failed.script, fails)
    left_out = sorted({one.number for one in failed.script} - {one.number for one in few})
    say(f"still with {', '.join(f'{one.number} {one.what}' for one in few)}")
    say(f"--seed {order.seed} --minutes {order.seconds / 60:g} --without {','.join(map(str, left_out))}")


def _quiet(_text: str) -> None:
    """Tries are told by what they come to."""


if __name__ == "__main__":
    main()
