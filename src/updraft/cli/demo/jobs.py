"""`make demo-jobs`: the three demonstration jobs of `examples/`, on a pool of their own on this machine.

Run as `python -m updraft.cli.demo.jobs examples`; it needs root, as `updraft demo` does.
"""

import os
import sys
from pathlib import Path

from updraft.cli.demo.demo import state_dir
from updraft.cli.endings import clean_up_after_signals
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo import examples
from updraft.demo.examples import SKIPPED, STAND_IN, Outcome
from updraft.demo.pool import bring_up, find_or_build
from updraft.errors import UpdraftError, UsageError


def main(folder: Path) -> int:
    """Bring up a pool, run the jobs, print what they printed; 0 where each did what it should."""
    if os.geteuid() != 0:
        raise UsageError("the demonstration jobs run on real machines, which only root may make: use sudo")
    clean_up_after_signals()
    image = find_or_build(DEFAULT_STORE, _say)
    with state_dir(None, keep=False) as state:
        pool = bring_up(image, state, _say)
        try:
            outcomes = examples.run(pool, folder, _say)
        finally:
            pool.cloud.stop()
    _say(report(outcomes))
    return 1 if any(one.wrong for one in outcomes) else 0


def report(outcomes: list[Outcome]) -> str:
    """What each job printed, whether that was right, and what was not the real thing."""
    parts = []
    for one in outcomes:
        verdict = f"FAILED: {one.wrong}" if one.wrong else "as expected"
        of = " (against a stand-in for CernVM-FS)" if one.job in STAND_IN else ""
        parts.append(f"---- {one.job}.out{of}\n{one.output.rstrip()}\n---- {one.job}: {verdict}\n")
    return "\n".join(["", *parts, SKIPPED])


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples")))
    except UpdraftError as error:
        sys.stderr.write(f"updraft: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
