"""What updraft.toml says of users' own annexes, and what the daemon makes of it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.snapshots import NOW, snapshot
from updraft.app.serving import annex_desk
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.config import load
from updraft.core.model import Annex, MachineRecord, Plan, Variant
from updraft.core.settings import AnnexAllowance
from updraft.daemon import Cycle
from updraft.daemon.annex_requests.client import ask
from updraft.daemon.annex_requests.desk import TOLD
from updraft.daemon.annexing import check_told
from updraft.errors import ConfigError, UsageError
from updraft.ledger import Ledger

PLAIN = """
[pool]
name = "test"
[clouds.c1]
driver = "fake"
[classes.default]
image = "img"
"""


def allowances(tmp_path: Path, more: str) -> list[tuple[str, AnnexAllowance]]:
    file = tmp_path / "updraft.toml"
    file.write_text(PLAIN + more)
    return list(load(file).policy().annex_allowances.items())


def test_without_a_word_of_it_nobody_may(tmp_path: Path) -> None:
    assert allowances(tmp_path, "[users.ann]\nmachines = 3\n") == []


def test_users_own_tables_come_first_and_take_what_they_leave_out_from_the_common_one(tmp_path: Path) -> None:
    text = """
[annexes]
users = ["ann", "phys*"]
machines = 10
cost_per_hour = 2.5
longest = "2h"
classes = "gpu*"
[users.ann]
annex_machines = 20
annex_cores = 0
"""
    rest = {"cost_per_hour": 2.5, "longest": 7200.0, "classes": ("gpu*",)}
    assert allowances(tmp_path, text) == [
        ("ann", AnnexAllowance(20, 0, **rest)),  # type: ignore[arg-type]
        ("phys*", AnnexAllowance(10, None, **rest)),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[annexes]\nusers = ["ann"]\n', "without any ceiling"),
        ("[annexes]\nmachines = -1\n", "must be at least 0"),
        ("[annexes]\ncost_per_hour = inf\n", "finite"),
        ('[annexes]\nlongest = "0s"\n', "longest"),
        ("[annexes]\nmachine = 1\n", "machines"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        allowances(tmp_path, text)


def test_the_daemon_opens_a_socket_for_those_who_may_and_shows_the_desk_what_it_sees(tmp_path: Path) -> None:
    place = tmp_path / "run" / "annex.sock"
    text = f'[annexes]\nusers = "*"\nmachines = 1\nsocket = "{place}"\n'
    allowances(tmp_path, text)
    settings = load(tmp_path / "updraft.toml")
    with Ledger(tmp_path / "ledger.db") as ledger, annex_desk(settings, ledger) as desk:
        seen = replace(snapshot(), now=time.time())
        machines = FakeCloud(
            Site("c1", site_settings("c1", {}), time.time), "test"
        )  # no part says that it shows tags
        desk.watch(Cycle(seen, Plan(), None), settings.policy(), {"c1": Cloud("c1", machines)})
        assert ledger.noted(TOLD) == {"c1": False}
        assert ask("list", at=place)["annexes"] == []
    assert not place.exists()


def test_a_socket_that_cannot_be_opened_does_not_keep_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    allowances(tmp_path, f'[annexes]\nusers = "*"\nmachines = 1\nsocket = "{tmp_path}/file/annex.sock"\n')
    settings = load(tmp_path / "updraft.toml")
    with Ledger(tmp_path / "ledger.db") as ledger, annex_desk(settings, ledger) as desk:
        assert desk is not None


def test_a_lease_is_not_moved_where_its_machines_would_not_hear_of_it() -> None:
    annex = Annex("burst", "ann", "default", 1, 0, until=NOW + 60, idle=900.0)
    there = MachineRecord("i-1", "c1", "k", "default", "small", "g1", NOW, variant=annex.variant)
    with pytest.raises(UsageError, match="cloud c1 tells its machines of no later lease"):
        check_told(annex, [there], {"c1": False, "c2": True})
    check_told(annex, [replace(there, cloud="c2")], {"c1": False, "c2": True})
    check_told(annex, [replace(there, ended_at=NOW)], {"c1": False})
    check_told(annex, [replace(there, variant=Variant())], {"c1": False})
    check_told(annex, [there], {})
