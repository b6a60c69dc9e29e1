"""The machines that a fake cloud still remembers: what it shows of each, and what they take together.

All of it is kept ready. A machine's life is known when it is made, so its next change is too: whoever asks is
answered with what was last counted, once everything that was due by then has been counted.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import RLock

from updraft.clouds.fake.instance import FakeInstance
from updraft.clouds.fake.settings import Settings
from updraft.core.model import CloudState

Sale = tuple[str, str, str]
"""What is sold: zone, flavor, market."""


@dataclass(slots=True)
class Taken:
    """What some machines take together: how many they are, their cores and memory (MiB), and their prices."""

    machines: int = 0
    cores: int = 0
    memory: int = 0
    sales: Counter[Sale] = field(default_factory=Counter)
    prices: Counter[float] = field(default_factory=Counter)

    @property
    def cost(self) -> float:
        """What an hour of them costs; a price that isn't known costs nothing here."""
        return math.fsum(price * count for price, count in self.prices.items())

    def count(self, instance: FakeInstance, sign: int) -> None:
        """One machine more, or (negative) one less."""
        sold = instance.sold
        self.machines += sign
        self.cores += sign * sold.resources.cpus
        self.memory += sign * sold.resources.memory
        self.sales[sold.zone, sold.flavor, sold.market] += sign
        self.prices[sold.price or 0.0] += sign


class Census:
    """Every machine that the cloud remembers, by its id: it forgets those that ended long enough ago.

    `changes` counts what has become different for anybody who asks, and `changed_at` is when that last was.
    `occupied` is what counts against quotas, `paid` what is paid for. All are of the last time of `settle`.
    """

    def __init__(self, clock: Callable[[], float], settings: Settings) -> None:
        self.current: dict[str, FakeInstance] = {}
        self.changes = 0
        self.changed_at = -math.inf
        self.occupied = Taken()
        self.paid = Taken()
        self._clock = clock
        self._settings = settings
        self._due: list[tuple[float, str]] = []
        self._settled_at = -math.inf
        self._lock = RLock()

    def settle(self) -> None:
        """Count all that has happened by now."""
        now, due = self._clock(), self._due
        if now >= self._settled_at and not (due and due[0][0] <= now) and not self._settings.hides_after:
            self._settled_at = now
            return
        with self._lock:
            # Where answers lag behind an end, or the clock was set back, no next change is known beforehand.
            if now < self._settled_at or self._settings.hides_after:
                self._count(list(self.current.values()), now)
            while due and due[0][0] <= now:
                at, machine = heapq.heappop(due)
                if machine in self.current:
                    self._count((self.current[machine],), at)
            self._settled_at = now

    def add(self, instance: FakeInstance) -> None:
        """A machine is made."""
        self.current[instance.id] = instance
        self.touched(instance)

    def touched(self, instance: FakeInstance) -> None:
        """Something about this machine is different from now on."""
        with self._lock:
            now = self._clock()
            instance.seen = None
            self._changed(now)
            if instance.id in self.current:
                self._count((instance,), now)

    def resettle(self, settings: Settings) -> None:
        """The cloud has other settings from now on."""
        with self._lock:
            self._settings, now = settings, self._clock()
            self._changed(now)
            self._count(list(self.current.values()), now)

    # ---------------------------------------------------------------------------------------------- inside

    def _changed(self, at: float) -> None:
        self.changes += 1
        self.changed_at = max(self.changed_at, at)

    def _count(self, instances: Iterable[FakeInstance], at: float) -> None:
        now = self._clock()
        for one in instances:
            shown, occupies, pays = self._shown(one, now), one.occupies(now), one.pays(now)
            if (shown, occupies, pays) != (one.shown, one.occupying, one.paying):
                self._changed(at)
            if occupies != one.occupying:
                self.occupied.count(one, 1 if occupies else -1)
            if pays != one.paying:
                self.paid.count(one, 1 if pays else -1)
            one.shown, one.occupying, one.paying = shown, occupies, pays
            following = self._following(one, now)
            if following < math.inf and following != one.due:
                heapq.heappush(self._due, (following, one.id))
            elif following == math.inf and not occupies:
                del self.current[one.id]
            one.due = following

    def _shown(self, instance: FakeInstance, now: float) -> CloudState | None:
        """Its state as the cloud shows it, which may lag behind; None before and after it is shown."""
        settings, end = self._settings, instance.end()
        if instance.launched_at + settings.shows_after > now:
            return None
        if end + settings.hides_after > now:
            ended_lately = min(end, instance.stop_asked_at) <= now
            shown_at = now - settings.hides_after if ended_lately else now
            return instance.state(max(shown_at, instance.launched_at))
        return CloudState.TERMINATED if self._forgotten(end) > now else None

    def _forgotten(self, end: float) -> float:
        return end + self._settings.hides_after + self._settings.keeps_terminated

    def _following(self, one: FakeInstance, now: float) -> float:
        """When what is shown of it, or what it takes, changes next by itself."""
        moments = (
            *(one.launched_at + self._settings.shows_after, self._forgotten(one.end())),
            *(one.runs_at, one.breaks_at, one.dies_at, one.ended_at),
        )
        return min((moment for moment in moments if moment > now), default=math.inf)
