"""`updraft local`: which cloud is meant where none is named. The cloud itself is tried in tests/clouds."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rigs.clouds.made import made
from updraft.cli import main
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.process import usual_state
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, STATE
from updraft.errors import AuthFailed

Capture = pytest.CaptureFixture[str]


class Standing:
    """A cloud with a head, and a worker that has ended."""

    pid = 7
    endpoint = "unix:/srv/mine/api.sock"
    credential_file = Path("/srv/mine/controller.token")
    config = LocalCloudConfig(images={})

    def client(self) -> "Standing":
        return self

    def machines(self) -> list[dict[str, Any]]:
        rest = {"flavor": "small", "zone": "zone-a", "address": "10.77.0.2", "why_ended": ""}
        return [
            {"id": "i-1", "state": "running", "times": {"pending": 1.0}, **rest},
            {"id": "i-2", "state": "terminated", "times": {"pending": 2.0}, **rest},
        ]


@pytest.mark.parametrize(
    ("endpoint", "state"),
    [
        ("unix:/srv/mine/api.sock", Path("/srv/mine")),
        ("http://10.77.0.1:8774", STATE),  # what a machine of a cloud has, not its host
        ("unix:/srv/mine/other.sock", STATE),
        ("", STATE),
    ],
)
def test_the_cloud_that_the_environment_names_is_meant(
    endpoint: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, endpoint)
    assert usual_state() == state


def test_the_verbs_look_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, f"unix:{tmp_path}/api.sock")
    assert main.call(["local", "status"]) == 1
    assert f"No cloud runs in {tmp_path}" in capsys.readouterr().err
    assert main.call(["local", "down", "--state", "/srv/mine"]) == 0
    assert "No cloud runs in /srv/mine" in capsys.readouterr().out


def test_up_says_what_a_head_in_it_needs_and_what_this_host_does(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    image = SimpleNamespace(name="forky", layers=())
    monkeypatch.setattr("updraft.cli.setup.local.images.build", lambda *_args, **_more: image)
    monkeypatch.setattr("updraft.cli.setup.local.process.start", lambda _config, _state: Standing())
    assert main.call(["local", "up"]) == 0
    said = capsys.readouterr().out
    assert 'endpoint = "unix:/srv/mine/api.sock"' in said
    assert 'endpoint = "http://10.77.0.1:8774"' in said
    assert f"export {ENDPOINT_VARIABLE}=unix:/srv/mine/api.sock" in said


def test_machines_that_have_ended_are_not_those_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("updraft.cli.setup.local.process.find", lambda _state: Standing())
    assert main.call(["local", "status"]) == 0
    said = capsys.readouterr().out
    assert "has 1 machine; 1 ended lately." in said
    assert said.count("i-") == 2


def test_beside_its_socket_is_where_the_credential_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UPDRAFT_LOCAL_CLOUD_TOKEN", raising=False)
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    settings = {"endpoint": f"unix:{tmp_path}/api.sock"}
    with pytest.raises(AuthFailed, match=f"{tmp_path}/controller.token can't be read"):
        made("local", "local", "p", settings)
    (tmp_path / "controller.token").write_text("a-credential\n")
    assert made("local", "local", "p", settings).name == "local"  # it is taken: no role is asked for
    monkeypatch.setenv("UPDRAFT_LOCAL_CLOUD_TOKEN", "another")
    (tmp_path / "controller.token").unlink()
    assert made("local", "local", "p", settings).name == "local"
