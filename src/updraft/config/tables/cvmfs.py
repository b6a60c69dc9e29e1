"""What `updraft.toml` says of CernVM-FS, in the table of a worker class, and what a machine says of it."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, model_validator

from updraft.config.tables.part import Part
from updraft.config.values.checks import checked_fingerprint, checked_repository, tuple_of_one

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*(\.[A-Za-z0-9][A-Za-z0-9-]*)+")
PROXY = re.compile(r"DIRECT|auto|https?://[A-Za-z0-9.\[\]:-]+")
SERVER = re.compile(r"https?://[A-Za-z0-9._~:/%@+-]+")
PUBLIC, PRIVATE = "-----BEGIN PUBLIC KEY-----", "PRIVATE KEY"
SHA256 = re.compile(r"[0-9a-f]{64}")


def advertised(names: Iterable[str]) -> Mapping[str, str]:
    """What a slot says of the repositories that are mounted: name to ClassAd expression.

    `HAS_CVMFS_atlas_cern_ch` is the form that the Open Science Grid's jobs ask for; `UpdraftCVMFS` is the
    list, for `stringListMember`. Nothing is said of none.
    """
    mounted = tuple(names)
    if not mounted:
        return {}
    flags = {f"HAS_CVMFS_{re.sub(r'[^A-Za-z0-9]', '_', name)}": "true" for name in mounted}
    return {**flags, "UpdraftCVMFS": f'"{",".join(mounted)}"'}


def checked_name(name: str) -> str:
    """The full name of a repository."""
    if not NAME.fullmatch(name):
        raise ValueError(f'"{name}" is no full name of a repository; write it as in "atlas.cern.ch"')
    return name


def checked_proxy(proxies: str) -> str:
    """Proxies as CernVM-FS reads them: groups by ";", and in a group by "|"."""
    for one in re.split(r"[;|]", proxies):
        if not PROXY.fullmatch(one):
            raise ValueError(
                f'"{one}" is no proxy; write "http://squid.example.org:3128;DIRECT", say: addresses, DIRECT '
                'or auto, with "|" between equals and ";" before what comes next'
            )
    return proxies


def checked_server(address: str) -> str:
    """The address of a repository's server; several with ";" between them."""
    for one in address.split(";") if address else ():
        if not SERVER.fullmatch(one):
            raise ValueError(f'"{one}" must begin with http:// or https://, as "http://host/cvmfs/@fqrn@"')
    return address


def checked_key(given: object, info: ValidationInfo) -> object:
    """A public key: its text, or the path of its file beside the configuration."""
    if not isinstance(given, str) or not given.strip():
        raise ValueError("is no text; give the path of the repository's .pub file")
    name, text = "inline", given
    if not given.lstrip().startswith("-----"):
        name, text = given, _content(cast(Path, (info.context or {}).get("base", Path())) / given)
    if PUBLIC not in text or PRIVATE in text:
        raise ValueError('is no public key; the ".pub" file of the repository\'s server has it')
    return {"name": name, "text": text}


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read; give the path of the repository's .pub file") from error


class PublicKey(Part):
    """A repository's public key (PEM): `name` is its path, or "inline"."""

    name: str
    text: str


class Repository(Part):
    """One CernVM-FS repository. Those of CERN, EGI and OSG need only their name."""

    name: Annotated[str, AfterValidator(checked_name)]
    server: Annotated[str, AfterValidator(checked_server)] = ""
    key: Annotated[PublicKey, BeforeValidator(checked_key)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Repository":
        if bool(self.server) != (self.key is not None):
            raise ValueError("needs both server (its address) and key (its public key), or neither")
        return self

    @property
    def key_text(self) -> str:
        """The text of its public key; nothing where it needs none."""
        return "" if self.key is None else self.key.text


def _as_table(given: object) -> object:
    return {"name": given} if isinstance(given, str) else given


Repositories = Annotated[
    tuple[Annotated[Repository, BeforeValidator(_as_table)], ...], BeforeValidator(tuple_of_one)
]
Pins = Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)]


class Software(Part):
    """The keys of a worker class that speak of CernVM-FS."""

    cvmfs: Repositories = ()
    """CernVM-FS repositories that its machines mount below /cvmfs, as `["atlas.cern.ch"]`. One of your own is
    a table: `{ name = "software.example.org", server = "http://host/cvmfs/@fqrn@", key = "software.pub" }`,
    the key being a file beside the configuration. A machine that can't mount them all fails its boot."""
    cvmfs_proxy: Annotated[str, AfterValidator(checked_proxy)] = "DIRECT"
    """Proxies of the CernVM-FS client, as `http://squid.example.org:3128;DIRECT`. More than a few machines
    should have one."""
    cvmfs_client: Literal["package", "cvmfsexec"] = "package"
    """"package": the client's package; the first boot installs it where the image lacks it. "cvmfsexec":
    nothing is installed, and each job runs inside a `cvmfsexec` of its own, unprivileged, with a cache of its
    own."""
    cvmfs_source: Annotated[str, AfterValidator(checked_repository)] = ""
    """Where the client comes from: with "package" a mirror of CERN's package repositories (empty: CERN's
    own); with "cvmfsexec" the self-contained file that its `makedist -o` makes, with your proxies, servers
    and keys in it."""
    cvmfs_pins: Pins = ()
    """With "package" the fingerprints that the repository's signing key may have (none: CERN's, which updraft
    knows); with "cvmfsexec" the SHA-256 of the file, which has to be that one."""

    @model_validator(mode="after")
    def _one_client(self) -> "Software":
        if self.cvmfs_client == "package":
            for pin in self.cvmfs_pins:
                checked_fingerprint(pin)
            return self
        if not self.cvmfs_source or not all(SHA256.fullmatch(pin) for pin in self.cvmfs_pins):
            raise ValueError('cvmfs_client = "cvmfsexec" needs cvmfs_source and cvmfs_pins (its SHA-256)')
        if len(self.cvmfs_pins) != 1:
            raise ValueError("cvmfs_pins is to be the one SHA-256 of the file that cvmfs_source names")
        if self.cvmfs_proxy != "DIRECT" or any(one.server for one in self.cvmfs):
            raise ValueError("cvmfsexec has proxies, servers and keys in its file: makedist puts them there")
        return self
