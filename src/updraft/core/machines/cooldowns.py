"""Patience and rest: what is still on its way, how long a boot may take, and what cools down after failures.

Each is a small function of values. Limits and quotas are in `budget`.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache

from updraft.core.machines.handover import fair_deadline
from updraft.core.model import (
    PLAIN,
    Cooldown,
    Known,
    LaunchRecord,
    LaunchState,
    LedgerView,
    Machine,
    MachineId,
    MachineRecord,
    Reason,
    Snapshot,
    Variant,
)
from updraft.core.reasons import counted
from updraft.core.settings import Policy, Timings, WorkerClass

NEVER_JOINED = "never-joined"
CLOUD_ERROR = "cloud-error"

_OPEN = (LaunchState.INTENDED, LaunchState.UNKNOWN)
# Which part of the world an error speaks of: the offer that ran out, or the cloud as a whole.
_SCOPE_OF_ERROR = {
    "no-capacity": "offer",
    "bad-request": "offer",
    "quota-exceeded": "cloud",
    "throttled": "cloud",
    "auth-failed": "cloud",
    "cloud-unavailable": "cloud",
}


def image_key(worker_class: str, image: str, cloud: str, variant: Variant = PLAIN) -> str:
    """The name under which boots of an image are trusted or rested."""
    return f"{worker_class}:{booted(image, variant)}@{cloud}"


@lru_cache(maxsize=1024)
def booted(image: str, variant: Variant) -> str:
    """An image with what else of a variant may keep its machines from joining: network, groups, layers.

    An unreadable one is taken as it is written: nobody can say what it was launched with.
    """
    if variant.unreadable:
        return f"{image}?{variant.text}"
    marks = Variant(network=variant.network, layers=variant.layers, groups=variant.groups).text
    return f"{image}?{marks}" if marks else image


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A launch of which `count` machines may still appear, and count as on their way until it settles."""

    launch: LaunchRecord
    count: int

    @property
    def keys(self) -> tuple[MachineId, ...]:
        """The keys under which its machines count until they have ids: no cloud, and the launch's key
        with a number.
        """
        return tuple([MachineId("", f"{self.launch.key}#{number}") for number in range(self.count)])


def outstanding(ledger: LedgerView, machines: Iterable[Machine]) -> tuple[Outstanding, ...]:
    """The launches whose machines have not all shown themselves: each counts until it joins or its
    deadline passes.
    """
    launches = [launch for launch in ledger.launches if launch.state in _OPEN]
    if not launches:
        return ()
    shown: dict[str, int] = {}
    for machine in machines:
        shown[machine.record.launch_key] = shown.get(machine.record.launch_key, 0) + 1
    for record in ledger.machines:
        if record.ended_at is not None:
            shown[record.launch_key] = shown.get(record.launch_key, 0) + 1
    missing = [(launch, launch.count - shown.get(launch.key, 0)) for launch in launches]
    return tuple(Outstanding(launch, count) for launch, count in missing if count > 0)


def settled(launches: Iterable[LaunchRecord], snapshot: Snapshot, timings: Timings) -> tuple[str, ...]:
    """Launches without an answer of which nothing more will come: their cloud was looked at since.

    Since their calls ended, that is: one that goes on may take longer than a cloud needs to show a machine.
    """
    keys = []
    for launch in launches:
        if (
            launch.state not in (LaunchState.INTENDED, LaunchState.UNKNOWN)
            or launch.key in snapshot.launching
        ):
            continue
        view = snapshot.clouds.get(launch.cloud)
        if view is None or not isinstance(view.machines, Known):
            continue
        cut_off = min(snapshot.awake_since, snapshot.now)
        ended = cut_off if launch.failed_at is None else min(launch.failed_at, snapshot.now)
        if view.machines.at >= max(launch.asked_at, ended) + timings.settle:
            keys.append(launch.key)
    return tuple(keys)


def boot_deadline(
    record: MachineRecord, worker: WorkerClass | None, policy: Policy, snapshot: Snapshot
) -> float:
    """When a machine must have joined: learned from the boots of its image and flavor, within bounds.

    While no controller acted none could join, so that this time doesn't count.
    """
    timings = policy.timings
    longest = worker.boot_deadline if worker else timings.boot_floor
    seen = snapshot.ledger.boots.get((record.image, record.flavor), ())
    learned = max(seen) * timings.boot_slack if seen else longest
    allowed = min(longest, max(timings.boot_floor, learned))
    return fair_deadline(record.requested_at, allowed, longest, acting_since(snapshot))


def acting_since(snapshot: Snapshot) -> float:
    """When this controller began to act."""
    return min(max(snapshot.awake_since, snapshot.taken_over_at or 0.0), snapshot.now)


# ----------------------------------------------------------------------------------------- cool-downs


Scope = tuple[str, ...]
"""Of what an outcome speaks: ("offer", cloud, zone, flavor, market), ("image", class, image, cloud)."""


@dataclass(frozen=True, slots=True)
class _Failure:
    at: float
    reason: Reason


