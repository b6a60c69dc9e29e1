"""What tells a pool from others of its name, and a head from its copy."""

import shutil
import stat
from pathlib import Path

import pytest

from updraft.errors import LedgerError
from updraft.ledger.identity import (
    Host,
    controller_in,
    elsewhere,
    found,
    kept,
    take_over,
    this_host,
    well_formed,
)

HERE = Host("i-1", "ec2d7b1c-0000-1111-2222-333344445555")


def test_it_is_made_once_and_outlives_the_ledger(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert found(state) is None
    made = kept(state, HERE)
    assert well_formed(made.pool)
    assert well_formed(made.controller)
    assert kept(state, HERE) == found(state) == made
    assert kept(tmp_path / "other", HERE).pool != made.pool
    stand_in = kept(tmp_path / "standby", Host("i-2"), made.pool)
    assert stand_in.pool == made.pool
    assert stand_in.controller != made.controller
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert [file.name for file in state.iterdir()] == ["identity"]


def test_a_head_that_its_cloud_knows_finds_itself_again_when_all_was_lost(tmp_path: Path) -> None:
    made = kept(tmp_path, HERE)
    (tmp_path / "identity").unlink()
    again = kept(tmp_path, HERE)
    assert again.pool == made.pool
    assert again.controller != made.controller
    for other in (Host("i-2", HERE.dmi), Host(HERE.instance, "another"), Host("", HERE.dmi)):
        (tmp_path / "identity").unlink()
        assert kept(tmp_path, other).pool != made.pool


def test_what_firmware_says_is_not_unique_enough_to_be_an_identity(tmp_path: Path) -> None:
    kinds = {kept(tmp_path / str(number), Host("", HERE.dmi)).pool for number in range(2)}
    (tmp_path / "0" / "identity").unlink()
    assert kept(tmp_path / "0", Host("", HERE.dmi)).pool not in kinds


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        (HERE, HERE, True),
        (HERE, Host("i-2", HERE.dmi), False),
        (HERE, Host(HERE.instance, "another"), False),
        (HERE, Host("", HERE.dmi), True),
        (HERE, Host(HERE.instance, ""), True),
        (HERE, Host(), False),
        (Host("", HERE.dmi), Host("i-2", ""), False),
        (Host(), HERE, True),
        (Host(), Host(), True),
    ],
)
def test_a_copy_is_on_another_host(tmp_path: Path, then: Host, now: Host, same: bool) -> None:
    """What both say has to be alike; one that once said something of itself and says nothing more isn't."""
    known = kept(tmp_path, then)
    why = elsewhere(known, now)
    assert (why is None) == same
    if why is not None:
        assert why.code == "another-host"
        assert "`updraft adopt --take-over`" in why.text


def test_a_copy_on_the_same_host_is_of_the_same_pool_and_another_controller(tmp_path: Path) -> None:
    state, copy, link = tmp_path / "state", tmp_path / "copy", tmp_path / "link"
    made = kept(state, HERE)
    shutil.copytree(state, copy)
    link.symlink_to(state)
    again = kept(copy, HERE)
    assert again.pool == made.pool
    assert elsewhere(again, HERE) is None
    assert controller_in(copy, again) != controller_in(state, made)
    assert controller_in(link, kept(link, HERE)) == controller_in(state, made)


def test_what_a_host_says_later_is_learned_and_a_copy_teaches_nothing(tmp_path: Path) -> None:
    kept(tmp_path, Host("", HERE.dmi))
    assert kept(tmp_path, HERE).host == HERE
    assert kept(tmp_path, Host("i-2", "another")).host == HERE


def test_a_takeover_keeps_the_pool_and_names_a_new_controller(tmp_path: Path) -> None:
    first = kept(tmp_path, HERE)
    there = Host("i-2", "another")
    taken = take_over(tmp_path, there)
    assert taken == found(tmp_path)
    assert elsewhere(taken, there) is None
    assert elsewhere(taken, HERE) is not None
    assert taken.pool == first.pool
    assert taken.controller != first.controller
    assert take_over(tmp_path / "new", HERE, "0123456789ab").pool == "0123456789ab"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"pool": 1}', "\x00", "null", '{"pool": "x y"}'])
def test_a_damaged_file_is_named_and_not_made_anew(tmp_path: Path, text: str) -> None:
    """A new identity would make all machines of the pool another's."""
    kept(tmp_path, HERE)
    (tmp_path / "identity").write_text(text)
    with pytest.raises(LedgerError, match="is damaged"):
        kept(tmp_path, HERE)
    assert (tmp_path / "identity").read_text() == text
    assert take_over(tmp_path, HERE, "0123456789ab").pool == "0123456789ab"


def test_one_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="can't be"):
        kept(tmp_path / "file" / "state", HERE)


def test_a_host_says_what_its_cloud_and_its_firmware_say(tmp_path: Path) -> None:
    assert this_host(tmp_path) == Host()
    (tmp_path / "var/lib/cloud/data").mkdir(parents=True)
    (tmp_path / "var/lib/cloud/data/instance-id").write_text("i-0abc\n")
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/product_uuid").write_text("EC2D7B1C-\x1b[2J" + "x" * 9000)
    assert this_host(tmp_path) == Host("i-0abc", "ec2d7b1c-[2j" + "x" * 243)
