"""What one look says of each machine: alive, in the pool, whose claims; unknown where nobody says it."""

from dataclasses import replace

from tests.rigs.snapshots import DOWN, NOW, SMALL, instance, offer, policy, record, slot, snapshot
from updraft.core.model import (
    Annex,
    Child,
    CloudState,
    CollectorView,
    Known,
    LedgerView,
    Plan,
    Reason,
    Resources,
    Slot,
    Snapshot,
    Unknown,
)
from updraft.core.model.used import ABSENT, Sighting, UserClaim
from updraft.core.settings import Accounting, Policy
from updraft.core.usage.sightings import SightingReader, group_of, in_pool

KEY = ("c1", "m1")
JOINED = {"joined_at": NOW - 3500, "seen_at": NOW - 3590}


def look(seen: Snapshot, rules: Policy | None = None, plan: Plan = Plan()) -> Sighting:  # noqa: B008 - frozen
    return SightingReader().of(seen, plan, rules or policy(), ())[KEY]


def one(**changes: object) -> Snapshot:
    return replace(
        snapshot(instances=[instance("m1")], records=[record("m1", **JOINED)], slots=[slot("m1", busy=True)]),
        **changes,
    )  # type: ignore[arg-type]


def test_a_machine_that_works() -> None:
    found = look(one())
    assert (found.lives, found.ended) == (True, None)
    assert found.pool is not None
    assert found.pool.claims == (UserClaim("alice@pool", "", 1),)
    assert (found.facts.cores, found.facts.price, found.facts.source) == (SMALL.cpus, 0.1, "cloud")


def test_what_nobody_says_is_unknown() -> None:
    silent = replace(one().clouds["c1"], machines=Unknown(DOWN, NOW))
    assert look(one(clouds={"c1": silent})).lives is None
    assert look(one(collector=Unknown(DOWN, NOW))).pool is None
    young = Known(CollectorView((), NOW - 10, NOW - 5), NOW)
    assert look(one(collector=young)).pool is None, "it has forgotten its machines"
    stale = Known(CollectorView((slot("m1", heard=NOW - 1000),), NOW - 1e6, NOW - 5), NOW)
    assert look(one(collector=stale)).pool is None
    old = Known(CollectorView((), NOW - 1e6, NOW - 5), NOW)
    assert look(one(collector=old)).pool is ABSENT


def test_what_was_asked_for_is_there_until_it_was_listed_once() -> None:
    new = snapshot(records=[record("m1")])
    assert look(new).lives is True
    assert look(snapshot(records=[record("m1", seen_at=NOW - 9)])).lives is False
    over = snapshot(instances=[instance("m1", CloudState.TERMINATED)], records=[record("m1")])
    assert look(over).lives is False


def test_an_end_is_seen_once_unless_it_is_metered() -> None:
    end = Reason("idle-limit", "idle")
    over = record("m1", **JOINED, ended_at=NOW, end=end)
    found = look(one(), plan=Plan(records=(over,)))
    assert found.ended == (NOW, end)
    past = snapshot(records=[over])
    assert SightingReader().of(past, Plan(), policy(), ()) == {}
    assert SightingReader().of(past, Plan(), policy(), [KEY])[KEY].ended == (NOW, end)


def test_what_has_not_changed_is_the_same_object() -> None:
    reader, seen = SightingReader(), one()
    first = reader.of(seen, Plan(), policy(), ())
    again = reader.of(replace(seen, now=NOW + 2), Plan(), policy(), ())
    assert again[KEY] is first[KEY]
    slots = Known(CollectorView((slot("m1"),), NOW - 1e6, NOW - 5), NOW + 4)
    assert reader.of(replace(seen, collector=slots), Plan(), policy(), ())[KEY].pool == in_pool(
        (slot("m1"),), policy()
    )
    later = reader.of(replace(seen, now=NOW + 2000), Plan(), policy(), ())
    assert later[KEY].pool is None, "its ad has become stale"


