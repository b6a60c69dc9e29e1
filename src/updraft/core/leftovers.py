"""What of all that updraft has made in a cloud is left over, and what may be removed.

Nothing is removed that isn't provably this pool's (its identity in the thing's tags, or the ledger's note of
it), that something uses, that the configuration names, or that is so young that it may be in the making. What
nobody knows counts as a reason to keep it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from updraft.core.model import Reason

HOUR = 3600.0


class Kind(StrEnum):
    """The kinds of things that a pool can leave in a cloud."""

    MACHINE = "machine"
    IMAGE = "image"
    SNAPSHOT = "snapshot"
    VOLUME = "volume"
    GROUP = "security-group"
    ADDRESS = "address"
    PORT = "port"
    KEY_PAIR = "key-pair"


class LeftoverState(StrEnum):
    """The decision about a leftover: only what is `left` goes without being named one by one."""

    LEFT = "left"
    UNUSED = "unused"
    KEPT = "kept"
    REFUSED = "refused"


SPARED: Mapping[Kind, float] = {
    Kind.MACHINE: 4 * HOUR,  # as long as a machine that makes an image lives
    Kind.IMAGE: 2 * HOUR,
    Kind.SNAPSHOT: 2 * HOUR,  # an image that is in the making doesn't name its snapshots yet
    Kind.VOLUME: HOUR,
    Kind.ADDRESS: HOUR,
    Kind.PORT: HOUR,
}
"""Seconds for which a thing may be a part of something that is still under way."""
_PEOPLES = (Kind.IMAGE, Kind.GROUP, Kind.KEY_PAIR)  # what people make to keep it


@dataclass(frozen=True, slots=True)
class Belonging:
    """A thing in a cloud, as far as the cloud tells of it.

    `pool` and `identity` are what its tags say, "" where they say nothing; `used_by` who uses it, in words,
    "" for nobody; `made_at` POSIX seconds, None where the cloud doesn't say. `unfinished`: it is in the
    making; `broken`: it has failed.
    """

    cloud: str
    kind: Kind
    id: str
    name: str = ""
    pool: str = ""
    identity: str = ""
    used_by: str = ""
    made_at: float | None = None
    unfinished: bool = False
    broken: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return (self.cloud, self.kind, self.id)


@dataclass(frozen=True, slots=True)
class KnownSite:
    """The site's knowledge: the pool with its identity ("" while it has none), and the time.

    `noted` are cloud, kind and id of what the ledger says that updraft made; `named` says by cloud and id or
    name where the configuration names it.
    """

    pool: str
    identity: str
    now: float
    noted: frozenset[tuple[str, str, str]] = frozenset()
    named: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """A thing with what is to become of it, and why."""

    thing: Belonging
    fate: LeftoverState
    reason: Reason


def judged(things: Iterable[Belonging], site: KnownSite) -> tuple[Judged, ...]:
    """The decision about each thing that is this pool's by its tags or the ledger; others are left out."""
    ours = (one for one in things if one.pool == site.pool or one.key in site.noted)
    found = {one.key: Judged(one, *_fate(one, site)) for one in ours}
    return tuple(found[key] for key in sorted(found))


def chosen(found: Iterable[Judged], ids: Iterable[str] = ()) -> tuple[tuple[Judged, ...], tuple[Judged, ...]]:
    """The things to be removed, and those that were named and are refused.

    Without `ids` that is all that is left over; with them these alone, by id or name, unused ones too.
    """
    every, wanted = tuple(found), frozenset(ids)
    if not wanted:
        return tuple(one for one in every if one.fate is LeftoverState.LEFT), ()
    named = [one for one in every if wanted & {one.thing.id, one.thing.name}]
    going = tuple(one for one in named if one.fate in (LeftoverState.LEFT, LeftoverState.UNUSED))
    return going, tuple(one for one in named if one not in going)


def unknown(found: Iterable[Judged], ids: Iterable[str]) -> tuple[str, ...]:
    """Which of these ids and names mean nothing here."""
    there = {word for one in found for word in (one.thing.id, one.thing.name)}
    return tuple(one for one in dict.fromkeys(ids) if one not in there)


def _fate(one: Belonging, site: KnownSite) -> tuple[LeftoverState, Reason]:
    doubt = _doubt(one, site)
    if doubt is not None:
        return LeftoverState.REFUSED, doubt
    keep = next(_keep(one, site), None)
    if keep is not None:
        return LeftoverState.KEPT, keep
    if one.broken or one.unfinished:
        return LeftoverState.LEFT, Reason("half-made", "it failed, or was never finished")
    if one.kind in _PEOPLES:
        return LeftoverState.UNUSED, Reason(
            "unused", "nothing here uses or names it: it goes only where its id is given"
        )
    if one.kind in SPARED and one.made_at is None:
        return LeftoverState.UNUSED, Reason(
            "age-unknown", "nothing uses it, and the cloud doesn't say since when it is there"
        )
    return LeftoverState.LEFT, Reason("left-over", "nothing uses it any more")


def _doubt(one: Belonging, site: KnownSite) -> Reason | None:
    """Why it isn't proven to be this pool's."""
    if one.identity and one.identity != site.identity:
        return Reason("another-pool", f"its identity is {one.identity}, another pool's of this name")
    if one.identity or one.key in site.noted or one.used_by:  # what is in use stays, whoever made it
        return None
    return Reason(
        "not-proven",
        "it has the pool's name and not its identity: another pool of this name may have made it; look at "
        "it, and remove it by the cloud's own tools",
    )


def _keep(one: Belonging, site: KnownSite) -> Iterator[Reason]:
    """Why it stays though it is ours."""
    if one.used_by:
        yield Reason("in-use", f"{one.used_by} uses it")
    for word in (one.id, one.name):
        where = site.named.get((one.cloud, word), "") if word else ""
        if where:
            yield Reason("named", f"{where} names it")
    spared = SPARED.get(one.kind)
    if spared is None:
        return
    if one.made_at is not None and site.now - one.made_at < spared and not one.broken:
        if one.unfinished or one.kind not in _PEOPLES:
            yield Reason("young", f"it is younger than {spared / HOUR:g} h, and may be in the making")
    elif one.made_at is None and one.unfinished:
        yield Reason("age-unknown", "it is in the making, and the cloud doesn't say since when")
