"""Questions that only `updraft check` asks of a pool: who we are to it, what we may do, what time it has.

Every question runs in a child process with a deadline, like all reads. Nothing is changed in the pool. The
one token that is made, to see that workers' tokens are good, lives for a minute, and is written to a private
file only, which is removed at once.
"""

import shutil
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from updraft.condor.access import PoolAccess, environment
from updraft.condor.base import OF_MACHINE
from updraft.condor.collector.views import read_schedds
from updraft.condor.demand.schedd import locate
from updraft.condor.pool import BROKER_RIGHTS, HTCondorPool
from updraft.condor.process.children import Children
from updraft.condor.process.tools import Tools
from updraft.errors import PoolError, PoolTimeout

# What the controller does at the collector: drain machines, clear their ads, say that it acts for the pool.
RIGHTS = ("READ", "ADMINISTRATOR", "ADVERTISE_STARTD", "ADVERTISE_MASTER", "UPDATE_AD_GENERIC")
WORKER_RIGHTS = ("ADVERTISE_STARTD", "ADVERTISE_MASTER")
PROBE_LAUNCH = "check"
_PROBE_LIFETIME = 60.0
_FARTHEST = 1 << 20  # seconds: a clock that is wrong by more than twelve days is wrong enough
_PRIVATE = 0o700
_LANES = 8  # schedds that are asked at the same time


@dataclass(frozen=True, slots=True)
class CollectorSeen:
    """The collector that answered. `rights` maps each of RIGHTS to who we are to it, empty where refused.

    `skew` is how many seconds its clock is ahead of ours; `cycle_ended` when the negotiator last finished a
    cycle, None where there is no negotiator or none finished yet; `issuers` are the names of the keys whose
    tokens it takes, empty where it doesn't say. `settings` are those of its configuration that it was asked
    for, "" where unset; None where it tells of none.
    """

    name: str
    version: str
    skew: float
    rights: Mapping[str, str]
    issuers: tuple[str, ...]
    negotiators: int
    cycle_ended: float | None
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ScheddSeen:
    """A schedd that answered: who we are to it ("" where we may not write), and its queue superusers.

    `requirements` are its SUBMIT_REQUIREMENT_NAMES, `immutable` its IMMUTABLE_JOB_ATTRS. `superusers` and
    these are None where it doesn't say.
    """

    name: str
    version: str
    identity: str
    superusers: tuple[str, ...] | None
    requirements: tuple[str, ...] | None = None
    immutable: tuple[str, ...] | None = None


