"""From what was sent and seen to what is reported."""

from dataclasses import replace
from typing import Any

import pytest

from updraft.load import figures
from updraft.load.ads import KINDS, SENT
from updraft.load.figures import Cycle, Daemon, Figures, Real, Updates
from updraft.load.real import costs

FINE = Figures(
    machines=1000,
    children=2,
    joined=1000,
    lost_machines=0,
    seconds_to_join=40.0,
    updates=Updates(6000, 6000, 0, 0, 0, 0.01, 0.2, 0.05, 0.3, ()),
    shown=1000,
    status=0.5,
    status_longest=0.9,
    cycle=Cycle(6.0, 5.5, 1000, 10_000, 100, ""),
    groups=100,
    daemons=(Daemon("collector 1", 1, 40.0, 60.0, 20, 10240, 9.0),),
    duty=0.1,
    sessions=1000,
    extrapolated={},
    gives_out=(),
)
REAL = Real(100, 100, 100, 30.0, 20.0, 5.0, 4.0, 3.0, 2.0, 0.5)


def result(**machines: list[float]) -> dict[str, Any]:
    return {
        "machines": machines,
        "calls": [0.1, 0.3],
        "join_calls": [0.5],
        "failed": 0,
        "behind": 0.2,
        "errors": [],
    }


def heard(machine: str, total: int, late: float = 0.0) -> list[dict[str, Any]]:
    return [
        {
            "Machine": machine,
            "MyType": kind,
            "UpdatesTotal": total,
            "LastHeardFrom": 1000 + late,
            SENT: 1000.4,
        }
        for kind in KINDS
    ]


def test_all_that_was_sent_and_taken_is_neither_lost_nor_late() -> None:
    found = figures.updates(
        [result(a=[2, 1000.0, 0.0]), result(b=[1, 1000.0, 0.0])], heard("a", 2) + heard("b", 1)
    )
    assert (found.sent, found.taken, found.lost, found.delayed) == (9, 9, 0, 0)
    assert (found.call, found.slowest, found.join_call) == (pytest.approx(0.2), 0.5, 0.5)


def test_what_no_collector_has_counted_is_lost() -> None:
    found = figures.updates([result(a=[3, 1000.0, 0.0], b=[1, 1000.0, 0.0])], heard("a", 2))
    assert (found.sent, found.taken, found.lost) == (12, 6, 6)


def test_of_a_machine_that_vanished_and_expired_nothing_is_known() -> None:
    found = figures.updates([result(a=[3, 1000.0, 1.0])], [])
    assert (found.sent, found.taken, found.lost) == (0, 0, 0)
    kept = figures.updates([result(a=[3, 1000.0, 1.0])], heard("a", 2))
    assert (kept.sent, kept.lost) == (9, 3)


def test_a_retried_join_makes_no_update_appear_twice() -> None:
    found = figures.updates([result(a=[1, 1000.0, 0.0])], heard("a", 2))
    assert (found.sent, found.taken, found.lost) == (3, 3, 0)


def test_what_was_heard_late_is_delayed() -> None:
    assert figures.updates([result(a=[1, 1000.0, 0.0])], heard("a", 1, late=7.0)).delayed == len(KINDS)


def seen(name: str, pss: int, descriptors: int, limit: int = 1000) -> dict[str, Any]:
    mib = 1024 * 1024
    return {
        "name": name,
        "pid": 1,
        "rss": 2 * pss * mib,
        "pss": pss * mib,
        "peak": 3 * pss * mib,
        "descriptors": descriptors,
        "descriptor_limit": limit,
        "cpu": 1.5,
    }


def test_startds_are_together_and_collectors_apart() -> None:
    found = figures.daemons(
        [
            seen("collector 1", 8, 20),
            seen("collector 2", 6, 30),
            seen("startd 1", 4, 11),
            seen("startd 2", 6, 15, 99),
        ]
    )
    assert [one.name for one in found] == ["collector 1", "collector 2", "startd"]
    assert found[2] == Daemon("startd", 2, 10.0, 18.0, 15, 99, 3.0)


