"""A plan that fails is made again without what it fails for, so that everybody else is served meanwhile.

Nothing that a job, a slot, an offer, an annex or a cloud says should make planning fail; this is for the day
on which something does. Which it is for is found by planning with parts of them alone: jobs first (by schedd,
then by owner, then by group), then slots, what is on sale (by cloud, class and offer), classes, annexes,
and what clouds answer. Where none of these alone is enough, all of them are left out, and at least nothing is
ended.

Jobs are named like those that can't be evaluated, and everything else of their schedds counts: where their
jobs run, above all. A slot that is left out is busy, and no room. An offer isn't bought, a class keeps
and buys nothing while its machines stay, an annex doesn't grow, and a cloud counts as one that didn't answer.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from updraft.core.demand.left_out import LEFT_OUT_ANNEX, LEFT_OUT_CLASS, LEFT_OUT_CLOUD, LEFT_OUT_OFFER
from updraft.core.halving import failing
from updraft.core.model import (
    NO_TERMS,
    NOTHING,
    Annex,
    CloudOffer,
    CloudView,
    CollectorView,
    JobGroup,
    Known,
    Offer,
    Reason,
    Resources,
    Slot,
    Snapshot,
    Source,
    Unknown,
)
from updraft.core.reasons import listed
from updraft.core.settings import DAY, Policy, WorkerClass
from updraft.core.slots.kinds import problem_ad

T = TypeVar("T")
Decide = Callable[[Snapshot, Policy], T]
Item = tuple[str, str]
"""What can be left out: its sort ("jobs", "slot", "sold", "offer", "class", "annex", "cloud") and its key."""

AGAIN = 600.0
"""Seconds until those that were left out are planned for again: what made it fail may be over."""
_PLANS = 40
_MOST_JOBS = 1 << 31
_NAMED = 5
_FOR_GOOD = 10 * 365 * DAY


def without(snapshot: Snapshot, items: Collection[Item], why: str) -> Snapshot:
    """The snapshot with these items left out, for this reason."""
    schedds = dict(snapshot.schedds)
    for name, seen in snapshot.schedds.items():
        view = _said(seen)
        if view is not None and any(("jobs", group.key) in items for group in view.groups):
            groups = tuple(_left_out(g, why) if ("jobs", g.key) in items else g for g in view.groups)
            schedds[name] = _saying(seen, replace(view, groups=groups))
    silent = _silent(snapshot.now, why)
    clouds = {name: silent if ("cloud", name) in items else view for name, view in snapshot.clouds.items()}
    return replace(
        snapshot,
        schedds=schedds,
        collector=_collector(snapshot.collector, items, why),
        offers=tuple(
            one
            for one in snapshot.offers
            if ("offer", one.key) not in items and ("class", one.worker_class) not in items
        ),
        annexes=tuple(one for one in snapshot.annexes if ("annex", one.name) not in items),
        clouds={name: _without_sold(view, items) for name, view in clouds.items()},
    )


def policy_without(policy: Policy, items: Collection[Item]) -> Policy:
    """The policy with these classes left out: they keep and buy nothing, and their machines stay."""
    if not any(("class", name) in items for name in policy.classes):
        return policy
    classes = {
        name: _at_rest(name, worker) if ("class", name) in items else worker
        for name, worker in policy.classes.items()
    }
    return replace(policy, classes=classes)


def why_spared(error: Exception) -> str:
    """The sentence for what is left out because planning for it ends with this error."""
    return f"planning for it fails ({type(error).__name__}), which is a fault of updraft: please report it"


def warnings(spared: Iterable[Item], annexes: Iterable[Annex], why: str) -> Iterator[Reason]:
    """The warnings that say which offers, classes, annexes and clouds are left out; jobs and slots say it
    themselves.

    `annexes` say whose they are.
    """
    keys: dict[str, list[str]] = {}
    for sort, key in sorted(spared):
        keys.setdefault(sort, []).append(key)
    if offers := [*keys.get("sold", ()), *keys.get("offer", ())]:
        yield Reason(LEFT_OUT_OFFER, f"left out: offer {listed(offers, _NAMED)}: {why}")
    if classes := keys.get("class"):
        yield Reason(LEFT_OUT_CLASS, f"left out: class {listed(classes, _NAMED)}: {why}")
    if named := keys.get("annex"):
        owners = {one.name: f"{one.name} of {one.owner}" for one in annexes}
        named = [owners.get(name, name) for name in named]
        yield Reason(LEFT_OUT_ANNEX, f"left out: annex {listed(named, _NAMED)}: {why}")
    if clouds := keys.get("cloud"):
        yield Reason(LEFT_OUT_CLOUD, f"left out: cloud {listed(clouds, _NAMED)}: {why}")


class Sparing(Generic[T]):
    """Makes something of a snapshot, and where that fails, of the snapshot without what it fails for.

    That is left out for a while, and `tell` is told once. `sorts` are those that may be to blame.
    """

    def __init__(
        self, tell: Callable[[Exception], None] = lambda _error: None, sorts: Sequence["Sort"] = ()
    ) -> None:
        self._tell = tell
        self._sorts = sorts or PLANNED
        self._again = 0.0
        self.spared: frozenset[Item] = frozenset()
        """What is left out now."""
        self.why = ""
        self.warnings: tuple[Reason, ...] = ()
        """What says what is left out now, and doesn't say so itself."""

    def made(self, first: Decide[T], again: Decide[T], snapshot: Snapshot, policy: Policy) -> T:
        """What `first` makes of it; `again` does the same, and is called some dozens of times at most."""
        if snapshot.now >= self._again or snapshot.now < self._again - AGAIN:
            self.spared = frozenset()
        try:
            some = without(snapshot, self.spared, self.why) if self.spared else snapshot
            return first(some, policy_without(policy, self.spared))
        except Exception as error:
            made, spared = sparing(again, snapshot, policy, error, self._sorts)
            if not spared <= self.spared:
                self._tell(error)
            self.spared, self.why = spared, why_spared(error)
            self._again = snapshot.now + AGAIN
            return made
        finally:
            self.warnings = tuple(warnings(self.spared, snapshot.annexes, self.why))


