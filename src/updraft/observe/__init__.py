"""One snapshot: every source asked at the same time, each with a deadline, each known or unknown."""

from updraft.observe.gate import PACE
from updraft.observe.observer import Deadlines, Matcher, Observer, Remembered
from updraft.observe.offers import Kinds
from updraft.observe.sources import VIRTUAL, Asking

__all__ = ["PACE", "VIRTUAL", "Asking", "Deadlines", "Kinds", "Matcher", "Observer", "Remembered"]
