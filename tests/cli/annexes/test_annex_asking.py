"""`updraft annex` of a user who can read neither the configuration nor the ledger."""

import json
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.forms import validate
from tests.rigs.snapshots import policy, snapshot
from updraft.app.call import Call
from updraft.cli.annexes import asking as annex_asking
from updraft.cli.main import call
from updraft.cli.schemas import FORMS
from updraft.core.settings import AnnexAllowance
from updraft.daemon.annex_requests import client
from updraft.daemon.annex_requests.desk import Desk, DeskView
from updraft.daemon.annex_requests.server import Server
from updraft.ledger import Ledger

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The ledger of a daemon that listens; the user of the tests can't read its configuration."""
    folder = Path(tempfile.mkdtemp(prefix="updraft-"))
    monkeypatch.setenv(client.PLACE, str(folder / "annex.sock"))
    monkeypatch.setattr(annex_asking, "needed", lambda _call: True)
    with Ledger(tmp_path / "ledger.db") as made:
        desk = Desk(made, time.time)
        rules = policy(annex_allowances={ME: AnnexAllowance(machines=3)})
        desk.seen(DeskView(replace(snapshot(), now=time.time()), rules))
        with Server(folder / "annex.sock", desk.answer, seconds=60):
            yield made
    shutil.rmtree(folder)


def test_from_asking_to_deleting(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["annex", "create", "burst", "--count", "2", "--duration", "1h"]) == 0
    assert capsys.readouterr().out.startswith("annex burst: its lease ends at ")
    assert [(one.owner, one.machines) for one in ledger.annexes()] == [(ME, 2)]
    assert call(["annex", "list"]) == 0
    assert "burst" in capsys.readouterr().out
    assert call(["annex", "extend", "burst", "--duration", "2h"]) == 0
    assert ledger.annexes()[0].until > time.time() + 7000
    assert call(["annex", "status", "burst"]) == 0
    assert f"the jobs of {ME}" in capsys.readouterr().out
    assert call(["annex", "stop", "burst"]) == 0
    assert call(["annex", "delete", "burst"]) == 0
    assert ledger.annexes()[0].deleted


@pytest.mark.parametrize(
    "words",
    [
        ["create", "burst", "--count", "2", "--dry-run"],
        ["create", "burst", "--count", "2"],
        ["list"],
        ["status", "there"],
        ["extend", "there", "--duration", "2h"],
        ["stop", "there"],
        ["delete", "there"],
    ],
)
def test_what_is_printed_as_json_has_its_form(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert call(["annex", "create", "there", "--count", "1"]) == 0
    capsys.readouterr()
    assert call(["annex", *words, "--json"]) == 0
    validate(json.loads(capsys.readouterr().out), FORMS[f"annex {words[0]}"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["create", "burst", "--count", "4"], "you may have 3"),
        (["create", "burst", "--count", "1", "--owner", "all"], "operator to make"),
        (["create", "burst", "--count", "1", "--owner", "eve"], "operator to make"),
        (["create", "burst", "--count", "1", "--tag", "a=b"], "--tag is for the pool's operator"),
        (["create", "burst", "--count", "1", "--user-data", __file__], "--user-data is for the pool's"),
        (["status", "other"], f"{ME} has no annex 'other'"),
        (["delete", "other"], f"{ME} has no annex 'other'"),
    ],
)
def test_what_a_user_may_not_is_refused(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert call(["annex", *words]) == 2
    assert why in capsys.readouterr().err
    assert ledger.annexes() == ()


def test_who_can_write_the_ledger_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "updraft.toml"
    config.write_text('[pool]\nname = "p"\nstate_dir = "state"\n')
    (tmp_path / "state").mkdir()
    monkeypatch.setenv(client.PLACE, str(tmp_path / "none.sock"))
    assert not annex_asking.needed(Call(str(config)))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not annex_asking.needed(Call(str(config)))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert annex_asking.needed(Call(str(config)))
    assert not annex_asking.needed(Call(str(tmp_path / "no.toml"))), (
        "with nobody to ask, that is what is said"
    )
    (tmp_path / "none.sock").touch()
    assert annex_asking.needed(Call(str(tmp_path / "no.toml")))


def test_where_nobody_listens_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(client.PLACE, str(tmp_path / "none.sock"))
    monkeypatch.setattr(annex_asking, "needed", lambda _call: True)
    assert call(["annex", "list"]) == 1
    assert "its daemon has to run" in capsys.readouterr().err
