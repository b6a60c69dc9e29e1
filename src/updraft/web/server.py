"""The sockets: a unix socket for a proxy, an address of this machine for browsers, one server for each.

Each server has an application of its own, so that what comes by one can't pass for what came by the other.
A connection that takes longer than SECONDS for a request, from its first byte to the last of the answer, is
ended: slow clients hold nothing. There are at most CONNECTIONS at a time at each socket.
"""

import asyncio
import contextlib
import grp
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from updraft.errors import UsageError

SECONDS = 20.0
CONNECTIONS = 200
HEAD_BYTES = 16 * 1024
KEEP_ALIVE = 8
_BACKLOG = 64


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for each request and its answer."""

    seconds = SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request's time begins with the connection."""
        super().connection_made(transport)
        self._begin()

    def on_response_complete(self) -> None:
        """The next one's begins with the end of the answer before."""
        self._begin()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to be ended."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.seconds, self.transport.abort)


class _Server(uvicorn.Server):
    """A server that leaves signals to who runs several."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing is captured."""
        yield


def serve(
    served: list[tuple[socket.socket, Any]], ready: Callable[[], None], seconds: float = SECONDS
) -> None:
    """Serve these applications until SIGTERM or SIGINT; `ready` is called once all sockets listen."""
    asyncio.run(_serve(served, ready, seconds))


async def _serve(served: list[tuple[socket.socket, Any]], ready: Callable[[], None], seconds: float) -> None:
    protocol = type("Protocol", (BoundedProtocol,), {"seconds": seconds})
    servers = [(_Server(_config(application, protocol)), one) for one, application in served]

    def stop() -> None:
        for server, _ in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    running = [asyncio.create_task(server.serve([one])) for server, one in servers]
    while not all(server.started for server, _ in servers) and not any(one.done() for one in running):
        await asyncio.sleep(0.01)
    if not any(one.done() for one in running):
        ready()
    await asyncio.gather(*running)


def _config(application: Any, protocol: type[H11Protocol]) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # an address that a client writes is nobody's
        server_header=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=2,
        backlog=_BACKLOG,
    )


def tcp(address: str, port: int) -> socket.socket:
    """A socket that listens at this address of this machine. Raises UsageError where that can't be."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
    except OSError as error:
        made.close()
        raise UsageError(
            f"the page can't be served at {address}:{port} ({error.strerror}): end what listens there, or "
            "write another `listen` into [web]"
        ) from error
    return made


def unix(path: Path, group: str) -> socket.socket:
    """A socket at this path, in place of one that an earlier page left, for its owner and this group.

    Raises UsageError where that can't be.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        owner = grp.getgrnam(group).gr_gid if group else -1
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
            raise UsageError(f"{path} is there, and is no socket: write another `socket` into [web]")
        fresh.unlink(missing_ok=True)
        # From its first moment it is its owner's alone: the group comes before its rights do.
        before = os.umask(0o177)
        try:
            made.bind(str(fresh))
        finally:
            os.umask(before)
        os.chown(fresh, -1, owner)
        fresh.chmod(0o660 if group else 0o600)
        fresh.replace(path)
    except KeyError as error:
        made.close()
        raise UsageError(
            f"this machine has no group {group}: write another `socket_group` into [web]"
        ) from error
    except OSError as error:
        made.close()
        raise UsageError(f"the page can't be served at {path}: {error.strerror or error}") from error
    except UsageError:
        made.close()
        raise
    return made
