"""The thin layers of an image: what updraft depends on, what stands in for systemd, and updraft itself."""

import platform
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

import updraft
from updraft import DISTRIBUTION, requirements
from updraft.clouds.local.images.layers import digest_of, layer, prune
from updraft.errors import ImageError

HOME = Path("opt/updraft")
# Debian's condor package brings these bindings along, built for its own Python. Those of releases before this
# one lack what updraft calls: an image with such a condor gets the newer bindings, which speak to it as well.
_BINDINGS = "htcondor"
_OLDEST_BINDINGS = 25
_MANYLINUX = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
_LAUNCHER = """\
#!/bin/sh
# updraft as it was on the host when this cloud started.
export PYTHONPATH=/opt/updraft/src:/opt/updraft/lib
exec python3 -P -m updraft.cli.main "$@"
"""
# Where each file of this package's `files` folder goes in a machine, and its mode.
_SYSTEM_FILES = {
    "boot": ("usr/libexec/updraft-machine/boot", 0o755),
    "stages.py": ("usr/libexec/updraft-machine/stages.py", 0o644),
    "keep": ("usr/libexec/updraft-machine/keep", 0o755),
    "systemctl": ("usr/bin/systemctl", 0o755),
    "poweroff": ("usr/sbin/poweroff", 0o755),
    "cloud.cfg": ("etc/cloud/cloud.cfg", 0o644),
    "nsswitch.conf": ("etc/nsswitch.conf", 0o644),
}
_SAME_AS_POWEROFF = ("halt", "shutdown", "reboot")


def dependencies_layer(store: Path, rootfs: Path, say: Callable[[str], None]) -> Path:
    """Wheels of what updraft depends on, by the lock and its hashes, for the Python of `rootfs`."""
    version = _python_of(rootfs)
    wanted = requirements.locked(without=() if _old_bindings(rootfs) else (_BINDINGS,))

    def fill(root: Path) -> None:
        say(f"Fetching updraft's Python packages for Python {version}.")
        _pip(root / HOME / "lib", wanted, version)
        _compile(rootfs, root, "lib")

    return layer(store, f"python{version}-{digest_of(wanted, version, platform.machine())}", fill)


def system_layer(store: Path) -> Path:
    """What a machine has instead of firmware and systemd, and cloud-init's settings."""
    files = {name: _file(name) for name in _SYSTEM_FILES}

    def fill(root: Path) -> None:
        for name, (target, mode) in _SYSTEM_FILES.items():
            path = root / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
            path.chmod(mode)
        for name in _SAME_AS_POWEROFF:
            (root / "usr/sbin" / name).symlink_to("poweroff")

    return layer(store, f"system-{digest_of(repr(_SYSTEM_FILES), *files.values())}", fill)


def source_layer(store: Path, rootfs: Path) -> Path:
    """updraft itself as it runs here, with its entry points, and the command that starts it."""
    package = Path(updraft.__file__).parent
    sources = {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {
        name: metadata.distribution(DISTRIBUTION).read_text(name) or ""
        for name in ("METADATA", "entry_points.txt")
    }

    def fill(root: Path) -> None:
        home = root / HOME / "src"
        info = home / f"{DISTRIBUTION.replace('-', '_')}-{updraft.__version__}.dist-info"
        for path, data in (
            *((home / "updraft" / name, data) for name, data in sources.items()),
            *((info / name, text.encode()) for name, text in about.items()),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        launcher = root / "usr/local/bin/updraft"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(_LAUNCHER)
        launcher.chmod(0o755)
        _compile(rootfs, root, "src")

    parts = [part for name, data in sources.items() for part in (name.encode(), data)]
    made = layer(store, f"source-{digest_of(_LAUNCHER, _python_of(rootfs), *about.values(), *parts)}", fill)
    prune(store, "source", made)
    return made


def _old_bindings(rootfs: Path) -> bool:
    """Does the image have HTCondor's bindings, of a release that is too old for us?"""
    found = (rootfs / "usr/lib/python3/dist-packages").glob(f"{_BINDINGS}-*-info")
    return any(int(info.name.split("-")[1].partition(".")[0]) < _OLDEST_BINDINGS for info in found)


def _pip(target: Path, wanted: str, version: str) -> None:
    machine = platform.machine()
    tags = [argument for tag in _MANYLINUX for argument in ("--platform", f"{tag}_{machine}")]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-input"),
        *("--disable-pip-version-check", "--root-user-action=ignore", "--only-binary=:all:"),
        *("--require-hashes", "--requirement", "/dev/stdin"),
        *("--implementation", "cp", "--python-version", version, *tags, "--target", str(target)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=wanted)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ImageError(
            f"pip could not fetch updraft's Python packages for the image ({last}); check that the package "
            "index can be reached and try again."
        )


def _compile(rootfs: Path, root: Path, folder: str) -> None:
    """Compile a layer's Python with the image's own interpreter: a machine then starts updraft at once."""
    script = (
        'mount --bind "$1" "$2/mnt" && exec chroot "$2" python3 -m compileall -q -s /mnt -p /opt/updraft /mnt'
    )
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(root / HOME / folder), str(rootfs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise ImageError(
            f"The image's Python could not compile {folder}: {(done.stdout + done.stderr).strip()[-300:]}"
        )


def _python_of(rootfs: Path) -> str:
    """The version of an image's Python, like `3.14`."""
    try:
        return (rootfs / "usr/bin/python3").readlink().name.removeprefix("python")
    except OSError as error:
        raise ImageError(
            f"The image at {rootfs} has no Python; remove that folder and build it again."
        ) from error


def _file(name: str) -> bytes:
    return (resources.files("updraft.clouds.local") / "files" / name).read_bytes()
