"""A pool's own history as a workload, in every form in which HTCondor writes it."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from updraft.core.model import Resources
from updraft.errors import UsageError
from updraft.sim.workloads.history import read_history
from updraft.sim.workloads.sources import Reading, fitted
from updraft.sim.workloads.workload import DISK

BEGAN = 1_760_000_000


def ad(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A job that waited a minute and ran five."""
    arrived = BEGAN + 100 * number
    whole = {
        "ClusterId": number,
        "ProcId": 0,
        "GlobalJobId": f"head.site#{number}.0#{arrived}",
        "Owner": "ada",
        "JobUniverse": 5,
        "JobStatus": 4,
        "QDate": arrived,
        "JobCurrentStartDate": arrived + 60,
        "CompletionDate": arrived + 360,
        "RemoteWallClockTime": 300.0,
        "NumJobStarts": 1,
        "RequestCpus": 2,
        "RequestMemory": 3000,
        "RequestDisk": 5000,
        "JobPrio": 3,
        "Cmd": "/home/ada/run.sh",
    }
    whole.update(changes)
    return {name: value for name, value in whole.items() if value is not None}


def as_json(ads: list[dict[str, Any]]) -> str:
    """The form of `condor_history -json`."""
    return "[\n" + ",\n".join(json.dumps(one, indent=2) for one in ads) + "\n]\n"


def as_lines(ads: list[dict[str, Any]]) -> str:
    """The form of `condor_history -jsonl`."""
    return "".join(json.dumps(one) + "\n" for one in ads)


def as_one_line(ads: list[dict[str, Any]]) -> str:
    """JSON as another program may write it again."""
    return json.dumps(ads)


def _long(one: dict[str, Any]) -> str:
    texts = {
        name: value[6:-2]
        if str(value).startswith("/Expr(")
        else ("true" if value is True else json.dumps(value))
        for name, value in one.items()
    }
    return "".join(f"{name} = {text}\n" for name, text in texts.items())


def as_long(ads: list[dict[str, Any]]) -> str:
    """The form of `condor_history -long`."""
    return "\n".join(_long(one) for one in ads) + "\n"


def as_file(ads: list[dict[str, Any]]) -> str:
    """The form of a schedd's history file."""
    return "".join(_long(one) + f"*** Offset = 0 ClusterId = {one['ClusterId']} ProcId = 0\n" for one in ads)


FORMS = [as_json, as_lines, as_one_line, as_long, as_file]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(tmp_path: Path, form: Callable[[list[dict[str, Any]]], str]) -> None:
    path = tmp_path / "history"
    path.write_text(form([ad(3), ad(1), ad(2, Owner='gr"ace\\', RequestCpus="/Expr(1 + 1)/")]))
    found = read_history(path)
    assert [job.at for job in found.arrivals] == [0, 100, 200]
    first, second, _ = found.arrivals
    assert first.request == second.request == Resources(2, 3000, 5000)
    assert (first.seconds, first.priority, first.schedd) == (300, 3, "head.site")
    assert (first.owner, first.executable) == ("ada", "/home/ada/run.sh")
    assert second.owner == "gr_ace_"  # it ends up in an ad
    assert found.begins == BEGAN + 100


BROKEN = {
    as_json: '{\n  "Owner": "ada",\n  "QDate": 12,,\n},\n',
    as_lines: '{"Owner": "ada", "QDate": 12, "RequestCpus": }\n',
    as_long: 'Owner = "ada"\nQDate 12\nRequestCpus = 1\n\n',
    as_file: 'Owner = "ada"\nQDate 12\n?\n*** Offset = 0 ClusterId = 9 ProcId = 0\n',
}


@pytest.mark.parametrize("form", BROKEN)
@pytest.mark.parametrize("after", [0, 2])
def test_a_broken_ad_is_skipped_and_named(
    tmp_path: Path, form: Callable[[list[dict[str, Any]]], str], after: int
) -> None:
    parts = [form([ad(number)]) for number in range(4)]
    if form is as_json:
        parts = [part.removeprefix("[\n").removesuffix("\n]\n") + ",\n" for part in parts]
        parts = ["[\n" + parts[0], *parts[1:], '{"Owner": "ada", "QDate": 5}\n]\n']
    elif form is as_long:
        parts = [part + "\n" for part in parts]
    parts.insert(after + 1, BROKEN[form])
    path = tmp_path / "h"
    path.write_text("".join(parts))
    with pytest.raises(UsageError):
        read_history(path)
    found = read_history(path, Reading(skip_bad_lines=True))
    assert len(found.arrivals) == 4
    assert found.left_out["can't be read"] == 1
    assert any("was skipped" in note for note in found.notes)


@pytest.mark.parametrize("form", [as_json, as_lines, as_file])
def test_a_history_that_is_cut_off_is_read_up_to_there_where_bad_lines_are_skipped(
    tmp_path: Path, form: Callable[[list[dict[str, Any]]], str]
) -> None:
    path = tmp_path / "h"
    path.write_text(form([ad(1), ad(2), ad(3)])[:-80])
    found = read_history(path, Reading(skip_bad_lines=True))
    assert len(found.arrivals) == 2
    assert found.left_out["can't be read"] == 1


def test_a_job_of_less_than_no_time_is_skipped_and_named(tmp_path: Path) -> None:
    odd = ad(7, RemoteWallClockTime=-5.0, JobCurrentStartDate=None)
    path = tmp_path / "h"
    path.write_text(as_lines([ad(1), odd]))
    with pytest.raises(UsageError, match=r"job 7\.0: it has a run time of -5 s"):
        read_history(path)
    found = read_history(path, Reading(skip_bad_lines=True))
    assert len(found.arrivals) == 1
    assert "job 7.0 was skipped: it has a run time of -5 s" in found.notes