def cycle(**changed: Any) -> dict[str, Any]:
    return {
        "Time": 2000,
        "Duration": 5,
        "CpuTime": 4.5,
        "TotalSlots": 1000,
        "NumIdleJobs": 10_000,
        "NumJobsConsidered": 100,
        "SubmittersOutOfTime": "",
        **changed,
    }


def test_the_longest_whole_cycle_counts_and_no_other() -> None:
    early, small, longer = cycle(Time=1000, Duration=99), cycle(TotalSlots=10, Duration=88), cycle(Duration=7)
    assert figures.cycle([early, small, cycle(), longer], 1500.0, 1000) == Cycle(
        7.0, 4.5, 1000, 10_000, 100, ""
    )
    assert figures.cycle([early, small], 1500.0, 1000) is None


def test_a_condor_status_that_failed_makes_its_time_unknown() -> None:
    assert figures.middle([0.5, 0.7, 2.0]) == (0.7, 2.0)
    assert figures.middle([0.5, float("nan")]) == (None, None)
    assert figures.middle([]) == (None, None)


def test_what_is_within_its_bounds_carries_the_load() -> None:
    assert figures.gives_out(FINE) == ()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"updates": replace(FINE.updates, lost=1)}, "1 lost"),
        ({"updates": replace(FINE.updates, failed=2)}, "2 calls failed"),
        ({"updates": replace(FINE.updates, delayed=3)}, "late"),
        ({"updates": replace(FINE.updates, behind=40.0)}, "this machine"),
        ({"shown": 999}, "999 of 1000"),
        ({"status_longest": 3.2}, "condor_status: 3.2 s"),
        ({"status_longest": None}, "condor_status: unknown"),
        ({"cycle": None}, "no whole cycle"),
        ({"cycle": replace(FINE.cycle, seconds=61.0)}, "61.0 s"),
        ({"cycle": replace(FINE.cycle, out_of_time="alice")}, "negotiator"),
        ({"daemons": (replace(FINE.daemons[0], descriptors=9000),)}, "9000 of 10240"),
        ({"cycle": replace(FINE.cycle, considered=2)}, "2 of 100 job groups"),
        ({"duty": 0.97}, "97%"),
    ],
)
def test_each_bound_is_told_when_it_is_passed(changed: dict[str, Any], word: str) -> None:
    told = figures.gives_out(replace(FINE, **changed))
    assert len(told) == 1
    assert word in told[0]


def test_real_startds_are_the_measure_of_what_is_extrapolated() -> None:
    assert figures.extrapolated(REAL, 5000, 4) == {
        figures.COLLECTOR_DESCRIPTORS: 2500.0,
        "descriptors of the schedd": 2500.0,
        "shadows, MiB": 15_000.0,
    }
    assert figures.extrapolated(None, 5000, 4) == {}
    assert figures.extrapolated(replace(REAL, running=0), 5000, 4) == {}
    assert figures.COLLECTOR_DESCRIPTORS not in figures.extrapolated(
        replace(REAL, collector_descriptors=None), 5, 1
    )


def test_the_costs_of_a_real_startd() -> None:
    before = [
        seen("collector", 9, 50),
        seen("collector 1", 5, 14),
        seen("collector 2", 5, 14),
        seen("schedd", 9, 20),
    ]
    idle = [
        seen("collector", 9, 55),
        seen("collector 1", 5, 19),
        seen("collector 2", 5, 19),
        seen("schedd", 9, 20),
    ]
    work = [*(seen(f"startd {i}", 4, 11) for i in range(10)), *(seen("starter", 3, 16) for _ in range(8))]
    after = [*idle[:3], seen("schedd", 9, 28), *work, *(seen("shadow", 2, 4) for _ in range(8))]
    real = costs(before, idle, after, (12, 10, 8), (3.0, 4.0))
    assert (real.collector_descriptors, real.schedd_descriptors) == (1.0, 1.0)
    assert (real.startd, real.starter, real.shadow, real.memory) == (4.0, 3.0, 2.0, 7.0)


def test_a_head_without_children_has_its_descriptors_at_the_one_collector() -> None:
    real = costs([seen("collector", 9, 10)], [seen("collector", 9, 30)], [], (10, 10, 0), (1.0, 1.0))
    assert real.collector_descriptors == 2.0
    assert real.schedd_descriptors is None
    assert real.startd is None