def sparing(
    decide: Decide[T], snapshot: Snapshot, policy: Policy, error: Exception, sorts: Sequence["Sort"] = ()
) -> tuple[T, frozenset[Item]]:
    """The plan without those that it fails for, and which they are; `error` again where nothing helps.

    `decide` is called some dozens of times at most.
    """
    why = why_spared(error)
    search = _BlameSearch(decide, snapshot, policy, why)
    everything: dict[Item, object] = {}
    for sort in sorts or PLANNED:
        items = sort.items(snapshot, policy)
        everything.update(items)
        if items and not search.fails(items, ()):
            culprits = search.among(items, sort.apart)
            break
    else:
        culprits = tuple(everything)
    try:
        some = without(snapshot, frozenset(culprits), why)
        return decide(some, policy_without(policy, frozenset(culprits))), frozenset(culprits)
    except Exception:
        raise error from None


@dataclass(slots=True)
class _BlameSearch:
    """Looks for what planning fails for, by planning with some of it left out."""

    decide: Decide[Any]
    snapshot: Snapshot
    policy: Policy
    why: str
    planned: int = 0

    def fails(self, items: Mapping[Item, object], kept: Iterable[Item]) -> bool:
        """Does planning fail when only `kept` are left of `items`?"""
        self.planned += 1
        out = items.keys() - set(kept)
        try:
            self.decide(without(self.snapshot, out, self.why), policy_without(self.policy, out))
        except Exception:
            return True
        return False

    def among(
        self, items: Mapping[Item, object], apart: Iterable[Callable[[Any], object]]
    ) -> tuple[Item, ...]:
        """Those of `items` that it fails for; without all of them it is known not to fail."""
        culprits = tuple(items)
        for parting in apart:
            found = failing(
                _parts(items, culprits, parting),
                lambda some: self.fails(items, (one for part in some for one in part)),
                known=True,
                most=_PLANS - self.planned,
            )
            if not found:  # only together
                break
            culprits = tuple(one for part in found for one in part)
        return culprits


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort of what can be left out: how it is found, and by what it is told apart, coarse to fine."""

    items: Callable[[Snapshot, Policy], Mapping[Item, Any]]
    apart: tuple[Callable[[Any], object], ...]


def _said(source: Source[T]) -> T | None:
    """A source's last answer; None where it never answered."""
    if isinstance(source, Known):
        return source.value
    return None if source.last is None else source.last.value


def _saying(source: Source[T], value: T) -> Source[T]:
    """The source with this in place of its last answer."""
    if isinstance(source, Known):
        return replace(source, value=value)
    return source if source.last is None else replace(source, last=replace(source.last, value=value))


def _groups(snapshot: Snapshot, _: Policy) -> Mapping[Item, JobGroup]:
    views = [_said(seen) for seen in snapshot.schedds.values()]
    return {("jobs", group.key): group for view in views if view is not None for group in view.groups}


def _slots(snapshot: Snapshot, _: Policy) -> Mapping[Item, Slot]:
    if not isinstance(snapshot.collector, Known):
        return {}
    return {("slot", one.name): one for one in snapshot.collector.value.slots}


def _offers(snapshot: Snapshot, _: Policy) -> Mapping[Item, Offer]:
    return {("offer", one.key): one for one in snapshot.offers}


def _sold(snapshot: Snapshot, _: Policy) -> Mapping[Item, CloudOffer]:
    return {("sold", _name_of(one)): one for view in snapshot.clouds.values() for one in sold(view)}


