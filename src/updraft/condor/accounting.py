"""What the negotiator shares by, from the accounting ads that it leaves in the collector. Runs in a child."""

import math
from collections.abc import Iterable
from typing import Any

from updraft.core.model import AccountingGroup, Shares

_WANTED = ["Name", "Priority", "IsAccountingGroup", "ConfigQuota", "SurplusPolicy"]
_MOST = 20_000
_ROOT = "<none>"


def read_shares(source: Any) -> Shares | None:
    """The shares of a pool whose collector is `source`; None where no negotiator has told of any."""
    import htcondor2

    try:
        ads = source.query(htcondor2.AdType.Accounting, projection=_WANTED)
    except htcondor2.HTCondorException:
        return None  # the slots, which were read before, are worth more
    return shares_of(ads)


def shares_of(ads: Iterable[Any]) -> Shares | None:
    """What accounting ads say; an ad that makes no sense is left out."""
    priorities: dict[str, float] = {}
    groups: dict[str, AccountingGroup] = {}
    for ad, _ in zip(ads, range(_MOST), strict=False):
        name = ad.get("Name")
        if not isinstance(name, str) or not name:
            continue
        if ad.get("IsAccountingGroup") is True:
            quota = _number(ad.get("ConfigQuota")) or 0.0
            if name != _ROOT:
                groups[name] = AccountingGroup(name, quota, ad.get("SurplusPolicy") != "no")
        elif priority := _number(ad.get("Priority")):
            priorities[name.partition("@")[0]] = priority
    return Shares(priorities, groups) if priorities or groups else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if value > 0 else None
