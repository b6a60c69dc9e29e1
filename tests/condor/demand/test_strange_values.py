"""Whatever an ad says, reading it raises nothing, and what is read of it lies within bounds."""

import time
from dataclasses import replace
from itertools import chain
from typing import Any

import classad2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from tests.rigs.snapshots import FLAVORS, policy, snapshot
from updraft.condor.advalues import quantities, text, value
from updraft.condor.collector.accounting import shares_of
from updraft.condor.collector.collectors import collector_loads
from updraft.condor.collector.views import SlotMemory, learn, slot
from updraft.condor.demand.finished import Finished, added
from updraft.condor.demand.groups import group
from updraft.condor.demand.naming import referred_names, stated_names
from updraft.condor.demand.places import running_job
from updraft.condor.demand.references import references
from updraft.core.demand.left_out import LEFT_OUT, ODD_SLOT
from updraft.core.matching.match import Matcher
from updraft.core.model import CollectorView, Kind, Known, Resources, ScheddView
from updraft.core.plan import plan
from updraft.core.slots.kinds import LARGEST, kind_key, problem

STRANGE = (
    *("1e308", "-1e308", "-1e30", 'real("NaN")', 'real("INF")', '-real("INF")', "0.5", "-1", "0"),
    *("9223372036854775807", "-9223372036854775807", "undefined", "error", "true", '"text"', '"caf\\351"'),
    *("{1, 1e308}", '{"a\\351", {}}', "[ a = 1 ]", "{}", "Memory + 1", "RequestMemory", "Foo", "Bar"),
    *("!!!!!!1", "time()", "random()", 'strcat("a", Owner)', "1/0", "absTime(0)"),
)
EVE = 'Owner = "eve"; JobStatus = 1; JobCount = 3'
NO_TEXT = '{"a\\351", {}}'
"""A list of a text that isn't UTF-8: the bindings raise a SystemError for its value."""
SLOT_NAMES = (
    *("Cpus", "Memory", "Disk", "GPUs", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk", "State"),
    *("Activity", "PartitionableSlot", "ChildState", "ChildActivity", "ChildCpus", "ChildMemory"),
    *("ChildRemoteUser", "ChildRetirementTimeRemaining", "JobStarts", "ClaimRequests", "Offline"),
    *("ChildEnteredCurrentState", "EnteredCurrentState"),
    *("Start", "LastHeardFrom", "DaemonStartTime", "RetirementTimeRemaining", "UpdraftPool"),
    *("UpdraftInstance", "UpdraftLaunch", "AuthenticatedIdentity", "Draining", "DrainReason"),
    *("RemoteUser", "MyAddress", "Machine", "Requirements", "Arch"),
)
JOB_NAMES = (
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequestFoo", "Requirements", "Foo"),
    *("Bar", "JobPrio", "QDate", "AccountingGroup", "User", "AutoClusterAttrs", "Rank", "UpdraftRunTime"),
    *("MaxRuntime", "VMAMI", "VMTypeLimit", "UpdraftSpot", "JobMaterializeNextProcId"),
    *("JobMaterializeLimit", "JobsPresent", "TotalSubmitProcs", "JobFactoryTotalProcs"),
    *("JobFactoryPaused", "JobLeaseDuration", "LastJobLeaseRenewal", "JobCurrentStartDate", "RemoteHost"),
    *("RemoteHosts", "AllRemoteHosts", "CompletionDate", "Cmd"),
)
OTHER_NAMES = (
    "Name",
    "Priority",
    "ConfigQuota",
    "IsAccountingGroup",
    "StatsLifetime",
    "DaemonCoreDutyCycle",
    "UpdatesLost_Slot",
)


def ads(names: tuple[str, ...], *fixed: str) -> st.SearchStrategy[Any]:
    lines = st.dictionaries(st.sampled_from(names), st.sampled_from(STRANGE), max_size=8)
    return lines.map(
        lambda some: classad2.ClassAd(f"[ {'; '.join([*fixed, *(f'{n} = {v}' for n, v in some.items())])} ]")
    )


def within(what: Resources) -> bool:
    return all(0 <= one < LARGEST for one in (what.cpus, what.memory, what.disk, what.gpus))


def slots_of(*some: Any) -> list[Any]:
    return learn([slot(ad, "test") for ad in some], SlotMemory(), lambda _names: some, False)[0]


@given(ads(SLOT_NAMES, 'Name = "slot1@w1"', 'MyType = "Machine"'))
def test_any_slot_is_read_within_bounds(ad: Any) -> None:
    (seen,) = slots_of(ad)
    assert all(map(within, (seen.total, seen.free, *(child.resources for child in seen.children))))
    assert all(abs(one) < LARGEST for one in (seen.heard, seen.started))
    assert abs(seen.job_starts or 0) < 2 * LARGEST
    assert abs(seen.begun or 0) < LARGEST
    assert all(abs(one) < LARGEST for one in (seen.since, *(child.since for child in seen.children)))
    assert seen.patience == float("inf") or abs(seen.patience) < LARGEST
    made = snapshot(collector=Known(CollectorView((seen,), 0.0), 1_000_000.0))
    assert (ODD_SLOT in {one.code for one in plan(made, policy()).warnings}) == bool(seen.fault)


@given(ads(JOB_NAMES, 'Owner = "eve"', "JobStatus = 1", "JobCount = 3"), ads(JOB_NAMES, 'Owner = "eve"'))
@example(classad2.ClassAd(f"[ {EVE}; RequestCpus = {NO_TEXT} ]"), classad2.ClassAd(f"[ {EVE} ]"))
@example(classad2.ClassAd(f"[ {EVE}; Requirements = size({NO_TEXT}) == 1 ]"), classad2.ClassAd(f"[ {EVE} ]"))
def test_any_job_is_read_within_bounds_and_the_honest_one_is_served(row: Any, cluster: Any) -> None:
    row["JobIds"], cluster["ClusterId"] = "7.0", 8
    asks = {"RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 100, "Requirements": True}
    honest = classad2.ClassAd({"Owner": "ada", "JobStatus": 1, "JobCount": 2, "JobIds": "1.0", **asks})
    referred_names([row, cluster], ("A",))
    stated_names([row])
    groups = group("s", [honest, row], [cluster])
    for one in groups:
        assert within(one.request)
        assert 0 < one.idle < 1 << 32
        assert all(abs(number) < LARGEST for number in (one.oldest, one.priority, one.run_time or 0))
        assert one.evaluable == (problem(one.ad) == "")
    for job in running_job("s", row):
        assert job.lease_until == float("inf") or abs(job.lease_until) < 2 * LARGEST
    added(Finished(), [row])
    kinds = [Kind(kind_key("default", "g1", "c1", name), SLOT, whole) for name, (whole, _) in FLAVORS.items()]
    verdicts = {(g.key, k.key): Matcher().judge(g, k, 1_000_000.0) for g in groups for k in kinds}
    view = ScheddView(groups, None, sum(one.idle for one in groups), 0)
    made = plan(snapshot(schedds={"s": Known(view, 1_000_000.0)}, verdicts=verdicts), policy())
    (served,) = [one for one in made.groups if one.group == groups_of(groups, "ada")]
    assert served.new == 2
    told = [one.text for one in made.warnings if one.code == LEFT_OUT]
    assert all("eve" in one for one in told)
    assert bool(told) == any(not one.evaluable for one in groups)


@given(ads((*OTHER_NAMES, *SLOT_NAMES)))
def test_any_other_ad_is_read(ad: Any) -> None:
    shares = shares_of([ad])
    assert all(0 < one < LARGEST for one in (shares.priorities.values() if shares else ()))
    assert all(abs(one.joined) < LARGEST for one in collector_loads([ad]).values())


def groups_of(groups: Any, owner: str) -> str:
    return next(one.key for one in groups if one.owner == owner)


SLOT = "[ Cpus = 8; Memory = 16384; Disk = 80000000; Requirements = TARGET.RequestCpus <= MY.Cpus ]"
CIRCLES = {
    "RequestMemory": ("RequestMemory = RequestMemory",),
    "RequestCpus": ("RequestCpus = 2 * RequestCpus",),
    "RequestDisk": ("RequestDisk = RequestDisk",),
    "Foo": ("Foo = Foo + 1", "Requirements = Foo > 1"),
    "Bar": ("RequestCpus = Foo", "Foo = Bar", "Bar = MY.foo"),
}


@pytest.mark.parametrize("name", CIRCLES)
def test_what_refers_to_itself_is_left_out_and_said(name: str) -> None:
    row = classad2.ClassAd(
        f'[ Owner = "eve"; JobStatus = 1; JobCount = 1; JobIds = "7.0"; {"; ".join(CIRCLES[name])} ]'
    )
    (one,) = group("s", [row])
    assert not one.evaluable
    assert references(row).circles[0] in {"Foo", "Bar", name}
    assert "refers to itself" in problem(one.ad)
    (said,) = plan(snapshot(groups=(one,)), policy()).warnings
    assert said.code == LEFT_OUT
    assert said.text.startswith("left out: job 7.0 of eve at schedd s: ")


@pytest.mark.parametrize("name", ["RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"])
@pytest.mark.parametrize("value", [NO_TEXT, f"{NO_TEXT}[0]", '"a\\351"', "{}"])
def test_a_quantity_that_is_none_is_left_out_and_not_taken_for_missing(name: str, value: str) -> None:
    (one,) = group("s", [classad2.ClassAd(f"[ {EVE}; {name} = {value} ]")])
    assert not one.evaluable
    assert name in problem(one.ad)


def test_what_says_what_to_do_where_it_is_undefined_is_planned_for_as_htcondor_runs_it() -> None:
    text = "ifthenelse(isUndefined(RequestMemory),500,RequestMemory)"
    row = classad2.ClassAd(f'[ Owner = "ada"; JobStatus = 1; JobCount = 1; RequestMemory = {text} ]')
    (one,) = group("s", [row])
    assert one.evaluable
    assert one.request.memory == row.eval("RequestMemory") == 500


def test_a_thicket_of_circles_is_not_evaluated() -> None:
    """Each of twenty names all: the paths through them are more than anybody could walk."""
    names = [f"A{n}" for n in range(20)]
    each = "; ".join(f"{name} = {' + '.join(names)}" for name in names)
    row = classad2.ClassAd(f'[ Owner = "eve"; JobStatus = 1; JobCount = 1; {each}; RequestCpus = A0 ]')
    begun = time.process_time()
    (one,) = group("s", [row])
    assert not one.evaluable
    assert time.process_time() - begun < 2


def test_what_only_looks_as_if_it_referred_to_itself_is_planned_for() -> None:
    text = (
        '[ Owner = "ada"; JobStatus = 1; JobCount = 1; Foo = TARGET.Foo; Memory = "Memory"; Need = 5; '
        "RequestMemory = MAX({MY.Need, 10}); Requirements = TARGET.Memory >= RequestMemory && "
        "TARGET.Requirements isnt undefined && max({Need, 1}) > 0 ]"
    )
    (one,) = group("s", [classad2.ClassAd(text)])
    assert "refers to itself" not in problem(one.ad)


def test_a_ladder_of_references_costs_no_time() -> None:
    """Attributes that each name the next one twice: the library would walk forty a million million times."""
    rungs = chain.from_iterable((f"A{n} = A{n + 1} + A{n + 1}",) for n in range(200))
    row = classad2.ClassAd(f"[ {'; '.join(rungs)}; Requirements = A0 > 1; Z = B ]")
    assert references(row).outside == {"A200"}
    assert referred_names([row], ("Owner",)) == ("Owner", "A200")


def test_a_cluster_with_numbers_that_are_none_is_named() -> None:
    cluster = classad2.ClassAd(
        {
            "Owner": "eve",
            "ClusterId": 8,
            "JobFactoryTotalProcs": 20,
            "JobMaterializeNextProcId": -1e30,
            "JobMaterializeLimit": 0,
        }
    )
    (one,) = group("s", [], [cluster])
    assert (one.owner, one.first_id, one.idle, one.evaluable) == ("eve", "8.0", 1, False)
    assert "JobMaterializeNextProcId is -1e+30" in problem(one.ad)


def test_a_slot_that_says_more_than_a_machine_has_is_no_room_and_is_named() -> None:
    (seen,) = slots_of(
        classad2.ClassAd({"Name": "slot1@w1", "Cpus": 4, "Memory": 1e308, "State": "Unclaimed"})
    )
    assert seen.total == Resources(4, 0, 0, 0)
    assert "Memory is 1e+308" in seen.fault
    made = plan(
        snapshot(collector=Known(CollectorView((replace(seen, instance_id="i-1"),), 0.0), 1_000_000.0)),
        policy(),
    )
    (said,) = [one for one in made.warnings if one.code == ODD_SLOT]
    assert "slot1@w1" in said.text
    assert "i-1" in said.text


def test_a_text_that_is_not_utf_8_is_read_as_it_is_written_down() -> None:
    ad = classad2.ClassAd('[ Name = "caf\\351"; Names = { "caf\\351" } ]')
    with pytest.raises(UnicodeDecodeError):
        ad.get("Name")
    assert text(ad, "Name") == "caf\\351"
    assert value(ad, "Names") is None
    assert quantities(ad, "") == Resources()


def test_a_slot_whose_state_is_not_said_is_taken_for_busy() -> None:
    assert slot(classad2.ClassAd({"Name": "slot1@w1", "State": 7}), "test").busy
