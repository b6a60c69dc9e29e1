"""What a cloud and a schedd wrote down is read as they meant it, also where they were cut off."""

import json
from datetime import UTC, datetime

import pytest

from tests.chaos.judged.evidence import (
    ABORTED,
    ENDED,
    EVICTED,
    HELD,
    RECONNECT_FAILED,
    START,
    JobLog,
    Run,
    read_cloud,
    read_jobs,
)

FIRST, SECOND = "10.7.0.11", "10.7.0.12"
FIELDS = {"flavor": "small", "zone": "here", "market": "on-demand", "cores": 2, "address": FIRST}


def entered(machine: str, state: str, at: float, **more: object) -> str:
    """The cloud's line of a machine that entered a state."""
    said = {"at": at, "machine": machine, "state": state, "why": "", "key": "k-1", **FIELDS, "role": "worker"}
    return json.dumps({**said, **more}) + "\n"


def called(name: str, at: float, **more: object) -> str:
    """The cloud's line of a call."""
    said = {"at": at, "call": name, "who": "controller", "code": "", "took": 0.0, "made": []}
    return json.dumps({**said, **more}) + "\n"


def at(clock: str) -> float:
    """The moment of this time of day."""
    return datetime.fromisoformat(f"2026-11-24 {clock}").replace(tzinfo=UTC).timestamp()


def event(number: str, clock: str, text: str, job: str = "007.000") -> str:
    """An event as HTCondor writes it."""
    return f"{number} ({job}.000) 2026-11-24 {clock} {text}\n...\n"


def start(clock: str, address: str = FIRST, job: str = "007.000") -> str:
    """A job that begins to run."""
    where = f"<{address}:9618?addrs={address}-9618&alias=i-1&noUDP&sock=startd_23_5c4f>"
    return event("001", clock, f"Job executing on host: {where}\n\tSlotName: slot1_1@i-1\n\tCpus = 1", job)


def submitted(clock: str, job: str = "007.000") -> str:
    """A job that comes into the queue."""
    return event("000", clock, "Job submitted from host: <10.7.0.2:9618?addrs=10.7.0.2-9618>", job)


ENDS = {
    EVICTED: "Job was evicted.\n\t(0) CPU times\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage",
    ENDED: "Job terminated.\n\t(1) Normal termination (return value 0)\n\t0  -  Run Bytes Sent By Job",
    ABORTED: "Job was aborted.\n\tvia condor_rm (by user alice)",
    HELD: "Job was held.\n\tvia condor_hold (by user alice)\n\tCode 1 Subcode 0",
    "007": "Shadow exception!\n\tError from slot1_1@i-1: Job has no lease\n\t0  -  Run Bytes Sent By Job",
    RECONNECT_FAILED: "Job reconnection failed\n    Job not found at execution machine\n"
    "    Can not reconnect to slot1_1@i-1, rescheduling job",
}
RELEASED = "The job was released.\n\tvia condor_release (by user alice)"


# --------------------------------------------------------------------------------------- the cloud's own log


def test_a_machine_has_all_its_states_with_their_times() -> None:
    log = read_cloud(
        [
            entered("i-1", "pending", 10.0),
            entered("i-1", "running", 12.0),
            entered("i-1", "stopping", 40.0, why="terminated by the API"),
            entered("i-1", "terminated", 41.5, why="terminated by the API"),
        ]
    )
    [machine] = log.machines.values()
    assert machine.times == {"pending": 10.0, "running": 12.0, "stopping": 40.0, "terminated": 41.5}
    assert (machine.id, machine.key, machine.address, machine.cores) == ("i-1", "k-1", FIRST, 2)
    assert machine.why == "terminated by the API"
    assert machine.state == "terminated"


def test_why_a_machine_ended_stays_known_where_a_later_line_does_not_say_it() -> None:
    log = read_cloud(
        [entered("i-1", "stopping", 3.0, why="its host died"), entered("i-1", "terminated", 4.0, why="")]
    )
    assert log.machines["i-1"].why == "its host died"


def test_a_machine_that_ends_in_the_moment_in_which_it_stops_has_ended() -> None:
    log = read_cloud(
        [entered("i-1", "pending", 1.0), entered("i-1", "stopping", 3.0), entered("i-1", "terminated", 3.0)]
    )
    assert log.machines["i-1"].state == "terminated"


def test_a_machine_lives_from_its_request_until_it_is_gone() -> None:
    log = read_cloud([entered("i-1", "pending", 10.0), entered("i-1", "terminated", 20.0)])
    machine = log.machines["i-1"]
    assert [machine.alive_at(moment) for moment in (9.9, 10.0, 19.9, 20.0)] == [False, True, True, False]


def test_a_machine_that_never_ended_lives_for_ever() -> None:
    assert read_cloud([entered("i-1", "pending", 10.0)]).machines["i-1"].alive_at(1e12)


