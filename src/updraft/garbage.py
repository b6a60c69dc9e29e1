"""How often Python looks for cycles of garbage.

A decision about ten thousand machines makes a million objects that go by their reference counts or stay for
good. With the interpreter's own thresholds the search for cycles among them takes a fifth of its time.
"""

import gc

NEW_OBJECTS = 100_000  # before the young are searched; the interpreter's own is 700 to 2,000
YOUNG, OLD = 20, 20  # searches of one generation before the next one is searched, too


def look_seldom() -> None:
    """For a process that decides: search rarely, and never again what is there already."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG, OLD)
