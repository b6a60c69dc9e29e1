"""The daemon with its desk for users' requests for annexes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from updraft.daemon.annex_requests.desk import Desk
from updraft.daemon.annex_requests.server import Server
from updraft.errors import LedgerError
from updraft.ledger.store import Ledger

if TYPE_CHECKING:
    from updraft.config.model import Settings


@contextmanager
def annex_desk(settings: "Settings", ledger: Ledger) -> Iterator[Desk]:
    """The desk, with a socket where some users may have annexes when the daemon starts.

    Without the socket the daemon works on: jobs are worth more than requests.
    """
    desk = Desk(ledger, time.time)
    if not settings.policy().annex_budgets:
        yield desk
        return
    server = Server(settings.annexes.socket, desk.answer)
    try:
        server.start()
    except LedgerError as error:
        structlog.get_logger("updraft").error(str(error), code="no-annex-socket")
    try:
        yield desk
    finally:
        server.stop()
