"""Whether new machines of a cloud will reach the pool, as far as it can be known before one is paid for.

The best proof is a machine of the same class that has joined from there. Without one, the address that
machines are told is looked at: one that means this machine only, or that doesn't even answer here, reaches
nobody.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from updraft.checks.asking import Answer
from updraft.checks.finding import POOL, Finding
from updraft.core.model import MachineRecord
from updraft.errors import PoolError

WHAT = "address for machines"
_PORT = 9618


def questions(collectors: Callable[[], Sequence[str]], deadline: float) -> Mapping[str, Callable[[], Any]]:
    """What to ask: `collectors` finds the addresses that machines are told, each `host[:port]`."""
    return {"reach": lambda: [(one, *_tried(one, deadline)) for one in collectors()]}


def _tried(collector: str, deadline: float) -> tuple[str, str]:
    """Where this name leads, and why it doesn't answer there; "" where it does."""
    host, port = split(collector)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        address = str(found[0][4][0])
    except OSError as error:
        raise PoolError(f"{host} is no name that can be looked up: {error.strerror}") from error
    try:
        socket.create_connection((address, port), timeout=deadline).close()
    except OSError as error:
        return address, error.strerror or str(error)
    return address, ""


def split(collector: str) -> tuple[str, int]:
    """Host and port of a collector's address, without the name behind a shared port."""
    plain = collector.partition("?")[0].strip("<>")
    host, colon, port = plain.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        return plain.strip("[]"), _PORT
    return host.strip("[]"), int(port)


def judge(answer: Answer, proven: Mapping[str, bool]) -> Iterator[Finding]:
    """What is to be said; `proven` says of each cloud whether one of the class has joined from there."""
    if all(proven.values()) and proven:
        yield POOL.ok(WHAT, f"machines of {', '.join(proven)} have joined the pool within the last day")
        return
    if answer.error is not None:
        yield POOL.problem(WHAT, str(answer.error).rstrip("."), "correct collector in [pool]")
        return
    for name, address, why in answer.value:
        yield _address(name, address, why, [cloud for cloud, known in proven.items() if not known])


def _address(name: str, address: str, why: str, clouds: Sequence[str]) -> Finding:
    found = ipaddress.ip_address(address.partition("%")[0])
    if found.is_loopback or found.is_unspecified or found.is_link_local:
        text = f"machines are told to join at {name}, which is {address}: that means themselves"
        remedy = "set collector in [pool], or CONDOR_HOST on the head, to an address that they can reach"
        return POOL.problem(WHAT, text, remedy)
    if why:
        text = f"nothing answers at {name} ({address}), where machines are told to join: {why}"
        return POOL.problem(WHAT, text, "start HTCondor on the head, and open its port to the machines")
    if found.is_private:
        told = name if name == address else f"{name} ({address})"
        text = (
            f"machines are told to join at {told}, a private address, and no machine has joined from "
            f"{', '.join(clouds)} yet"
        )
        return POOL.warning(
            WHAT, text, "a few machines are tried first; they must have a way to that network"
        )
    return POOL.ok(WHAT, f"machines are told to join at {name}, and it answers")


def joined_from(
    clouds: Iterable[str], worker_class: str, records: Iterable[MachineRecord]
) -> dict[str, bool]:
    """Of each cloud, whether a machine of the class has joined from there, by what the ledger still has."""
    seen = {one.cloud for one in records if one.worker_class == worker_class and one.joined_at is not None}
    return {name: name in seen for name in clouds}
