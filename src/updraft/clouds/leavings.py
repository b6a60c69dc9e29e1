"""What a driver tells beyond machines, images and groups of what updraft has made in its cloud.

A driver that can has an attribute `leavings`. As everywhere in this room nothing waits, nothing is tried
again, and only `CloudError`s are raised.
"""

from collections.abc import Iterator
from typing import Protocol

from updraft.clouds.base import Driver, layers
from updraft.core.leftovers import Belonging, Kind


class Leavings(Protocol):
    """The further things of one cloud that carry a tag of updraft's."""

    kinds: tuple[Kind, ...]
    """What this cloud has of such things."""

    def of(self, kind: Kind) -> tuple[Belonging, ...]:
        """Those of this kind that carry this pool's tag, with who uses them."""

    def remove(self, kind: Kind, one: str) -> None:
        """Remove it; one already gone is success. BadRequest while anything uses it."""


def leavings_of(driver: Driver) -> Leavings | None:
    """What this driver, or the one it is wrapped around, tells of such things; None for nothing."""
    found: Iterator[Leavings | None] = (getattr(one, "leavings", None) for one in layers(driver))
    return next((one for one in found if one is not None), None)
