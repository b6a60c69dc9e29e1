"""Snapshots for tests: small builders with sensible defaults, and Hypothesis strategies over odd ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from updraft.core.model import (
    Child,
    CloudOffer,
    CloudState,
    CloudView,
    CollectorLoad,
    CollectorView,
    DrainMode,
    DrainRecord,
    Instance,
    JobGroup,
    JoinPace,
    Kind,
    Known,
    LaunchRecord,
    LaunchState,
    Learned,
    LedgerView,
    MachineRecord,
    Observation,
    Offer,
    Prepared,
    Quota,
    Reason,
    Resources,
    RunningJob,
    ScheddView,
    Slot,
    Snapshot,
    Unknown,
    Verdict,
)
from updraft.core.prepare import prepare
from updraft.core.settings import CloudRule, Limits, Policy, Threshold, Timings, WorkerClass
from updraft.core.slots.kinds import kind_key

NOW = 1_000_000.0
POOL = "test"
GENERATION = "g1"
SMALL = Resources(2, 4096, 20_000_000)
LARGE = Resources(8, 16384, 80_000_000)
FLAVORS = {"small": (SMALL, 0.1), "large": (LARGE, 0.36)}
ASK = Resources(1, 1024, 1024)
DOWN = Reason("timeout", "no answer")


def worker(name: str = "default", **changes: object) -> WorkerClass:
    """A worker class on cloud `c1`."""
    base = WorkerClass(name, GENERATION, ("c1",), images={"c1": "img", "c2": "img"}, idle_limit=600.0)
    return replace(base, **changes)  # type: ignore[arg-type]


def policy(*classes: WorkerClass, **changes: object) -> Policy:
    """A policy of these classes (one default class where none is given)."""
    made = classes or (worker(),)
    return replace(Policy(POOL, {c.name: c for c in made}), **changes)  # type: ignore[arg-type]


def offer(
    flavor: str = "small", cloud: str = "c1", worker_class: str = "default", **changes: object
) -> Offer:
    """An offer of one of the two flavors."""
    resources, price = FLAVORS[flavor]
    kind = kind_key(worker_class, GENERATION, cloud, flavor)
    made = Offer(
        worker_class, cloud, "z1", flavor, "on-demand", "img", GENERATION, resources, kind, price=price
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def kind(flavor: str = "small", cloud: str = "c1", worker_class: str = "default") -> Kind:
    """The kind that such an offer brings; its ad is never read by the plan."""
    return Kind(kind_key(worker_class, GENERATION, cloud, flavor), "[]", FLAVORS[flavor][0])


def group(key: str = "g", idle: int = 1, **changes: object) -> JobGroup:
    """A group of one-core jobs."""
    made = JobGroup(key, "schedd", "alice", "alice@pool", "[]", ASK, idle, oldest=NOW - 10)
    return replace(made, **changes)  # type: ignore[arg-type]


def instance(name: str, state: CloudState = CloudState.RUNNING, **changes: object) -> Instance:
    """An instance that carries the pool's tag."""
    made = Instance(
        name,
        "c1",
        state,
        NOW - 3600,
        "default",
        f"L-{name}",
        GENERATION,
        zone="z1",
        flavor="small",
        image="img",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def record(name: str, **changes: object) -> MachineRecord:
    """A machine that was asked for an hour ago and has not joined yet."""
    made = MachineRecord(
        name,
        "c1",
        f"L-{name}",
        "default",
        "small",
        GENERATION,
        NOW - 3600,
        SMALL,
        "z1",
        image="img",
        price=0.1,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def gone(name: str, **changes: object) -> MachineRecord:
    """One that had joined, and of which its cloud said 12 s ago, asked by its id, that it is no more."""
    told = {"joined_at": NOW - 3500, "last_claimed_at": NOW - 9, "job_starts": 3, "seen_at": NOW - 3590}
    said = {"missing_since": NOW - 15, "gone_since": NOW - 12, "gone_heard": NOW - 5}
    return record(name, **(told | said | changes))


def slot(name: str, busy: bool = False, **changes: object) -> Slot:
    """The partitionable slot of a machine; `busy` carves one claimed child out of it."""
    children = (Child("Claimed", "Busy", ASK, "alice@pool"),) if busy else ()
    made = Slot(
        f"slot1@{name}@host",
        name,
        "c1",
        kind_key("default", GENERATION, "c1", "small"),
        SMALL,
        SMALL - ASK if busy else SMALL,
        "Unclaimed",
        "Idle",
        NOW - 5,
        NOW - 3500,
        children=children,
        job_starts=3,
        launch_key=f"L-{name}",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def verdicts(groups: Iterable[JobGroup], kinds: Iterable[Kind]) -> dict[tuple[str, str], Verdict]:
    """Every group runs on every kind, as far as quantities go."""
    return {(g.key, k.key): Verdict(k.resources.holds(g.request), g.request) for g in groups for k in kinds}


def snapshot(
    *,
    instances: Iterable[Instance] = (),
    slots: Iterable[Slot] = (),
    groups: Iterable[JobGroup] = (),
    records: Iterable[MachineRecord] = (),
    running: tuple[RunningJob, ...] | None = (),
    offers: Iterable[Offer] | None = None,
    found: Mapping[str, Instance | None] | None = None,
    **changes: object,
) -> Snapshot:
    """A pool in which every source has answered; `found` is what the cloud says of ids."""
    sold = tuple(offers) if offers is not None else (offer("small"), offer("large"))
    kinds = {k.key: k for k in (kind("small"), kind("large"))}
    waiting = tuple(groups)
    cloud = CloudView(
        Known(tuple(instances), NOW),
        Known(tuple(CloudOffer("c1", "z1", n, "on-demand", r, p) for n, (r, p) in FLAVORS.items()), NOW),
        Known(Quota(unlimited=frozenset({"machines", "cores", "memory"})), NOW),
        {name: Known(one, NOW) for name, one in (found or {}).items()},
    )
    made = Snapshot(
        NOW,
        POOL,
        {"schedd": Known(ScheddView(waiting, running), NOW)},
        Known(CollectorView(tuple(slots), NOW - 100_000, NOW - 5), NOW),
        {"c1": cloud},
        LedgerView(machines=tuple(records)),
        offers=sold,
        kinds=kinds,
        verdicts=verdicts(waiting, kinds.values()),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def prepared(seen: Snapshot, rules: Policy) -> Prepared:
    """What could have led to such a snapshot, and the snapshot that is prepared of it.

    It sells what the given one offers; `spare` and `left_out` are not taken over.
    """
    sold = {
        name: tuple(
            CloudOffer(one.cloud, one.zone, one.flavor, one.market, one.resources, one.price, one.left)
            for one in seen.offers
            if one.cloud == name
        )
        for name in seen.clouds
    }
    observation = Observation(
        seen.now,
        seen.pool,
        seen.schedds,
        seen.collector,
        {name: replace(view, offers=Known(sold[name], NOW)) for name, view in seen.clouds.items()},
        seen.ledger,
        seen.annexes,
        seen.jumped_at,
        seen.launching,
        seen.awake_since,
        seen.taken_over_at,
        templates=dict.fromkeys(seen.kinds, "[]"),
    )
    learned = Learned(seen.now, {}, seen.pace, kinds=seen.kinds, verdicts=seen.verdicts)
    return Prepared(observation, learned, prepare(observation, learned, rules))


# ------------------------------------------------------------------------------------------- strategies

T = TypeVar("T")
_number = cache(st.integers)


def pick(draw: st.DrawFn, values: Sequence[T]) -> T:
    """One of these. A `sampled_from` made anew at each draw costs Hypothesis more than all that it draws."""
    return values[draw(_number(0, len(values) - 1))]


_LOAD = CollectorLoad(NOW - 30, NOW - 900, 800.0, 40, 1, 2, 3)
BY_HAND = DrainRecord(DrainMode.BUSY, NOW, Reason("operator", "x"))
PACED = JoinPace(3, "c was busy 95% of the time", NOW - 30, {"c": _LOAD}, {"c": 0.4})


@st.composite
def drains(draw: st.DrawFn) -> DrainRecord | None:
    """No drain, or one that was asked for and perhaps accepted."""
    if draw(st.booleans()):
        return None
    mode = pick(draw, list(DrainMode))
    asked = NOW - pick(draw, [1.0, 30.0, 500.0])
    deadline = NOW + pick(draw, [-10.0, 100.0]) if draw(st.booleans()) else None
    codes = ["lifetime", "drifted", "operator", "over-limit"]
    # Want of work is a reason for the atomic drain only.
    code = pick(draw, [*codes, "idle-limit"] if mode is DrainMode.EMPTY else codes)
    accepted = asked if draw(st.booleans()) else None
    return DrainRecord(mode, asked, Reason(code, "generated"), accepted, deadline if mode == "busy" else None)


@st.composite
def one_machine(draw: st.DrawFn, name: str) -> tuple[Instance | None, MachineRecord | None, Slot | None]:
    """A machine in any combination of what cloud, ledger and pool may say, sensible or not."""
    cloud = pick(draw, ["c1", "c2"])
    flavor = pick(draw, list(FLAVORS))
    generation = pick(draw, [GENERATION, GENERATION, "old"])
    made = None
    if draw(st.integers(0, 9)):
        state = pick(draw, [CloudState.RUNNING, CloudState.RUNNING, *CloudState])
        made = instance(
            name, state, cloud=cloud, flavor=flavor, generation=generation, retiring=draw(st.booleans())
        )
    kept = None
    if draw(st.integers(0, 4)):
        asked = NOW - pick(draw, [5.0, 300.0, 5000.0, 700_000.0])
        joined = pick(draw, [None, asked + 2, asked + 4])
        kept = record(
            name,
            cloud=cloud,
            flavor=flavor,
            generation=generation,
            resources=FLAVORS[flavor][0],
            price=pick(draw, [None, 0.1, 0.3]),
            requested_at=asked,
            joined_at=joined,
            last_claimed_at=pick(draw, [NOW - 1, NOW - 5000.0]) if joined else None,
            job_starts=3 if joined else None,
            silent_since=pick(draw, [None, NOW - 5, NOW - 2000]) if joined else None,
            missing_since=pick(draw, [None, None, NOW - 5, NOW - 2000]),
            seen_at=pick(draw, [None, asked + 1]),
            terminate_asked_at=pick(draw, [None, None, NOW - 5, NOW - 50]),
            drain=draw(drains()),
            wanted_drain=pick(
                draw, [None, None, None, DrainRecord(DrainMode.BUSY, NOW, Reason("operator", "x"))]
            ),
        )
    shown = None
    if draw(st.integers(0, 3)):
        draining = draw(st.integers(0, 4)) == 0
        shown = slot(
            name,
            draw(st.booleans()),
            cloud=cloud,
            kind=kind_key("default", generation, cloud, flavor),
            draining=draining,
            drain_reason="updraft idle-limit: x" if draining and draw(st.booleans()) else "",
            heard=NOW - pick(draw, [1.0, 5000.0]),
            job_starts=pick(draw, [None, 3, 4]),
            accepting=draw(st.integers(0, 5)) > 0,
        )
    return made, kept, shown


RULES = (
    CloudRule(),
    CloudRule(priority=1),
    CloudRule(priority=-1),
    CloudRule(closed=Reason("cloud-disabled", "as a test says")),
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Small numbers, so that limits bind."""
    made = worker(
        clouds=("c1", "c2"),
        min_machines=draw(st.integers(0, 3)),
        max_machines=pick(draw, [None, 3, 6]),
        idle_limit=pick(draw, [60.0, 600.0]),
    )
    limits = Limits(
        pick(draw, [None, 4, 8]),
        pick(draw, [None, 10, 40]),
        pick(draw, [None, 0.5, 2.0]),
    )
    return policy(
        made,
        limits=limits,
        cloud_limits={"c1": Limits(machines=pick(draw, [None, 2, 5]))},
        timings=Timings(collector_age=900.0),
        closing=draw(st.integers(0, 7)) == 0,
        clouds={"c2": pick(draw, RULES)},
        threshold=pick(draw, [Threshold(), Threshold(3, 15.0)]),
    )


@st.composite
def launches(draw: st.DrawFn, number: int) -> LaunchRecord:
    """A launch of the last hours in any state."""
    state = pick(draw, list(LaunchState))
    error = None
    if state is LaunchState.REFUSED:
        error = Reason(pick(draw, ["no-capacity", "quota-exceeded", "bad-request", "auth-failed"]), "no")
    flavor = pick(draw, list(FLAVORS))
    return LaunchRecord(
        f"K-{number}",
        pick(draw, ["c1", "c2"]),
        "z1",
        flavor,
        "on-demand",
        "default",
        "img",
        GENERATION,
        draw(st.integers(1, 4)),
        FLAVORS[flavor][0],
        FLAVORS[flavor][1],
        NOW - pick(draw, [1.0, 20.0, 100.0, 4000.0]),
        state,
        error=error,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Any pool: sources known, stale or silent; machines in every state; some demand; two clouds."""
    parts = [draw(one_machine(f"i-{n}")) for n in range(draw(st.integers(0, 5)))]
    groups = [
        group(f"g{n}", draw(st.integers(1, 30)), oldest=NOW - pick(draw, [1.0, 1000.0]))
        for n in range(draw(st.integers(0, 3)))
    ]
    kinds = {}
    for cloud in ("c1", "c2"):
        for flavor in FLAVORS:
            for generation in (GENERATION, "old"):
                key = kind_key("default", generation, cloud, flavor)
                kinds[key] = Kind(key, "[]", FLAVORS[flavor][0])
    offers = [
        offer(flavor, cloud, price=pick(draw, [None, FLAVORS[flavor][1]]))
        for cloud in ("c1", "c2")
        for flavor in FLAVORS
    ]
    running = tuple(
        RunningJob("schedd", f"{n}.0", f"slot1_1@{made.id}@host", "alice", NOW + pick(draw, [-5, 500]))
        for n, (made, _, _) in enumerate(parts)
        if made is not None and draw(st.integers(0, 3)) == 0
    )
    held = pick(draw, [(), (), ("91.0", "91.1")])
    view = ScheddView(tuple(groups), pick(draw, [None, running]), held=held)
    known = Known(view, NOW)
    schedds = {
        "schedd": pick(
            draw,
            [
                known,
                known,
                known,
                Unknown(DOWN, NOW - 60, Known(view, NOW - 60)),
                Unknown(DOWN, NOW - 9000),
            ],
        )
    }
    started = NOW - pick(draw, [10.0, 1000.0, 1_000_000.0])
    slots = tuple(shown for _, _, shown in parts if shown is not None)
    seen = Known(CollectorView(slots, started, NOW - pick(draw, [5.0, 500.0])), NOW)
    clouds = {}
    for cloud in ("c1", "c2"):
        there = tuple(made for made, _, _ in parts if made is not None and made.cloud == cloud)
        listed = pick(draw, [Known(there, NOW), Known(there, NOW), Unknown(DOWN, NOW - 60)])
        quota = pick(draw, [Known(Quota(machines=3), NOW), Known(Quota(), NOW), Unknown(DOWN, NOW)])
        clouds[cloud] = CloudView(listed, Known((), NOW), quota)
    return Snapshot(
        NOW,
        POOL,
        schedds,
        pick(draw, [seen, seen, seen, Unknown(DOWN, NOW - 30)]),
        clouds,
        LedgerView(
            tuple(draw(launches(n)) for n in range(draw(st.integers(0, 3)))),
            tuple(kept for _, kept, _ in parts if kept is not None),
        ),
        offers=tuple(offers),
        kinds=kinds,
        verdicts=verdicts(groups, kinds.values()),
        pace=pick(draw, [JoinPace(), JoinPace(), PACED]),
    )
