"""What a worker installs at its first boot, where its image lacks it: HTCondor, docker, apptainer, CernVM-FS.

The recipes are the scripts `files/install*.sh`; this module says what they are to install, from where, and
whose signature it must have. HTCondor's repositories are laid out as `BASE/debian/25.x`, `BASE/ubuntu/25.x`
(apt), `BASE/25.x/el9` (dnf) and `BASE/keys/HTCondor-25.x-Key`; a mirror has to look the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.errors import BootstrapError

HTCONDOR = "https://htcss-downloads.chtc.wisc.edu/repo"
"""Where HTCondor's own repositories are."""

PINNED: Mapping[int, str] = {
    23: "4A56C5BBCDB0AAA2DDE9A690BDEEE24C92897C00",
    24: "F77FE0C70A9BAA739FD352C99DF75B52EFFC3BE6",
    25: "962A9BCDD330245F2703C88B74E5BE22D4E9B1FC",
}
"""The fingerprint of the key that signs the released packages, by HTCondor's major version."""

CERNVM = "https://cvmrepo.web.cern.ch/cvmrepo"
"""Where the packages of CernVM-FS are (`BASE/apt`, `BASE/yum/cvmfs/EL/9`), and their key (`BASE/yum`)."""

CERNVM_KEY = "FD80468D49B3B24C341741FC8CE0A76C497EA957"
"""The fingerprint of the key that signs them, since 2024."""

_VERSION = re.compile(r"(?P<major>[0-9]{2,3})\.(?P<minor>x|[0-9]{1,3})(?P<patch>\.[0-9]{1,3})?")
_KEY = re.compile(r"[0-9A-Fa-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCRIPTS = {
    "install": "install.sh",
    "install-debian": "install-debian.sh",
    "install-rhel": "install-rhel.sh",
    "pin-key": "pin_key.py",
}
_MACROS = {
    "docker": {"DOCKER": "/usr/bin/docker"},
    "apptainer": {"SINGULARITY": "/usr/bin/apptainer"},
}


@dataclass(frozen=True, slots=True)
class Install:
    """What is to be there once the boot is over.

    `version` "" leaves HTCondor alone: the image has it. Else it is one of "25.0" (the long-term series),
    "25.x" (the newest of the feature series), "25.14" or "25.14.1"; `exactly` False takes another one of the
    same minor version where that very one is not to be had. `repository` "" is HTCondor's own; `keys` are
    fingerprints, none: those of `PINNED`. `cvmfs` is the client of CernVM-FS ("package", "cvmfsexec", "" for
    none), `cvmfs_source` where it is from ("": CERN's packages) and `cvmfs_pins` what it must have: the
    fingerprints of a key (none: CERN's), or the file's one SHA-256.
    """

    version: str = ""
    exactly: bool = True
    repository: str = ""
    keys: tuple[str, ...] = ()
    universes: tuple[str, ...] = ()
    cvmfs: str = ""
    cvmfs_source: str = ""
    cvmfs_pins: tuple[str, ...] = ()


def install_files(install: Install) -> list[dict[str, Any]]:
    """The scripts and their settings as entries of `write_files`; none where nothing is to be installed.

    Raises BootstrapError, one sentence, for what can't be.
    """
    if not install.version and not install.universes and not install.cvmfs:
        return []
    return [
        *(
            machine.file(f"{machine.SCRIPTS}/{name}", lean(source), "0755")
            for name, source in _SCRIPTS.items()
        ),
        machine.settings_file("/etc/updraft/install.conf", _settings(install)),
    ]


def universe_macros(universes: tuple[str, ...]) -> dict[str, str | int | bool]:
    """HTCondor's settings for these universes: where their programs are."""
    found: dict[str, str | int | bool] = {}
    for name in universes:
        if name not in _MACROS:
            raise BootstrapError(
                f"there is no recipe for the universe {name}; known are {', '.join(_MACROS)}"
            )
        found |= _MACROS[name]
    return found


def wanted(version: str, exactly: bool = True) -> tuple[str, ...]:
    """Versions that will do, the dearest first; each stands for all that begin with it."""
    found = _parse(version)
    if found["minor"] == "x":
        return (found["major"],)
    if found["patch"] and not exactly:
        return (version, version.rpartition(".")[0])
    return (version,)


def series(version: str) -> str:
    """HTCondor's repository that has this version: `25.0` for long-term support, `25.x` for features."""
    found = _parse(version)
    return f"{found['major']}.0" if found["minor"] == "0" else f"{found['major']}.x"


def _settings(install: Install) -> dict[str, str]:
    universe_macros(install.universes)  # refuses an unknown one
    settings = {"UNIVERSES": " ".join(install.universes), **_cvmfs(install)}
    if not install.version:
        return settings
    return settings | {
        "CONDOR": "yes",
        "WANTED": " ".join(wanted(install.version, install.exactly)),
        "SERIES": series(install.version),
        "REPOSITORY": _repository(install.repository or HTCONDOR),
        "MIRROR": "yes" if install.repository else "",
        "KEYS": " ".join(_keys(install)),
    }


def _cvmfs(install: Install) -> dict[str, str]:
    if not install.cvmfs:
        return {}
    pins = install.cvmfs_pins or ((CERNVM_KEY,) if install.cvmfs == "package" else ())
    form = _KEY if install.cvmfs == "package" else _SHA256
    if not pins or not all(form.fullmatch(pin) for pin in pins):
        raise BootstrapError("cvmfs_pins must be fingerprints of a key, or the SHA-256 of cvmfsexec's file")
    return {
        "CVMFS": install.cvmfs,
        "CVMFS_SOURCE": _repository(install.cvmfs_source or CERNVM),
        "CVMFS_PINS": " ".join(pin.upper() if form is _KEY else pin for pin in pins),
    }


def _keys(install: Install) -> tuple[str, ...]:
    keys = tuple(key.replace(" ", "").upper() for key in install.keys)
    for key in keys:
        if not _KEY.fullmatch(key):
            raise BootstrapError(f"{key!r} is no fingerprint of a key: 40 hexadecimal digits are")
    major = int(_parse(install.version)["major"])
    if not keys and major not in PINNED:
        raise BootstrapError(
            f"no key is known for the repository of HTCondor {major}: set condor_keys to its fingerprint"
        )
    return keys or (PINNED[major],)


def _repository(base: str) -> str:
    if not re.fullmatch(r"(https://|file:///)[A-Za-z0-9._~:/%@+-]+", base):
        raise BootstrapError(f"the repository {base!r} must begin with https:// or file:///")
    return base.rstrip("/")


def _parse(version: str) -> Mapping[str, str]:
    found = _VERSION.fullmatch(version)
    if found is None or (found["minor"] == "x" and found["patch"]):
        raise BootstrapError(
            f"{version!r} is no version of HTCondor: write 25.0, 25.x, 25.14 or 25.14.1, say"
        )
    return found.groupdict(default="")
