"""One observation: every source asked at the same time, each with a deadline, each known or unknown.

Nothing is decided while looking: `core.prepare` makes of it what a plan is made about. Read `observer` first.
"""

from updraft.observe.observer import Deadlines, Observer, Remembered
from updraft.observe.sources import VIRTUAL, Asking

__all__ = ["VIRTUAL", "Asking", "Deadlines", "Observer", "Remembered"]
