"""Clouds by their priority: what finds no room on the clouds that come first is bought on the next.

Among clouds of one priority the price alone decides, as if there were no others. Clouds that can sell nothing
now (disabled, silent, resting, full) are set aside: they are asked last, and only why.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from updraft.core.buying.shopping import NO_OFFER, SOLD_OUT, Allowed, Shopping, buy
from updraft.core.demand.fitting import Demand
from updraft.core.model import JobGroup, Kind, Offer, Reason, Verdicts
from updraft.core.settings import Policy
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import short

Unmet = Mapping[str, tuple[Reason, ...]]


def buy_by_priority(
    left: Demand,
    offers: Sequence[Offer],
    kinds: Mapping[str, Kind],
    verdicts: Verdicts,
    allowed: Allowed,
    who: Standing,
    most: Callable[[Container[str] | None], int],
    policy: Policy,
) -> Shopping:
    """As `buy`, from the clouds of the best priority first, up to what may be had there.

    `most` says how many machines may be bought in all now, on some clouds or (None) on any.
    """
    tiers: dict[tuple[bool, int], list[Offer]] = {}
    aside = {name: most((name,)) <= 0 for name in {offer.cloud for offer in offers}}
    for offer in offers:
        name = offer.cloud
        tiers.setdefault((aside[name], 0 if aside[name] else policy.rule(name).priority), []).append(offer)
    if len(tiers) < 2:
        return buy(left, offers, kinds, verdicts, allowed, who, most(None))
    groups = {group.key: group for group, _ in left}
    found = Shopping(left={group.key: count for group, count in left})
    for _, sold in sorted(tiers.items()):
        wanted = [(groups[key], count) for key, count in found.left.items() if count > 0]
        if not wanted:
            break
        clouds = frozenset(offer.cloud for offer in sold)
        one = buy(wanted, sold, kinds, verdicts, allowed, who, most(clouds))
        unmet = {key: _both(found.unmet.get(key, ()), why) for key, why in one.unmet.items()}
        found = Shopping((*found.purchases, *one.purchases), one.left, unmet)
        who = _with(who, one, groups)
    return found


def _with(who: Standing, bought: Shopping, groups: Mapping[str, JobGroup]) -> Standing:
    """The same, once what was bought is theirs: turns at the next clouds go on from there."""
    cores, total = dict(who.cores), who.total
    for purchase in bought.purchases:
        for key, jobs in purchase.holds.items():
            number = jobs * max(1, groups[key].request.cpus)
            name = short(groups[key].submitter)
            cores[name] = cores.get(name, 0) + number
            total += number
    return replace(who, cores=cores, total=total)


def _both(before: tuple[Reason, ...], now: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """What held jobs back at two steps; that a cloud has nothing for them counts where no other says more."""
    every = dict.fromkeys((*before, *now))
    telling = [reason for reason in every if reason not in (NO_OFFER, SOLD_OUT)]
    if telling:
        return tuple(telling)
    return (SOLD_OUT,) if SOLD_OUT in every else (NO_OFFER,)
