"""What `--json` prints of fixed states, byte for byte: documents.json keeps it, and programs rely on it.

After a change that is meant, write the file anew: `UPDRAFT_WRITE_DOCUMENTS=1 python -m pytest` of this file.
"""

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_verbs import SETTINGS, Capture, run, save_cycle
from tests.rigs.pools.stubpool import StubPool
from tests.rigs.usage import november
from updraft import config
from updraft.app.operating import wishes
from updraft.condor.support import lookup
from updraft.core.model import Annex, DrainMode, DrainRecord, MachineRecord, Reason, variant
from updraft.ledger import Ledger, annexes

FILE = Path(__file__).with_name("documents.json")
NOW = 1_795_000_000.0
COMMANDS = (
    "status",
    "machines --all",
    "events",
    "explain i-0001a9",
    "explain i-dead",
    "annex list",
    "annex status big",
    "annex stop big",
    "annex create more --count 2 --unchecked",
    "cloud list",
    "cloud show here",
    "cloud limit here --machines 3",
    "drain i-0001a9",
    "config check",
    "pool config --role submit --machines 9000",
    "pool config --role worker --machines 500",
    "offers",
    "images",
    "image list",
    "leftovers --all",
    "usage --month 2026-11",
    "usage --month 2026-11 --by machine",
    "simulate gen:bursts?jobs=60 --example",
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose daemon looked two seconds ago, on another host, at a time that stands still."""
    (tmp_path / "updraft.toml").write_text(f"{SETTINGS}\n[usage]\ncurrency = 'EUR'\n")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setattr(wishes, "ANSWER_WITHIN", 0.0)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    with Ledger(config.place(tmp_path / "updraft.toml").ledger) as ledger:
        november(ledger)
        ledger.remember(_machines())
        ledger.keep_console("here", "i-dead", "booting\x1b[2J\nno network", NOW - 300)
        ledger.event(
            NOW - 300, "ended", "i-dead", Reason("never-joined", "it has not joined"), {"after": 600}
        )
        annexes.create(
            ledger, Annex("big", "ann", "default", 3, 0, NOW + 3600, 900.0, since=NOW - 50), "ann", ""
        )
        save_cycle(ledger, NOW - 2, **_tallies())
        note = {"pid": 77, "host": "elsewhere", "started": NOW - 60, "last_cycle": NOW - 2, "acting": True}
        ledger.note("controller", note, NOW - 2)
    return tmp_path


def _machines() -> list[MachineRecord]:
    drain = DrainRecord(DrainMode.BUSY, NOW - 30, Reason("by-hand", "ann drains it"), None, NOW + 600)
    return [
        MachineRecord("i-0001a9", "here", "k1", "default", "small", "0123456789ab", NOW - 100, zone="a",
                      image="worker", price=0.05, joined_at=NOW - 40, last_claimed_at=NOW - 9, drain=drain),
        MachineRecord("i-0002a9", "here", "k1", "default", "small", "0123456789ab", NOW - 200,
                      variant=variant("annex=big")),
        MachineRecord("i-dead", "here", "k0", "default", "small", "0123456789ab", NOW - 900,
                      ended_at=NOW - 300, end=Reason("never-joined", "it has not joined the pool in 600 s")),
    ]  # fmt: skip


def _tallies() -> dict[str, object]:
    """Rows as the daemon makes them; the test of the daemon's own document holds these to it."""
    counted = {"machines": 2, "cores": 4, "memory": 4096, "cost_per_hour": 0.05, "unknown_prices": 1,
               "phases": {"joined": 1, "requested": 1}}  # fmt: skip
    none = {"machines": None, "cores": None}
    return {
        "annexes": [{"name": "big", "state": "growing", "reason": {"code": "annex", "text": "2 are missing"},
                     "machines": 1, "cores": 2, "joined": 0, "busy": 0, "coming": 1, "launching": 0,
                     "missing": 2, "forget": False}],
        "clouds": [{"name": "here", "state": "ok", "silent": None, "not_ending": None, "disabled": None,
                    "disabled_at": None, "leaving": False, "rest": None, "priority": 0, **counted,
                    "limits": {**none, "memory": None, "cost_per_hour": 2}, "last_error": None,
                    "quota_left": none, "foreign": {"machines": 0, "cores": 1}}],
        "classes": [{"name": "default", **counted, "min": 0, "max": None, "max_cores": None, "waiting": 38}],
        "users": [{"user": "alice", "cores": 3, "waiting": 38, "machines": 1, "max_cores": None,
                   "max_machines": 5, "part": 1.0, "share": 1.0}],
    }  # fmt: skip


def without_looks(lines: list[str]) -> list[str]:
    """The lines without how long a look has taken: times of less than a hundred seconds after `NOW`."""
    times = rf"\b{NOW // 100:.0f}\d\d\.\d+|\b\d+(?= s from now)"
    return [re.sub(times, f"{NOW}", line) for line in lines]


def is_as_kept(name: str, said: str) -> None:
    """Compare with what is kept under this name; or keep it."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("UPDRAFT_WRITE_DOCUMENTS"):
        kept[name] = said.splitlines()
        FILE.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    assert without_looks(said.splitlines()) == without_looks(kept[name])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_is_as_it_was(command: str, site: Path, capsys: Capture) -> None:
    _, said, _ = run(capsys, *command.split(), "--json")
    is_as_kept(command, said.replace(str(site), "SITE"))


@pytest.fixture
def pool(site: Path, monkeypatch: pytest.MonkeyPatch) -> StubPool:
    """A pool in place of HTCondor."""
    stub = StubPool()
    stub.group = replace(stub.group, oldest=NOW - 60)
    monkeypatch.setattr("updraft.app.wiring.HTCondorPool", lambda access: stub)
    return stub


def test_the_plan_is_as_it_was(pool: StubPool, capsys: Capture) -> None:
    is_as_kept("plan", run(capsys, "plan", "--json")[1])


@pytest.mark.parametrize("requirements", ["TARGET.Cpus >= 1", "TARGET.Cpus >= 99"])
def test_what_is_said_of_a_job_is_as_it_was(
    pool: StubPool, capsys: Capture, monkeypatch: pytest.MonkeyPatch, requirements: str
) -> None:
    pool.group = StubPool(requirements).group
    jobs = (
        lookup.JobSeen("12.0", "head", "alice", "idle", NOW - 60),
        lookup.JobSeen("12.1", "head", "alice", "held", NOW - 60, "by hand"),
    )
    found = lookup.JobsFound(jobs, (pool.group,), "", (("far", "no answer within 20 s"),))
    monkeypatch.setattr(lookup, "find_jobs", lambda *_: found)
    is_as_kept(f"explain 12: {requirements}", run(capsys, "explain", "12", "--json")[1])
