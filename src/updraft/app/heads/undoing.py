"""How `head undo` goes about it: what `head init` did to this machine, unless its pool has machines."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from updraft import config
from updraft.app.call import Call
from updraft.core.model import LaunchState
from updraft.core.reasons import counted
from updraft.errors import LedgerError, UsageError
from updraft.ledger.reader import Reader
from updraft.provision.setup import host as hosts
from updraft.provision.setup import steps
from updraft.provision.setup import tree as trees
from updraft.provision.setup.applying import unchanged
from updraft.provision.setup.book import Book
from updraft.provision.setup.files import START, UNIT
from updraft.provision.setup.service import USUAL_FILE
from updraft.provision.setup.steps import Say
from updraft.provision.setup.tree import Tree


class Undoing:
    """This machine, of which a head is to be taken back. Raises UsageError for others than root."""

    def __init__(self, call: Call) -> None:
        self._call, self._host, self._tree = call, hosts.Host(), trees.Tree()
        if not self._host.is_root():
            raise UsageError("only root may take a head back; run it with sudo")
        self._book = self._tree.book()

    @property
    def empty(self) -> bool:
        """Is there nothing to take back?"""
        return not self._book.files and not self._book.facts  # facts alone: an undo has failed in part

    def files(self) -> Iterator[tuple[str, bool]]:
        """The files that were written, and whether each is as it was written; others stay."""
        for path, entry in self._book.files.items():
            yield path, unchanged(self._tree, entry, path)

    def check_no_machines(self) -> None:
        """Raise UsageError while the pool has machines that this would leave alone, or may have."""
        _check_no_machines(self._call, self._tree, self._book)

    def carry_out(self, say: Say) -> Sequence[str]:
        """Take it back; sentences on what stays."""
        return steps.undo(self._host, self._tree, hosts.Services(self._host, START), say)


def _check_no_machines(call: Call, tree: Tree, book: Book) -> None:
    try:
        there = sum(map(_machines, _ledgers(call, tree, book)))
    except (LedgerError, UsageError, ValueError, KeyError, TypeError) as error:  # these of a damaged row
        raise UsageError(
            f"whether the pool has machines can't be told: {error}. Name its configuration with --config, or "
            "say --leave-machines where it has none, or they may end by themselves; nothing was stopped"
        ) from error
    if there:
        raise UsageError(
            f"the pool has {counted(there, 'machine')}: `updraft destroy --wait` first, or --leave-machines"
        )


def _ledgers(call: Call, tree: Tree, book: Book) -> set[Path]:
    """The ledgers to ask: by the configuration that the service runs with, and by the one that was asked for.

    Raises UsageError where a configuration can't be read.
    """
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


def _of_the_service(tree: Tree, book: Book) -> Path | None:
    """The configuration of the service that `head init` has written; None where it wrote none."""
    if UNIT not in book.files:
        return None
    known = book.facts.get("told", {}).get("config", "")
    return Path(known) if known else USUAL_FILE


def _machines(ledger: Path) -> int:
    """How many machines the ledger knows, with each launch that has had no answer. Raises LedgerError, and
    what a damaged row raises."""
    with Reader(ledger) as reader:
        view = reader.view(time.time())
    unanswered = [one for one in view.launches if one.state in (LaunchState.INTENDED, LaunchState.UNKNOWN)]
    return len(unanswered) + sum(one.ended_at is None for one in view.machines)
