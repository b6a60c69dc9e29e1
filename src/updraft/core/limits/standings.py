"""Every budget of money as it stands: what the records say was spent, what runs, what is bought meanwhile.

The records say what was spent up to their last look; from there on what runs now is taken to have run. Costs
whose price wasn't known then count at the price of today's offers of that flavor, the dearest, where these
have one. What nobody knows is no zero: see `spending`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from updraft.core.limits.ceilings import MANY
from updraft.core.limits.spending import affordable, warning
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.machines.witnesses import borne_out
from updraft.core.model import (
    PLAIN,
    BudgetPeriod,
    BudgetScope,
    Known,
    Machine,
    MachineId,
    Offer,
    Phase,
    Reason,
    Snapshot,
    Spending,
    Spent,
    SpentRow,
    Variant,
)
from updraft.core.model.spent import HOUR
from updraft.core.settings import DAY, Policy, SpendingLimit
from updraft.core.sharing.submitters import short

STALE = 300.0
"""Seconds after which the records say too little of what was spent since."""
MOST_TOLD = 200
"""Users' budgets that are told of, those first of which the largest part is spent."""
NOT_TRUSTED = Reason(
    "groups-not-trusted",
    "[groups] has budgets, and jobs' accounting groups aren't trusted: these budgets hold nothing back; see "
    "trust_groups in [pool]",
)
_PLACES = (BudgetScope.POOL, BudgetScope.CLOUD, BudgetScope.CLASS)
Payer = tuple[BudgetScope, str]
"""Whose budget: a scope, and the name of a cloud, class, user, group or owner of annexes."""


