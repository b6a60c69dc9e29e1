"""How fast machines may join: as fast as they like, until a collector shows that it was too fast.

Each join costs a collector a fresh session, so that a burst can drown it, and with it the updates of those
that are there already. How many it takes nobody knows beforehand. So nothing is limited until a collector's
own ad shows trouble; how many joined then is what it takes, and half of that is what is asked for from there
on: machines of one kind take about equally long to boot, so they join as fast as they were asked for. From
what is seen to be taken calmly it grows to what keeps the busiest collector calm. What counts is never how
many machines are on their way: that is boots, which cost a collector nothing, and a limit on them would make
a pool slower the longer boots take.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from updraft.core.model import (
    CollectorLoad,
    CollectorView,
    JoinPace,
    Known,
    LaunchState,
    LedgerView,
    Reason,
    Source,
)

WINDOW = 10.0
"""Seconds in which launches and joins are counted: what was said sooner after a last word isn't looked at."""

FIRST = 16
"""Machines that may always be asked for in a window: no collector has trouble with so few joins."""

BUSY, CALM = 0.9, 0.6
"""Parts of the time: at work for more, a collector falls behind; up to the second, it has room for more."""

QUEUED = 40
"""Questions that waited at once: at 50 (COLLECTOR_QUERY_WORKERS_PENDING) the next are dropped."""

FADES = 3600.0
"""Seconds without trouble after which twice as many may be tried, though nobody has joined."""

ENOUGH = 4096
"""A limit above this is none any more."""

FORGOTTEN = 3600.0
"""Seconds of silence after which a collector is taken for one that is no more."""

_ABOUT = 2.0  # seconds: collectors say in whole ones since when they run
_UNDER_WAY = (LaunchState.INTENDED, LaunchState.UNKNOWN)


def noted(pace: JoinPace) -> dict[str, Any]:
    """The facts that the next controller has to know, as JSON's types.

    The limit, since a head that restarts while machines drown its collectors would otherwise begin with
    another burst; not what collectors said: they are heard again soon.
    """
    return {"most": pace.most, "why": pace.why, "since": pace.since}


def read(note: Mapping[str, Any]) -> JoinPace:
    """The pace that was `noted`; any number of joins where the note makes no sense."""
    most, why, since = note.get("most"), note.get("why"), note.get("since")
    if not (isinstance(most, int) and isinstance(why, str) and isinstance(since, int | float)):
        return JoinPace()
    return JoinPace(max(FIRST, most), why, float(since))


def after_look(pace: JoinPace, collector: Source[CollectorView], ledger: LedgerView, now: float) -> JoinPace:
    """The pace after another look; as it was while no collector answers, or says anything of itself."""
    if not isinstance(collector, Known) or not (collector.value.loads or pace.seen or pace.calm):
        return pace
    return paced(pace, collector.value.loads, _coming(ledger), now)


def _coming(ledger: LedgerView) -> bool:
    """Whether any machine is on its way."""
    if any(launch.state in _UNDER_WAY for launch in ledger.launches):
        return True
    return any(record.joined_at is None and record.ended_at is None for record in ledger.machines)


def paced(pace: JoinPace, loads: Mapping[str, CollectorLoad], coming: bool, now: float) -> JoinPace:
    """The pace after another look at the collectors; `coming` is whether any machine is on its way.

    A look that brings no news changes nothing. It is raised only when every collector of the tree has been
    heard of again since it was last changed, and had room; of one that is silent nothing is known.
    """
    seen = {name: load for name, load in pace.seen.items() if name in loads or now - load.told < FORGOTTEN}
    news = {name: load for name, load in loads.items() if _is_news(seen.get(name), load)}
    pairs = {name: (seen[name], load) for name, load in news.items() if _one_run(seen.get(name), load)}
    joins = max((_rate(*pair) for pair in pairs.values()), default=0.0)
    calm = {name: duty for name, duty in pace.calm.items() if name in seen and name not in news}
    calm |= {name: duty for name, pair in pairs.items() if (duty := _duty(*pair)) <= CALM}
    pace = replace(pace, seen={**seen, **news}, calm=calm)
    for name, pair in sorted(pairs.items()):
        if trouble := _trouble(*pair):
            return _slower(pace, joins, coming, f"{name} {trouble}", now)
    if pace.most is None or not calm or calm.keys() != pace.seen.keys():
        return pace
    return _faster(pace, pace.most, joins, coming, now)


def joins_left(pace: JoinPace, ledger: LedgerView, now: float) -> int | None:
    """How many machines may be asked for now; None for any number."""
    if pace.most is None:
        return None
    asked = sum(
        launch.count
        for launch in ledger.launches
        if launch.asked_at > now - WINDOW and launch.state is not LaunchState.REFUSED
    )
    return max(0, pace.most - asked)


def slowed(pace: JoinPace) -> Reason:
    """Why no more than that."""
    text = f"collector {pace.why}: machines join more slowly, {pace.most} are asked for in {WINDOW:.0f} s"
    return Reason("join-pace", text)


def _slower(pace: JoinPace, joins: float, coming: bool, trouble: str, now: float) -> JoinPace:
    """Half of what was taken. Trouble while nobody joins, and nobody is about to, is not made by joins."""
    if not (coming or joins):
        return replace(pace, calm={})
    most = max(FIRST, int(joins / 2))
    most = most if pace.most is None else min(most, pace.most)
    return replace(pace, most=most, why=trouble, since=now, calm={})


def _faster(pace: JoinPace, most: int, joins: float, coming: bool, now: float) -> JoinPace:
    """Up to twice what was taken, as far as the busiest stays calm with it.

    Without joins only when none are to come: boots may take long.
    """
    room = min(2.0, CALM / max(*pace.calm.values(), CALM / 2))
    more = max(most, min(2 * most, int(room * joins)))
    if more == most and not coming and now - pace.since >= FADES:
        more = 2 * most
    if more == most:
        return pace
    if more > ENOUGH:
        return JoinPace(seen=pace.seen)
    return replace(pace, most=more, since=now, calm={})


def _one_run(before: CollectorLoad | None, now: CollectorLoad) -> bool:
    return before is not None and abs(before.started - now.started) < _ABOUT


def _is_news(before: CollectorLoad | None, now: CollectorLoad) -> bool:
    return before is None or not _one_run(before, now) or now.told - before.told >= WINDOW


def _rate(before: CollectorLoad, now: CollectorLoad) -> float:
    """Machines that joined in a window."""
    return max(0, now.joined - before.joined) / (now.told - before.told) * WINDOW


def _duty(before: CollectorLoad, now: CollectorLoad) -> float:
    return (now.busy - before.busy) / (now.told - before.told)


def _trouble(before: CollectorLoad, now: CollectorLoad) -> str:
    """The signs that a collector has had too much to do since its last word."""
    if (duty := _duty(before, now)) > BUSY:
        return f"was busy {min(1.0, duty):.0%} of the time"
    if now.lost > before.lost:
        return f"lost {now.lost - before.lost} updates"
    if now.dropped > before.dropped:
        return f"dropped {now.dropped - before.dropped} questions"
    # A peak since its start: it says something only when it rises.
    return f"had {now.queued} questions waiting" if now.queued > max(before.queued, QUEUED - 1) else ""
