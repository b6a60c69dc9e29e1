"""The look: clouds and collector first, then the schedds, and the ledger last. The order matters.

*Slots before demand.* A job that starts between the two looks is then seen as running on a slot that looks
free: a machine too few is asked for, and the next look puts that right. The other way round it would be
waiting *and* in a full slot, and a machine too many would be bought at every such moment.

*Clouds before the ledger.* Every machine that a cloud lists was intended in the ledger before it was asked
for. Read last, the ledger knows each launch that the cloud's answer can hold, and those that were made since,
which count although the cloud doesn't list them yet. Read first, it would not know a machine launched in
between, and that would be adopted as if its launch were forgotten; a slot of it would be a stranger's.

Nothing is decided while looking: what comes of the answers is made of them by `core.prepare`.

What is idle in a snapshot may be busy by now: nothing is closed on the word of a look, only on the startd's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

from updraft.clouds.cloud import Cloud
from updraft.condor.base import Pool, PoolSlots
from updraft.core.demand.left_out import ODD_INSTANCE, ODD_OFFER
from updraft.core.model import (
    Annex,
    CloudOffer,
    CloudView,
    CollectorView,
    Instance,
    Known,
    LedgerView,
    Observation,
    Questions,
    Quota,
    Reason,
    Source,
    Unknown,
)
from updraft.core.settings import Policy
from updraft.observe.boots import Boots
from updraft.observe.same import SameSources
from updraft.observe.schedds import ANY, Schedds
from updraft.observe.sources import Asker, Asking, ById
from updraft.observe.spending import ReadSpent, SpendingAsker


class Remembered(Protocol):
    """What a look reads of the ledger; the writer and the reader both are one."""

    def view(self, now: float) -> LedgerView:
        """Live machines, launches, boots."""

    def annexes(self) -> tuple[Annex, ...]:
        """Every annex."""

    def noted(self, key: str) -> dict[str, Any] | None:
        """A note, by its key."""


QUOTA_SERVES = 900.0  # seconds
_CLOUD_OF = attrgetter("cloud")
_NAMED = 20  # odd instances, and odd offers, of each cloud


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a look waits, in seconds, and how often what changes slowly is asked for again.

    `share` is the part of a schedd's time that being asked may take.
    """

    cloud: float = 10.0
    pool: float = 10.0
    demand: float = 20.0
    offers_every: float = 60.0
    quota_every: float = 15.0
    retry_every: float = 10.0
    share: float = 0.1


class _Questions:
    """The three questions that a cloud is asked."""

    def __init__(self, name: str, deadlines: Deadlines, asking: Asking) -> None:
        # An answer names the time of its question, so one of a minute ago still says what was then.
        late = 6 * deadlines.cloud
        what = f"cloud {name}"
        self.machines: Asker[tuple[Instance, ...]] = Asker(
            what, stale_after=late, hurried=True, asking=asking
        )
        self.offers: Asker[tuple[CloudOffer, ...]] = Asker(what, stale_after=late, asking=asking)
        self.quota: Asker[Quota] = Asker(what, stale_after=late, asking=asking)
        self.by_id = ById(what, late, asking)
        self.boots = Boots(name, late, asking)

    def ask(self, cloud: Cloud, now: float, deadlines: Deadlines) -> None:
        machines, memory = cloud.machines, cloud.memory
        self.machines.ask(machines.machines if memory is None else memory.aged_machines, now)
        if _due(self.offers, now, deadlines.offers_every, deadlines.retry_every):
            self.offers.ask(machines.offers, now)
        if _due(self.quota, now, deadlines.quota_every, deadlines.retry_every):
            self.quota.ask(machines.quota if memory is None else memory.aged_quota, now)


def _due(asker: Asker[Any], now: float, every: float, retry: float) -> bool:
    # A clock that was set back makes nothing wait until it is as late again.
    return asker.asked_at is None or not 0 <= now - asker.asked_at < (retry if asker.failing else every)


