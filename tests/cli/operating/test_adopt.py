"""`updraft adopt` and `updraft disown`: what they write down for the daemon, and what they say."""

import io
import json
import time
from pathlib import Path

import pytest

from updraft import config
from updraft.cli import main
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.model import MachineRecord, Reason
from updraft.daemon import StateLock
from updraft.ledger import Ledger, RequestKind
from updraft.ledger.identity import Host, elsewhere, found, kept, this_host

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
    """A pool with one machine, whose daemon looked just now, and which nobody waits for long."""
    monkeypatch.setattr("updraft.app.operating.wishes.ANSWER_WITHIN", 0.1)
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

    monkeypatch.setattr("updraft.app.operating.wishes.time.sleep", daemon_works)
    assert main.call(["disown", "i-0001a9", "--wait"]) == 0
    assert "let go: it stays" in capsys.readouterr().out
    assert looks >= 2
    ledger.close()


def test_a_takeover_makes_this_host_the_head_and_only_where_no_daemon_runs(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    first = kept(state, Host("elsewhere", "elsewhere"))
    assert main.call(["adopt", "--take-over"]) == 2
    assert "--yes says that it is meant" in capsys.readouterr().err
    with StateLock(state):
        assert main.call(["adopt", "--take-over", "--yes"]) == 1
    assert found(state) == first
    assert main.call(["adopt", "--take-over", "--yes"]) == 0
    assert f"this host is the head of pool demo (identity {first.pool})" in capsys.readouterr().out
    taken = found(state)
    assert taken is not None
    assert elsewhere(taken, this_host()) is None
    assert main.call(["adopt", "--take-over", "--yes", "--identity", "0123456789ab"]) == 0
    assert "0123456789ab" in capsys.readouterr().out
    ledger.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--take-over", "i-1"], "goes with --identity and --yes alone"),
        (["--take-over", "--wait"], "goes with --identity and --yes alone"),
        (["--take-over", "--yes", "--identity", "$(reboot)"], "is no pool's identity"),
        (["i-1", "--identity", "0123456789ab"], "go with --take-over"),
        ([], "name the machines"),
    ],
)
def test_what_makes_no_takeover_is_refused(
    ledger: Ledger, tmp_path: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(["adopt", *words]) == 2
    assert why in capsys.readouterr().err
    assert found(tmp_path / "state") is None
    assert not ledger.requests()
    ledger.close()
