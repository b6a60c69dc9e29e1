"""`updraft head init` and `undo` as a person meets them; over a root in a folder."""

import base64
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.rigs.machines import FakeHost, picture
from updraft.cli import main
from updraft.core.model import LaunchRecord, LaunchState, Resources
from updraft.ledger import Ledger

SETTINGS = """\
[pool]
name = "mine"
state_dir = "STATE"

[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
"""


def open_ledger(site: Path) -> None:
    """What the service does at its start."""
    (site / "state").mkdir(exist_ok=True)
    with Ledger(site / "state/ledger.sqlite"):
        pass


def launch_is_open(ledger: Ledger) -> None:
    """A machine was asked for, and nobody knows yet whether it is there."""
    ledger.intend(
        LaunchRecord(
            key="k", cloud="here", zone="a", flavor="small", market="on-demand", worker_class="default",
            image="worker", generation="g", count=1, resources=Resources(1, 1024, 1024), price=None,
            asked_at=1.0, state=LaunchState.INTENDED,
        )
    )  # fmt: skip


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """This machine, with an updraft.toml at its place."""
    from updraft.provision.setup import host as hosts
    from updraft.provision.setup import tree as trees

    made, real = FakeHost(), trees.Tree
    made.settings |= {"TRUST_DOMAIN": "mine.pool", "UID_DOMAIN": "mine.pool", "CONDOR_HOST": "10.0.0.1"}
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/home").mkdir()
    (tmp_path / "updraft.toml").write_text(SETTINGS.replace("STATE", str(tmp_path / "state")))
    made.starts = {"updraft.service": partial(open_ledger, tmp_path)}
    monkeypatch.setattr(hosts, "Host", lambda: made)
    monkeypatch.setattr(trees, "Tree", lambda: real(tmp_path / "root"))
    monkeypatch.setattr("updraft.provision.setup.service.CODE", ())
    monkeypatch.setattr("updraft.provision.setup.strict.TRUSTED", {0, os.getuid()})
    monkeypatch.setattr("updraft.provision.setup.service.program_here", lambda: "/usr/local/bin/updraft")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.delenv("SUDO_USER", raising=False)
    return made


def init(*words: str, test: bool = False) -> int:
    return main.call(["head", "init", *([] if test else ["--no-self-test"]), *words])


def token(domain: str = "mine.pool", scope: str = "condor:/ADVERTISE_SCHEDD") -> str:
    told = json.dumps({"iss": domain, "scope": scope}).encode()
    return f"e30.{base64.urlsafe_b64encode(told).decode().rstrip('=')}.c2ln"


def test_a_dry_run_shows_all_and_writes_nothing(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.root = False
    before = picture(tmp_path)
    assert init("--dry-run") == 0
    said = capsys.readouterr().out
    assert "+DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD" in said
    assert "+TRUST_DOMAIN = mine.pool" in said
    assert "# the account user: new" in said
    assert f"ExecStart=/usr/local/bin/updraft --config {tmp_path}/updraft.toml run" in said
    assert picture(tmp_path) == before
    assert not host.accounts


def test_init_again_and_undo(host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = picture(tmp_path / "root")
    assert init() == 0
    said = capsys.readouterr().out
    assert "This machine is a head (central-manager, submit)" in said
    assert "--address takes a name" in said
    assert "condor_token_create -identity condor@mine.pool" in said
    assert init() == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert main.call(["head", "undo", "--dry-run"]) == 0
    assert "- /etc/condor/config.d/90-updraft.conf" in capsys.readouterr().out
    assert main.call(["head", "undo"]) == 0
    assert "This machine is no head any more" in capsys.readouterr().out
    assert picture(tmp_path / "root") == before
    assert main.call(["head", "undo"]) == 0
    assert "Nothing to undo" in capsys.readouterr().out


def lost(site: Path) -> None:
    (site / "updraft.toml").rename(site / "elsewhere.toml")


def moved_ledger(site: Path) -> None:
    (site / "state").rename(site / "state.away")


def damaged_ledger(site: Path) -> None:
    for one in (site / "state").iterdir():
        one.unlink()
    (site / "state/ledger.sqlite").write_bytes(b"not a ledger" * 1000)


def no_toml(site: Path) -> None:
    (site / "updraft.toml").write_text("[pool\n")


@pytest.mark.parametrize(
    ("arrange", "why"),
    [
        (lost, "updraft.toml: cannot be read"),
        (moved_ledger, "there is no ledger"),
        (damaged_ledger, "the ledger"),
        (no_toml, "not TOML"),
    ],
)
def test_undo_stops_nothing_while_nobody_can_tell_whether_there_are_machines(
    host: FakeHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arrange: Callable[[Path], None],
    why: str,
) -> None:
    assert init() == 0
    monkeypatch.delenv("UPDRAFT_CONFIG")
    monkeypatch.chdir(tmp_path / "root")
    arrange(tmp_path)
    host.calls.clear()
    before = picture(tmp_path)
    assert main.call(["head", "undo"]) == 2
    err = capsys.readouterr().err
    assert "whether the pool has machines can't be told" in err
    assert why in err
    assert "--leave-machines" in err
    assert len(err.splitlines()) == 1
    assert picture(tmp_path) == before
    assert not [call for call in host.calls if "stop" in call]
    if arrange is lost:
        assert main.call(["--config", str(tmp_path / "elsewhere.toml"), "head", "undo"]) == 0
    else:
        assert main.call(["head", "undo", "--leave-machines"]) == 0


@pytest.mark.parametrize("another", [False, True], ids=["none", "of another pool"])
def test_undo_asks_the_ledger_of_the_head_wherever_it_is_called(
    host: FakeHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    another: bool,
) -> None:
    assert init() == 0
    with Ledger(tmp_path / "state/ledger.sqlite") as ledger:
        launch_is_open(ledger)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    if another:
        text = SETTINGS.replace("STATE", str(tmp_path / "other/state"))
        (tmp_path / "other/updraft.toml").write_text(text)
        monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "other/updraft.toml"))
    else:
        monkeypatch.delenv("UPDRAFT_CONFIG")
    assert main.call(["head", "undo"]) == 2
    assert "the pool has 1 machine: `updraft destroy --wait` first" in capsys.readouterr().err


