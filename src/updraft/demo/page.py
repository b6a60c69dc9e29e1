"""The page of a demo's pool, on this machine: `updraft web` runs on the head, and a port here leads to it.

The head is in a network of its own, which nothing of this machine reaches. So a process is started there with
a socket that was opened here: what comes in at this socket it hands on to the page. It ends with the cloud.
"""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from updraft.clouds.local import process
from updraft.demo.pool import RealPool
from updraft.errors import ProblemFound

PORT = 8642
"""Where `updraft web` listens on the head; and here, where nobody else does."""
PATIENCE = 30.0
_START = "exec updraft web >/var/log/updraft-web.log 2>&1 </dev/null"
CARRY = """
import asyncio, socket, sys
listening, port = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])

async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()

async def carry(reader, writer):
    try:
        there, back = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, back), pump(there, writer))

async def main():
    async with await asyncio.start_server(carry, sock=listening) as server:
        await server.serve_forever()

asyncio.run(main())
"""
"""Hands on what comes in at an open socket to a port: of the first Python that a machine has."""


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page that can be looked at from this machine."""

    pool: RealPool
    port: int
    carrier: "subprocess.Popen[bytes]"
    """What hands on to it."""

    @property
    def address(self) -> str:
        """Its address here, for who has come by a link."""
        return f"http://127.0.0.1:{self.port}/"

    def link(self) -> str:
        """A link that opens it once, within five minutes. Raises ProblemFound."""
        done = self.pool.updraft("web", "open")
        if done.returncode != 0:
            raise ProblemFound(done.stderr.strip() or "`updraft web open` failed on the head")
        there = urlsplit(done.stdout.strip())
        return urlunsplit(there._replace(netloc=f"127.0.0.1:{self.port}"))


def show(
    pool: RealPool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[ShownPage, str]:
    """Start the page of a pool; returns it and a link that opens it. Raises ProblemFound where none comes."""
    pool.on_head("setsid", "--fork", "sh", "-c", _START)
    with listening() as made:
        command = process.enter_command(pool.cloud, pool.head, ("python3", "-c", CARRY))
        page = ShownPage(pool, int(made.getsockname()[1]), carry(command, made))
    until = clock() + PATIENCE
    while True:
        try:
            return page, page.link()
        except ProblemFound:
            if clock() >= until:
                raise
        sleep(0.5)


def carry(command: list[str], made: socket.socket) -> "subprocess.Popen[bytes]":
    """Run CARRY by this command, with this socket; it goes on when this process has ended."""
    number = made.fileno()
    return subprocess.Popen(
        [*command, str(number), str(PORT)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(number,),
        start_new_session=True,
    )


def listening() -> socket.socket:
    """A socket of this machine alone: at PORT where nobody listens there, else at any."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):
        made.bind(("127.0.0.1", PORT))
        made.listen()
        return made
    made.close()
    return socket.create_server(("127.0.0.1", 0))
