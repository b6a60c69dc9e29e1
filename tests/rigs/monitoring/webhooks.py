"""A web server on loopback that takes what is posted to it, keeps it, and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    server: "Webhook"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.put((self.path, json.loads(body)))
        self.server.answering.wait(30)
        self.send_response(self.server.answer)
        if 300 <= self.server.answer < 400:
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 (the name that the library looks for)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


class Webhook(ThreadingHTTPServer):
    """`posted` has paths and documents; each gets `answer` once `answering` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: SimpleQueue[tuple[str, dict[str, Any]]] = SimpleQueue()
        self.answer = 200
        self.answering = threading.Event()
        self.answering.set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def webhook() -> Iterator[Webhook]:
    """One that is at work meanwhile."""
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.answering.set()
            server.shutdown()
            thread.join(10)
