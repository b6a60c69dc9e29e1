"""Whether this machine holds a role in a cloud, and who besides updraft may log in to it."""

import contextlib
import http.client
import os
import pwd
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from updraft.checks.asking import Answer
from updraft.checks.finding import Area, Finding

HERE = Area("here")
METADATA = "169.254.169.254"
_ROLES = "/latest/meta-data/iam/security-credentials/"
_TIMEOUT = 1.0
_PATIENCE = 3.0
_PEOPLE = range(1000, 60000)  # user ids, as Linux gives them out
_NO_SHELLS = ("nologin", "false", "sync", "halt", "shutdown")
_LONGEST = 80
_SHOWN = 5
_CLOSED = 3
# By the route, and by each device: a socket that is bound to one doesn't ask the routing rules.
_TRY = """
import select, socket
tried = []
for device in ["", *(name for _, name in socket.if_nameindex())]:
    one = socket.socket()
    one.setblocking(False)
    try:
        if device:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        one.connect((HOST, PORT))
    except BlockingIOError:
        tried.append(one)
    except OSError:
        continue
    else:
        raise SystemExit(0)
while answered := select.select([], tried, [], TIMEOUT)[1]:
    if not all(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for one in answered):
        raise SystemExit(0)
    tried = [one for one in tried if one not in answered]
raise SystemExit(CLOSED)
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A role in the cloud that this machine was launched with, "" for none; who besides root may use it."""

    role: str
    users: tuple[str, ...] = ()


def judge(held: Answer, people: Sequence[str]) -> Iterator[Finding]:
    """Nothing where there is no role: most machines have none. `people` may log in."""
    if held.error is not None or not held.value.role:
        return
    name, users = f"this machine's role {held.value.role}", held.value.users
    if not users:
        shut = f"closed to those who may log in ({_named(people)})" if people else "root's alone"
        yield HERE.ok("role", f"{name} gives updraft its credentials; the metadata address is {shut}")
        return
    yield HERE.warning(
        "role",
        f"{name} may be used by whoever gets at the metadata address, and others who log in here do: "
        f"{_named(users)}",
        "close the metadata address to them, let them log in to a submit node without a role, or give the "
        "role no more rights than docs/howto/ec2.md lists",
    )


def held(host: str = METADATA, port: int = 80) -> Held:
    """The role, and which of the people who may log in get an answer where its credentials are.

    As root it is tried as one of them: what is closed is closed to all of them. Anybody else speaks for all.
    """
    role, some = role_of_machine(host, port), people()
    if not role or not some:
        return Held(role)
    reached = os.geteuid() != 0 or _reaches(pwd.getpwnam(some[0]), host, port)
    return Held(role, some if reached else ())


def _reaches(who: pwd.struct_passwd, host: str, port: int) -> bool:
    """Whether this account gets a connection there."""
    told = f"HOST, PORT, TIMEOUT, CLOSED = {host!r}, {port}, {_TIMEOUT}, {_CLOSED}\n"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", told + _TRY],
            user=who.pw_uid,
            group=who.pw_gid,
            extra_groups=(),
            capture_output=True,
            timeout=_PATIENCE,
            cwd="/",
            check=False,
        )
        return done.returncode != _CLOSED
    return True  # who can't be asked isn't known to be shut out


def _named(people: Sequence[str]) -> str:
    return ", ".join(people[:_SHOWN]) + (", …" if len(people) > _SHOWN else "")


def role_of_machine(host: str = METADATA, port: int = 80) -> str:
    """The role that the metadata service has credentials of; "" where there is none, or no such service.

    Asked as Amazon's is, with a token, which the local cloud's answers too. Takes two seconds at most.
    """
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    try:
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        token = _answer(connection, "PUT", "/latest/api/token", headers)
        found = _answer(connection, "GET", _ROLES, {"X-aws-ec2-metadata-token": token})
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
    return "".join(filter(str.isprintable, found.partition("\n")[0])).strip("/ ")[:_LONGEST]


def people(accounts: Iterable[pwd.struct_passwd] | None = None) -> tuple[str, ...]:
    """The accounts of people that have a shell: some of them may have no way in yet."""
    found = pwd.getpwall() if accounts is None else accounts
    return tuple(
        one.pw_name
        for one in found
        if one.pw_uid in _PEOPLE and Path(one.pw_shell).name not in _NO_SHELLS and one.pw_shell
    )


def _answer(connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str]) -> str:
    """The text of an answer; of a refusal, nothing."""
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    text = response.read(4096).decode("utf-8", "replace")
    return text if response.status == http.client.OK else ""
