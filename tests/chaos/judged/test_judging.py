"""For each thing that must never happen a run in which it did, and one beside it in which it didn't.

`run_of` is a good run: one machine from 100 to 402, ended by the controller at 400, and one job on it from
110 to 350. Each test changes what it is about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.chaos.judged.evidence import (
    ABORTED,
    ENDED,
    EVICTED,
    Call,
    CloudLog,
    Deed,
    JobLog,
    MachineLife,
    Run,
)
from tests.chaos.judged.judging import (
    Bounds,
    Evidence,
    Finding,
    back_to_normal,
    beyond_budget,
    done,
    judged,
    worst_minute,
)

FIRST, SECOND, THIRD = "10.7.0.11", "10.7.0.12", "10.7.0.13"
ENDS_AT = 400.0
OVER = 430.0
BOUNDS = Bounds(
    machines=2, calls_a_minute=10, seconds_between_looks=45.0, memory_kib=200 * 1024, descriptors=96
)
LOOKS = tuple(float(at) for at in range(70, 430, 40))
ENDS_JOBS = (
    *("ended-by-somebody", "crashed", "notice-of-120-s", "notice-of-40-s", "taken-without-notice"),
    *("startd-killed", "shadow-killed"),
)
MAKES_USELESS = (
    *(*ENDS_JOBS, "system-dead", "tag-removed"),
    *("cut-from-head", "cut-from-everything", "cut-from-metadata"),
)
HURTS = tuple(what for what in MAKES_USELESS if what != "tag-removed")
"""Of these, what is no lie about a machine as well."""
HEADER = "eyJhbGciOiJIUzI1NiJ9"
TOKEN = f"{HEADER}.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJlIQ-_x"


def machine(name: str = "i-1", address: str = FIRST, key: str = "", **times: float) -> MachineLife:
    """A machine; where nothing else is said it lives from 100 to 402 and stops at 400."""
    life = times or {"pending": 100.0, "running": 103.0, "stopping": ENDS_AT, "terminated": ENDS_AT + 2}
    return MachineLife(name, key or f"k-{name}", address, 2, "worker", life)


def lived(name: str, address: str, begun: float, ended: float) -> MachineLife:
    """A machine that lived for this time."""
    return machine(name, address, pending=begun, terminated=ended)


def ran(job: str, start: float, end: float | None, address: str = FIRST, how: str = ENDED) -> Run:
    """A job's run; it ends well where nothing else is said."""
    return Run(job, address, start, end, "" if end is None else how)


def call(name: str, at: float, *ids: str, who: str = "controller", code: str = "") -> Call:
    """A call of the cloud's API."""
    return Call(at, name, who, code, ids)


def launch(key: str, count: int, at: float = 100.0) -> Call:
    """The call that asked for so many machines."""
    return Call(at, "run", "controller", "", key=key, count=count)


def job_log(
    runs: Sequence[Run], held: Iterable[str] = (), aborted: Iterable[str] = (), submitted: float = 90.0
) -> JobLog:
    """What the event log of these runs says."""
    ended = [run.job for run in runs if run.how == ENDED]
    return JobLog(
        runs=tuple(runs),
        ends={job: ended.count(job) for job in ended},
        held=frozenset(held),
        aborted=frozenset(aborted),
        submitted={run.job: submitted for run in runs},
        gone={run.job: run.end for run in runs if run.end and run.how in (ENDED, ABORTED)},
    )


def run_of(
    machines: Sequence[MachineLife] = (machine(),),
    runs: Sequence[Run] = (ran("1.0", 110, 350),),
    deeds: Sequence[Deed] = (),
    calls: Sequence[Call] = (call("terminate", ENDS_AT, "i-1"),),
    *,
    jobs: JobLog | None = None,
    clusters: Mapping[int, tuple[int, float]] | None = None,
    looks: Sequence[float] = LOOKS,
    logs: Mapping[str, str] | None = None,
    secrets: Sequence[str] = (),
    memory_kib: int = 0,
    descriptors: int = 0,
    slow: float = 1.0,
) -> Evidence:
    """All that a run left. Its clusters are those of its runs, of one job each and submitted at 90."""
    return Evidence(
        cloud=CloudLog({one.id: one for one in machines}, (*calls, *(call("list", at) for at in looks))),
        jobs=jobs or job_log(runs),
        deeds=tuple(deeds),
        clusters=clusters or {int(run.job.split(".")[0]): (1, 90.0) for run in runs},
        ended=OVER,
        logs=logs or {},
        secrets=secrets,
        memory_kib=memory_kib,
        descriptors=descriptors,
        slow=slow,
    )


def broken(seen: Evidence) -> list[str]:
    """The rules that were broken."""
    return [one.rule for one in judged(seen, BOUNDS)]


def befell(what: str, begun: float = 200.0, ended: float = 0.0, *, machine: str = "", job: str = "") -> Deed:
    """What was done on purpose."""
    return Deed(what, begun, ended or begun, machine, job)


BUSY = (ran("1.0", 110, 405),)
"""A job that is still there when its machine is ended."""


def test_nothing_is_found_in_a_good_run() -> None:
    assert judged(run_of(), BOUNDS) == []


