"""What the collector knows (slots, controllers, its own age), and what is told to it. Runs in a child."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from updraft.condor.advalues import (
    has,
    integer,
    items,
    odd_quantities,
    quantities,
    resources,
    seconds,
    text,
    value,
    word,
)
from updraft.condor.base import (
    ATTR_CLASS,
    ATTR_CLOUD,
    ATTR_FLAVOR,
    ATTR_GENERATION,
    ATTR_INSTANCE,
    ATTR_LAUNCH,
    ATTR_POOL,
    ATTR_VARIANT,
    SHOWN_IDENTITY,
    WORKER_USER,
    PoolSlots,
)
from updraft.condor.collector.accounting import read_shares
from updraft.condor.collector.collectors import collector_loads, collector_started, own_ads
from updraft.condor.collector.crowds import Crowds, Uncrowded, named_crowds
from updraft.condor.collector.odd_ads import MACHINE_RESOURCES, PROJECTION, UNREAD, Odd
from updraft.condor.collector.slot_ads import SLOTS, SlotAds, whole
from updraft.condor.demand.reread import Reread
from updraft.condor.process.news import Mark, News, Teller
from updraft.condor.tokens.workers import is_of, launch_of
from updraft.core.model import Child, CollectorView, Resources, Slot
from updraft.core.slots.kinds import RESOURCES, custom_names, foreign_kind_key, kind_key, template

_SCHEDDS_KEPT = 16  # of one slot: its machine's owner can write any


@dataclass(frozen=True, slots=True)
class SlotMemory:
    """The memory between looks: templates by kind, and the kinds of slots that aren't ours.

    Of slots that are `unread` nothing could be learned, by name and start of the startd, as of `foreign`.
    """

    templates: dict[str, str] = field(default_factory=dict)
    foreign: dict[tuple[str, float], str] = field(default_factory=dict)
    unread: frozenset[tuple[str, float]] = frozenset()


def read_schedds(collector: str | None) -> tuple[str, ...]:
    """Names of all schedds that the collector knows, sorted: by their own ads, and by those of their users.

    A schedd that flocks here sends both (`schedd.cpp` of releases 23.9 and 25: "send the schedd ad to our
    flock collectors too"). What users send of themselves, as whoever has an account may
    (UPDATE_OWN_SUBMITTOR_AD), names no schedd: it would be waited for before any machine goes.
    """
    import htcondor2

    source = htcondor2.Collector(collector)
    ads = source.query(htcondor2.AdType.Schedd, projection=["Name"])
    theirs = ["Name", "ScheddName", SHOWN_IDENTITY]
    flocking = source.query(htcondor2.AdType.Submitter, projection=theirs)
    names = {text(ad, "Name") for ad in ads}
    names |= {text(ad, "ScheddName") for ad in flocking if not _is_his_own(ad)}
    return tuple(sorted(names - {""}))


def _is_his_own(ad: Any) -> bool:
    """Whether that user has sent this submitter's ad; before his name may stand a group of his choice."""
    sender = text(ad, SHOWN_IDENTITY).casefold()
    return bool(sender) and f".{text(ad, 'Name')}".casefold().endswith(f".{sender}")


def read_slots(
    collector: str | None, pool: str, memory: SlotMemory, refresh: bool
) -> tuple[PoolSlots, SlotMemory]:
    """Every slot of the pool, and what to remember for the next look; `refresh` learns known kinds anew."""
    import htcondor2

    source = htcondor2.Collector(collector)
    slots = _LAST_LOOK.slots(Uncrowded(SlotAds(source, _ODD), source, _CROWDS), pool)
    slots = named_crowds(slots, _CROWDS) if _CROWDS.machines else slots
    slots, memory = learn(slots, memory, lambda names: whole(source, names), refresh)
    own = own_ads(source)
    cycle = _last_cycle(source)
    view = CollectorView(
        tuple(slots),
        collector_started(own),
        cycle.ended,
        read_shares(source),
        collector_loads(own),
        cycle.began,
        cycle.heard,
    )
    used = {s.kind for s in slots}
    return PoolSlots(view, {k: v for k, v in memory.templates.items() if k in used}), memory


def tell_slots(
    collector: str | None, pool: str, memory: SlotMemory, refresh: bool, known: Mark
) -> tuple[PoolSlots, News[Slot], SlotMemory]:
    """`read_slots` for whoever has the slots that `known` stands for: they come as news, not in the view."""
    seen, memory = read_slots(collector, pool, memory, refresh)
    bare = PoolSlots(replace(seen.view, slots=()), seen.templates)
    return bare, _TELLER.news(seen.view.slots, known), memory


def slot(ad: Any, pool: str) -> Slot:
    """A slot from its ad. Its kind is empty where the whole ad must be seen to tell. Raises nothing for any
    ad: numbers that no machine has are no room, and are said in the slot's fault.
    """
    instance, launch = _whose(ad, pool)
    partitionable = value(ad, "PartitionableSlot") is True
    custom = custom_names(text(ad, MACHINE_RESOURCES))
    there = quantities(ad, "", custom)
    # Whether a slot that doesn't say its state is busy isn't known: it is left alone.
    state = text(ad, "State") or "Claimed"
    worker_class, generation, cloud, flavor = marks = [
        text(ad, name) for name in (ATTR_CLASS, ATTR_GENERATION, ATTR_CLOUD, ATTR_FLAVOR)
    ]
    kind = kind_key(worker_class, generation, cloud, flavor, text(ad, ATTR_VARIANT))
    return Slot(
        name=text(ad, "Name"),
        instance_id=instance,
        cloud=text(ad, ATTR_CLOUD) if instance else "",
        kind=kind if instance and all(marks) else "",
        total=quantities(ad, "TotalSlot", custom) if has(ad, "TotalSlotCpus") else there,
        free=there if partitionable or state == "Unclaimed" else Resources(),
        state=state,
        activity=text(ad, "Activity"),
        heard=float(integer(ad, "LastHeardFrom")),
        started=float(integer(ad, "DaemonStartTime")),
        partitionable=partitionable,
        children=_children(ad, custom),
        job_starts=_job_starts(ad),
        draining=value(ad, "Draining") is True or state == "Drained",
        drain_reason=text(ad, "DrainReason"),
        launch_key=launch,
        address=text(ad, "MyAddress"),
        # A startd that drains takes Start out of its ad.
        accepting=not (value(ad, "Offline") is True or not has(ad, "Start") or value(ad, "Start") is False),
        retirement=seconds(value(ad, "RetirementTimeRemaining")),
        user="" if partitionable else text(ad, "RemoteUser"),
        submitter="" if partitionable else text(ad, "AccountingGroup"),
        fault=_fault(ad, custom),
        schedds=_schedds(ad),
        since=0.0 if partitionable else float(integer(ad, "EnteredCurrentState")),
        begun=max(0, integer(ad, "JobStarts")) if has(ad, "JobStarts") else None,
    )


def _schedds(ad: Any) -> tuple[str, ...]:
    """Whose jobs are in this slot and its children: the first part of a job's id for all pools."""
    ids = (text(ad, "GlobalJobId"), *map(word, items(ad, "ChildGlobalJobId")))
    names = dict.fromkeys(one.partition("#")[0] for one in ids)
    return tuple(name for name in names if name and name.isprintable())[:_SCHEDDS_KEPT]


def _fault(ad: Any, custom: Sequence[str]) -> str:
    """What of a slot's ad makes no sense, in words; empty where all does."""
    if value(ad, UNREAD) is True:
        return "its ad can't be read by HTCondor's library, so it is no room"
    odd = odd_quantities(ad, "", custom) or odd_quantities(ad, "TotalSlot", custom)
    return f"its ad says that {odd}, which no machine has; it counts as none" if odd else ""


def _whose(ad: Any, pool: str) -> tuple[str, str]:
    """The instance and the launch that a slot is of; no instance for one that is none of this pool's.

    An ad is a word, and the token that brought it is proof. What has shown a worker's token and says that it
    is of another launch, or of none, or nothing of whose it is, gets a launch that no machine has: nobody
    explains it. Of another pool's slot the launch is that of its token.
    """
    says, said_launch, said_pool = (text(ad, name) for name in (ATTR_INSTANCE, ATTR_LAUNCH, ATTR_POOL))
    shown = text(ad, SHOWN_IDENTITY)
    by_token = launch_of(shown)
    if by_token and not (says and said_pool and is_of(shown, said_launch, says)):
        return says or text(ad, "Name"), shown.removeprefix(WORKER_USER)
    return (says, said_launch) if said_pool == pool else ("", by_token)


def _job_starts(ad: Any) -> int | None:
    """Jobs started and claims asked for since the startd started: it moves with any use of the slot."""
    if not has(ad, "JobStarts") and not has(ad, "ClaimRequests"):
        return None
    return integer(ad, "JobStarts") + integer(ad, "ClaimRequests")


def settle_children(ads: Iterable[Any], at_work: Callable[[Sequence[str]], Iterable[str]]) -> tuple[Any, ...]:
    """Correct what partitionable slots' ads say of their children's activity, where it is older than theirs.

    A startd tells at once when a dynamic slot begins a job, but its parent's ad, which repeats it, follows
    with the next regular update: minutes later by HTCondor's own default. Until then the claim would look
    as if it were still to take a job. `at_work` says which of these dynamic slots are busy. Returns the ads
    that had to be asked about: what they say may be another thing at the next look without being newer.
    """
    waiting: dict[str, tuple[Any, int]] = {}
    for ad in ads:
        doing = list(
            zip(*(items(ad, f"Child{what}") for what in ("Name", "State", "Activity")), strict=False)
        )
        waiting |= {
            name: (ad, at)
            for at, (name, *does) in enumerate(doing)
            if isinstance(name, str) and does == ["Claimed", "Idle"]
        }
    for name in at_work(sorted(waiting)) if waiting else ():
        ad, at = waiting.get(name, (None, 0))
        if ad is not None:
            activities = items(ad, "ChildActivity")
            activities[at] = "Busy"
            ad["ChildActivity"] = activities
    return tuple(ad for ad, _ in waiting.values())


_LAST_LOOK = Reread(slot, settle_children)
_ODD = Odd()
_CROWDS = Crowds()
_TELLER: Teller[Slot] = Teller()


def _children(ad: Any, custom: Sequence[str]) -> tuple[Child, ...]:
    states, amounts = items(ad, "ChildState"), (*RESOURCES, *custom)
    lists = {
        name: items(ad, f"Child{name}")
        for name in (
            *(*amounts, "Activity", "RemoteUser", "AccountingGroup"),
            *("RetirementTimeRemaining", "EnteredCurrentState"),
        )
    }

    def at(name: str, index: int) -> Any:
        return lists[name][index] if index < len(lists[name]) else None

    return tuple(
        Child(
            state=state if isinstance(state, str) else "",
            activity=word(at("Activity", i)),
            resources=resources([at(name, i) for name in amounts], custom),
            # The startd has RemoteUser from the schedd's `User`; who has an accounting group goes by that at
            # the negotiator, and may have chosen it.
            user=word(at("RemoteUser", i)),
            retirement=seconds(at("RetirementTimeRemaining", i)),
            submitter=word(at("AccountingGroup", i)),
            since=seconds(at("EnteredCurrentState", i)) or 0.0,
        )
        for i, state in enumerate(states)
    )


def learn(
    slots: Sequence[Slot], memory: SlotMemory, whole: Callable[[Sequence[str]], Iterable[Any]], refresh: bool
) -> tuple[list[Slot], SlotMemory]:
    """`slots` with their kinds, and the memory with a template for each kind that has an open slot.

    `whole` gives the whole ads of the slots with these names; it is asked only for what isn't known.
    """
    foreign = {(s.name, s.started): memory.foreign.get((s.name, s.started), "") for s in slots if not s.kind}
    placed = [s if s.kind else replace(s, kind=foreign[s.name, s.started]) for s in slots]
    unread = frozenset() if refresh else memory.unread
    hidden = {name for name, _ in unread & {(s.name, s.started) for s in slots}}
    strangers = {s.name for s in placed if not s.kind} - hidden
    teachers: dict[str, str] = {}
    for s in placed:
        if s.kind and s.name not in hidden and _teaches(s) and (refresh or s.kind not in memory.templates):
            teachers.setdefault(s.kind, s.name)
    wanted = strangers.union(teachers.values())
    ads = {text(ad, "Name"): ad for ad in whole(sorted(wanted))} if wanted else {}
    kinds = _made(foreign_kind_key, {name: ads[name] for name in strangers & ads.keys()})
    placed = [s if s.kind else replace(s, kind=kinds.get(s.name, "")) for s in placed]
    foreign.update({key: s.kind for s in placed if (key := (s.name, s.started)) in foreign})
    for s in placed:
        if s.name in kinds and _teaches(s) and (refresh or s.kind not in memory.templates):
            teachers.setdefault(s.kind, s.name)
    fresh = _made(template, {kind: ads[name] for kind, name in teachers.items() if name in ads})
    nothing = (
        hidden | strangers - kinds.keys() | {name for kind, name in teachers.items() if kind not in fresh}
    )
    unread = frozenset((s.name, s.started) for s in slots if s.name in nothing)
    return placed, SlotMemory({**memory.templates, **fresh}, foreign, unread)


def _made(make: Callable[[str], str], ads: Mapping[str, Any]) -> dict[str, str]:
    """What is made of each ad; one of which nothing can be made is left out."""
    found = {}
    for key, ad in ads.items():
        with contextlib.suppress(Exception):  # whatever there is in an ad, it costs that ad
            found[key] = make(repr(ad))
    return found


def _teaches(s: Slot) -> bool:
    # A slot that drains has lost its Start and its Requirements: nothing is learned from it.
    return s.accepting and not s.draining and not s.fault


def slot_states(collector: str | None, pool: str, name: str) -> tuple[Slot, ...]:
    """The slots of this name as the collector has them now: one, unless several startds go by it."""
    import classad2
    import htcondor2

    constraint = f"{SLOTS} && Name == {classad2.quote(name)}"
    ads = htcondor2.Collector(collector).query(htcondor2.AdType.Startd, constraint, PROJECTION)
    return tuple(slot(ad, pool) for ad in ads)


class _NegotiationCycle(NamedTuple):
    """A cycle that a negotiator has finished, and when its ad with that came; None where unknown."""

    ended: float | None
    began: float | None
    heard: float | None


def _last_cycle(source: Any) -> _NegotiationCycle:
    """The last cycle that any negotiator has finished."""
    import htcondor2

    names = ["LastNegotiationCycleEnd0", "LastNegotiationCycleTime0", "LastHeardFrom"]
    ads = source.query(htcondor2.AdType.Negotiator, projection=names)
    found: list[tuple[int, ...]] = [tuple(integer(ad, name) for name in names) for ad in ads]
    return _NegotiationCycle(*(float(moment) or None for moment in max(found, default=(0, 0, 0))))


def forget_ads(collector: str | None, slots: Sequence[str]) -> None:
    """Invalidate the startd and master ads of the machines that these slots are on."""
    import classad2
    import htcondor2

    source = htcondor2.Collector(collector)
    for startd in sorted({name.partition("@")[2] or name for name in slots}):
        text, tail = classad2.quote(startd), classad2.quote("@" + startd)
        # All that this startd advertises: itself, its slots and the children of those.
        its = f"(Name == {text} || substr(Name, -{len(startd) + 1}) == {tail})"
        source.advertise([query_ad("Machine", its)], "INVALIDATE_STARTD_ADS")
        # From release 24 on a startd has an ad of its own beside those of its slots, in another table.
        source.advertise([query_ad("StartD", f"Name == {text}")], "INVALIDATE_STARTD_ADS")
        source.advertise([query_ad("DaemonMaster", f"Name == {text}", startd)], "INVALIDATE_MASTER_ADS")


def query_ad(target: str, requirements: str, name: str = "") -> Any:
    """The ad that withdraws ads: of this type, for which the requirements hold."""
    import classad2

    ad = classad2.ClassAd({"MyType": "Query", "TargetType": target})
    ad["Requirements"] = classad2.ExprTree(requirements)
    if name:  # spares the collector a walk over all of its ads, and then means this ad only
        ad["Name"] = name
    return ad
