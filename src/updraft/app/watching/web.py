"""The page in a browser: its parts put together, and the link that opens it."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlencode

from updraft.app.call import Call
from updraft.config.tables.web import split_listen
from updraft.errors import UsageError

POLITE = 10
"""The niceness of the page's process: on a busy head the daemon comes first."""


def serve(call: Call, say: Callable[[str], None]) -> None:
    """Serve the page until SIGTERM or SIGINT. Raises UsageError where something that it takes isn't there."""
    try:
        from updraft.web import server
        from updraft.web.site import Site
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page takes {error.name}, which isn't installed: install updraft with its extra `web`"
        ) from error
    from updraft.web.ahead import Ahead
    from updraft.web.pictures import Pictures
    from updraft.web.visitors import Visitors, kept_key

    settings = call.settings
    web, pool = settings.web, settings.pool
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what strangers send is no news
    visitors = Visitors(kept_key(pool.state_dir), web.operators, web.session, time.time())
    with ExitStack() as open_files:
        pictures = Pictures(pool.ledger, pool.name, settings.usage)
        open_files.callback(pictures.close)
        open_files.callback(Ahead(pictures, Pictures(pool.ledger, pool.name, settings.usage)).close)
        served, where = [], []
        if web.socket is not None:
            listening = open_files.enter_context(server.unix(web.socket, web.socket_group))
            open_files.callback(_remove, web.socket)
            served.append((listening, Site(pictures, visitors, web.user_header).application))
            where.append(str(web.socket))
        if web.listen:
            listening = open_files.enter_context(server.tcp(*split_listen(web.listen)))
            served.append((listening, Site(pictures, visitors).application))
            where.append(f"http://{web.listen}/")
        with suppress(OSError):
            os.nice(POLITE)
        places = " and ".join(where)
        server.serve(
            served, lambda: say(f"pool {pool.name} is shown at {places}; `updraft web open` lets one in")
        )


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def link(call: Call, user: str) -> str:
    """A link that opens the page once: for this user, or with "" for an operator.

    Raises UsageError where there is no address for it, LedgerError where the page has never run, or who calls
    isn't the ledger's owner.
    """
    from updraft.web import visitors

    settings = call.settings
    if not settings.web.listen:
        raise UsageError("[web] has no `listen`: the page is behind a proxy alone, which says who looks")
    if user and not visitors.NAME.fullmatch(user):
        raise UsageError(f'"{user}" can\'t be a user; write the bare name that `condor_q` shows as the owner')
    key = visitors.known_key(settings.pool.state_dir)
    return f"http://{settings.web.listen}/open?{urlencode({'key': visitors.link(key, user, time.time())})}"
