"""What the services' counts leave out: servers that Nova has accepted and counts only later.

Nova counts a server of a project once a part of the cloud has taken it up. Until then it is listed, and two
launches one after the other may both fit into what `limits` tells: the second one's servers end as broken.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from updraft.clouds.openstack.reading import Raw, state_of
from updraft.core.model import CloudState, Quota, Resources
from updraft.errors import CloudError, CloudUnavailable

LOOK_SERVES = 10.0
_UNTAKEN = "scheduling"

Raws = tuple[Raw, ...]


@dataclass(slots=True)
class _Asked:
    """A launch: what it may have made, and at which look it is answered."""

    machines: int
    each: Resources
    answered: int | None = None


class Uncounted:
    """The servers of one pool that `limits` may not count yet. Safe for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: list[_Asked] = []
        self._untaken: Raws = ()
        self._looks = 0
        self._looked = 0.0

    @contextmanager
    def launching(self, count: int, each: Resources) -> Iterator[None]:
        """So many are being asked for: all of them may be made, unless it is refused."""
        one = _Asked(count, each)
        with self._lock:
            self._asked.append(one)
        try:
            yield
        except CloudUnavailable:
            self._answered(one)
            raise
        except CloudError:
            with self._lock:
                self._asked.remove(one)
            raise
        except BaseException:
            self._answered(one)
            raise
        self._answered(one)

    def look(self, ask: Callable[[], Raws]) -> Raws:
        """What `ask` shows of the pool's servers, those that are being built at least; noted here."""
        with self._lock:
            self._looks += 1
            begun, at = self._looks, self._clock()
        found = ask()
        with self._lock:
            self._untaken, self._looked = tuple(raw for raw in found if _is_untaken(raw)), at
            self._asked = [one for one in self._asked if one.answered is None or one.answered >= begun]
        return found

    def less(self, ask: Callable[[], Raws], tell: Callable[[], Quota]) -> Quota:
        """What `tell` says is left, less what it may not count, by a look (with `ask`) that isn't old.

        The look comes first: what is taken up in between is then counted twice, and never not at all.
        """
        with self._lock:
            answered = any(one.answered is not None for one in self._asked)
            old = bool(self._untaken) and self._clock() - self._looked >= LOOK_SERVES
        if answered or old:
            self.look(ask)
        told = tell()
        with self._lock:
            missing = [(one.machines, one.each) for one in self._asked]
            missing += [(1, _resources(raw)) for raw in self._untaken]
        return _less(told, missing) if missing else told

    def _answered(self, one: _Asked) -> None:
        with self._lock:  # a look that is under way may have begun before the answer
            one.answered = self._looks


def _is_untaken(raw: Raw) -> bool:
    return state_of(raw) is CloudState.PENDING and raw.get("OS-EXT-STS:task_state") == _UNTAKEN


def _resources(raw: Raw) -> Resources:
    flavor: Mapping[str, Any] = raw.get("flavor") or {}
    return Resources(int(flavor.get("vcpus") or 0), int(flavor.get("ram") or 0), 0)


def _less(told: Quota, missing: Iterable[tuple[int, Resources]]) -> Quota:
    """The quota without these; what has no end or isn't known stays so."""
    gone = list(missing)
    each = {
        "machines": sum(count for count, _ in gone),
        "cores": sum(count * size.cpus for count, size in gone),
        "memory": sum(count * size.memory for count, size in gone),
    }
    known = {name: getattr(told, name) for name in each}
    return replace(
        told, **{name: max(0, left - each[name]) for name, left in known.items() if left is not None}
    )