@dataclass(slots=True)
class SpendingBudgets:
    """All budgets of money of a policy. `burn` is what runs and is on its way, per hour, by whose it is; None
    where a price isn't known. What is bought is added to it, so that one of these is used up by one plan. Of
    users and groups it is reckoned apart: `of_people_known` says whether it was (see `purses`).
    """

    snapshot: Snapshot
    policy: Policy
    burn: dict[Payer, float | None] = field(default_factory=dict)
    of_people_known: bool = False
    _spent: dict[tuple[SpendingLimit, str], tuple[float | None, str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _prices: dict[tuple[str, str, str], float | None] | None = None

    def __post_init__(self) -> None:
        self._owners = {one.name: one.owner for one in self.snapshot.annexes}

    # ------------------------------------------------------------------------------------ of machines

    def allow(self, offer: Offer) -> tuple[int, Reason | None]:
        """How many machines of this offer may be bought under the budgets that it comes under, and why."""
        found: tuple[int, Reason | None] = (MANY, None)
        for limit, name in self._of_offer(offer):
            fit, why = affordable(self.standing(limit, name), offer)
            if fit < found[0]:
                found = fit, why
        return found

    def take(self, offer: Offer, count: int) -> None:
        """So many of this offer are bought."""
        for payer in self._payers(offer.cloud, offer.worker_class, offer.variant):
            self.add(payer, None if offer.price is None else count * offer.price)

    def add(self, payer: Payer, cost: float | None) -> None:
        """So much per hour is bought, or runs besides."""
        has = self.burn.get(payer, 0.0)
        self.burn[payer] = None if has is None or cost is None else has + cost

    def overspent(self, machines: Iterable[Machine]) -> dict[MachineId, Reason]:
        """Machines whose pool, cloud or class has spent its budget, with what is to be said of that; those
        of annexes were promised to somebody by name, and aren't among them.
        """
        over: dict[Payer, Reason] = {}
        for limit, name in self._fixed():
            standing = self.standing(limit, name)
            if standing.over and (why := warning(standing)) is not None:
                over.setdefault((limit.scope, limit.name), why)
        found: dict[MachineId, Reason] = {}
        for machine in machines if over else ():
            record = machine.record
            payers = self._payers(record.cloud, record.worker_class, PLAIN)
            why = next((over[one] for one in payers if one in over), None)
            if why is not None and not record.variant.annex:
                found[machine.key] = why
        return found

    def _payers(self, cloud: str, worker_class: str, variant: Variant) -> list[Payer]:
        found = [(BudgetScope.POOL, ""), (BudgetScope.CLOUD, cloud), (BudgetScope.CLASS, worker_class)]
        if annex := variant.annex:
            found.append((BudgetScope.ANNEXES, self._owners.get(annex) or variant.user))
        return found

    def _of_offer(self, offer: Offer) -> list[tuple[SpendingLimit, str]]:
        payers = self._payers(offer.cloud, offer.worker_class, offer.variant)
        found = [(one, "") for one in self.policy.spending if (one.scope, one.name) in payers[:3]]
        if len(payers) > len(_PLACES):
            found.extend((one, payers[-1][1]) for one in self._of_annexes(payers[-1][1]))
        return found

    def _of_annexes(self, name: str) -> list[SpendingLimit]:
        mine = [one for one in self.policy.spending if one.scope is BudgetScope.ANNEXES]
        return _first_each(one for one in mine if name and fnmatchcase(name, one.name))

    def _fixed(self) -> list[tuple[SpendingLimit, str]]:
        return [(one, "") for one in self.policy.spending if one.scope in _PLACES]

    # -------------------------------------------------------------------------------------- of people

    def of_people(self, names: Sequence[str], user: str, group: str) -> list[tuple[SpendingLimit, Payer]]:
        """The budgets that jobs of this user and accounting group come under, each with whose it is.

        `names` are all that mean the user, the most particular one first.
        """
        limits = self.policy.spending
        own = [one for name in names for one in limits if one.scope is BudgetScope.USER and one.name == name]
        fitting = [one for one in limits if one.scope is BudgetScope.USER and _fits(names, one.name)]
        found = [(one, (BudgetScope.USER, user)) for one in _first_each((*own, *fitting))]
        if self.policy.groups_trusted and group:
            found.extend(
                (one, (BudgetScope.GROUP, one.name))
                for one in limits
                if one.scope is BudgetScope.GROUP and within(group, one.name)
            )
        return found

    # ------------------------------------------------------------------------------------ how they stand

    def standing(self, limit: SpendingLimit, name: str = "") -> Spending:
        """How a budget stands; `name` is of a user, or an owner of annexes, whose name fits the limit's."""
        whose = name or limit.name
        burn = self.burn.get((limit.scope, whose), 0.0)
        if limit.scope is BudgetScope.USER and (account := short(whose)) != whose:
            burn = total((burn, self.burn.get((limit.scope, account), 0.0)))  # a machine of one's own
        key = limit, name
        if key not in self._spent:
            self._spent[key] = self._sum(limit, whose, burn)
        spent, why = self._spent[key]
        return Spending(
            words(limit.scope, whose), limit.period, limit.most, spent, burn, self.snapshot.now,
            limit.scope, whose, why,
        )  # fmt: skip

    def told(self) -> tuple[Spending, ...]:
        """How all stand of which there is anything to tell: users' and annexes' where something was spent."""
        found = [self.standing(*each) for each in self._fixed()]
        groups = [one for one in self.policy.spending if one.scope is BudgetScope.GROUP]
        found.extend(self.standing(one) for one in groups if self.policy.groups_trusted)
        mine: list[Spending] = []
        for scope, name in sorted(self._named()):
            limits = self._of_annexes(name)
            if scope is BudgetScope.USER:
                limits = [one for one, _ in self.of_people((name, short(name)), name, "")]
            mine.extend(self.standing(limit, name) for limit in limits)
        mine.sort(key=lambda one: -(math.inf if one.spent is None else one.spent / max(one.most, 1e-9)))
        return (*found, *mine[:MOST_TOLD])

    def _named(self) -> set[Payer]:
        """Users and owners of annexes who have anything, or had it in this month."""
        found = {one for one in self.burn if one[0] in (BudgetScope.USER, BudgetScope.ANNEXES) and one[1]}
        source = self.snapshot.spent
        if isinstance(source, Known):
            found.update((BudgetScope.USER, row.user) for row in source.value.people if row.user)
            found.update((BudgetScope.ANNEXES, row.owner) for row in source.value.machines if row.owner)
        return found

    def _sum(self, limit: SpendingLimit, whose: str, burn: float | None) -> tuple[float | None, str]:
        """What was spent of a budget up to now, None where that isn't known; and why not, in words."""
        source, now = self.snapshot.spent, self.snapshot.now
        if not isinstance(source, Known):
            return None, "what was spent isn't known" if source is None else source.error.text
        spent = source.value
        if now - spent.at > STALE:
            return None, f"what was spent in the last {(now - spent.at) / 60:.0f} min isn't in the records"
        costs = [self._cost(row, limit.scope) for row in _rows(spent, limit, whose, now)]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs) or burn is None:
            return None, ""
        since = max(spent.at, limit.period.begin(now))
        return math.fsum((*known, burn * max(0.0, now - since) / HOUR)), ""

    def _cost(self, row: SpentRow, scope: BudgetScope) -> float | None:
        cost = row.cost
        if self.policy.idle_charged and scope in (BudgetScope.USER, BudgetScope.GROUP):
            cost += row.idle_cost
        if not row.unpriced:
            return cost
        price = self._price(row.cloud, row.flavor, row.market)
        return None if price is None else cost + row.unpriced / HOUR * price

    def _price(self, *what: str) -> float | None:
        if self._prices is None:
            self._prices = {}
            for offer in self.snapshot.offers:
                key = offer.cloud, offer.flavor, offer.market
                known = [one for one in (self._prices.get(key), offer.price) if one is not None]
                self._prices[key] = max(known, default=None)
        return self._prices.get((what[0], what[1], what[2]))


def spending_budgets(
    snapshot: Snapshot, policy: Policy, machines: Iterable[Machine], coming: Iterable[Outstanding]
) -> SpendingBudgets | None:
    """All budgets of money with what there is of machines, and may come of launches; None without any."""
    if not policy.spending:
        return None
    made = SpendingBudgets(snapshot, policy)
    counts: Counter[tuple[str, str, Variant, float | None]] = Counter()
    for machine in machines:
        if machine.phase is Phase.GONE and borne_out(machine, snapshot, policy):
            continue
        record = machine.record
        counts[record.cloud, record.worker_class, record.variant, record.price] += 1
    for item in coming:
        launch = item.launch
        counts[launch.cloud, launch.worker_class, launch.variant, launch.price] += item.count
    costs: dict[Payer, list[float | None]] = {}
    for (cloud, worker_class, variant, price), count in counts.items():
        for payer in made._payers(cloud, worker_class, variant):
            costs.setdefault(payer, []).append(None if price is None else count * price)
    made.burn = {payer: total(each) for payer, each in costs.items()}
    return made


def total(costs: Iterable[float | None]) -> float | None:
    """The sum, the same in whatever order they come; None where one isn't known."""
    some = list(costs)
    known = [cost for cost in some if cost is not None]
    return math.fsum(known) if len(known) == len(some) else None


def spending_warnings(budgets: SpendingBudgets | None, told: Sequence[Spending]) -> list[Reason]:
    """The warnings about budgets that are nearly spent, spent, unknown, or hold nothing back."""
    if budgets is None:
        return []
    found = [why for one in told if (why := warning(one)) is not None]
    limits, trusted = budgets.policy.spending, budgets.policy.groups_trusted
    odd = not trusted and any(one.scope is BudgetScope.GROUP for one in limits)
    return [*found, *([NOT_TRUSTED] if odd else [])]


def words(scope: BudgetScope, name: str) -> str:
    """Whose budget, in words."""
    if scope is BudgetScope.POOL:
        return "the pool"
    if scope is BudgetScope.ANNEXES:
        return f"all annexes of {short(name)} together"
    return f"{scope} {short(name) if scope is BudgetScope.USER else name}"


def within(group: str, name: str) -> bool:
    """Whether this accounting group is the named one, or one below it."""
    return group == name or group.startswith(f"{name}.")


def _first_each(limits: Iterable[SpendingLimit]) -> list[SpendingLimit]:
    """For each period the first one."""
    found: dict[BudgetPeriod, SpendingLimit] = {}
    for one in limits:
        found.setdefault(one.period, one)
    return list(found.values())


def _fits(names: Sequence[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _rows(spent: Spent, limit: SpendingLimit, whose: str, now: float) -> list[SpentRow]:
    """The rows of the records that count for a budget, in the period in which `now` is."""
    people = limit.scope in (BudgetScope.USER, BudgetScope.GROUP)
    mine = _OF[limit.scope]
    first = limit.period.begin(now)
    if spent.day * DAY < first:
        return []  # what is in the records is of an earlier period
    rows = spent.people if people else spent.machines
    return [row for row in rows if (row.today or limit.period is BudgetPeriod.MONTH) and mine(row, whose)]


def _same_user(row: SpentRow, name: str) -> bool:
    """Names are with their domain, but where only an account is known."""
    either = "@" not in row.user or "@" not in name
    return row.user == name or (either and bool(row.user) and short(row.user) == short(name))


_OF: Mapping[BudgetScope, Callable[[SpentRow, str], bool]] = {
    BudgetScope.POOL: lambda _row, _name: True,
    BudgetScope.CLOUD: lambda row, name: row.cloud == name,
    BudgetScope.CLASS: lambda row, name: row.worker_class == name,
    BudgetScope.ANNEXES: lambda row, name: row.owner == name,
    BudgetScope.USER: _same_user,
    BudgetScope.GROUP: lambda row, name: within(row.group, name),
}
