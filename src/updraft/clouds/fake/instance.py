"""One machine of a fake cloud: its life is drawn when it is made, and its state follows from the time."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.clouds.fake.settings import Boot
from updraft.core.model import CloudOffer, CloudState, Instance, Resources


@dataclass(slots=True)
class FakeInstance:
    """All that the cloud knows of one machine. Times are POSIX seconds; `inf` is never.

    `sold` is the offer that it was bought as. `joins_at` is when what runs inside would show up in its pool;
    the cloud itself doesn't know or care. `shown`, `occupying` and `paying` are how it was last counted, and
    `due` when it will be next (see `census`); `seen` is what was last shown of it, if that still holds.
    """

    id: str
    sold: CloudOffer
    image: str
    address: str
    launched_at: float
    key: str = ""
    user_data: bytes = b""
    tags: Mapping[str, str] = field(default_factory=dict)
    runs_at: float = math.inf
    joins_at: float = math.inf
    breaks_at: float = math.inf
    dies_at: float = math.inf
    fault: str = ""
    stop_asked_at: float = math.inf
    stopped_at: float = math.inf
    ended_at: float = math.inf
    shown: CloudState | None = None
    occupying: bool = False
    paying: bool = False
    due: float = math.inf
    seen: Instance | None = None

    @property
    def zone(self) -> str:
        """Where it is."""
        return self.sold.zone

    @property
    def flavor(self) -> str:
        """The name of its size."""
        return self.sold.flavor

    @property
    def market(self) -> str:
        """How it is paid for."""
        return self.sold.market

    @property
    def resources(self) -> Resources:
        """What the whole machine has."""
        return self.sold.resources

    def state(self, now: float) -> CloudState:
        """What the cloud would say of it at this time."""
        if self.end() <= now:
            return CloudState.TERMINATED
        if self.stop_asked_at <= now:
            return CloudState.STOPPING
        if self.stopped_at <= now:
            return CloudState.STOPPED
        if self.breaks_at <= now:
            return CloudState.ERROR
        return CloudState.RUNNING if self.runs_at <= now else CloudState.PENDING

    def end(self) -> float:
        """When it ends or ended, as far as is known now."""
        return min(self.ended_at, self.dies_at)

    def up(self, now: float) -> bool:
        """True while what runs inside it runs: neither broken nor stopped, stopping or gone."""
        return self.state(now) is CloudState.RUNNING

    def occupies(self, now: float) -> bool:
        """True while it counts against quota and capacity; broken ones do."""
        return self.end() > now

    def pays(self, now: float) -> bool:
        """True while it is paid for: from the request to the order to end it, or to its own end."""
        return min(self.end(), self.stop_asked_at, self.stopped_at, self.breaks_at) > now

    def paid(self, now: float) -> float:
        """Seconds from the request to its end or until now. A machine that broke at birth costs nothing."""
        if self.breaks_at <= now:
            return 0.0
        return max(0.0, min(now, self.end(), self.stop_asked_at, self.stopped_at) - self.launched_at)

    def console(self, now: float) -> str:
        """What it has printed so far."""
        lines = [(self.runs_at, f"{self.id} booting {self.image} on {self.flavor}")]
        if self.joins_at < math.inf:
            lines.append((self.joins_at, "startd: advertised to the pool"))
        else:
            lines.append((self.runs_at + 5, "startd: cannot start: the image does not hold it"))
        lines.append((self.stop_asked_at, "power off"))
        shown = [text for at, text in lines if at <= now and self.breaks_at > now]
        return "".join(f"{line}\n" for line in shown)


def draw_life(instance: FakeInstance, boot: Boot, seed: int, serial: int) -> None:
    """Decide the whole life of an instance; the same seed and serial number give the same life."""
    chance = random.Random(f"{seed}/{serial}")  # noqa: S311 - a simulated life is no secret
    start, join = (
        length * chance.uniform(1 - boot.spread, 1 + boot.spread) for length in (boot.start, boot.join)
    )
    never, breaks, dies = (chance.random() for _ in range(3))
    if breaks < boot.breaks:
        instance.breaks_at, instance.fault = instance.launched_at + start, boot.fault
        return
    instance.runs_at = instance.launched_at + start
    if never >= boot.never_joins:
        instance.joins_at = instance.runs_at + join
    if dies < boot.dies:
        instance.dies_at = instance.launched_at + boot.dies_after
