"""A mail server on loopback that takes every mail, and keeps it."""

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.policy import default
from queue import SimpleQueue


class _Handler(socketserver.StreamRequestHandler):
    """RFC 5321, as far as one mail takes it."""

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def handle(self) -> None:
        self.say("220 loopback")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                self.say("354 go on")
                self._take()
            self.say("221 bye" if verb == b"QUIT" else "250 yes")
            if verb == b"QUIT":
                return

    def _take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        self.server.mails.put(email.message_from_bytes(b"".join(lines), policy=default))  # type: ignore[attr-defined]


class MailServer(socketserver.ThreadingTCPServer):
    """`mails` has what has come, in its order."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mails: SimpleQueue[Message] = SimpleQueue()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """One that is at work meanwhile."""
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