def test_findings_come_in_the_order_of_time() -> None:
    seen = run_of([machine(), machine("i-2", SECOND, pending=100.0)], BUSY, memory_kib=1 << 30)
    found = judged(seen, BOUNDS)
    assert [(one.rule, one.at) for one in found] == [("leaked", 100), ("killed", ENDS_AT), ("memory", OVER)]


BEGUN_LATE = [machine(), machine("i-2", SECOND, pending=300.0, terminated=408.0)]


@pytest.mark.parametrize(
    ("rule", "changes", "enough"),
    [
        ("killed", {"runs": [ran("1.0", 110, 403)]}, 2.0),
        ("hang", {"looks": [at for at in LOOKS if not 180 < at < 260]}, 3.0),
        ("doubled", {"machines": BEGUN_LATE, "runs": [ran("1.0", 110, 350), ran("2.0", 302, 390, SECOND)],
                     "clusters": {1: (1, 90.0), 2: (1, 400.0)}}, 20.0),
    ],
)  # fmt: skip
def test_what_may_take_a_while_may_take_longer_on_a_slow_machine(
    rule: str, changes: dict[str, object], enough: float
) -> None:
    assert rule in broken(run_of(**changes))  # type: ignore[arg-type]
    assert rule not in broken(run_of(**changes, slow=enough))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- killed


def test_a_job_that_runs_when_the_controller_ends_its_machine_is_killed() -> None:
    text = "job 1.0 ran on i-1 since 290 s when the controller ended that machine"
    assert judged(run_of(runs=BUSY), BOUNDS) == [Finding("killed", ENDS_AT, text)]


def test_a_run_of_which_no_end_was_written_is_killed_and_its_job_lost() -> None:
    assert broken(run_of(runs=[ran("1.0", 110, None)])) == ["lost", "killed"]


def test_every_job_of_the_machine_is_found() -> None:
    runs = [*BUSY, ran("2.0", 200, 405), ran("3.0", 200, 300)]
    assert broken(run_of(runs=runs)) == ["killed", "killed"]


@pytest.mark.parametrize(
    ("start", "end"),
    [(110, 400), (110, 402), (398, 405), (399, 405), (401, 405)],
    ids=["ends then", "ends a little later", "begins just before", "begins then", "begins later"],
)
def test_a_run_that_may_have_ended_before_or_begun_later_is_not_killed(start: float, end: float) -> None:
    assert broken(run_of(runs=[ran("1.0", start, end)])) == []


@pytest.mark.parametrize(("start", "end"), [(110, 403), (397, 405)])
def test_a_run_that_was_there_beyond_doubt_is_killed(start: float, end: float) -> None:
    assert broken(run_of(runs=[ran("1.0", start, end)])) == ["killed"]


def test_a_job_on_another_machine_is_not_killed() -> None:
    machines = [machine(), lived("i-2", SECOND, 100, 420)]
    assert broken(run_of(machines, [ran("1.0", 110, 405, SECOND)])) == []


def test_a_run_on_an_earlier_machine_of_that_address_is_not_killed() -> None:
    machines = [lived("i-0", FIRST, 20, 95), machine()]
    assert (
        broken(run_of(machines, [ran("1.0", 30, 405)], clusters={1: (1, 15.0)}, looks=(30.0, *LOOKS))) == []
    )


def test_a_machine_that_was_on_its_way_out_is_not_ended_by_the_controller() -> None:
    leaving = machine(pending=100.0, stopping=398.5, terminated=402.0)
    gone = machine(pending=100.0, terminated=398.5)
    assert broken(run_of([leaving], BUSY)) == []
    assert broken(run_of([gone], BUSY)) == []


def test_a_machine_that_stops_as_it_is_ended_was_not_on_its_way_out() -> None:
    assert broken(run_of([machine(pending=100.0, stopping=399.5, terminated=402.0)], BUSY)) == ["killed"]


def test_who_else_ends_a_machine_is_not_judged() -> None:
    assert broken(run_of(runs=BUSY, calls=[call("terminate", ENDS_AT, "i-1", who="admin")])) == []


def test_a_call_that_came_to_nothing_ends_no_machine() -> None:
    refused = call("terminate", 300, "i-1", code="throttled")
    assert broken(run_of(calls=[refused, call("terminate", ENDS_AT, "i-1")])) == []


def test_a_job_that_is_evicted_as_its_machine_stops_is_killed() -> None:
    runs = [ran("1.0", 110, ENDS_AT + 1, how=EVICTED), ran("1.0", 405, 420, SECOND)]
    assert broken(run_of(runs=runs)) == ["killed"]


@pytest.mark.parametrize("what", ["shadow-killed", "startd-killed", "job-held"])
def test_what_befell_an_earlier_run_excuses_nothing(what: str) -> None:
    runs = [ran("1.0", 110, 200, how=EVICTED), ran("1.0", 230, 405)]
    job = "" if what == "startd-killed" else "1.0"
    deed = befell(what, 200, machine="i-1", job=job)
    assert broken(run_of(runs=runs, deeds=[deed])) == ["killed"]


