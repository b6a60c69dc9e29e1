"""Asks a page as a browser does, without one: an application is called with a request, and says an answer."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.rigs import ledgers
from updraft.config.tables.usage import Usage
from updraft.web.pictures import Pictures
from updraft.web.site import Site
from updraft.web.visitors import Visitors, kept_key, link

Headers = Iterable[tuple[str, str]]
PLACES = {
    "mine": "?user=u003",
    "group": "?key=0000000000000001",
    "machine": "?id=i-00000001",
    "search": "?what=1010",
}
"""What the views that take something are asked for, of a ledger of `ledgers.made`."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as a text."""
        return self.body.decode()


@dataclass
class Page:
    """A site over a ledger, and who looks at it: `cookie` is what was given."""

    site: Site
    pictures: Pictures
    visitors: Visitors
    key: bytes
    cookie: str = ""

    def ask(self, address: str, headers: Headers = (), method: str = "GET") -> Answer:
        """The answer to one request, with this page's cookie."""
        path, _, query = address.partition("?")
        sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        if self.cookie:
            sent.append((b"cookie", self.cookie.encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": sent,
            "server": ("127.0.0.1", 8642),
            "client": ("127.0.0.1", 50000),
        }
        return asyncio.run(_call(self.site.application, scope))

    def enter(self, user: str = "") -> "Page":
        """Come by a link: for this user, or with "" for an operator."""
        opened = self.ask(f"/open?key={link(self.key, user, time.time())}")
        assert opened.status == 303
        self.cookie = opened.headers["set-cookie"].partition(";")[0]
        return self


async def _call(application: Any, scope: dict[str, Any]) -> Answer:
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(dict(message))

    await application(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return Answer(said[0]["status"], headers, b"".join(one.get("body", b"") for one in said[1:]))


def page_over(ledger: Path, *, header: str = "", operators: tuple[str, ...] = ("root",)) -> Page:
    """The site of this ledger, to nobody yet."""
    key = kept_key(ledger.parent)
    visitors = Visitors(key, operators, 3600.0, time.time() - 1)
    pictures = Pictures(ledger, "demo", Usage())
    return Page(Site(pictures, visitors, header), pictures, visitors, key)


def small(folder: Path) -> Path:
    """A small ledger, of now."""
    return ledgers.made(folder / "ledger.sqlite", now=time.time())


class Read(HTMLParser):
    """What is in a page: its elements with their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of this name."""
        return [attributes for name, attributes in self.tags if name == tag]
