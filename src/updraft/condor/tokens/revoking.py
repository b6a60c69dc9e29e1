"""Making a revocation hold in a pool that runs: its daemons read the file, and the ads that are over go.

What `updraft tokens revoke` writes is in one file; the tokens of machines that are gone are in another,
which the controller writes as they end (`EndedTokens`).
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from updraft.condor.access import PoolAccess, environment
from updraft.condor.base import ATTR_LAUNCH, OF_MACHINE, WORKER_USER
from updraft.condor.process.children import Children
from updraft.condor.process.tools import Tools
from updraft.condor.support.probe import PoolProbe
from updraft.condor.tokens import revoked
from updraft.condor.tokens.workers import launch_of
from updraft.errors import PoolError

_TOOL = 30.0
_PATIENCE = 20.0  # a reconfiguration is a signal: the collector obeys soon, not at once
_LOOK_AGAIN = 0.5
_ASKED = 8.0
_AT_ONCE = 100  # identities in one constraint


class Revoker:
    """Tells the daemons of the head that a file of theirs has changed. Use it in a `with`."""

    def __init__(self, access: PoolAccess) -> None:
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="updraft-revoke-"))
        given = environment(access, self._folder)
        self._tools = Tools(access.tools, given, access.collector)
        self._children = Children(given)

    def __enter__(self) -> "Revoker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._children.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def reconfigure(self, daemon: str = "") -> None:
        """All daemons of this machine, or this one, read their configuration again. Raises PoolError."""
        self._tools.run(("condor_reconfig", *(("-daemon", daemon) if daemon else ())), _TOOL)

    def taken(self, launches: Sequence[str]) -> str:
        """The first of these launches whose token the collector still takes; "" where it takes none.

        Shown is a token made for this, good for a minute. Asked is until it is refused, for some seconds.
        """
        for launch in launches:
            end, probe = time.monotonic() + _PATIENCE, PoolProbe(self._access)
            try:
                while any(probe.worker_token(_ASKED, launch).values()):
                    if time.monotonic() > end:
                        return launch
                    time.sleep(_LOOK_AGAIN)
            finally:
                probe.close()
        return ""

    def forget(self, identities: Sequence[str], *, everything: bool) -> None:
        """Take what these have advertised out of the collector; with `everything` that of every worker.

        A machine with a good token is there again with its next update.
        """
        parts = [identities[at : at + _AT_ONCE] for at in range(0, len(identities), _AT_ONCE)]
        constraints = [_mine()] if everything else [_any_of(part) for part in parts]
        for constraint in constraints:
            self._children.call("the collector", _TOOL, invalidate, self._access.collector, constraint)


def _mine() -> str:
    mine = f'substr(AuthenticatedIdentity, 0, {len(WORKER_USER)}) =?= "{WORKER_USER}"'
    return f"{mine} || {ATTR_LAUNCH} isnt undefined"


def _any_of(identities: Sequence[str]) -> str:
    for name in identities:
        if set(name) & set('"\\'):
            raise PoolError(f"{name!r} is no identity of a worker")
    return " || ".join(one for name in identities for one in _advertised_by(name))


def _advertised_by(name: str) -> Iterator[str]:
    yield f'AuthenticatedIdentity =?= "{name}"'
    user = name.partition("@")[0]
    if OF_MACHINE in user:
        return
    its = user + OF_MACHINE
    yield f'(substr(AuthenticatedIdentity, 0, {len(its)}) =?= "{its}")'
    # The launch too: a parent collector knows its child as the sender of them all.
    yield f'{ATTR_LAUNCH} =?= "{launch_of(name)}"'


def invalidate(collector: str | None, constraint: str) -> None:
    """In a child: take every ad of machines away of which this is true."""
    import classad2
    import htcondor2

    source = htcondor2.Collector(collector)
    for kind, command in (
        ("Machine", "INVALIDATE_STARTD_ADS"),
        ("StartD", "INVALIDATE_STARTD_ADS"),
        ("DaemonMaster", "INVALIDATE_MASTER_ADS"),
    ):
        ad = classad2.ClassAd({"MyType": "Query", "TargetType": kind})
        ad["Requirements"] = classad2.ExprTree(constraint)
        source.advertise([ad], command)


class EndedTokens:
    """Tokens of machines that are gone, revoked in the collector as they end.

    `file` is the one of this head, which its configuration includes. `alone` is a collector without children
    and broker.
    """

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
