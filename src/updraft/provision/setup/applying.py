"""Changes to files are carried out, and taken back. What a person wrote is never written over by a copy.

What is in the way of a file is put aside below `Tree.state`, each time to a place where nothing is:
`originals` come back with the undo, `edited` (of ours, changed by hand) stay there.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from updraft.errors import ProblemFound, UsageError
from updraft.provision.setup.book import Book, Entry
from updraft.provision.setup.tree import Change, State, Tree, digest

ASIDE = ("originals", "edited")
_Steps = list[Callable[[], None]]


def apply(tree: Tree, book: Book, changes: Sequence[Change], facts: Mapping[str, Any]) -> Callable[[], None]:
    """Carry the changes out, what is in the way with a backup; returns what takes all of it back.

    The book is written first, so that a crash leaves no file that it doesn't know. Raises UsageError where
    something can't be written: then all is as it was, or it says what isn't. What takes it back tries every
    step, and raises ProblemFound with all that failed.
    """
    back: _Steps = []

    def undo_all() -> None:
        if failed := _taken_back(back):
            raise ProblemFound("; ".join(failed))

    try:
        _write(tree, book, changes, facts, back)
    except (OSError, KeyError) as error:
        failed = _taken_back(back)
        why = error.strerror if isinstance(error, OSError) else f"there is no user {error}"
        at = getattr(error, "filename", None) or "a file"
        end = f"not all is as it was: {'; '.join(failed)}" if failed else "nothing was changed"
        raise UsageError(f"{at} can't be written ({why}): {end}") from error
    except BaseException:
        _taken_back(back)
        raise
    return undo_all


def _taken_back(back: _Steps) -> list[str]:
    """Take back step by step, the last first; what failed, and the rest all the same."""
    failed = []
    while back:
        try:
            back.pop()()
        except (OSError, UsageError) as error:
            failed.append(str(error))
    return failed


def _write(tree: Tree, book: Book, changes: Sequence[Change], facts: Mapping[str, Any], back: _Steps) -> None:
    todo = [one for one in changes if one.state is not State.SAME]
    old_book = tree.read(tree.manifest)
    folders = _folders(tree, tree.manifest, "root", back, 0o700)
    for change in todo:
        if change.wanted is not None:
            folders += _folders(tree, change.path, change.wanted.owner, back)
    files, copies = dict(book.files), dict[str, str]()
    for change in todo:
        copies[change.path] = _aside(tree, change, back)
        files[change.path] = _entry(tree, files.get(change.path), change, copies[change.path])
    kept = tuple(dict.fromkeys([*book.folders, *folders]))
    _put(tree, tree.manifest, Book(files, kept, facts).text().encode(), 0o600, "root", old_book, back)
    for change in todo:
        if change.wanted is None:
            _retire(tree, files[change.path], change, back)
        else:
            one = change.wanted
            copy = copies[change.path]
            _put(tree, one.path, one.data, one.mode, one.owner, change.old, back, copy)
    gone = {change.path for change in todo if change.wanted is None}
    if gone:
        left = {path: entry for path, entry in files.items() if path not in gone}
        tree.put(tree.manifest, Book(left, kept, facts).text().encode(), 0o600)


def _folders(tree: Tree, path: str, owner: str, back: _Steps, mode: int = 0o755) -> list[str]:
    missing = tree.missing_folders(path, owner)
    for folder in missing:
        tree.make_folder(folder, mode, owner)
        back.append(partial(_drop_folder, tree, folder, owner))
    return missing


def _drop_folder(tree: Tree, folder: str, owner: str) -> None:
    tree.remove_folder(folder, owner)


def _aside(tree: Tree, change: Change, back: _Steps) -> str:
    """Put aside what somebody else wrote, as it is; where it is then, "" where there is nothing such."""
    if change.wanted is None or change.old is None or change.state is State.CHANGED:
        return ""
    kind = "edited" if change.state is State.EDITED else "originals"
    usual = f"{tree.state}/{kind}{change.path}"
    copy = next(at for at in _names(usual) if tree.is_free(at))
    _folders(tree, copy, "root", back, 0o700)
    back.append(partial(_drop_copy, tree, change, copy))
    tree.copy(change.path, change.wanted.owner, copy, "root")
    return copy


def _drop_copy(tree: Tree, change: Change, copy: str) -> None:
    """Remove what was put aside, once it is at its place again."""
    owner = "root" if change.wanted is None else change.wanted.owner
    if tree.read(change.path, owner) != change.old:
        raise UsageError(f"{change.path} is not what it was: that is at {copy}")
    tree.remove(copy)


def _names(usual: str) -> itertools.chain[str]:
    return itertools.chain([usual], (f"{usual}.{number}" for number in itertools.count(1)))


def _entry(tree: Tree, entry: Entry | None, change: Change, copy: str) -> Entry:
    """What the book will say of a file."""
    if change.wanted is None:
        assert entry is not None  # noqa: S101  # only the book's own files go stale
        return entry
    new = Entry(digest(change.wanted.data), change.wanted.owner)
    if entry is not None:
        new = replace(new, original=entry.original, original_mode=entry.original_mode)
    if change.state is State.CHANGED and change.old is not None:
        return replace(new, before=digest(change.old))
    if change.state is not State.FOREIGN:
        return new
    return replace(new, original=copy, original_mode=tree.mode(change.path, change.wanted.owner))


def _retire(tree: Tree, entry: Entry, change: Change, back: _Steps) -> None:
    mode, old = tree.mode(change.path, entry.owner), change.old or b""

    def again() -> None:
        if entry.original and tree.is_free(entry.original):  # it is back at its place, and put aside anew
            tree.copy(change.path, entry.owner, entry.original, "root")
        tree.put(change.path, old, mode, entry.owner)

    back.append(again)
    take_back(tree, change.path, entry)


def _put(
    tree: Tree,
    path: str,
    data: bytes,
    mode: int,
    owner: str,
    old: bytes | None,
    back: _Steps,
    copy: str = "",
) -> None:
    if copy:
        back.append(lambda: tree.copy(copy, "root", path, owner))
    elif old is None:
        back.append(lambda: tree.remove(path, owner))
    else:
        old_mode = tree.mode(path, owner)
        back.append(lambda: tree.put(path, old, old_mode, owner))
    tree.put(path, data, mode, owner)


def take_back(tree: Tree, path: str, entry: Entry) -> None:
    """Remove a file of ours, or put back what it replaced."""
    if not entry.original or tree.is_free(entry.original):
        tree.remove(path, entry.owner)
        return
    tree.copy(entry.original, "root", path, entry.owner, entry.original_mode)
    tree.remove(entry.original)


def unchanged(tree: Tree, entry: Entry, path: str) -> bool:
    """Is the file as the book has it, or gone already?"""
    try:
        old = tree.read(path, entry.owner)
    except (UsageError, KeyError):
        return False
    return entry.anyhow or old is None or digest(old) in (entry.sha256, entry.before)


def undo(tree: Tree, book: Book, *, keep: bool = False) -> list[str]:
    """Take back every file that is as it was written, and the folders that are empty then.

    Returns what was changed since and stays. Each file stands alone: raises ProblemFound with all that
    failed. The book goes, but for `keep` or what failed: then it says what is left.
    """
    changed, failed, left = list[str](), list[str](), dict[str, Entry]()
    for path, entry in book.files.items():
        try:
            if not unchanged(tree, entry, path):
                changed.append(path)
            elif tree.read(path, entry.owner) is not None or entry.original:
                take_back(tree, path, entry)
        except (OSError, UsageError) as error:
            failed.append(f"{path}: {error}")
            left[path] = entry
    if left or keep:
        tree.put(tree.manifest, Book(left, book.folders, book.facts).text().encode(), 0o600)
    else:
        tree.remove(tree.manifest)
    _prune(tree.at(tree.state))
    owners = {folder: entry.owner for path, entry in book.files.items() for folder in _above(path)}
    for folder in reversed(book.folders):
        tree.remove_folder(folder, owners.get(folder, "root"))
    if failed:
        raise ProblemFound("; ".join(failed))
    return changed


def aside(tree: Tree) -> list[str]:
    """All that is put aside now: copies of what people wrote."""
    found = [
        file for kind in ASIDE for file in tree.at(f"{tree.state}/{kind}").rglob("*") if not file.is_dir()
    ]
    return sorted("/" + str(file.relative_to(tree.root)) for file in found)


def _above(path: str) -> list[str]:
    return [str(folder) for folder in Path(path).parents]


def _prune(folder: Path) -> None:
    """Remove the empty folders below, and this one: the backups are back where they were."""
    if not folder.is_dir():
        return
    for one in sorted(folder.rglob("*"), reverse=True):
        if one.is_dir() and not any(one.iterdir()):
            one.rmdir()
