"""What the controller sees of a fast simulation: real snapshots; what hasn't changed is used again."""

import bisect
from collections.abc import Mapping

import numpy as np

from updraft.core.matching.bulk import judge_all
from updraft.core.matching.memory import Memo
from updraft.core.matching.verdicts import Counts, VerdictTable
from updraft.core.model import CollectorView, Kind, Known, Offer, Questions, Slot, Snapshot, Verdict, Verdicts
from updraft.core.settings import DAY, Policy
from updraft.core.slots.offers import OfferCatalogue
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.fastcloud import FastCloud
from updraft.sim.world.fastpool import FastPool
from updraft.sim.world.leanledger import LeanLedger


class Seeing:
    """Looks at everything once for each decision, as the daemon's observer would have it.

    With `apart`, the kinds of one zone and market are not those of another, as where jobs ask for them.
    """

    def __init__(
        self,
        policy: Policy,
        pool: FastPool,
        clouds: Mapping[str, FastCloud],
        ledger: LeanLedger,
        agenda: Agenda,
        *,
        apart: bool,
    ) -> None:
        self._policy = policy
        self._apart = apart
        self._pool = pool
        self._clouds = clouds
        self._ledger = ledger
        self._agenda = agenda
        self._started = agenda.now - DAY
        self._catalogue = OfferCatalogue()
        self._memo = Memo()
        self._stocked: tuple[object, tuple[Offer, ...], dict[str, Kind]] | None = None
        self._judged = _Judged({})
        self.questions = Questions()  # of the last plan
        self._timed = any(
            "time" in expression.lower()
            for worker in policy.classes.values()
            for expression in worker.attributes.values()
        )

    def look(self) -> Snapshot:
        """The snapshot of this moment."""
        now, pool = self._agenda.now, self._pool
        slots = pool.floor.slots(now)
        jobs, asked = self.questions.jobs, self.questions.machines
        schedds = pool.queue.views(now, jobs if jobs or pool.ghosts else None)
        offers, kinds = self._stock()
        return Snapshot(
            now=now,
            pool=self._policy.pool,
            schedds=schedds,
            collector=Known(
                CollectorView(slots, self._started, pool.cycle_ended, cycle_began=pool.cycle_ended), now
            ),
            clouds={
                name: cloud.view(now, [id_ for where, id_ in asked if where == name])
                for name, cloud in self._clouds.items()
            },
            ledger=self._ledger.view(now),
            offers=offers,
            kinds=kinds,
            verdicts=self._verdicts(kinds, now),
        )

    def _stock(self) -> tuple[tuple[Offer, ...], dict[str, Kind]]:
        """Offers and kinds; made again only after a machine of a new kind has joined, or stock changed."""
        templates = self._pool.templates
        basis = (len(templates), *(c.stock for c in self._clouds.values() if c.sold.tells_left))
        if self._stocked is None or self._stocked[0] != basis:
            sold = [offer for cloud in self._clouds.values() for offer in cloud.offers()]
            offers, kinds = self._catalogue.stock(self._policy, sold, templates, apart=self._apart)
            self._stocked = (basis, offers, {**self._catalogue.of_slots(self._slots(), templates), **kinds})
        return self._stocked[1], self._stocked[2]

    def _slots(self) -> tuple[Slot, ...]:
        return self._pool.floor.slots(self._agenda.now)

    def _verdicts(self, kinds: Mapping[str, Kind], now: float) -> Verdicts:
        """Verdicts on every group that ever came by; only new ones are judged, unless the time matters."""
        queue = self._pool.queue
        if not self._timed:
            new = queue.known[self._judged.count :]
            self._timed = any("time" in group.ad.lower() for group in new)
        if self._timed:
            return judge_all(queue.groups(), list(kinds.values()), now, self._memo)
        if self._judged.kinds is not kinds:
            self._judged, new = _Judged(kinds), queue.known
        if new:
            views = [group.shown or queue.shown(group) for group in new]
            self._judged.add(judge_all(views, list(kinds.values()), now, self._memo))
        return self._judged.table


class _Judged:
    """Verdicts that grow by the rows of groups that are new. `count` is how many groups they are on."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds
        self.count = 0
        self._parts: list[tuple[int, VerdictTable]] = []
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._columns = {key: at for at, key in enumerate(kinds)}
        self.table = self._made(np.empty((0, len(kinds)), dtype=np.int32))

    def add(self, part: VerdictTable) -> None:
        """These rows belong to it from now on."""
        self._parts.append((self.count, part))
        self._names.extend(part.groups)
        self._rows.update({name: self.count + at for at, name in enumerate(part.groups)})
        self.count += len(part.groups)
        self.table = self._made(np.vstack((self.table.copies, part.copies)))

    def _made(self, copies: Counts) -> VerdictTable:
        return VerdictTable(
            tuple(self._names), tuple(self.kinds), copies, self._explain, dict(self._rows), self._columns
        )

    def _explain(self, group: int, kind: int) -> Verdict:
        at = bisect.bisect_right(self._parts, group, key=lambda part: part[0]) - 1
        first, part = self._parts[at]
        return part.explain(group - first, kind)
