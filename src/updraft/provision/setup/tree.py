"""Files of this machine, written in one step or not at all, and what would become of them.

The book (the manifest) says of each file that was written what it was written as. Whatever isn't as the book
has it is somebody else's, and stays. All paths are below a root, which is `/` but in tests.
"""

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path

from updraft.errors import UsageError
from updraft.provision.setup.book import Book, parse_book

STATE = "/var/lib/updraft/head-init"


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


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file system keeps of a file beside its bytes."""

    stat: os.stat_result
    attributes: Mapping[str, bytes]

    @classmethod
    def of(cls, handle: int) -> "Kept":
        """That of an open file."""
        found = {}
        with suppress(OSError):  # not every file system has attributes
            found = {name: os.getxattr(handle, name) for name in os.listxattr(handle)}
        return cls(os.fstat(handle), found)

    def give_owner(self, handle: int) -> None:
        """Give an open file the owner and group, where we may."""
        with suppress(PermissionError):
            os.fchown(handle, self.stat.st_uid, self.stat.st_gid)

    def give_rest(self, handle: int) -> None:
        """Give it times and attributes (access lists among them), where we may."""
        for name, value in self.attributes.items():
            with suppress(OSError):
                os.setxattr(handle, name, value)
        os.utime(handle, ns=(self.stat.st_atime_ns, self.stat.st_mtime_ns))


class Tree:
    """The files below a root; `state` is where the book of them is kept, and what was put aside."""

    def __init__(self, root: Path = Path("/"), state: str = STATE) -> None:
        self.root, self.state, self.manifest = root, state, f"{state}/manifest.json"

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
        self._write(path, data, mode, owner, None)

    def copy(self, path: str, owner: str, to: str, to_owner: str, mode: int | None = None) -> None:
        """Copy a file as it is: its owner, rights (or `mode`), times and access lists too, as far as
        `to_owner` may give them. Raises OSError."""
        with self._as(owner), os.fdopen(os.open(self.at(path), os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            data, was = file.read(), Kept.of(file.fileno())
        self._write(to, data, stat.S_IMODE(was.stat.st_mode) if mode is None else mode, to_owner, was)

    def _write(self, path: str, data: bytes, mode: int, owner: str, was: "Kept | None") -> None:
        target = self.at(path)
        fresh = target.with_name(f".{target.name}.updraft-new")
        with self._as(owner):
            try:
                fresh.unlink(missing_ok=True)
                handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    if was is not None:
                        was.give_owner(handle)
                    os.fchmod(handle, mode)
                    if was is not None:
                        was.give_rest(handle)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)

    def is_free(self, path: str) -> bool:
        """Is nothing at all there?"""
        return not os.path.lexists(self.at(path))

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
        return parse_book(self.read(self.manifest), self.manifest)

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