def test_gzip_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "history.gz"
    path.write_bytes(gzip.compress(as_lines([ad()]).encode()))
    assert len(read_history(path).arrivals) == 1


def test_an_expression_is_evaluated_as_in_the_queue(tmp_path: Path) -> None:
    memory = "/Expr(ifThenElse(MemoryUsage =!= undefined, MemoryUsage, (ImageSize + 1023) / 1024))/"
    path = tmp_path / "h"
    path.write_text(
        as_lines(
            [
                ad(1, RequestMemory=memory, MemoryUsage=777),
                ad(2, RequestMemory=memory, ImageSize=2048),
                ad(3, RequestMemory='/Expr(regexp("a*b", Owner) ? 1 : 2)/'),
            ]
        )
    )
    found = read_history(path)
    assert [job.request.memory for job in found.arrivals] == [777, 2]
    assert found.left_out == {"ask for what can't be evaluated": 1}


def test_custom_resources_are_read_and_jobs_that_no_machine_has_them_for_left_out(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text(as_lines([ad(1, RequestFPGAs=2), ad(2, RequestFPGAs="/Expr(1 + 1)/"), ad(3)]))
    found = read_history(path)
    assert [job.request.custom for job in found.arrivals] == [(("fpgas", 2),), (("fpgas", 2),), ()]
    machine = Resources(4, 8000, 90_000)
    assert fitted(found, [machine]).left_out == {"fit no machine": 2}
    with_some = replace(machine, custom=(("fpgas", 1),))
    (parts := fitted(found, [with_some]).arrivals)
    assert [job.request.custom for job in parts] == [(("fpgas", 1),)] * 4 + [()]


def test_what_no_machine_ran_is_left_out_and_counted(tmp_path: Path) -> None:
    never = {"NumJobStarts": 0, "RemoteWallClockTime": 0.0, "JobCurrentStartDate": None}
    path = tmp_path / "h"
    path.write_text(
        as_lines(
            [
                ad(1),
                ad(2, JobUniverse=7),
                ad(3, JobStatus=3, CompletionDate=0, EnteredCurrentStatus=BEGAN + 400, **never),
                ad(4, JobStatus=2),
                # removed while it ran, 40 s after its last start
                ad(5, JobStatus=3, CompletionDate=0, EnteredCurrentStatus=BEGAN + 600),
            ]
        )
    )
    found = read_history(path)
    assert [job.seconds for job in found.arrivals] == [300, 40]
    assert found.left_out == {
        "need no machine (their universe)": 1,
        "were removed before they ran": 1,
        "haven't ended": 1,
    }


def test_the_run_time_is_that_of_the_last_run(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text(
        as_lines(
            [
                ad(1, RemoteWallClockTime=900.0, NumJobStarts=3),
                ad(2, RemoteWallClockTime=900.0, NumJobStarts=3, JobCurrentStartDate=None),
                ad(
                    3, JobCurrentStartDate=BEGAN + 9999
                ),  # a clock that was wrong: what was counted is believed
            ]
        )
    )
    assert [job.seconds for job in read_history(path).arrivals] == [300, 300, 300]


def test_numbers_that_are_none_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text(as_lines([ad(1), ad(2, QDate=float("nan")), ad(3, QDate=1e300)]))
    found = read_history(path)
    assert len(found.arrivals) == 1
    assert found.left_out == {"say nothing of their times": 2}
    path.write_text("QDate = " + "9" * 5000 + "\n")
    with pytest.raises(UsageError, match="no job says when it arrived"):
        read_history(path)
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="isn't JSON"):
        read_history(path)


def test_what_a_job_says_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text(as_lines([ad(UpdraftRunTime=200, MaxWallTimeMins=10, AllowedJobDuration=900)]))
    (job,) = read_history(path).arrivals
    assert (job.estimate, job.longest) == (200, 600)


def test_a_parallel_job_has_the_cores_of_all_its_nodes_and_gaps_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "h"
    parallel = ad(1, JobUniverse=11, MaxHosts=4, RequestGPUs=1)
    path.write_text(as_lines([parallel, ad(2, RequestMemory=None, RequestDisk=None, RequestCpus=None)]))
    found = read_history(path, Reading(memory=500))
    assert found.arrivals[0].request == Resources(8, 12000, 20000, 4)
    assert found.arrivals[1].request == Resources(1, 500, DISK)
    assert any("1 jobs say nothing of memory" in note for note in found.notes)


@pytest.mark.parametrize("form", [as_json, as_lines, as_one_line, as_file])
def test_a_file_that_is_cut_off_is_refused(
    tmp_path: Path, form: Callable[[list[dict[str, Any]]], str]
) -> None:
    path = tmp_path / "cut"
    path.write_text(form([ad(1), ad(2), ad(3)])[:-40])
    with pytest.raises(UsageError, match="cut is cut off"):
        read_history(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"Owner": "ada"}\n{"Owner"; "x"}\n', r"cut off or isn't JSON after job 1 \(line 2\)"),
        ("Owner = 1\nthis is no ad\n", r'line 2: "this is no ad" is no line of a job\'s ad'),
        (
            '{"Owner": "ada", "JobStatus": 4}\n',
            r"no job says when it arrived and ran.*-attributes Owner,QDate",
        ),
        (
            as_lines([ad(RemoteWallClockTime=-5.0, JobCurrentStartDate=None)]),
            r"job 1\.0: it has a run time of -5 s",
        ),
    ],
)
def test_a_wrong_file_gets_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "h"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_history(path)
    assert "\n" not in str(caught.value)
