"""A cloud of a fast simulation: quotas, boots that take their time or fail, and an account of every call."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from updraft.clouds.base import Found
from updraft.core.model import (
    CloudOffer,
    CloudState,
    CloudView,
    Instance,
    Known,
    Launch,
    LaunchRecord,
    MachineRecord,
    Quota,
)
from updraft.errors import NoCapacity, QuotaExceeded
from updraft.observe.boots import LATEST, Boots
from updraft.observe.byid import ById
from updraft.observe.sources import VIRTUAL
from updraft.sim.conditions import Conditions, SimCloud
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.fleet import Worker

PAGE = 100  # machines on a page of the listing, ids in a call that takes several
OFFERS_EVERY = 60.0  # how often the daemon asks a cloud again for its offers, and for its quota
QUOTA_EVERY = 15.0
RUNS_AFTER = 0.4  # the part of a boot after which the cloud calls the machine running
TERMINATED_SHOWN = 60.0

OfferKey = tuple[str, str, str]


class FastCloud:
    """One cloud. `up` is called with a machine that is to join, `down` with one whose inside stops."""

    def __init__(
        self,
        name: str,
        sold: SimCloud,
        conditions: Conditions,
        agenda: Agenda,
        *,
        up: Callable[[Worker], None],
        down: Callable[[Worker], None],
    ) -> None:
        self.name = name
        self.sold = sold
        self.calls: Counter[str] = Counter()
        self.listing: dict[str, Worker] = {}
        self.paid_machines = 0
        self.paid_cores = 0
        self.paid_memory = 0
        self.stock = 0
        self._conditions = conditions
        self._agenda = agenda
        self._up = up
        self._down = down
        self._asked: dict[str, float] = {}
        self._taken: Counter[OfferKey] = Counter()
        self._prices: Counter[float] = Counter()
        self._machines = 0
        self._cores = 0
        self._serial = 0
        self._shown: tuple[Instance, ...] | None = ()
        self._by_id = ById(f"cloud {name}", math.inf, VIRTUAL)
        self._boots = Boots(name, math.inf, VIRTUAL)
        self._booting: dict[str, Worker] = {}
        self._offers: tuple[int, tuple[CloudOffer, ...]] | None = None

    # ------------------------------------------------------------------------------------ what it answers

    @property
    def cost(self) -> float:
        """What its machines cost per hour now."""
        return math.fsum(price * count for price, count in self._prices.items())

    def view(self, now: float, asked: Iterable[str] = ()) -> CloudView:
        """What the daemon sees of it, and what it says of the machines with these ids."""
        quota = Quota(
            machines=None if self.sold.machines is None else max(0, self.sold.machines - self._machines),
            cores=None if self.sold.cores is None else max(0, self.sold.cores - self._cores),
            unlimited=frozenset(
                name
                for name, most in (
                    ("machines", self.sold.machines),
                    ("cores", self.sold.cores),
                    ("memory", None),
                )
                if most is None
            ),
        )
        found = self._by_id.found(self, sorted(asked), 0.0, lambda: now)
        return CloudView(Known(self.machines(), now), Known(self.offers(), now), Known(quota, now), found)

    def look_up(self, ids: Iterable[str]) -> Found:
        """What it says of these machines; None of those that it has forgotten."""
        self.calls["look_up"] += 1
        return {id_: None if (one := self.listing.get(id_)) is None else one.show() for id_ in ids}

    def asked(self, now: float) -> None:
        """Account for the calls of a look at this time, as often as the daemon asks each question."""
        self.calls["machines"] += max(1, -(-len(self.listing) // PAGE))
        for name, every in (("offers", OFFERS_EVERY), ("quota", QUOTA_EVERY)):
            if now - self._asked.get(name, -math.inf) >= every:
                self._asked[name] = now
                self.calls[name] += 1

    def console(self, machine: str) -> str:
        """What a simulated boot prints: nothing."""
        self.calls["console"] += 1
        return ""

    def consoles(self, records: Mapping[tuple[str, str], MachineRecord], now: float) -> None:
        """Read the consoles that the daemon reads of machines that boot; `records` are the ledger's."""
        booting = []
        for name, worker in list(self._booting.items()):
            record = records.get((self.name, name))
            over = record is None or record.joined_at is not None or record.end is not None
            if record is None or over or now - record.requested_at >= LATEST:
                del self._booting[name]
            elif worker.asked_at + self._conditions.shows_after <= now:
                booting.append((worker.show(), record))
        if booting:
            instances, known = zip(*booting, strict=True)
            self._boots.look(self, instances, known, lambda: now)

    def machines(self) -> tuple[Instance, ...]:
        """The instances that its listing shows."""
        if self._shown is None:
            now, late = self._agenda.now, self._conditions.shows_after
            self._shown = tuple(
                worker.show() for worker in self.listing.values() if worker.asked_at + late <= now
            )
        return self._shown

    def offers(self) -> tuple[CloudOffer, ...]:
        """What it sells, with what is left of it where it tells."""
        if not self.sold.tells_left:
            return self.sold.offers
        if self._offers is None or self._offers[0] != self.stock:
            told = tuple(
                offer if offer.left is None else _left(offer, offer.left - self._taken[_key(offer)])
                for offer in self.sold.offers
            )
            self._offers = (self.stock, told)
        return self._offers[1]

    # -------------------------------------------------------------------------------------- what it does

    def launch(
        self, action: Launch, record: LaunchRecord, make: Callable[[str, float], Worker]
    ) -> list[Worker]:
        """Make machines, as many as there is room for. Raises QuotaExceeded or NoCapacity for none."""
        self.calls["launch"] += 1
        offer = action.offer
        key = (offer.zone, offer.flavor, offer.market)
        count = min(action.count, self._within_quota(offer.resources.cpus), self._within_capacity(key))
        made = []
        for _ in range(count):
            self._serial += 1
            worker = make(f"{self.name}-{self._serial:06d}", self._agenda.now)
            self._occupy(worker, 1)
            self._pay(worker, 1)
            self.listing[worker.id] = worker
            self._booting[worker.id] = worker
            self._live(worker)
            made.append(worker)
        return made

    def terminate(self, workers: Sequence[Worker]) -> None:
        """Order these to end; those that have ended or been ordered to are left alone."""
        self.calls["terminate"] += -(-len(workers) // PAGE)
        now = self._agenda.now
        for worker in workers:
            if worker.state is CloudState.TERMINATED or worker.stop_asked_at is not None:
                continue
            worker.stop_asked_at = now
            self._pay(worker, -1)
            self.turns(worker, CloudState.STOPPING)
            self._down(worker)
            self._agenda.at(now + self._conditions.stop_takes, self._ends, worker)

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

    def _live(self, worker: Worker) -> None:
        """Draw the life of a machine: the same seed and serial number give the same life."""
        conditions, boots = self._conditions, self.sold.boots or self._conditions.boots
        chance = random.Random(f"{conditions.seed}/{self.name}/{self._serial}")  # noqa: S311 - no secret
        took = chance.lognormvariate(math.log(boots.median), boots.spread)
        now, agenda = self._agenda.now, self._agenda
        self.changed(worker)
        if conditions.shows_after:
            agenda.at(now + conditions.shows_after, self.changed, worker)
        agenda.at(now + RUNS_AFTER * took, self._runs, worker)
        if chance.random() >= boots.failures:
            agenda.at(now + took, self._joins, worker)
        if worker.launch.market == "spot" and conditions.interruptions > 0:
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
        launch = worker.launch
        self._machines += sign
        self._cores += sign * launch.resources.cpus
        self._taken[launch.zone, launch.flavor, launch.market] += sign
        self.stock += 1

    def _pay(self, worker: Worker, sign: int) -> None:
        launch = worker.launch
        self.paid_machines += sign
        self.paid_cores += sign * launch.resources.cpus
        self.paid_memory += sign * launch.resources.memory
        self._prices[launch.price or 0.0] += sign

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

    def _within_capacity(self, key: OfferKey) -> int:
        for offer in self.sold.offers:
            if _key(offer) == key:
                most = _MANY if offer.left is None else offer.left - self._taken[key]
                if most < 1:
                    raise NoCapacity(f"{self.name}: no more of {'/'.join(key)}")
                return most
        raise NoCapacity(f"{self.name}: it doesn't sell {'/'.join(key)}")


_MANY = 1_000_000_000


def _key(offer: CloudOffer) -> OfferKey:
    return (offer.zone, offer.flavor, offer.market)


def _left(offer: CloudOffer, left: int) -> CloudOffer:
    return CloudOffer(
        offer.cloud,
        offer.zone,
        offer.flavor,
        offer.market,
        offer.resources,
        offer.price,
        max(0, left),
        offer.arch,
    )
