"""The agent of a worker: one process, with a thread for each watcher that its configuration names.

Watchers run commands that may take a minute, and none of them waits for another. The folder is run as a
program; it needs nothing but Python 3.6, the oldest that cloud-init comes with.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from threading import Thread

from watchers.machine import say  # type: ignore[import-not-found]


def watch(name: str, told: "dict[str, object]") -> None:
    """Run one watcher. One that raises ends the whole process, and its service starts it again."""
    try:
        import_module("watchers." + name).main(told)
    except BaseException:
        try:
            from traceback import format_exc  # here, since it takes memory

            say(f"the watcher {name} has failed, and all begin again: {format_exc()}")
        finally:
            os._exit(1)


def main(config: str) -> None:
    """Start the watchers, and stay for as long as any of them has something to watch."""
    told = json.loads(Path(config).read_text())
    threads = [Thread(target=watch, args=one, daemon=True) for one in told.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
