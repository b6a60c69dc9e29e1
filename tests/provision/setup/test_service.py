"""`updraft service`: the unit that it writes, what it says of the daemon, and what it needs."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from tests.rigs.machines import picture
from updraft import config
from updraft.bootstrap.machine import shipped
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.ledger import Ledger
from updraft.provision.setup import service

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
"""
SYSTEMCTL = """\
#!/bin/sh
echo "$@" >>"$(dirname "$0")/calls"
[ "$1" != show ] || printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n'
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site on a machine without systemd."""
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setattr(service, "SYSTEMD", tmp_path / "systemd")
    monkeypatch.setattr(service, "LOG", tmp_path / "updraft.log")
    monkeypatch.setattr(service, "UNITS", tmp_path / "units")
    monkeypatch.setattr(service, "STATE", str(tmp_path / "installed"))
    monkeypatch.setattr(service, "CODE", (tmp_path / "lib",))
    monkeypatch.setattr("updraft.provision.setup.strict.TRUSTED", {0, os.getuid()})
    for name in ("units", "lib", "lib/package"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def systemd(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with something that takes systemctl's calls down in `bin/calls`."""
    (site / "systemd").mkdir()
    (site / "bin").mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("journalctl", "#!/bin/sh\n"), ("updraft", "#!/bin/sh\n")):
        (site / "bin" / name).write_text(text)
        (site / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{site / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "executable", str(site / "bin" / "python3"))
    return site


def calls(site: Path) -> list[str]:
    log = site / "bin" / "calls"
    return log.read_text().splitlines() if log.exists() else []


def test_install_writes_the_one_unit_and_has_it_start_with_the_machine(
    systemd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(["service", "install"]) == 0
    text = (systemd / "units" / "updraft.service").read_text()
    assert text in capsys.readouterr().out, "it shows what it writes"
    command = f"ExecStart={systemd / 'bin' / 'updraft'} --config {systemd / 'updraft.toml'} run\n"
    assert command in text
    mounts = f"RequiresMountsFor={systemd} {systemd / 'state'}\n"
    assert mounts in text
    usual = "RequiresMountsFor=/etc/updraft /var/lib/updraft\n"
    text = text.replace(command, "ExecStart=/usr/local/bin/updraft run\n").replace(mounts, usual)
    assert text == shipped("updraft.service")
    assert calls(systemd) == ["daemon-reload", "enable updraft.service"]
    assert main.call(["service", "install", "--now"]) == 0
    assert calls(systemd)[-1] == "start updraft.service", "what runs with this very unit is not disturbed"


def test_a_changed_unit_is_taken_up_by_a_restart(systemd: Path) -> None:
    assert main.call(["service", "install"]) == 0
    (systemd / "updraft.toml").write_text(SETTINGS.replace('"state"', '"other"'))
    assert main.call(["service", "install", "--now"]) == 0
    assert calls(systemd)[-1] == "restart updraft.service"


def test_a_unit_of_somebody_elses_stays_or_comes_back(
    systemd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = systemd / "units" / "updraft.service"
    unit.write_text("[Service]\nExecStart=/usr/bin/theirs\n")
    unit.chmod(0o640)
    before = picture(systemd)
    assert main.call(["service", "install"]) == 2
    assert "there already, and not updraft's" in capsys.readouterr().err
    assert main.call(["service", "install", "--undo"]) == 0
    assert "was not written by `updraft service install`: it stays" in capsys.readouterr().out
    assert picture(systemd) == before
    assert calls(systemd) == []

    assert main.call(["service", "install", "--replace"]) == 0
    assert "updraft" in unit.read_text()
    assert main.call(["service", "install", "--undo"]) == 0
    assert f"{unit} is what it was before" in capsys.readouterr().out
    assert calls(systemd)[-2:] == ["enable updraft.service", "start updraft.service"], "as it was"
    (systemd / "bin" / "calls").unlink()
    assert picture(systemd) == before


def test_a_unit_that_systemd_does_not_take_is_gone_again(
    systemd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (systemd / "bin" / "systemctl").write_text("#!/bin/sh\necho it refuses >&2\n[ $1 != enable ]\n")
    before = picture(systemd)
    assert main.call(["service", "install"]) == 1
    assert "it refuses" in capsys.readouterr().err
    assert picture(systemd) == before


def test_a_unit_that_was_changed_by_hand_is_not_lost(
    systemd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = systemd / "units" / "updraft.service"
    assert main.call(["service", "install"]) == 0
    unit.write_text("# mine\n")
    before = calls(systemd)
    for words in ([], ["--undo"]):
        assert main.call(["service", "install", *words]) == 2
        assert "changed" in capsys.readouterr().err
    assert (unit.read_text(), calls(systemd)) == ("# mine\n", before)
    assert main.call(["service", "install", "--replace"]) == 0
    assert main.call(["service", "install", "--undo"]) == 0
    aside = systemd / "installed/edited" / str(unit)[1:]
    assert f"{aside} is what was put aside" in capsys.readouterr().out
    assert aside.read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("what", "mode", "sentence"),
    [
        ("updraft.toml", 0o666, "read as root what others may change"),
        ("layer.yaml", 0o666, "read as root what others may change"),
        (".", 0o777, "may be written by everybody"),
        ("bin/updraft", 0o757, "run as root what others may change"),
        ("lib", 0o777, "run as root what others may change"),
        ("lib/package", 0o777, "run as root what others may change"),
        ("state", 0o777, "write to as root what others may change"),
    ],
)
def test_root_runs_and_reads_nothing_that_others_may_change(
    systemd: Path, capsys: pytest.CaptureFixture[str], what: str, mode: int, sentence: str
) -> None:
    (systemd / "state").mkdir()
    (systemd / "layer.yaml").write_text("#cloud-config\n{}\n")
    (systemd / "updraft.toml").write_text(SETTINGS + 'layers = ["layer.yaml"]\n')
    (systemd / what).chmod(mode)
    assert main.call(["service", "install"]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert str((systemd / what).resolve()) in err
    assert "chown root, chmod go-w" in err
    assert len(err.splitlines()) == 1
    assert not list((systemd / "units").iterdir())
    assert calls(systemd) == []
    (systemd / what).chmod(mode & 0o755)
    assert main.call(["service", "install"]) == 0


def test_a_daemon_whose_configuration_is_not_there_yet_is_started_again(
    systemd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prevent = next(one for one in shipped("updraft.service").splitlines() if "PreventExit" in one)
    (systemd / "updraft.toml").rename(systemd / "away")
    assert main.call(["run"]) == 2, "by hand it is a wrong call"
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere")
    code = main.call(["run"])
    assert "there is no such file" in capsys.readouterr().err
    assert code == 1
    assert prevent == "RestartPreventExitStatus=2"
    (systemd / "updraft.toml").write_text("[pool\n")
    assert main.call(["run"]) == 2, "what is wrong doesn't mend itself"


def test_undo_takes_it_back(systemd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["service", "install"]) == 0
    assert main.call(["service", "install", "--undo"]) == 0
    assert not (systemd / "units" / "updraft.service").exists()
    assert calls(systemd)[-2:] == ["disable --now updraft.service", "daemon-reload"]
    assert main.call(["service", "install", "--undo"]) == 0
    assert "nothing to undo" in capsys.readouterr().out


def test_a_wrong_configuration_is_not_installed(systemd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (systemd / "updraft.toml").write_text(SETTINGS + "colour = 1\n")
    assert main.call(["service", "install"]) == 2
    assert "line" in capsys.readouterr().err
    assert not list((systemd / "units").iterdir())
    assert calls(systemd) == []


def test_it_needs_root(
    systemd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main.call(["service", "install"]) == 2
    assert "sudo" in capsys.readouterr().err
    assert main.call(["service", "install", "--dry-run"]) == 0
    assert "ExecStart=" in capsys.readouterr().out
    assert not list((systemd / "units").iterdir())


def test_without_systemd_it_says_so_in_one_sentence(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["service", "install", "--now"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "systemd is not at work" in said
    assert not list((site / "units").iterdir())


def test_a_state_directory_that_the_unit_closes_is_refused(
    systemd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SETTINGS.replace('state_dir = "state"', 'state_dir = "/home/me/state"')
    (systemd / "updraft.toml").write_text(text)
    assert main.call(["service", "install"]) == 2
    assert "/home/me/state" in capsys.readouterr().err
    assert calls(systemd) == []


# ------------------------------------------------------------------------------------------------ status


def note(site: Path, **changes: Any) -> None:
    now = time.time()
    doc = {
        "last_cycle": now - 2,
        "started": now - 90,
        "acting": True,
        "host": "elsewhere",
        "pid": 1,
        **changes,
    }
    with Ledger(config.place(site / "updraft.toml").ledger) as ledger:
        ledger.note("controller", doc, now)


def test_status_says_since_when_and_what_it_does(systemd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note(systemd)
    assert main.call(["service", "status"]) == 0
    out = capsys.readouterr().out
    assert "updraft.service is active and starts with the machine" in out
    assert "the daemon on elsewhere runs, since " in out
    assert "it acts" in out
    assert main.call(["service", "status", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, FORMS["service status"])
    assert document["unit"] == {"installed": True, "enabled": True, "state": "active"}


def test_one_that_waits_says_for_what(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note(site, acting=False)
    with Ledger(config.place(site / "updraft.toml").ledger) as ledger:
        standing = {"code": "another", "text": "another controller acts, on head2"}
        ledger.save_cycle({"at": time.time(), "standing": standing}, time.time())
    assert main.call(["service", "status"]) == 0
    out = capsys.readouterr().out
    assert "systemd is not at work" in out
    assert "it waits: another controller acts, on head2" in out


@pytest.mark.parametrize("ever", [False, True])
def test_one_that_is_not_at_work_is_a_problem(
    site: Path, ever: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if ever:
        note(site, last_cycle=time.time() - 3600)
    assert main.call(["service", "status", "--json"]) == 1
    said = capsys.readouterr()
    validate(json.loads(said.out), FORMS["service status"])
    assert "no daemon is at work" in said.err


# -------------------------------------------------------------------------------------------------- logs


def test_the_log_is_the_journals_or_the_file(site: Path, systemd: Path) -> None:
    assert service.log_command(False, 20) == [
        "journalctl",
        "--unit=updraft.service",
        "--lines=20",
        "--no-pager",
    ]
    (systemd / "systemd").rmdir()
    (site / "updraft.log").write_text("one\ntwo\n")
    command = service.log_command(False, 1)
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "two\n"


def test_no_log_at_all_is_said(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["service", "logs"]) == 1
    assert "updraft events" in capsys.readouterr().err


def test_systemd_watches_it_and_dumps_no_core_with_keys() -> None:
    lines = shipped("updraft.service").splitlines()
    assert {"Type=notify", "WatchdogSec=2min", "WatchdogSignal=SIGKILL", "Restart=on-failure"} <= set(lines)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "updraft"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "updraft.service"
    unit.write_text(shipped("updraft.service").replace("/usr/local/bin/updraft", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "updraft" in line]
    assert not ours
