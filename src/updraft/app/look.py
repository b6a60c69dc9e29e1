"""One live look at pool, clouds and ledger, and the plan that it leads to. Nothing is written."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from updraft.app.call import Call

if TYPE_CHECKING:
    from updraft.config.model import Settings
    from updraft.core.model import Plan, Snapshot


@contextmanager
def looked(
    call: Call, over: Callable[[Any], Any] = lambda ledger: ledger
) -> Iterator[tuple["Settings", "Snapshot", "Plan"]]:
    """One look and the plan it leads to; nothing is written. The pool's children end with it.

    `over` says what is to be taken for the ledger.
    """
    from updraft.app.wiring import make_observer, make_parts, make_preparer
    from updraft.condor.process.judge import Judge
    from updraft.config import load
    from updraft.core.plan import Planning
    from updraft.daemon import run_once
    from updraft.daemon.requests import closing
    from updraft.errors import LedgerError
    from updraft.ledger.clouds import in_force, overrides
    from updraft.ledger.reader import Reader

    settings = load(call.file)
    parts = make_parts(settings, watches=True)
    try:
        try:
            ledger: Any = Reader(settings.pool.ledger)
        except LedgerError:
            if settings.pool.ledger.exists():
                raise
            ledger = Blank()
        with Judge() as judge:
            known = over(ledger)
            looks = make_observer(parts, known, settings.pool.ledger), make_preparer(known, judge)
            policy = replace(in_force(parts.policy, overrides(ledger)), closing=bool(closing(ledger)))
            snapshot, decided = run_once(*looks, Planning(), policy, time.time())
        yield settings, snapshot, decided
    finally:
        getattr(parts.pool, "close", lambda: None)()


class Blank:
    """A ledger that nothing was written to yet: what a first look remembers."""

    def view(self, now: float) -> Any:
        """Nothing."""
        from updraft.core.model import LedgerView

        return LedgerView()

    def requests(self) -> tuple[()]:
        """None."""
        return ()

    def annexes(self) -> tuple[()]:
        """None."""
        return ()

    def learned(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def noted(self, key: str) -> dict[str, Any] | None:
        """Nothing."""
        return None
