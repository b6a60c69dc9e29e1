"""Files are written in one step or not at all, nothing of anybody else's is lost, and all is taken back."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.machines import picture
from updraft.errors import ProblemFound, UsageError
from updraft.provision.setup import applying
from updraft.provision.setup import tree as trees
from updraft.provision.setup.tree import STATE, State, Tree, Wanted

CONF = "/etc/condor/config.d/90-updraft.conf"
KEY = "/etc/condor/passwords.d/key"
WANTED = (
    Wanted(CONF, "A = 1\n"),
    Wanted(KEY, "secret-of-this-key", 0o600, secret=True, keep=True),
    Wanted("/etc/systemd/system/condor.service.d/updraft.conf", "[Service]\n"),
)
FACTS = {"at": 1}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "etc/condor/config.d").mkdir(parents=True)
    (tmp_path / "etc/condor/config.d/00-security").write_text("use security:recommended\n")
    (tmp_path / "var/lib").mkdir(parents=True)
    return Tree(tmp_path)


def write(tree: Tree, wanted: tuple[Wanted, ...] = WANTED, facts: Mapping[str, Any] = FACTS) -> Any:
    book = tree.book()
    return applying.apply(tree, book, trees.compare(tree, book, wanted), facts)


def states(tree: Tree, wanted: tuple[Wanted, ...] = WANTED) -> list[State]:
    return [one.state for one in trees.compare(tree, tree.book(), wanted)]


def test_what_is_written_is_there_and_a_second_time_nothing_is_to_do(tree: Tree) -> None:
    assert states(tree) == [State.NEW] * 3
    write(tree)
    assert tree.at(CONF).read_text() == "A = 1\n"
    assert tree.at(KEY).stat().st_mode & 0o777 == 0o600
    assert states(tree) == [State.SAME] * 3
    assert tree.at(tree.manifest).stat().st_mode & 0o777 == 0o600
    assert tree.at(STATE).stat().st_mode & 0o777 == 0o700


def test_undo_leaves_the_tree_as_it_was(tree: Tree) -> None:
    before = picture(tree.root)
    write(tree)
    assert picture(tree.root) != before
    assert applying.undo(tree, tree.book()) == []
    assert picture(tree.root) == before


def test_a_key_that_is_there_is_kept_and_never_shown(tree: Tree) -> None:
    tree.at(KEY).parent.mkdir()
    tree.at(KEY).write_text("of the pool's owner")
    [_, key, _] = trees.compare(tree, tree.book(), WANTED)
    assert (key.state, trees.shown(key)) == (State.SAME, "")
    write(tree)
    applying.undo(tree, tree.book())
    assert tree.at(KEY).read_text() == "of the pool's owner"


def test_a_diff_shows_lines_and_no_secret(tree: Tree) -> None:
    write(tree, (Wanted(CONF, "A = 1\nB = 2\n"),))
    told = "".join(trees.shown(one) for one in trees.compare(tree, tree.book(), WANTED))
    assert "-B = 2" in told
    assert "secret-of-this-key" not in told
    assert f"# {KEY}: new" in told


def test_a_file_that_is_not_ours_is_in_the_way_and_replaced_only_with_a_backup(tree: Tree) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    tree.at(CONF).chmod(0o640)
    before = picture(tree.root)
    assert states(tree)[0] is State.FOREIGN
    write(tree)
    assert tree.at(f"{STATE}/originals{CONF}").read_text() == "MINE = yes\n"
    assert states(tree) == [State.SAME] * 3
    assert applying.undo(tree, tree.book()) == []
    assert picture(tree.root) == before, "rights too"


def test_a_backup_outlives_a_change_of_ours(tree: Tree) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    before = picture(tree.root)
    write(tree)
    newer = (Wanted(CONF, "A = 2\n"), *WANTED[1:])
    assert states(tree, newer)[0] is State.CHANGED
    write(tree, newer)
    assert tree.at(CONF).read_text() == "A = 2\n"
    applying.undo(tree, tree.book())
    assert picture(tree.root) == before


def test_what_was_changed_by_hand_is_in_the_way_and_stays_at_the_undo(tree: Tree) -> None:
    write(tree)
    tree.at(CONF).write_text("A = 7\n")
    assert states(tree)[0] is State.EDITED
    assert applying.undo(tree, tree.book()) == [CONF]
    assert tree.at(CONF).read_text() == "A = 7\n"
    assert not tree.at(KEY).exists()
    assert not tree.at(STATE).exists()


def test_what_is_no_longer_needed_goes_and_its_backup_is_back(tree: Tree) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    write(tree)
    assert states(tree, WANTED[1:]) == [State.SAME, State.SAME, State.STALE]
    write(tree, WANTED[1:])
    assert tree.at(CONF).read_text() == "MINE = yes\n"
    assert CONF not in tree.book().files


def test_owner_rights_and_times_come_back_with_what_was_in_the_way(tree: Tree) -> None:
    conf = tree.at(CONF)
    conf.write_text("MINE = yes\n")
    os.chown(conf, 1234, 2345)
    conf.chmod(0o640)
    os.utime(conf, (1e9, 1e9))
    before, was = picture(tree.root), conf.stat()
    write(tree)
    assert (conf.stat().st_uid, conf.stat().st_gid) == (0, 0)
    aside = tree.at(f"{STATE}/originals{CONF}").stat()
    assert (aside.st_uid, aside.st_gid, aside.st_mode) == (was.st_uid, was.st_gid, was.st_mode)
    write(tree, (Wanted(CONF, "A = 2\n"), *WANTED[1:]))()
    applying.undo(tree, tree.book())
    assert picture(tree.root) == before
    assert (conf.stat().st_uid, conf.stat().st_gid, conf.stat().st_mtime) == (1234, 2345, 1e9)
    back = write(tree)
    back()
    assert (conf.stat().st_uid, conf.stat().st_gid, conf.stat().st_mtime) == (1234, 2345, 1e9)


def test_what_was_put_aside_before_stays_where_it_is(tree: Tree) -> None:
    for number in (1, 2):
        tree.at(CONF).write_text(f"MINE = {number}\n")
        write(tree)
        tree.at(CONF).write_text(f"EDITED = {number}\n")
        write(tree)
        tree.at(CONF).write_text(f"AGAIN = {number}\n")
        assert applying.undo(tree, tree.book()) == [CONF]
        assert tree.at(CONF).read_text() == f"AGAIN = {number}\n"
    aside = {path: tree.at(path).read_text() for path in applying.aside(tree)}
    assert aside == {
        f"{STATE}/originals{CONF}": "MINE = 1\n",
        f"{STATE}/originals{CONF}.1": "MINE = 2\n",
        f"{STATE}/edited{CONF}": "EDITED = 1\n",
        f"{STATE}/edited{CONF}.1": "EDITED = 2\n",
    }


def test_a_change_that_is_taken_back_forgets_no_original(tree: Tree) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    write(tree)
    write(tree, WANTED[1:])()  # no longer needed, and then it is
    assert tree.at(CONF).read_text() == "A = 1\n"
    applying.undo(tree, tree.book())
    assert tree.at(CONF).read_text() == "MINE = yes\n"


@pytest.mark.parametrize("way", ["write", "undo"])
def test_one_file_that_cannot_be_taken_back_keeps_no_other_from_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    before = picture(tree.root)
    back = write(tree)
    copy = Tree.copy

    def fails(self: Tree, *words: Any) -> None:
        raise OSError(30, "Read-only file system", str(words[2]))

    monkeypatch.setattr(Tree, "copy", fails)
    with pytest.raises(ProblemFound, match=CONF):
        back() if way == "write" else applying.undo(tree, tree.book())
    assert tree.at(CONF).read_text() == "A = 1\n"
    assert not tree.at(KEY).exists()
    assert tree.at(f"{STATE}/originals{CONF}").read_text() == "MINE = yes\n"
    monkeypatch.setattr(Tree, "copy", copy)
    if way == "undo":
        assert applying.undo(tree, tree.book()) == [], "the book knows what is left to do"
        assert picture(tree.root) == before


@pytest.mark.parametrize("failing", range(6))
def test_a_write_that_fails_leaves_everything_as_it_was(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    tree.at(CONF).write_text("MINE = yes\n")
    before, write_one, count = picture(tree.root), Tree._write, 0

    def fails(self: Tree, *words: Any) -> None:
        nonlocal count
        count += 1
        if count == failing + 1:
            raise OSError(28, "No space left on device", str(words[0]))
        write_one(self, *words)

    monkeypatch.setattr(Tree, "_write", fails)
    if failing < 5:  # a backup, the book, and three files
        with pytest.raises(UsageError, match="No space left on device"):
            write(tree)
        assert picture(tree.root) == before
    else:
        write(tree)


def test_a_write_can_be_taken_back_as_a_whole(tree: Tree) -> None:
    write(tree)
    before = picture(tree.root)
    back = write(tree, (Wanted(CONF, "A = 3\n"), Wanted("/opt/more/file", "x")))
    assert tree.at("/opt/more/file").exists()
    back()
    assert picture(tree.root) == before


def test_after_a_crash_between_book_and_files_it_goes_on(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree)
    newer = (Wanted(CONF, "A = 2\n"), Wanted("/etc/updraft/new", "n"), *WANTED[1:])
    put = Tree.put

    def dies(self: Tree, path: str, *words: Any) -> None:
        if path == CONF:
            os._exit(9)
        put(self, path, *words)

    child = os.fork()
    if child == 0:
        Tree.put = dies  # type: ignore[method-assign]
        write(tree, newer)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert states(tree, newer) == [State.CHANGED, State.NEW, State.SAME, State.SAME]
    write(tree, newer)
    assert states(tree, newer) == [State.SAME] * 4


def test_a_link_in_place_of_a_file_is_refused(tree: Tree) -> None:
    tree.at(CONF).symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="no plain file"):
        states(tree)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 1}', '{"version":1,"files":{"a":{}},"folders":[],"facts":{}}']
)
def test_a_damaged_book_is_one_sentence(tree: Tree, text: str) -> None:
    tree.at(STATE).mkdir(parents=True)
    tree.at(tree.manifest).write_text(text)
    with pytest.raises(UsageError, match="damaged"):
        tree.book()


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["/a", "/b/c", "/b/d", "/e/f/g"]), st.sampled_from("xyz"), max_size=4
        ),
        min_size=1,
        max_size=5,
    ),
    st.dictionaries(st.sampled_from(["/a", "/b/c"]), st.sampled_from("xyz"), max_size=2),
)
def test_after_any_inits_undo_leaves_what_was_there_before(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[dict[str, str]], there: dict[str, str]
) -> None:
    tree = Tree(tmp_path_factory.mktemp("root"))
    for path, text in there.items():
        tree.at(path).parent.mkdir(exist_ok=True)
        tree.at(path).write_text(text)
    tree.at("/var/lib").mkdir(parents=True)
    before = picture(tree.root)
    for one in rounds:
        wanted = tuple(Wanted(path, text) for path, text in one.items())
        write(tree, wanted)
        assert all(state is State.SAME for state in states(tree, wanted))
    assert applying.undo(tree, tree.book()) == []
    assert picture(tree.root) == before


PATHS = ["/a", "/b/c", "/b/d"]
STEPS = st.one_of(
    st.tuples(st.just("edit"), st.sampled_from(PATHS), st.just("")),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just("")),
    st.tuples(st.just("init"), st.just(""), st.sets(st.sampled_from(PATHS))),
    st.tuples(st.just("failed init"), st.just(""), st.sets(st.sampled_from(PATHS))),
    st.tuples(st.just("undo"), st.just(""), st.just("")),
)


@given(st.lists(STEPS, max_size=12))
def test_what_a_person_wrote_is_there_until_a_person_removes_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, Any]]
) -> None:
    tree = Tree(tmp_path_factory.mktemp("root"))
    (tree.root / "b").mkdir()
    theirs: set[str] = set()
    for number, (what, path, wanted) in enumerate(steps):
        if path:
            there = tree.at(path)
            theirs.discard(there.read_text() if there.exists() else "")
            there.unlink(missing_ok=True)
        if what == "edit":
            tree.at(path).write_text(f"person {number}")
            theirs.add(f"person {number}")
        elif what.endswith("init"):
            back = write(tree, tuple(Wanted(one, f"updraft {number}") for one in sorted(wanted)))
            if what.startswith("failed"):
                back()
        elif what == "undo":
            applying.undo(tree, tree.book())
        found = {one.read_text() for one in tree.root.rglob("*") if one.is_file()}
        assert theirs <= found, f"lost at step {number}"
