"""Takes users' requests at a unix socket: a few at a time, none for long, each by whom the kernel says."""

import contextlib
import os
import pwd
import selectors
import socket
import stat
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import structlog

from updraft.daemon.annex_requests import wire
from updraft.errors import LedgerError, UpdraftError, UsageError

Answer = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""From a user's name and what was asked to what is answered; raises UpdraftError to refuse."""

SECONDS = 5.0
AT_ONCE = 16
EACH = 2
_BACKLOG = 32
_REST = 0.5  # seconds, where no connection can be taken for lack of descriptors


class Server:
    """Listens at `path` from `start` to `stop`. No question waits for another's user."""

    def __init__(self, path: Path, answer: Answer, seconds: float = SECONDS) -> None:
        self._path = path
        self._answer = answer
        self._seconds = seconds
        self._stopping = threading.Event()
        self._wake: socket.socket | None = None
        self._lock = threading.Lock()
        self._serving: Counter[int] = Counter()
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._log = structlog.get_logger("updraft")

    def start(self) -> None:
        """Begin to listen. Raises LedgerError, a sentence, where that can't be."""
        try:
            self._socket = _listen(self._path)
        except OSError as error:
            raise LedgerError(f"requests for annexes can't be taken at {self._path}: {error}") from error
        self._wake, woken = socket.socketpair()
        accept = self._accept
        self._thread = threading.Thread(target=accept, args=(woken,), name="annex-requests", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more; what is being answered is left to end by itself."""
        self._stopping.set()
        if self._wake is not None:
            self._wake.close()
        if self._thread is not None:
            self._thread.join()
        if self._socket is not None:
            self._socket.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------------- inside

    def _accept(self, woken: socket.socket) -> None:
        listening = self._socket
        assert listening is not None  # noqa: S101  # set by start
        listening.setblocking(False)  # who asked may have gone before it is taken
        with woken, selectors.DefaultSelector() as events:
            events.register(listening, selectors.EVENT_READ)
            events.register(
                woken, selectors.EVENT_READ
            )  # by `stop`: a shutdown doesn't end every kernel's wait
            while events.select() and not self._stopping.is_set():
                try:
                    connection, _ = listening.accept()
                except BlockingIOError:
                    continue
                except OSError:  # of descriptors there may be too few for a while
                    self._stopping.wait(_REST)
                    continue
                connection.setblocking(True)
                self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        """Answer it in a thread of its own, or turn it away at once."""
        try:
            uid = wire.peer(connection)
            admitted = uid is not None and self._admit(uid)
        except OSError:
            connection.close()
            return
        if uid is None or not admitted:
            text = "too many requests at a time: ask again" if uid is not None else "nobody knows who you are"
            self._say(connection, _refused("busy" if uid is not None else "unknown-user", text))
            connection.close()
            return
        threading.Thread(target=self._serve, args=(connection, uid), daemon=True).start()

    def _admit(self, uid: int) -> bool:
        with self._lock:
            if self._serving[uid] >= EACH or self._serving.total() >= AT_ONCE:
                return False
            self._serving[uid] += 1
            return True

    def _serve(self, connection: socket.socket, uid: int) -> None:
        try:
            with connection:
                self._say(connection, self._answered(connection, uid))
        finally:
            with self._lock:
                self._serving[uid] -= 1
                if not self._serving[uid]:
                    del self._serving[uid]

    def _answered(self, connection: socket.socket, uid: int) -> Mapping[str, Any]:
        try:
            user = pwd.getpwuid(uid).pw_name
        except KeyError:
            return _refused("unknown-user", f"this machine has no user {uid}")
        try:
            question = wire.receive(connection, wire.LONGEST_QUESTION, self._seconds)
            return {"ok": True, **self._answer(user, question)}
        except wire.MalformedError as error:
            return _refused("malformed", str(error))
        except OSError:
            return _refused("malformed", "the connection has failed")
        except LedgerError as error:  # of the operator, who reads the log: it may name paths
            self._log.error("a request for an annex failed", why=str(error))
            return _refused("failed", "updraft can't take this up now: ask its operator")
        except UsageError as error:
            return _refused("refused", str(error))
        except wire.StartingError as error:
            return _refused("starting", str(error))
        except UpdraftError as error:
            return _refused("not-now", str(error))
        except Exception:
            self._log.exception("a request for an annex failed by a fault of updraft itself")
            return _refused("failed", "updraft can't take this up: ask its operator")

    def _say(self, connection: socket.socket, document: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # who asked has gone, or doesn't listen
            wire.send(connection, document, 1.0 if document.get("code") == "busy" else self._seconds)


def _refused(code: str, text: str) -> dict[str, Any]:
    return {"ok": False, "code": code, "text": text}


def _listen(path: Path) -> socket.socket:
    """A socket at this path that everybody may connect to, in place of one that an earlier daemon left."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        path.parent.chmod(0o755)
    if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
        raise OSError(f"{path} is there, and is no socket")
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        made.bind(str(fresh))
        fresh.chmod(0o666)
        made.listen(_BACKLOG)
        fresh.replace(path)  # by its name it is there as a whole, or not
    except BaseException:
        made.close()
        raise
    return made
