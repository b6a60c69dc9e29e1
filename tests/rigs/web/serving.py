"""The page's process over a ledger, for browsers: `python -m tests.rigs.web.serving FOLDER [AT]`.

With AT it is always that moment there, so that two runs show the same.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from updraft.config.tables.usage import Usage
from updraft.web import server
from updraft.web.ahead import Ahead
from updraft.web.pictures import Pictures
from updraft.web.site import Site
from updraft.web.visitors import Visitors, kept_key, link

LEDGER = "ledger.sqlite"


@contextmanager
def served(folder: Path, at: float | None = None) -> Iterator[str]:
    """A process that serves the ledger of this folder: its address, as in http://127.0.0.1:4711."""
    words = [sys.executable, "-m", __name__, str(folder), *([] if at is None else [str(at)])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.wait(60)


def opening(folder: Path, user: str = "", at: float | None = None) -> str:
    """The address, below that of the page, that opens it once."""
    now = time.time() if at is None else at
    return f"/open?{urlencode({'key': link(kept_key(folder), user, now)})}"


def main(folder: Path, at: float | None) -> None:
    """Serve until SIGTERM; the port is the first line of what is printed."""
    if at is not None:
        time.time = lambda: at
    visitors = Visitors(kept_key(folder), ("root",), 43200.0, time.time() - 1)
    pictures, reading = (Pictures(folder / LEDGER, "demo", Usage()) for _ in range(2))
    ahead = Ahead(pictures, reading)
    listening = server.tcp("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server.serve(
        [(listening, Site(pictures, visitors).application)],
        lambda: sys.stdout.write(f"{port}\n") and sys.stdout.flush(),
    )
    ahead.close()
    pictures.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
