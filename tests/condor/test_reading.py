"""What is made of ads, on ads recorded from a real pool."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.condor.collector.collectors import collector_loads, collector_started
from updraft.condor.collector.slot_ads import among
from updraft.condor.collector.views import SlotMemory, learn, settle_children, slot
from updraft.condor.demand.groups import MAX_GROUPS, group, unmade
from updraft.condor.demand.naming import names_to_group_by, referred_names
from updraft.condor.demand.places import running_job
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.request import UndecidableError, request_of, too_large
from updraft.condor.demand.reread import MARKS, Reread
from updraft.condor.process.children import mapped
from updraft.condor.process.tools import DrainingAlreadyError, failed
from updraft.core.model import CollectorLoad, Resources
from updraft.core.slots.kinds import PROBLEM_ATTR, foreign_kind_key, kind_key, template
from updraft.errors import DrainRefused, PoolDenied, PoolError, PoolTimeout

DATA = Path(__file__).parent / "data"
UNMADE = (
    "[ JobFactoryTotalProcs = 40; JobMaterializeNextProcId = 3; JobMaterializeLimit = 40; JobsPresent = 3 ]"
)


def recorded(name: str, **changes: Any) -> Any:
    ad = classad2.parseOne((DATA / name).read_text(), classad2.ParserType.Old)
    ad.update(changes)
    return ad


def rows() -> list[Any]:
    return [classad2.ClassAd(line) for line in (DATA / "rows.ads").read_text().splitlines()]


def test_a_busy_slot() -> None:
    seen = slot(recorded("slot-busy.ad"), "test")
    assert seen.name == "slot1@w1.pool.test"
    assert seen.total == Resources(4, 4096, 12341152, 0)
    assert seen.free == Resources(0, 3328, 8146848, 0)
    assert [c.resources.memory for c in seen.children] == [384, 128, 128, 128]
    assert {(c.state, c.activity, c.user) for c in seen.children} == {("Claimed", "Busy", "alice@pool.test")}
    assert seen.busy
    assert seen.accepting
    assert seen.job_starts == 14  # ten jobs, four claims
    assert seen.begun == 10
    assert [child.since for child in seen.children] == [1795240547.0, *[1795240548.0] * 3]
    assert seen.instance_id == ""  # another pool's mark, or none, makes it nobody of ours
    assert seen.user == ""


def test_a_claim_says_its_user_and_what_the_negotiator_calls_that_one() -> None:
    groups = [
        classad2.Value.Undefined,
        "bio.alice@pool.test",
        classad2.Value.Undefined,
        "bio.lab.a@pool.test",
    ]
    seen = slot(recorded("slot-busy.ad", ChildAccountingGroup=groups), "test")
    plain = "alice@pool.test"
    assert {c.user for c in seen.children} == {plain}
    assert [c.submitter for c in seen.children] == ["", groups[1], "", groups[3]]


def test_a_static_slot_says_whose_it_is() -> None:
    static = {"PartitionableSlot": False, "State": "Claimed", "RemoteUser": "alice@pool.test"}
    assert slot(recorded("slot-busy.ad", **static), "test").user == "alice@pool.test"
    grouped = {**static, "AccountingGroup": "bio.alice@pool.test"}
    found = slot(recorded("slot-busy.ad", **grouped), "test")
    assert (found.user, found.submitter) == ("alice@pool.test", "bio.alice@pool.test")


def test_a_job_that_has_begun_is_seen_before_its_parents_ad_says_so() -> None:
    ad, calm = (
        recorded("slot-busy.ad", ChildActivity=["Busy", "Idle", "Idle", "Busy"]),
        recorded("slot-busy.ad"),
    )
    asked: list[list[str]] = []

    def at_work(names: Any) -> list[str]:
        asked.append(list(names))
        return ["slot1_3@w1.pool.test", "slot1_9@another.pool.test"]

    settle_children([calm], at_work)
    assert asked == []  # nothing to be asked where no claim waits
    settle_children([ad], at_work)
    assert asked == [["slot1_2@w1.pool.test", "slot1_3@w1.pool.test"]]
    assert [child.activity for child in slot(ad, "test").children] == ["Busy", "Idle", "Busy", "Busy"]


class Shown:
    """Implements `reread.AdSource` with ads in memory, and notes which were asked for."""

    def __init__(self, *ads: Any) -> None:
        self.there = ads
        self.busy: list[str] = []
        self.asked: list[list[str] | None] = []

    def marks(self) -> list[Any]:
        return [classad2.ClassAd({name: ad[name] for name in MARKS if name in ad}) for ad in self.there]

    def ads(self, names: Any) -> list[Any]:
        self.asked.append(names)
        wanted = (ad for ad in self.there if names is None or ad["Name"] in names)
        return [classad2.ClassAd(repr(ad)) for ad in wanted]

    def at_work(self, names: Any) -> list[str]:
        return self.busy

    def plainly(self, pool: str) -> list[Any]:
        """What comes of reading all of it anew."""
        ads = self.ads(None)
        self.asked.pop()
        settle_children(ads, self.at_work)
        return sorted((slot(ad, pool) for ad in ads), key=lambda one: one.name)


def test_ads_that_say_nothing_new_are_not_asked_for_again() -> None:
    marks = {"UpdraftPool": "test", "LastHeardFrom": 7, "UpdateSequenceNumber": 1}
    claims = recorded("slot-busy.ad", Name="slot1@w2", ChildActivity=["Busy", "Idle", "Busy", "Busy"])
    drains = recorded("slot-draining.ad", UpdraftPool="test", Name="slot1@w3")
    shown = Shown(recorded("slot-busy.ad", **marks), drains, claims)
    last = Reread(slot, settle_children)

    def look(pool: str = "test") -> list[list[str] | None]:
        shown.asked.clear()
        found = sorted(last.slots(shown, pool), key=lambda one: one.name)
        assert found == shown.plainly(pool)
        return shown.asked

    assert look() == [None]
    assert look() == [["slot1@w2"]], "a claim that waits is asked about each time"
    shown.busy = ["slot1_2@w1.pool.test"]
    assert look() == [["slot1@w2"]]
    for news in (
        {"LastHeardFrom": 8},
        {"UpdateSequenceNumber": 2},
        {"Offline": True},
        {"MyAddress": "<1.2.3.4:5>"},
    ):
        marks |= news
        shown.there = (recorded("slot-busy.ad", **marks, Cpus=1 + len(marks)), drains)
        assert look() == [["slot1@w1.pool.test"]], news
        assert look() == []
    shown.there = (drains,)
    assert look() == [], "one that is gone is gone"
    assert look("another") == [None], "whose it is depends on the pool"


def test_an_ad_that_changes_or_goes_between_the_two_questions() -> None:
    marks = {"UpdraftPool": "test", "LastHeardFrom": 7}
    shown = Shown(
        recorded("slot-busy.ad", **marks), recorded("slot-draining.ad", UpdraftPool="test", Name="slot1@w3")
    )
    last = Reread(slot, settle_children)
    last.slots(shown, "test")
    early = shown.marks()
    early[0]["LastHeardFrom"] = 8
    shown.there = (recorded("slot-busy.ad", LastHeardFrom=9, UpdraftPool="test", Cpus=1), shown.there[1])
    shown.marks = lambda: early  # type: ignore[method-assign]
    assert [one.heard for one in last.slots(shown, "test") if one.name == "slot1@w1.pool.test"] == [9]
    early[0]["LastHeardFrom"] = 10
    shown.there = shown.there[1:]
    (left,) = last.slots(shown, "test")
    assert left.draining


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1), max_size=40))
def test_a_name_is_among_those_asked_for_in_any_case(names: list[str]) -> None:
    asked = names[: len(names) // 2]
    constraint = classad2.ExprTree(among("Name", asked))
    low = {name.encode().lower() for name in asked}
    for name in (*names, *(name.upper() for name in names if name.isascii())):
        ad = classad2.ClassAd({"Name": name, "Is": constraint})
        assert ad.eval("Is") == (name.encode().lower() in low)


def test_thousands_of_names_make_no_deep_constraint() -> None:
    names = [f"slot1@i-{number:05d}@host" for number in range(0, 5000, 5)]
    constraint = among("Name", names)
    opened = deepest = 0
    for letter in constraint:
        opened += (letter == "(") - (letter == ")")
        deepest = max(deepest, opened)
    assert deepest <= 12
    ad = classad2.ClassAd({"Is": classad2.ExprTree(constraint)})
    for number in range(0, 5000, 7):  # one in five of them is named
        ad["Name"] = f"slot1@i-{number:05d}@host"
        assert ad.eval("Is") == (number % 5 == 0)


def test_a_slot_of_a_variant_is_of_a_kind_of_its_own() -> None:
    marks = {
        "UpdraftPool": "test",
        "UpdraftClass": "c",
        "UpdraftGeneration": "g",
        "UpdraftCloud": "k",
        "UpdraftFlavor": "f",
    }
    plain = slot(recorded("slot-busy.ad", **marks), "test")
    made = slot(recorded("slot-busy.ad", **marks, UpdraftVariant="image=alma9"), "test")
    assert plain.kind == kind_key("c", "g", "k", "f")
    assert made.kind == kind_key("c", "g", "k", "f", "image=alma9") != plain.kind


def test_a_draining_slot_is_no_room_and_teaches_nothing() -> None:
    seen = slot(recorded("slot-draining.ad", UpdraftPool="test"), "test")
    assert (seen.draining, seen.drain_reason, seen.accepting) == (True, "updraft: lifetime", False)
    assert seen.instance_id == "i-w1"
    _, memory = learn([seen], SlotMemory(), lambda names: [recorded("slot-draining.ad")], False)
    assert memory.templates == {}


def test_a_kind_is_learned_once() -> None:
    marks = {"UpdraftPool": "p", "UpdraftClass": "c", "UpdraftGeneration": "g", "UpdraftCloud": "k"}
    ad = recorded("slot-busy.ad", **marks, UpdraftFlavor="f")
    asked: list[list[str]] = []

    def whole(names: Any) -> list[Any]:
        asked.append(list(names))
        return [ad]

    seen = slot(ad, "p")
    _, memory = learn([seen], SlotMemory(), whole, False)
    assert asked == [["slot1@w1.pool.test"]]
    assert list(memory.templates) == [kind_key("c", "g", "k", "f")]
    learn([seen], memory, whole, False)
    assert len(asked) == 1
    learn([seen], memory, whole, True)
    assert len(asked) == 2


def test_one_ad_teaches_a_kind() -> None:
    marks = {"UpdraftPool": "p", "UpdraftClass": "c", "UpdraftGeneration": "g", "UpdraftCloud": "k"}
    ads = [recorded("slot-busy.ad", **marks, UpdraftFlavor=f"f{n % 2}", Name=f"slot1@w{n}") for n in range(9)]
    asked: list[str] = []
    read: list[str] = []

    class Told(dict[str, Any]):
        def __repr__(self) -> str:
            read.append(self["Name"])
            return repr(classad2.ClassAd(dict(self)))

    def whole(names: Any) -> list[Any]:
        asked.extend(names)
        return [Told(ad) for ad in ads]  # more than was asked for

    _, memory = learn([slot(ad, "p") for ad in ads], SlotMemory(), whole, False)
    assert len(memory.templates) == 2
    assert asked == read == ["slot1@w0", "slot1@w1"]


def test_a_foreign_slot_keeps_its_kind_whatever_it_does() -> None:
    busy, other = recorded("slot-busy.ad"), recorded("slot-busy.ad", HasDocker=True)
    calm = recorded("slot-busy.ad", Cpus=4, JobStarts=99, Name="slot1@w9", Machine="w9", ChildState=[])
    assert foreign_kind_key(repr(busy)) == foreign_kind_key(repr(calm))
    assert foreign_kind_key(repr(busy)) != foreign_kind_key(repr(other))
    (placed,), _ = learn([slot(busy, "p")], SlotMemory(), lambda names: [busy], False)
    assert placed.kind == foreign_kind_key(repr(busy))


def test_a_template_is_whole_empty_and_nobodys() -> None:
    text = template(repr(recorded("slot-busy.ad")))
    ad = classad2.ClassAd(text)
    assert (ad["Cpus"], ad["Memory"], ad["Disk"], ad["State"]) == (4, 4096, 12341152, "Unclaimed")
    for part in ("w1", "10.9.0.11", "Child", "JobStarts", "Recent", "UpdraftInstance"):
        assert part not in text
    for part in ("CondorVersion", "HasFileTransfer", "WithinResourceLimits", "Requirements", "Start"):
        assert part in ad
    with pytest.raises(ValueError, match="not a ClassAd"):
        template("[ a = ")


def test_groups_of_the_schedds_rows() -> None:
    gpu, small = sorted(group("s", rows()), key=lambda g: g.owner)
    assert gpu.request == Resources(64, 300, 1048576, 1)
    assert (gpu.idle, gpu.running, gpu.priority, gpu.first_id) == (3, 2, 7, "2.0")
    assert (small.request.cpus, small.submitter) == (1, "group_a.b.bob")
    assert classad2.ClassAd(gpu.ad)["JobStatus"] == 1
    again = group("s", list(reversed(rows())))
    assert {g.key for g in again} == {gpu.key, small.key}
    assert {g.key for g in group("t", rows())}.isdisjoint({gpu.key, small.key})


def test_what_isnt_made_yet_joins_its_group() -> None:
    cluster = rows()[0]
    cluster.update({"ServerTime": 1, "ClusterId": 2, "JobsPresent": 3, "QDate": 5})
    cluster.update({"JobFactoryTotalProcs": 40, "JobMaterializeNextProcId": 3, "JobMaterializeLimit": 40})
    for name in ("JobIds", "JobCount", "Id"):
        del cluster[name]
    (known,) = [g for g in group("s", rows(), [cluster]) if g.owner == "alice"]
    assert (known.idle, known.first_id) == (40, "2.0")
    (alone,) = group("s", [], [cluster])
    assert (alone.idle, alone.first_id, alone.oldest) == (37, "2.0", 5.0)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 37),
        ({"JobMaterializeLimit": 5}, 2),
        ({"JobFactoryPaused": 1}, 0),
        ({"JobMaterializeNextProcId": 40}, 0),
        ({"JobFactoryTotalProcs": "many", "TotalSubmitProcs": 10}, 7),
    ],
)
def test_how_many_arent_made_yet(changes: dict[str, Any], count: int) -> None:
    ad = classad2.ClassAd(UNMADE)
    ad.update(changes)
    assert unmade(ad) == count


@pytest.mark.parametrize(
    "expression",
    [
        'regexp("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaa") ? 1 : 2',
        '"many"',
        "1 / 0",
        "1.0E300",
        "RequestMemory",
        "B0",
        "+".join(["1"] * 3000),
    ],
)
def test_a_hostile_request_is_not_evaluated(expression: str) -> None:
    ad = classad2.ClassAd({f"B{i}": classad2.ExprTree(f"B{i + 1} + B{i + 1}") for i in range(40)})
    ad["RequestMemory"] = classad2.ExprTree(expression)
    with pytest.raises(UndecidableError):
        request_of(ad)


def test_a_request_of_custom_resources_is_read_with_the_others() -> None:
    ad = classad2.ClassAd(
        '[ RequestCpus = 2; RequestFPGAs = 1 + 1; requesttapes = 0.5; RequestBoard = "a.*" ]'
    )
    assert request_of(ad) == Resources(2, 1, 1, 0, (("fpgas", 2), ("tapes", 1)))
    # What a site has called so, and isn't a number, counts only where the requirements speak of it.
    ad["RequestTicket"] = classad2.ExprTree('regexp("a", Owner)')
    assert request_of(ad).custom == (("fpgas", 2), ("tapes", 1))
    ad["Requirements"] = classad2.ExprTree("TARGET.Ticket >= RequestTicket")
    with pytest.raises(UndecidableError, match="RequestTicket uses regexp"):
        request_of(ad)


def test_a_group_that_cannot_be_evaluated_says_why() -> None:
    row = rows()[0]
    row["RequestCpus"] = classad2.ExprTree('strcat("1", "0")')
    (odd,) = group("s", [row])
    assert not odd.evaluable
    assert "strcat" in classad2.ClassAd(odd.ad)[PROBLEM_ATTR]
    row["RequestCpus"] = 1
    row["Essay"] = "x" * 20_000
    (odd,) = group("s", [row])
    assert not odd.evaluable
    assert len(odd.ad) < 300
    assert too_large(rows()[0]) == ""


def test_too_many_groups_are_counted_and_not_planned_with() -> None:
    many = [
        classad2.ClassAd(
            {"JobStatus": 1, "JobCount": 1, "JobIds": f"{i}.0", "Owner": "eve", "RequestCpus": i}
        )
        for i in range(1, MAX_GROUPS + 11)
    ]
    groups = group("s", many)
    assert len(groups) == MAX_GROUPS + 1
    (rest,) = [g for g in groups if not g.evaluable]
    assert (rest.idle, rest.owner) == (10, "eve")


def test_names_to_group_by() -> None:
    told_apart = classad2.ClassAd("[ AutoClusterId = 1; JobIds = \"1.0\"; Rank = 0; 'a b' = 1 ]")
    queue = JobQueue(SimpleNamespace(query=lambda **_how: [told_apart]), {})
    names = names_to_group_by(queue)
    assert "Rank" in names
    assert "JobIds" not in names
    assert "a b" not in names
    wider = referred_names(rows(), names)
    assert set(wider) - set(names) == {"Shade", "Colour2", "Capability"}
    assert referred_names(rows(), wider) == wider


def test_leases() -> None:
    ad = classad2.ClassAd({"ClusterId": 1, "ProcId": 2, "RemoteHost": "slot1_1@w", "Owner": "a"})
    assert [job.lease_until for job in running_job("s", ad)] == [float("inf")]
    ad.update({"JobLeaseDuration": 2400, "LastJobLeaseRenewal": 100})
    assert [job.lease_until for job in running_job("s", ad)] == [2500.0]


@pytest.mark.parametrize(
    ("said", "slots"),
    [
        ({"RemoteHost": "slot1_1@a"}, ["slot1_1@a"]),
        ({"RemoteHost": "slot1@a", "RemoteHosts": "slot1@a, slot1@b"}, ["slot1@a", "slot1@b"]),
        ({"RemoteHost": "slot1@a", "AllRemoteHosts": "slot1@b,slot1@c"}, ["slot1@a", "slot1@b", "slot1@c"]),
        ({"RemoteHost": 7, "AllRemoteHosts": ",,"}, []),
        ({"AllRemoteHosts": ",".join(map(str, range(20_000)))}, [str(n) for n in range(10_000)]),
    ],
)
def test_a_job_runs_on_all_of_its_nodes(said: dict[str, object], slots: list[str]) -> None:
    ad = classad2.ClassAd({"ClusterId": 1, "ProcId": 2, "Owner": "a", **said})
    assert [job.slot for job in running_job("s", ad)] == slots


@pytest.mark.parametrize(("status", "leaving"), [(2, False), (6, False), (7, False), (3, True), (5, True)])
def test_who_is_removed_or_held_runs_but_is_not_given_back(status: int, leaving: bool) -> None:
    ad = classad2.ClassAd({"RemoteHost": "slot1@a", "JobStatus": status})
    assert [job.leaving for job in running_job("s", ad)] == [leaving]


def test_how_old_the_collector_is() -> None:
    old = classad2.ClassAd({"StatsLifetime": 256, "StatsLastUpdateTime": 1256, "MyCurrentTime": 1})
    assert collector_started([old]) == 1000.0
    young = classad2.ClassAd({"DaemonStartTime": 2000})
    assert collector_started([old, young]) == 2000.0
    with pytest.raises(PoolError):
        collector_started([])


def test_what_collectors_have_to_do() -> None:
    top = {
        "Name": "pool@head", "StatsLifetime": 200, "StatsLastUpdateTime": 1200, "DaemonCoreDutyCycle": 0.25,
        "UpdatesInitial_Master": 40, "UpdatesLost_Master": 1, "UpdatesLost_Slot": 2, "DroppedQueries": 3,
        "PendingQueriesPeak": 4,
    }  # fmt: skip
    # What the pool's collector lost of the child's own ads is not what the child lost.
    child = {**top, "Name": "Collector1@head", "DaemonStartTime": 1001, "UpdatesLost": 70, "UpdatesTotal": 9}
    ads = [classad2.ClassAd(ad) for ad in (top, child)]
    load = CollectorLoad(told=1200.0, started=1000.0, busy=50.0, joined=40, lost=3, dropped=3, queued=4)
    assert collector_loads(ads) == {"pool@head": load, "Collector1@head": load}


@pytest.mark.parametrize("odd", [{}, {"DaemonCoreDutyCycle": "much"}, {"DaemonCoreDutyCycle": float("nan")}])
def test_a_collector_that_does_not_say_how_busy_it_is_says_nothing(odd: dict[str, Any]) -> None:
    ad = classad2.ClassAd({"Name": "c", "StatsLifetime": 9, "StatsLastUpdateTime": 1000, **odd})
    assert collector_loads([ad]) == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("error code 10003: Draining check expression is false on slot1_1@w.", DrainRefused),
        ("error code 10001: Draining already in progress.", DrainingAlreadyError),
        (
            "SECMAN: required authentication with startd slot1@w failed\nFailed to start DRAIN_JOBS",
            PoolDenied,
        ),
        ("attempt to connect to <10.9.0.11:9618> failed\nFailed to start DRAIN_JOBS command", PoolError),
        ("condor_read(): timeout reading 5 bytes\nFailed to start DRAIN_JOBS command", PoolTimeout),
        ("Can't open directory: Permission denied\nFailed to start DRAIN_JOBS command", PoolError),
        ("ERROR: Can't find address for startd nosuch", PoolError),
    ],
)
def test_what_a_tool_says(text: str, kind: type[PoolError]) -> None:
    assert type(failed("condor_drain", 1, text)) is kind


def test_what_the_library_says() -> None:
    assert type(mapped("SECMAN: authorization failed")) is PoolDenied
    assert type(mapped("connect timed out")) is PoolTimeout
    assert len(str(mapped("x" * 5000))) < 400
