"""What the negotiator shares by, from the accounting ads that it leaves in the collector. Runs in a child."""

from collections.abc import Iterable
from typing import Any

from updraft.condor.advalues import real, text, value
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
    """The shares that accounting ads tell; an ad that makes no sense is left out."""
    priorities: dict[str, float] = {}
    groups: dict[str, AccountingGroup] = {}
    for ad, _ in zip(ads, range(_MOST), strict=False):
        name = text(ad, "Name")
        if not name:
            continue
        if value(ad, "IsAccountingGroup") is True:
            quota = max(0.0, real(ad, "ConfigQuota"))
            if name != _ROOT:
                groups[name] = AccountingGroup(name, quota, text(ad, "SurplusPolicy") != "no")
        elif (priority := real(ad, "Priority")) > 0:
            priorities[name.partition("@")[0]] = priority
    return Shares(priorities, groups) if priorities or groups else None
