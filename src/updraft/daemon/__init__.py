"""The loop: look, plan, act, save, sleep. One controller for one pool, however many are started."""

from updraft.daemon.herald import Herald, Rhythm
from updraft.daemon.lock import StateLock
from updraft.daemon.loop import Daemon, Parts, Switch, run_once
from updraft.daemon.reporting import Cycle

__all__ = ["Cycle", "Daemon", "Herald", "Parts", "Rhythm", "StateLock", "Switch", "run_once"]
