"""Every budget of money as it stands: what the records say was spent, what runs, what is bought meanwhile.

The records say what was spent up to their last look; from there on what runs now is taken to have run. Costs
whose price wasn't known then count at the price of today's offers of that flavor, the dearest, where these
have one. What nobody knows is no zero: see `spending`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    _spent: dict[tuple[BudgetScope, BudgetPeriod, str], tuple[float | None, str]] = field(
        default_factory=dict
    )
    _owners: dict[str, str] = field(default_factory=dict)
    _prices: dict[tuple[str, str, str], float | None] | None = None
    _limits: dict[tuple[str, str, Variant], list[tuple[SpendingLimit, str]]] = field(default_factory=dict)
    _of_users: list[SpendingLimit] = field(default_factory=list)
    _of_owners: list[SpendingLimit] = field(default_factory=list)
    _begins: dict[BudgetPeriod, float] = field(default_factory=dict)
    _standings: dict[tuple[SpendingLimit, str], Spending] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owners = {one.name: one.owner for one in self.snapshot.annexes}
        limits = self.policy.spending
        self._of_users = [one for one in limits if one.scope is BudgetScope.USER]
        self._of_owners = [one for one in limits if one.scope is BudgetScope.ANNEXES]
        self._begins = {period: period.begin(self.snapshot.now) for period in BudgetPeriod}

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
        self.runs({payer: None if has is None or cost is None else has + cost})

    def runs(self, burn: Mapping[Payer, float | None]) -> None:
        """So much per hour runs for these, all in all."""
        self.burn.update(burn)
        self._standings.clear()

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
        key = offer.cloud, offer.worker_class, offer.variant
        if key not in self._limits:
            self._limits[key] = self._found_of(offer)
        return self._limits[key]

    def _found_of(self, offer: Offer) -> list[tuple[SpendingLimit, str]]:
        payers = self._payers(offer.cloud, offer.worker_class, offer.variant)
        found = [(one, "") for one in self.policy.spending if (one.scope, one.name) in payers[:3]]
        if len(payers) > len(_PLACES):
            found.extend((one, payers[-1][1]) for one in self._of_annexes(payers[-1][1]))
        return found

    def _of_annexes(self, name: str) -> list[SpendingLimit]:
        mine = self._of_owners if name else ()
        return _first_each(one for one in mine if fnmatchcase(name, one.name))

    def _fixed(self) -> list[tuple[SpendingLimit, str]]:
        return [(one, "") for one in self.policy.spending if one.scope in _PLACES]

    # -------------------------------------------------------------------------------------- of people

    def of_people(self, names: Sequence[str], user: str, group: str) -> list[tuple[SpendingLimit, Payer]]:
        """The budgets that jobs of this user and accounting group come under, each with whose it is.

        `names` are all that mean the user, the most particular one first.
        """
        found = [(one, (BudgetScope.USER, user)) for one in self._of_user(names)]
        if self.policy.groups_trusted and group:
            found.extend(
                (one, (BudgetScope.GROUP, one.name))
                for one in self.policy.spending
                if one.scope is BudgetScope.GROUP and within(group, one.name)
            )
        return found

    def _of_user(self, names: Sequence[str]) -> list[SpendingLimit]:
        limits = self._of_users
        own = [one for name in names for one in limits if one.name == name]
        return _first_each((*own, *(one for one in limits if one.name == "*" or _fits(names, one.name))))

    # ------------------------------------------------------------------------------------ how they stand

    def standing(self, limit: SpendingLimit, name: str = "") -> Spending:
        """How a budget stands; `name` is of a user, or an owner of annexes, whose name fits the limit's."""
        key = limit, name
        if key not in self._standings:
            self._standings[key] = self._stands(limit, name)
        return self._standings[key]

    def _stands(self, limit: SpendingLimit, name: str) -> Spending:
        whose = name or limit.name
        spent, burn, why = self._used(limit, whose)
        return Spending(
            words(limit.scope, whose), limit.period, limit.most, spent, burn, self.snapshot.now,
            limit.scope, whose, why,
        )  # fmt: skip

    def told(self) -> tuple[Spending, ...]:
        """How all stand of which there is anything to tell: users' and annexes' where something was spent."""
        found = [self.standing(*each) for each in self._fixed()]
        groups = [one for one in self.policy.spending if one.scope is BudgetScope.GROUP]
        found.extend(self.standing(one) for one in groups if self.policy.groups_trusted)
        mine: list[tuple[float, SpendingLimit, str]] = []
        for scope, name in sorted(self._named()):
            person = scope is BudgetScope.USER
            for limit in self._of_user((name, short(name))) if person else self._of_annexes(name):
                spent, _, _ = self._used(limit, name)
                mine.append((math.inf if spent is None else spent / max(limit.most, 1e-9), limit, name))
        mine.sort(key=lambda one: -one[0])
        return (*found, *(self.standing(limit, name) for _, limit, name in mine[:MOST_TOLD]))

    def _named(self) -> set[Payer]:
        """Users and owners of annexes who have anything, or had it in this month."""
        found = {one for one in self.burn if one[0] in (BudgetScope.USER, BudgetScope.ANNEXES) and one[1]}
        source = self.snapshot.spent
        if isinstance(source, Known):
            found.update((BudgetScope.USER, row.user) for row in source.value.people if row.user)
            found.update((BudgetScope.ANNEXES, row.owner) for row in source.value.machines if row.owner)
        return found

    def _used(self, limit: SpendingLimit, whose: str) -> tuple[float | None, float | None, str]:
        """What was spent of a budget, what runs per hour, and why the first isn't known, in words.

        What was spent up to now is that of the beginning: what is bought costs nothing before.
        """
        burn = self.burn.get((limit.scope, whose), 0.0)
        if limit.scope is BudgetScope.USER and (account := short(whose)) != whose:
            own = self.burn.get((limit.scope, account), 0.0)  # of a machine of one's own
            burn = burn if own == 0.0 else total((burn, own))
        key = limit.scope, limit.period, whose
        if key not in self._spent:
            self._spent[key] = self._sum(limit, whose, burn)
        spent, why = self._spent[key]
        return spent, burn, why

    def _sum(self, limit: SpendingLimit, whose: str, burn: float | None) -> tuple[float | None, str]:
        """What was spent of a budget up to now, None where that isn't known; and why not, in words."""
        source, now = self.snapshot.spent, self.snapshot.now
        if not isinstance(source, Known):
            return None, "what was spent isn't known" if source is None else source.error.text
        spent = source.value
        if now - spent.at > STALE:
            return None, f"what was spent in the last {(now - spent.at) / 60:.0f} min isn't in the records"
        if burn is None or (recorded := self._recorded(spent, limit, whose)) is None:
            return None, ""
        since = max(spent.at, self._begins[limit.period])
        return recorded + burn * max(0.0, now - since) / HOUR, ""

    def _recorded(self, spent: Spent, limit: SpendingLimit, whose: str) -> float | None:
        """What the records say was spent of a budget; None where a price isn't known."""
        if spent.day * DAY < self._begins[limit.period]:
            return 0.0  # what is in the records is of an earlier period
        charged = self.policy.idle_charged
        key = limit.scope, limit.period, whose, charged
        if key not in spent.sums:
            rows = _rows(spent, limit, whose)
            costs = [self._cost(row, limit.scope) for row in rows]
            known = [cost for cost in costs if cost is not None]
            if any(row.unpriced for row in rows):  # at the prices of this moment
                return math.fsum(known) if len(known) == len(costs) else None
            spent.sums[key] = math.fsum(known)
        return spent.sums[key]

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


def _rows(spent: Spent, limit: SpendingLimit, whose: str) -> list[SpentRow]:
    """The rows of the records that count for a budget, in the period that they are of."""
    there = spent.by_payer[limit.scope]
    if limit.scope is BudgetScope.GROUP:
        rows = [row for group, each in there.items() if within(group, whose) for row in each]
    elif limit.scope is BudgetScope.USER:
        rows = [row for row in there.get(short(whose), ()) if _same_user(row, whose)]
    else:
        rows = there.get(whose, [])
    return [row for row in rows if row.today or limit.period is BudgetPeriod.MONTH]


def _same_user(row: SpentRow, name: str) -> bool:
    """Names are with their domain, but where only an account is known."""
    either = "@" not in row.user or "@" not in name
    return row.user == name or (either and bool(row.user) and short(row.user) == short(name))
