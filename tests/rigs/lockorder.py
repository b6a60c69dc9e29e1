"""Which locks of updraft are taken under which others: two that are taken in both orders can hang."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import updraft

_HOME = str(Path(updraft.__file__).parent)
_LOCK, _RLOCK = threading.Lock, threading.RLock


class LockOrder:
    """Locks that updraft's modules make while this is in force tell it what they are taken under."""

    def __init__(self) -> None:
        self.edges: set[tuple[str, str]] = set()
        self._held = threading.local()

    def held(self) -> list["_Told"]:
        """What this thread holds."""
        if not hasattr(self._held, "locks"):
            self._held.locks = []
        return self._held.locks  # type: ignore[no-any-return]

    def under(self, name: str) -> set[str]:
        """The locks that are taken by somebody who holds this one."""
        return {inner for outer, inner in self.edges if outer == name}

    def circles(self) -> set[str]:
        """The locks that can wait for themselves, by way of others."""
        found = set()
        for start in {outer for outer, _ in self.edges}:
            reached, todo = set[str](), self.under(start)
            while todo:
                reached |= todo
                todo = {inner for name in todo for inner in self.under(name)} - reached
            if start in reached:
                found.add(start)
        return found


class _Told:
    """A lock by the place where it was made: two of one class are one, so that their order counts too."""

    def __init__(self, lock: Any, name: str, order: LockOrder) -> None:
        self._lock, self._name, self._order = lock, name, order

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        held = self._order.held()
        if self not in held:  # not a lock that this thread has and may take again
            self._order.edges.update((one._name, self._name) for one in held)
        got = bool(self._lock.acquire(blocking, timeout))
        if got:
            held.append(self)
        return got

    def release(self) -> None:
        self._order.held().remove(self)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def lock_order() -> Iterator[LockOrder]:
    """Watch the locks that are made by updraft meanwhile."""
    order = LockOrder()

    def watched(make: Any) -> Any:
        def made() -> Any:
            # A dataclass' default is made by a frame without a file: whose it is says the one above.
            frame: Any = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith("<"):
                frame = frame.f_back
            file = frame.f_code.co_filename if frame is not None else ""
            if not file.startswith(_HOME):
                return make()
            return _Told(make(), str(Path(file).relative_to(_HOME)), order)

        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Lock", watched(_LOCK))
        patch.setattr(threading, "RLock", watched(_RLOCK))
        yield order
