"""Decisions on disk: what was seen and what was decided, to be decided again elsewhere.

A recording holds each observation and what was learned besides, the policy and the plan. The ads of jobs and
machines are not in it, since they may hold what their owners consider secret; what was judged of them is, and
neither `prepare` nor `plan` reads more. Read `writer` first.

`pool_record` keeps what really was in the pool, for `updraft report`.
"""

from updraft.recording.reader import Decision, Replayed, decisions, replay
from updraft.recording.writer import Planner, Recorder

__all__ = ["Decision", "Planner", "Recorder", "Replayed", "decisions", "replay"]
