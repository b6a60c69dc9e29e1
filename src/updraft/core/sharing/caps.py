"""What each user may still have: caps per user, and per user and class, of the site and of jobs.

A user is who the schedd has authenticated: accounting groups and other names that jobs give themselves
neither lift a cap nor make a further one. What counts for a user are the cores of the user's claims, the
machines of ours that these are on, the room (joined or on its way) that waiting jobs of the user were placed
on, and what is bought for them now. A machine that takes one user's jobs alone counts whole. Room that is
kept ready is nobody's, and knows no caps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from updraft.core.model import JobGroup, Offer, Reason
from updraft.core.settings import Policy
from updraft.core.sharing.submitters import names_of, short, user_of

MANY = 1_000_000_000
USER, CLASS, TYPE = "user-limit", "user-class-limit", "type-limit"


@dataclass(frozen=True, slots=True)
class Cap:
    """At most so many machines or cores (`of`), as `place` in the settings (or the job) says."""

    most: int
    of: str
    place: str
    code: str


@dataclass(slots=True)
class Tally:
    """The machines and cores that a user has."""

    machines: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of a machine's jobs that caps leave (`content`, by group), how often, and why less than
    was asked.
    """

    content: dict[str, int]
    most: int
    stops: Mapping[str, Reason]


@dataclass(slots=True)
class Caps:
    """The caps, and what counts against them: `users` by name, `classes` by name and class.

    Names are with their domain, but where only an account is known (a machine or an annex of one's own): what
    such a one has counts for each user of that name. `take` adds what is bought, so that one of these is used
    up by one plan.
    """

    policy: Policy
    users: dict[str, Tally] = field(default_factory=dict)
    classes: dict[tuple[str, str], Tally] = field(default_factory=dict)
    _of_user: dict[tuple[str, ...], tuple[Cap, ...]] = field(default_factory=dict)
    _of_class: dict[str, tuple[Cap, ...]] = field(default_factory=dict)

    def user_cores(self, group: JobGroup, more: int) -> tuple[int, Reason] | None:
        """Cores that a group's user may still be given, who was given so many `more`; None for any."""
        found: tuple[int, Reason] | None = None
        for cap in self._user_caps(group):
            if cap.of == "cores":
                has = self._has(user_of(group)).cores + more
                found = cap.most - has, _reason(cap, group, "", has)
        return found

    def narrow(self, group: JobGroup) -> bool:
        """Whether anything but the cores of all its machines limits a group's user."""
        machines = any(cap.of == "machines" for cap in self._user_caps(group))
        classes = any(self._class_caps(worker) for worker in self.policy.classes)
        return machines or classes or group.terms.type_limit is not None

    def fit(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]]) -> Cut:
        """The number that may be had of machines of this offer with so many jobs of each group on each of
        them.
        """
        return self.held(offer, jobs)

    def held(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]]) -> Cut:
        """The number that caps leave of such machines, whatever they cost."""
        content: dict[str, int] = {}
        stops: dict[str, Reason] = {}
        used: dict[str, int] = {}
        most = MANY
        for group, number in jobs:
            name, cpus = user_of(group), max(1, group.request.cpus)
            left, why = self._left(offer, group, used.get(name, 0))
            granted = min(number, left // cpus)
            if granted < number and why is not None:
                stops[group.key] = why
            if granted > 0:
                content[group.key] = granted
                used[name] = _whole(offer) or used.get(name, 0) + granted * cpus
        for group, _ in jobs:
            if group.key in content:
                times, why = self._times(offer, group, used[user_of(group)])
                if times < most:
                    most = times
                    stops[group.key] = why
        return Cut(content, most if content else 0, stops)

    def take(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]], count: int) -> None:
        """So many machines with these jobs on each are bought."""
        used: dict[str, int] = {}
        for group, number in jobs:
            name = user_of(group)
            used[name] = used.get(name, 0) + number * max(1, group.request.cpus)
        for name, cores in used.items():
            for tally in (self._user(name), self._class(name, offer.worker_class)):
                tally.machines += count
                tally.cores += count * (_whole(offer) or cores)

    def _left(self, offer: Offer, group: JobGroup, used: int) -> tuple[int, Reason | None]:
        """Cores for jobs of this group on one machine of this offer, where others of its user have `used`."""
        left, reason = MANY, None
        whole = _whole(offer)
        for cap, tally in self._caps(offer, group):
            has = getattr(tally, cap.of)
            if cap.of == "machines":
                room = MANY if has < cap.most else 0
            elif whole:
                room = MANY if has + whole <= cap.most else 0
            else:
                room = cap.most - has - used
            if room < left:
                left, reason = room, _reason(cap, group, offer.worker_class, has)
        return max(0, left), reason

    def _times(self, offer: Offer, group: JobGroup, used: int) -> tuple[int, Reason]:
        """How many machines with so many cores of a group's user on each there may be."""
        found = MANY, Reason(USER, "")
        for cap, tally in self._caps(offer, group):
            has = getattr(tally, cap.of)
            times = (cap.most - has) // (1 if cap.of == "machines" else max(1, used))
            if times < found[0]:
                found = max(0, times), _reason(cap, group, offer.worker_class, has)
        return found

    def _caps(self, offer: Offer, group: JobGroup) -> list[tuple[Cap, Tally]]:
        if group.ready:
            return []
        worker, limit = offer.worker_class, group.terms.type_limit
        own, of_class = self._user_caps(group), self._class_caps(worker)
        if not own and not of_class and limit is None:
            return []
        name = user_of(group)
        whole, part = self._has(name), self._has_of_class(name, worker)
        found = [(cap, whole) for cap in own]
        found.extend((cap, part) for cap in of_class)
        if limit is not None:
            found.append((Cap(limit, "machines", "the job's own limit (VMTypeLimit)", TYPE), part))
        return found

    def _user_caps(self, group: JobGroup) -> tuple[Cap, ...]:
        if group.ready:
            return ()
        names = names_of(group)
        known = self._of_user.get(names)
        if known is None:
            known = self._of_user[names] = user_caps(names, self.policy)
        return known

    def _has(self, name: str) -> Tally:
        return _sum(self._user(name), [self.users.get(one) for one in _alike(name, self.users)])

    def _has_of_class(self, name: str, worker: str) -> Tally:
        alike = _alike(name, self.users)
        return _sum(self._class(name, worker), [self.classes.get((one, worker)) for one in alike])

    def _class_caps(self, worker: str) -> tuple[Cap, ...]:
        known = self._of_class.get(worker)
        if known is None:
            limits, place = self.policy.classes[worker].per_user, f"[classes.{worker}]"
            known = ()
            if limits.machines is not None:
                known = (Cap(limits.machines, "machines", f"{place} max_per_user", CLASS),)
            if limits.cores is not None:
                known = (*known, Cap(limits.cores, "cores", f"{place} max_cores_per_user", CLASS))
            self._of_class[worker] = known
        return known

    def _user(self, name: str) -> Tally:
        return self.users.setdefault(name, Tally())

    def _class(self, name: str, worker: str) -> Tally:
        return self.classes.setdefault((name, worker), Tally())


