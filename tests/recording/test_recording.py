"""Decisions written down and made again."""

import errno
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.rigs.annexworlds import annex, with_annexes
from tests.rigs.snapshots import NOW, group, policies, policy, prepared, snapshot, snapshots, worker
from updraft.cli import main
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import Plan, Prepared, Reason, Snapshot, Verdict
from updraft.core.plan import plan
from updraft.core.settings import Policy, Spare
from updraft.core.slots.kinds import problem_ad
from updraft.errors import UsageError
from updraft.recording import Recorder, decisions, replay
from updraft.recording.codec import Decoder, Encoder, UnreadableError, canonical


def recorded(folder: Path, *pairs: tuple[Snapshot, Policy], **how: Any) -> list[Path]:
    recorder = Recorder(folder, **how)
    for seen, rules in pairs:
        found = prepared(seen, rules)
        assert recorder.decided(found, rules, plan) == plan(found.snapshot, rules)
    recorder.close()
    return sorted(folder.iterdir())


def without_ads(seen: Snapshot) -> Snapshot:
    """What a recording keeps of a snapshot, but for the verdicts."""
    return replace(
        seen,
        schedds=dict.fromkeys(seen.schedds),
        kinds={key: replace(kind, ad="") for key, kind in seen.kinds.items()},
        verdicts={},
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(one=snapshots(), other=snapshots(), rules=policies())
def test_any_decision_can_be_made_again(
    tmp_path_factory: pytest.TempPathFactory, one: Snapshot, other: Snapshot, rules: Policy
) -> None:
    folder = tmp_path_factory.mktemp("recording")
    later = replace(other, now=other.now + 2)
    (path,) = recorded(folder, (one, rules), (one, rules), (later, rules))
    again = list(replay(path, plan))
    assert [found.differs for found in again] == [(), (), ()]
    assert [without_ads(found.prepared()) for found in decisions(path)] == [
        without_ads(prepared(seen, rules).snapshot) for seen in (one, one, later)
    ]
    assert [found.at for found in again] == [one.now, one.now, later.now]


def test_a_decision_about_annexes_can_be_made_again(tmp_path: Path) -> None:
    some = [annex(machines=2, tags={"a": "b"}), annex("lab", stopped=Reason("annex-stopped", "x"))]
    seen = with_annexes(snapshot(groups=(group("g", 5),)), some)
    made = plan(seen, policy())
    assert [one.name for one in made.annexes] == ["big", "lab"]
    (path,) = recorded(tmp_path, (seen, policy()))
    (found,) = replay(path, plan)
    assert found.differs == ()
    (found,) = replay(path, lambda shown, rules: replace(plan(shown, rules), annexes=()))
    assert found.differs == ("annexes",)


def test_another_plan_is_seen_and_named(tmp_path: Path) -> None:
    seen = snapshot(groups=(group("g", 5),))
    (path,) = recorded(tmp_path, (seen, policy()))

    def other(snapshot: Snapshot, policy: Policy) -> Plan:
        return replace(plan(snapshot, policy), actions=(), warnings=(Reason("x", "y"),))

    (found,) = replay(path, other)
    assert found.differs == ("actions", "warnings")


def test_what_stays_the_same_is_written_once(tmp_path: Path) -> None:
    seen = snapshot(groups=tuple(group(f"g{n}", 5) for n in range(50)))
    (path,) = recorded(tmp_path, *[(replace(seen, now=seen.now + n), policy()) for n in range(3)])
    sizes = [len(json.dumps(row["observation"])) for row in lines(path)[1:]]
    assert sizes[1] < sizes[0] / 3
    assert [found.learned.at - NOW for found in decisions(path)] == [0, 1, 2]


def test_no_ad_is_in_a_recording(tmp_path: Path) -> None:
    ad = '[ Environment = "TOKEN=hunter2" ]'
    found = prepared(snapshot(groups=(replace(group("g", 5), ad=ad),)), policy())
    learned = replace(found.learned, templates=dict.fromkeys(found.learned.kinds, ad))
    seen = replace(found.observation, templates=learned.templates)
    recorder = Recorder(tmp_path)
    recorder.decided(Prepared(seen, learned, found.snapshot), policy(), plan)
    recorder.close()
    (path,) = tmp_path.iterdir()
    assert b"hunter2" not in gzip.decompress(path.read_bytes())
    assert path.stat().st_mode & 0o077 == 0


def test_why_jobs_are_left_out_is_said_again(tmp_path: Path) -> None:
    odd = group("g", 5, evaluable=False, ad=problem_ad("it has no Requirements"))
    seen = snapshot(groups=(odd,))
    (path,) = recorded(tmp_path, (seen, policy()))
    (found,) = replay(path, plan)
    assert found.differs == ()
    assert any("it has no Requirements" in one.text for one in found.made.warnings)


def test_files_are_rotated_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    seen = snapshot(groups=(group("g", 5),))
    pairs = [(replace(seen, now=seen.now + n), policy()) for n in range(5)]
    files = recorded(tmp_path, *pairs, file_size=1, files_kept=3)
    assert len(files) == 3
    assert [[f.learned.at - NOW for f in decisions(path)] for path in files] == [[2], [3], [4]]


def test_a_table_of_verdicts_and_a_schedule_come_back() -> None:
    copies = np.array([[3, 0, -1], [-2, 1, 4]], dtype=np.int32)
    names = {"a": 0, "b": 1}
    table = VerdictTable(["a", "b"], ["x", "y", "z"], copies, _told, names, {"x": 0, "y": 1, "z": 2})
    found = Decoder().decode(json.loads(canonical(Encoder().encode(table))))
    assert (found.copies == copies).all()
    assert set(found) == set(table)
    with pytest.raises(UnreadableError, match="lacks the verdict of a on x"):
        found["a", "x"]
    rules = policy(worker(spare=(Spare(2, group("g", 1).request),)))
    assert Decoder().decode(json.loads(canonical(Encoder().encode(rules)))) == rules


def _told(_group: int, _kind: int) -> Verdict:
    raise AssertionError("nobody asked")


def test_what_is_no_value_of_the_core_is_refused() -> None:
    for text in ('{"=": "Popen"}', '{"exec": "x"}', '{"#": 7}', '{"=": "Reason", "nonsense": 1}', '{"%": 3}'):
        with pytest.raises(UnreadableError):
            Decoder().decode(json.loads(text))


def test_a_recording_cut_off_in_the_middle_ends_before_the_cut(tmp_path: Path) -> None:
    seen = snapshot(groups=(group("g", 5),))
    pairs = [(replace(seen, now=seen.now + n), policy()) for n in range(5)]
    (path,) = recorded(tmp_path, *pairs)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) - 40])
    assert len(list(decisions(path))) < 5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello\n", "no recording"),
        (gzip.compress(b"hello\n", mtime=0), "damaged"),
        (gzip.compress(b'{"a": 1}\n', mtime=0), "no recording"),
        (gzip.compress(b'{"recording": 99, "updraft": "9.9"}\n', mtime=0), "recorded by updraft 9.9"),
        (None, "can't be read"),
    ],
)
def test_another_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "x.jsonl.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        list(decisions(path))
    assert main.call(["replay", str(path)]) == 2


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (path,) = recorded(tmp_path, (snapshot(), policy()))
    header, row = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(gzip.compress(header + b"\n" + row.replace(b'"Observation"', b'"Plan"', 1) + b"\n"))
    with pytest.raises(UsageError, match="decision 1: the file is damaged"):
        list(decisions(path))


