"""The smallest words: why, how much, and whether it is known."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason: docs/reference/reasons.md has every code.

    The same pair reaches the log, the ledger, `status`, `explain`, the metrics and the web page.
    """

    code: Annotated[str, "Short and stable."]
    text: Annotated[str, "One sentence, for people."]


class MachineId(NamedTuple):
    """Which machine: its cloud, and the id that this cloud gave it. Two clouds may give the same id.

    Sorts, compares and hashes as the pair does; `str` is `cloud/id`.
    """

    cloud: str
    id: str

    def __str__(self) -> str:
        return f"{self.cloud}/{self.id}"


Custom = tuple[tuple[str, int], ...]
"""Amounts of custom resources by their names, in lower case and sorted."""


@dataclass(frozen=True, slots=True, order=True)
class Resources:
    """A quantity of machine.

    `custom` are the resources that a site has given its machines besides (HTCondor's MACHINE_RESOURCE_name)
    and jobs ask for (request_name). A slot has a name there for each of its own, also where none is left.
    What only a job names isn't counted: that is how HTCondor takes it, and the requirements decide.
    """

    cpus: Annotated[int, "Cores."] = 0
    memory: Annotated[int, "MiB."] = 0
    disk: Annotated[int, "KiB."] = 0
    gpus: Annotated[int, "GPUs."] = 0
    custom: Annotated[Custom, "Custom resources by name: pairs of a name in lower case and an amount."] = ()

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus + other.cpus,
            self.memory + other.memory,
            self.disk + other.disk,
            self.gpus + other.gpus,
            _both(self.custom, other.custom) if other.custom else self.custom,
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus - other.cpus,
            self.memory - other.memory,
            self.disk - other.disk,
            self.gpus - other.gpus,
            _less(self.custom, other.custom) if self.custom else (),
        )

    def times(self, count: int) -> "Resources":
        """This quantity `count` times over."""
        return Resources(
            self.cpus * count,
            self.memory * count,
            self.disk * count,
            self.gpus * count,
            tuple((name, amount * count) for name, amount in self.custom) if self.custom else (),
        )

    def holds(self, other: "Resources") -> int:
        """How many times `other` fits in this; a very large number where `other` is nothing."""
        fits = [
            have // want
            for have, want in (
                (self.cpus, other.cpus),
                (self.memory, other.memory),
                (self.disk, other.disk),
                (self.gpus, other.gpus),
            )
            if want > 0
        ]
        if self.custom and other.custom:
            wanted = dict(other.custom)
            fits += [have // wanted[name] for name, have in self.custom if wanted.get(name, 0) > 0]
        return max(0, min(fits, default=1_000_000_000))

    def shortfall(self, wanted: "Resources") -> float:
        """How far this is from holding `wanted`: the parts of its quantities that are missing, added up."""
        pairs = [
            (self.cpus, wanted.cpus),
            (self.memory, wanted.memory),
            (self.disk, wanted.disk),
            (self.gpus, wanted.gpus),
        ]
        if wanted.custom:
            pairs += [(self.of(name), want) for name, want in wanted.custom]
        return sum(1.0 - have / want for have, want in pairs if want > max(0, have))

    def bulk(self) -> float:
        """How large this is, in cores, to compare what has no price: 8 GiB count as a core, a GPU as 16.

        These are about the ratios that clouds charge for; disk is left out.
        """
        return self.cpus + self.memory / 8192 + 16.0 * self.gpus

    def of(self, name: str, missing: int = 0) -> int:
        """The amount of one custom resource, `missing` where there is no such name."""
        return dict(self.custom).get(name, missing) if self.custom else missing

    def amounts(self, names: Sequence[str] = (), missing: int = 0) -> tuple[int, ...]:
        """Cpus, memory, disk, GPUs, and then those of these custom resources."""
        four = (self.cpus, self.memory, self.disk, self.gpus)
        return (*four, *(self.of(name, missing) for name in names)) if names else four

    def only(self, names: Collection[str]) -> "Resources":
        """The same without custom resources of other names."""
        if all(name in names for name, _ in self.custom):
            return self
        return replace(self, custom=tuple(one for one in self.custom if one[0] in names))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of its custom resources."""
        return tuple(name for name, _ in self.custom) if self.custom else ()


def of_amounts(amounts: Sequence[int], names: Sequence[str] = ()) -> Resources:
    """The resources of which these are the `amounts`."""
    cpus, memory, disk, gpus, *more = amounts
    return Resources(cpus, memory, disk, gpus, tuple(zip(names, more, strict=True)))


def counted(wanted: Iterable[Resources], there: Iterable[Resources]) -> tuple[str, ...]:
    """The custom resources that somebody wants and that some slot has: those that have to be counted."""
    asked = {name for one in wanted for name, amount in one.custom if amount > 0}
    return tuple(sorted({name for one in there for name, _ in one.custom} & asked)) if asked else ()


def _both(mine: Custom, others: Custom) -> Custom:
    found = dict(mine)
    for name, amount in others:
        found[name] = found.get(name, 0) + amount
    return tuple(sorted(found.items()))


def _less(mine: Custom, others: Custom) -> Custom:
    taken = dict(others)
    return tuple((name, amount - taken.get(name, 0)) for name, amount in mine)


NOTHING = Resources()


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A source that answered: what it said, and `at`, when it was asked."""

    value: T
    at: float


@dataclass(frozen=True, slots=True)
class Unknown(Generic[T]):
    """A source that did not answer, with the `error`; `last` is what it said last, if it ever did."""

    error: Reason
    since: float
    last: Known[T] | None = None


Source = Known[T] | Unknown[T]
