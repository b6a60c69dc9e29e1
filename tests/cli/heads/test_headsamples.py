"""`updraft head samples`: sample jobs from the installed package, at somebody's home."""

import os
import pwd
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from updraft.bootstrap.head.userdata import SAMPLES
from updraft.bootstrap.machine import shipped
from updraft.cli import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of `anna`, who has the rights of whoever runs the tests."""
    found = tmp_path / "anna"
    found.mkdir()
    anna = pwd.struct_passwd(("anna", "x", os.getuid(), os.getgid(), "", str(found), "/bin/sh"))
    real = pwd.getpwnam
    monkeypatch.setattr("pwd.getpwnam", lambda name: anna if name == "anna" else real(name))
    return found


def test_they_are_the_packages_own_files(home: Path) -> None:
    assert main.call(["head", "samples", "anna"]) == 0
    assert {path.name for path in home.iterdir()} == set(SAMPLES)
    for name, mode in SAMPLES.items():
        assert (home / name).read_text() == shipped(f"samples/{name}")
        assert (home / name).stat().st_mode & 0o777 == int(mode, 8)


def test_what_is_there_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "test.sub").write_text("mine\n")
    (home / "README.txt").symlink_to(home / "elsewhere")
    assert main.call(["head", "samples", "anna"]) == 0
    assert (home / "test.sub").read_text() == "mine\n"
    assert not (home / "elsewhere").exists()
    assert (home / "test.sh").exists()
    assert capsys.readouterr().out.count("is there already, and stays") == 2


def test_nobodys_home_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["head", "samples", "no-such-person"]) == 2
    assert "there is no user no-such-person here" in capsys.readouterr().err


@pytest.mark.integration
def test_root_writes_in_a_home_with_the_rights_of_its_owner_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    nobody = pwd.getpwnam("nobody")
    with TemporaryDirectory() as home:
        entry = ("anna", "x", nobody.pw_uid, nobody.pw_gid, "", home, "/bin/sh")
        monkeypatch.setattr("pwd.getpwnam", lambda _name: pwd.struct_passwd(entry))
        Path(home).chmod(0o755)
        assert main.call(["head", "samples", "anna"]) == 2, "not its owner's home"
        assert not list(Path(home).iterdir())
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        assert main.call(["head", "samples", "anna"]) == 0
        assert {path.stat().st_uid for path in Path(home).iterdir()} == {nobody.pw_uid}