class Observer:
    """Looks at everything once, and remembers what each source said last.

    `asking` says how: inline for virtual time, where nothing takes any. `spending` says what was spent; where
    it is None nobody knows.
    Raises LedgerError where the ledger can't be read: what else is unknown is in the observation.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        pool: Pool,
        clouds: Mapping[str, Cloud],
        ledger: Remembered,
        deadlines: Deadlines | None = None,
        asking: Asking | None = None,
        spending: ReadSpent | None = None,
    ) -> None:
        self.policy = policy
        self.pool = pool
        self.clouds = clouds
        self._ledger = ledger
        self._deadlines = deadlines or Deadlines()
        self._asking = asking or Asking()
        self._stopwatch = self._asking.stopwatch
        self._asked: dict[str, _Questions] = {}
        self._same = SameSources()
        self._collector: Asker[PoolSlots] = Asker(
            "the collector", stale_after=2 * self._deadlines.pool, asking=self._asking
        )
        known = (ledger.noted("schedds") or {}).get("seen", {})
        self._schedds = Schedds(self._deadlines.demand, self._deadlines.share, known, self._asking)
        self._spending = SpendingAsker(spending, self._asking)
        self.questions = Questions()  # what the last plan wants to know besides: told by whoever has it

    def reconfigure(self, policy: Policy, pool: Pool, clouds: Mapping[str, Cloud]) -> None:
        """Go on with a changed configuration; what the sources said last is kept."""
        self.policy, self.pool, self.clouds = policy, pool, clouds

    @property
    def schedds_seen(self) -> dict[str, float]:
        """When each schedd was last in the collector's list: noted in the ledger, so that a restart knows."""
        return self._schedds.seen

    @property
    def pause(self) -> float:
        """Seconds from one look to the next that keep the dearest schedd below its share."""
        return self._schedds.pause

    def look(self, now: float) -> Observation:
        """What every source says; `now` is when the look begins, the observation's when it ends."""
        begun = self._stopwatch()

        def clock() -> float:
            return now + (self._stopwatch() - begun)

        self._ask_first(now)
        self._spending.start(self.policy, now)
        self._ledger.view(now)  # while the others think: to read it for the first time takes a while
        collector = self._collector.answer(self._deadlines.pool, clock())
        clouds = self._cloud_views(begun, clock)
        answers = self._schedds.answers(
            self.pool,
            wanted=self.policy.timings.schedd_patience,
            running=bool(self.questions.jobs),
            collector=_view(collector),
            young=self.policy.timings.collector_age,
            clock=clock,
        )
        ledger = self._ledger.view(now)
        clouds = _with_forgotten(clouds, ledger, clock())
        odd = (*self._odd_instances(), *self._odd_offers(), *self._unread_boots(clouds, ledger, clock))
        return Observation(
            now=clock(),
            pool=self.policy.pool,
            schedds=answers,
            collector=_view(collector),
            clouds=clouds,
            ledger=ledger,
            annexes=self._ledger.annexes(),
            templates=dict(collector.value.templates) if isinstance(collector, Known) else {},
            left_out=odd,
            spent=self._spending.ask(self.policy, clock()),
        )

    def look_at_clouds(self, now: float) -> Mapping[str, CloudView]:
        """What the clouds say, asked as at each look: for a simulation in which nobody else has news."""
        self._ask_clouds(now)
        return self._cloud_views(self._stopwatch(), lambda: now)

    def _ask_clouds(self, now: float) -> None:
        for name, cloud in self.clouds.items():
            if name not in self._asked:
                self._asked[name] = _Questions(name, self._deadlines, self._asking)
            self._asked[name].ask(cloud, now, self._deadlines)

    def _ask_first(self, now: float) -> None:
        self._ask_clouds(now)
        pool, deadline = self.pool, self._deadlines.pool
        # The names first: with one child for both questions, they would come after thousands of slots.
        self._schedds.ask_names(pool, deadline, now)
        self._collector.ask(lambda: pool.slots(deadline), now)

    def _cloud_views(self, begun: float, clock: Callable[[], float]) -> dict[str, CloudView]:
        views = {}
        for name in self.clouds:
            cloud = self._asked[name]
            left = self._deadlines.cloud - (self._stopwatch() - begun)
            machines = cloud.machines.answer(left, clock())
            # Only a first look waits for offers and quotas: later the last answers serve meanwhile.
            first = cloud.offers.asked_at == cloud.machines.asked_at
            offers = cloud.offers.answer(left if first else 0.0, clock())
            quota = cloud.quota.answer(left if first else 0.0, clock())
            wanted = sorted(id_ for where, id_ in self.questions.machines if where == name)
            found = cloud.by_id.found(self.clouds[name].machines, wanted, left, clock)
            odd = frozenset(self.clouds[name].machines.odd)
            end = self.clouds[name].traits.credentials_end()
            view = CloudView(machines, _or_last(offers), _or_lately(quota, clock()), found, odd, end)
            views[name] = self._same.cloud(name, view)
        return views

    def _unread_boots(
        self, clouds: Mapping[str, CloudView], ledger: LedgerView, clock: Callable[[], float]
    ) -> Iterator[Reason]:
        for name, cloud in self.clouds.items():
            shown = clouds[name].machines
            if isinstance(shown, Known):
                yield from self._asked[name].boots.look(cloud.machines, shown.value, ledger.machines, clock)

    def _odd_instances(self) -> Iterator[Reason]:
        """What says which items of the clouds' listings nothing can be made of."""
        for name, cloud in self.clouds.items():
            odd = cloud.machines.odd
            for machine, why in sorted(odd.items())[:_NAMED]:
                text = f"cloud {name} shows {machine} in a way of which nothing can be made ({why})"
                yield Reason(ODD_INSTANCE, f"{text}: it is left out, and doesn't count as gone")
            if len(odd) > _NAMED:
                yield Reason(ODD_INSTANCE, f"cloud {name} shows {len(odd) - _NAMED} more in such a way")

    def _odd_offers(self) -> Iterator[Reason]:
        """What says which rows of what clouds sell nothing can be made of."""
        for name, cloud in self.clouds.items():
            odd = cloud.machines.odd_offers
            for what, why in sorted(odd.items())[:_NAMED]:
                text = f"cloud {name} sells {what} in a way of which nothing can be made ({why})"
                yield Reason(ODD_OFFER, f"{text}: it is left out")
            if len(odd) > _NAMED:
                yield Reason(ODD_OFFER, f"cloud {name} sells {len(odd) - _NAMED} more in such a way")


