"""What one user may have, in whole plans: cores and machines, in all and by class, and the job's limit.

Covers `caps` and `holdings`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import (
    ASK,
    FLAVORS,
    GENERATION,
    NOW,
    group,
    instance,
    kind,
    offer,
    pick,
    policy,
    record,
    slot,
    snapshot,
    verdicts,
    worker,
)
from updraft.core.buying import shopping
from updraft.core.model import (
    Child,
    JobGroup,
    Kind,
    Launch,
    LaunchRecord,
    LaunchState,
    Offer,
    Plan,
    Resources,
    Slot,
    Snapshot,
    Terms,
    variant,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Timings, UserLimits, WorkerClass
from updraft.core.sharing.caps import user_caps
from updraft.core.slots.kinds import kind_key

FAST = Timings(trial=10_000)
SMALLS = (offer("small"),)


def rules(*classes: WorkerClass, **changes: Any) -> Policy:
    return policy(*classes, timings=FAST, **changes)


def of(who: str, idle: int = 50, **changes: Any) -> JobGroup:
    return group(changes.pop("key", who), idle, owner=who, submitter=f"{who}@pool", **changes)


def new(made: Plan) -> dict[str, int]:
    return {one.group: one.new for one in made.groups}


def why(made: Plan, key: str) -> list[tuple[str, str]]:
    return [(r.code, r.text) for one in made.groups if one.group == key for r in one.held_back]


def machines(made: Plan, worker_class: str = "default") -> int:
    return sum(
        a.count for a in made.actions if isinstance(a, Launch) and a.offer.worker_class == worker_class
    )


def joined(name: str, *users: str, flavor: str = "small") -> dict[str, Any]:
    """A joined machine with a claim of one core for each of these users."""
    size = FLAVORS[flavor][0]
    free = size
    for _ in users:
        free = free - ASK
    shown = slot(name, kind=kind_key("default", GENERATION, "c1", flavor), total=size, free=free)
    shown = replace(shown, children=tuple(Child("Claimed", "Busy", ASK, f"{user}@pool") for user in users))
    kept = replace(record(name), flavor=flavor, resources=size, joined_at=NOW - 300)
    return {"instances": instance(name, flavor=flavor), "slots": shown, "records": kept}


def pool(*there: dict[str, Any], **changes: Any) -> Snapshot:
    parts = {key: [one[key] for one in there] for key in ("instances", "slots", "records")}
    return snapshot(**parts, **changes)


def test_what_was_placed_of_one_group_counts_for_another_of_the_same_user() -> None:
    """One finds all its room on a machine that is coming, the other is to be bought for."""
    booting = {"instances": [instance("i-1")], "records": [replace(record("i-1"), requested_at=NOW - 20)]}
    big = of("alice", 4, key="big", request=Resources(2, 1024, 1024))
    seen = snapshot(groups=[of("alice", 2, key="first", oldest=NOW - 50), big], **booting)
    made = plan(seen, rules(limits=Limits(cores_per_user=6)))
    placed = {one.group: one.coming for one in made.groups}
    assert sum(placed.values()) > 0
    held = sum((one.coming + one.new) * (2 if one.group == "big" else 1) for one in made.groups)
    assert held <= 6


def test_a_user_gets_no_more_machines_than_the_limit() -> None:
    seen = snapshot(groups=[of("alice"), of("eve", 4)], offers=SMALLS)
    made = plan(seen, rules(limits=Limits(machines_per_user=3)))
    assert new(made) == {"alice": 6, "eve": 4}
    assert machines(made) == 5
    assert [code for code, _ in why(made, "alice")] == ["user-limit"]
    assert why(made, "alice")[0][1].endswith("may have 3: [limits] machines_per_user")
    assert why(made, "eve") == []


def test_machines_with_a_claim_and_machines_on_their_way_count() -> None:
    launch = LaunchRecord(
        "K", "c1", "z1", "small", "on-demand", "default", "img", GENERATION, 1, FLAVORS["small"][0], 0.1,
        NOW - 5, LaunchState.UNKNOWN,
    )  # fmt: skip
    seen = pool(joined("i-1", "alice", "alice"), groups=[of("alice")], offers=SMALLS)
    seen = replace(seen, ledger=replace(seen.ledger, launches=(launch,)))
    made = plan(seen, rules(limits=Limits(machines_per_user=3)))
    assert machines(made) == 1  # one that runs, one that the cloud is slow to show, and one


def test_one_job_on_a_machine_of_others_makes_it_count() -> None:
    seen = pool(joined("i-1", "alice", "bob"), groups=[of("alice"), of("bob")], offers=SMALLS)
    made = plan(seen, rules(limits=Limits(machines_per_user=2)))
    assert new(made) == {"alice": 2, "bob": 2}


def test_the_users_own_table_comes_before_patterns_and_those_before_the_limits() -> None:
    users = {"*": UserLimits(cores=4), "al*": UserLimits(cores=2), "eve": UserLimits(cores=8, machines=9)}
    seen = snapshot(groups=[of("alice"), of("eve"), of("bob")], offers=SMALLS)
    made = plan(seen, rules(limits=Limits(cores_per_user=30), users=users))
    assert new(made) == {"alice": 4, "eve": 8, "bob": 4}
    assert why(made, "alice") == [
        ("user-limit", 'alice has 0 cores, and may have 4: [users."*"] cores'),
    ]
    assert why(made, "eve")[0][1].endswith("[users.eve] cores")
    partly = rules(limits=Limits(cores_per_user=30), users={"al*": UserLimits(machines=2)})
    assert new(plan(seen, partly)) == {"alice": 4, "eve": 30, "bob": 30}


def two_classes(**changes: Any) -> Snapshot:
    """Jobs of alice that run on both classes; `other` costs more."""
    offers = (offer("small"), offer("small", worker_class="other", price=0.2))
    kinds = {one.key: one for one in (kind("small"), kind("small", worker_class="other"))}
    seen = snapshot(offers=offers, **changes)
    (source,) = seen.schedds.values()
    groups = source.value.groups  # type: ignore[union-attr]
    return replace(seen, kinds=kinds, verdicts=verdicts(groups, kinds.values()))


def test_a_class_may_be_capped_for_each_user() -> None:
    seen = two_classes(groups=[of("alice", 20), of("eve", 20)])
    made = plan(seen, rules(worker(per_user=UserLimits(machines=2)), worker("other", max_machines=5)))
    assert (machines(made), machines(made, "other")) == (4, 5)
    assert "user-class-limit" in {code for code, _ in why(made, "alice")}
    assert any("[classes.default] max_per_user" in text for _, text in why(made, "alice"))
    made = plan(seen, rules(worker(per_user=UserLimits(cores=3)), worker("other", max_machines=0)))
    assert new(made) == {"alice": 3, "eve": 3}
    assert any("[classes.default] max_cores_per_user" in text for _, text in why(made, "eve"))


def test_a_class_may_be_capped_in_cores() -> None:
    made = plan(snapshot(groups=[of("alice")], offers=SMALLS), rules(worker(max_cores=7)))
    assert machines(made) == 3
    assert why(made, "alice") == [
        ("limit-class", "class default may have 7 cores, and has 0: [classes.default] max_cores")
    ]


def test_a_jobs_own_limit_only_lowers() -> None:
    limited = of("alice", terms=Terms(type_limit=2))
    for most, got in ((None, 2), (1, 1), (9, 2)):
        made = plan(
            snapshot(groups=[limited], offers=SMALLS), rules(worker(per_user=UserLimits(machines=most)))
        )
        assert machines(made) == got, most
    made = plan(snapshot(groups=[limited, of("alice", 8, key="free")], offers=SMALLS), rules())
    assert new(made) == {"alice": 4, "free": 8} or new(made)["free"] == 8
    assert [code for code, _ in why(made, "alice")] == ["type-limit"]


def test_a_capped_users_jobs_do_not_hold_up_the_others_on_their_machines() -> None:
    seen = snapshot(groups=[of("alice", 30), of("bob", 30)], offers=(offer("large"),))
    made = plan(seen, rules(limits=Limits(machines_per_user=2)))
    assert machines(made) <= 4
    assert new(made)["alice"] > 0
    assert new(made)["bob"] > 0
    assert {code for code, _ in why(made, "bob")} == {"user-limit"}


def test_a_machine_for_one_user_alone_counts_whole() -> None:
    """From its launch on, however little of it is in use."""
    own = (offer("large", variant=variant("user=alice")),)
    made = plan(snapshot(groups=[of("alice")], offers=own), rules(users={"alice": UserLimits(cores=10)}))
    assert new(made) == {"alice": 8}
    whole = [replace(record("i-1"), variant=variant("user=alice"), joined_at=NOW - 300)]
    booting = [replace(record("i-1"), variant=variant("user=alice"), requested_at=NOW - 9)]
    wide = of("alice", request=Resources(4, 1024, 1024))  # fits nothing that is there
    for records, slots in ((whole, [slot("i-1")]), (booting, [])):
        there: dict[str, Any] = {
            "instances": [instance("i-1", variant=variant("user=alice"))],
            "records": records,
        }
        seen = snapshot(groups=[wide], offers=own, slots=slots, **there)
        for caps, got in ((UserLimits(cores=9), 0), (UserLimits(cores=10), 2), (UserLimits(machines=1), 0)):
            assert new(plan(seen, rules(users={"alice": caps})))["alice"] == got, (caps, records)


def test_room_that_is_kept_ready_is_nobodys() -> None:
    from tests.core.buying.test_wanting import with_spare
    from updraft.core.settings import Spare

    ready = rules(worker(spare=(Spare(4, ASK),)), users={"*": UserLimits(machines=0, cores=0)})
    made = plan(with_spare(ready, groups=[of("alice", 4)]), ready)
    assert new(made) == {"alice": 0, "spare/default/0": 4}


# ----------------------------------------------------------------------------- they hold in every plan

USERS = ("ada", "bob", "bio.eve")
CLASSES = ("default", "other")
few = st.sampled_from([None, None, 0, 1, 2, 5])


@st.composite
def capped_policies(draw: st.DrawFn) -> Policy:
    classes = [
        worker(
            name,
            per_user=UserLimits(draw(few), draw(few)),
            max_cores=pick(draw, [None, 9]),
        )
        for name in CLASSES
    ]
    names = draw(st.lists(st.sampled_from([*USERS, "*", "b*"]), unique=True, max_size=3))
    return rules(
        *classes,
        limits=Limits(
            machines=pick(draw, [None, 6]),
            cores_per_user=pick(draw, [None, 4, 11]),
            machines_per_user=draw(few),
        ),
        users={name: UserLimits(draw(few), pick(draw, [None, 3, 8])) for name in names},
    )


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    some = st.lists(st.sampled_from(USERS), max_size=2)
    there = [joined(f"i-{n}", *draw(some)) for n in range(draw(st.integers(0, 3)))]
    booting = [f"b-{n}" for n in range(draw(st.integers(0, 2)))]
    coming = [
        {"instances": instance(name), "records": replace(record(name), requested_at=NOW - 9)}
        for name in booting
    ]
    groups = [
        of(
            pick(draw, USERS),
            draw(st.integers(1, 25)),
            key=f"g{n}",
            request=Resources(pick(draw, [1, 1, 2]), 1024, 1024),
            terms=Terms(type_limit=draw(few), high_priority=pick(draw, [0, 0, 3])),
        )
        for n in range(draw(st.integers(1, 4)))
    ]
    kinds: dict[str, Kind] = {}
    offers = []
    for name in CLASSES:
        for flavor in FLAVORS:
            made = kind(flavor, worker_class=name)
            kinds[made.key] = made
            offers.append(offer(flavor, worker_class=name, price=pick(draw, [0.1, 0.3])))
    slots: list[Slot] = [one["slots"] for one in there]
    seen = snapshot(
        instances=[one["instances"] for one in (*there, *coming)],
        slots=slots,
        records=[one["records"] for one in (*there, *coming)],
        groups=groups,
        offers=offers,
    )
    return replace(seen, kinds=kinds, verdicts=verdicts(groups, kinds.values()))


@contextmanager
def orders() -> Iterator[list[tuple[Offer, int, dict[str, int]]]]:
    """What each plan buys meanwhile: the offer, how many machines, and the jobs on each of them by group."""
    told: list[tuple[Offer, int, dict[str, int]]] = []
    run = shopping._ShoppingTour.run

    def listening(shop: shopping._ShoppingTour) -> shopping.Shopping:
        made = run(shop)
        told.extend((shop.sale.offers[one.offer], one.got, dict(one.content)) for one in shop.bought)
        return made

    with patch.object(shopping._ShoppingTour, "run", listening):
        yield told


def machine_caps(user: str, worker_class: str, made: Policy) -> tuple[int | None, int | None]:
    """The caps on machines of a user, all in all and of a class, worked out anew."""
    tables = [made.users[user]] if user in made.users else []
    tables += [limit for key, limit in made.users.items() if key != user and fnmatchcase(user, key)]
    everywhere = [t.machines for t in tables if t.machines is not None]
    whole = everywhere[0] if everywhere else made.limits.machines_per_user
    return whole, made.classes[worker_class].per_user.machines


@given(pools(), capped_policies())
def test_4_every_cap_on_machines_holds_in_every_plan(seen: Snapshot, made: Policy) -> None:
    """Rule 4: machines that a user's claims are on and those bought with jobs of that user on them."""
    with orders() as told:
        plan(seen, made)
    source = seen.schedds["schedd"]
    groups = {one.key: one for one in source.value.groups}  # type: ignore[union-attr]
    has: dict[str, int] = {}
    for shown in seen.collector.value.slots:  # type: ignore[union-attr]
        for user in {child.user.partition("@")[0] for child in shown.children}:
            has[user] = has.get(user, 0) + 1
    for user in USERS:
        total = 0
        for name in CLASSES:
            rows = [
                (count, [groups[key] for key in content if groups[key].owner == user])
                for what, count, content in told
                if what.worker_class == name
            ]
            bought = sum(count for count, mine in rows if mine)
            total += bought
            before = has.get(user, 0) if name == "default" else 0
            _, part = machine_caps(user, name, made)
            assert part is None or not bought or before + bought <= part
            for limit in {one.terms.type_limit for _, mine in rows for one in mine} - {None}:
                under = sum(c for c, mine in rows if any(one.terms.type_limit == limit for one in mine))
                assert limit is None or under <= limit
        whole, _ = machine_caps(user, "default", made)
        assert not total or whole is None or has.get(user, 0) + total <= whole


