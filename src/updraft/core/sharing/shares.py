"""Who comes first when not everyone can have everything: as the negotiator would share the machines out.

The negotiator serves accounting groups that have a quota first, the one that uses the smallest part of its
quota at a time before the others, and then users, so that what each has is in proportion to one over its
effective priority. Buying goes by the same: machines that the negotiator would give to somebody else are of
no use to whom they were bought for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.core.model import (
    NEW_PRIORITY,
    AccountingGroup,
    CollectorView,
    JobGroup,
    Reason,
    Shares,
    Slot,
)
from updraft.core.settings import Policy
from updraft.core.sharing.caps import Caps
from updraft.core.sharing.submitters import is_ready, sharing, short, weight


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of each submitter now (`cores`, by name without domain), and what the negotiator shares
    by.

    `users` is what each authenticated user has, whatever the jobs' accounting groups. `caps` are what each
    may still have, None where there are none. `high` are the parties of high priority of those submitters who
    have some.
    """

    shares: Shares = field(default_factory=Shares)
    cores: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    caps: Caps | None = None
    high: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def rank(self, submitter: str, bought: Mapping[str, float]) -> tuple[int, float]:
        """The smaller, the sooner this submitter's turn comes, once so many cores are `bought`.

        Jobs of high priority come before all others, and their parties share by their weights.
        """
        name = short(submitter)
        if is_ready(submitter):
            return 2, 0.0  # room that is kept ready comes after everybody
        has = self.cores.get(name, 0) + bought.get(submitter, 0)
        if self.high:
            has += sum(bought.get(party, 0) for party in self.high.get(submitter, ()))
            if times := weight(submitter):
                return -1, has * self.shares.priorities.get(name, NEW_PRIORITY) / times
        group = self.group_of(name)
        if group is not None and group.quota > 0:
            used = self.used_by(group.name) + sum(
                number for who, number in bought.items() if self.group_of(short(who)) == group
            )
            quota = self.quota(group, sum(bought.values()))
            if used < quota:
                return 0, used / quota
        return 1, has * self.shares.priorities.get(name, NEW_PRIORITY)

    def group_of(self, name: str) -> AccountingGroup | None:
        """The accounting group with the longest name that a submitter's name begins with."""
        words = name.split(".")
        for length in range(len(words) - 1, 0, -1):
            group = self.shares.groups.get(".".join(words[:length]))
            if group is not None:
                return group
        return None

    def used_by(self, group: str) -> int:
        """Cores that the group's users have now, those of groups within it included."""
        return sum(number for name, number in self.cores.items() if name.startswith(group + "."))

    def quota(self, group: AccountingGroup, more: float = 0) -> float:
        """The group's quota in cores, in a pool that grows by `more`."""
        return group.quota if group.quota >= 1 else group.quota * (self.total + more)

    def ceiling(self, group: JobGroup) -> tuple[int, Reason] | None:
        """Cores that the submitter's accounting group may have at most, all in all, and why; None without."""
        found = self.group_of(short(group.submitter))
        if found is None or found.surplus or found.quota < 1:
            return None
        left = int(found.quota) - self.used_by(found.name)
        text = f"accounting group {found.name} has a quota of {found.quota:g} cores and takes no surplus"
        return max(0, left), Reason("group-quota", f"{text}: the negotiator would give it no more")


@dataclass(slots=True)
class Held:
    """Cores by the user and the submitter that a claim names, and those of all slots that were added."""

    cores: dict[tuple[str, str], int] = field(default_factory=dict)
    total: int = 0

    def add(self, slot: Slot, sign: int = 1) -> None:
        """Count this slot and its claims too, or (-1) no longer."""
        self.total += sign * slot.total.cpus
        cores = self.cores
        if slot.user:
            key = slot.user, slot.submitter
            cores[key] = cores.get(key, 0) + sign * slot.total.cpus
        for child in slot.children:
            if child.user:
                key = child.user, child.submitter
                cores[key] = cores.get(key, 0) + sign * child.resources.cpus


def standing(view: CollectorView | None, policy: Policy, held: Held | None = None) -> Standing:
    """Who has what, by the slots of the pool: those that are `held`, where that was counted before."""
    if view is None:
        return Standing()
    if held is None:
        held = Held()
        for slot in view.slots:
            held.add(slot)
    cores: dict[str, int] = {}
    users: dict[str, int] = {}
    for (user, submitter), number in held.cores.items():
        if number:
            name = short(sharing(user, submitter, policy))
            cores[name] = cores.get(name, 0) + number
            users[user] = users.get(user, 0) + number
    return Standing(view.shares or Shares(), cores, users, held.total)
