"""What is made of a listing that has items of which nothing can be made: these are left out of it, and named.

Unknown is not gone: such an item is left out of answers about its id as well, so that nobody takes the
machine for ended; see `Driver.look_up`.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from updraft.clouds.base import Driver, layers
from updraft.errors import CloudError

T = TypeVar("T")
Raw = TypeVar("Raw")
Odd = Mapping[str, str]
"""Why nothing can be made of some items of a driver's last listing, by their ids, in its attribute `odd`."""
NOTHING: Odd = MappingProxyType({})
NAMELESS = "one without an id"


def readable(
    raws: Iterable[Raw], read: Callable[[Raw], T], name: Callable[[Raw], str]
) -> tuple[list[T], dict[str, str]]:
    """What `read` makes of each, and why it makes nothing of the others, by what `name` calls them.

    Where `name` has none either, it is `NAMELESS`. A `CloudError` is the whole listing's.
    """
    found: list[T] = []
    odd: dict[str, str] = {}
    for raw in raws:
        try:
            found.append(read(raw))
        except CloudError:
            raise
        except Exception as error:
            odd[_named(raw, name)] = f"{type(error).__name__}: {error}"[:200]
    return found, odd


def _named(raw: Raw, name: Callable[[Raw], str]) -> str:
    try:
        return name(raw) or NAMELESS
    except Exception:
        return NAMELESS


def odd_of(driver: Driver) -> Odd:
    """What this driver, or the one it is wrapped around, left out of its last listing, and why."""
    said = (getattr(one, "odd", None) for one in layers(driver))
    return next((one for one in said if isinstance(one, Mapping)), NOTHING)
