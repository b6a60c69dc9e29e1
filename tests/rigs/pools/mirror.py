"""A mirror of HTCondor's package repository for machines that reach no other.

It is built here, signed with a key of its own, and laid into an image as a folder.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import layer

SERIES = "25.x"
PLACE = "srv/mirror"
KEYRING = "usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A layer with the mirror in it, and the fingerprint of the key that signs it."""

    folder: Path
    fingerprint: str

    @property
    def address(self) -> str:
        """What `condor_repository` is on a machine whose image has the layer."""
        return f"file:///{PLACE}"


def packages(store: Path, image: Image, name: str = "condor") -> Path:
    """The .deb files that this package of Debian's needs over what `image` has, fetched once."""

    def fill(root: Path) -> None:
        work = root / ".work"
        for folder in ("lists/partial", "archives/partial"):
            (work / folder).mkdir(parents=True)
        shutil.copy(image.rootfs / "var/lib/dpkg/status", work / "status")
        sources = work / "sources.list"
        # The mirror that the image itself was made from, which apt can ask without being told where it is.
        own = (image.rootfs / "etc/apt/sources.list").read_text()
        sources.write_text(own.replace("deb ", f"deb [signed-by={image.rootfs / KEYRING}] "))
        options = {
            "Dir::State": work,
            "Dir::State::status": work / "status",
            "Dir::State::lists": work / "lists",
            "Dir::Cache": work,
            "Dir::Cache::archives": work / "archives",
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Acquire::Check-Valid-Until": "false",
            "APT::Sandbox::User": "root",
        }
        apt = [
            "apt-get",
            "-q",
            "-y",
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
        ]
        for words in (["update"], ["install", "--no-install-recommends", "--download-only", name]):
            subprocess.run([*apt, *words], check=True, capture_output=True)
        for deb in (work / "archives").glob("*.deb"):
            deb.rename(root / deb.name)
        shutil.rmtree(work)

    return layer(store, f"debs-{name}-{image.rootfs.name}", fill)


def build(folder: Path, debs: Path, suite: str = "forky") -> Mirror:
    """A signed mirror of these packages below `folder`, as HTCondor's own repositories are laid out."""
    base = folder / PLACE
    pool, dist = base / f"debian/{SERIES}/pool", base / f"debian/{SERIES}/dists/{suite}"
    binary = dist / "main/binary-amd64"
    for place in (pool, binary, base / "keys", folder / "etc/condor/config.d"):
        place.mkdir(parents=True)
    entries = []
    for deb in sorted(debs.glob("*.deb")):
        shutil.copy(deb, pool / deb.name)
        entries.append(_entry(deb))
    text = "\n".join(entries).encode()
    (binary / "Packages").write_bytes(text)
    (binary / "Packages.gz").write_bytes(gzip.compress(text, mtime=0))
    home = folder.parent / "gnupg"
    home.mkdir(mode=0o700)
    fingerprint = _key(home, base / f"keys/HTCondor-{SERIES}-Key")
    (dist / "Release").write_text(_release(dist, suite))
    _gpg(home, "--clearsign", "--output", str(dist / "InRelease"), str(dist / "Release"))
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    return Mirror(folder, fingerprint)


def _entry(deb: Path) -> str:
    control = subprocess.run(["dpkg-deb", "-f", str(deb)], check=True, capture_output=True, text=True).stdout
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    return f"{control.rstrip()}\nFilename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"


def _release(dist: Path, suite: str) -> str:
    lines = [
        f"Codename: {suite}",
        "Components: main",
        "Architectures: amd64",
        f"Date: {formatdate(usegmt=True)}",
    ]
    lines.append("SHA256:")
    for file in sorted(dist.rglob("Packages*")):
        data = file.read_bytes()
        lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {file.relative_to(dist)}")
    return "\n".join(lines) + "\n"


def _key(home: Path, public: Path) -> str:
    _gpg(home, "--quick-generate-key", "mirror of a test <mirror@test.invalid>", "rsa3072", "sign", "never")
    _gpg(home, "--armor", "--output", str(public), "--export")
    listed = _gpg(home, "--with-colons", "--fingerprint")
    return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))


def _gpg(home: Path, *words: str) -> str:
    command = ["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "", *words]
    environment = {**os.environ, "GNUPGHOME": str(home)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def close(mirror: Mirror) -> None:
    """End the agent that gpg has started for the key."""
    home = mirror.folder.parent / "gnupg"
    subprocess.run(["gpgconf", "--kill", "all"], check=False, env={**os.environ, "GNUPGHOME": str(home)})
