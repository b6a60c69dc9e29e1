"""A key pair made in a cloud, and its private key where only its owner reads it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from updraft.clouds.base import Catalogue
from updraft.errors import CloudError, UsageError

_ROOM = 16384  # bytes: more than any private key takes


def make_key(catalogue: Catalogue | None, name: str, file: Path) -> None:
    """Make the key pair in the cloud, and save its private key where only its owner reads it.

    The file and its room on the disk are there before the cloud is asked: a private key is given once, and
    must find its place. Where it finds none all the same, the pair is deleted: nobody is to choose it.
    """
    if catalogue is None:
        raise UsageError(f"the driver can't make the key pair {name}; make it in the cloud, then name it")
    try:
        with _room_for_key(file) as private:
            key = catalogue.create_key_pair(name)
            try:
                private.write(key.encode("ascii"))
                private.truncate()
                os.fsync(private.fileno())
            except (OSError, ValueError) as error:
                raise UsageError(_unsaved(catalogue, name, file, error)) from error
    except FileExistsError as error:
        raise UsageError(f"{file} is there already; name another file with --key-file") from error
    except OSError as error:
        raise UsageError(
            f"{file} can't be written: {error.strerror}; name another with --key-file"
        ) from error


@contextmanager
def _room_for_key(file: Path) -> Iterator[FileIO]:
    """A new file for its owner alone, with its room on the disk; gone again where what follows fails."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with FileIO(handle, "w") as private:
            os.posix_fallocate(handle, 0, _ROOM)
            yield private
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _unsaved(catalogue: Catalogue, name: str, file: Path, error: Exception) -> str:
    """Deletes the key pair whose private key is lost; a sentence that says how it went."""
    why = f"the private key of {name} can't be written to {file}: {getattr(error, 'strerror', None) or error}"
    try:
        catalogue.delete_key_pair(name)
    except CloudError as left:
        return f"{why}; delete the key pair in the cloud, nobody has its private key: {left}"
    return f"{why}; the key pair is deleted again"
