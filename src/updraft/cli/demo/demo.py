"""`updraft demo`: a whole pool on this machine, from nothing to nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.cli.endings import clean_up_after_signals
from updraft.cli.output import console
from updraft.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from updraft.cli.demo.show import Closing, Scene
    from updraft.demo.page import ShownPage
    from updraft.demo.pool import RealPool, Say

TITLE = "updraft demo on the cloud on this machine"
KEPT = Path("/run/updraft-demo")
LONGEST = 600.0
LOOK_EVERY = 0.7
TOLD = ("launch", "joined", "drain", "busy-again", "undrain", "terminate", "gone", "requeue-jobs", "failed")


@click.command()
@click.option("--fake", is_flag=True, help="On a fake cloud in virtual time: needs no root, shows the same.")
@click.option("--fast", is_flag=True, help="With --fake: as quickly as it can.")
@click.option("--keep", is_flag=True, help="Leave the pool up at the end, with the commands to use it.")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Directory of the demo's cloud. Default: a temporary one, or /run/updraft-demo with --keep.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    help="Directory of machine images, kept for the next time. Default: /var/lib/updraft/local.",
)
@click.pass_context
def demo(
    context: click.Context, fake: bool, fast: bool, keep: bool, state: Path | None, store: Path | None
) -> None:
    """Bring up a real HTCondor pool on this machine, give it jobs, and watch it grow and shrink.

    Builds a machine image the first time (a minute), starts a cloud of namespaces and a head on it, submits
    46 real jobs, and shows what is decided and why until all are done and every machine is gone; a link opens
    the same in a browser. Nothing is left behind, also after Ctrl-C. Needs root and mmdebstrap; --fake needs
    neither.
    """
    if fake:
        from updraft.cli.demo.fake import demo_fake

        context.exit(demo_fake(console(), fast=fast))
    context.exit(_real(console(), keep, state, store))


def _real(out: "Console", keep: bool, state: Path | None, store: Path | None) -> int:
    from updraft.clouds.local.images.layers import DEFAULT_STORE
    from updraft.demo.pool import Wishes, bring_up, find_or_build

    def say(text: str) -> None:
        out.print(text, soft_wrap=True)

    if os.geteuid() != 0:
        raise UsageError(
            "the demo makes namespaces and mounts, which only root may: use sudo, or see the same on a "
            f"made-up cloud with `{ourselves()} demo --fake`"
        )
    clean_up_after_signals()
    image = find_or_build(store or DEFAULT_STORE, say)
    with state_dir(state, keep) as folder:
        pool = bring_up(image, folder, say, Wishes(tied=not keep))
        try:
            page = _page(pool, say)
            closing = play(pool, out)
        except BaseException:
            pool.cloud.stop()
            raise
        if not keep:
            pool.cloud.stop()
    from updraft.cli.demo.show import closing_table

    out.print(closing_table(closing))
    if keep:
        say(_farewell(pool, folder))
    _name(page, say, keep=keep)
    return 0 if closing.good else 1


def _page(pool: "RealPool", say: "Say") -> "ShownPage | None":
    """The pool in a browser while it runs. Where that can't be it is said, and the demo goes on without."""
    from updraft.demo import page

    try:
        shown, link = page.show(pool)
    except (ProblemFound, OSError, subprocess.SubprocessError) as error:
        say(f"The pool can't be shown in a browser: {error}")
        return None
    say(f"Look at it in a browser (the link opens once, within five minutes):\n  {link}")
    return shown


def _name(page: "ShownPage | None", say: "Say", *, keep: bool) -> None:
    """The demo's last words: where its page was, or is."""
    if page is None:
        return
    if not keep:
        say(f"While it ran, {page.address} showed this pool; `{ourselves()} demo --keep` leaves both up.")
        return
    try:
        say(f"Its page, by a link that opens once, within five minutes:\n  {page.link()}")
    except (ProblemFound, subprocess.SubprocessError) as error:
        say(f"Its page at {page.address} is away: {error}")


