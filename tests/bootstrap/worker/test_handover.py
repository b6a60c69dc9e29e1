"""A worker's half of the exchange by which it gets its own token: what it says, waits for and takes."""

import json
import random
import re
import socket
import string
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rigs.reading import TOKEN, parts, shipped, worker, written
from tests.waiting import deadline
from updraft.bootstrap import EC2_LIMIT, Layer, worker_user_data
from updraft.bootstrap.worker.reach import BROKER_TOKEN, Reach
from updraft.condor.collector.handover import key_at, keys_on, question, seal

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
        "pool": "main", "launch": "l1", "port": PORT, "patience": 5.0, "silence": 0.0, "broker": "",
        "instance": str(tmp_path / "id"),
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
            named = re.fullmatch(r'Name == "updraft-handover/(\w+)" && UpdraftInstance == "(.*)"', words[-4])
            assert named is not None
            found = answers(named[1], sent[-1])
            found = [one for one in found if one.get("UpdraftInstance", named[2]) == named[2]]
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
    assert TOKEN not in written(asks)["/etc/updraft/handover.json"]["content"]


def test_behind_a_broker_the_user_data_hold_no_token_for_it_and_the_key_is_shown_on_the_console() -> None:
    behind = written(worker_user_data(worker(asks=True, reach=Reach(broker="head?sock=broker"))))
    told = json.loads(behind["/etc/updraft/handover.json"]["content"])
    assert (told["port"], told["broker"]) == (0, BROKER_TOKEN)
    assert BROKER_TOKEN not in behind
    for host, port in (("metadata", 0), ("192.0.2.7", 9618)):
        forwarded = written(worker_user_data(worker(asks=True, reach=Reach(host=host))))
        told = json.loads(forwarded["/etc/updraft/handover.json"]["content"])
        assert (told["port"], told["broker"]) == (port, "")


def test_a_machine_that_nobody_can_call_shows_its_key_and_is_given_both_tokens(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def answers(_key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question(ad["Name"], "i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        return [{"UpdraftSealed": seal(OWN, asked.cert), "UpdraftSealedBroker": seal(TOKEN, asked.cert)}]

    sent = collector(monkeypatch, answers)
    console = tmp_path / "console"
    console.touch()
    monkeypatch.setattr(script, "CONSOLE", str(console))
    broker = tmp_path / "for-the-broker"
    assert boots({**told, "port": 0, "broker": str(broker)}, tmp_path) == 0
    assert (tmp_path / "token").read_text() == OWN + "\n"
    assert broker.read_text() == TOKEN + "\n"
    assert broker.stat().st_mode & 0o077 == 0
    key = sent[0]["Name"].removeprefix("updraft-handover/")
    assert keys_on(console.read_text()) == {key}
    assert keys_on(capfd.readouterr().err) == {key}, "cloud-init prints that, where there is no such device"


def test_without_a_token_for_its_broker_a_boot_fails(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers(_key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question(ad["Name"], "i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        return [{"UpdraftSealed": seal(OWN, asked.cert)}]

    collector(monkeypatch, answers)
    monkeypatch.setattr(script, "CONSOLE", str(tmp_path / "none"))
    assert boots({**told, "port": 0, "broker": str(tmp_path / "b")}, tmp_path) == 1
    assert capsys.readouterr().out == "the controller gave no token for the broker\n"
    assert (tmp_path / "token").read_text() == "the launch's\n"


def virtual(clock: list[float]) -> SimpleNamespace:
    """The script's own clock: that of the programs that it runs is another."""
    return SimpleNamespace(
        monotonic=lambda: clock[0], sleep=lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )


def test_time_in_which_no_controller_is_there_costs_a_boot_nothing(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a controller that is started anew, and then as long as ever."""
    clock = [0.0]
    monkeypatch.setattr(script, "time", virtual(clock))

    def answers(_key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question(ad["Name"], "i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        if clock[0] < 200 or 300 < clock[0] < 900:
            return []
        return [{"UpdraftSealed": seal(OWN, asked.cert)} if clock[0] > 1100 else {"UpdraftWaits": "not yet"}]

    collector(monkeypatch, answers)
    short = {**told, "port": 0, "patience": 420.0, "silence": 1800.0}
    monkeypatch.setattr(script, "CONSOLE", str(tmp_path / "none"))
    assert boots(short, tmp_path) == 0
    assert (tmp_path / "token").read_text() == OWN + "\n"


def test_a_boot_waits_for_no_controller_for_ever(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(script, "time", virtual(clock))
    monkeypatch.setattr(script, "CONSOLE", str(tmp_path / "none"))
    for said, least in (([], 2220), ([{"UpdraftWaits": "not yet"}], 420)):
        clock[0] = 0.0
        collector(monkeypatch, lambda _key, _ad, said=said: said)
        assert boots({**told, "port": 0, "patience": 420.0, "silence": 1800.0}, tmp_path) == 1
        assert least <= clock[0] < least + 6
        assert "no answer within" in capsys.readouterr().out


def test_the_boot_asks_before_htcondor_starts_and_says_why_it_got_none() -> None:
    boot = written(worker_user_data(worker(asks=True)))["/usr/local/lib/updraft/boot"]["content"]
    assert boot.index("lib/updraft/handover") < boot.index("systemctl start condor.service")
    assert 'fail "no token of its own: $why"' in boot


def test_an_answer_to_another_machines_question_is_none_though_it_is_to_its_key(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def answers(key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        looks.append(key)
        if len(looks) < 3:
            return [{"UpdraftRefused": "i-9 has ended", "UpdraftInstance": "i-9"}]
        asked = question(ad["Name"], "i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
        assert asked is not None
        return [{"UpdraftSealed": seal(OWN, asked.cert), "UpdraftInstance": "i-1"}]

    collector(monkeypatch, answers)
    assert boots(told, tmp_path) == 0


def test_who_says_a_letter_now_and_then_is_waited_for_no_longer_than_the_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def dribbles() -> None:
            there = server.accept()[0]
            with there, suppress(OSError):
                while True:
                    there.sendall(b"u")
                    time.sleep(0.3)

        thread = threading.Thread(target=dribbles, daemon=True)
        thread.start()
        begun = time.monotonic()
        assert key_at("127.0.0.1", server.getsockname()[1]) == ""
        assert time.monotonic() - begun < 10, "a letter each 0.3 s would take 38 s"
        thread.join(deadline(10))


def test_it_takes_the_token_that_is_sealed_to_it_and_asks_no_more(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def answers(key: str, ad: dict[str, str]) -> list[dict[str, str]]:
        asked = question(
            ad["Name"], ad["UpdraftInstance"], ad["UpdraftLaunch"], "worker-l1@d", ad["UpdraftKey"]
        )
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
        asked = question(ad["Name"], "i-1", "l1", "worker-l1@d", ad["UpdraftKey"])
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
