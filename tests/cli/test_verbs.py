"""The command line as a person and a program meet it: what it says, where, and with which exit code."""

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.rigs.forms import validate
from tests.rigs.pools.stubpool import StubPool
from updraft import config
from updraft.app.operating import wishes
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.fake import FakeCloud
from updraft.condor.support import lookup
from updraft.core.model import (
    MachineRecord,
    Plan,
    Reason,
    Resources,
    Snapshot,
)
from updraft.core.plan import plan
from updraft.core.settings import Policy
from updraft.daemon import report
from updraft.errors import AuthFailed, PoolError
from updraft.ledger import Ledger, RequestKind
from updraft.watching.known import SILENT_AFTER

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"
collector = "head.demo"

[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
"""
NOW = time.time()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose daemon looked two seconds ago."""
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.delenv("UPDRAFT_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(wishes, "ANSWER_WITHIN", 0.0)
    with ledger_of(tmp_path) as ledger:
        ledger.remember(
            MachineRecord(
                id=f"i-{number:04x}a9",
                cloud="here",
                launch_key="k1",
                worker_class="default",
                flavor="small",
                generation="0123456789ab",
                requested_at=NOW - 100 * number,
                zone="a",
                image="worker",
                price=0.05 if number == 1 else None,
            )
            for number in (1, 2)
        )
        ended = MachineRecord(
            "i-dead", "here", "k0", "default", "small", "0123456789ab", NOW - 900, ended_at=NOW - 300,
            end=Reason("never-joined", "it has not joined the pool in 600 s"),
        )  # fmt: skip
        ledger.remember([ended])
        ledger.keep_console("here", "i-dead", "booting\x1b[2J\nno network", NOW - 300)
        ledger.event(
            NOW - 300, "ended", "i-dead", Reason("never-joined", "it has not joined the pool in 600 s")
        )
        save_cycle(ledger, time.time() - 2)  # now, and not when this file was loaded
    return tmp_path


def ledger_of(site: Path) -> Ledger:
    return Ledger(config.place(site / "updraft.toml").ledger)


def save_cycle(ledger: Ledger, at: float, **changes: Any) -> None:
    outlook = {"code": "busy", "text": "jobs have it"}
    text = "the site may have 20 machines, and has 20"
    limit = {"code": "limit-machines", "text": text, "remedy": "larger limits"}
    document = {
        "at": at,
        "pool": "demo",
        "acting": True,
        "standing": None,
        "sources": {
            "collector": {"state": "known", "at": at},
            "cloud here: quota": {
                "state": "unknown", "since": at - 90, "error": {"code": "late", "text": "too late"},
            },
        },
        "jobs": {"idle": 38, "running": 12},
        "groups": [
            {"key": "g1", "owner": "alice", "idle": 38, "joined": 10, "coming": 8, "new": 4, "unmet": 16,
             "held_back": [limit], "refused": []},
        ],
        "machines": [
            {"machine": "i-0001a9", "cloud": "here", "phase": "joined", "reason": outlook, "deadline": None}
        ],
        "cooldowns": [
            {"scope": "offer", "key": "here/a/big/on-demand", "until": at + 60, "failures": 2, "probe": False,
             "reason": {"code": "no-capacity", "text": "no room for big"}}
        ],
        "warnings": [{"code": "stranger", "text": "nobody explains slot1@odd"}],
        "actions": [
            {"what": "launch", "text": "launching 4", "reason": {"code": "demand", "text": "4 jobs wait"}}
        ],
        **changes,
    }  # fmt: skip
    ledger.save_cycle(document, at)
    note = {
        "pid": os.getpid(),
        "host": socket.getfqdn(),
        "started": at - 60,
        "last_cycle": at,
        "acting": True,
    }
    ledger.note("controller", note, at)


Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def shown(capsys: Capture, *arguments: str) -> Any:
    """The document of a verb, checked against its promised form."""
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    document = json.loads(out)
    verb = " ".join(arguments[:2]) if arguments[0] == "config" else arguments[0]
    form = next(FORMS[name] for name in (verb, *(f"{verb} {kind}" for kind in ("MACHINE",))) if name in FORMS)
    validate(document, form)
    return document


# ------------------------------------------------------------------------------------------------ reading


def test_status_is_what_the_daemon_saw(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "status")
    assert document["jobs"] == {"idle": 38, "running": 12}
    assert document["machines"]["phases"] == {"joined": 1, "requested": 1}
    assert document["machines"]["cost_per_hour"] == 0.05
    assert document["machines"]["unknown_prices"] == 1
    assert document["daemon"]["alive"]


def test_status_for_people_says_who_waits_and_why(site: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "status")
    assert code == 0
    said = (
        "38 jobs waiting, 12 running",
        "the site may have 20 machines",
        "no room for big",
        "too late",
        "nobody explains slot1@odd",
        "2 machines (1 joined, 1 requested); 0.05 per hour, not counting 1 of unknown price",
        "looked",
    )
    for text in said:
        assert text in out


def test_machines_whose_prices_are_all_unknown_are_not_counted_twice(site: Path, capsys: Capture) -> None:
    """It was "1 machine (1 booting), and 1 machine of unknown price"."""
    at = time.time()
    with ledger_of(site) as ledger:
        priced = next(one for one in ledger.view(at).machines if one.price is not None)
        ledger.remember([replace(priced, ended_at=at)])
    out = " ".join(run(capsys, "status")[1].split())
    assert "; 1 machine (1 requested); price unknown" in out


def test_status_names_a_job_and_what_offers_have_against_it(site: Path, capsys: Capture) -> None:
    none = {"code": "no-offer", "text": "no offer can run these jobs"}
    clause = {"code": "requirements", "offer": "o", "text": 'Arch == "ALIEN": the slot has Arch "X86_64"'}
    group = {"key": "g1", "owner": "alice", "first_id": "4.0", "idle": 2, "joined": 0, "coming": 0, "new": 0,
             "unmet": 2, "held_back": [none], "refused": [clause, clause]}  # fmt: skip
    with ledger_of(site) as ledger:
        save_cycle(ledger, time.time(), groups=[group])
    _, out, _ = run(capsys, "status")
    assert " 4.0 " in out
    assert out.count("ALIEN") == 1


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for verb in ("status", "machines"):
        _, out, _ = run(capsys, verb)
        assert max(len(line) for line in out.splitlines()) <= columns


def test_status_shows_those_without_room_first_and_counts_the_rest(site: Path, capsys: Capture) -> None:
    group = {"idle": 5, "joined": 5, "coming": 0, "new": 0, "unmet": 0, "held_back": [], "refused": []}
    groups = [{**group, "key": f"g{n}", "owner": f"user{n}"} for n in range(60)]
    groups[59] |= {"joined": 4, "unmet": 1}
    with ledger_of(site) as ledger:
        save_cycle(ledger, time.time(), groups=groups)
    code, out, _ = run(capsys, "status")
    assert code == 0
    assert out.index("user59") < out.index("user0")
    assert "user38" in out
    assert "user39" not in out
    assert "and 20 more groups of 100 waiting jobs" in out


def test_status_of_a_silent_daemon_says_how_old_it_is(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        save_cycle(ledger, time.time() - SILENT_AFTER - 3600)
    _, out, _ = run(capsys, "status")
    assert "no daemon is at work" in out
    assert "1h01m ago" in out
    assert "updraft run" in out
    assert not shown(capsys, "status")["daemon"]["alive"]


def test_a_daemon_whose_process_is_gone_is_not_alive(site: Path, capsys: Capture) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with ledger_of(site) as ledger:
        note = {"pid": child.pid, "host": socket.getfqdn(), "last_cycle": time.time(), "acting": True}
        ledger.note("controller", note, time.time())
    assert not shown(capsys, "status")["daemon"]["alive"]


def test_a_waiting_controller_says_for_whom(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        save_cycle(
            ledger, time.time(), standing={"code": "second-controller", "text": "other acts: this one waits"}
        )
        note = {"pid": os.getpid(), "host": "", "last_cycle": time.time(), "acting": False}
        ledger.note("controller", note, time.time())
    assert "other acts: this one waits" in run(capsys, "status")[1]


def test_machines_have_phase_and_reason(site: Path, capsys: Capture) -> None:
    rows = shown(capsys, "machines")["machines"]
    assert [(row["id"], row["phase"], row["reason"]["code"]) for row in rows] == [
        ("i-0002a9", "requested", "not-looked-at"),
        ("i-0001a9", "joined", "busy"),
    ]
    gone = shown(capsys, "machines", "--all")["machines"]
    assert ("i-dead", "gone", "never-joined") in [(r["id"], r["phase"], r["reason"]["code"]) for r in gone]


def test_a_machine_at_work_was_busy_at_the_last_decision(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        ledger.keep_at_work(frozenset({("here", "i-0001a9")}), NOW + 77)
    machines = {row["id"]: row["busy_at"] for row in shown(capsys, "machines")["machines"]}
    assert (machines["i-0001a9"], machines["i-0002a9"]) == (NOW + 77, None)
    assert shown(capsys, "explain", "i-0001a9")["machine"]["busy_at"] == NOW + 77
    assert "busy by its last ad" in run(capsys, "explain", "i-0001a9")[1], "how old that is, nobody says"


def test_events_have_their_reason(site: Path, capsys: Capture) -> None:
    event = shown(capsys, "events")
    assert (event["subject"], event["code"]) == ("i-dead", "never-joined")
    assert "[never-joined]" in run(capsys, "events", "i-dead")[1]
    assert run(capsys, "events", "--kind", "launch")[1] == "no events\n"


def test_no_events_are_said_to_be_none(site: Path, capsys: Capture) -> None:
    assert run(capsys, "events", "i-nowhere") == (0, "no events\n", "")
    assert run(capsys, "events", "i-nowhere", "--json") == (0, "", "")


def test_explain_a_machine_shows_its_end_and_console(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "explain", "i-dead")
    assert document["console"].endswith("no network")
    _, out, _ = run(capsys, "explain", "i-d")
    assert "it has not joined the pool in 600 s" in out
    assert "| no network" in out
    assert "\x1b" not in out


def test_explain_a_machine_that_is_there_shows_what_its_console_says_now(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that boots, or has joined: of those nobody has kept a console yet."""
    monkeypatch.setattr(FakeCloud, "console", lambda _self, machine: f"{machine} boots\npassword: hunter22\n")
    document = shown(capsys, "explain", "i-0001a9")
    assert (document["console"].splitlines()[0], document["no_console"]) == ("i-0001a9 boots", "")
    out = run(capsys, "explain", "i-0001a9")[1]
    assert "  | i-0001a9 boots\n" in out
    assert "hunter22" not in out


@pytest.mark.parametrize(
    ("console", "why"),
    [
        (lambda *_: "", "no console: its cloud shows nothing of it yet"),
        (
            Mock(side_effect=AuthFailed("here: no credentials")),
            "no console: here: no credentials",
        ),
    ],
    ids=["none", "an error"],
)
def test_explain_a_machine_says_why_there_is_no_console(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, console: Any, why: str
) -> None:
    monkeypatch.setattr(FakeCloud, "console", console)
    code, out, _ = run(capsys, "explain", "i-0001a9")
    assert (code, why in out) == (0, True), out


def test_explain_a_machine_shows_what_is_left_out_that_concerns_it(site: Path, capsys: Capture) -> None:
    def left(code: str, text: str) -> dict[str, str]:
        return {"code": code, "text": text}

    its = [
        left("odd-slot", "slot slot1@w of machine i-dead: its Memory is -1"),
        left("odd-instance", "cloud here shows i-dead in a way of which nothing can be made (KeyError)"),
        left("odd-offer", "cloud here sells big in a way of which nothing can be made (KeyError)"),
        left("left-out-class", "left out: class other, default: planning for it fails"),
        left("left-out-cloud", "left out: cloud a, b, c, d, e and 3 more: planning for it fails"),
        left("left-out-offer", "left out: offer here/a/big/spot: planning for it fails"),
        left("left-out-report", "left out of the report: machine i-dead: TypeError"),
    ]
    others = [
        left("stranger", "nobody explains slot1@odd of machine i-dead"),
        left("odd-slot", "slot slot1@w of machine i-dead2: its Memory is -1"),
        left("odd-instance", "cloud here shows i-other in a way of which nothing can be made (KeyError)"),
        left("odd-offer", "cloud there sells big in a way of which nothing can be made (KeyError)"),
        left("left-out-class", "left out: class default-2: planning for it fails"),
        left("left-out-annex", "left out: annex mine of ann: planning for it fails"),
    ]
    with ledger_of(site) as ledger:
        cycle = ledger.last_cycle() or {}
        ledger.save_cycle({**cycle, "warnings": [*its, *others]}, NOW)
    assert shown(capsys, "explain", "i-dead")["left_out"] == its
    _, out, _ = run(capsys, "explain", "i-dead")
    for one in its:
        assert f"{one['text']} [{one['code']}]" in out
    assert not [one for one in others if one["text"] in out]


def test_reading_verbs_load_neither_pydantic_nor_htcondor(site: Path) -> None:
    """What makes them answer at once; `make bench` measures it."""
    program = (
        "import sys; from updraft.cli.main import call; code = call(['status']); "
        "heavy = {'pydantic', 'htcondor2', 'classad2', 'structlog', 'tomlkit', 'yaml', 'pebble'}; "
        "print(sorted(heavy & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"


# ------------------------------------------------------------------------------------------------- wishes


def test_a_wish_is_written_down_for_the_daemon(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "terminate", "i-0001", "i-0002a9", "--kill-jobs")
    assert [one["machine"] for one in document["requests"]] == ["i-0001a9", "i-0002a9"]
    with ledger_of(site) as ledger:
        assert [(r.kind, r.machine, r.kill_jobs) for r in ledger.requests()] == [
            ("terminate", "i-0001a9", True),
            ("terminate", "i-0002a9", True),
        ]
    assert [one["machine"] for one in shown(capsys, "status")["requests"]] == ["i-0001a9", "i-0002a9"]


def test_a_wish_without_a_daemon_is_a_problem_that_says_what_to_do(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        save_cycle(ledger, time.time() - 3600)
    code, _, err = run(capsys, "drain", "i-0001")
    assert code == 1
    assert "updraft run" in err
    with ledger_of(site) as ledger:
        assert len(ledger.requests()) == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("i-0", "may be any of i-0001a9, i-0002a9"),
        ("i-0009a9", "did you mean i-0001a9"),
        ("zzz", "`updraft machines` lists them"),
        ("i-dead", "gone already"),
    ],
)
def test_a_machine_that_is_not_meant_is_named(site: Path, capsys: Capture, name: str, sentence: str) -> None:
    code, _, err = run(capsys, "drain", name)
    assert code == 2
    assert sentence in err
    with ledger_of(site) as ledger:
        assert not ledger.requests()


class Playing:
    """A daemon in whose place a test acts: at each of its turns it does what `turns` says.

    A turn comes whenever the verb has looked at everything and would wait: there is no other clock.
    """

    def __init__(self, site: Path, *turns: Callable[[Ledger], None]) -> None:
        self.site = site
        self.turns = list(turns)
        self.looked = 0

    def sleep(self, _seconds: float) -> None:
        self.looked += 1
        if self.turns:
            with ledger_of(self.site) as ledger:
                self.turns.pop(0)(ledger)
        assert self.looked < 100, "it waits for ever"


@pytest.fixture
def playing(site: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Playing]:
    """`playing(*turns)`: from now on the verbs' waiting is these turns of the daemon."""

    def begin(*turns: Callable[[Ledger], None]) -> Playing:
        made = Playing(site, *turns)
        monkeypatch.setattr(wishes, "time", SimpleNamespace(time=time.time, sleep=made.sleep))
        return made

    return begin


def nothing_yet(_ledger: Ledger) -> None:
    """A turn in which the daemon does nothing."""


@pytest.mark.parametrize(("outcome", "code"), [("refused: jobs run there", 1), ("taken up", 0)])
def test_wait_follows_a_wish_to_its_end(
    playing: Callable[..., Playing], capsys: Capture, outcome: str, code: int
) -> None:
    daemon = playing(nothing_yet, lambda ledger: ledger.done(ledger.requests()[0].id, outcome, time.time()))
    found, out, _ = run(capsys, "undrain", "i-0001", "--wait")
    assert (found, out) == (code, f"undrain i-0001a9: {outcome}\n")
    assert not daemon.turns


@pytest.mark.parametrize(("outcome", "code"), [("refused: jobs run there", 1), ("taken up", 0)])
def test_a_wish_is_answered_without_wait(
    playing: Callable[..., Playing],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    outcome: str,
    code: int,
) -> None:
    monkeypatch.setattr(wishes, "ANSWER_WITHIN", 3 * wishes.POLL)
    playing(nothing_yet, lambda ledger: ledger.done(ledger.requests()[0].id, outcome, time.time()))
    assert run(capsys, "terminate", "i-0001")[:2] == (code, f"terminate i-0001a9: {outcome}\n")
    playing()  # a daemon that says nothing is not waited for
    assert run(capsys, "terminate", "i-0001")[:2] == (0, "terminate i-0001a9: asked for\n")


@pytest.mark.parametrize(
    ("kind", "event", "code", "words"),
    [
        (
            "busy-again",
            "busy-again",
            1,
            "refused: i-0001a9 is busy again and stays; drain it, or end its jobs",
        ),
        ("request", "request-undrain", 0, "taken back"),
    ],
)
def test_a_machine_that_was_to_go_and_stays_says_why(
    playing: Callable[..., Playing], capsys: Capture, kind: str, event: str, code: int, words: str
) -> None:
    def take_up(ledger: Ledger) -> None:
        wish = Reason("request-terminate", "root asked for terminate: taken up")
        ledger.event(time.time(), "request", "i-0001a9", wish)
        ledger.done(ledger.requests()[0].id, "taken up", time.time())

    def let_stay(ledger: Ledger) -> None:
        ledger.event(time.time(), kind, "i-0001a9", Reason(event, "i-0001a9 is busy again and stays"))

    # Between the two it is looked at several times: a wrong answer would be given then.
    daemon = playing(nothing_yet, take_up, nothing_yet, nothing_yet, let_stay)
    found, out, _ = run(capsys, "terminate", "i-0001", "--wait")
    assert found == code
    assert out.startswith(f"terminate i-0001a9: {words}")
    assert not daemon.turns


def test_destroy_asks_first(site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    code, _, err = run(capsys, "destroy")
    assert code == main.INTERRUPTED
    assert "2 machines" in err
    code, _, err = run(capsys, "destroy")  # nobody is there to answer
    assert code == 2
    assert "--yes" in err
    with ledger_of(site) as ledger:
        assert not ledger.requests()
    run(capsys, "destroy", "--yes")
    with ledger_of(site) as ledger:
        assert [(r.kind, r.machine) for r in ledger.requests()] == [("destroy", "")]


# ------------------------------------------------------------------------------------------------ looking


@pytest.fixture
def pool(site: Path, monkeypatch: pytest.MonkeyPatch) -> StubPool:
    """A pool in place of HTCondor, and no machines from before."""
    stub = StubPool()
    monkeypatch.setattr("updraft.app.wiring.HTCondorPool", lambda access: stub)
    for left in (site / "state").glob("ledger*"):
        left.unlink()
    return stub


def test_plan_says_what_and_why_and_writes_nothing(site: Path, pool: StubPool, capsys: Capture) -> None:
    document = shown(capsys, "plan")
    assert [(action["what"], action["reason"]["code"]) for action in document["actions"]] == [
        ("launch", "demand")
    ]
    assert not list((site / "state").glob("ledger*"))
    assert "launching" in run(capsys, "plan")[1]


def test_plan_of_a_pool_that_is_being_destroyed_launches_nothing(
    site: Path, pool: StubPool, capsys: Capture
) -> None:
    assert "launch" in {action["what"] for action in shown(capsys, "plan")["actions"]}
    with ledger_of(site) as ledger:
        ledger.request(NOW, "root", RequestKind.DESTROY, "")
    assert "launch" not in {action["what"] for action in shown(capsys, "plan")["actions"]}


def test_the_daemons_own_document_has_the_promised_form(pool: StubPool, capsys: Capture) -> None:
    assert set(FORMS["plan"]["properties"]) <= set(shown(capsys, "plan"))
    assert report.__name__ == "updraft.daemon.report"


@pytest.mark.parametrize(
    ("requirements", "sentence"),
    [("TARGET.Cpus >= 1", "can run it"), ("TARGET.Cpus >= 99", "TARGET.Cpus >= 99")],
)
def test_explain_a_job_has_every_offer_with_its_reason(
    site: Path,
    pool: StubPool,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    requirements: str,
    sentence: str,
) -> None:
    pool.group = StubPool(requirements).group
    job = lookup.JobSeen("12.0", "head", "alice", "idle", NOW - 60)
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: lookup.JobsFound((job,), (pool.group,)))
    code, out, _ = run(capsys, "explain", "12.0")
    assert code == 0
    assert "job 12.0 of alice at head: idle" in out
    assert sentence in out
    document = json.loads(run(capsys, "explain", "12.0", "--json")[1])
    validate(document, FORMS["explain JOB"])
    assert len(document["groups"][0]["offers"]) == 6


def test_of_a_job_that_is_too_large_the_nearest_miss_is_said_first(
    site: Path, pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began with what the smallest offer lacks. Those that lack the same are one row."""
    sizes = {"tiny": (1, 2), "small": (2, 4), "big": (16, 32), "huge": (64, 128)}
    flavors = ", ".join(f'{n} = {{ cpus = {c}, memory = "{m}GiB" }}' for n, (c, m) in sizes.items())
    more = f'driver = "fake"\nzones = ["a"]\nflavors = {{ {flavors} }}'
    (site / "updraft.toml").write_text(SETTINGS.replace('driver = "fake"', more))
    group = StubPool("TARGET.Cpus >= RequestCpus && TARGET.Memory >= RequestMemory").group
    ad = group.ad.replace("RequestCpus = 1", "RequestCpus = 80").replace(
        "RequestMemory = 512", "RequestMemory = 65536"
    )
    pool.group = replace(group, ad=ad, request=Resources(80, 65536, 1024))
    job = lookup.JobSeen("12.0", "head", "alice", "idle", NOW - 60)
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: lookup.JobsFound((job,), (pool.group,)))
    out = " ".join(run(capsys, "explain", "12.0")[1].split())
    assert "huge/on-demand ? 0 the job asks for 80 cpus (the slot has 64) 3 offers alike" in out
    assert out.count("the nearest: the job asks for 80 cpus (the slot has 16)") == 1
    assert "RequestCpus" not in out, "that is said already"
    assert "/huge/" in shown(capsys, "plan")["groups"][0]["refused"][0]["offer"], "so in status"


def test_explain_says_which_schedds_were_not_heard(
    site: Path, pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = lookup.JobSeen("12.0", "head", "alice", "idle", NOW - 60)
    silent = (("far", "schedd far gave no answer within 20 s"),)
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: lookup.JobsFound((job,), (pool.group,), "", silent))
    code, out, _ = run(capsys, "explain", "12.0")
    assert code == 0
    assert "job 12.0 of alice at head: idle" in out
    assert "schedd far was not heard" in " ".join(out.split())
    document = json.loads(run(capsys, "explain", "12.0", "--json")[1])
    validate(document, FORMS["explain JOB"])
    assert [one["schedd"] for one in document["silent"]] == ["far"]


def test_explain_a_job_names_what_the_plan_left_out(
    site: Path, pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = lookup.JobSeen("12.0", "head", "alice", "idle", NOW - 60)
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: lookup.JobsFound((job,), (pool.group,)))

    def broken(some: Snapshot, by: Policy, roll: object = None) -> Plan:
        if any(one.flavor == "large" for one in some.offers):
            raise ZeroDivisionError("planned")
        return plan(some, by)

    monkeypatch.setattr("updraft.core.plan.plan", broken)
    code, out, _ = run(capsys, "explain", "12.0")
    assert code == 0
    assert "left out: offer default@" in out
    document = json.loads(run(capsys, "explain", "12.0", "--json")[1])
    validate(document, FORMS["explain JOB"])
    assert [one["code"] for one in document["left_out"]] == ["left-out-offer"]


def test_explain_a_job_that_is_nowhere(
    site: Path, pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: lookup.JobsFound((), ()))
    code, _, err = run(capsys, "explain", "99")
    assert code == 1
    assert "condor_history 99" in err
    monkeypatch.setattr(
        lookup, "find_jobs", lambda *_: lookup.JobsFound((), (), "the schedd has yet to make it")
    )
    code, _, err = run(capsys, "explain", "99.7")
    assert (code, err) == (1, "updraft: job 99.7 is in no queue yet: the schedd has yet to make it\n")


def test_a_pool_that_names_no_schedds_is_the_reason_given(
    pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_deadline: float) -> tuple[str, ...]:
        raise PoolError("Failed communication with collector.")

    monkeypatch.setattr(pool, "schedds", refuse)
    code, _, err = run(capsys, "explain", "12.0")
    assert code == 1
    assert "schedds can't be found: Failed communication with collector; `updraft check`" in err
    assert "schedds" in shown(capsys, "plan")["sources"]
    assert "nothing is planned from what isn't known; `updraft check` says why" in run(capsys, "plan")[1]


# ---------------------------------------------------------------------------------------- wrong and broken


def test_config_check_names_the_fault_and_is_2(site: Path, capsys: Capture) -> None:
    assert shown(capsys, "config", "check")["classes"][0]["name"] == "default"
    (site / "updraft.toml").write_text(SETTINGS.replace('image = "worker"', "imagine = 1"))
    code, out, err = run(capsys, "config", "check")
    assert (code, out) == (2, "")
    assert 'classes.default.imagine: there is no such key; did you mean "image"?' in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["statu"], 'did you mean "status"?'),
        (["drain"], "MACHINE"),
        (["status", "--bogus"], "see `updraft status --help`"),
        (["--config", "/nowhere/updraft.toml", "status"], "there is no such file"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_2(
    site: Path, capsys: Capture, arguments: list[str], sentence: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("updraft: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_no_ledger_yet_says_how_to_begin(site: Path, capsys: Capture) -> None:
    for left in (site / "state").glob("ledger*"):
        left.unlink()
    code, _, err = run(capsys, "status")
    assert code == 1
    assert "updraft run" in err


def test_a_bug_asks_for_a_report_and_shows_its_traceback_on_request(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("updraft.cli.watching.status.status_document", broken)
    code, _, err = run(capsys, "status")
    assert code == 1
    assert "please report it" in err
    monkeypatch.setenv("UPDRAFT_DEBUG", "1")
    main.call(["status"])
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


def test_an_interrupt_is_130_and_quiet(site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("updraft.cli.watching.status.status_document", interrupted)
    code, out, err = run(capsys, "status")
    assert (code, out, err.strip()) == (130, "", "")


def test_a_reader_that_goes_away_is_no_news(site: Path) -> None:
    command = [sys.executable, "-m", "updraft.cli.main", "status", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(30)