def test_another_call_ends_no_machine() -> None:
    assert broken(run_of(runs=BUSY, calls=[call("tag", ENDS_AT, "i-1")])) == []


def test_a_machine_that_is_not_of_the_pool_has_no_jobs() -> None:
    assert broken(run_of(calls=[call("terminate", ENDS_AT, "i-elsewhere", "i-1")])) == []


@pytest.mark.parametrize("what", ENDS_JOBS)
def test_what_ends_the_jobs_of_a_machine_excuses_its_end(what: str) -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell(what, machine="i-1")])) == []


@pytest.mark.parametrize(
    ("start", "killed", "excused"),
    [(110, 240, True), (110, 150, True), (310, 340, False), (200, 290, False), (310, 250, False)],
    ids=["older than its lease", "its lease is over", "it may come back", "it may yet", "an earlier run's"],
)
def test_a_run_that_its_killed_schedd_was_to_lose_is_nobodys(
    start: float, killed: float, excused: bool
) -> None:
    runs = [ran("1.0", start, 405)]
    found = broken(run_of(runs=runs, deeds=[befell("schedd-killed", killed)]))
    assert ("killed" not in found) is excused


@pytest.mark.parametrize("what", ["job-held", "job-removed", "shadow-killed"])
def test_what_ends_a_job_excuses_the_end_of_its_machine(what: str) -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell(what, job="1.0")])) == []


@pytest.mark.parametrize("what", ENDS_JOBS)
def test_what_befell_another_machine_excuses_nothing(what: str) -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell(what, machine="i-2")])) == ["killed"]


@pytest.mark.parametrize("what", ["job-held", "job-removed", "shadow-killed"])
def test_what_befell_another_job_excuses_nothing(what: str) -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell(what, job="2.0")])) == ["killed"]


@pytest.mark.parametrize("what", ["crashed", "collector-killed", "job-held"])
def test_what_befell_nobody_known_excuses_nothing(what: str) -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell(what)])) == ["killed"]


@pytest.mark.parametrize("what", [*ENDS_JOBS, "job-held", "job-removed"])
def test_what_happens_after_a_machine_was_ended_excuses_nothing(what: str) -> None:
    late = befell(what, ENDS_AT + 1, machine="i-1", job="1.0")
    assert broken(run_of(runs=BUSY, deeds=[late])) == ["killed"]


@pytest.mark.parametrize(
    "what",
    [
        *("cut-from-head", "cut-from-everything", "cut-from-metadata", "tag-removed"),
        *("startd-stopped", "shadow-stopped", "job-suspended"),
    ],
)
def test_what_jobs_live_through_excuses_nothing(what: str) -> None:
    deed = befell(what, 380, 399, machine="i-1", job="1.0")
    assert broken(run_of(runs=BUSY, deeds=[deed])) == ["killed"]


def test_a_dead_system_excuses_its_end_when_the_lease_of_its_jobs_is_over() -> None:
    assert broken(run_of(runs=BUSY, deeds=[befell("system-dead", ENDS_AT - 120, machine="i-1")])) == []


def test_a_dead_system_excuses_nothing_while_its_jobs_have_their_lease() -> None:
    deed = befell("system-dead", ENDS_AT - 119, machine="i-1")
    assert broken(run_of(runs=BUSY, deeds=[deed])) == ["killed"]


# ----------------------------------------------------------------------------------------- lost and held


def test_a_job_that_never_ended_is_lost() -> None:
    seen = run_of(runs=[ran("1.0", 110, 350, how=EVICTED)])
    assert judged(seen, BOUNDS) == [Finding("lost", 90.0, "job 1.0 ended 0 times")]


def test_a_job_of_which_the_log_says_nothing_is_lost() -> None:
    assert broken(run_of(clusters={1: (2, 90.0)})) == ["lost"]


def test_a_job_that_was_held_as_it_ended_may_end_again() -> None:
    runs = [ran("1.0", 110, 200), ran("1.0", 210, 350)]
    assert broken(run_of(runs=runs, deeds=[befell("job-held", 199, job="1.0")])) == []
    thrice = [*runs, ran("1.0", 360, 380)]
    assert broken(run_of(runs=thrice, deeds=[befell("job-held", 199, job="1.0")])) == ["lost"]


def test_a_job_that_ended_twice_is_lost() -> None:
    seen = run_of(runs=[ran("1.0", 110, 200), ran("1.0", 210, 350)])
    assert judged(seen, BOUNDS) == [Finding("lost", 90.0, "job 1.0 ended 2 times")]


def test_a_job_that_is_evicted_and_ends_later_is_not_lost() -> None:
    assert broken(run_of(runs=[ran("1.0", 110, 200, how=EVICTED), ran("1.0", 210, 350)])) == []


def test_a_job_that_nobody_here_removed_is_lost() -> None:
    seen = run_of(jobs=job_log([ran("1.0", 110, 350, how=ABORTED)], aborted=["1.0"]))
    assert judged(seen, BOUNDS) == [Finding("lost", 90.0, "job 1.0 was removed, and nobody here did that")]


