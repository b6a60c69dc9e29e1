"""Until when the machines of annexes are leased, written on them as a tag: they read it where they can."""

from collections.abc import Callable, Iterable, Mapping

from updraft.clouds.base import TAG_LEASE, Machines
from updraft.core.model import Known, MachineId, Snapshot

AGAIN = 30.0  # seconds until what failed is tried again


class Leases:
    """Remembers which machine was told what: after a start each is told once more, which changes nothing."""

    def __init__(self) -> None:
        self._told: dict[MachineId, float] = {}
        self._failed: dict[str, float] = {}

    def untold(self, snapshot: Snapshot) -> Mapping[tuple[str, float], tuple[str, ...]]:
        """The machines to tell, by cloud and end of the lease; those that their clouds list alive."""
        ends = {one.name: one.until for one in snapshot.annexes if not one.over(snapshot.now)}
        if not ends:
            return {}
        listed = _listed(snapshot)
        found: dict[tuple[str, float], list[str]] = {}
        for record in snapshot.ledger.machines:
            key = record.key
            until = ends.get(record.variant.annex) if record.variant else None
            if until is None or key not in listed or self._told.get(key) == until:
                continue
            if snapshot.now - self._failed.get(record.cloud, float("-inf")) >= AGAIN:
                found.setdefault((record.cloud, until), []).append(record.id)
        return {key: tuple(ids) for key, ids in found.items()}

    def tell(
        self, machines: Callable[[str], Machines], cloud: str, until: float, ids: Iterable[str], now: float
    ) -> None:
        """Write the end of the lease on these machines. Raises what the cloud raises."""
        ids = tuple(ids)
        self._failed[cloud] = now
        machines(cloud).tag(ids, {TAG_LEASE: str(int(until))})
        del self._failed[cloud]
        self._told.update((MachineId(cloud, one), until) for one in ids)


def _listed(snapshot: Snapshot) -> frozenset[MachineId]:
    return frozenset(
        MachineId(name, one.id)
        for name, view in snapshot.clouds.items()
        if isinstance(view.machines, Known)
        for one in view.machines.value
        if one.alive
    )
