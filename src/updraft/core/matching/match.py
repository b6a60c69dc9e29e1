"""Would this job group run on a slot of that kind? ClassAd requirements, both sides, as HTCondor would.

Assumptions, where HTCondor leaves room: requirements are monotone in what a slot has left (a job that starts
on a slot with less left would start on one with more), and workers keep the defaults of
`MODIFY_REQUEST_EXPR_REQUEST*` (cpus to 1, memory to 128 MiB, disk to 1 MiB) and of
`MUST_MODIFY_REQUEST_EXPRS` (a rounded request that doesn't fit is tried again as it was asked).
"""

from dataclasses import dataclass, field

from classad2 import ClassAdException, ExprTree, Value

from updraft.core.matching.expressions import Clause, ReadAd, evaluated, reached, read, true
from updraft.core.model import JobGroup, Kind, Reason, Resources, Verdict

QUANTUM = Resources(cpus=1, memory=128, disk=1024, gpus=1)
SENTENCE = 400
CLAUSE = 200
REASONS = 6
_ADS = 4096
DEVICES = 64


@dataclass(slots=True)
class Matcher:
    """Judges pairs, parsing each ad once. Not for use by several threads at a time."""

    _ads: dict[str, ReadAd | None] = field(default_factory=dict)

    def judge(self, group: JobGroup, kind: Kind, now: float) -> Verdict:
        """The verdict on one pair at the time `now`; raises nothing for any text of an ad."""
        return self.judge_timed(group, kind, now)[0]

    def judge_timed(self, group: JobGroup, kind: Kind, now: float) -> tuple[Verdict, bool]:
        """The verdict, and whether it depends on the time."""
        asks = asked(group.request, kind)
        if not group.evaluable:
            text = "the schedd did not name every attribute that matching reads"
            return undecided(asks, "not-evaluable", text), False
        job, slot = self._read(group.ad), self._read(kind.ad)
        if job is None or slot is None:
            text = f"the ad of the {'job' if job is None else 'slot'} is no ClassAd"
            return undecided(asks, "unreadable-ad", text), False
        timed = False
        if job.timed or slot.timed or job.undecidable or slot.undecidable:
            names = reached(job, slot)
            for ad in (job, slot):
                for name in sorted(names & ad.undecidable.keys()):
                    return undecided(asks, "undecidable", f"{name}: {ad.undecidable[name]}"), False
            timed = bool(names & job.timed or names & slot.timed)
        job.bind(now)
        slot.bind(now)
        try:
            return _verdict(group, kind, asks, job, slot), timed
        except (ClassAdException, RecursionError):
            return undecided(
                asks, "unreadable-ad", "the requirements are too deep or too long to evaluate"
            ), timed

    def _read(self, text: str) -> ReadAd | None:
        if text not in self._ads:
            if len(self._ads) >= _ADS:
                self._ads.clear()
            try:
                self._ads[text] = read(text)
            except (ClassAdException, RecursionError):
                self._ads[text] = None
        return self._ads[text]


def judge(group: JobGroup, kind: Kind, now: float) -> Verdict:
    """Would a job of `group` run on an empty slot of `kind` at `now`, and how many of them at once?"""
    return Matcher().judge(group, kind, now)


def asked(request: Resources, kind: Kind) -> Resources:
    """The resources that one job with this `request` takes from a slot of `kind`, rounded as the startd
    rounds it.

    A static slot is taken whole. Where the rounding would ask for more than the whole slot, and the request
    itself would not, the startd gives what there is.
    """
    if not kind.partitionable:
        return kind.resources
    total = kind.resources
    memory, disk = _up(request.memory, QUANTUM.memory), _up(request.disk, QUANTUM.disk)
    return Resources(
        request.cpus,
        total.memory if request.memory <= total.memory < memory else memory,
        total.disk if request.disk <= total.disk < disk else disk,
        request.gpus,
        request.only(total.names).custom if request.custom else (),
    )