def test_the_head_is_no_machine_of_the_pool() -> None:
    log = read_cloud([entered("i-0", "pending", 1.0, role="controller"), entered("i-1", "pending", 2.0)])
    assert list(log.machines) == ["i-1"]


def test_of_two_machines_with_one_address_the_one_that_lived_then_is_found() -> None:
    log = read_cloud(
        [
            entered("i-1", "pending", 10.0),
            entered("i-1", "terminated", 20.0),
            entered("i-2", "pending", 30.0),
            entered("i-3", "pending", 30.0, address=SECOND),
        ]
    )
    found = [log.at_address(FIRST, moment) for moment in (15.0, 25.0, 35.0)]
    assert [one and one.id for one in found] == ["i-1", None, "i-2"]


def test_a_call_counts_from_when_it_came_in() -> None:
    [call] = read_cloud([called("list", 12.5, took=2.5)]).calls
    assert (call.at, call.name, call.who, call.code) == (10.0, "list", "controller", "")


def test_a_launch_says_how_many_it_asked_for_and_what_it_made() -> None:
    [call] = read_cloud([called("run", 5.0, key="k-9", count=2, made=["i-1", "i-2"])]).calls
    assert (call.key, call.count, call.made) == ("k-9", 2, ("i-1", "i-2"))


def test_a_refused_call_is_known_with_its_refusal_and_its_machines() -> None:
    [call] = read_cloud([called("terminate", 5.0, code="throttled", ids=["i-1"], who="admin")]).calls
    assert (call.code, call.ids, call.who) == ("throttled", ("i-1",), "admin")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.97])
def test_a_last_line_that_is_half_written_is_left_out(share: float) -> None:
    whole = [called("list", 1.0), entered("i-1", "pending", 2.0)]
    for last in (entered("i-2", "pending", 3.0), called("run", 3.0)):
        log = read_cloud([*whole, last[: int(len(last) * share)]])
        assert list(log.machines) == ["i-1"]
        assert len(log.calls) == 1


def test_a_log_without_a_line_is_empty() -> None:
    assert read_cloud([]) == read_cloud(["", "\n"])
    assert not read_cloud([]).machines


# -------------------------------------------------------------------------------------------- event logs


def test_a_job_that_ended_ran_once_from_start_to_end() -> None:
    log = read_jobs(submitted("07:40:00") + start("07:40:05") + event("005", "07:41:05", ENDS[ENDED]))
    assert log.runs == (Run("7.0", FIRST, at("07:40:05"), at("07:41:05"), ENDED),)
    assert log.submitted == {"7.0": at("07:40:00")}
    assert log.ends == {"7.0": 1}
    assert log.left_at("7.0") == at("07:41:05")
    assert not log.held
    assert not log.aborted


def test_a_job_that_a_signal_ended_has_left_and_has_not_ended_well() -> None:
    end = event(
        "005", "07:41:05", "Job terminated.\n\t(0) Abnormal termination (signal 9)\n\t(0) No core file"
    )
    log = read_jobs(start("07:40:05") + end)
    assert log.ends == {}
    assert log.left_at("7.0") == at("07:41:05")


def test_a_job_that_is_removed_while_it_waits_has_left() -> None:
    log = read_jobs(submitted("07:40:00") + event(ABORTED, "07:40:30", ENDS[ABORTED]))
    assert log.left_at("7.0") == at("07:40:30")


@pytest.mark.parametrize("number", sorted(ENDS))
def test_each_of_these_events_ends_a_run(number: str) -> None:
    log = read_jobs(start("07:40:05") + event(number, "07:40:30", ENDS[number]))
    assert log.runs == (Run("7.0", FIRST, at("07:40:05"), at("07:40:30"), number),)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("006", "Image size of job updated: 40648\n\t4  -  MemoryUsage of job (MB)"),
        ("010", "Job was suspended.\n\tNumber of processes actually suspended: 1"),
        ("011", "Job was unsuspended."),
        (
            "022",
            "Job disconnected, attempting to reconnect\n    Socket closed unexpectedly",
        ),
        ("023", "Job reconnected to slot1_1@i-1\n    startd address: <10.7.0.11:9618>"),
        ("040", "Started transferring output files"),
    ],
)
def test_none_of_these_events_ends_a_run(number: str, text: str) -> None:
    log = read_jobs(start("07:40:05") + event(number, "07:40:30", text))
    assert log.runs == (Run("7.0", FIRST, at("07:40:05"), None, ""),)


