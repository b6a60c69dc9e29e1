"""What annexes of an ordinary user may come to, and whether one more is within that.

A user is held to the worst that could be bought: the largest and dearest machines on sale that an annex may
have. What nobody knows the price of is within no allowance of money. An annex that is over counts for the
machines that it still has, and as one that isn't until a look has shown it over: what was bought for it
between two looks is seen by the later one only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from updraft.core.annexes.use import may_have
from updraft.core.model import Annex, LaunchState, LedgerView, Offer, Reason, Snapshot
from updraft.core.reasons import spell
from updraft.core.settings import AnnexAllowance, Policy

NOT_ALLOWED = "annex-not-allowed"
BEYOND = "annex-budget"
_OPEN = (LaunchState.INTENDED, LaunchState.UNKNOWN)
MOST_EACH = 8
"""Annexes that one user may have at a time."""


@dataclass(frozen=True, slots=True)
class AnnexUse:
    """Machines, cores and money per hour; the last two None where those of some machine aren't known."""

    machines: int = 0
    cores: int | None = 0
    cost: float | None = 0.0

    def __add__(self, other: "AnnexUse") -> "AnnexUse":
        cores = None if self.cores is None or other.cores is None else self.cores + other.cores
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return AnnexUse(self.machines + other.machines, cores, cost)

    def or_more(self, other: "AnnexUse") -> "AnnexUse":
        """The larger of both, in each respect."""
        cores = None if self.cores is None or other.cores is None else max(self.cores, other.cores)
        cost = None if self.cost is None or other.cost is None else max(self.cost, other.cost)
        return AnnexUse(max(self.machines, other.machines), cores, cost)


def allowance_of(user: str, policy: Policy) -> AnnexAllowance | None:
    """The allowance of this user; None for one who may have no annexes. The first name or pattern that
    fits counts.
    """
    found = (one for pattern, one in policy.annex_allowances.items() if fnmatchcase(user, pattern))
    return next(found, None)


def used(annexes: Iterable[Annex], seen: Snapshot) -> AnnexUse:
    """The total of these annexes, at most, by the last look."""
    over = {(one.name, one.since) for one in seen.annexes if one.over(seen.now)}
    total = AnnexUse()
    for annex in annexes:
        there = _there(annex, seen.ledger)
        if (annex.name, annex.since) not in over:
            there = there.or_more(at_most(annex, seen.offers) or _of_unknown_size(annex))
        total += there
    return total


def _of_unknown_size(annex: Annex) -> AnnexUse:
    """The most that an annex may come to while nothing is on sale for it. Of cores, each may be a machine."""
    left = annex.machines - annex.left if annex.machines else annex.cores - annex.left_cores
    return AnnexUse(max(0, left), None, None) if left > 0 else AnnexUse()


def at_most(annex: Annex, offers: Iterable[Offer]) -> AnnexUse | None:
    """The most that an annex may come to, by what is on sale; None where nothing is that it may have."""
    fitting = [one for one in offers if _may_have(annex, one)]
    if not fitting:
        return None
    cpus = [max(1, one.resources.cpus) for one in fitting]
    if annex.machines:
        machines = max(0, annex.machines - annex.left)
        cores = machines * max(cpus)
    else:
        left = max(0, annex.cores - annex.left_cores)
        machines, cores = -(-left // min(cpus)), (left + max(cpus) - 1 if left else 0)
    return AnnexUse(machines, cores, _cost(annex, fitting, machines))


def _cost(annex: Annex, fitting: Sequence[Offer], machines: int) -> float | None:
    if annex.max_price is not None:
        return machines * annex.max_price  # a price may still rise to that
    prices = [one.price for one in fitting]
    known = [price for price in prices if price is not None]
    return machines * max(known) if len(known) == len(prices) else None


def _may_have(annex: Annex, offer: Offer) -> bool:
    cheap = annex.max_price is None or (offer.price is not None and offer.price <= annex.max_price)
    return cheap and may_have(annex, offer)


def _there(annex: Annex, ledger: LedgerView) -> AnnexUse:
    """The machines of an annex, launches included of which nobody knows yet what has become of them."""
    live = [r for r in ledger.machines if r.ended_at is None and r.variant.annex == annex.name]
    asked = [one for one in ledger.launches if one.state in _OPEN and one.variant.annex == annex.name]
    total = AnnexUse()
    for record in live:
        total += AnnexUse(1, record.resources.cpus, record.price)
    for one in asked:
        cost = None if one.price is None else one.count * one.price
        total += AnnexUse(one.count, one.count * one.resources.cpus, cost)
    return total


def refusal(
    asked: Annex,
    allowance: AnnexAllowance,
    mine: Sequence[Annex],
    seen: Snapshot,
    now: float,
) -> Reason | None:
    """Why this annex is beyond what its owner may have, who has the annexes `mine`; None where it isn't.

    For one that is to be changed, `mine` are the others. `seen` is the last look.
    """
    if not any(fnmatchcase(asked.worker_class, pattern) for pattern in allowance.classes):
        return Reason(NOT_ALLOWED, f"your annexes may not be of class {asked.worker_class}")
    if asked.until - now > allowance.longest:
        return Reason(BEYOND, f"your annexes may last {spell(allowance.longest)}, counted from now")
    if len(mine) >= MOST_EACH:
        return Reason(BEYOND, f"you have {len(mine)} annexes, and may have {MOST_EACH}: delete one")
    wanted = at_most(asked, seen.offers)
    if wanted is None:
        return Reason(BEYOND, f"nothing is on sale that annex {asked.name} may have, so its cost isn't known")
    total = used(mine, seen) + wanted
    return _beyond(total, wanted, allowance)


def _beyond(total: AnnexUse, wanted: AnnexUse, allowance: AnnexAllowance) -> Reason | None:
    if allowance.cost_per_hour is not None:
        if total.cost is None:
            return Reason(BEYOND, "the price of a machine isn't known: say the highest that you would pay")
        if total.cost > allowance.cost_per_hour * (1 + 1e-9):
            return _no(
                "cost per hour", f"{wanted.cost:.4g}", f"{total.cost:.4g}", f"{allowance.cost_per_hour:.4g}"
            )
    if allowance.machines is not None and total.machines > allowance.machines:
        return _no("machines", str(wanted.machines), str(total.machines), str(allowance.machines))
    if allowance.cores is not None:
        if total.cores is None:
            text = "nothing is on sale that another annex of yours may have, so its cores aren't known"
            return Reason(BEYOND, text)
        if total.cores > allowance.cores:
            return _no("cores", str(wanted.cores), str(total.cores), str(allowance.cores))
    return None


def _no(what: str, more: str, total: str, most: str) -> Reason:
    text = f"it could come to {more} {what}, your annexes together to {total}, and you may have {most}"
    return Reason(BEYOND, text)