def _name_of(one: CloudOffer) -> str:
    return f"{one.cloud}/{one.zone}/{one.flavor}/{one.market}"


def sold(view: CloudView) -> tuple[CloudOffer, ...]:
    """The offers of a cloud, by its last answer."""
    return _said(view.offers) or ()


def _without_sold(view: CloudView, items: Collection[Item]) -> CloudView:
    """The cloud's view without what of these it sells."""
    some = sold(view)
    kept = tuple(one for one in some if ("sold", _name_of(one)) not in items)
    if len(kept) == len(some):
        return view
    return replace(view, offers=_saying(view.offers, kept))


def _classes(_: Snapshot, policy: Policy) -> Mapping[Item, str]:
    return {("class", name): name for name in policy.classes}


def _annexes(snapshot: Snapshot, _: Policy) -> Mapping[Item, Annex]:
    return {("annex", one.name): one for one in snapshot.annexes}


def _clouds(snapshot: Snapshot, _: Policy) -> Mapping[Item, str]:
    return {("cloud", name): name for name in snapshot.clouds}


_JOBS = Sort(_groups, (lambda one: one.schedd, lambda one: (one.schedd, one.owner), lambda one: one.key))
_SLOTS = Sort(_slots, (lambda one: one.instance_id, lambda one: one.name))
_OFFERS = Sort(
    _offers,
    (lambda one: one.cloud, lambda one: (one.cloud, one.worker_class, one.variant), lambda one: one.key),
)
_SOLD = Sort(_sold, (lambda one: one.cloud, _name_of))
_OTHERS = (
    Sort(_classes, (lambda one: one,)),
    Sort(_annexes, (lambda one: one.name,)),
    Sort(_clouds, (lambda one: one,)),
)
PLANNED = (_JOBS, _SLOTS, _OFFERS, *_OTHERS)
"""What may be to blame where a plan fails, in the order in which it is tried."""
LOOKED_AT = (_JOBS, _SLOTS, _SOLD, *_OTHERS)
"""The same where a look fails: what clouds sell is no offer of a class yet."""


def _parts(
    items: Mapping[Item, object], some: Iterable[Item], apart: Callable[[Any], object]
) -> list[tuple[Item, ...]]:
    found: dict[object, list[Item]] = {}
    for one in some:
        found.setdefault(apart(items[one]), []).append(one)
    return [tuple(part) for part in found.values()]


def _collector(seen: Source[CollectorView], items: Collection[Item], why: str) -> Source[CollectorView]:
    if not isinstance(seen, Known) or not any(sort == "slot" for sort, _ in items):
        return seen
    slots = tuple(_busy(one, why) if ("slot", one.name) in items else one for one in seen.value.slots)
    return replace(seen, value=replace(seen.value, slots=slots))


def _busy(slot: Slot, why: str) -> Slot:
    """A slot of which nothing counts but whose it is, and when it was heard of: it may be at work."""
    return Slot(
        name=slot.name,
        instance_id=slot.instance_id,
        cloud=slot.cloud,
        kind="",
        total=NOTHING,
        free=NOTHING,
        state="Claimed",
        activity="Busy",
        heard=slot.heard,
        started=slot.started,
        partitionable=False,
        launch_key=slot.launch_key,
        fault=why,
    )


def _silent(now: float, why: str) -> CloudView:
    """The view of a cloud whose answers are left out."""
    error = Reason(LEFT_OUT_CLOUD, why)
    return CloudView(Unknown(error, now), Unknown(error, now), Unknown(error, now))


def _at_rest(name: str, worker: WorkerClass) -> WorkerClass:
    """A class of which nothing counts but what its machines were launched with, and how long they may live.

    Its minimum isn't known, so no machine of it is idle for too long.
    """
    return WorkerClass(
        name=name,
        generation=worker.generation,
        clouds=(),
        idle_limit=_FOR_GOOD,
        boot_deadline=_seconds(worker.boot_deadline),
        lifetime=_seconds(worker.lifetime),
        drain_deadline=_seconds(worker.drain_deadline),
        owner_only=bool(worker.owner_only),
    )


def _seconds(number: object) -> float:
    known = isinstance(number, int | float) and 0 <= number < _FOR_GOOD
    return float(number) if known else _FOR_GOOD  # type: ignore[arg-type]


def _left_out(group: JobGroup, why: str) -> JobGroup:
    """A group of which nothing counts but whose it is, and how many."""
    return JobGroup(
        key=group.key,
        schedd=group.schedd,
        owner=group.owner,
        submitter=group.owner,
        ad=problem_ad(why),
        request=Resources(1, 1, 1),
        idle=_count(group.idle, 1),
        running=_count(group.running, 0),
        first_id=group.first_id,
        evaluable=False,
        terms=NO_TERMS,
    )


def _count(number: object, least: int) -> int:
    return min(max(number, least), _MOST_JOBS) if isinstance(number, int) else least