def test_run_again_elsewhere_it_keeps_its_configuration(
    host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init() == 0
    monkeypatch.delenv("UPDRAFT_CONFIG")
    monkeypatch.chdir(tmp_path / "root")
    assert init() == 0
    assert "Nothing to do" in capsys.readouterr().out
    lost(tmp_path)
    assert init() == 2
    assert "which this head was made with, is not there" in capsys.readouterr().err


def test_a_configuration_that_others_may_change_makes_no_service_of_roots(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "updraft.toml").chmod(0o666)
    before = picture(tmp_path)
    assert init() == 2
    assert f"{tmp_path}/updraft.toml may be written by everybody; put it into /etc" in capsys.readouterr().err
    assert picture(tmp_path) == before
    assert init("--dry-run") == 0


def test_an_htcondor_at_work_is_taken_over_only_when_that_was_said(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.running |= {"condor.service", "condor_master"}
    host.answers["condor_q -allusers"] = (0, "1\n2\n")
    before = picture(tmp_path)
    assert init() == 2
    assert "its queue has 2 jobs, and it would be restarted" in capsys.readouterr().err
    assert picture(tmp_path) == before
    assert not host.accounts
    assert "systemctl restart condor.service" not in host.calls
    assert init("--disturb") == 0
    assert "systemctl restart condor.service" in host.calls


def test_a_stable_name_is_the_machines_own_for_htcondor(host: FakeHost, tmp_path: Path) -> None:
    host.names, host.own = {"head.site": {"10.0.0.1"}}, {"10.0.0.1"}
    host.settings["CONDOR_HOST"] = "head.site"
    assert init("--address", "head.site", "--public-address", "metadata") == 0
    config = (tmp_path / "root/etc/condor/config.d/90-updraft.conf").read_text()
    assert "CONDOR_HOST = head.site\n" in config
    assert "NETWORK_HOSTNAME = head.site\n" in config
    assert "TCP_FORWARDING_HOST" not in config, "it is found at each start"
    assert (tmp_path / "root/usr/local/lib/updraft/public-address").exists()
    assert "PUBLIC=metadata" in (tmp_path / "root/etc/updraft/head.conf").read_text()


def test_the_pools_size_sets_its_intervals(host: FakeHost, tmp_path: Path) -> None:
    assert init("--machines", "20") == 0
    config = tmp_path / "root/etc/condor/config.d/90-updraft.conf"
    assert "NEGOTIATOR_INTERVAL = 5\n" in config.read_text()
    assert init("--machines", "5000") == 0
    assert "NEGOTIATOR_INTERVAL = 60\n" in config.read_text()


def test_run_again_without_flags_it_keeps_to_what_was_said(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init("--machines", "5000", "--user", "anna") == 0
    before = picture(tmp_path)
    assert init() == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert picture(tmp_path) == before


def test_a_submit_node_joins_with_a_token(host: FakeHost, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token() + "\n")
    host.settings |= {"CONDOR_HOST": "head.site", "DAEMON_LIST": "MASTER SCHEDD"}
    words = ["--roles", "submit", "--central-manager", "head.site", "--domain", "mine.pool"]
    assert init(*words, "--join", str(tmp_path / "token")) == 0
    assert (tmp_path / "root/etc/condor/tokens.d/updraft-pool").read_text() == token() + "\n"
    assert not (tmp_path / "root/etc/systemd/system/updraft.service").exists()
    assert init() == 0, "and it needs none any more"


def test_in_the_way_is_replaced_only_when_that_was_said(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "root/etc/condor/config.d/90-updraft.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("MINE = 1\n")
    before = picture(tmp_path / "root")
    assert init() == 2
    assert "--replace" in capsys.readouterr().err
    assert picture(tmp_path / "root") == before
    assert init("--replace") == 0
    assert main.call(["head", "undo"]) == 0
    assert picture(tmp_path / "root") == before


SUBMIT = ["--roles", "submit", "--domain", "mine.pool"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--roles", "worker"], '"worker" is not central-manager, submit, or both'),
        (["--roles", ""], "--roles"),
        (["--roles", "submit"], "say the pool's trust domain"),
        (SUBMIT, "has to be told where its pool is"),
        ([*SUBMIT, "--central-manager", "h"], "condor_token_create -identity condor@mine.pool"),
        ([*SUBMIT, "--central-manager", "h", "--join", "{bad}"], "holds no token of HTCondor's"),
        ([*SUBMIT, "--central-manager", "h", "--join", "{other}"], "good in the trust domain other"),
        ([*SUBMIT, "--central-manager", "h", "--join", "{weak}"], "lets no submit node in"),
        (["--central-manager", "h"], "--central-manager is not for"),
        (["--domain", "a b"], "no domain name"),
        (["--user", "Anna!"], "no name for a user account"),
        (["--address", "nowhere.test"], "can resolve"),
        (["--address", "a b"], "not of the form"),
        (["--public-address", "name"], "neither an address nor"),
        (["--machines", "0"], "--machines"),
        (["--condor", "x"], "no version of HTCondor"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_writes_nothing(
    host: FakeHost,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    for name, text in (("bad", "no token"), ("other", token("other")), ("weak", token(scope="condor:/READ"))):
        (tmp_path / name).write_text(text)
    before = picture(tmp_path)
    places = {name: str(tmp_path / name) for name in ("bad", "other", "weak")}
    assert init(*(word.format(**places) for word in words)) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert picture(tmp_path) == before


def test_without_root_or_htcondor_it_says_what_is_missing(
    host: FakeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    host.root = False
    assert init() == 2
    assert "run it with sudo" in capsys.readouterr().err
    assert main.call(["head", "undo"]) == 2
    host.root, host.programs = True, {"systemctl"}
    assert init() == 2
    assert "apt-get install condor" in capsys.readouterr().err


def test_install_runs_the_recipes_and_leaves_none_of_them(host: FakeHost, tmp_path: Path) -> None:
    host.programs = {"systemctl"}
    scripts = tmp_path / "root/usr/local/lib/updraft"
    answer = host.answer

    def installs(words: list[str], user: str, folder: Path) -> tuple[int, str]:
        if words[0] == "sh" and words[1].endswith("/install"):
            assert (scripts / "install-debian").exists()
            host.programs.add("condor_master")
        return answer(words, user, folder)

    host.answer = installs  # type: ignore[method-assign]
    assert init("--install") == 0
    assert not (scripts / "install").exists()
    assert "condor_master" in host.running


def test_an_installation_that_fails_is_one_sentence(
    host: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.programs = {"systemctl"}
    before = picture(tmp_path)
    host.answers["sh /usr/local/lib/updraft/install"] = (1, "no network\n")
    assert init("--install") == 1
    assert capsys.readouterr().err == "updraft: HTCondor can't be installed: no network\n"
    assert picture(tmp_path) == before


def test_without_an_updraft_toml_the_pool_comes_first(
    host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("UPDRAFT_CONFIG")
    monkeypatch.chdir(tmp_path / "root")
    monkeypatch.setattr("updraft.config.USUAL_PLACES", ())
    host.settings |= {"TRUST_DOMAIN": "a.pool", "UID_DOMAIN": "a.pool"}
    assert init("--domain", "a.pool") == 0
    assert "write one with `updraft init`" in capsys.readouterr().out
    assert not (tmp_path / "root/etc/systemd/system/updraft.service").exists()
