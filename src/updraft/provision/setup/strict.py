"""Who may change what root is to run or read: each folder on the way counts, as for a login by key."""

import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_LINKS = 40

TRUSTED = frozenset({0})
"""The user ids that may own what root uses."""


def changeable(path: Path) -> str:
    """How somebody but root may change what is at this path, as a sentence's part; "" where nobody may.

    Each folder from the root on counts, and where a link leads. What isn't there can't be judged: the folders
    that are there are. Raises OSError where a folder can't be looked at.
    """
    return next(filter(None, map(_open_to_others, _way(path.absolute()))), "")


def changeable_below(folder: Path) -> str:
    """The same of a folder and all that is below it; links are judged where they stand."""
    found = changeable(folder)
    for at, folders, files in os.walk(folder) if not found else ():
        found = next(filter(None, (_open_to_others(Path(at, one)) for one in (*folders, *files))), "")
        if found:
            break
    return found


def _way(path: Path) -> Iterator[Path]:
    """Every folder and link that leads to a path, and what is there, from the root on."""
    at, left, links = Path("/"), list(reversed(path.parts[1:])), 0
    yield at
    while left:
        name = left.pop()
        if name == "..":
            at = at.parent
            continue
        at /= name
        if not os.path.lexists(at):
            return
        yield at
        if at.is_symlink():
            links += 1
            if links > _LINKS:
                raise OSError(f"{path}: too many links")
            target = at.readlink()
            at = Path("/") if target.is_absolute() else at.parent
            left += reversed([part for part in target.parts if part != "/"])


def _open_to_others(at: Path) -> str:
    was = at.lstat()
    if was.st_uid not in TRUSTED:
        return f"{at} belongs to {_name(was.st_uid)}"
    if stat.S_ISLNK(was.st_mode):  # its rights mean nothing
        return ""
    # In a folder as /tmp nobody may replace what is another's.
    sticky = stat.S_ISDIR(was.st_mode) and was.st_mode & stat.S_ISVTX
    if was.st_mode & stat.S_IWOTH and not sticky:
        return f"{at} may be written by everybody"
    if was.st_mode & stat.S_IWGRP and was.st_gid != 0 and not sticky:
        return f"{at} may be written by its group"
    return ""


def _name(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"


def first_changeable(paths: Iterable[Path]) -> str:
    """The first of these paths that others may change."""
    return next(filter(None, map(changeable, paths)), "")
