"""What root may run or read: nobody else may write on the whole way to it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.provision.setup import strict
from updraft.provision.setup.strict import changeable, changeable_below

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to give files away")
OTHER = 65534


@pytest.fixture
def way(tmp_path: Path) -> Path:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("")
    return tmp_path


def test_roots_own_way_is_nobody_elses(way: Path) -> None:
    assert changeable(way / "a/b/file") == ""
    assert changeable(way / "a/b/not-there-yet") == ""
    assert changeable_below(way / "a") == ""


@pytest.mark.parametrize("part", ["a", "a/b", "a/b/file"])
def test_each_part_of_the_way_counts(way: Path, part: str) -> None:
    file, at = way / "a/b/file", way / part
    os.chown(at, OTHER, 0)
    assert changeable(file).startswith(f"{at} belongs to the user ")
    os.chown(at, 0, OTHER)
    assert changeable(file) == ""
    mode = at.stat().st_mode & 0o777
    at.chmod(mode | 0o020)
    assert changeable(file) == f"{at} may be written by its group"
    os.chown(at, 0, 0)
    assert changeable(file) == ""
    at.chmod(mode | 0o002)
    assert changeable(file) == f"{at} may be written by everybody"


def test_where_a_link_leads_counts_and_so_does_where_it_is(way: Path) -> None:
    (way / "open").mkdir()
    (way / "open").chmod(0o777)
    (way / "open/file").write_text("")
    (way / "a/link").symlink_to("../open/file")
    assert changeable(way / "a/link") == f"{way}/open may be written by everybody"
    (way / "open/back").symlink_to(way / "a/b/file")
    assert changeable(way / "open/back") == f"{way}/open may be written by everybody"
    (way / "a/round").symlink_to("round")
    with pytest.raises(OSError, match="too many links"):
        changeable(way / "a/round")


def test_in_a_folder_as_tmp_nobody_replaces_roots(way: Path) -> None:
    (way / "a").chmod(0o1777)
    assert changeable(way / "a/b/file") == ""
    os.chown(way / "a/b", OTHER, 0)
    assert changeable(way / "a/b/file") != ""


@given(
    st.lists(
        st.tuples(st.sampled_from([0, OTHER]), st.sampled_from([0o755, 0o775, 0o757, 0o700])), max_size=4
    )
)
def test_it_is_safe_only_where_every_part_is(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int]]
) -> None:
    at, safe = tmp_path_factory.mktemp("way"), True
    top = at
    for owner, mode in parts:
        at = at / "x"
        at.mkdir()
        at.chmod(mode)
        os.chown(at, owner, OTHER)
        safe &= owner in strict.TRUSTED and not mode & 0o022
    assert (changeable(at) == "") is safe
    assert (changeable_below(top) == "") is safe