def test_a_job_that_was_removed_on_purpose_is_not_lost() -> None:
    jobs = job_log([ran("1.0", 110, 350, how=ABORTED)], aborted=["1.0"])
    assert broken(run_of(jobs=jobs, deeds=[befell("job-removed", job="1.0")])) == []


def test_a_job_that_should_have_been_removed_and_stays_is_lost() -> None:
    runs = [ran("1.0", 110, None)]
    assert "lost" in broken(run_of(runs=runs, deeds=[befell("job-removed", job="1.0")]))


def test_a_job_that_ended_before_its_removal_is_not_lost() -> None:
    assert broken(run_of(deeds=[befell("job-removed", 349, job="1.0")])) == []


def test_a_removed_job_excuses_no_other() -> None:
    jobs = job_log([ran("1.0", 110, 350, how=ABORTED)], aborted=["1.0"])
    assert broken(run_of(jobs=jobs, deeds=[befell("job-removed", job="1.1")])) == ["lost"]


def test_a_removed_job_must_not_end_twice() -> None:
    runs = [ran("1.0", 110, 200), ran("1.0", 210, 350)]
    assert broken(run_of(runs=runs, deeds=[befell("job-removed", job="1.0")])) == ["lost"]


def test_a_job_that_is_on_hold_at_the_end_is_held() -> None:
    seen = run_of(jobs=job_log([ran("1.0", 110, 200, how="012")], held=["1.0"]))
    assert judged(seen, BOUNDS) == [Finding("held", 90.0, "job 1.0 was left on hold")]


def test_a_job_that_was_held_on_purpose_must_not_stay_so() -> None:
    jobs = job_log([ran("1.0", 110, 200, how="012")], held=["1.0"])
    assert broken(run_of(jobs=jobs, deeds=[befell("job-held", 200, 210, job="1.0")])) == ["held"]


def test_a_job_that_was_held_and_released_is_not_held() -> None:
    runs = [ran("1.0", 110, 200, how="012"), ran("1.0", 220, 350)]
    assert broken(run_of(runs=runs, deeds=[befell("job-held", 200, 210, job="1.0")])) == []


def test_jobs_of_a_submission_that_nobody_waited_for_must_end_too() -> None:
    jobs = job_log([ran("1.0", 110, 350), ran("9.0", 110, None, SECOND)])
    assert broken(run_of(jobs=jobs, clusters={1: (1, 90.0)})) == ["lost"]


# --------------------------------------------------------------------------------------------- leaked


@pytest.mark.parametrize("states", [("pending",), ("pending", "running"), ("pending", "running", "stopping")])
def test_a_machine_that_is_still_there_is_leaked(states: Sequence[str]) -> None:
    left = machine("i-2", SECOND)
    left.times = {state: 300.0 + number for number, state in enumerate(states)}
    text = f"machine i-2 (k-i-2) is {states[-1]} at the end"
    assert judged(run_of([machine(), left]), BOUNDS) == [Finding("leaked", 300.0, text)]


def test_a_machine_that_is_gone_at_the_end_is_not_leaked() -> None:
    assert broken(run_of([machine(), lived("i-2", SECOND, 300, OVER - 1)])) == []


# -------------------------------------------------------------------------------------------- doubled


def twins(count: int) -> Evidence:
    """Two machines of one launch that asked for so many."""
    machines = [machine(key="k-1"), machine("i-2", SECOND, "k-1", pending=100.5, terminated=130.0)]
    return run_of(machines, calls=[launch("k-1", count)])


def test_more_machines_of_a_launch_than_it_asked_for_are_doubled() -> None:
    assert judged(twins(1), BOUNDS) == [Finding("doubled", OVER, "launch k-1 asked for 1 and made 2")]


def test_as_many_machines_of_a_launch_as_it_asked_for_are_not_doubled() -> None:
    assert broken(twins(2)) == []


def test_fewer_machines_of_a_launch_than_it_asked_for_are_not_doubled() -> None:
    assert broken(twins(3)) == []


def test_a_launch_that_is_asked_for_again_is_still_one() -> None:
    assert broken(run_of([machine(key="k-1")], calls=[launch("k-1", 1), launch("k-1", 1, 104)])) == []
    machines = [machine(key="k-1"), machine("i-2", SECOND, "k-1", pending=104.0, terminated=130.0)]
    assert broken(run_of(machines, calls=[launch("k-1", 1), launch("k-1", 1, 104)])) == ["doubled"]


def crowd(
    *deeds: Deed,
    comes: float = 330.0,
    ends: float = 350.0,
    first: MachineLife | None = None,
    used: bool = True,
) -> Evidence:
    """A job in the queue from 90 to `ends`, a machine for it, a second one at 200 and its job at `comes`."""
    runs = [ran("1.0", 110, ends), ran("2.0", max(comes, 205.0), 360, SECOND if used else FIRST)]
    return run_of(
        [first or machine(), lived("i-2", SECOND, 200, 420)],
        runs,
        deeds,
        clusters={1: (1, 90.0), 2: (1, comes)},
    )


def test_more_sound_machines_than_jobs_are_doubled() -> None:
    text = "2 sound machines with i-2, and 1 jobs at most of late"
    assert judged(crowd(), BOUNDS) == [Finding("doubled", 200.0, text)]


