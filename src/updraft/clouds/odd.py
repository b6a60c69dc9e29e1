"""What is made of a listing that has items of which nothing can be made: these are left out of it, and named.

Unknown is not gone: such an item is left out of answers about its id as well, so that nobody takes the
machine for ended; see `Machines.look_up`.

The same holds of what a cloud sells: one row of it of which nothing can be made isn't bought.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from updraft.errors import CloudError

T = TypeVar("T")
Raw = TypeVar("Raw")
Odd = Mapping[str, str]
"""Why nothing can be made of some items of a cloud's last listing, by their ids; of what it sells, by what
the cloud calls it. See `Machines.odd` and `Machines.odd_offers`."""
NOTHING: Odd = MappingProxyType({})
NAMELESS = "one without an id"
_MOST = 1 << 53  # whole numbers up to here are exact


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


def quantity(said: object) -> int:
    """How much of something a cloud says: a whole number. Raises ValueError for anything else."""
    number = price(said)
    if number != int(number):
        raise ValueError(f"{said!r:.50} is no whole number")
    return int(number)


def price(said: object) -> float:
    """What something costs by a cloud's word: a number of at least 0. Raises ValueError for anything else."""
    sound = isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said < _MOST
    if not sound:
        raise ValueError(f"{said!r:.50} is no number that there can be")
    return float(said)  # type: ignore[arg-type]
