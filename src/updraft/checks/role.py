"""The role that a cloud has given to this machine: whoever can ask the metadata has its credentials."""

import http.client
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from updraft.checks.finding import Area, Finding

HERE = Area("here")
ADDRESS = "169.254.169.254"
_ROLES = "/latest/meta-data/iam/security-credentials/"
_PATIENCE = 1.5
_PEOPLE = range(1000, 60000)  # user ids of accounts that are people's
_NO_LOGIN = ("nologin", "false", "sync")
_SHOWN = 3
_REMEDY = "let root alone ask it, as a head made by updraft does at each boot: docs/explanation/security.md"


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """Of this machine: its role ("" for none), who may log in, and whether only root can ask for it."""

    role: str
    people: Sequence[str]
    closed: bool


def facts() -> RoleFacts:
    """Ask the metadata service, the accounts and the routing rules. A machine of no cloud takes a moment."""
    return RoleFacts(role_of(), people(), closed_to_others())


def judge(seen: RoleFacts) -> Iterator[Finding]:
    """A role is for updraft alone. Nothing is said of a machine without one."""
    if not seen.role:
        return
    text = f"this machine holds the cloud role {seen.role}"
    if seen.closed:
        yield HERE.ok("instance role", f"{text}, and only root can ask for its credentials")
        return
    who = ", ".join(seen.people[:_SHOWN]) + (" and others" if len(seen.people) > _SHOWN else "")
    can = f"{who} may log in" if who else "any process here"
    yield HERE.warning(
        "instance role", f"{text}; {can}: whoever asks {ADDRESS} has all that the role may", _REMEDY
    )


def role_of(host: str = ADDRESS, port: int = 80) -> str:
    """The name of the role, as EC2 and its like tell it; "" where there is none, or no such service."""
    try:
        token = _ask(host, port, "PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        said = _ask(host, port, "GET", _ROLES, {"X-aws-ec2-metadata-token": token} if token else {})
    except (OSError, http.client.HTTPException):
        return ""
    name = said.split("\n", 1)[0].strip()
    return name if name.isprintable() and "<" not in name else ""


def _ask(host: str, port: int, method: str, path: str, headers: dict[str, str]) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read(1024).decode("ascii", "replace")
        return text if answer.status == 200 else ""
    finally:
        connection.close()


def people() -> list[str]:
    """Accounts that a person may log in to."""
    found = [one for one in pwd.getpwall() if one.pw_uid in _PEOPLE]
    return [one.pw_name for one in found if Path(one.pw_shell).name not in _NO_LOGIN]


def closed_to_others(route: Sequence[str] = ("ip", "route", "get", ADDRESS, "uid", "65534")) -> bool:
    """Do this machine's routing rules keep others than root from the address?"""
    try:
        done = subprocess.run(route, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode != 0 and ("prohibit" in done.stderr.lower() or "permission" in done.stderr.lower())
