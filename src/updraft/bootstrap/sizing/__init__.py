"""The configuration that a pool of a size needs, as values: settings with reasons, limits, memory, disk."""

from updraft.bootstrap.sizing.roles import ROLES, settings
from updraft.bootstrap.sizing.setting import FEATURE, Knowledge, Setting, knowledge
from updraft.bootstrap.sizing.size import (
    LONGEST_UPDATE,
    PoolSize,
    child_collectors,
    child_of,
    update_interval,
)
from updraft.bootstrap.sizing.system import Least
from updraft.bootstrap.sizing.text import PARTS, Configuration, configuration, rendered

__all__ = [
    "FEATURE",
    "LONGEST_UPDATE",
    "PARTS",
    "ROLES",
    "Configuration",
    "Knowledge",
    "Least",
    "PoolSize",
    "Setting",
    "child_collectors",
    "child_of",
    "configuration",
    "knowledge",
    "rendered",
    "settings",
    "update_interval",
]
