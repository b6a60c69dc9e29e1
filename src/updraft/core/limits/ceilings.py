"""What counts against a ceiling, and how many more machines of an offer one leaves.

Limits are the site's, quotas are the cloud's. A price that isn't known is never taken for zero.
"""

from dataclasses import dataclass

from updraft.core.model import Offer, Quota, Reason, Resources
from updraft.core.reasons import counted
from updraft.core.settings import Limits

MANY = 1_000_000_000
"""Any number."""


@dataclass(slots=True)
class Use:
    """The quantities that count against a limit. `price_unknown` where the cost of something in it isn't
    known.
    """

    machines: int = 0
    cores: int = 0
    memory: int = 0
    cost: float = 0.0
    price_unknown: bool = False

    def add(self, count: int, resources: Resources, price: float | None) -> None:
        """Count `count` more machines of this size and price."""
        self.machines += count
        self.cores += count * resources.cpus
        self.memory += count * resources.memory
        if price is None:
            self.price_unknown = self.price_unknown or count > 0
        else:
            self.cost += count * price

    def include(self, other: "Use") -> None:
        """Count all that another one counts."""
        self.machines += other.machines
        self.cores += other.cores
        self.memory += other.memory
        self.cost += other.cost
        self.price_unknown = self.price_unknown or other.price_unknown


def left_of(most: int | None, has: int) -> int:
    """The rest under a ceiling, or any number."""
    return MANY if most is None else max(0, most - has)


def room(limits: Limits, use: Use, offer: Offer, whose: str) -> tuple[int, Reason | None]:
    """How many more machines of this offer the limits leave where there is `use`, and why no more."""
    most: int = MANY
    reason: Reason | None = None
    if limits.machines is not None and limits.machines - use.machines < most:
        most = limits.machines - use.machines
        reason = Reason(
            "limit-machines",
            f"{whose} may have {counted(limits.machines, 'machine')}, and has {use.machines}",
        )
    if limits.cores is not None and offer.resources.cpus > 0:
        fit = (limits.cores - use.cores) // offer.resources.cpus
        if fit < most:
            most = fit
            reason = Reason("limit-cores", f"{whose} may have {limits.cores} cores, and has {use.cores}")
    if limits.memory is not None and offer.resources.memory > 0:
        fit = (limits.memory - use.memory) // offer.resources.memory
        if fit < most:
            text = f"{whose} may have {limits.memory} MiB of memory, and has {use.memory}"
            most, reason = fit, Reason("limit-memory", text)
    if limits.cost_per_hour is not None:
        fit, why = _affordable(limits.cost_per_hour, use, offer, whose)
        if fit < most:
            most, reason = fit, why
    return most, reason


def _affordable(limit: float, use: Use, offer: Offer, whose: str) -> tuple[int, Reason]:
    if offer.price is None:
        text = f"the price of {offer.key} isn't known, and {whose} has a limit on cost: set it under prices"
        return 0, Reason("price-unknown", text)
    if use.price_unknown:
        text = (
            f"{whose} has a limit on cost, and a machine in it whose price isn't known: set it under prices"
        )
        return 0, Reason("price-unknown", text)
    reason = Reason("limit-cost", f"{whose} may cost {limit:g} per hour, and costs {use.cost:g}")
    if offer.price <= 0:
        return MANY, reason
    return int((limit - use.cost + 1e-9) / offer.price), reason


def quota_room(quota: Quota, gone: Use, offer: Offer) -> tuple[int, Reason | None]:
    """The same of a quota, when `gone` was taken of it since its cloud was asked."""
    fits: list[tuple[int, str]] = []
    if quota.machines is not None:
        fits.append((quota.machines - gone.machines, f"{quota.machines} machines"))
    if quota.cores is not None and offer.resources.cpus:
        fits.append(((quota.cores - gone.cores) // offer.resources.cpus, f"{quota.cores} cores"))
    if quota.memory is not None and offer.resources.memory:
        fits.append(((quota.memory - gone.memory) // offer.resources.memory, f"{quota.memory} MiB of memory"))
    if not fits:
        return MANY, None
    most, what = min(fits)
    return most, Reason("quota", f"cloud {offer.cloud} has a quota of {what} left")
