"""HTCondor's own tools, called in one place: argument lists, a deadline, bounded output, mapped errors."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO
from urllib.parse import unquote

from updraft.errors import DrainRefused, PoolDenied, PoolError, PoolTimeout

_OUTPUT = 64 << 10
_CODE = re.compile(r"error code (\d+)")
_STARTD = re.compile(r"\bstartd (<[^>\s]+>) (?:with|failed)")
# What `-debug` prints of a refusal. "Permission denied" isn't in it: that may be any file that can't be read.
_DENIED = re.compile(r"AUTHENTICATE:\d+|required authentication|PERMISSION DENIED|not authorized|SECMAN:2010")

CHECK_FALSE = 10003
DRAINING_ALREADY = 10001


class DrainingAlreadyError(PoolError):
    """The startd drains already; whether for us, its ad says."""


class Tools:
    """Runs tools with `prefix` words before each, and `environment` added to this process's own."""

    def __init__(self, prefix: Sequence[str], environment: Mapping[str, str], collector: str | None) -> None:
        self._prefix = tuple(prefix)
        self._environment = dict(environment)
        self._collector = collector

    def pool_words(self) -> tuple[str, ...]:
        """`-pool …`, without which a tool goes past the collector and isn't given the right to drain."""
        return ("-pool", self._collector or self.setting("COLLECTOR_HOST").split(",", 1)[0].strip())

    def setting(self, name: str) -> str:
        """The value of this setting in HTCondor's configuration."""
        return self.run(("condor_config_val", name), 10).strip()

    def run(self, words: Sequence[str], deadline: float, at: str = "") -> str:
        """The tool's output. Raises PoolTimeout, PoolDenied, DrainRefused or another PoolError.

        `at` is the address of the only startd whose answer counts: a tool finds it by a name, which another
        machine's ad can say, too.
        """
        name = words[0]
        try:
            process = subprocess.Popen(
                [*self._prefix, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        except OSError as error:
            raise PoolError(f"{name} cannot be run; install HTCondor's tools on this host") from error
        out, err = _collect(process, name, deadline)
        if at:
            check_answered(f"{out}\n{err}", at, process.returncode)
        if process.returncode:
            raise failed(name, process.returncode, err)
        return out


def _collect(process: "subprocess.Popen[bytes]", name: str, deadline: float) -> tuple[str, str]:
    """Both outputs, each cut to its first 64 KiB. At the deadline the tool is ended with its children."""
    kept: list[bytes] = [b"", b""]

    def read(index: int, stream: IO[bytes]) -> None:
        kept[index] = stream.read(_OUTPUT)
        while stream.read(_OUTPUT):  # the rest is read, or the tool would wait for us
            pass

    readers = [
        threading.Thread(target=read, args=(i, stream), daemon=True)
        for i, stream in enumerate((process.stdout, process.stderr))
        if stream is not None
    ]
    with process:
        for reader in readers:
            reader.start()
        try:
            process.wait(deadline)
        except subprocess.TimeoutExpired as error:
            # With all that it started: a child would keep the pipes open, and do what nobody waits for.
            os.killpg(process.pid, signal.SIGKILL)
            raise PoolTimeout(f"{name} was not done within {deadline:g} s") from error
        finally:
            for reader in readers:
                reader.join(1)
    return kept[0].decode(errors="replace"), kept[1].decode(errors="replace")


def check_answered(text: str, at: str, code: int) -> None:
    """Raise PoolError where the tool says that it has asked a startd elsewhere, or was answered by nobody
    knows whom."""
    asked = _STARTD.findall(text)
    for one in asked:
        if not is_at(one, at):
            raise PoolError(f"another startd goes by this name, at {one[:100]}: its answer doesn't count")
    if not asked and (code == 0 or _CODE.search(text)):
        raise PoolError("the tool doesn't say which startd has answered: its answer doesn't count")


def failed(name: str, code: int, text: str) -> PoolError:
    """The error that a tool's exit stands for."""
    short = " ".join(text.split())[-300:]
    found = _CODE.search(text)
    if found and int(found[1]) == CHECK_FALSE:
        said = " ".join(text[found.end() :].split()).strip(" :.")[:200]
        return DrainRefused(f"the startd says that it is busy ({said})" if said else "the startd is busy")
    if found and int(found[1]) == DRAINING_ALREADY:
        return DrainingAlreadyError(f"the startd drains already: {short}")
    if _DENIED.search(text):
        return PoolDenied(f"{name} was refused: {short}")
    if "timed out" in text or "timeout" in text.lower():
        return PoolTimeout(f"{name} got no answer: {short}")
    return PoolError(f"{name} failed ({code}): {short}")


_PRIMARY = re.compile(r"<([^?>]+)")
_BROKER = re.compile(r"CCBID=([^&>]*)", re.IGNORECASE)


def is_at(told: str, advertised: str) -> bool:
    """Whether the address that a tool has talked to is one of those that a daemon's ad gives.

    A tool may prefer another of them than the first one, and leave away what it doesn't need. Two daemons
    behind different brokers may have the same address of their own.
    """
    primary = _PRIMARY.match(told)
    # In lists of addresses a port comes after a dash, and an IPv6 address has dashes for its colons.
    known = re.split(r"[<>?&=+,\s]", unquote(unquote(advertised)).replace("-", ":"))
    if primary is None or primary[1].replace("-", ":") not in known:
        return False
    brokers, others = (sorted(_BROKER.findall(unquote(unquote(one)))) for one in (told, advertised))
    return not brokers or not others or set(brokers) <= set(others)
