"""Files of this machine: what would change, written in one step or not at all, and taken back.

The book (the manifest) says of each file that was written what it was written as. Whatever isn't as the book
has it is somebody else's, and stays. All paths are below a root, which is `/` but in tests.
"""

import hashlib
import os
import pwd
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from updraft.errors import UsageError
from updraft.setup.book import Book, Entry, parse_book

STATE = "/var/lib/updraft/head-init"
BOOK = f"{STATE}/manifest.json"


class State(StrEnum):
    """What a file is before anything is done, against what it is to be."""

    NEW = "new"
    SAME = "as it is"
    CHANGED = "changed"
    STALE = "no longer needed"
    EDITED = "changed by hand since it was written"
    FOREIGN = "there already, and not updraft's"


IN_THE_WAY = (State.EDITED, State.FOREIGN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file as it is to be. `secret` text is never shown; with `keep` whatever is there already will do."""

    path: str
    text: str = field(repr=False)
    mode: int = 0o644
    owner: str = "root"
    secret: bool = False
    keep: bool = False

    @property
    def data(self) -> bytes:
        """The bytes of it."""
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class Change:
    """One file: its state, what is wanted (None: nothing any more), and what is there (None: nothing)."""

    path: str
    state: State
    wanted: Wanted | None
    old: bytes | None = field(default=None, repr=False)


class Tree:
    """The files below a root."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def at(self, path: str) -> Path:
        """Where this path of the machine really is."""
        return self.root / path.lstrip("/")

    def read(self, path: str, owner: str = "root") -> bytes | None:
        """The bytes of a plain file, None where nothing is. Raises UsageError for anything else."""
        with self._as(owner):
            try:
                kind = self.at(path).lstat().st_mode
                if not stat.S_ISREG(kind):
                    raise UsageError(f"{path} is there and is no plain file: move it away first")
                return self.at(path).read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise UsageError(f"{path} can't be read: {error.strerror}") from error

    def put(self, path: str, data: bytes, mode: int, owner: str = "root") -> None:
        """Write a file through a fresh one beside it: it is there as a whole, or as it was."""
        target = self.at(path)
        fresh = target.with_name(f".{target.name}.updraft-new")
        with self._as(owner):
            try:
                fresh.unlink(missing_ok=True)
                handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    os.fchmod(file.fileno(), mode)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)

    def remove(self, path: str, owner: str = "root") -> None:
        """Remove a file, if it is there."""
        with self._as(owner):
            self.at(path).unlink(missing_ok=True)

    def mode(self, path: str, owner: str = "root") -> int:
        """The rights of a file."""
        with self._as(owner):
            return stat.S_IMODE(self.at(path).lstat().st_mode)

    def missing_folders(self, path: str, owner: str = "root") -> list[str]:
        """The folders above `path` that aren't there, the uppermost first."""
        with self._as(owner):
            above = [str(folder) for folder in reversed(Path(path).parents)]
            return [folder for folder in above if not self.at(folder).is_dir()]

    def make_folder(self, path: str, mode: int, owner: str = "root") -> None:
        """Make one folder."""
        with self._as(owner):
            self.at(path).mkdir(mode=mode)

    def remove_folder(self, path: str, owner: str = "root") -> bool:
        """Remove a folder if nothing is in it; True if it is gone."""
        with self._as(owner):
            try:
                self.at(path).rmdir()
            except FileNotFoundError:
                return True
            except OSError:
                return False
        return True

    def book(self) -> Book:
        """The book, empty where nothing was ever written. Raises UsageError for a damaged one."""
        return parse_book(self.read(BOOK), BOOK)

    @contextmanager
    def _as(self, owner: str) -> Iterator[None]:
        """With the rights of `owner` alone: a link in a home leads root nowhere."""
        if owner == "root" or self.root != Path("/") or os.geteuid() != 0:
            yield
            return
        try:
            user, groups = pwd.getpwnam(owner), os.getgroups()
        except KeyError:  # not made yet: there is nothing of theirs to be led astray by
            yield
            return
        os.initgroups(owner, user.pw_gid)
        os.setegid(user.pw_gid)
        os.seteuid(user.pw_uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)