@given(pools(), capped_policies())
def test_4_every_cap_on_cores_holds_in_every_plan(seen: Snapshot, made: Policy) -> None:
    """Rule 4: the cores of a user's claims, of jobs placed on machines there and coming, and of new ones."""
    with orders() as told:
        done = plan(seen, made)
    source = seen.schedds["schedd"]
    groups = {one.key: one for one in source.value.groups}  # type: ignore[union-attr]
    size = {key: one.request.cpus for key, one in groups.items()}
    for user in USERS:
        claims = [
            child.resources.cpus
            for shown in seen.collector.value.slots  # type: ignore[union-attr]
            for child in shown.children
            if child.user == f"{user}@pool"
        ]
        mine = [one for one in done.groups if groups[one.group].owner == user]
        has = sum(claims) + sum((one.joined + one.coming + one.new) * size[one.group] for one in mine)
        caps = [cap.most for cap in user_caps((user, f"{user}@pool"), made) if cap.of == "cores"]
        if caps and any(one.new for one in mine):
            assert has <= caps[0]
        for name in CLASSES:
            most = made.classes[name].per_user.cores
            bought = sum(
                count * number * size[key]
                for what, count, content in told
                for key, number in content.items()
                if what.worker_class == name and groups[key].owner == user
            )
            before = sum(claims) if name == "default" else 0
            assert most is None or not bought or before + bought <= most
    for name in CLASSES:
        most = made.classes[name].max_cores
        launched = [a for a in done.actions if isinstance(a, Launch) and a.offer.worker_class == name]
        there = [r.resources.cpus for r in seen.ledger.machines if r.worker_class == name]
        assert (
            most is None
            or not launched
            or sum(there) + sum(a.count * a.offer.resources.cpus for a in launched) <= most
        )