def test_a_machine_for_each_job_is_not_doubled() -> None:
    assert broken(crowd(comes=195.0)) == []


def test_a_machine_that_comes_just_before_its_job_was_noted_is_not_doubled() -> None:
    assert broken(crowd(comes=202.0)) == []
    assert broken(crowd(comes=203.0)) == ["doubled"]


@pytest.mark.parametrize(("ended", "expected"), [(145.0, []), (139.0, ["doubled"])])
def test_jobs_count_for_a_minute_after_their_end(ended: float, expected: list[str]) -> None:
    seen = run_of(
        [machine(), lived("i-2", SECOND, 200, 420)],
        [ran("1.0", 110, 350), ran("2.0", 110, ended), ran("3.0", 340, 360, SECOND)],
        clusters={1: (1, 90.0), 2: (1, 90.0), 3: (1, 330.0)},
    )
    assert broken(seen) == expected


def test_jobs_that_are_to_be_made_later_count_from_their_submission() -> None:
    runs = [ran("1.0", 110, 200), ran("1.1", 205, 350, SECOND)]
    seen = run_of([machine(), lived("i-2", SECOND, 200, 420)], runs, clusters={1: (2, 90.0)})
    assert broken(seen) == []


def test_a_job_that_was_never_made_counts_as_one_that_waits() -> None:
    runs = [ran("1.0", 110, 350), ran("2.0", 340, 360, SECOND)]
    machines = [machine(), lived("i-2", SECOND, 200, 420)]
    assert broken(run_of(machines, runs, clusters={1: (2, 90.0), 2: (1, 330.0)})) == ["lost"]


def test_a_young_machine_that_nothing_ever_ran_on_is_of_no_use_yet() -> None:
    assert broken(crowd(used=False)) == []


@pytest.mark.parametrize(("begun", "expected"), [(115.0, []), (105.0, ["doubled"])])
def test_a_machine_that_nothing_ever_ran_on_counts_when_it_is_old(begun: float, expected: list[str]) -> None:
    idle = lived("i-1", THIRD, begun, 390)
    assert broken(crowd(first=idle)) == expected


def test_a_machine_that_is_gone_makes_room_for_another() -> None:
    seen = run_of(
        [lived("i-1", FIRST, 100, 200), lived("i-2", SECOND, 200, 420)],
        [ran("1.0", 110, 195, how=EVICTED), ran("1.0", 210, 350, SECOND)],
    )
    assert broken(seen) == []


@pytest.mark.parametrize("what", MAKES_USELESS)
def test_a_machine_that_was_hurt_may_have_another_beside_it(what: str) -> None:
    assert broken(crowd(befell(what, 200, 200.1, machine="i-1"))) == []


@pytest.mark.parametrize("what", HURTS)
def test_a_machine_that_is_hurt_later_was_sound(what: str) -> None:
    assert broken(crowd(befell(what, 201, machine="i-1"))) == ["doubled"]


@pytest.mark.parametrize("what", HURTS)
def test_what_hurt_a_machine_that_is_not_there_makes_no_other_useless(what: str) -> None:
    assert broken(crowd(befell(what, 150, machine="i-9"))) == ["doubled"]


@pytest.mark.parametrize("what", ["startd-stopped", "shadow-stopped"])
def test_a_machine_that_stood_still_for_a_while_is_sound(what: str) -> None:
    assert broken(crowd(befell(what, 150, 160, machine="i-1"))) == ["doubled"]


@pytest.mark.parametrize("what", ["listing-leaves-out", "wrong-state", "tag-removed"])
def test_who_is_lied_to_about_machines_may_take_more(what: str) -> None:
    assert broken(crowd(befell(what, 110, 140))) == []
    assert broken(crowd(befell(what, 199, 230))) == []


@pytest.mark.parametrize("what", ["listing-leaves-out", "wrong-state", "tag-removed"])
def test_a_lie_that_is_long_over_or_still_to_come_excuses_no_machine(what: str) -> None:
    assert broken(crowd(befell(what, 110, 139))) == ["doubled"]
    assert broken(crowd(befell(what, 201, 230))) == ["doubled"]


@pytest.mark.parametrize("what", ["calls-fail", "lost-answer", "controller-killed", "ledger-deleted"])
def test_no_other_trouble_excuses_more_machines_than_jobs(what: str) -> None:
    assert broken(crowd(befell(what, 190, 210))) == ["doubled"]


@pytest.mark.parametrize(("out", "expected"), [(206.0, []), (207.0, ["doubled"])])
def test_a_machine_that_goes_right_then_was_being_drained(out: float, expected: list[str]) -> None:
    going = machine(pending=100.0, running=103.0, stopping=out, terminated=out + 2)
    assert broken(crowd(first=going, ends=190.0)) == expected
    assert broken(crowd(first=lived("i-1", FIRST, 100.0, out), ends=190.0)) == expected


ACTS = "2026-11-24T13:04:44.750711Z [info     ] this controller acts for the pool code=acting pool=demo\n"
WAITS = "2026-11-24T13:04:42.702950Z [info     ] one acts: this one waits code=second-controller pool=demo\n"


