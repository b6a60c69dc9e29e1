"""The size of the pool, as settings of its head."""

from updraft.bootstrap.head import HeadSpec, quick

SMALL = 100
"""Up to so many machines, looking often costs nothing."""


def sized(spec: HeadSpec, machines: int) -> HeadSpec:
    """The same head with the intervals of a pool of this size."""
    return quick(spec) if machines <= SMALL else spec
