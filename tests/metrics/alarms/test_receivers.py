"""People are told by real receivers on loopback; one that fails says why, and never where it is."""

import socket
import time
from pathlib import Path

import pytest

from tests.rigs.monitoring.mailserver import mail_server
from tests.rigs.monitoring.webhooks import webhook
from updraft.errors import NotSent
from updraft.metrics.alarms import receivers
from updraft.metrics.alarms.conditions import AlarmKind
from updraft.metrics.alarms.receivers import MailSettings, call, execute, receiver, send_mail
from updraft.metrics.alarms.watching import Message

MESSAGE = Message("lab", AlarmKind.BUDGET, 1_700_000_000.0, ("the pool has spent it", "so has class gpu"))
NO_MAIL = MailSettings(None, "")


def script(folder: Path, text: str) -> Path:
    file = folder / "told"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_a_program_gets_the_message(tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = script(
        tmp_path, f'(echo "$1|$2|$UPDRAFT_EVENT|$UPDRAFT_POOL|${{AWS_SECRET-none}}"; cat) >{out}'
    )
    receiver(f"exec:{program} --now 'two words'", NO_MAIL).deliver(MESSAGE)
    first, *rest = out.read_text().splitlines()
    assert first == "--now|two words|budget|lab|none"
    assert rest == ["pool: lab", "event: budget", "", "the pool has spent it", "so has class gpu"]


def test_no_shell_reads_a_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = script(tmp_path, f'echo "$1" >{out}')
    execute(f"{program} $(id);ls", MESSAGE)
    assert out.read_text() == "$(id);ls\n"


def test_a_program_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = script(tmp_path, f"sleep 1000 & echo $! >{pid}.new; mv {pid}.new {pid}; wait")
    begun = time.monotonic()
    with pytest.raises(NotSent, match=r"did not end in 3 s"):
        execute(str(program), MESSAGE, deadline=3.0)
    assert time.monotonic() - begun < 30
    child = int(pid.read_text())
    until = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and not _is_dead(child):
        assert time.monotonic() < until, "its child lives on"
        time.sleep(0.01)


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


@pytest.mark.parametrize(("command", "why"), [("/no/such", "can't be started"), ("'", "can't be started")])
def test_a_program_that_cannot_be_started_is_told(command: str, why: str) -> None:
    with pytest.raises(NotSent, match=why):
        execute(command, MESSAGE)


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match="ended with code 3"):
        execute(str(script(tmp_path, "exit 3")), MESSAGE)


def test_a_webhook_gets_the_message_as_json() -> None:
    with webhook() as server:
        receiver(f"webhook:http://127.0.0.1:{server.port}/hook/s3cret", NO_MAIL).deliver(MESSAGE)
        path, document = server.posted.get(timeout=20)
    assert path == "/hook/s3cret"
    assert document == {
        "text": "updraft, pool lab: the pool has spent it (and 1 more)\nso has class gpu",
        "pool": "lab",
        "event": "budget",
        "at": 1_700_000_000.0,
        "alarms": ["the pool has spent it", "so has class gpu"],
    }


def test_the_address_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hook"
    with webhook() as server:
        file.write_text(f"http://127.0.0.1:{server.port}/s3cret\n")
        call(str(file), MESSAGE)
        assert server.posted.get(timeout=20)[0] == "/s3cret"
    for text in ("file:///etc/shadow", "no url", ""):
        file.write_text(text)
        with pytest.raises(NotSent, match="no URL"):
            call(str(file), MESSAGE)


@pytest.mark.parametrize("answer", [302, 307, 404, 500])
def test_a_webhook_that_refuses_is_told_and_not_followed(answer: int) -> None:
    with webhook() as server:
        server.answer = answer
        with pytest.raises(NotSent, match=f"answered {answer}") as told:
            call(f"http://127.0.0.1:{server.port}/s3cret", MESSAGE)
        assert server.posted.get(timeout=20)[0] == "/s3cret"
        assert server.posted.empty(), "it went elsewhere"
    assert "s3cret" not in repr(told.value)
    assert told.value.__cause__ is None


def test_a_webhook_that_does_not_answer_is_given_up() -> None:
    with webhook() as server:
        server.answering.clear()
        with pytest.raises(NotSent, match="no answer") as told:
            call(f"http://127.0.0.1:{server.port}/s3cret", MESSAGE, deadline=0.3)
    assert "s3cret" not in str(told.value)


def test_nobody_there_is_told_without_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(NotSent, match="Connection refused") as told:
            call(f"http://127.0.0.1:{port}/s3cret", MESSAGE)
        with pytest.raises(NotSent, match="Connection refused"):
            send_mail("ops@example.org", MailSettings(("127.0.0.1", port), ""), MESSAGE)
    assert str(port) not in str(told.value)


def test_a_mail_is_handed_in() -> None:
    with mail_server() as server:
        settings = MailSettings(("127.0.0.1", server.port), "updraft@head.example.org")
        receiver("mail:ops@example.org", settings).deliver(MESSAGE)
        mail = server.mails.get(timeout=20)
    assert mail["To"] == "ops@example.org"
    assert mail["From"] == "updraft@head.example.org"
    assert mail["Subject"] == "updraft, pool lab: the pool has spent it (and 1 more)"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "so has class gpu" in mail.get_payload()


def test_sendmail_gets_the_mail_where_no_server_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(receivers, "SENDMAIL", str(script(tmp_path, f'(echo "$@"; cat) >{out}')))
    send_mail("ops@example.org", NO_MAIL, MESSAGE)
    arguments, *lines = out.read_text().splitlines()
    assert arguments == "-i -- ops@example.org"
    assert "Subject: updraft, pool lab: the pool has spent it (and 1 more)" in lines
    monkeypatch.setattr(receivers, "SENDMAIL", str(script(tmp_path, "exit 75")))
    with pytest.raises(NotSent, match="sendmail did not take it"):
        send_mail("ops@example.org", NO_MAIL, MESSAGE)