class PoolProbe:
    """Asks these questions of one pool. Close it, to end its children."""

    def __init__(self, access: PoolAccess) -> None:
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="updraft-probe-"))
        self._given = environment(access, self._folder)
        self._children = Children(self._given)
        self._pool = HTCondorPool(access)

    def close(self) -> None:
        """End all children, and remove what was written."""
        self._children.close()
        self._pool.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def collector(self, deadline: float, settings: tuple[str, ...] = ()) -> CollectorSeen:
        """What the collector says of itself and of these settings, and what we may do there."""
        where = self._access.collector
        return self._children.call("the collector", deadline, read_collector, where, settings)

    def schedds(self, deadline: float) -> Mapping[str, ScheddSeen | str]:
        """Every schedd that the collector knows; a sentence in place of one that doesn't answer in time.

        `deadline` is for all of it.
        """
        where, end = self._access.collector, time.monotonic() + deadline
        self._children.begin(_lane(0))  # on a busy machine it takes seconds, and there is no time to lose
        names = self._children.call("the collector", deadline, read_schedds, where)

        def one(numbered: tuple[int, str]) -> ScheddSeen | str:
            left = max(0.1, end - time.monotonic())
            try:
                return self._children.call(_lane(numbered[0]), left, read_schedd, where, numbered[1])
            except PoolTimeout:
                return late
            except PoolError as error:
                return str(error)

        late = f"no answer within {deadline:g} s"
        lanes = ThreadPoolExecutor(_LANES, "updraft-schedds")
        asked = [lanes.submit(one, numbered) for numbered in enumerate(names)]
        # Also a child that is late to begin keeps no other schedd's answer from being told.
        wait(asked, max(0.0, end - time.monotonic()))
        lanes.shutdown(wait=False, cancel_futures=True)
        return {
            name: found.result() if found.done() and not found.cancelled() else late
            for name, found in zip(names, asked, strict=True)
        }

    def tools_version(self) -> str:
        """The version of HTCondor's tools on this machine. PoolError where there are none."""
        said = Tools(self._access.tools, self._given, None).run(("condor_version",), 10)
        return plain_version(said)

    def tool(self, name: str) -> str:
        """Where a tool of HTCondor is; empty where this machine has none."""
        return name if self._access.tools else shutil.which(name) or ""

    def worker_token(self, deadline: float, launch: str = PROBE_LAUNCH) -> Mapping[str, str]:
        """Show the collector a token made for this launch, or for one machine (LAUNCH+INSTANCE).

        Maps each of WORKER_RIGHTS to the identity that the collector saw, empty where it refused. Raises
        PoolError where no token can be made.
        """
        whole, _, machine = launch.partition(OF_MACHINE)
        if machine:
            token = self._pool.mint_own_token(whole, machine, _PROBE_LIFETIME)
        else:
            token = self._pool.mint_token(whole, _PROBE_LIFETIME)
        children = Children(self._as_worker(token))
        try:
            return children.call(
                "the collector", deadline, read_rights, self._access.collector, WORKER_RIGHTS
            )
        finally:
            children.close()

    def stranger(self, deadline: float) -> str:
        """Who the collector takes somebody for who shows nothing, where it lets him read.

        Empty where it refuses, or doesn't answer.
        """
        children = Children(
            {
                **self._given,
                "_CONDOR_SEC_CLIENT_AUTHENTICATION": "OPTIONAL",
                "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "ANONYMOUS",
            }
        )
        try:
            return children.call("the collector", deadline, read_as_stranger, self._access.collector)
        finally:
            children.close()

    def broker_token(self, broker: str, deadline: float) -> Mapping[str, str]:
        """The same of a token for a broker: each of BROKER_RIGHTS with the identity that the broker saw."""
        token = self._pool.mint_broker_token(PROBE_LAUNCH, _PROBE_LIFETIME)
        children = Children(self._as_worker(token))
        try:
            return children.call("the broker", deadline, read_rights, broker, BROKER_RIGHTS)
        finally:
            children.close()

    def _as_worker(self, token: str) -> Mapping[str, str]:
        """The environment of a process that has this token and nothing else to show.

        Each has a folder of its own: the collector and the brokers are asked at the same time.
        """
        tokens = Path(tempfile.mkdtemp(prefix="tokens-", dir=self._folder))
        keys = self._folder / "keys"
        keys.mkdir(mode=_PRIVATE, exist_ok=True)
        file = tokens / "worker"
        file.touch(mode=0o600)
        file.write_text(token + "\n", encoding="ascii")
        return {
            **self._given,
            "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "TOKEN",
            "_CONDOR_SEC_TOKEN_DIRECTORY": str(tokens),
            "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY": str(tokens),
            # With the pool's own key at hand HTCondor would make itself a better token.
            "_CONDOR_SEC_PASSWORD_DIRECTORY": str(keys),
            "_CONDOR_SEC_TOKEN_POOL_SIGNING_KEY_FILE": str(keys / "none"),
        }


def _lane(number: int) -> str:
    """The source whose child asks the schedd of this number."""
    return f"schedds, lane {number % _LANES}"


# ---------------------------------------------------------------------------------------- inside the child


def read_collector(collector: str | None, settings: tuple[str, ...]) -> CollectorSeen:
    """See `PoolProbe.collector`."""
    import htcondor2

    source = htcondor2.Collector(collector)
    where = source.locate(htcondor2.DaemonType.Collector)
    own = source.query(htcondor2.AdType.Collector, projection=["Name"])
    negotiators = source.query(htcondor2.AdType.Negotiator, projection=["LastNegotiationCycleEnd0"])
    ends = [int(ad.get("LastNegotiationCycleEnd0", 0)) for ad in negotiators]
    answers = {right: _ping(where, right) for right in RIGHTS}
    reader = answers["READ"]
    return CollectorSeen(
        name=str(where.get("Machine") or where.get("Name") or collector or ""),
        version=plain_version(str(reader.get("RemoteVersion", "") if reader is not None else "")),
        skew=_skew(source) if own else 0.0,
        rights={right: _identity(ad) for right, ad in answers.items()},
        issuers=_words(reader.get("IssuerKeys", "") if reader is not None else ""),
        negotiators=len(negotiators),
        cycle_ended=float(max(ends)) if any(ends) else None,
        settings=_settings(htcondor2.RemoteParam(where), settings),
    )


