"""Demand that a site ignores: jobs that wait too short a time yet, and too few jobs together.

Room that is there, or on its way, is used all the same; nothing is bought for them.
"""

from collections.abc import Iterable, Mapping

from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, Offer, Reason
from updraft.core.reasons import moment, spell
from updraft.core.settings import Threshold


def ignored(
    buying: Mapping[str, tuple[JobGroup, int]],
    table: VerdictTable,
    offers: Iterable[Offer],
    threshold: Threshold,
    now: float,
) -> dict[str, Reason]:
    """The groups, of those with jobs without room, that nothing is bought for yet, and why.

    A group waits as long as its oldest job does, from its submission. Only jobs that something on sale would
    run are counted. Room that is kept ready is no job's: it is never ignored, and makes no jobs more.
    """
    if threshold == Threshold():
        return {}
    columns = sorted({table.kind_at[offer.kind] for offer in offers if offer.kind in table.kind_at})
    ripe: dict[str, int] = {}
    found: dict[str, Reason] = {}
    for key, (group, count) in buying.items():
        if group.ready or not (table.copies[table.group_at[key], columns] > 0).any():
            continue
        due = group.oldest + threshold.wait
        if now < due:
            text = f"nothing is bought before {moment(due)}, when the first of them has waited"
            found[key] = Reason("too-early", f"{text} {spell(threshold.wait)} ([demand] min_wait)")
        else:
            ripe[key] = count
    together = sum(ripe.values())
    if together < threshold.jobs:
        text = f"nothing is bought for fewer than {threshold.jobs} jobs of the pool ([demand] min_jobs)"
        why = Reason("too-few", f"{text}: of those without room {together} would be worth a machine")
        found |= dict.fromkeys(ripe, why)
    return found
