"""elastiq: waiting jobs divided by a number, hosts that look idle, and credits for machines on their way.

elastiq 1.0 (https://github.com/dberzano/elastiq) and the settings that ECM, its only known distributor,
gives it. It sees the number of idle jobs, each host of the collector with how many of its slots are active,
and the running instances that its credentials show; it has one flavor and one cloud.

- An event loop ticks every 5 s; the queue, the hosts and machines in error are looked at in periods of
  their own.
- Growing: idle jobs less `per_vm` for each machine with credit must be at or above a threshold (ECM's older
  version: above it) for longer than `waiting` seconds; then ceil(what is missing / per_vm) machines are
  ordered at once, a call for each, as far as `max_vms` less running less credited machines allow. Each
  machine has credit for `deploy` seconds, joined or not.
- Joining: one that isn't among the hosts `deploy` seconds after its launch is ended.
- Shrinking: hosts without an active slot at every look for `idle` seconds are ended, as they are, in any
  order, down to `min_vms`; credits are taken back for as many.
- Machines in the cloud's error state are ended and replaced at once.
"""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from updraft.core.model import CloudState, Instance, Known, Plan, Slot, Snapshot
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import OneFlavor, ceiling
from updraft.sim.rivals.common import NOTHING_TO_DO, Hand, listed, queue, refused
from updraft.sim.workloads.workload import Arrival

CHECKS = ("queue", "vms", "errors")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Its configuration; the defaults are its own. Times in seconds.

    `max_vms` below 1 is no maximum, and None what the site's limits allow; `per_vm` None is as many jobs as a
    machine has cores. `strict` is the older comparison with the threshold. `tick` is the event loop's.
    """

    check_queue: float = 15
    check_vms: float = 45
    check_errors: float = 20
    deploy: float = 600
    threshold: int = 0
    waiting: float = 40
    per_vm: int | None = 4
    idle: float = 3600
    min_vms: int = 0
    max_vms: int | None = 3
    strict: bool = False
    tick: float = 5


DEFAULT = Numbers(max_vms=None)
SAMPLE = replace(DEFAULT, threshold=10, waiting=100)
ECM = replace(
    DEFAULT, check_queue=45, check_vms=45, deploy=1200, waiting=45, per_vm=None, idle=2400, strict=True
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What it sees at one moment. A machine and its host in the pool have the same name here.

    `waiting` is None where no schedd has answered, `hosts` where the collector hasn't.
    """

    now: float
    waiting: int | None
    hosts: Mapping[str, int] | None
    running: Sequence[str]
    broken: Sequence[str] = ()


def _found(host: str) -> str:
    return host


