"""`[pool] act = false`: every verb that would have the pool changed refuses, before it writes anything."""

import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.rigs.annexworlds import annex
from updraft import config
from updraft.cli import main
from updraft.cli.annexes import asking
from updraft.cli.verbs import VERBS, load_verb
from updraft.core.model import MachineRecord
from updraft.daemon.annex_requests import client
from updraft.ledger import Ledger, annexes
from updraft.ledger.clouds import overrides

Capture = pytest.CaptureFixture[str]
SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"
act = {act}
[clouds.here]
driver = "fake"
[classes.default]
image = "worker"
"""

# What a daemon would carry out, as it is asked for.
REFUSED = {
    "drain": ("i-0001",),
    "undrain": ("i-0001",),
    "terminate": ("i-0001", "--kill-jobs"),
    "adopt": ("i-0001",),
    "disown": ("i-0001",),
    "destroy": ("--yes",),
    "annex create": ("more", "--count", "1", "--unchecked"),
    "annex extend": ("burst", "--duration", "2h"),
    "annex stop": ("burst",),
    "annex delete": ("burst",),
    "cloud enable": ("here",),
    "cloud disable": ("here", "--drain"),
    "cloud limit": ("here", "--machines", "3"),
    "cloud reset": ("here",),
}
# What is done by the command itself, at once and by the hand of who calls: to set up, or to clear up.
BY_HAND = {
    *("demo", "init", "import", "usage import", "web open"),
    *("network ensure", "leftovers", "tokens revoke", "tokens rotate"),
    *(
        "image upload",
        "image download",
        "image copy",
        "image share",
        "image delete",
        "image build",
        "image make",
    ),
    *("head init", "head undo", "head launch", "head terminate", "head image", "service install"),
    *("local up", "local down", "local image", "local shell"),
}
READS = {  # `run` as well: its parts can't change anything (tests/daemon/test_watching.py)
    *("check", "images", "offers", "network check", "image list", "image show", "config check"),
    *(
        "plan",
        "run",
        "replay",
        "status",
        "machines",
        "cloud list",
        "cloud show",
        "annex list",
        "annex status",
    ),
    *("usage", "metrics", "report", "web", "events", "simulate", "explain", "head list", "head samples"),
    *("userdata worker", "userdata schedd", "userdata head", "pool config", "pool load"),
    *("service status", "service logs", "tokens list", "local status", "version"),
}


def verbs(command: click.Command, path: str) -> Iterator[str]:
    """Every verb that can be called, with the ones below it."""
    group = isinstance(command, click.Group)
    if not group or command.invoke_without_command:
        yield path
    for name, below in command.commands.items() if group else ():
        yield from verbs(below, f"{path} {name}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site that only watches, whose ledger knows a machine and an annex from before."""
    watches(tmp_path, "false")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    now = time.time()
    with ledger_of(tmp_path) as ledger:
        ledger.remember([MachineRecord("i-0001", "here", "k1", "default", "small", "0123456789ab", now - 60)])
        annexes.create(ledger, annex("burst", since=now - 60, until=now + 3600), "root@here")
    return tmp_path


def watches(site: Path, act: str) -> None:
    (site / "updraft.toml").write_text(SETTINGS.format(act=act))


def ledger_of(site: Path) -> Ledger:
    return Ledger(config.place(site / "updraft.toml").ledger)


def written(site: Path) -> list[object]:
    """All that wishes can be written into."""
    with ledger_of(site) as ledger:
        return [ledger.events(), ledger.annexes(), overrides(ledger), ledger.requests()]


def test_each_verb_has_its_place_here() -> None:
    there = {path for name in VERBS for path in verbs(load_verb(name), name)}
    assert there == REFUSED.keys() | BY_HAND | READS


@pytest.mark.parametrize("flag", ["", "--json"])
@pytest.mark.parametrize("verb", REFUSED)
def test_a_verb_that_acts_refuses_and_writes_nothing(
    site: Path, capsys: Capture, verb: str, flag: str
) -> None:
    before = written(site)
    code = main.call([*verb.split(), *REFUSED[verb], *filter(None, [flag])])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "updraft only watches (" in err
    assert "[pool] act = false" in err
    assert written(site) == before


@pytest.mark.parametrize("verb", REFUSED)
def test_where_it_acts_the_same_words_are_written_down(site: Path, capsys: Capture, verb: str) -> None:
    """Else the refusals above could be those of a mistake in the words."""
    watches(site, "true")
    before = written(site)
    main.call([*verb.split(), *REFUSED[verb]])
    assert "only watches" not in capsys.readouterr().err
    assert written(site) != before


def test_a_person_who_can_not_write_the_ledger_is_told_the_same(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "needed", lambda _call: True)
    monkeypatch.setenv(client.PLACE, str(site / "no.sock"))
    for verb in (one for one in REFUSED if one.startswith("annex ")):
        assert main.call([*verb.split(), *REFUSED[verb]]) == 2
        assert "only watches" in capsys.readouterr().err


def test_the_pool_is_not_taken_over(site: Path, capsys: Capture) -> None:
    files = sorted((site / "state").iterdir())
    assert main.call(["adopt", "--take-over", "--yes"]) == 2
    assert "only watches" in capsys.readouterr().err
    assert sorted((site / "state").iterdir()) == files


def test_what_would_be_bought_may_be_asked(site: Path, capsys: Capture) -> None:
    main.call(["annex", "create", "more", "--count", "1", "--unchecked", "--dry-run"])
    assert "only watches" not in capsys.readouterr().err


def test_explaining_a_machine_says_that_nothing_is_done(site: Path, capsys: Capture) -> None:
    assert main.call(["explain", "i-0001"]) == 0
    assert capsys.readouterr().out.startswith("updraft only watches ([pool] act = false)")
    watches(site, "true")
    assert main.call(["explain", "i-0001"]) == 0
    assert "only watches" not in capsys.readouterr().out
