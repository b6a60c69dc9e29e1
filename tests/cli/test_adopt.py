"""`updraft adopt` and `updraft disown`: what they write down for the daemon, and what they say."""

import json
import time
from pathlib import Path

import pytest

from updraft import config
from updraft.cli import main
from updraft.core.lifecycle import LET_GO
from updraft.core.model import MachineRecord, Reason
from updraft.ledger import Ledger, RequestKind

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
"""
NOW = time.time()
MACHINE = MachineRecord("i-0001a9", "here", "k1", "default", "small", "g", NOW - 100)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A pool with one machine, whose daemon looked just now."""
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    made = Ledger(config.place(tmp_path / "updraft.toml").ledger)
    made.remember([MACHINE])
    made.note("controller", {"last_cycle": time.time(), "acting": True, "host": "elsewhere"}, time.time())
    return made


def test_adopt_takes_a_whole_id_and_says_what_it_is_to_be(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(["adopt", "i-9", "--class", "default", "--cloud", "here", "--json"]) == 0
    [request] = ledger.requests()
    assert (request.kind, request.machine) == (RequestKind.ADOPT, "i-9")
    assert request.detail == {"class": "default", "cloud": "here"}
    assert json.loads(capsys.readouterr().out)["requests"][0]["machine"] == "i-9"
    ledger.close()


def test_disown_is_of_a_machine_of_ours(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["disown", "i-9"]) == 2
    assert "there is no machine i-9" in capsys.readouterr().err
    assert main.call(["disown", "i-0001"]) == 0
    assert [(r.kind, r.machine) for r in ledger.requests()] == [(RequestKind.DISOWN, "i-0001a9")]
    ledger.close()


def test_waiting_for_disown_ends_when_the_machine_is_let_go(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's part is played between two looks of the one who waits."""
    looks = 0

    def daemon_works(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            ledger.done(ledger.requests()[0].id, "taken up", time.time())
        elif looks == 2:
            end = Reason(LET_GO, "root asked for disown")
            ledger.remember(
                [MachineRecord("i-0001a9", "here", "k1", "default", "small", "g", NOW, ended_at=NOW, end=end)]
            )

    monkeypatch.setattr("updraft.cli.wishes.time.sleep", daemon_works)
    assert main.call(["disown", "i-0001a9", "--wait"]) == 0
    assert "let go: it stays" in capsys.readouterr().out
    assert looks >= 2
    ledger.close()
