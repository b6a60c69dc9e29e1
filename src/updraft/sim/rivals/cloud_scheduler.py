"""Cloud Scheduler, version 1: a machine for each job, users' shares of the machines, and peaceful retirement.

https://github.com/hep-gc/cloud-scheduler with its fair share, on the metric of slots. It sees every job,
every machine of the collector and every machine of its own; jobs are of a *type*, here a user with what his
jobs ask for, and machines are made for a type, of the flavor that holds one such job at the least price.

- Every 5 s: a type wants machines while it has more jobs, idle and running, than machines. Its share of the
  machines is held against what it is due: one part of as many as there are users that want, for the type of
  each user's most urgent job. One machine at most for each user and type, if that isn't above its share, or
  if nobody below his share has a cloud with room. Clouds are tried in the order of how full they are.
- Machines of a type beyond its jobs retire if nothing runs on them (for `keep_alive` seconds): they take no
  new job, and are ended when they are empty. Those of a type without any job are ended at once.
- Only where somebody below his share has no room anywhere, as many machines of those above theirs go as
  would right it: first those that are starting, at once, then busy ones, which finish their jobs.
- Machines that have run for `register` seconds and are not in the pool are ended, those in error after
  `errors`.

A look that comes later than after 5 s does what the rounds between would have done.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from updraft.core.model import (
    CloudState,
    DrainMode,
    Instance,
    JobGroup,
    Offer,
    Plan,
    Resources,
    Slot,
    Snapshot,
)
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import Headroom, on_demand, price_of, slot_of
from updraft.sim.rivals.common import (
    NOTHING_TO_DO,
    Departures,
    Hand,
    Key,
    busy,
    in_pool,
    key_of,
    listed,
    queue,
)
from updraft.sim.workloads.workload import Arrival

EXACT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A user and what his jobs ask for. There is one object for each, so that it is compared as such."""

    owner: str
    request: Resources

    @property
    def order(self) -> tuple[str, Resources]:
        """By which types are sorted."""
        return self.owner, self.request


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults are its own. Times in seconds.

    `job_per_core` counts as many jobs on a machine as it holds, one otherwise. `user_limit` is the most
    machines of one user, `max_starting` the most that may be starting, each None without end.
    """

    every: float = 5.0
    keep_alive: float = 0.0
    register: float = 900.0
    errors: float = 600.0
    job_per_core: bool = False
    user_limit: int | None = None
    max_starting: int | None = None


DEFAULT = Settings()


@dataclass(slots=True)
class _Type:
    """One type at one look: its jobs, its machines by what they do, and where new ones may come from."""

    idle: int = 0
    running: int = 0
    urgent: tuple[int, float] = (0, 0.0)
    starting: int = 0
    joined: int = 0
    offers: tuple[Offer, ...] = ()
    per_machine: int = 1

    @property
    def machines(self) -> int:
        return self.starting + self.joined

    @property
    def unscheduled(self) -> int:
        """Idle jobs for which no machine was made yet."""
        return max(0, min(self.idle, self.idle + self.running - self.machines * self.per_machine))


class CloudScheduler:
    """Fair share, by the slot."""

    def __init__(self, settings: Settings = DEFAULT, workload: Sequence[Arrival] = ()) -> None:
        self.settings = settings
        self._hand = Hand("cloud-scheduler")
        self._leaving = Departures()
        self._made: dict[str, Type] = {}
        self._user: dict[Key, Type] = {}
        self._known: dict[tuple[str, Resources], Type] = {}
        self._claims: dict[Key, tuple[Slot, tuple[Type, ...]]] = {}
        self._seen: dict[Key, tuple[CloudState, float]] = {}
        self._idle: dict[Key, float] = {}
        self._groups: tuple[JobGroup, ...] = ()
        self._looked: float | None = None

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        now, every = snapshot.now, self.settings.every
        rounds = 1 if self._looked is None else int((now - self._looked) / every + EXACT)
        slots = in_pool(snapshot)
        if rounds < 1 or slots is None:
            return NOTHING_TO_DO
        self._looked = now
        groups = queue(snapshot)
        self._groups = self._groups if groups is None else groups
        machines = listed(snapshot)
        self._leaving.settle(self._hand, machines, slots, now)
        head = Headroom(snapshot, policy, machines, self._hand.unseen(snapshot, machines))
        types = self._types(snapshot, machines, slots)
        staying = self._clean_up(machines, slots, types, now)
        for _ in range(rounds):
            if not self._schedule(types, head, now):
                break
        self._retire(staying, types, now)
        self._balance(staying, slots, types, head, now)
        return self._hand.plan()

    # ------------------------------------------------------------------------------------------- looking

    def _types(
        self, snapshot: Snapshot, machines: Iterable[Instance], slots: Mapping[Key, Sequence[Slot]]
    ) -> dict[Type, _Type]:
        types: defaultdict[Type, _Type] = defaultdict(_Type)
        for group in self._groups:
            found = types[self._type(group.owner, group.request)]
            if group.idle and (not found.idle or (-group.priority, group.oldest) < found.urgent):
                found.urgent = (-group.priority, group.oldest)
            found.idle += group.idle
        self._count_running(slots, types)
        for one in machines:
            key = key_of(one)
            if one.state is CloudState.ERROR or key in self._leaving:
                continue
            found = types[self._type_of(one)]
            if key in slots:
                found.joined += 1
            else:
                found.starting += 1
        for count, name in self._coming(machines):
            types[name].starting += count
        for name, found in types.items():
            if found.idle:
                self._offers(found, name.request, snapshot)
        return types

    def _type(self, owner: str, request: Resources) -> Type:
        return self._known.setdefault((owner, request), Type(owner, request))

    def _coming(self, machines: Iterable[Instance]) -> list[tuple[int, Type]]:
        keys = self._hand.waiting(machines)
        return [(count, self._made[key]) for key, count in keys.items()]

    def _type_of(self, one: Instance) -> Type:
        """The type of who works on it or did so last; of one that is new, the type that it was made for."""
        return self._user.get(key_of(one)) or self._made.get(one.launch_key) or self._type("", Resources())

    def _count_running(self, slots: Mapping[Key, Sequence[Slot]], types: defaultdict[Type, _Type]) -> None:
        """How many jobs of each type run, and whose each machine is: his who has got it."""
        by_user: defaultdict[str, list[Type]] = defaultdict(list)
        for name in types:
            by_user[name.owner].append(name)
        counts: Counter[Type] = Counter()
        user, self._user = self._user, {}
        before, self._claims = self._claims, {}
        for key, several in slots.items():
            read = before.get(key)
            if read is None or read[0] is not several[0] or len(several) > 1:
                claims = [child for slot in several for child in slot.children]
                read = (several[0], tuple(self._claimed(one.user, one.resources, by_user) for one in claims))
            self._claims[key] = read
            counts.update(read[1])
            if read[1]:
                self._user[key] = read[1][-1]
            elif key in user:
                self._user[key] = user[key]
        for name, count in counts.items():
            types[name].running = count

    def _claimed(self, user: str, share: Resources, by_user: Mapping[str, list[Type]]) -> Type:
        """A claim is of the user's type that fills most of it."""
        owner = user.split("@")[0]
        held = [name for name in by_user.get(owner, ()) if share.holds(name.request)]
        return max(held, key=lambda name: name.request) if held else self._type(owner, share)

    def _offers(self, found: _Type, request: Resources, snapshot: Snapshot) -> None:
        """For each cloud the flavor that holds such a job at the least price per job."""
        best: dict[str, tuple[tuple[float, int, str], int, Offer]] = {}
        for offer in on_demand(snapshot.offers):
            copies = slot_of(offer, snapshot).holds(request)
            if copies < 1:
                continue
            copies = copies if self.settings.job_per_core else 1
            rank = (price_of(offer) / copies, offer.resources.cpus, offer.key)
            if offer.cloud not in best or rank < best[offer.cloud][0]:
                best[offer.cloud] = (rank, copies, offer)
        found.offers = tuple(offer for _, _, offer in best.values())
        found.per_machine = min((copies for _, copies, _ in best.values()), default=1)

    # ------------------------------------------------------------------------------------------- growing

    def _schedule(self, types: Mapping[Type, _Type], head: Headroom, now: float) -> bool:
        """One round of the scheduler; whether it has made anything."""
        wanting = sorted(
            (name for name, found in types.items() if found.unscheduled and found.offers),
            key=lambda name: (name.owner, types[name].urgent, name.request),
        )
        if not wanting or self._too_many_starting(types):
            return False
        diff = shares(types, wanting)
        blocked = any(diff[name] < -EXACT and self._room(types[name], head) for name in wanting)
        made = False
        for name in wanting:
            if (diff[name] <= EXACT or not blocked) and not self._at_limit(name.owner, types):
                made = self._create(name, types[name], head, now) or made
        return made

    def _too_many_starting(self, types: Mapping[Type, _Type]) -> bool:
        most = self.settings.max_starting
        return most is not None and sum(found.starting for found in types.values()) >= most

    def _at_limit(self, user: str, types: Mapping[Type, _Type]) -> bool:
        most = self.settings.user_limit
        return (
            most is not None
            and sum(one.machines for name, one in types.items() if name.owner == user) >= most
        )

    def _room(self, found: _Type, head: Headroom) -> bool:
        return any(head.room(offer) > 0 for offer in found.offers)

    def _create(self, name: Type, found: _Type, head: Headroom, now: float) -> bool:
        for offer in sorted(found.offers, key=lambda offer: (head.fill(offer.cloud), offer.key)):
            if head.room(offer) > 0:
                head.take(offer, 1)
                found.starting += 1
                self._made[self._hand.launch(offer, 1, now)] = name
                return True
        return False

    # ----------------------------------------------------------------------------------------- shrinking

    def _clean_up(
        self,
        machines: Iterable[Instance],
        slots: Mapping[Key, Sequence[Slot]],
        types: Mapping[Type, _Type],
        now: float,
    ) -> list[Instance]:
        """End what is broken or never came, and what nobody has a job for; the others stay for now."""
        seen, idle, staying = self._seen, self._idle, []
        self._seen, self._idle = {}, {}
        for one in machines:
            key = key_of(one)
            if key in self._leaving:
                continue
            shown = slots.get(key)
            if shown is None:
                state, since = seen.get(key, (one.state, now))
                self._seen[key] = (one.state, since if state is one.state else now)
                over = self._never_came(key, now)
            elif busy(shown):
                over = False
            else:
                self._idle[key] = idle.get(key, now)
                over = self._unwanted(one, types, now)
            if over:
                self._hand.end(one)
            else:
                staying.append(one)
        return staying

    def _never_came(self, key: Key, now: float) -> bool:
        state, since = self._seen[key]
        if state is CloudState.ERROR:
            return now - since >= self.settings.errors
        return state is CloudState.RUNNING and now - since > self.settings.register

    def _unwanted(self, one: Instance, types: Mapping[Type, _Type], now: float) -> bool:
        """Nothing runs on it, and no job of its type is left."""
        found = types.get(self._type_of(one))
        jobs = found.idle + found.running if found is not None else 0
        return not jobs and self._idle_long(key_of(one), now)

    def _idle_long(self, key: Key, now: float) -> bool:
        return key in self._idle and now - self._idle[key] >= self.settings.keep_alive

    def _retire(self, staying: Iterable[Instance], types: Mapping[Type, _Type], now: float) -> None:
        excess = {
            name: found.joined - -(-(found.idle + found.running) // found.per_machine)
            for name, found in types.items()
        }
        for one in staying:
            key = key_of(one)
            if key in self._idle and excess.get(self._type_of(one), 0) > 0 and self._idle_long(key, now):
                excess[self._type_of(one)] -= 1
                self._leaving.close(self._hand, one, DrainMode.BUSY, now)

    def _balance(
        self,
        staying: Sequence[Instance],
        slots: Mapping[Key, Sequence[Slot]],
        types: Mapping[Type, _Type],
        head: Headroom,
        now: float,
    ) -> None:
        """Machines of those above their share go, where somebody below his has no room anywhere."""
        wanting = [name for name, found in types.items() if found.unscheduled and found.offers]
        # Who has jobs for his machines keeps his share: what is taken from him he would want back at once.
        diff = shares(types, [name for name, found in types.items() if found.idle or found.running])
        total = sum(found.machines for found in types.values())
        below = [name for name in wanting if diff[name] < -EXACT]
        if not below or any(self._room(types[name], head) for name in below):
            return
        needed = sum(min(round(-diff[name] * total), types[name].unscheduled) for name in below)
        needed -= len(self._leaving)
        for name in sorted((n for n in diff if diff[n] > EXACT), key=lambda n: (-diff[n], n.order)):
            count = min(needed, round(diff[name] * total))
            mine = [one for one in staying if self._type_of(one) == name and key_of(one) not in self._leaving]
            for one in sorted(mine, key=lambda one: key_of(one) in slots)[: max(0, count)]:
                needed -= 1
                if key_of(one) in slots:
                    self._leaving.close(self._hand, one, DrainMode.BUSY, now)
                else:
                    self._hand.end(one)


def shares(types: Mapping[Type, _Type], wanting: Sequence[Type]) -> dict[Type, float]:
    """How far each type is above (positive) or below its share of the machines.

    `wanting` are the types that want machines. Each of their users is due an equal part, for the type of
    his most urgent job; a type that is neither due anything nor has a machine is at its share.
    """
    total = sum(found.machines for found in types.values())
    users: dict[str, Type] = {}
    for name in sorted(wanting, key=lambda name: (types[name].urgent, name.order)):
        users.setdefault(name.owner, name)
    due = set(users.values())
    return {
        name: (found.machines / total if total else 0.0) - (1 / len(users) if name in due else 0.0)
        for name, found in types.items()
    }