def test_a_second_controller_that_acts_beside_the_first_is_doubled() -> None:
    at = datetime(2026, 11, 24, 13, 4, 44, 750711, UTC).timestamp()
    logs = {"updraft-second.log": WAITS + ACTS, "updraft.log": ACTS}
    assert judged(run_of(logs=logs), BOUNDS) == [Finding("doubled", at, "a second controller acts")]
    assert broken(run_of(logs={"updraft-second.log": WAITS, "updraft.log": ACTS})) == []


@pytest.mark.parametrize(
    ("what", "expected"),
    [("controller-stopped", []), ("second-controller", ["doubled"]), ("crashed", ["doubled"])],
)
def test_a_second_controller_may_act_where_something_befell_the_first(what: str, expected: list[str]) -> None:
    at = datetime(2026, 11, 24, 13, 4, 44, tzinfo=UTC).timestamp()
    logs = {"updraft-second.log": ACTS}
    assert broken(run_of(deeds=[befell(what, at - 20, at - 5)], logs=logs)) == expected
    assert broken(run_of(deeds=[befell(what, at + 2, at + 5)], logs=logs)) == ["doubled"]


# ---------------------------------------------------------------------------------------------- limit


def test_more_machines_at_a_time_than_may_be_are_beyond_the_limit() -> None:
    machines = [machine(), lived("i-2", SECOND, 200, 251), lived("i-3", THIRD, 250, 300)]
    text = "3 machines with i-3, where 2 may be"
    assert judged(run_of(machines), BOUNDS) == [Finding("limit", 250.0, text)]


@pytest.mark.parametrize(
    ("lost", "lied", "expected"),
    [
        (("ledger-deleted", 200.0, 200.0), ("listing-leaves-out", 210.0, 240.0), []),
        (("second-controller", 200.0, 230.0), ("tag-removed", 210.0, 240.0), []),
        (("ledger-damaged", 180.0, 190.0), ("tag-removed", 251.0, 260.0), ["limit"]),
        (("ledger-old", 180.0, 189.0), ("listing-lags", 210.0, 240.0), ["limit"]),
        (("disk-full", 200.0, 210.0), ("listing-lags", 210.0, 240.0), ["limit"]),
        (("ledger-old", 200.0, 210.0), ("wrong-state", 210.0, 240.0), ["limit"]),
    ],
)
def test_a_limit_may_be_exceeded_where_nobody_can_know_all_machines(
    lost: tuple[str, float, float], lied: tuple[str, float, float], expected: list[str]
) -> None:
    machines = [machine(), lived("i-2", SECOND, 200, 251), lived("i-3", THIRD, 250, 300)]
    assert broken(run_of(machines, deeds=[befell(*lost), befell(*lied)])) == expected


def test_a_machine_in_the_place_of_one_that_is_gone_is_within_the_limit() -> None:
    machines = [machine(), lived("i-2", SECOND, 200, 250), lived("i-3", THIRD, 250, 300)]
    assert broken(run_of(machines)) == []


def test_a_machine_that_is_still_stopping_counts() -> None:
    stopping = machine("i-2", SECOND, pending=200.0, stopping=240.0, terminated=251.0)
    assert broken(run_of([machine(), stopping, lived("i-3", THIRD, 250, 300)])) == ["limit"]


# ---------------------------------------------------------------------------------------------- calls


def asked_often(times: Iterable[float], who: str = "controller") -> Evidence:
    """A good run in which the cloud was asked at these times, too; its looks are two in any minute."""
    return run_of(calls=[call("quota", at, who=who) for at in times])


def test_too_many_calls_in_a_minute_are_found_where_they_begin() -> None:
    seen = asked_often([200.0] * 9)
    assert judged(seen, BOUNDS) == [Finding("calls", 150.0, "11 calls of the cloud's API in one minute")]


def test_as_many_calls_as_may_be_are_not_too_many() -> None:
    assert broken(asked_often([200.0] * 8)) == []


def test_as_many_calls_in_a_longer_time_are_not_too_many() -> None:
    assert broken(asked_often(float(at) for at in range(100, 400, 10))) == []


def test_calls_of_others_are_theirs() -> None:
    assert broken(asked_often([200.0] * 50, who="admin")) == []


def cloud_of(*times: float, who: str = "controller") -> CloudLog:
    """A cloud that was called at these times."""
    return CloudLog({}, tuple(call("list", at, who=who) for at in times))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((), (0.0, 0)),
        ((5.0,), (5.0, 1)),
        ((0.0, 59.0, 61.0), (0.0, 2)),
        ((0.0, 100.0, 130.0, 159.0, 200.0), (100.0, 3)),
        ((159.0, 0.0, 130.0, 200.0, 100.0), (100.0, 3)),
        ((0.0, 30.0, 100.0, 130.0), (0.0, 2)),
        ((0.0, 40.0, 80.0, 90.0, 99.0), (40.0, 4)),
    ],
)
def test_the_worst_minute_is_the_first_with_most_calls(
    times: Sequence[float], expected: tuple[float, int]
) -> None:
    assert worst_minute(cloud_of(*times)) == expected