def read_rights(collector: str | None, rights: tuple[str, ...]) -> Mapping[str, str]:
    """Each right with who we are to the collector where it grants it, else empty."""
    import htcondor2

    where = htcondor2.Collector(collector).locate(htcondor2.DaemonType.Collector)
    return {right: _identity(_ping(where, right)) for right in rights}


def read_as_stranger(collector: str | None) -> str:
    """See `PoolProbe.stranger`."""
    import htcondor2

    try:  # to find its address is a question to it already
        return read_rights(collector, ("READ",))["READ"]
    except htcondor2.HTCondorException:
        return ""


def read_schedd(collector: str | None, name: str) -> ScheddSeen:
    """What one schedd says of itself, and what we may do there."""
    import classad2
    import htcondor2

    ad = classad2.ClassAd(locate(collector, name))
    htcondor2.Schedd(ad).query("false", ["ClusterId"])  # its queue answers
    settings = htcondor2.RemoteParam(ad)
    superusers = _setting(settings, "QUEUE_SUPER_USERS")
    # What nobody has set is no setting at all: only where it tells of another is that one known to be unset.
    unset = None if superusers is None else ()
    return ScheddSeen(
        name=name,
        version=plain_version(str(ad.get("CondorVersion", ""))),
        identity=_identity(_ping(ad, "WRITE")),
        superusers=superusers,
        requirements=_setting(settings, "SUBMIT_REQUIREMENT_NAMES", unset),
        immutable=_setting(settings, "IMMUTABLE_JOB_ATTRS", unset),
    )


def _settings(remote: Any, names: tuple[str, ...]) -> Mapping[str, str] | None:
    """Each with its value, "" for one that isn't set; None where the daemon tells nobody of any.

    Which isn't set and which isn't told looks alike: so a setting is asked for that is always set.
    """
    if _setting(remote, "LOG") is None:
        return None
    return {name: " ".join(_told(remote, name).split()) for name in names}


def _told(remote: Any, name: str) -> str:
    import htcondor2

    try:
        return str(remote[name])
    except (htcondor2.HTCondorException, KeyError):
        return ""


def _setting(settings: Any, name: str, missing: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    import htcondor2

    try:
        return _words(settings[name])
    except (htcondor2.HTCondorException, KeyError):
        return missing


def _ping(where: Any, right: str) -> Any | None:
    """The daemon's answer to a question that needs this right; None where it refuses."""
    import htcondor2

    try:
        answer = htcondor2.ping(where, right)
    except htcondor2.HTCondorException:
        return None
    return answer if answer.get("AuthorizationSucceeded") is True else None


def _identity(answer: Any | None) -> str:
    return "" if answer is None else str(answer.get("MyRemoteUserName", "")) or "somebody"


def _skew(source: Any) -> float:
    """How many seconds the collector's clock is ahead of ours, to about a second.

    The collector evaluates `time()` of a constraint by its own clock, so asking whether it is past a moment
    and halving the distance finds what its clock says.
    """
    import htcondor2

    def past(offset: int) -> bool:
        moment = int(time.time()) + offset
        return bool(source.query(htcondor2.AdType.Collector, f"time() >= {moment}", ["Name"]))

    if past(0) and not past(2):
        return 0.0
    low, high = -_FARTHEST, _FARTHEST  # past(low) holds, past(high) doesn't
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if past(middle) else (low, middle)
    return float(low)


def plain_version(text: str) -> str:
    """The number in a version text of HTCondor: "25.14.1"; empty where there is none."""
    words = text.split()
    at = words.index("$CondorVersion:") + 1 if "$CondorVersion:" in words else len(words)
    return words[at] if at < len(words) else ""


def _words(text: Any) -> tuple[str, ...]:
    return tuple(str(text).replace(",", " ").split())
