"""Which machines an annex may have, which waiting jobs may use it, and for which nothing else will do."""

from collections.abc import Iterable, Sequence

from updraft.core.model import Annex, JobGroup, Offer, Reason
from updraft.core.slots.choice import chosen

ANNEX_ONLY = "annex-only"
"""The code of every reason why no machine is bought for jobs that name an annex."""


def may_have(annex: Annex, offer: Offer) -> bool:
    """Whether a machine of this offer is one that the annex was asked for, whatever it costs."""
    return (
        offer.worker_class == annex.worker_class
        and annex.spot in (None, offer.market == "spot")
        and (not annex.clouds or offer.cloud in annex.clouds)
        and (not annex.flavors or chosen(offer.flavor, annex.flavors))
    )


def may_use(group: JobGroup, annex: Annex) -> bool:
    """Whether jobs of this group are taken by machines of this annex, as far as owner and terms go.

    It is what the machines' own START says, in words of the core: names are compared as ClassAds compare
    them, without regard to case, and owners exactly.
    """
    if not annex.for_all and group.owner != annex.owner:
        return False
    if group.terms.annex:
        return group.terms.annex.lower() == annex.name.lower()
    return group.terms.annexes is not False


def bound_to_annexes(groups: Iterable[JobGroup], annexes: Sequence[Annex], now: float) -> dict[str, Reason]:
    """Why no machine is bought for the groups that name an annex, by their keys.

    Their jobs run on that annex's machines or not at all, and those are asked for by hand.
    """
    named = {annex.name.lower(): annex for annex in annexes}
    return {
        group.key: _bound(group, named.get(group.terms.annex.lower()), now)
        for group in groups
        if group.terms.annex
    }


def _bound(group: JobGroup, annex: Annex | None, now: float) -> Reason:
    name = group.terms.annex
    if annex is None or annex.over(now):
        return Reason(ANNEX_ONLY, f"it asks for the annex {name}, and there is none: nothing else is bought")
    if not may_use(group, annex):
        return Reason(ANNEX_ONLY, f"it asks for the annex {name}, which takes the jobs of {annex.owner} only")
    return Reason(
        ANNEX_ONLY, f"it asks for the annex {name} and waits for room there: nothing else is bought"
    )
