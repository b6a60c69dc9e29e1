"""Budgets of users and accounting groups, held against what is bought for their jobs.

What machines cost is charged as `updraft usage` charges it: to those who have claims on them, and to those
whose waiting jobs were placed there, in proportion to their cores; where users pay for what idles, all of a
machine's price, else the part of its cores. A user is who the schedd has authenticated; accounting groups
count where they are trusted. Room that is kept ready is nobody's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Room
from updraft.core.limits.spending import affordable
from updraft.core.limits.standings import Payer, SpendingBudgets, total
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.model import (
    BudgetScope,
    JobGroup,
    Machine,
    MachineId,
    Offer,
    Phase,
    Reason,
    Spending,
    Variant,
)
from updraft.core.settings import Policy, SpendingLimit
from updraft.core.sharing.caps import MANY, Caps, Cut
from updraft.core.sharing.submitters import group_of, names_of, short, user_of

_PEOPLE = (BudgetScope.USER, BudgetScope.GROUP)
Person = tuple[str, str]
"""A user, as the schedd has authenticated one, and what the negotiator calls that user's jobs."""


@dataclass(slots=True)
class PaidCaps(Caps):
    """Caps, and besides what budgets of money leave to users and groups; `take` adds to what these run."""

    budgets: SpendingBudgets | None = None
    _known: dict[tuple[str, str], list[tuple[SpendingLimit, Payer]]] = field(default_factory=dict)

    def fit(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]]) -> Cut:
        """What caps and budgets leave of machines of this offer with so many jobs of each group on each."""
        cut = self.held(offer, jobs)
        content, stops, most = dict(cut.content), dict(cut.stops), cut.most
        groups = {group.key: group for group, _ in jobs}
        while content:
            found = self._afforded(offer, [(groups[key], number) for key, number in content.items()])
            out = [key for key, (times, _) in found.items() if times < 1]
            if not out:
                least = min(((times, key) for key, (times, _) in found.items()), default=(MANY, ""))
                if least[0] < most and (why := found[least[1]][1]) is not None:
                    most, stops[least[1]] = least[0], why
                return Cut(content, most, stops)
            for key in out:  # the others pay for the whole machine then: they are asked anew
                if (why := found[key][1]) is not None:
                    stops[key] = why
                del content[key]
        return Cut({}, 0, stops)

    def take(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]], count: int) -> None:
        """So many machines with these jobs on each are bought."""
        Caps.take(self, offer, jobs, count)
        assert self.budgets is not None  # noqa: S101
        for payer, part in self._parts(offer, jobs).items():
            self.budgets.add(payer, None if offer.price is None else count * offer.price * part)

    def _afforded(
        self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]]
    ) -> dict[str, tuple[int, Reason | None]]:
        """How many such machines the budgets of each group's payers allow, and why no more; without any: of
        none."""
        assert self.budgets is not None  # noqa: S101
        parts = self._parts(offer, jobs)
        found: dict[str, tuple[int, Reason | None]] = {}
        for group, _ in jobs:
            for limit, payer in self._limits(group):
                name = payer[1] if limit.scope is BudgetScope.USER else ""
                fit = affordable(self.budgets.standing(limit, name), offer, parts[payer])
                if fit[0] < found.get(group.key, (MANY, None))[0]:
                    found[group.key] = fit
        return found

    def _parts(self, offer: Offer, jobs: Sequence[tuple[JobGroup, int]]) -> dict[Payer, float]:
        """The part of such a machine's price that each payer has to pay."""
        cores = {group.key: number * max(1, group.request.cpus) for group, number in jobs}
        whole = _whole(sum(cores.values()), offer.resources.cpus, self.policy)
        found: dict[Payer, float] = {}
        for group, _ in jobs:
            for payer in dict.fromkeys(payer for _, payer in self._limits(group)):
                found[payer] = found.get(payer, 0.0) + cores[group.key] / whole
        return found

    def _limits(self, group: JobGroup) -> list[tuple[SpendingLimit, Payer]]:
        if group.ready or self.budgets is None:
            return []
        key = group.key, group.submitter  # jobs of high priority are of another party
        if key not in self._known:
            user = user_of(group)
            self._known[key] = self.budgets.of_people(names_of(group), user, group_of(user, group.submitter))
        return self._known[key]


