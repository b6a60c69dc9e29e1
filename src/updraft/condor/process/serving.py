"""For the server that forks the children: at its end it takes the folder of its socket with it.

Python's multiprocessing leaves that to the process that has started the server, which can't where it was
killed outright. The server loads this before it begins. In the children that it forks, and in any process
without such a socket, nothing is done. (A socket without a file would let every account of the machine in.)
"""

import atexit
import contextlib
import os
import socket
from pathlib import Path


def listener() -> Path | None:
    """The socket at which this process takes orders to fork; None where it has none."""
    sockets = [int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.is_socket()]
    for descriptor in sockets:
        with socket.socket(fileno=os.dup(descriptor)) as found:
            if found.family != socket.AF_UNIX or not found.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            ):
                continue
            path = Path(os.fsdecode(found.getsockname()))
            if path.parent.name.startswith("pymp-"):  # the file's name differs between releases
                return path
    return None


def tidy(path: Path, server: int, starter: int) -> None:
    """Remove the socket and its folder, in the process `server` only, where its `starter` is no more.

    One that lives has its next server's socket in that folder, and removes it itself.
    """
    if os.getpid() == server and os.getppid() != starter:
        with contextlib.suppress(OSError):
            path.unlink()
            path.parent.rmdir()


if found := listener():
    atexit.register(tidy, found, os.getpid(), os.getppid())