def digest(data: bytes) -> str:
    """The hash by which the book knows a file."""
    return hashlib.sha256(data).hexdigest()


def compare(tree: Tree, book: Book, wanted: Sequence[Wanted]) -> list[Change]:
    """What would become of each file, in the order of `wanted`; then those that are no longer needed."""
    found = [_against(tree, book, one) for one in wanted]
    named = {one.path for one in wanted}
    for path, entry in book.files.items():
        if path in named or entry.made:
            continue
        old = tree.read(path, entry.owner)
        if old is not None and digest(old) in (entry.sha256, entry.before):
            found.append(Change(path, State.STALE, None, old))
    return found


def _against(tree: Tree, book: Book, one: Wanted) -> Change:
    old = tree.read(one.path, one.owner)
    entry = book.files.get(one.path)
    if old is None:
        return Change(one.path, State.NEW, one)
    if old and one.keep:
        return Change(one.path, State.SAME, one, old)
    if old == one.data and tree.mode(one.path, one.owner) == one.mode:
        return Change(one.path, State.SAME, one, old)
    if entry is None:
        return Change(one.path, State.FOREIGN, one, old)
    ours = digest(old) in (entry.sha256, entry.before)
    return Change(one.path, State.CHANGED if ours else State.EDITED, one, old)


def shown(change: Change) -> str:
    """A change as a unified diff; of a secret its place alone. "" where nothing changes."""
    if change.state is State.SAME:
        return ""
    title = f"# {change.path}: {change.state}\n"
    if change.wanted is not None and change.wanted.secret:
        return f"{title}+ (a secret, not shown)\n"
    old = "" if change.old is None else change.old.decode(errors="replace")
    new = "" if change.wanted is None else change.wanted.text
    before, after = ("/dev/null" if not text else change.path for text in (old, new))
    lines = unified_diff(old.splitlines(), new.splitlines(), before, after, lineterm="")
    return title + "".join(f"{line}\n" for line in lines)


def apply(tree: Tree, book: Book, changes: Sequence[Change], facts: Mapping[str, Any]) -> Callable[[], None]:
    """Carry the changes out, what is in the way with a backup; returns what takes all of it back.

    The book is written first, so that a crash leaves no file that it doesn't know. Raises UsageError where
    something can't be written: then all is as it was.
    """
    back: list[Callable[[], None]] = []

    def undo() -> None:
        while back:
            back.pop()()

    try:
        _write(tree, book, changes, facts, back)
    except (OSError, KeyError) as error:
        undo()
        why = error.strerror if isinstance(error, OSError) else f"there is no user {error}"
        at = getattr(error, "filename", None) or "a file"
        raise UsageError(f"{at} can't be written ({why}): nothing was changed") from error
    except BaseException:
        undo()
        raise
    return undo


def _write(
    tree: Tree,
    book: Book,
    changes: Sequence[Change],
    facts: Mapping[str, Any],
    back: list[Callable[[], None]],
) -> None:
    todo = [one for one in changes if one.state is not State.SAME]
    old_book = tree.read(BOOK)
    folders = _folders(tree, BOOK, "root", back, 0o700)
    for change in todo:
        if change.wanted is not None:
            folders += _folders(tree, change.path, change.wanted.owner, back)
    files = dict(book.files)
    for change in todo:
        files[change.path] = _entry(tree, files.get(change.path), change, back)
    kept = tuple(dict.fromkeys([*book.folders, *folders]))
    _put(tree, BOOK, Book(files, kept, facts).text().encode(), 0o600, "root", old_book, back)
    for change in todo:
        if change.wanted is None:
            _retire(tree, files[change.path], change, back)
        else:
            one = change.wanted
            _put(tree, one.path, one.data, one.mode, one.owner, change.old, back)
    gone = {change.path for change in todo if change.wanted is None}
    if gone:
        left = {path: entry for path, entry in files.items() if path not in gone}
        tree.put(BOOK, Book(left, kept, facts).text().encode(), 0o600)


