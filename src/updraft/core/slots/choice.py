"""Names: chosen by patterns, of which some leave out (`*`, `!m1.*`), and the nearest to a wrong one."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

OUT = "!"


def chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits the name, and none of those that leave out does (they begin with `!`).

    Where all leave out, any other name is chosen.
    """
    taken = [pattern for pattern in patterns if not pattern.startswith(OUT)]
    if taken or not patterns:
        if not any(fnmatchcase(name, pattern) for pattern in taken):
            return False
        if len(taken) == len(patterns):
            return True
    return not any(fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern.startswith(OUT))


def near(wanted: str, names: Sequence[str]) -> list[str]:
    """The names that come closest to one that isn't there."""
    import difflib

    return difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
