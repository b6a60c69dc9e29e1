"""Carries out a plan, and decides nothing."""

from updraft.act.actor import Actor
from updraft.act.lanes import Lanes
from updraft.act.launching import UserData

__all__ = ["Actor", "Lanes", "UserData"]