def _folders(
    tree: Tree, path: str, owner: str, back: list[Callable[[], None]], mode: int = 0o755
) -> list[str]:
    missing = tree.missing_folders(path, owner)
    for folder in missing:
        tree.make_folder(folder, mode, owner)
        back.append(partial(_drop_folder, tree, folder, owner))
    return missing


def _drop_folder(tree: Tree, folder: str, owner: str) -> None:
    tree.remove_folder(folder, owner)


def _entry(tree: Tree, entry: Entry | None, change: Change, back: list[Callable[[], None]]) -> Entry:
    """What the book will say of a file; what is in its way is put aside first."""
    if change.wanted is None:
        assert entry is not None  # noqa: S101  # only the book's own files go stale
        return entry
    new = Entry(digest(change.wanted.data), change.wanted.owner)
    if entry is not None:
        new = replace(new, original=entry.original, original_mode=entry.original_mode)
    if change.old is None:
        return new
    if change.state is State.CHANGED:
        return replace(new, before=digest(change.old))
    copy = f"{STATE}/{'edited' if change.state is State.EDITED else 'originals'}{change.path}"
    _folders(tree, copy, "root", back, 0o700)
    _put(tree, copy, change.old, 0o600, "root", tree.read(copy), back)
    if change.state is State.EDITED:
        return new
    return replace(new, original=copy, original_mode=tree.mode(change.path, change.wanted.owner))


def _retire(tree: Tree, entry: Entry, change: Change, back: list[Callable[[], None]]) -> None:
    mode = tree.mode(change.path, entry.owner)
    old = change.old or b""
    back.append(lambda: tree.put(change.path, old, mode, entry.owner))
    take_back(tree, change.path, entry)


def _put(
    tree: Tree,
    path: str,
    data: bytes,
    mode: int,
    owner: str,
    old: bytes | None,
    back: list[Callable[[], None]],
) -> None:
    if old is None:
        back.append(lambda: tree.remove(path, owner))
    else:
        old_mode = tree.mode(path, owner)
        back.append(lambda: tree.put(path, old, old_mode, owner))
    tree.put(path, data, mode, owner)


def take_back(tree: Tree, path: str, entry: Entry) -> None:
    """Remove a file of ours, or put back what it replaced."""
    original = tree.read(entry.original) if entry.original else None
    if original is None:
        tree.remove(path, entry.owner)
        return
    tree.put(path, original, entry.original_mode, entry.owner)
    tree.remove(entry.original)


def unchanged(tree: Tree, entry: Entry, path: str) -> bool:
    """Is the file as the book has it, or gone already?"""
    try:
        old = tree.read(path, entry.owner)
    except (UsageError, KeyError):
        return False
    return entry.anyhow or old is None or digest(old) in (entry.sha256, entry.before)


def undo(tree: Tree, book: Book) -> list[str]:
    """Take back every file that is as it was written, and the folders that are empty then.

    Returns what was changed since and stays; the book goes in any case.
    """
    changed = []
    for path, entry in book.files.items():
        if not unchanged(tree, entry, path):
            changed.append(path)
        elif tree.read(path, entry.owner) is not None or entry.original:
            take_back(tree, path, entry)
    owners = {folder: entry.owner for path, entry in book.files.items() for folder in _above(path)}
    tree.remove(BOOK)
    _prune(tree.at(STATE))
    for folder in reversed(book.folders):
        tree.remove_folder(folder, owners.get(folder, "root"))
    return changed


def _above(path: str) -> list[str]:
    return [str(folder) for folder in Path(path).parents]


def _prune(folder: Path) -> None:
    """Remove the empty folders below, and this one: the backups are back where they were."""
    if not folder.is_dir():
        return
    for one in sorted(folder.rglob("*"), reverse=True):
        if one.is_dir() and not any(one.iterdir()):
            one.rmdir()
