"""`updraft head undo`: what `head init` did to this machine is taken back."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.output import count
from updraft.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from updraft.provision.setup.book import Book
    from updraft.provision.setup.tree import Tree


@click.command(short_help="Take back what `head init` did to this machine.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and do nothing.")
@click.option(
    "--leave-machines",
    is_flag=True,
    help="Even while machines are there, or nobody can tell: they end by themselves.",
)
@click.pass_obj
def undo(call: Call, dry_run: bool, leave_machines: bool) -> None:
    """Take back what `head init` did: its services end, files that are as it wrote them go, and what was
    there before is there again. Files that were changed since are named, and stay; so do the queue, the
    ledger and updraft.toml. Takes root.

    Refused while the pool has machines, or where the ledger can't say whether it has.
    """
    from updraft.provision.setup import steps
    from updraft.provision.setup.applying import unchanged
    from updraft.provision.setup.files import START
    from updraft.provision.setup.host import Host, Services
    from updraft.provision.setup.tree import Tree

    host, tree = Host(), Tree()
    if not host.is_root():
        raise UsageError("only root may take a head back; run it with sudo")
    book = tree.book()
    if not book.files and not book.facts:  # facts alone: an undo has failed in part
        click.echo("Nothing to undo: `updraft head init` has written nothing here.")
        return
    for path, entry in book.files.items():
        click.echo(f"- {path}" if unchanged(tree, entry, path) else f"  {path} was changed since, and stays")
    if dry_run:
        return
    if not leave_machines:
        _check_no_machines(call, tree, book)
    for line in steps.undo(host, tree, Services(host, START), click.echo):
        click.echo(line)
    click.echo("This machine is no head any more; the queue, the ledger and updraft.toml stay.")


def _check_no_machines(call: Call, tree: "Tree", book: "Book") -> None:
    """Raise UsageError while the pool has machines that this would leave alone, or may have."""
    try:
        there = sum(map(_machines, _ledgers(call, tree, book)))
    except (LedgerError, UsageError, ValueError, KeyError, TypeError) as error:  # these of a damaged row
        raise UsageError(
            f"whether the pool has machines can't be told: {error}. Name its configuration with --config, or "
            "say --leave-machines where it has none, or they may end by themselves; nothing was stopped"
        ) from error
    if there:
        raise UsageError(
            f"the pool has {count(there, 'machine')}: `updraft destroy --wait` first, or --leave-machines"
        )


def _ledgers(call: Call, tree: "Tree", book: "Book") -> set[Path]:
    """The ledgers to ask: by the configuration that the service runs with, and by the one that was asked for.

    Raises UsageError where a configuration can't be read.
    """
    from updraft import config

    service = _of_the_service(tree, book)
    if not service:
        try:
            ledger = config.place(call.file).ledger
        except UsageError:
            if call.asked is not None:
                raise
            return set()  # no controller was started, and there is no configuration for one
        return {ledger} if ledger.exists() else set()
    files = {service, *([Path(call.asked)] if call.asked else [])}
    if call.asked and not Path(service).exists():
        files.discard(service)  # it has moved, to where it was said
    return {config.place(file.resolve()).ledger for file in files}


def _of_the_service(tree: "Tree", book: "Book") -> Path | None:
    """The configuration of the service that `head init` has written; None where it wrote none."""
    from updraft.provision.setup.files import UNIT
    from updraft.provision.setup.service import USUAL_FILE

    if UNIT not in book.files:
        return None
    known = book.facts.get("told", {}).get("config", "")
    return Path(known) if known else USUAL_FILE


def _machines(ledger: Path) -> int:
    """How many machines the ledger knows, with each launch that has had no answer. Raises LedgerError, and
    what a damaged row raises."""
    from updraft.core.model import LaunchState
    from updraft.ledger.reader import Reader

    with Reader(ledger) as reader:
        view = reader.view(time.time())
    unanswered = [one for one in view.launches if one.state in (LaunchState.INTENDED, LaunchState.UNKNOWN)]
    return len(unanswered) + sum(one.ended_at is None for one in view.machines)
