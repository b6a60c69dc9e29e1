"""Who called, and which configuration was asked for: what every use case is told."""

import getpass
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from updraft import config
from updraft.errors import ConfigAbsent, UsageError

if TYPE_CHECKING:
    from updraft.config.model import Settings


@dataclass(frozen=True, slots=True)
class Call:
    """What every verb is told: the configuration that was asked for, if any."""

    asked: str | None

    @property
    def file(self) -> Path:
        """The configuration file. Raises UsageError where there is none."""
        return config.find(self.asked)

    @property
    def settings(self) -> "Settings":
        """The whole configuration, read anew. Raises ConfigError with every fault of the file."""
        return config.load(self.file)

    @property
    def target(self) -> Path:
        """Where a configuration is to be written."""
        return config.target(self.asked)

    @property
    def place(self) -> config.PoolPlace:
        """Where the pool's ledger is."""
        return config.place(self.file)

    def acting(self) -> None:
        """Raises UsageError where updraft only watches: a wish would stay there until it is let act.

        Who may not read the configuration isn't told so: of such people's wishes the daemon decides.
        """
        try:
            place = self.place
        except ConfigAbsent:
            return
        if not place.acts:
            raise UsageError(
                f"updraft only watches ({place.file}: [pool] act = false): it changes nothing, and "
                "takes no wish that would be carried out once it acts"
            )


def who() -> str:
    """Who called, as events name people: user@host."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