def test_only_the_controllers_calls_make_a_minute_bad() -> None:
    assert worst_minute(cloud_of(1.0, 2.0, who="admin")) == (0.0, 0)


# ----------------------------------------------------------------------------------------------- hang

GAP = (150.0, 210.0)
"""A minute in which nobody looks."""
SILENT = [at for at in (*LOOKS, *GAP) if not GAP[0] < at < GAP[1]]


def test_a_controller_that_does_not_look_hangs() -> None:
    text = "the controller didn't look for 60 s"
    assert judged(run_of(looks=SILENT), BOUNDS) == [Finding("hang", GAP[0], text)]


@pytest.mark.parametrize(("pause", "expected"), [(45.0, []), (45.1, ["hang"])])
def test_how_long_it_may_take_until_the_next_look(pause: float, expected: list[str]) -> None:
    looks = [*(at for at in LOOKS if at < 340), 390.0 - pause, 390.0]
    assert broken(run_of(looks=looks)) == expected


def test_a_controller_that_no_longer_looks_at_the_end_hangs() -> None:
    assert broken(run_of(looks=[at for at in LOOKS if at < 380])) == ["hang"]


def test_a_controller_that_never_looks_hangs() -> None:
    assert broken(run_of(looks=[])) == ["hang"]


def test_a_look_that_is_refused_is_one() -> None:
    refused = call("list", 180.0, code="throttled")
    assert broken(run_of(looks=SILENT, calls=[refused])) == []


def test_what_others_list_and_what_else_is_called_is_no_look() -> None:
    others = [call("list", 180.0, who="admin"), call("quota", 181.0), call("tag", 182.0, "i-1")]
    assert broken(run_of(looks=SILENT, calls=others)) == ["hang"]


@pytest.mark.parametrize(
    "what", ["controller-killed", "controller-stopped", "disk-full", "clock-back", "second-controller"]
)
def test_what_was_done_to_its_host_excuses_that_it_does_not_look(what: str) -> None:
    assert broken(run_of(looks=SILENT, deeds=[befell(what, 160, 170)])) == []


@pytest.mark.parametrize(("begun", "ended"), [(80, 90), (210, 220), (20, 400)])
def test_what_was_done_to_its_host_excuses_it_for_a_minute(begun: float, ended: float) -> None:
    assert broken(run_of(looks=SILENT, deeds=[befell("disk-full", begun, ended)])) == []


@pytest.mark.parametrize(("begun", "ended"), [(70, 89), (211, 220)])
def test_what_was_done_to_its_host_long_before_or_later_excuses_nothing(begun: float, ended: float) -> None:
    assert broken(run_of(looks=SILENT, deeds=[befell("disk-full", begun, ended)])) == ["hang"]


def test_a_schedd_that_takes_long_to_answer_is_asked_seldom() -> None:
    assert broken(run_of(looks=SILENT, deeds=[befell("long-queue", 150, 210)])) == []


@pytest.mark.parametrize("what", ["calls-slow", "no-answer", "collector-stopped", "hostile-ads", "job-held"])
def test_no_cloud_or_pool_keeps_a_controller_from_looking(what: str) -> None:
    assert broken(run_of(looks=SILENT, deeds=[befell(what, 150, 210)])) == ["hang"]


# ---------------------------------------------------------------------------------------------- secret


def test_a_token_in_a_log_is_told() -> None:
    seen = run_of(logs={"updraft.log": f"joins with {TOKEN}\n", "cloud.log": "nothing"})
    assert judged(seen, BOUNDS) == [Finding("secret", OVER, "updraft.log has a token in it")]


def test_a_credential_in_a_log_is_told() -> None:
    logs = {"updraft status": "all is well", "events.jsonl": '{"token": "hush-hush"}'}
    assert broken(run_of(logs=logs, secrets=["other", "hush-hush"])) == ["secret"]


def test_every_log_that_tells_one_is_found() -> None:
    assert broken(run_of(logs={"a": TOKEN, "b": TOKEN, "c": ""})) == ["secret", "secret"]


@pytest.mark.parametrize(
    "text",
    [HEADER, TOKEN.rpartition(".")[0], "eyJhbGci.eyJzdWI.c2ln", "the token was eyJ...", "hush", "i-1 k-i-1"],
)
def test_what_is_no_whole_token_is_no_secret(text: str) -> None:
    assert broken(run_of(logs={"updraft.log": text}, secrets=["hush-hush"])) == []


# ------------------------------------------------------------------------------- memory and descriptors


def test_a_controller_that_has_too_much_memory_is_found() -> None:
    found = judged(run_of(memory_kib=201 * 1024), BOUNDS)
    assert found == [Finding("memory", OVER, "the controller has 201 MiB")]


def test_a_controller_with_all_the_memory_that_it_may_have_is_good() -> None:
    assert broken(run_of(memory_kib=200 * 1024)) == []


def test_a_controller_with_too_many_descriptors_is_found() -> None:
    found = judged(run_of(descriptors=97), BOUNDS)
    assert found == [Finding("descriptors", OVER, "the controller has 97 descriptors open")]


def test_a_controller_with_all_the_descriptors_that_it_may_have_is_good() -> None:
    assert broken(run_of(descriptors=96)) == []