@pytest.mark.parametrize(
    ("place", "junk", "says"),
    [
        (["plan"], None, "the file is damaged: there is no plan in it"),
        (["plan"], [1], "the file is damaged: there is no plan in it"),
        (["policy", "limits"], {"%": []}, "can't be made again, the file is damaged"),
        (["policy", "classes"], {"=": "Plan"}, "can't be made again, the file is damaged"),
        (["observation", "now"], float("nan"), "the file is damaged: NaN is no number"),
        (["observation", "schedds"], {"%": [["schedd", 7]]}, "damaged"),
        (["observation", "annexes"], {"#": 10**9}, "the file is damaged"),
        (["learned"], {"=": "Plan"}, "no policy or no observation"),
        (["learned", "kinds"], 7, "damaged"),
        (["verdicts"], [["g"]], "the file is damaged"),
    ],
)
def test_a_record_in_which_something_is_wrong_is_named(
    tmp_path: Path, place: list[str], junk: Any, says: str
) -> None:
    (path,) = recorded(tmp_path, (snapshot(groups=(group("g", 5),)), policy()))
    header, row = lines(path)
    inner = row
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = junk
    path.write_bytes(gzip.compress(f"{json.dumps(header)}\n{json.dumps(row)}\n".encode()))
    with pytest.raises(UsageError, match=f"^[^\n]*decision 1: [^\n]*{says}[^\n]*$"):
        list(replay(path, plan))
    assert main.call(["replay", str(path)]) == 2


@pytest.mark.parametrize("line", ["[" * 100_000, '{"plan": ' * 50_000, "[]", "null", "1e999"])
def test_a_line_that_is_no_decision_is_damage(tmp_path: Path, line: str) -> None:
    (path,) = recorded(tmp_path, (snapshot(), policy()))
    header = gzip.decompress(path.read_bytes()).splitlines()[0].decode()
    path.write_bytes(gzip.compress(f"{header}\n{line}\n".encode()))
    with pytest.raises(UsageError, match="decision 1: the file is damaged"):
        list(replay(path, plan))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't be made"):
        Recorder(tmp_path / "file" / "folder")


def test_a_disk_that_fills_up_costs_the_recording_and_not_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    recorder = Recorder(tmp_path, warn=warned.append)

    def full(*_what: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gzip.GzipFile, "write", full)
    seen = prepared(snapshot(groups=(group("g", 5),)), policy())
    assert recorder.decided(seen, policy(), plan) == plan(seen.snapshot, policy())
    assert recorder.decided(seen, policy(), plan).actions
    assert len(warned) == 1
    assert "no longer recorded" in warned[0]


def test_replay_shows_what_was_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = recorded(tmp_path, (snapshot(groups=(group("g", 5),)), policy()))
    assert main.call(["replay", str(path)]) == 0
    assert "1 decision, 1 of them the same again" in capsys.readouterr().out
    assert main.call(["replay", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decisions"][0]["same"] is True
    assert told["decisions"][0]["actions"][0]["what"] == "launch"