def _alike(name: str, names: Iterable[str]) -> list[str]:
    """Names that may mean the same user, as one of the two is without its domain."""
    account = short(name)
    if account != name:
        return [account]
    return [one for one in names if one != name and short(one) == name]


def _sum(own: Tally, others: Iterable[Tally | None]) -> Tally:
    for other in others:
        if other is not None:
            own = Tally(own.machines + other.machines, own.cores + other.cores)
    return own


def user_caps(names: Sequence[str], policy: Policy) -> tuple[Cap, ...]:
    """The caps of one user all in all: for machines and for cores the first table that says something.

    `names` are all that mean the user. Tables of one of these come first, in their order, then those whose
    pattern fits in the order of the file, then [limits].
    """
    tables = [(f"[users.{key}]", policy.users[key]) for key in names if key in policy.users]
    tables += [
        (f'[users."{key}"]', limits)
        for key, limits in policy.users.items()
        if key not in names and any(fnmatchcase(name, key) for name in names)
    ]
    found = []
    everybody = {"machines": policy.limits.machines_per_user, "cores": policy.limits.cores_per_user}
    for of, most in everybody.items():
        own = next(((table, value) for table, x in tables if (value := getattr(x, of)) is not None), None)
        if own is not None:
            found.append(Cap(own[1], of, f"{own[0]} {of}", USER))
        elif most is not None:
            found.append(Cap(most, of, f"[limits] {of}_per_user", USER))
    return tuple(found)


def capped(policy: Policy, groups: Sequence[JobGroup]) -> bool:
    """Whether any cap per user holds at all."""
    return (
        bool(policy.users)
        or policy.limits.cores_per_user is not None
        or policy.limits.machines_per_user is not None
        or any(worker.per_user.machines is not None for worker in policy.classes.values())
        or any(worker.per_user.cores is not None for worker in policy.classes.values())
        or any(group.terms.type_limit is not None for group in groups)
    )


def _whole(offer: Offer) -> int:
    """The cores that count for the user of such a machine, where it takes nobody else's jobs; else 0."""
    return offer.resources.cpus if offer.variant.user else 0


def _reason(cap: Cap, group: JobGroup, worker: str, has: int) -> Reason:
    name = short(user_of(group))
    of = f"{has} {cap.of}" if cap.code == USER else f"{has} {cap.of} of class {worker}"
    if cap.code == TYPE:
        return Reason("type-limit", f"{name} has {of}, and may have {cap.most}: {cap.place}")
    if cap.code == CLASS:
        return Reason("user-class-limit", f"{name} has {of}, and may have {cap.most}: {cap.place}")
    return Reason("user-limit", f"{name} has {of}, and may have {cap.most}: {cap.place}")
