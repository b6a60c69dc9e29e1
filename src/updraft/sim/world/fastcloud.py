"""A cloud of a simulated world: quotas, boots that take their time or fail, and an account of every call.

It keeps the contract of `updraft.clouds.base.Machines` for the pool of the world. What it shows is kept
ready: a look at which nothing has changed since the last one costs nothing.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from updraft.clouds.base import TAG_RETIRING, Found, LaunchRequest
from updraft.clouds.odd import NOTHING, Odd
from updraft.core.model import CloudOffer, CloudState, Instance, Kind, Quota
from updraft.errors import NoCapacity, QuotaExceeded
from updraft.sim.conditions import Conditions, SimCloud
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import Bought, bought_as
from updraft.sim.world.fleet import Worker

PAGE = 100  # machines on a page of the listing, ids in a call that takes several
RUNS_AFTER = 0.4  # the part of a boot after which the cloud calls the machine running
TERMINATED_SHOWN = 60.0

OfferKey = tuple[str, str, str]


class FastCloud:
    """One cloud. `up` is called with a machine that is to join, `down` with one whose inside stops.

    `brings` says what the slots of a machine really are. `made` are all its machines ever.
    """

    def __init__(
        self,
        name: str,
        sold: SimCloud,
        conditions: Conditions,
        agenda: Agenda,
        *,
        brings: Callable[[Bought], Kind],
        up: Callable[[Worker], None],
        down: Callable[[Worker], None],
    ) -> None:
        self.name = name
        self.odd: Odd = NOTHING
        self.odd_offers: Odd = NOTHING
        self.sold = sold
        self.calls: Counter[str] = Counter()
        self.listing: dict[str, Worker] = {}
        self.paid_machines = 0
        self.paid_cores = 0
        self.paid_memory = 0
        self.made: list[Worker] = []
        self._brings = brings
        self._conditions = conditions
        self._agenda = agenda
        self._up = up
        self._down = down
        self._by_key: dict[str, list[Worker]] = {}
        self._taken: Counter[OfferKey] = Counter()
        self._prices: Counter[float] = Counter()
        self._machines = 0
        self._cores = 0
        self._stock = 0
        self._shown: tuple[Instance, ...] | None = ()
        self._offers: tuple[int, tuple[CloudOffer, ...]] | None = None
        self._quota: tuple[int, Quota] | None = None

    # ------------------------------------------------------------------------------------ what it answers

    @property
    def cost(self) -> float:
        """What its machines cost per hour now."""
        return math.fsum(price * count for price, count in self._prices.items())

    def machines(self) -> tuple[Instance, ...]:
        """The instances that its listing shows; a call for each page."""
        self.calls["machines"] += max(1, -(-len(self.listing) // PAGE))
        if self._shown is None:
            now, late = self._agenda.now, self._conditions.shows_after
            self._shown = tuple(
                worker.show() for worker in self.listing.values() if worker.asked_at + late <= now
            )
        return self._shown

    def look_up(self, ids: Iterable[str]) -> Found:
        """What it says of these machines; None of those that it has forgotten."""
        self.calls["look_up"] += 1
        return {id_: None if (one := self.listing.get(id_)) is None else one.show() for id_ in ids}

    def offers(self) -> tuple[CloudOffer, ...]:
        """What it sells, with what is left of it where it tells."""
        self.calls["offers"] += 1
        if not self.sold.tells_left:
            return self.sold.offers
        if self._offers is None or self._offers[0] != self._stock:
            self._offers = (self._stock, tuple(map(self._told, self.sold.offers)))
        return self._offers[1]

    def _told(self, offer: CloudOffer) -> CloudOffer:
        if offer.left is None:
            return offer
        return replace(offer, left=max(0, offer.left - self._taken[_key(offer)]))

    def quota(self) -> Quota:
        """What is left, of machines and cores."""
        self.calls["quota"] += 1
        if self._quota is None or self._quota[0] != self._stock:
            self._quota = (self._stock, self._left())
        return self._quota[1]

    def _left(self) -> Quota:
        most = {"machines": self.sold.machines, "cores": self.sold.cores, "memory": None}
        used = {"machines": self._machines, "cores": self._cores, "memory": 0}
        left = {name: None if end is None else max(0, end - used[name]) for name, end in most.items()}
        endless = frozenset(name for name, end in most.items() if end is None)
        return Quota(**left, unlimited=endless, used_machines=self._machines, used_cores=self._cores)

    def console(self, machine: str) -> str:
        """What a simulated boot prints: nothing."""
        self.calls["console"] += 1
        return ""

    # -------------------------------------------------------------------------------------- what it does

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """Make machines, as many as there is room for, once. Raises QuotaExceeded or NoCapacity for none."""
        self.calls["launch"] += 1
        if request.key not in self._by_key:
            offer = self._offer((request.zone, request.flavor, request.market))
            count = min(request.count, self._within_quota(offer.resources.cpus), self._within_capacity(offer))
            bought = bought_as(offer, request.image, request.tags)
            kind = self._brings(bought)
            self._by_key[request.key] = [self._make(bought, kind) for _ in range(count)]
        return tuple(worker.show() for worker in self._by_key[request.key])

    def terminate(self, ids: Iterable[str]) -> None:
        """Order these to end, a hundred with each call; those that have ended or been ordered to are left."""
        now, workers = self._agenda.now, [self.listing[id_] for id_ in ids if id_ in self.listing]
        self.calls["terminate"] += -(-len(workers) // PAGE)
        for worker in workers:
            if worker.state is CloudState.TERMINATED or worker.stop_asked_at is not None:
                continue
            worker.stop_asked_at = now
            self._pay(worker, -1)
            self.turns(worker, CloudState.STOPPING)
            self._down(worker)
            self._agenda.at(now + self._conditions.stop_takes, self._ends, worker)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write the one tag that changes here, whether a machine is retiring, a hundred with each call."""
        workers = [self.listing[id_] for id_ in ids if id_ in self.listing]
        self.calls["tag"] += -(-len(workers) // PAGE)
        for worker in workers:
            worker.retiring = tags.get(TAG_RETIRING) is not None
            self.changed(worker)

    def changed(self, worker: Worker) -> None:
        """Something that the listing shows of this machine is different."""
        worker.instance = None
        self._shown = None
        self._agenda.touched()

    def turns(self, worker: Worker, state: CloudState) -> None:
        """The machine is in this state now."""
        worker.state = state
        self.changed(worker)

    # ------------------------------------------------------------------------------- a machine's life

    def _make(self, bought: Bought, kind: Kind) -> Worker:
        worker = Worker(f"{self.name}-{len(self.made) + 1:06d}", bought, kind, self._agenda.now)
        self.made.append(worker)
        self.listing[worker.id] = worker
        self._occupy(worker, 1)
        self._pay(worker, 1)
        self._live(worker)
        return worker

    def _live(self, worker: Worker) -> None:
        """Draw the life of a machine: the same seed and serial number give the same life."""
        conditions, boots = self._conditions, self.sold.boots or self._conditions.boots
        chance = random.Random(f"{conditions.seed}/{self.name}/{len(self.made)}")  # noqa: S311 - no secret
        took = chance.lognormvariate(math.log(boots.median), boots.spread)
        now, agenda = self._agenda.now, self._agenda
        self.changed(worker)
        if conditions.shows_after:
            agenda.at(now + conditions.shows_after, self.changed, worker)
        agenda.at(now + RUNS_AFTER * took, self._runs, worker)
        if chance.random() >= boots.failures:
            agenda.at(now + took, self._joins, worker)
        if worker.bought.market == "spot" and conditions.interruptions > 0:
            agenda.at(now + chance.expovariate(conditions.interruptions / 3600), self._interrupted, worker)

    def _runs(self, worker: Worker) -> None:
        if worker.state is CloudState.PENDING:
            self.turns(worker, CloudState.RUNNING)

    def _joins(self, worker: Worker) -> None:
        if worker.state is CloudState.RUNNING:
            self._up(worker)

    def _interrupted(self, worker: Worker) -> None:
        if worker.state is CloudState.TERMINATED or worker.stop_asked_at is not None:
            return
        self._pay(worker, -1)
        self._ends(worker)
        self._down(worker)

    def _ends(self, worker: Worker) -> None:
        self._occupy(worker, -1)
        self.turns(worker, CloudState.TERMINATED)
        shown = max(TERMINATED_SHOWN, 2 * self._conditions.cycle)
        self._agenda.at(self._agenda.now + shown, self._forgotten, worker)

    def _forgotten(self, worker: Worker) -> None:
        del self.listing[worker.id]
        self._shown = None
        self._agenda.touched()

    def _occupy(self, worker: Worker, sign: int) -> None:
        bought = worker.bought
        self._machines += sign
        self._cores += sign * bought.resources.cpus
        self._taken[bought.zone, bought.flavor, bought.market] += sign
        self._stock += 1

    def _pay(self, worker: Worker, sign: int) -> None:
        bought = worker.bought
        self.paid_machines += sign
        self.paid_cores += sign * bought.resources.cpus
        self.paid_memory += sign * bought.resources.memory
        self._prices[bought.price or 0.0] += sign

    def _within_quota(self, cores: int) -> int:
        rooms = []
        if self.sold.machines is not None:
            rooms.append(self.sold.machines - self._machines)
        if self.sold.cores is not None and cores > 0:
            rooms.append((self.sold.cores - self._cores) // cores)
        most = min(rooms, default=_MANY)
        if most < 1:
            raise QuotaExceeded(f"{self.name}: quota exceeded")
        return most

    def _within_capacity(self, offer: CloudOffer) -> int:
        most = _MANY if offer.left is None else offer.left - self._taken[_key(offer)]
        if most < 1:
            raise NoCapacity(f"{self.name}: no more of {'/'.join(_key(offer))}")
        return most

    def _offer(self, key: OfferKey) -> CloudOffer:
        for offer in self.sold.offers:
            if _key(offer) == key:
                return offer
        raise NoCapacity(f"{self.name}: it doesn't sell {'/'.join(key)}")


_MANY = 1_000_000_000


def _key(offer: CloudOffer) -> OfferKey:
    return (offer.zone, offer.flavor, offer.market)
