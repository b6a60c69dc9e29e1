"""Machine images: a Debian root file system with HTCondor and cloud-init, and updraft laid over it.

An image is a stack of layers. The lowest is Debian's, made by mmdebstrap and named by the hash of its recipe;
the others (what updraft depends on, what stands in for firmware and systemd, updraft itself) are thin, so
that a change of the code makes no new root file system.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from updraft.clouds.local.images.contents import dependencies_layer, source_layer, system_layer
from updraft.clouds.local.images.layers import DEFAULT_STORE, digest_of, layer
from updraft.errors import ImageError

Progress = Callable[[str], None]

_PACKAGES = (
    "ca-certificates",
    "cloud-init",
    "iproute2",
    "nftables",
    "procps",
    "python3",
    "sudo",
    "tini",
)
_SPACE_NEEDED = 2 * 1024**3
# HTCondor without a security configuration refuses nearly everything; 23.x has no plain `recommended`.
_SECURITY = """\
if version >= 23.10.0
    use security:recommended
else
    use security:recommended_v9_0
endif
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a Debian layer is made of. `condor` False leaves HTCondor out: such a machine never joins."""

    suite: str = "forky"
    condor: bool = True
    revision: int = 1

    @property
    def name(self) -> str:
        """The image's short name: the suite, with what is missing."""
        return self.suite if self.condor else f"{self.suite}-dry"

    @property
    def packages(self) -> tuple[str, ...]:
        """Debian packages asked for, those that they depend on not counted."""
        return tuple(sorted((*_PACKAGES, "condor"))) if self.condor else _PACKAGES

    @property
    def digest(self) -> str:
        """The hash of all that goes into the layer."""
        return digest_of(json.dumps(asdict(self)), *self.packages, _SECURITY)


@dataclass(frozen=True, slots=True)
class Image:
    """A machine image that is ready: its `name`, and its layers, the lowest first."""

    name: str
    layers: tuple[Path, ...]

    @property
    def rootfs(self) -> Path:
        """Debian's own layer."""
        return self.layers[0]


def build(
    store: Path = DEFAULT_STORE,
    *,
    suite: str = "forky",
    condor: bool = True,
    progress: Progress | None = None,
) -> Image:
    """The image of this suite below `store`, made if it isn't there (about a minute; `progress` gets lines).

    Raises ImageError with what to do where it can't be made.
    """
    recipe = Recipe(suite=suite, condor=condor)
    say = progress or (lambda _line: None)
    rootfs = layer(store, f"{recipe.name}-{recipe.digest}", lambda root: _debian(root, recipe, say))
    return Image(recipe.name, (rootfs, *_updraft_layers(store, rootfs, say)))


def find(store: Path = DEFAULT_STORE, *, suite: str = "forky", condor: bool = True) -> Path | None:
    """The Debian layer of this suite's image, None where it wasn't built yet."""
    recipe = Recipe(suite=suite, condor=condor)
    path = store / "images" / f"{recipe.name}-{recipe.digest}"
    return path if path.is_dir() else None


def _updraft_layers(store: Path, rootfs: Path, say: Progress) -> tuple[Path, ...]:
    return (dependencies_layer(store, rootfs, say), system_layer(store), source_layer(store, rootfs))


def _debian(root: Path, recipe: Recipe, say: Progress) -> None:
    _check(root)
    say(f"Building the machine image {recipe.name} (Debian {recipe.suite}); this is done once.")
    command = [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        '--aptopt=Acquire::Check-Valid-Until "false"',
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        f"--include={','.join(recipe.packages)}",
        recipe.suite,
        str(root),
    ]
    _watch(command, say)
    _clean(root)


def _check(root: Path) -> None:
    if os.geteuid() != 0:
        raise ImageError("A machine image can only be built by root; run this with sudo.")
    if shutil.which("mmdebstrap") is None:
        raise ImageError("mmdebstrap is not installed; run `apt-get install mmdebstrap`.")
    free = shutil.disk_usage(root).free
    if free < _SPACE_NEEDED:
        raise ImageError(
            f"{root.parent} has {free // 1024**2} MiB free and a machine image needs "
            f"{_SPACE_NEEDED // 1024**2} MiB; make room, or name another store."
        )


def _watch(command: list[str], say: Progress) -> None:
    """Run mmdebstrap, pass its lines on, and name its own error where it fails."""
    tail: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_surroundings(),
    ) as process:
        try:
            for line in process.stderr or ():
                if line.startswith("I: "):
                    say(line[3:].strip())
                tail = [*tail[-29:], line.strip()]
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        errors = [line for line in tail if line.startswith(("E:", "Err"))] or tail[-1:] or ["no message"]
        raise ImageError(
            f"mmdebstrap could not make the image ({errors[0]}); check that Debian's mirror can be reached "
            "and try again."
        )


def _surroundings() -> dict[str, str]:
    """What of our environment an image's packages see: all but what is told to our own HTCondor.

    HTCondor's package asks its tools where the log folder is, and makes that one.
    """
    ours = ("CONDOR_CONFIG", "_CONDOR_")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(ours)}


def _clean(root: Path) -> None:
    """Take out what belongs to one machine only, and the configuration of a pool that isn't ours."""
    for folder in ("var/log", "var/cache/apt", "var/lib/apt/lists"):
        for entry in sorted((root / folder).glob("**/*"), reverse=True):
            if entry.is_file() or entry.is_symlink():
                entry.unlink()
    for file in ("etc/machine-id", "etc/resolv.conf", "etc/hostname"):
        (root / file).unlink(missing_ok=True)
        (root / file).write_text("")
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    condor = root / "etc/condor"
    if condor.is_dir():
        _clean_condor(condor)


def _clean_condor(condor: Path) -> None:
    for folder, mode in (("config.d", 0o755), ("passwords.d", 0o700), ("tokens.d", 0o700)):
        shutil.rmtree(condor / folder, ignore_errors=True)
        (condor / folder).mkdir(mode=mode)
    (condor / "config.d/00-security").write_text(_SECURITY)