def paid(
    caps: Caps | None,
    budgets: SpendingBudgets | None,
    groups: Sequence[JobGroup],
    fillings: Sequence[Filling],
    space: Room,
    machines: Iterable[Machine],
    coming: Iterable[Outstanding],
) -> Caps | None:
    """The caps, with the budgets of users and accounting groups where there are any.

    `groups` are all that wait, `fillings` where their jobs were placed in `space`: from then on what `burn`
    says of people counts these too.
    """
    if budgets is None or not _have(budgets):
        return caps
    burn_of_people(budgets, machines, coming, _placed(groups, fillings, space))
    if caps is None:
        return PaidCaps(budgets.policy, budgets=budgets)
    return PaidCaps(caps.policy, caps.users, caps.classes, budgets=budgets)


def told(
    budgets: SpendingBudgets | None, machines: Iterable[Machine], coming: Iterable[Outstanding]
) -> tuple[Spending, ...]:
    """How all budgets stand, once everything is bought."""
    if budgets is None:
        return ()
    if _have(budgets) and not budgets.of_people_known:
        burn_of_people(budgets, machines, coming)
    return budgets.told()


def _have(budgets: SpendingBudgets) -> bool:
    return any(one.scope in _PEOPLE for one in budgets.policy.spending)


def burn_of_people(
    budgets: SpendingBudgets,
    machines: Iterable[Machine],
    coming: Iterable[Outstanding],
    placed: Mapping[MachineId, Mapping[Person, int]] | None = None,
) -> None:
    """Put into `budgets` what runs for users and groups per hour, by claims and by jobs that were placed."""
    placed = placed or {}
    costs: dict[Payer, list[float | None]] = {}
    known: dict[Person, list[Payer]] = {}
    for cores, size, price in _all_parts(machines, coming, placed):
        whole = _whole(sum(cores.values()), size, budgets.policy)
        for person, number in cores.items():
            if person not in known:
                known[person] = _payers(budgets, *person)
            for payer in known[person]:
                costs.setdefault(payer, []).append(None if price is None else price * number / whole)
    budgets.of_people_known = True
    budgets.runs({payer: total(each) for payer, each in costs.items()})


_Part = tuple[Mapping[Person, int], int, float | None]


def _all_parts(
    machines: Iterable[Machine],
    coming: Iterable[Outstanding],
    placed: Mapping[MachineId, Mapping[Person, int]],
) -> Iterable[_Part]:
    """Of each machine: the cores that people have of it, its size in cores, and its price."""
    for machine in machines:
        if machine.phase is Phase.GONE:
            continue
        record, cores = machine.record, machine.claimed
        if placed and (more := placed.get(machine.key)):
            cores = dict(more)
            for person, number in machine.claimed.items():
                cores[person] = cores.get(person, 0) + number
        if cores or record.variant:
            size = record.resources.cpus
            yield _whole_for(record.variant, size, cores), size, record.price
    for item in coming:
        size, price = item.launch.resources.cpus, item.launch.price
        for key in item.keys:
            some = placed.get(key, {})
            yield _whole_for(item.launch.variant, size, dict(some)), size, price


def _whole_for(variant: Variant, size: int, cores: Mapping[Person, int]) -> Mapping[Person, int]:
    """A machine that takes one user's jobs alone is that user's, also while nothing runs there."""
    if not cores and (only := variant.user):
        return {(only, ""): max(1, size)}
    return cores


def _whole(cores: int, size: int, policy: Policy) -> int:
    """The cores by which a machine's price is shared out."""
    return max(1, cores if policy.idle_charged else max(cores, size))


def _payers(budgets: SpendingBudgets, user: str, submitter: str) -> list[Payer]:
    """Whose budgets a claim of this user comes under. An account without its domain is each of that name."""
    trusted = submitter if budgets.policy.groups_trusted else ""
    names = tuple(dict.fromkeys((short(trusted or user), user, short(user))))
    found = budgets.of_people(names, user, group_of(user, trusted))
    return list(dict.fromkeys(payer for _, payer in found))


def _placed(
    groups: Sequence[JobGroup], fillings: Sequence[Filling], space: Room
) -> dict[MachineId, dict[Person, int]]:
    """The cores of jobs that found room, by machine and user."""
    of = {group.key: group for group in groups}
    found: dict[MachineId, dict[Person, int]] = {}
    for filling in fillings:
        for key, bins in filling.placed.items():
            group = of[key]
            if group.ready:
                continue
            person, cpus = (user_of(group), group.submitter), max(1, group.request.cpus)
            for name, number in bins.items():
                machine = space.owner.get(name)
                if machine is not None:
                    cores = found.setdefault(machine, {})
                    cores[person] = cores.get(person, 0) + number * cpus
    return found
