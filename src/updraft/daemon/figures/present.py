"""What there is at a turn, added up by names of the configuration alone: JSON values for the metrics.

Users make job groups, variants and annexes: none of these is a key here, lest somebody make a thousand rows.
"""

from collections.abc import Iterable
from typing import Any

from updraft.core.model import GroupOutlook, JobGroup, MachineRecord, Phase, Plan
from updraft.core.settings import Policy

Row = dict[str, Any]
ROOM, COMING, LAUNCHING = "has-room", "machines-coming", "launching"
"""Why jobs wait that find room: it is there, or on machines on their way, or on such as are launched now."""
UNKNOWN = "unknown"


class FleetFigures:
    """Machines by cloud, class, market and phase: how many, their cores, and what they cost.

    Where the policy may have some and there are none, there is a row of none: a line falls to 0, and goes on.
    """

    def __init__(self, policy: Policy) -> None:
        self._rows: dict[tuple[str, ...], Row] = {}
        for name, worker in policy.classes.items():
            for cloud in worker.clouds:
                for market in worker.markets:
                    self._row(cloud, name, market, str(Phase.JOINED))

    def _row(self, *key: str) -> Row:
        """The row of this cloud, class, market and phase."""
        row = self._rows.get(key)
        if row is None:
            row = dict(zip(("cloud", "class", "market", "phase"), key, strict=True))
            row |= {"machines": 0, "cores": 0, "cost_per_hour": 0.0, "unknown_prices": 0}
            self._rows[key] = row
        return row

    def add(self, record: MachineRecord, phase: str) -> None:
        """Count this machine too."""
        row = self._row(record.cloud, record.worker_class, record.market, phase)
        row["machines"] += 1
        row["cores"] += record.resources.cpus
        row["cost_per_hour"] += record.price or 0.0
        row["unknown_prices"] += record.price is None

    def rows(self) -> list[Row]:
        """All of them, in a fixed order."""
        return [self._rows[key] for key in sorted(self._rows)]


def waiting(plan: Plan, groups: Iterable[JobGroup], now: float) -> Row:
    """How many jobs wait for what reason, and when the oldest that waits was submitted; None where none does.

    A job writes its own time of submission: what can't be is left out.
    """
    reasons: dict[str, int] = {}
    for outlook in plan.groups:
        for reason, number in _parts(outlook):
            if number > 0:
                reasons[reason] = reasons.get(reason, 0) + number
    oldest = (group.oldest for group in groups if group.idle and 0 < group.oldest <= now)
    return {"reasons": dict(sorted(reasons.items())), "oldest": min(oldest, default=None)}


def _parts(outlook: GroupOutlook) -> Iterable[tuple[str, int]]:
    # Of several that hold a group back, the first is what `status` shows first.
    first = next(iter(outlook.held_back), None)
    refused = next((reason for _, reason in outlook.refused), None)
    why = first or refused
    return (
        (ROOM, outlook.joined),
        (COMING, outlook.coming),
        (LAUNCHING, outlook.new),
        (UNKNOWN if why is None else why.code, outlook.unmet),
    )


def limits(policy: Policy) -> Row:
    """The pool's own ceilings; None is none."""
    own = policy.limits
    return {
        "machines": own.machines,
        "cores": own.cores,
        "memory": own.memory,
        "cost_per_hour": own.cost_per_hour,
    }
