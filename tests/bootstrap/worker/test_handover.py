"""A worker's half of the exchange by which it gets its own token: what it says, waits for and takes."""

import json
import random
import socket
import string
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.reading import TOKEN, parts, shipped, worker, written
from updraft.bootstrap import EC2_LIMIT, Layer, worker_user_data
from updraft.bootstrap.worker.reach import Reach
from updraft.condor.collector.handover import key_at, question, seal

FILES = {"/usr/local/lib/updraft/handover", "/etc/updraft/handover.json"}
with socket.create_server(("", 0)) as _free:
    PORT: int = _free.getsockname()[1]  # of this process alone: others run these tests, too
OWN = TOKEN.replace("eyJzdWIiOiJ3b3JrZXItTDEifQ", "eyJzdWIiOiJvd24ifQ")
script: Any = shipped("handover")
withdrawn: list[str] = []


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "id").write_text("i-1\n")
    (tmp_path / "token").write_text("the launch's\n")
    return {
        "pool": "main", "launch": "l1", "port": PORT, "patience": 5.0, "instance": str(tmp_path / "id"),
        "token": str(tmp_path / "token"), "done": str(tmp_path / "state" / "done"), "room": str(tmp_path),
    }  # fmt: skip


def boots(told: dict[str, Any], tmp_path: Path) -> int:
    (tmp_path / "told.json").write_text(json.dumps(told))
    return int(script.main(str(tmp_path / "told.json")))


Answers = Callable[[str, dict[str, str]], list[dict[str, str]]]


def collector(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> list[dict[str, str]]:
    """HTCondor's tools answer as `answers` says, of the key and the ad that asks; the ads that were sent."""
    sent: list[dict[str, str]] = []
    withdrawn.clear()
    real = script.run

    def run(words: list[str], given: bytes = b"") -> bytes:
        if words[0] == "condor_advertise":
            lines = (line.split(" = ", 1) for line in given.decode().splitlines())
            if words[1] == "INVALIDATE_MASTER_ADS":
                withdrawn.append(given.decode())
                return b""
            sent.append({name: value.strip('"') for name, value in lines})
            return b""
        if words[0] == "condor_status":
            found = answers(words[-4].rpartition("/")[2].rstrip('"'), sent[-1])
            return json.dumps(found).encode() if found else b""
        return bytes(real(words, given))

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(script, "LOOK_EVERY", 0.05)
    return sent


def test_it_is_only_there_where_the_machine_asks_and_fits() -> None:
    assert not FILES & set(written(worker_user_data(worker())))
    asks = worker_user_data(worker(asks=True))
    assert set(written(asks)) >= FILES
    assert len(asks) < EC2_LIMIT - 2000, "room for a site's own layers"
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=2000))
    script_of_the_site = Layer("the site's", f"#!/bin/sh\ntrue\n# {noise}\n")
    behind_a_broker = Reach(broker="head?sock=broker", token=TOKEN)
    with_script = worker_user_data(worker(asks=True, layers=(script_of_the_site,), reach=behind_a_broker))
    assert len(with_script) < EC2_LIMIT, "with a script of the site, too"
    assert set(written(with_script)) >= FILES
    assert [text for kind, text in parts(with_script) if "true" in text.split("\n")]
    told = json.loads(written(asks)["/etc/updraft/handover.json"]["content"])
    assert (told["port"], told["token"]) == (9618, "/etc/condor/tokens.d/updraft")
    behind = worker(asks=True, reach=Reach(broker="head?sock=broker", token=TOKEN))
    assert json.loads(written(worker_user_data(behind))["/etc/updraft/handover.json"]["content"])["port"] == 0
    assert TOKEN not in written(asks)["/etc/updraft/handover.json"]["content"]


def test_the_boot_asks_before_htcondor_starts_and_says_why_it_got_none() -> None:
    boot = written(worker_user_data(worker(asks=True)))["/usr/local/lib/updraft/boot"]["content"]
    assert boot.index("lib/updraft/handover") < boot.index("systemctl start condor.service")
    assert 'fail "no token of its own: $why"' in boot


def test_it_takes_the_token_that_is_sealed_to_it_and_asks_no_more(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def answers(key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question(ad["UpdraftInstance"], ad["UpdraftLaunch"], "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        assert asked.asked.key == key
        called.append(key_at("127.0.0.1", PORT))
        return [{"UpdraftSealed": seal(OWN, asked.cert)}] if len(called) > 2 else []

    sent = collector(monkeypatch, answers)
    assert boots(told, tmp_path) == 0
    assert (tmp_path / "token").read_text() == OWN + "\n"
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    assert sent[0]["UpdraftInstance"] == "i-1"
    assert set(called) == {sent[0]["Name"].removeprefix("updraft-handover/")}, "who calls is told the key"
    with socket.socket() as htcondors:
        htcondors.bind(("", PORT))  # the port is free again at once
    assert {path.name for path in tmp_path.iterdir()} == {"id", "state", "told.json", "token"}
    [asked] = withdrawn
    assert f'Requirements = Name == "{sent[0]["Name"]}"' in asked
    before = len(sent)
    assert boots(told, tmp_path) == 0
    assert len(sent) == before
    (tmp_path / "id").write_text("i-2")
    assert boots(told, tmp_path) == 0
    assert sent[-1]["UpdraftInstance"] == "i-2", "a disk that was copied from another machine asks anew"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([{"UpdraftRefused": "i-1 has ended"}], "i-1 has ended\n"),
        ([{"UpdraftWaits": "no cloud lists it"}], "no answer within 1 s: no cloud lists it\n"),
        ([], "no answer within 1 s: the controller says nothing\n"),
        ([{"UpdraftSealed": "AAAA"}], "openssl: "),
    ],
)
def test_why_it_gets_none_is_said_and_the_other_token_stays(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    answer: list[dict[str, str]], said: str,
) -> None:  # fmt: skip
    collector(monkeypatch, lambda _key, _ad: answer)
    assert boots({**told, "patience": 1.0}, tmp_path) == 1
    assert capsys.readouterr().out.startswith(said)
    assert (tmp_path / "token").read_text() == "the launch's\n"


def test_what_is_no_token_is_not_taken(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers(_key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question("i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        return [{"UpdraftSealed": seal("no token", asked.cert)}]

    collector(monkeypatch, answers)
    assert boots(told, tmp_path) == 1
    assert capsys.readouterr().out == "what came is no token\n"


def test_a_port_that_is_taken_is_said(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collector(monkeypatch, lambda _key, _ad: [])
    with socket.socket() as other:
        other.bind(("", PORT))
        other.listen()
        assert boots(told, tmp_path) == 1
    assert capsys.readouterr().out == f"port {PORT} can't be listened on\n"


def test_what_another_certificate_is_sealed_to_is_not_to_be_read(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    for folder in (mine, others):
        folder.mkdir()
    cert = script.make_key(mine)
    script.make_key(others)
    sealed = seal(OWN, cert)
    assert script.opened(mine, sealed) == OWN
    with pytest.raises(OSError, match="openssl"):
        script.opened(others, sealed)


def test_no_key_outlives_the_question(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector(monkeypatch, lambda _key, _ad: [{"UpdraftRefused": "no"}])
    boots(told, tmp_path)
    found = subprocess.run(["grep", "-rl", "PRIVATE KEY", str(tmp_path)], capture_output=True, check=False)
    assert found.stdout == b""