@dataclass(slots=True)
class _History:
    """For each scope the latest success, and all failures in the order of the ledger."""

    fine: dict[Scope, float] = field(default_factory=dict)
    failures: dict[Scope, list[_Failure]] = field(default_factory=dict)

    def went_well(self, scope: Scope, at: float) -> None:
        if at > self.fine.get(scope, float("-inf")):
            self.fine[scope] = at

    def went_wrong(self, scope: Scope, at: float, reason: Reason) -> None:
        self.failures.setdefault(scope, []).append(_Failure(at, reason))

    def runs(self) -> Iterator[tuple[Scope, list[_Failure]]]:
        """The failures since the latest success of each scope, the newest first, where there are any."""
        for scope, failures in self.failures.items():
            since = self.fine.get(scope, float("-inf"))
            run = sorted((one for one in failures if one.at > since), key=lambda one: one.at)
            if run:
                yield scope, run[::-1]


def _history(ledger: LedgerView, now: float) -> _History:
    history = _History()
    joined: dict[tuple[str, ...], float] = {}
    for record in ledger.machines:
        if record.joined_at is not None:
            image = booted(record.image, record.variant)
            key = (record.cloud, record.zone, record.flavor, record.market, record.worker_class, image)
            if record.joined_at > joined.get(key, float("-inf")):
                joined[key] = record.joined_at
        elif record.end is not None:
            _of_failed(record, record.end, history, now)
    # Whether a machine joined speaks of its image, and of where it was made.
    for (cloud, zone, flavor, market, worker_class, image), at in joined.items():
        history.went_well(("image", worker_class, image, cloud), at)
        history.went_well(("offer", cloud, zone, flavor, market), at)
    # Offers whose machines the cloud could not make, though it took the order; until one has joined.
    spoiled = {
        scope
        for scope, failures in history.failures.items()
        if scope[0] == "offer" and max(one.at for one in failures) > history.fine.get(scope, float("-inf"))
    }
    for launch in ledger.launches:
        _of_launch(launch, history, spoiled)
    return history


def _of_launch(launch: LaunchRecord, history: _History, spoiled: AbstractSet[Scope]) -> None:
    """What the cloud answered. That an offer was accepted says nothing where its machines then broke."""
    offer: Scope = ("offer", launch.cloud, launch.zone, launch.flavor, launch.market)
    mine = variant_scope(offer, launch.variant)
    cloud = ("cloud", launch.cloud)
    if launch.error is not None:
        code = launch.error.code
        scope = offer if _SCOPE_OF_ERROR.get(code, "cloud") == "offer" else cloud
        history.went_wrong(mine if code == "bad-request" else scope, launch.asked_at, launch.error)
    elif launch.state in (LaunchState.ACCEPTED, LaunchState.SETTLED):
        if offer not in spoiled:
            history.went_well(offer, launch.asked_at)
            history.went_well(mine, launch.asked_at)
        history.went_well(cloud, launch.asked_at)


def variant_scope(offer: Scope, variant: Variant) -> Scope:
    """The scope of an offer in one variant: that a cloud can't make it so says nothing of plain machines."""
    return (*offer[:-1], f"{offer[-1]}?{variant.text}") if variant else offer


def _of_failed(record: MachineRecord, end: Reason, history: _History, now: float) -> None:
    """Why a machine has not joined and will not."""
    at = record.terminate_asked_at or record.ended_at or now
    if end.code == CLOUD_ERROR:
        # The cloud could not make it: that speaks of the place and the flavor, not of the image.
        history.went_wrong(("offer", record.cloud, record.zone, record.flavor, record.market), at, end)
    elif end.code == NEVER_JOINED:
        image = booted(record.image, record.variant)
        history.went_wrong(("image", record.worker_class, image, record.cloud), at, end)


def _name(scope: Scope) -> str:
    """The name that a cool-down goes by."""
    what, *parts = scope
    return image_key(parts[0], parts[1], parts[2]) if what == "image" else "/".join(parts)


def cooldowns(ledger: LedgerView, now: float, timings: Timings) -> tuple[Cooldown, ...]:
    """The cool-downs after failures, from the ledger's own history: exponential, per offer, image or cloud.

    Failures at the same moment (one launch of many machines) are one piece of news, and lengthen the rest
    once. But each counts towards `failures_to_probe` in a row, after which one probe goes out at a time.
    """
    rests = []
    named = [((scope[0], _name(scope)), run) for scope, run in _history(ledger, now).runs()]
    for (scope, key), run in sorted(named, key=lambda item: item[0]):
        failures = _pieces_of_news(run, timings.settle)
        rest = min(timings.cooldown_first * 2 ** min(failures - 1, 30), timings.cooldown_longest)
        until = run[0].at + rest
        probe = len(run) >= timings.failures_to_probe
        if now < until or probe:
            last = run[0].reason
            text = (
                f"{scope} {key}: {counted(len(run), 'failure')} in a row, the last: {last.text or last.code}"
            )
            rests.append(Cooldown(scope, key, until, len(run), probe, Reason(last.code, text)))
    return tuple(rests)


def _pieces_of_news(run: Sequence[_Failure], apart: float) -> int:
    """How many failures, counting those within `apart` seconds of each other once. `run` is newest first."""
    count, last = 0, float("inf")
    for failure in run:
        if last - failure.at > apart / 10:
            count += 1
            last = failure.at
    return count
