"""One daemon for one state directory: the lock of this host."""

import fcntl
import os
from pathlib import Path
from typing import Self

from updraft.errors import LedgerError, ProblemFound


class StateLock:
    """Held as long as the process lives, whatever way it ends.

    Raises ProblemFound where another process holds it, LedgerError where the directory can't be written.
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "lock"
        self._file = -1

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise LedgerError(
                f"the lock {self.path} can't be opened ({error.strerror}): run as the owner of "
                f"{self.path.parent}, or set another state directory"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise ProblemFound(
                f"updraft already runs for {self.path.parent} (process {holder}): "
                "stop that one first, or leave this one away"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        return self

    def held(self) -> bool:
        """Whether it still locks the state directory: not once that was removed, or another put in its place.

        Another process may hold that one's lock, and speak under this controller's name.
        """
        try:
            there = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError:  # a disk that doesn't answer has lost nothing yet
            return True
        mine = os.fstat(self._file)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
