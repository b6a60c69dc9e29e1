"""The same objects from look to look, for what has not changed: whoever remembers them sees that at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from updraft.core.model import CloudView, CollectorView, Instance, Known, Slot, Source

T = TypeVar("T")


class Same(Generic[T]):
    """One list, as it was at the last look; `key` says which objects of two looks may be the same."""

    def __init__(self, key: Callable[[T], object]) -> None:
        self._key = key
        self._given: Sequence[T] = ()
        self._last: tuple[T, ...] = ()

    def of(self, found: Sequence[T]) -> tuple[T, ...]:
        """This list, with the objects of the last one in place of those that are equal to them.

        No object is in it twice: two that are alike stay two. A list that is equal is the last one.
        """
        if found is self._given or found is self._last:
            return self._last
        self._given, last = found, self._last
        # Most lists differ in a few places from the last one: only there objects have to be compared.
        same = len(found) == len(last)
        other = [at for at, one in enumerate(found) if not same or one is not last[at]]
        old = {self._key(one): one for one in ([last[at] for at in other] if same else last)}
        kept: dict[int, T] = {}
        for at in other:
            known = old.pop(self._key(found[at]), None)
            if known is not None and known is not found[at] and known == found[at]:
                kept[at] = known
        made = tuple([kept.get(at, one) for at, one in enumerate(found)] if kept else found)
        if not same or any(made[at] is not last[at] for at in other):
            self._last = made
        return self._last


class SameSources:
    """The slots of the collector and the instances of each cloud; what is unknown is left as it is."""

    def __init__(self) -> None:
        self._slots: Same[Slot] = Same(lambda slot: slot.name)
        self._instances: dict[str, Same[Instance]] = {}

    def collector(self, source: Source[CollectorView]) -> Source[CollectorView]:
        """The collector's word."""
        if not isinstance(source, Known):
            return source
        slots = self._slots.of(source.value.slots)
        if slots is source.value.slots:
            return source
        return replace(source, value=replace(source.value, slots=slots))

    def cloud(self, name: str, view: CloudView) -> CloudView:
        """This cloud's word."""
        if not isinstance(view.machines, Known):
            return view
        same = self._instances.setdefault(name, Same(lambda instance: instance.id))
        machines = same.of(view.machines.value)
        if machines is view.machines.value:
            return view
        return replace(view, machines=replace(view.machines, value=machines))