# --------------------------------------------------------------------------------------- back to normal


def waiting_until(start: float, *deeds: Deed) -> Evidence:
    """A job that is in the queue from 90 on and begins to run at this time."""
    return run_of(runs=[ran("1.0", start, 380)], deeds=deeds)


def test_while_all_jobs_run_none_waits_for_anything_to_be_normal() -> None:
    runs = [ran("1.0", 110, 350), ran("2.0", 301, 340)]
    clusters = {1: (1, 90.0), 2: (1, 300.0)}
    seen = run_of(runs=runs, clusters=clusters, deeds=[befell("collector-killed", 200)])
    assert back_to_normal(seen) == {}


def test_all_is_normal_again_when_the_next_job_begins() -> None:
    seen = waiting_until(150, befell("collector-stopped", 110, 120))
    assert back_to_normal(seen) == {"collector-stopped": [30.0]}


def test_a_job_that_begins_as_trouble_ends_waited_for_nothing() -> None:
    assert back_to_normal(waiting_until(150, befell("calls-fail", 110, 150))) == {"calls-fail": [0.0]}


def test_a_job_that_begins_while_trouble_lasts_is_not_the_next_one() -> None:
    runs = [ran("1.0", 115, 200), ran("2.0", 150, 380)]
    seen = run_of(runs=runs, deeds=[befell("calls-fail", 110, 120)])
    assert back_to_normal(seen) == {"calls-fail": [30.0]}


def test_each_trouble_of_a_kind_has_its_time() -> None:
    deeds = [befell("calls-fail", 100, 110), befell("calls-fail", 120, 145), befell("crashed", 140)]
    assert back_to_normal(waiting_until(150, *deeds)) == {"calls-fail": [40.0, 5.0], "crashed": [10.0]}


def test_what_befalls_jobs_is_no_trouble_of_the_pool() -> None:
    assert back_to_normal(waiting_until(150, befell("job-held", 110, 120, job="1.0"))) == {}


def test_where_no_job_is_there_nothing_is_waited_for() -> None:
    runs = [ran("1.0", 110, 150), ran("2.0", 310, 350)]
    seen = run_of(runs=runs, deeds=[befell("crashed", 200)], clusters={1: (1, 90.0), 2: (1, 300.0)})
    assert back_to_normal(seen) == {}


def test_where_no_job_begins_any_more_there_is_no_time() -> None:
    assert back_to_normal(waiting_until(150, befell("crashed", 160))) == {}


def test_jobs_that_ended_are_done_and_others_are_not() -> None:
    runs = [
        ran("1.0", 110, 150, how=EVICTED),
        ran("1.0", 160, 200),
        ran("2.0", 110, 350),
        ran("3.0", 120, None),
    ]
    assert done(run_of(runs=runs)) == 2


# ------------------------------------------------------------------------------------------------ budgets

PAID = replace(BOUNDS, cost_per_day=0.1, prices={2: 0.036})
"""Machines of two cores cost a hundred-thousandth a second; two of them for an hour are within the budget."""


def three(last: float = 250.0) -> list[MachineLife]:
    """One after the other, never more than two; the last one begins then."""
    times = (("i-1", FIRST, 100.0, 240.0), ("i-2", SECOND, 120.0, 400.0), ("i-3", THIRD, last, 400.0))
    return [lived(*one) for one in times]


def budget_findings(bounds: Bounds, deeds: Sequence[Deed] = ()) -> list[Finding]:
    return list(beyond_budget(run_of(three(), deeds=deeds), bounds))


def test_what_a_day_pays_for_may_be_bought() -> None:
    assert budget_findings(PAID) == []
    assert budget_findings(replace(PAID, cost_per_day=None)) == []
    committed = 0.036 * (140 + 130) / 3600 + 2 * 0.036
    assert budget_findings(replace(PAID, cost_per_day=committed)) == []


def test_what_a_day_does_not_pay_for_was_not_to_be_bought() -> None:
    [found] = budget_findings(replace(PAID, cost_per_day=0.07))
    assert (found.rule, found.at) == ("limit", 250.0)
    assert found.text == (
        "i-3 was bought with 0.0027 spent and 0.072 an hour running, where 0.0700 may be spent a day"
    )
    several = budget_findings(replace(PAID, cost_per_day=0.03))
    assert [one.at for one in several] == [100.0, 120.0, 250.0], "one that runs goes on, and none is bought"
    assert [one.rule for one in judged(run_of(three()), replace(PAID, cost_per_day=0.07))].count("limit") == 1


def test_what_was_known_and_lost_is_not_counted() -> None:
    """Once the ledger is gone nobody knows of machines that had ended before."""
    tight = replace(PAID, cost_per_day=0.0705)
    assert len(budget_findings(tight)) == 1
    lost = Deed("ledger-deleted", 245.0, 245.0)
    assert budget_findings(tight, [lost]) == []
    listed = budget_findings(replace(PAID, cost_per_day=0.06), [lost])
    assert [one.at for one in listed] == [120.0, 250.0], "what runs is listed"
    wrong = Deed("clock-forward", 230.0, 240.0)
    assert budget_findings(tight, [wrong]) == []