def by_quantity(free: Resources, asks: Resources, least: Resources) -> int:
    """How many jobs that take `asks` each fit in `free`, the last one where only `least` is left."""
    counts = [1_000_000_000]
    names = free.names
    for have, want, need in zip(free.amounts(names), asks.amounts(names), least.amounts(names), strict=True):
        if have < need:
            return 0
        if want > 0:
            counts.append(1 + (have - need) // want)
    return min(counts)


def _up(value: int, quantum: int) -> int:
    return -(-value // quantum) * quantum


def undecided(asks: Resources, code: str, text: str) -> Verdict:
    """A verdict that couldn't be reached, and why."""
    return Verdict(0, asks, (Reason(code, text[:SENTENCE]),), decided=False)


def _verdict(group: JobGroup, kind: Kind, asks: Resources, job: ReadAd, slot: ReadAd) -> Verdict:
    mine, theirs = job.accepts(slot), slot.accepts(job)
    most = by_quantity(kind.resources, asks, group.request) if kind.partitionable else 1
    if not kind.resources.holds(group.request):
        most = 0
    if mine and theirs and most:
        return Verdict(_verified(most, kind, asks, job, slot), asks)
    reasons: list[Reason] = []
    if not mine:
        reasons += _failures("requirements", job, slot, ("job", "slot"))
    if not theirs:
        reasons += _failures("machine-requirements", slot, job, ("slot", "job"))
    if not most:
        reasons.append(too_big(group.request, kind.resources))
    return Verdict(0, asks, tuple(reasons[:REASONS]))


def _verified(most: int, kind: Kind, asks: Resources, job: ReadAd, slot: ReadAd) -> int:
    """The largest count up to `most` whose last job still starts on what the others left."""
    if most == 1 or _starts(most - 1, kind, asks, job, slot):
        return most
    good, bad = 1, most
    while bad - good > 1:
        middle = (good + bad) // 2
        if _starts(middle - 1, kind, asks, job, slot):
            good = middle
        else:
            bad = middle
    return good


def _starts(before: int, kind: Kind, asks: Resources, job: ReadAd, slot: ReadAd) -> bool:
    """Whether one more job starts on a slot of `kind` that `before` jobs have taken from."""
    free = kind.resources - asks.times(before)
    left: dict[str, object] = {
        "Cpus": free.cpus,
        "Memory": free.memory,
        "Disk": free.disk,
        "GPUs": free.gpus,
        "NumDynamicSlots": before,
        **dict(free.custom),
    }
    if asks.gpus and "availablegpus" in slot.originals:
        left["AvailableGPUs"] = _list(_devices(job, slot)[asks.gpus * before :])
    whole = {name: slot.ad.lookup(name) for name in left if name.lower() in slot.own}
    for name in whole:
        slot.ad[name] = left[name]
    try:
        return job.accepts(slot) and slot.accepts(job)
    finally:
        for name, value in whole.items():
            slot.ad[name] = value


def _devices(job: ReadAd, slot: ReadAd) -> list[str]:
    """The slot's GPUs by name, those first that the job would be given first."""
    devices = "".join(slot.originals["availablegpus"].split()).strip("{}").split(",")
    if "requiregpus" not in job.own or len(devices) > DEVICES:
        return devices
    whole, suits = (
        slot.ad.lookup("AvailableGPUs"),
        ExprTree("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs)"),
    )
    bad = []
    for device in devices:
        slot.ad["AvailableGPUs"] = _list([device])
        if not true(evaluated(suits, job.ad, slot.ad)):
            bad.append(device)
    slot.ad["AvailableGPUs"] = whole
    return [device for device in devices if device not in bad] + bad


def _list(names: list[str]) -> ExprTree:
    return ExprTree("{ " + ", ".join(names) + " }")


def too_big(request: Resources, total: Resources) -> Reason:
    """The quantities of which a slot of this size has too little for this request."""
    names = total.names
    units = ("cpus", "MiB of memory", "KiB of disk", "GPUs", *names)
    lacks = [
        f"{want} {unit} (the slot has {have})"
        for want, have, unit in zip(request.amounts(names), total.amounts(names), units, strict=True)
        if want > have
    ]
    return Reason("too-big", "the job asks for " + ", ".join(lacks))


def _failures(code: str, ad: ReadAd, other: ReadAd, sides: tuple[str, str]) -> list[Reason]:
    if ad.requirements is None:
        return [Reason(code, f"the {sides[0]}'s ad has no Requirements")]
    found = [
        Reason(code, _sentence(clause, value, ad, other, sides))
        for (clause, value), _ in zip(ad.failing(other), range(REASONS), strict=False)
    ]
    return found or [Reason(code, f"{short(ad.source, CLAUSE)}: is not true")]


def _sentence(clause: Clause, value: object, ad: ReadAd, other: ReadAd, sides: tuple[str, str]) -> str:
    facts = []
    for theirs, name in clause.mentions:
        side, here, there = (sides[1], other, ad) if theirs else (sides[0], ad, other)
        verb = "asks" if side == "job" and name.lower().startswith("request") else "has"
        facts.append(f"the {side} {verb} {name} {_value(here, there, name)}")
        if len(facts) == 4:
            break
    if isinstance(value, Value):
        facts.append(f"which is {value.name.lower()}")
    text = f"{short(clause.text, CLAUSE)}: {', '.join(facts) or 'is not true'}"
    return short(text, SENTENCE)


def _value(ad: ReadAd, other: ReadAd, name: str) -> str:
    if name.lower() not in ad.own:
        return "undefined"
    value = evaluated(ad.ad.lookup(name), ad.ad, other.ad)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Value):
        return str(value.name.lower())
    return short(f'"{value}"' if isinstance(value, str) else str(value), 60)


def short(text: str, limit: int) -> str:
    """`text` on one line, cut where it is longer than `limit` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
