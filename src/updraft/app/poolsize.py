"""How large the pool may become by its configuration: what workers and heads are made for."""

import math
from collections.abc import Callable, Iterable

from updraft.bootstrap.head.scaled import CHILDREN
from updraft.bootstrap.sizing import LONGEST_UPDATE, update_interval
from updraft.config.model import Settings
from updraft.errors import PoolError

CORES = 8  # of a machine of which nothing is known, as PoolSize has it


def largest(settings: Settings) -> int | None:
    """The most machines that the limits allow at one time; None where nothing limits them.

    Where only cores are limited, machines are reckoned to have eight.
    """
    ceilings = [
        settings.limits.machines,
        _together(one.max for one in settings.classes.values()),
        _together(one.limits.machines for one in settings.clouds.values()),
    ]
    cores = settings.limits.cores
    by_cores = None if cores is None else math.ceil(cores / CORES)
    return min((one for one in ceilings if one is not None), default=by_cores)


def _together(ceilings: Iterable[int | None]) -> int | None:
    found = list(ceilings)
    known = [one for one in found if one is not None]
    return sum(known) if len(known) == len(found) else None


def children(settings: Settings, ask: Callable[[str], str]) -> int:
    """How many child collectors the head has, as its own configuration says; 0 where that isn't told.

    Never from the limits: a head that was made smaller has no child for a worker to report to. Of a pool
    elsewhere nothing is known, and its own collector takes everybody.
    """
    if settings.pool.collector:
        return 0
    try:
        told = ask(CHILDREN)
    except PoolError:
        return 0
    return int(told) if told.isdecimal() else 0


def heard_every(settings: Settings, ask: Callable[[str], str]) -> float:
    """How many seconds pass at most until the pool's collector hears of a worker again.

    Workers are told how often to advertise themselves. A child collector passes on what hasn't changed every
    five minutes; and whether a pool elsewhere has any, nobody here knows.
    """
    if settings.pool.collector or children(settings, ask):
        return LONGEST_UPDATE
    return update_interval(largest(settings))