@dataclass(slots=True)
class Elastiq:
    """The daemon's state. `boot` starts so many machines and names them; `kill` ends one."""

    numbers: Numbers
    boot: Callable[[int], list[str]]
    kill: Callable[[str], None]
    resolve: Callable[[str], str] = _found
    seed: int = 0
    first_seen: float = -1
    alleged: int = 0
    owned: set[str] = field(default_factory=set)
    workers: dict[str, tuple[int, float]] = field(default_factory=dict)
    _events: list[tuple[float, int, str, str]] = field(default_factory=list)
    _serial: "itertools.count[int]" = field(default_factory=itertools.count)
    _cancelled: set[str] = field(default_factory=set)
    _chance: random.Random = field(init=False)
    _started: bool = False

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311 - which of equals goes first is no secret

    def due(self, now: float) -> bool:
        """Is there anything to do at this time?"""
        return not self._started or (bool(self._events) and self._events[0][0] <= now)

    def tick(self, seen: Seen) -> None:
        """Run what is due; the three checks come again after their periods."""
        if not self._started:
            self._started = True
            for name in CHECKS:
                self._at(seen.now, name)
        due = []
        while self._events and self._events[0][0] <= seen.now:
            due.append(heapq.heappop(self._events))
        for _, _, name, machine in due:
            self._run(seen, name, machine)

    def _run(self, seen: Seen, name: str, machine: str) -> None:
        if name == "queue":
            self.check_queue(seen)
            self._at(seen.now + self.numbers.check_queue, name)
        elif name == "vms":
            self.check_vms(seen)
            self._at(seen.now + (self.numbers.check_vms if seen.hosts is not None else 0), name)
        elif name == "errors":
            self.check_errors(seen)
            self._at(seen.now + self.numbers.check_errors, name)
        elif name == "expire" and machine not in self._cancelled:
            self.alleged = max(0, self.alleged - 1)
        elif name == "join" and machine not in self._cancelled:
            self.join_check(seen, machine)

    def _at(self, when: float, name: str, machine: str = "") -> None:
        heapq.heappush(self._events, (when, next(self._serial), name, machine))

    # ------------------------------------------------------------------------------------------ the checks

    def check_queue(self, seen: Seen) -> None:
        """Jobs must be too many for long enough; then everything that is missing is ordered at once."""
        if seen.waiting is None:
            return
        per_vm = self.numbers.per_vm or 1
        missing = seen.waiting - self.alleged * per_vm
        if missing < self.numbers.threshold + self.numbers.strict:
            self.first_seen = -1
        elif self.first_seen == -1:
            self.first_seen = seen.now
        elif seen.now - self.first_seen > self.numbers.waiting:
            self.order(seen, math.ceil(missing / per_vm))
            self.first_seen = -1

    def order(self, seen: Seen, count: int) -> None:
        """Boot, give credit for the deploy time, and look then whether they have joined."""
        for machine in self.scale_up(seen, count):
            self.alleged += 1
            self._at(seen.now + self.numbers.deploy, "expire", machine)
            self._at(seen.now + self.numbers.deploy, "join", machine)

    def scale_up(self, seen: Seen, count: int) -> list[str]:
        """What the quota leaves: every running instance counts, and those on their way count again."""
        most = self.numbers.max_vms
        if most is not None and most >= 1:
            count = min(count, most - len(seen.running) - self.alleged)
        made = self.boot(max(0, count))
        self.owned.update(made)
        return made

    def check_vms(self, seen: Seen) -> None:
        """Hosts that were idle at every look for long enough go; a minimum is filled up."""
        if seen.hosts is None:
            return
        running = set(seen.running)
        hosts = {host: jobs for host, jobs in seen.hosts.items() if host in running or not running}
        before = self.workers
        self.workers = {
            host: (jobs, before[host][1] if before.get(host, (-1, 0))[0] == jobs else seen.now)
            for host, jobs in hosts.items()
        }
        victims = [
            host
            for host, (jobs, since) in self.workers.items()
            if jobs == 0 and seen.now - since > self.numbers.idle
        ]
        for host in victims:
            self.workers[host] = (0, seen.now)
        if victims:
            self.alleged = max(0, self.alleged - self.scale_down(seen, victims))
        have = len(running & hosts.keys()) + self.alleged
        if self.numbers.min_vms >= 1 and have < self.numbers.min_vms:
            self.order(seen, self.numbers.min_vms - have)

    def scale_down(self, seen: Seen, victims: Iterable[str]) -> int:
        """End victims in any order, as they are; one that it doesn't own is ended, and not counted."""
        known = set(seen.running) & (seen.hosts or {}).keys()
        candidates = sorted(known & set(victims))
        self._chance.shuffle(candidates)
        allowed, ended = len(known) - self.numbers.min_vms, 0
        for machine in candidates:
            if ended >= allowed:
                break
            self.kill(machine)
            if machine in self.owned:
                self.owned.remove(machine)
                ended += 1
        return ended

    def join_check(self, seen: Seen, machine: str) -> None:
        """At the end of the deploy time a machine that isn't among the hosts is ended."""
        # Nobody catches what `resolve` raises: one host without an address ends the daemon.
        if machine not in seen.running:
            return
        hosts = seen.hosts or {}
        joined = machine in hosts if self.resolve is _found else self._resolved(machine, hosts)
        if not joined:
            self.kill(machine)

    def _resolved(self, machine: str, hosts: Iterable[str]) -> bool:
        return self.resolve(machine) in {self.resolve(host) for host in hosts}

    def check_errors(self, seen: Seen) -> None:
        """Machines in error are ended and replaced at once."""
        broken = [machine for machine in seen.broken if machine in self.owned]
        for machine in broken:
            self.kill(machine)
            self.failed(machine)
        self.order(seen, len(broken))

    def failed(self, machine: str) -> None:
        """A machine will not come: its credit is gone."""
        self.owned.discard(machine)
        self._cancelled.add(machine)
        self.alleged = max(0, self.alleged - 1)


