"""Jobs of high priority that limits hold back: for them idle machines that nobody needs go at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, Machine, Offer, Reason
from updraft.core.settings import Policy
from updraft.core.sharing.submitters import weight

_FULL = frozenset({"limit-machines", "limit-cores", "limit-memory", "limit-cost", "limit-class", "quota"})


@dataclass(frozen=True, slots=True)
class Pressing:
    """So many `jobs` of high priority wait for room under a limit; an idle machine may make room for one.

    Where the whole pool has a limit any machine may, else one on a cloud or of a class that can run them.
    """

    jobs: int = 0
    anywhere: bool = False
    clouds: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()

    def helped_by(self, machine: Machine) -> bool:
        """Whether it would help if this machine went."""
        place = machine.cloud in self.clouds or machine.worker_class in self.classes
        return self.jobs > 0 and (self.anywhere or place)

    def reason(self) -> Reason:
        """Why such a machine goes."""
        jobs = "a job" if self.jobs == 1 else f"{self.jobs} jobs"
        return Reason("make-room", f"it is idle, and {jobs} of high priority wait for room under a limit")


CALM = Pressing()


def pressing(
    wanted: Sequence[tuple[JobGroup, int]],
    left: Mapping[str, int],
    unmet: Mapping[str, Sequence[Reason]],
    offers: Sequence[Offer],
    table: VerdictTable,
    policy: Policy,
) -> Pressing:
    """Of the jobs that were `wanted` those of high priority that a limit or a quota has held back.

    By the groups' keys, `left` counts the jobs for which nothing was bought, and `unmet` says why.
    """
    high = [group for group, _ in wanted if weight(group.submitter) and left.get(group.key)]
    held = [one for one in high if any(why.code in _FULL for why in unmet.get(one.key, ()))]
    if not held:
        return CALM
    rows = [table.group_at[group.key] for group in held]
    columns = table.kind_at
    usable = [
        offer
        for offer in offers
        if offer.kind in columns and any(table.copies[row, columns[offer.kind]] > 0 for row in rows)
    ]
    limits = policy.limits
    most = (limits.machines, limits.cores, limits.memory, limits.cost_per_hour)
    return Pressing(
        sum(left[group.key] for group in held),
        any(one is not None for one in most),
        frozenset(offer.cloud for offer in usable),
        frozenset(offer.worker_class for offer in usable),
    )