def test_what_the_site_says_is_in_the_facts() -> None:
    said = Accounting(
        "EUR", {"c1": "north"}, {"c1": frozenset({"small"})}, "hepscore23", {"l*": 9.0, "sm*": 12.5}
    )
    facts = look(one(), policy(accounting=said)).facts
    assert (facts.currency, facts.region, facts.source) == ("EUR", "north", "site")
    assert (facts.benchmark, facts.score) == ("hepscore23", 12.5)
    free = snapshot(instances=[instance("m1")], records=[record("m1", price=None)])
    facts = look(free, policy(accounting=said)).facts
    assert (facts.price, facts.currency, facts.source) == (None, "EUR", "")


def test_whose_annex_it_is() -> None:
    annex = Annex("big", "alice", "default", 2, 0, NOW + 100, 60.0, for_all=True)
    mine = snapshot(records=[record("m1", variant=annex.variant)], annexes=(annex,))
    assert (look(mine).facts.annex, look(mine).facts.owner) == ("big", "alice")
    forgotten = replace(annex, for_all=False)
    mine = snapshot(records=[record("m1", variant=forgotten.variant)])
    assert (look(mine).facts.annex, look(mine).facts.owner) == ("big", "alice")


def test_accounting_groups_are_what_stands_before_the_user() -> None:
    assert group_of("alice@pool", "") == ""
    assert group_of("alice@pool", "alice@pool") == ""
    assert group_of("alice@pool", "physics.atlas.alice@pool") == "physics.atlas"
    assert group_of("alice@pool", "physics.bob@pool") == "physics.bob"


def machine(children: tuple[Child, ...], **changes: object) -> Slot:
    return replace(slot("m1"), children=children, begun=3, **changes)  # type: ignore[arg-type]


def test_when_a_job_began() -> None:
    rules = policy()
    patience = rules.classes["default"].lifetime + rules.classes["default"].drain_deadline + 120.0
    child = Child("Claimed", "Busy", Resources(1), "alice@pool", None, "", NOW - 900)
    (claim,) = in_pool((machine((child,)),), rules).claims
    assert claim.began == NOW - 900, "the claim's begin, where nothing else is known"
    (claim,) = in_pool((machine((replace(child, retirement=patience - 100),)),), rules).claims
    assert claim.began == NOW - 5 - 100, "by what is left of its time"
    (claim,) = in_pool((machine((replace(child, retirement=60.0),)),), rules).claims
    assert claim.began == NOW - 900, "it gave itself less time: no earlier than the claim"
    idle = replace(child, activity="Idle")
    assert not in_pool((machine((idle,)),), rules).claims[0].running


def test_alike_claims_are_one_and_static_slots_count() -> None:
    child = Child("Claimed", "Busy", Resources(2, gpus=1), "alice@pool", None, "phys.alice@pool", NOW - 9)
    found = in_pool((machine((child, child, replace(child, state="Unclaimed"))),), policy())
    assert found.claims == (UserClaim("alice@pool", "phys", 4, 2, NOW - 9),)
    static = [
        replace(
            slot(f"m{each}"),
            partitionable=False,
            state="Claimed",
            activity="Busy",
            user="bob@pool",
            begun=each,
        )
        for each in (1, 2)
    ]
    found = in_pool(tuple(static), policy())
    assert (found.claims, found.begun) == ((UserClaim("bob@pool", "", 2 * SMALL.cpus),), 3)


def test_a_machine_of_another_class_than_any_has_its_claims_begin() -> None:
    child = Child("Claimed", "Busy", Resources(1), "alice@pool", 50.0, "", NOW - 900)
    found = in_pool((machine((child,), kind="gone/g/c1/small"),), policy())
    assert found.claims[0].began == NOW - 900


def test_offers_have_nothing_to_do_with_it() -> None:
    assert look(one(offers=(offer("large"),))) == look(one())


def test_a_ledger_without_machines_is_no_machines() -> None:
    assert SightingReader().of(one(ledger=LedgerView()), Plan(), policy(), ()) == {}