def test_a_job_that_is_evicted_runs_again_and_ends_once() -> None:
    log = read_jobs(
        start("07:40:05")
        + event("004", "07:40:30", ENDS[EVICTED])
        + start("07:41:00", SECOND)
        + event("005", "07:42:00", ENDS[ENDED])
    )
    assert log.runs == (
        Run("7.0", FIRST, at("07:40:05"), at("07:40:30"), EVICTED),
        Run("7.0", SECOND, at("07:41:00"), at("07:42:00"), ENDED),
    )
    assert log.ends == {"7.0": 1}
    assert log.left_at("7.0") == at("07:42:00")


def test_a_job_that_was_evicted_has_not_left_the_queue() -> None:
    log = read_jobs(start("07:40:05") + event("004", "07:40:30", ENDS[EVICTED]))
    assert log.left_at("7.0") == float("inf")


def test_a_later_start_ends_a_run_of_which_no_end_was_written() -> None:
    log = read_jobs(start("07:40:05") + start("07:41:00", SECOND))
    assert log.runs == (
        Run("7.0", FIRST, at("07:40:05"), at("07:41:00"), START),
        Run("7.0", SECOND, at("07:41:00"), None, ""),
    )
    assert log.left_at("7.0") == float("inf"), "it is still there"


def test_the_eviction_that_follows_a_failed_reconnection_ends_nothing_more() -> None:
    log = read_jobs(
        start("07:40:05")
        + event("024", "07:40:30", ENDS[RECONNECT_FAILED])
        + event("004", "07:40:31", ENDS[EVICTED])
    )
    assert log.runs == (Run("7.0", FIRST, at("07:40:05"), at("07:40:30"), RECONNECT_FAILED),)


def test_a_job_on_hold_at_the_end_is_held() -> None:
    log = read_jobs(start("07:40:05") + event("012", "07:40:30", ENDS[HELD]))
    assert log.held == {"7.0"}
    assert log.left_at("7.0") == float("inf")


@pytest.mark.parametrize(
    ("number", "text"), [("013", RELEASED), ("009", ENDS[ABORTED]), ("005", ENDS[ENDED])]
)
def test_a_job_that_was_released_or_is_gone_is_not_held(number: str, text: str) -> None:
    log = read_jobs(event("012", "07:40:30", ENDS[HELD]) + event(number, "07:40:40", text))
    assert not log.held


def test_a_job_that_was_held_again_after_its_release_is_held() -> None:
    held = ENDS[HELD]
    log = read_jobs(
        event("012", "07:40:30", held) + event("013", "07:40:40", RELEASED) + event("012", "07:40:50", held)
    )
    assert log.held == {"7.0"}


def test_a_removed_job_is_aborted_and_did_not_end() -> None:
    log = read_jobs(start("07:40:05") + event("009", "07:40:30", ENDS[ABORTED]))
    assert log.aborted == {"7.0"}
    assert log.ends == {}
    assert log.left_at("7.0") == at("07:40:30")


def test_a_job_that_ended_twice_did_so_twice() -> None:
    twice = start("07:40:05") + event("005", "07:40:30", ENDS[ENDED])
    assert read_jobs(twice + twice.replace("07:40", "07:50")).ends == {"7.0": 2}


def test_an_end_that_is_written_again_without_another_start_is_one_end() -> None:
    once = start("07:40:01") + event("005", "07:40:31", ENDS[ENDED])
    log = read_jobs(once + event("005", "07:40:46", ENDS[ENDED]))
    assert log.ends == {"7.0": 1}
    assert len(log.runs) == 1


def test_jobs_of_one_log_are_kept_apart() -> None:
    log = read_jobs(
        start("07:40:05", FIRST, "007.000")
        + start("07:40:06", SECOND, "007.001")
        + start("07:40:07", SECOND, "1234.010")
        + event("004", "07:40:30", ENDS[EVICTED], "007.001")
        + event("005", "07:40:40", ENDS[ENDED], "1234.010")
    )
    assert {run.job: run.how for run in log.runs} == {"7.0": "", "7.1": EVICTED, "1234.10": ENDED}


def test_the_event_of_a_whole_cluster_is_no_job() -> None:
    text = event("035", "07:40:00", "Cluster submitted from host: <10.7.0.2:9618?alias=head>", "007.-01")
    log = read_jobs(text + submitted("07:40:01"))
    assert list(log.submitted) == ["7.0"]


def test_parts_of_a_second_count_where_they_are_written() -> None:
    [run] = read_jobs(start("07:40:05.250")).runs
    assert run.start == at("07:40:05.250")


def test_an_event_that_is_half_written_is_left_out() -> None:
    whole = start("07:40:05")
    for letters in (2, 10, 30):
        log = read_jobs(whole + event("005", "07:41:05", ENDS[ENDED])[:letters])
        assert log.runs == read_jobs(whole).runs
        assert log.ends == {}


def test_an_empty_event_log_has_nothing() -> None:
    log = read_jobs("")
    assert log == JobLog((), {}, frozenset(), frozenset(), {}, {})
