"""The look: clouds and collector first, then the schedds, and the ledger last. The order matters.

*Slots before demand.* A job that starts between the two looks is then seen as running on a slot that looks
free: a machine too few is asked for, and the next look puts that right. The other way round it would be
waiting *and* in a full slot, and a machine too many would be bought at every such moment.

*Clouds before the ledger.* Every machine that a cloud lists was intended in the ledger before it was asked
for. Read last, the ledger knows each launch that the cloud's answer can hold, and those that were made since,
which count although the cloud doesn't list them yet. Read first, it would not know a machine launched in
between, and that would be adopted as if its launch were forgotten; a slot of it would be a stranger's.

What is idle in a snapshot may be busy by now: nothing is closed on the word of a look, only on the startd's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from updraft.clouds.base import Driver, Remembering
from updraft.clouds.odd import odd_of, odd_offers_of
from updraft.condor.base import Pool, PoolSlots
from updraft.core.annexes.progress import on_sale
from updraft.core.demand.headroom import spare_groups
from updraft.core.demand.left_out import ODD_INSTANCE, ODD_OFFER
from updraft.core.model import (
    Annex,
    CloudOffer,
    CloudView,
    CollectorView,
    Instance,
    JobGroup,
    Kind,
    Known,
    LedgerView,
    Questions,
    Quota,
    Reason,
    ScheddView,
    Snapshot,
    Source,
    Unknown,
    Verdicts,
)
from updraft.core.settings import Policy
from updraft.core.slots.variants import most_for, wanted
from updraft.core.sparing import LOOKED_AT, Sparing, sold
from updraft.observe import places
from updraft.observe.boots import Boots
from updraft.observe.byid import ById
from updraft.observe.gate import PACE, Gate
from updraft.observe.offers import Kinds, Shelf
from updraft.observe.same import SameSources
from updraft.observe.schedds import ANY, Schedds
from updraft.observe.sources import Asker, Asking


class Remembered(Protocol):
    """What a look reads of the ledger; the writer and the reader both are one."""

    def view(self, now: float) -> LedgerView:
        """Live machines, launches, boots."""

    def annexes(self) -> tuple[Annex, ...]:
        """Every annex."""

    def learned(self) -> dict[str, str]:
        """The ad text learned for each kind."""

    def noted(self, key: str) -> dict[str, Any] | None:
        """A note, by its key."""


QUOTA_SERVES = 900.0  # seconds
_NAMED = 20  # odd instances, and odd offers, of each cloud
_SEARCHES = 2  # times as long as for the verdicts, at most, it is looked for what a look fails for


class Matcher(Protocol):
    """Which job groups run on which kinds of slot."""

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        """The verdict of each pair that could be evaluated by the deadline (seconds from now)."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a look waits, in seconds, and how often what changes slowly is asked for again.

    `share` is the part of a schedd's time that being asked may take.
    """

    cloud: float = 10.0
    pool: float = 10.0
    demand: float = 20.0
    match: float = 10.0
    offers_every: float = 60.0
    quota_every: float = 15.0
    retry_every: float = 10.0
    share: float = 0.1


class _Cloud:
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

    def ask(self, driver: Driver, now: float, deadlines: Deadlines) -> None:
        remembers = driver if isinstance(driver, Remembering) else None
        self.machines.ask(remembers.aged_machines if remembers else driver.machines, now)
        if _due(self.offers, now, deadlines.offers_every, deadlines.retry_every):
            self.offers.ask(driver.offers, now)
        if _due(self.quota, now, deadlines.quota_every, deadlines.retry_every):
            self.quota.ask(remembers.aged_quota if remembers else driver.quota, now)


def _due(asker: Asker[Any], now: float, every: float, retry: float) -> bool:
    # A clock that was set back makes nothing wait until it is as late again.
    return asker.asked_at is None or not 0 <= now - asker.asked_at < (retry if asker.failing else every)


class Observer:
    """Looks at everything once, and remembers what each source said last.

    `asking` says how: inline for virtual time, where nothing takes any. What nothing can be made of is left
    out and named, and `tell` is told once.
    Raises LedgerError where the ledger can't be read: what else is unknown is in the snapshot.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        pool: Pool,
        drivers: Mapping[str, Driver],
        ledger: Remembered,
        kinds: Kinds,
        matcher: Matcher,
        deadlines: Deadlines | None = None,
        asking: Asking | None = None,
        tell: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self.policy = policy
        self.pool = pool
        self.drivers = drivers
        self._ledger = ledger
        self._matcher = matcher
        self._deadlines = deadlines or Deadlines()
        self._asking = asking or Asking()
        self._stopwatch = self._asking.stopwatch
        self._shelf = Shelf(kinds)
        self._templates: dict[str, str] | None = None
        self._clouds: dict[str, _Cloud] = {}
        self._same = SameSources()
        self._sparing: Sparing[Snapshot] = Sparing(tell, LOOKED_AT)
        self._collector: Asker[PoolSlots] = Asker(
            "the collector", stale_after=2 * self._deadlines.pool, asking=self._asking
        )
        known = (ledger.noted("schedds") or {}).get("seen", {})
        self._schedds = Schedds(self._deadlines.demand, self._deadlines.share, known, self._asking)
        self._gate = Gate(ledger.noted(PACE))
        self.fresh: dict[str, str] = {}
        self.questions = Questions()  # what the last plan wants to know besides: told by whoever has it

    def reconfigure(self, policy: Policy, pool: Pool, drivers: Mapping[str, Driver]) -> None:
        """Go on with a changed configuration; what the sources said last is kept."""
        self.policy, self.pool, self.drivers = policy, pool, drivers

    @property
    def schedds_seen(self) -> dict[str, float]:
        """When each schedd was last in the collector's list: noted in the ledger, so that a restart knows."""
        return self._schedds.seen

    @property
    def pace_note(self) -> dict[str, Any]:
        """How fast machines may join: noted in the ledger, so that a restart knows."""
        return self._gate.note

    @property
    def pause(self) -> float:
        """Seconds from one look to the next that keep the dearest schedd below its share."""
        return self._schedds.pause

    def look(self, now: float) -> Snapshot:
        """Everything that one decision needs; `now` is when the look begins, the snapshot's when it ends."""
        begun = self._stopwatch()

        def clock() -> float:
            return now + (self._stopwatch() - begun)

        self._ask_first(now)
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
        return self._judged(clock, answers, collector, clouds, ledger)

    def _ask_first(self, now: float) -> None:
        for name, driver in self.drivers.items():
            if name not in self._clouds:
                self._clouds[name] = _Cloud(name, self._deadlines, self._asking)
            self._clouds[name].ask(driver, now, self._deadlines)
        pool, deadline = self.pool, self._deadlines.pool
        # The names first: with one child for both questions, they would come after thousands of slots.
        self._schedds.ask_names(pool, deadline, now)
        self._collector.ask(lambda: pool.slots(deadline), now)

    def _cloud_views(self, begun: float, clock: Callable[[], float]) -> dict[str, CloudView]:
        views = {}
        for name in self.drivers:
            cloud = self._clouds[name]
            left = self._deadlines.cloud - (self._stopwatch() - begun)
            machines = cloud.machines.answer(left, clock())
            # Only a first look waits for offers and quotas: later the last answers serve meanwhile.
            first = cloud.offers.asked_at == cloud.machines.asked_at
            offers = cloud.offers.answer(left if first else 0.0, clock())
            quota = cloud.quota.answer(left if first else 0.0, clock())
            wanted = sorted(id_ for where, id_ in self.questions.machines if where == name)
            found = cloud.by_id.found(self.drivers[name], wanted, left, clock)
            odd = frozenset(odd_of(self.drivers[name]))
            view = CloudView(machines, _or_last(offers), _or_lately(quota, clock()), found, odd)
            views[name] = self._same.cloud(name, view)
        return views

    def _judged(
        self,
        clock: Callable[[], float],
        schedds: Mapping[str, Source[ScheddView]],
        collector: Source[PoolSlots],
        clouds: Mapping[str, CloudView],
        ledger: LedgerView,
    ) -> Snapshot:
        """The snapshot of these answers, without what nothing can be made of: that is named."""
        learned = self._learn(collector, ledger)
        seen = dict(collector.value.templates) if isinstance(collector, Known) else {}
        said = _view(collector)
        answers = Snapshot(
            now=clock(),
            pool=self.policy.pool,
            schedds=schedds,
            collector=said,
            clouds=clouds,
            ledger=ledger,
            annexes=self._ledger.annexes(),
        )
        until = clock() + _SEARCHES * self._deadlines.match

        def first(some: Snapshot, by: Policy) -> Snapshot:
            return self._match(some, by, learned, seen, self._deadlines.match)

        def again(some: Snapshot, by: Policy) -> Snapshot:
            left = max(0.0, until - clock())
            return self._match(some, by, learned, seen, min(self._deadlines.match, left))

        made = self._sparing.made(first, again, answers, self.policy)
        return replace(
            made,
            now=clock(),
            collector=self._same.collector(made.collector),
            pace=self._gate.look(said, ledger, clock()),
            left_out=(
                *self._sparing.warnings,
                *self._odd_instances(),
                *self._odd_offers(),
                *self._unread_boots(clouds, ledger, clock),
            ),
        )

    def _unread_boots(
        self, clouds: Mapping[str, CloudView], ledger: LedgerView, clock: Callable[[], float]
    ) -> Iterator[Reason]:
        for name, driver in self.drivers.items():
            shown = clouds[name].machines
            if isinstance(shown, Known):
                yield from self._clouds[name].boots.look(driver, shown.value, ledger.machines, clock)

    def _odd_instances(self) -> Iterator[Reason]:
        """What says which items of the clouds' listings nothing can be made of."""
        for name, driver in self.drivers.items():
            odd = odd_of(driver)
            for machine, why in sorted(odd.items())[:_NAMED]:
                text = f"cloud {name} shows {machine} in a way of which nothing can be made ({why})"
                yield Reason(ODD_INSTANCE, f"{text}: it is left out, and doesn't count as gone")
            if len(odd) > _NAMED:
                yield Reason(ODD_INSTANCE, f"cloud {name} shows {len(odd) - _NAMED} more in such a way")

    def _odd_offers(self) -> Iterator[Reason]:
        """What says which rows of what clouds sell nothing can be made of."""
        for name, driver in self.drivers.items():
            odd = odd_offers_of(driver)
            for what, why in sorted(odd.items())[:_NAMED]:
                text = f"cloud {name} sells {what} in a way of which nothing can be made ({why})"
                yield Reason(ODD_OFFER, f"{text}: it is left out")
            if len(odd) > _NAMED:
                yield Reason(ODD_OFFER, f"cloud {name} sells {len(odd) - _NAMED} more in such a way")

    def _match(
        self,
        some: Snapshot,
        policy: Policy,
        learned: Mapping[str, str],
        seen: Mapping[str, str],
        deadline: float,
    ) -> Snapshot:
        """The same with what is on sale, the kinds of slots, and who runs on what.

        `learned` are the ads of our own machines' kinds, `seen` those of all slots of this look.
        """
        templates = {**seen, **learned}
        items = [item for view in some.clouds.values() for item in sold(view)]
        groups = [group for source in some.schedds.values() for group in _last(source, ScheddView()).groups]
        wants = on_sale(some.annexes, wanted(groups, policy, most_for(len(items))), policy)
        spare = spare_groups(policy, some.now)
        groups.extend(spare)
        there = places.Placed(some.collector, templates, {})
        apart = places.read(policy, (group.ad for group in groups))
        if apart:
            there = places.placed(some.collector, some.ledger.machines, templates)
        offers, kinds = self._shelf.stock(policy, items, learned, apart=apart, wants=wants)
        slots = there.view.value.slots if isinstance(there.view, Known) else ()
        kinds = {**self._shelf.of_slots(slots, there.templates, there.bought), **kinds}
        verdicts = self._matcher.verdicts(groups, list(kinds.values()), some.now, deadline)
        return replace(some, collector=there.view, offers=offers, kinds=kinds, verdicts=verdicts, spare=spare)

    def _learn(self, collector: Source[PoolSlots], ledger: LedgerView) -> dict[str, str]:
        """The ads learned from machines of our own; those that are new go into `fresh`.

        A slot that only claims to be ours teaches nothing: its ad could say anything.
        """
        if self._templates is None:
            self._templates = self._ledger.learned()
        if isinstance(collector, Known) and not collector.value.templates.keys() <= self._templates.keys():
            ours = {(r.cloud, r.id, r.launch_key) for r in ledger.machines if r.ended_at is None}
            slots = collector.value.view.slots
            kinds = {s.kind for s in slots if (s.cloud, s.instance_id, s.launch_key) in ours}
            for key, text in collector.value.templates.items():
                # The first ad of a kind is kept: each that follows differs in what belongs to one machine.
                if key in kinds and key not in self._templates:
                    self._templates[key] = self.fresh[key] = text
        return self._templates


def _with_forgotten(clouds: dict[str, CloudView], ledger: LedgerView, now: float) -> dict[str, CloudView]:
    """Clouds that machines of ours are on and that the configuration no longer has: unknown, never empty."""
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


def _last(source: Source[Any], nothing: Any) -> Any:
    if isinstance(source, Known):
        return source.value
    return nothing if source.last is None else source.last.value


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


__all__ = ["ANY", "Deadlines", "Matcher", "Observer", "Remembered"]
