"""`updraft tokens` on a ledger, a file and a folder of keys; the pool is told, and is not there."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from tests.rigs.snapshots import record
from updraft import config
from updraft.act.launching import note_token
from updraft.app import tokens as token_work
from updraft.app import wiring
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.condor.tokens import revoked
from updraft.condor.tokens.revoking import Revoker
from updraft.condor.tokens.workers import key_names
from updraft.ledger import Ledger
from updraft.ledger.retention import Retention
from updraft.ledger.tokens import Issued, all_noted, note

Capture = pytest.CaptureFixture[str]
KEYS = "updraft-workers"
TOML = """\
[pool]
name = "test"
state_dir = "."
trust_domain = "pool.test"

[clouds.c1]
driver = "fake"

[classes.default]
image = "img"
"""


def of(launch: str) -> str:
    return f"worker-{launch}@pool.test"


class Told:
    """What the daemons of the head were told."""

    def __init__(self) -> None:
        self.reconfigured = 0
        self.forgotten: list[tuple[Sequence[str], bool]] = []
        self.takes = False


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()

    def reconfigure(_self: Revoker) -> None:
        told.reconfigured += 1

    def forget(_self: Revoker, identities: Sequence[str], *, everything: bool) -> None:
        told.forgotten.append((sorted(identities), everything))

    monkeypatch.setattr(Revoker, "reconfigure", reconfigure)
    monkeypatch.setattr(Revoker, "forget", forget)
    monkeypatch.setattr(Revoker, "taken", lambda _self, launches: launches[0] if told.takes else "")
    return told


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Told) -> Path:
    """Launches one (two machines live), two (its machine has ended) and old (of before tokens were noted)."""
    (tmp_path / "updraft.toml").write_text(TOML)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / KEYS).write_text("secret")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(token_work, "FILE", tmp_path / "revoked.conf")
    monkeypatch.setattr(wiring, "asker", lambda _settings: lambda _name: str(tmp_path / "keys"))
    now = time.time()
    with Ledger(config.load(tmp_path / "updraft.toml").pool.ledger) as ledger:
        for launch, ends in (("one", now + 1000), ("two", now - 10), ("three", now + 2000)):
            note(ledger, Issued(launch, "default", of(launch), f"id-{launch}", KEYS, now - 100, ends))
        ledger.remember(
            [
                record("i-1", launch_key="one", requested_at=now - 100, joined_at=now - 80),
                record("i-2", launch_key="one", requested_at=now - 100),
                record("i-3", launch_key="two", requested_at=now - 100, ended_at=now - 50),
                record("i-4", launch_key="old", requested_at=now - 300),
            ]
        )
    return tmp_path


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(["tokens", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def shown(capsys: Capture, *arguments: str) -> Any:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    document = json.loads(out)
    validate(document, FORMS[f"tokens {arguments[0]}"])
    return document


def test_list_has_tokens_that_may_be_in_use(site: Path, capsys: Capture) -> None:
    document = shown(capsys, "list")
    rows = {row["launch"]: row for row in document["tokens"]}
    assert set(rows) == {"old", "one", "three"}
    assert document["tokens"][0]["launch"] == "old", "of unknown age"
    assert (rows["one"]["machines"], rows["three"]["machines"], rows["old"]["machines"]) == (2, 0, 1)
    assert rows["one"]["identity"] == of("one")
    assert rows["old"]["identity"] == of("old")
    assert (rows["old"]["expires"], rows["old"]["key"]) == (None, "")
    assert {row["state"] for row in rows.values()} == {"good"}
    assert document["keys"] == [{"name": KEYS, "signs": True}]
    text = run(capsys, "list")[1]
    assert "three" in text
    assert "two" not in text


def test_revoke_writes_the_file_tells_the_daemons_and_forgets_the_ads(
    site: Path, told: Told, capsys: Capture
) -> None:
    document = shown(capsys, "revoke", "one")
    assert document["identities"] == [of("one")]
    found = revoked.read(site / "revoked.conf")
    assert set(found.identities) == {of("one")}
    assert found.before == 0
    assert told.reconfigured == 1
    assert told.forgotten == [([of("one")], False)]
    states = {row["launch"]: row["state"] for row in shown(capsys, "list")["tokens"]}
    assert states == {"old": "good", "one": "revoked", "three": "good"}
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        [event] = ledger.events(kinds=["tokens"])
        wishes = ledger.requests()
    assert (event.subject, event.code) == ("one", "token-revoked")
    assert [(wish.kind, wish.machine) for wish in wishes] == [("drain", "i-2")], "the one that hasn't joined"
    shown(capsys, "revoke", "old")
    assert set(revoked.read(site / "revoked.conf").identities) == {of("one"), of("old")}, "both, now"


def test_one_machines_own_token_is_revoked_as_a_warning_names_it_and_its_siblings_stay(
    site: Path, told: Told, capsys: Capture
) -> None:
    document = shown(capsys, "revoke", "one+i-2")
    own = "worker-one+i-2@pool.test"
    assert document["identities"] == [own]
    found = revoked.read(site / "revoked.conf")
    assert set(found.identities) == {own}
    assert found.identities[own], "it ends with what its launch was given"
    assert told.forgotten == [([own], False)]
    states = {row["launch"]: row["state"] for row in shown(capsys, "list")["tokens"]}
    assert states["one"] == "good"
    assert "the own token of one+i-1" in run(capsys, "revoke", "one+i-1")[1]
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        wishes = [one.machine for one in ledger.requests()]
    assert wishes == ["i-2"], "it hasn't joined, and never will"


def test_revoke_all_is_for_those_of_now_and_not_of_later(site: Path, told: Told, capsys: Capture) -> None:
    before = time.time()
    code, out, _ = run(capsys, "revoke", "--all")
    assert code == 0
    assert "revoked: 4 launches with 3 machines" in out
    found = revoked.read(site / "revoked.conf")
    assert set(found.identities) == {of(one) for one in ("one", "two", "three", "old")}, (
        "two may have a session"
    )
    assert int(before) <= found.before <= time.time()
    assert told.forgotten[0][1] is True
    assert not found.has(of("new"), time.time() + 5)


def test_a_collector_that_goes_on_taking_them_is_an_error(site: Path, told: Told, capsys: Capture) -> None:
    told.takes = True
    code, _, err = run(capsys, "revoke", "one")
    assert code == 1
    assert "still takes one" in err
    assert "condor_reconfig" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("revoke",), "--all"),
        (("revoke", "one", "--all"), "--all"),
        (("revoke", "nobody"), "no launch nobody"),
        (("revoke", "nobody+i-1"), "no launch nobody"),
        (("revoke", "one+i-4"), "launch one has no machine i-4"),
        (("revoke", "one+"), "no launch one+"),
        (("rotate", "--now", "--finish"), "--finish"),
    ],
)
def test_calls_that_make_no_sense_change_nothing(
    site: Path, told: Told, capsys: Capture, words: tuple[str, ...], why: str
) -> None:
    code, _, err = run(capsys, *words)
    assert (code, why in err) == (2, True)
    assert not (site / "revoked.conf").exists()
    assert told.reconfigured == 0
    assert key_names(site / "keys", KEYS) == [KEYS]


def test_only_root_may(site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for words in (("revoke", "one"), ("rotate",)):
        code, _, err = run(capsys, *words)
        assert (code, "root" in err) == (2, True)
    assert shown(capsys, "list")["tokens"]


def test_a_controller_elsewhere_sends_to_the_head(site: Path, capsys: Capture) -> None:
    file = site / "updraft.toml"
    file.write_text(TOML.replace("[clouds", 'collector = "head.test"\n\n[clouds'))
    code, _, err = run(capsys, "revoke", "one")
    assert (code, "another machine" in err) == (2, True)
    assert not (site / "revoked.conf").exists()


def test_rotate_keeps_the_old_key_while_machines_live(site: Path, told: Told, capsys: Capture) -> None:
    document = shown(capsys, "rotate")
    assert (document["new"], document["removed"], document["revoked"]) == (f"{KEYS}-2", [], [])
    assert [key["name"] for key in document["keys"] if key["signs"]] == [f"{KEYS}-2"]
    assert told.reconfigured == 1
    document = shown(capsys, "rotate", "--finish")
    assert (document["removed"], document["needed"]) == ([], {KEYS: 3})
    with Ledger(config.load(site / "updraft.toml").pool.ledger) as ledger:
        ledger.remember(
            record(name, launch_key=launch, requested_at=1.0, ended_at=time.time())
            for name, launch in (("i-1", "one"), ("i-2", "one"), ("i-4", "old"))
        )
        ledger.remember([record("i-9", launch_key="new")])
        note(ledger, Issued("new", "default", of("new"), "id", f"{KEYS}-2", 1.0, time.time() + 9))
    document = shown(capsys, "rotate", "--finish")
    assert (document["removed"], document["needed"]) == ([KEYS], {})
    assert key_names(site / "keys", KEYS) == [f"{KEYS}-2"]
    assert not (site / "revoked.conf").exists()


def test_rotate_now_leaves_the_new_key_alone_and_revokes_all(site: Path, told: Told, capsys: Capture) -> None:
    document = shown(capsys, "rotate", "--now")
    assert document["removed"] == [KEYS]
    assert set(document["revoked"]) == {"one", "two", "three", "old"}
    assert key_names(site / "keys", KEYS) == [f"{KEYS}-2"]
    assert revoked.read(site / "revoked.conf").before > 0


# ---------------------------------------------------------------------------------------- what is noted


def test_a_made_token_is_noted_without_itself_and_forgotten_in_time(tmp_path: Path) -> None:
    from tests.condor.tokens.test_tokens import token

    made = token(sub=of("k"), jti="ab", iat=100, exp=200)
    with Ledger(tmp_path / "ledger.db", Retention(ended_age=50)) as ledger:
        note_token(ledger, "k", "default", made)
        note_token(ledger, "odd", "default", "no token at all")
        assert all_noted(ledger, Issued) == {"k": Issued("k", "default", of("k"), "ab", KEYS, 100.0, 200.0)}
        ledger.prune(240.0)
        assert set(all_noted(ledger, Issued)) == {"k"}
        ledger.prune(260.0)
        assert not all_noted(ledger, Issued)
    assert all(made.encode() not in file.read_bytes() for file in tmp_path.glob("ledger*"))