@contextmanager
def state_dir(state: Path | None, keep: bool) -> Iterator[Path]:
    """Where the cloud's socket and log are. What the demo put there goes at the end, unless the pool is kept.

    Raises UsageError where a cloud runs there already.
    """
    from updraft.clouds.local import process

    folder = state or (KEPT if keep else Path(tempfile.mkdtemp(prefix="updraft-demo-")))
    if process.find(folder) is not None:
        down = f"{ourselves()} local down --state {folder}"
        raise UsageError(f"a pool is up in {folder} already; use it, or end it with `{down}`")
    try:
        yield folder
    except BaseException:
        process.tidy(folder)
        raise
    if not keep:
        process.tidy(folder)


def ourselves() -> str:
    """How updraft is called from here, for commands that a person copies."""
    called = sys.argv[0]
    found = shutil.which("updraft")
    return "updraft" if found is not None and Path(found).resolve() == Path(called).resolve() else called


def play(pool: "RealPool", out: "Console") -> "Closing":
    """Submit the jobs and show what happens, until all are done and no machine is left."""
    from updraft.cli.demo.show import Stage
    from updraft.demo import jobs

    begun = time.time()
    count = jobs.submit(pool)
    with Stage(out) as stage:
        while True:
            scene = _scene(pool, begun, count)
            stage.show(scene)
            done = scene.completed >= count and not pool.workers("pending", "running", "stopping")
            if done or time.time() - begun > LONGEST:
                return _closing(pool, count)
            time.sleep(LOOK_EVERY)


def _scene(pool: "RealPool", begun: float, count: int) -> "Scene":
    from updraft.cli.demo.show import Scene, ShownDecision
    from updraft.core.model import Phase

    seen = pool.show("status")
    events = pool.events()
    waiting, running = int(seen["jobs"]["idle"]), int(seen["jobs"]["running"])
    phases = {Phase(name): number for name, number in seen["machines"]["phases"].items() if name != "gone"}
    return Scene(
        title=TITLE,
        elapsed=time.time() - begun,
        waiting=waiting,
        running=running,
        completed=_completed(pool),
        phases=phases,
        decisions=[
            ShownDecision(event["at"] - begun, told(event)) for event in events if event["kind"] in TOLD
        ],
        note=f"{count} jobs submitted by alice with condor_submit; Ctrl-C ends it and cleans up",
    )


def told(event: Mapping[str, Any]) -> str:
    """What was decided, and why, short enough to be read to its end at 80 columns."""
    detail = event.get("detail") or {}
    what = event["subject"]
    if "asked" in detail and "offer" in detail:
        _, zone, flavor, _ = str(detail["offer"]).rsplit("/", 3)
        what = f"{detail['asked']} × {flavor} in {zone}"
    return f"{event['kind']} {what}: {event['text']}"


def _completed(pool: "RealPool") -> int:
    """Jobs that have left the queue with their work done."""
    return sum(job.get("JobStatus") == 4 for job in pool.history(["JobStatus"]))


def _closing(pool: "RealPool", count: int) -> "Closing":
    from updraft.cli.demo.show import Closing
    from updraft.demo import jobs

    history = pool.history(jobs.ATTRIBUTES)
    workers = pool.workers()
    now = time.time()
    completed = sum(job.get("JobStatus") == 4 and job.get("ExitCode") == 0 for job in history)
    return Closing(
        jobs=count,
        completed=min(completed, jobs.outputs(pool)),
        launched=len(workers),
        paid=sum(w["times"].get("terminated", now) - w["times"]["pending"] for w in workers),
        used=jobs.used_seconds(history),
        median_wait=jobs.median_wait(history),
        killed=jobs.evictions(pool),
        left=len(pool.workers("pending", "running", "stopping")),
    )


def _farewell(pool: "RealPool", folder: Path) -> str:
    us = ourselves()
    shell = f"{us} local shell --state {folder} {pool.head}"
    return "\n".join(
        (
            "",
            "The pool stays up. To use it:",
            f"  {shell} --user alice        log in as a user; then condor_submit, condor_q",
            f"  {shell} -- updraft status --watch",
            f"  {shell} -- updraft events --follow",
            f"  {us} local down --state {folder}        end it, with everything in it",
        )
    )
