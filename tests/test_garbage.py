"""A process that decides looks for garbage rarely, and still finds it."""

import subprocess
import sys

SCRIPT = """
import gc, weakref
from updraft.garbage import NEW_OBJECTS, look_seldom

class Node:
    pass

def ring():
    one, other = Node(), Node()
    one.next, other.next = other, one
    return weakref.ref(one)

look_seldom()
before = gc.get_stats()[0]["collections"]
lost = ring()
few = [[] for _ in range(NEW_OBJECTS // 2)]
print(gc.get_stats()[0]["collections"] - before, lost() is None)
many = [[] for _ in range(NEW_OBJECTS)]
print(gc.get_stats()[0]["collections"] - before, lost() is None)
"""


def test_garbage_is_looked_for_rarely_and_found() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False", "1", "True"]
