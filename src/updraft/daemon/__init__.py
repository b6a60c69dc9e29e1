"""The loop: look, plan, act, save, sleep. One controller for one pool, however many are started."""

from updraft.daemon.election import LeaderElection, Rhythm
from updraft.daemon.lock import StateLock
from updraft.daemon.loop import Daemon, Parts, Switch, run_once
from updraft.daemon.reporting import Cycle

__all__ = ["Cycle", "Daemon", "LeaderElection", "Parts", "Rhythm", "StateLock", "Switch", "run_once"]
