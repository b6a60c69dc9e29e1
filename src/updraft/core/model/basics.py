"""The smallest words: why, how much, and whether it is known."""

from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason: docs/reference/reasons.md has every code.

    The same pair reaches the log, the ledger, `status`, `explain`, the metrics and the web page.
    """

    code: Annotated[str, "Short and stable."]
    text: Annotated[str, "One sentence, for people."]


@dataclass(frozen=True, slots=True, order=True)
class Resources:
    """A quantity of machine."""

    cpus: Annotated[int, "Cores."] = 0
    memory: Annotated[int, "MiB."] = 0
    disk: Annotated[int, "KiB."] = 0
    gpus: Annotated[int, "GPUs."] = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus + other.cpus,
            self.memory + other.memory,
            self.disk + other.disk,
            self.gpus + other.gpus,
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus - other.cpus,
            self.memory - other.memory,
            self.disk - other.disk,
            self.gpus - other.gpus,
        )

    def times(self, count: int) -> "Resources":
        """This quantity `count` times over."""
        return Resources(self.cpus * count, self.memory * count, self.disk * count, self.gpus * count)

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
        return max(0, min(fits, default=1_000_000_000))

    def shortfall(self, wanted: "Resources") -> float:
        """How far this is from holding `wanted`: the parts of its quantities that are missing, added up."""
        pairs = (
            (self.cpus, wanted.cpus),
            (self.memory, wanted.memory),
            (self.disk, wanted.disk),
            (self.gpus, wanted.gpus),
        )
        return sum(1.0 - have / want for have, want in pairs if want > max(0, have))

    def bulk(self) -> float:
        """How large this is, in cores, to compare what has no price: 8 GiB count as a core, a GPU as 16.

        These are about the ratios that clouds charge for; disk is left out.
        """
        return self.cpus + self.memory / 8192 + 16.0 * self.gpus


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
