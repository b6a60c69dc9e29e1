"""Tokens of machines that are gone, revoked in the collector as they end.

Its configuration has them in a file of the controller's, beside the one that `updraft tokens revoke` writes.
"""

from collections.abc import Mapping
from pathlib import Path

from updraft.condor.access import PoolAccess
from updraft.condor.tokens import revoked
from updraft.condor.tokens.revoking import Revoker


class EndedTokens:
    """The file of this head, and who reads it. `alone` is a collector without children and broker."""

    def __init__(self, access: PoolAccess, file: Path, *, alone: bool) -> None:
        self._access = access
        self._file = file
        self._daemon = "collector" if alone else ""

    def known(self) -> frozenset[str]:
        """The identities that are revoked already. Raises PoolError for a file that isn't updraft's."""
        return frozenset(revoked.read(self._file).identities)

    def revoke(self, identities: Mapping[str, float | None], now: float) -> None:
        """Have the collector refuse these (each with its token's end) from now on, and forget their ads.

        Raises PoolError; what was written then holds from the next reconfiguration on.
        """
        self._file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._file.parent.chmod(0o755)  # whatever the umask: every user's tools read the configuration
        revoked.write(self._file, revoked.more(revoked.read(self._file), identities, 0, now))
        with Revoker(self._access) as revoker:
            revoker.reconfigure(self._daemon)
            revoker.forget(list(identities), everything=False)
