"""All faults of an input in one error, one sentence on each line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from updraft.errors import ConfigError, UsageError

One = TypeVar("One")
Other = TypeVar("Other")


@dataclass(slots=True)
class Faults:
    """The faults that were found so far, each once."""

    sentences: dict[str, None] = field(default_factory=dict)

    def attempt(self, step: Callable[[], None]) -> None:
        """Take the step; a fault that it finds is kept, and what comes after it goes on."""
        try:
            step()
        except UsageError as error:
            self.add(error)

    def add(self, error: UsageError) -> None:
        """One more, or more than one."""
        self.sentences.update(dict.fromkeys(str(error).split("\n")))

    def settle(self) -> None:
        """Raises ConfigError with all of them, if there are any."""
        if self.sentences:
            raise ConfigError("\n".join(self.sentences))


def collect(function: Callable[[One], Other], inputs: Iterable[One]) -> list[Other]:
    """The results for all inputs. Raises ConfigError with the faults of every one of them."""
    faults, found = Faults(), []
    for given in inputs:
        try:
            found.append(function(given))
        except UsageError as error:
            faults.add(error)
    faults.settle()
    return found