def _with_forgotten(clouds: dict[str, CloudView], ledger: LedgerView, now: float) -> dict[str, CloudView]:
    """Clouds that machines of ours are on and that the configuration no longer has: unknown, never empty."""
    if clouds.keys() >= set(map(_CLOUD_OF, ledger.machines)):
        return clouds
    names = {record.cloud for record in ledger.machines if record.ended_at is None}
    for name in names - set(clouds):
        error = Reason("cloud-not-configured", f"cloud {name} has machines and is not in the configuration")
        clouds[name] = CloudView(Unknown(error, now), Unknown(error, now), Unknown(error, now))
    return clouds


def _view(source: Source[PoolSlots]) -> Source[CollectorView]:
    if isinstance(source, Known):
        return Known(source.value.view, source.at)
    last = source.last
    return Unknown(source.error, source.since, None if last is None else Known(last.value.view, last.at))


def _or_last(source: Source[Any]) -> Source[Any]:
    """A slow source whose question is under way is still known by its last answer; a failed one is not."""
    if isinstance(source, Unknown) and source.error.code == "timeout" and source.last is not None:
        return source.last
    return source


def _or_lately(quota: Source[Quota], now: float) -> Source[Quota]:
    """A quota that can't be had now is known by its last answer, from which launches since are taken off.

    Without it nothing would hold back a launch of any size on a cloud that is slow for being asked so much.
    """
    last = quota.last if isinstance(quota, Unknown) else None
    return last if last is not None and now - last.at <= QUOTA_SERVES else quota


__all__ = ["ANY", "Deadlines", "Observer", "Remembered"]
