"""Layers of machine images: folders made once, all or nothing, and shared by every cloud on this host."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from updraft.errors import ImageError

DEFAULT_STORE = Path("/var/lib/updraft/local")
STORE_VARIABLE = "UPDRAFT_IMAGE_STORE"
UNUSED_AFTER = 7 * 86400.0


def digest_of(*parts: bytes | str) -> str:
    """A short stable hash of these parts, in this order."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "big") + data)
    return sha.hexdigest()[:12]


def prune(store: Path, prefix: str, used: Path) -> None:
    """Remove layers of this kind that nobody has asked for in a week, and mark `used` as asked for now.

    A cloud that still runs on one of them was started more than a week ago and never asked again.
    """
    os.utime(used)
    for path in (store / "images").glob(f"{prefix}-*"):
        if path != used and time.time() - path.stat().st_mtime > UNUSED_AFTER:
            shutil.rmtree(path, ignore_errors=True)
            (path.parent / f".{path.name}.lock").unlink(missing_ok=True)


def layer(store: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """The folder of the layer `name`, filled by `fill` if it isn't there yet.

    Two processes that ask at once get one layer: the second waits. A fill that fails leaves nothing behind.
    """
    final = store / "images" / name
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _locked(final.parent / f".{name}.lock"):
            if not final.is_dir():
                _fill(final, fill)
    except OSError as error:
        raise ImageError(f"Cannot write the machine image below {store}: {error}.") from error
    return final


def _fill(final: Path, fill: Callable[[Path], None]) -> None:
    # We hold the lock, so an unfinished folder of this name has no owner any more.
    for leftover in final.parent.glob(f".{final.name}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{final.name}.new-", dir=final.parent))
    try:
        scratch.chmod(0o755)
        fill(scratch)
        scratch.rename(final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
