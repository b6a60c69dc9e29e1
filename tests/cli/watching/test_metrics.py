"""`updraft metrics` as it is called: one clear sentence where it is called or configured wrongly."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.rigs.monitoring.mailserver import mail_server
from tests.rigs.monitoring.webhooks import webhook
from updraft import config
from updraft.app.watching import monitoring
from updraft.cli.main import call
from updraft.config.tables.monitoring import Monitoring
from updraft.errors import ConfigError
from updraft.ledger import Ledger
from updraft.metrics.alarms.sending import Sender
from updraft.metrics.alarms.watching import AlarmWatch

CONFIG = """
[pool]
name = "lab"
state_dir = "state"

[clouds.a]
driver = "fake"

[classes.work]
image = "img"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration whose daemon looked an hour ago, and no more."""
    made = tmp_path / "updraft.toml"
    made.write_text(CONFIG)
    with Ledger(tmp_path / "state" / config.LEDGER_FILE) as ledger:
        ledger.note("controller", {"last_cycle": 1000.0, "acting": True, "host": "elsewhere"}, 1000.0)
    return made


def updraft(file: Path, *words: str) -> int:
    return call(["--config", str(file), "metrics", *words])


def test_a_file_for_node_exporter_is_written_once(file: Path) -> None:
    out = file.parent / "updraft.prom"
    assert updraft(file, "--textfile", str(out)) == 0
    assert "updraft_controller_acting 0.0\n" in out.read_text()
    assert "updraft_look_timestamp_seconds 1000.0\n" in out.read_text()


def test_the_metrics_go_to_stdout(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert updraft(file, "--textfile", "-") == 0
    assert 'updraft_info{pool="lab",version=' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--textfile", "updraft.txt"], 'files that end in ".prom" only'),
        (["--textfile", "/no/such/updraft.prom"], "can't be written (No such file or directory)"),
        (["--textfile", "x.prom", "--listen", "127.0.0.1:0"], "use one of them"),
        (["--listen", "localhost"], "is no address"),
        (["--listen", "127.0.0.1:99999"], "is no address"),
    ],
)
def test_a_wrong_call_is_told(
    file: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert updraft(file, *words) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert not list(file.parent.glob("*.prom"))


def test_a_webhook_in_a_file_that_others_can_read_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = file.parent / "hook"
    file.write_text(f'{CONFIG}[monitoring]\nnotify = "webhook:{hook}"\n')
    assert updraft(file) == 2
    assert "No such file" in capsys.readouterr().err
    hook.write_text("https://hooks.test/s3cret")
    hook.chmod(0o644)
    assert updraft(file) == 2
    said = capsys.readouterr().err
    assert f"chmod 0600 {hook}" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "entry",
    [
        *("s3cret", "pager:s3cret", "exec:s3cret", "webhook:s3cret", "webhook:ftp://s3cret/"),
        *("webhook:https://me:s3cret@hooks.test/", "webhook:https://hooks.test/s3 cret", "mail:s3cret"),
        *("mail:-s3cret@hooks.test", "mail:a@b,s3cret@c", "exec:/bin/x\x1b[2Js3cret", "mail:a@b\ns3cret@c"),
    ],
)
def test_what_is_wrong_with_notify_is_said_without_it(file: Path, entry: str) -> None:
    with pytest.raises(ValidationError) as told:
        Monitoring(notify=(entry,))
    assert "s3cret" not in str([one["msg"] for one in told.value.errors()])
    line = entry.encode("unicode_escape").decode().replace("\\x1b", "\\u001b")
    file.write_text(f'{CONFIG}[monitoring]\nnotify = ["{line}"]\n')
    with pytest.raises(ConfigError) as said:
        config.load(file)
    assert "monitoring.notify" in str(said.value)
    assert "s3cret" not in str(said.value)


def test_what_is_right_is_taken() -> None:
    found = Monitoring(
        notify=(
            "exec:/bin/logger -t x",
            "webhook:https://hooks.test/a?b=c",
            "webhook:/f",
            "mail:a.b+c@d.test",
        ),
        listen="[::1]:9877",
        mail_server="mail.test",
    )
    assert monitoring.address(found.listen) == ("::1", 9877)
    assert found.server == ("mail.test", 25)
    assert Monitoring().server is None
    assert Monitoring(mail_server="127.0.0.1:2525").server == ("127.0.0.1", 2525)
    for wrong in ({"listen": "nowhere"}, {"mail_server": "a b"}, {"mail_from": "me"}, {"notify_again": "0s"}):
        with pytest.raises(ValidationError):
            Monitoring(**wrong)


def test_people_are_told_by_all_ways_that_the_controller_is_dead(file: Path) -> None:
    """All of the process but its server and its waiting: settings, ledger, what is due, real receivers."""
    out = file.parent / "told"
    program = file.parent / "tell"
    program.write_text(f"#!/bin/sh\ncat >{out}\n")
    program.chmod(0o755)
    with webhook() as hook, mail_server() as mails:
        file.write_text(
            f'{CONFIG}[monitoring]\nmail_server = "127.0.0.1:{mails.port}"\nnotify = ["exec:{program}", '
            f'"mail:ops@example.org", "webhook:http://127.0.0.1:{hook.port}/"]\n'
        )
        settings = config.load(file)
        source = monitoring.source_of(settings)
        with Sender(monitoring.receivers_of(settings)) as sender:
            watch = AlarmWatch(sender.send, settings.pool.state_dir, pause=600.0, again=86400.0)
            for now in (5000.0, 5060.0, 5120.0, 5180.0):
                watch.look(replace(source.picture(), now=now))
            [alarm] = hook.posted.get(timeout=60)[1]["alarms"]
            mail = mails.mails.get(timeout=60)
            end = time.monotonic() + 60
            while sender.outcomes() != dict.fromkeys([(k, "sent") for k in ("exec", "mail", "webhook")], 1):
                assert time.monotonic() < end, sender.outcomes()
                time.sleep(0.01)
    assert alarm == "no controller is at work: this one last looked at 1970-01-01 00:16:40 UTC"
    assert mail["Subject"] == f"updraft, pool lab: {alarm}"
    assert alarm in out.read_text()
