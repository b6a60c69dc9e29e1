"""How a verb that has begun something ends early: what was begun is taken back, once and to the end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def clean_up_after_signals() -> None:
    """Let Ctrl-C, a polite end and a closed terminal be cleaned up after, once and to the end."""
    for ending in ENDINGS:
        signal.signal(ending, _interrupt)


def _interrupt(_number: int, _frame: object) -> None:
    for ending in ENDINGS:  # the impatient press twice, and what is left then is a second's work
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def ended_by_term() -> Iterator[None]:
    """A request to end is as good as Ctrl-C: what was begun is taken back."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