# ---------------------------------------------------------------------------------- in the simulation


def name_of(instance: Instance) -> str:
    """What a machine is called by its credentials: each is launched alone, under a key of its own."""
    return instance.launch_key or instance.id


def hosts_of(snapshot: Snapshot) -> dict[str, int] | None:
    """The pool's hosts by the name of their machine, with how many of their slots are active."""
    if not isinstance(snapshot.collector, Known):
        return None
    found: dict[str, int] = {}
    for slot in snapshot.collector.value.slots:
        name = slot.launch_key or slot.name.split("@", 1)[1]
        found[name] = found.get(name, 0) + _active(slot)
    return found


def _active(slot: Slot) -> int:
    if not slot.partitionable:
        return slot.activity != "Idle"
    children = slot.children
    return sum(child.activity != "Idle" for child in children) if children else 0


class ElastiqRule:
    """elastiq in the place of the plan; it sees what the original sees.

    `flavor` names the one flavor (see `OneFlavor` for what it is otherwise). `strangers` are running
    instances of others that its credentials show, the head among them: they count against `max_vms`, and a
    site that knows sets `max_vms` higher by as many, so there are none here. `resolve` is its resolver.
    """

    def __init__(
        self,
        numbers: Numbers = DEFAULT,
        workload: Sequence[Arrival] = (),
        *,
        flavor: str = "",
        strangers: Sequence[str] = (),
        resolve: Callable[[str], str] = _found,
    ) -> None:
        self.daemon = Elastiq(numbers, self._boot, self._kill, resolve)
        self.strangers = tuple(strangers)
        self._numbers = numbers
        self._flavor = OneFlavor(flavor, numbers.per_vm)
        self._flavor.see_workload(workload)
        self._hand = Hand("elastiq")
        self._snapshot: Snapshot | None = None
        self._machines: dict[str, Instance] = {}
        self._looked = float("-inf")
        self._ordered: set[str] = set()

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        if not self.daemon.due(snapshot.now):
            return NOTHING_TO_DO
        self._snapshot = snapshot
        seen = self._look(snapshot)
        self._configure(policy)
        for machine in sorted(refused(snapshot, self._looked) & self._ordered):
            self.daemon.failed(machine)  # an order that fails is logged, and gives no credit
        self._looked, self._ordered = snapshot.now, set()
        self.daemon.tick(seen)
        return self._hand.plan()

    def _configure(self, policy: Policy) -> None:
        """What a site would have written down knowing its flavor: jobs per machine, and the most machines."""
        offer = self._flavor.offer(self._snapshot) if self._snapshot is not None else None
        if offer is None:
            return
        numbers = self._numbers
        if numbers.per_vm is None:
            numbers = replace(numbers, per_vm=max(1, offer.resources.cpus))
        if numbers.max_vms is None:
            most = ceiling(policy, offer)
            numbers = replace(numbers, max_vms=0 if most is None else max(1, most))
        self.daemon.numbers = numbers

    def _look(self, snapshot: Snapshot) -> Seen:
        groups = queue(snapshot)
        self._flavor.see(groups or ())
        self._machines = {name_of(one): one for one in listed(snapshot)}
        states = self._machines.items()
        return Seen(
            now=snapshot.now,
            waiting=None if groups is None else sum(group.idle for group in groups),
            hosts=hosts_of(snapshot),
            running=[*(name for name, one in states if one.state is CloudState.RUNNING), *self.strangers],
            broken=[name for name, one in states if one.state is CloudState.ERROR],
        )

    def _boot(self, count: int) -> list[str]:
        if self._snapshot is None or (offer := self._flavor.offer(self._snapshot)) is None:
            return []
        keys = [self._hand.launch(offer, 1, self._snapshot.now) for _ in range(count)]
        self._ordered.update(keys)
        return keys

    def _kill(self, name: str) -> None:
        if name in self._machines:
            self._hand.end(self._machines[name])
