"""What a worker is told of CernVM-FS: which repositories it mounts, from where, and what it says of them.

The client is CERN's package or a self-contained `cvmfsexec` file: `install` gets either.
The script `files/cvmfs.sh` mounts, looks into every repository as a job would, and only then lets the startd
say so. A repository that can't be mounted fails the boot: the planner has counted on it, and a machine
without it would be bought again for the same jobs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.config.tables.cvmfs import NAME, advertised
from updraft.errors import BootstrapError

CLIENTS = ("package", "cvmfsexec")

_PLAIN = re.compile(r"[A-Za-z0-9._~:/%@+;|\[\]-]+")
_KEY = re.compile(r"-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*")
_FOLDER = "/etc/cvmfs"


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository by its full name. `server` and `key` (a public key, PEM) are for a site's own one."""

    name: str
    server: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class SharedSoftware:
    """What is to be below /cvmfs. `proxy` is CVMFS_HTTP_PROXY; with "cvmfsexec" that is in its file."""

    repositories: tuple[Repository, ...] = ()
    proxy: str = "DIRECT"
    client: str = "package"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all repositories, in their order."""
        return tuple(one.name for one in self.repositories)


def cvmfs_files(software: SharedSoftware) -> list[dict[str, Any]]:
    """The client's configuration and the script that mounts, as entries of `write_files`; none for nothing.

    Raises BootstrapError, one sentence, for what can't be written into a configuration.
    """
    if not software.repositories:
        return []
    _check(software)
    found = [
        machine.file(f"{machine.SCRIPTS}/cvmfs", lean("cvmfs.sh"), "0755"),
        machine.settings_file("/etc/updraft/cvmfs.conf", _settings(software)),
        machine.file("/etc/updraft/cvmfs.condor", condor_lines(software.names)),
    ]
    if software.client == "cvmfsexec":
        return found
    return [
        *found,
        machine.file(f"{_FOLDER}/default.local", f'CVMFS_HTTP_PROXY="{software.proxy}"\n'),
        *(entry for one in software.repositories for entry in _own(one)),
    ]


def condor_lines(names: Iterable[str]) -> str:
    """HTCondor's configuration of a machine that has these repositories; the boot puts it in force."""
    says = advertised(names)
    lines = "".join(f"{name} = {value}\n" for name, value in says.items())
    return f"{lines}STARTD_ATTRS = $(STARTD_ATTRS) {' '.join(says)}\n"


def _settings(software: SharedSoftware) -> Mapping[str, str]:
    return {"CLIENT": software.client, "REPOSITORIES": " ".join(software.names)}


def _own(one: Repository) -> list[dict[str, Any]]:
    """Where a site's own repository is, and whose signature it has."""
    if not one.server:
        return []
    key = f"{_FOLDER}/keys/{one.name}.pub"
    text = f'CVMFS_SERVER_URL="{one.server}"\nCVMFS_PUBLIC_KEY={key}\n'
    return [
        machine.file(f"{_FOLDER}/config.d/{one.name}.local", text),
        machine.file(key, one.key.strip() + "\n"),
    ]


def _check(software: SharedSoftware) -> None:
    if software.client not in CLIENTS:
        raise BootstrapError(f"{software.client!r} is no client of CernVM-FS: {' or '.join(CLIENTS)}")
    if not _PLAIN.fullmatch(software.proxy):
        raise BootstrapError(f"{software.proxy!r} is no list of proxies as CernVM-FS reads it")
    for one in software.repositories:
        if not NAME.fullmatch(one.name):
            raise BootstrapError(f"{one.name!r} is no full name of a CernVM-FS repository")
        if one.server and not (_PLAIN.fullmatch(one.server) and _KEY.fullmatch(one.key)):
            raise BootstrapError(f"the repository {one.name} needs an address and a public key (PEM) of it")
