"""A stage for one rival: a pool and a cloud moved by hand, so that a test sees each look by itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.rigs.snapshots import FLAVORS, NOW, group, kind, offer, policy, snapshot
from updraft.core.model import (
    Child,
    CloudState,
    CollectorView,
    Drain,
    Instance,
    JobGroup,
    Kind,
    Known,
    Launch,
    LaunchRecord,
    LaunchState,
    LedgerView,
    Offer,
    Plan,
    Resources,
    Slot,
    Snapshot,
    Terminate,
)
from updraft.core.settings import Limits, Policy

SMALL, LARGE = "small", "large"  # 2 and 8 cores
ONE = Resources(1, 1024, 1024)


@dataclass
class Box:
    """One machine: what runs on it, whether it is in the pool, whether it takes new jobs."""

    instance: Instance
    size: Resources
    joined: bool = False
    jobs: list[tuple[str, Resources]] = field(default_factory=list)
    draining: bool = False
    starts: int = 0

    def slot(self, now: float) -> Slot:
        free = self.size
        for _, share in self.jobs:
            free = free - share
        return Slot(
            f"slot1@{self.instance.id}@host", self.instance.id, self.instance.cloud, "kind", self.size, free,
            "Drained" if self.draining else "Unclaimed", "Idle", now, NOW,
            children=tuple(Child("Claimed", "Busy", share, f"{user}@pool") for user, share in self.jobs),
            job_starts=self.starts, draining=self.draining, accepting=not self.draining,
            launch_key=self.instance.launch_key,
        )  # fmt: skip


class Stage:
    """The world of one rival. What it launches comes when the test says so; what it ends is gone at once."""

    def __init__(
        self,
        decide: Callable[[Snapshot, Policy], Plan],
        flavors: Iterable[str] = (SMALL, LARGE),
        *,
        refuse: bool = False,
        **limits: int,
    ) -> None:
        self.decide = decide
        self.now = NOW
        self.offers: list[Offer] = [offer(name) for name in flavors]
        self.policy = policy(limits=Limits(**limits))
        self.boxes: dict[str, Box] = {}
        self.groups: list[JobGroup] = []
        self.kinds: dict[str, Kind] = {kind(name).key: kind(name) for name in flavors}
        self.refuse = refuse
        self.launches: list[LaunchRecord] = []
        self.ended: list[str] = []
        self.shot: list[str] = []
        self.calls = 0
        self.negotiated = True

    # ------------------------------------------------------------------------------------ what a test does

    def waiting(self, count: int, owner: str = "alice", request: Resources = ONE, age: float = 300) -> None:
        """So many jobs of this user wait now, in the place of those of this kind before."""
        key = f"{owner}/{request}"
        self.groups = [one for one in self.groups if one.key != key]
        if count:
            made = group(key, count, owner=owner, request=request, oldest=self.now - age)
            self.groups.append(made)

    def add(self, count: int, flavor: str = SMALL, *, joined: bool = True, **changes: object) -> list[str]:
        """Machines that were there before."""
        return [self._box(flavor, f"old-{len(self.boxes)}", joined, **changes) for _ in range(count)]

    def join(self, count: int | None = None) -> None:
        """Machines that are on their way join the pool: all, or so many."""
        for box in self.coming()[:count]:
            box.joined = True
            box.instance = replace(box.instance, state=CloudState.RUNNING)

    def run(self, name: str, *jobs: tuple[str, Resources]) -> None:
        """Just these jobs run on this machine."""
        self.boxes[name].jobs = list(jobs)
        self.boxes[name].starts += len(jobs)

    def fill(self, owner: str = "alice", request: Resources = ONE) -> int:
        """Waiting jobs of one user start wherever there is room. Returns how many."""
        left = next((one for one in self.groups if one.key == f"{owner}/{request}"), None)
        started = 0
        for box in self.joined():
            while left is not None and left.idle > started and not box.draining and self._fits(box, request):
                box.jobs.append((owner, request))
                box.starts += 1
                started += 1
        if left is not None:
            self.waiting(left.idle - started, owner, request)
        return started

    def coming(self) -> list[Box]:
        return [box for box in self.boxes.values() if not box.joined]

    def joined(self) -> list[Box]:
        return [box for box in self.boxes.values() if box.joined]

    def look(self, after: float = 0.0) -> Plan:
        """Time passes, the rival looks, and what it wants is done. Returns its plan."""
        self.now += after
        made = self.decide(self.snapshot(), self.policy)
        for action in made.actions:
            self._do(action)
        return made

    def looks(self, seconds: float, every: float) -> list[Plan]:
        """Looks for so long."""
        return [self.look(every) for _ in range(round(seconds / every))]

    # ---------------------------------------------------------------------------------------------- inside

    def snapshot(self) -> Snapshot:
        """What there is now."""
        slots = tuple(box.slot(self.now) for box in self.joined())
        cycle = self.now - 5 if self.negotiated else None
        shown = snapshot(
            instances=[box.instance for box in self.boxes.values()],
            groups=self.groups,
            offers=self.offers,
            now=self.now,
            collector=Known(CollectorView(slots, NOW - 100_000, cycle), self.now),
            ledger=LedgerView(launches=tuple(self.launches)),
        )
        return replace(shown, kinds=self.kinds)

    def _fits(self, box: Box, request: Resources) -> bool:
        return box.slot(self.now).free.holds(request) > 0

    def _box(self, flavor: str, key: str, joined: bool, **changes: object) -> str:
        name = f"i-{len(self.boxes) + len(self.ended)}"
        state = CloudState.RUNNING if joined else CloudState.PENDING
        one = Instance(
            name, "c1", state, self.now, "default", key, "g1", zone="z1", flavor=flavor, image="img"
        )
        self.boxes[name] = Box(replace(one, **changes), FLAVORS[flavor][0], joined)  # type: ignore[arg-type]
        return name

    def _do(self, action: object) -> None:
        if isinstance(action, Launch):
            self._launch(action)
        elif isinstance(action, Drain):
            self.boxes[action.machine].draining = True
        elif isinstance(action, Terminate):
            for name in action.machines:
                box = self.boxes.pop(name)
                self.ended.append(name)
                if box.jobs:
                    self.shot.append(name)

    def _launch(self, action: Launch) -> None:
        self.calls += 1
        state = LaunchState.REFUSED if self.refuse else LaunchState.ACCEPTED
        sold = action.offer
        self.launches.append(
            LaunchRecord(
                action.key, sold.cloud, sold.zone, sold.flavor, sold.market, sold.worker_class, sold.image,
                sold.generation, action.count, sold.resources, sold.price, self.now, state,
            )
        )  # fmt: skip
        if not self.refuse:
            for _ in range(action.count):
                self._box(sold.flavor, action.key, False)


def launched(made: Plan) -> int:
    """How many machines a plan asks for."""
    return sum(action.count for action in made.actions if isinstance(action, Launch))


def drained(made: Plan) -> list[str]:
    """Which machines it closes."""
    return [action.machine for action in made.actions if isinstance(action, Drain)]


def ended(made: Plan) -> list[str]:
    """Which machines it ends."""
    return [one for action in made.actions if isinstance(action, Terminate) for one in action.machines]
