"""Documents as pages, JSON and CSV. Whatever comes from outside is escaped here, in one place, for all views.

In pages every text goes through `printable` (nothing that a terminal or a browser obeys is left, no letters
that turn the direction of writing) and then through Jinja's escaping, which nothing switches off.
"""

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from updraft.documents import Row
from updraft.usage.formats.text import write_csv
from updraft.watching import words
from updraft.watching.sentences import cost_words, of_most
from updraft.web.looking import Look

JSON_VERSION = 1
HERE = Path(__file__).parent
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".LICENSE": "text/plain"}


@dataclass(frozen=True, slots=True)
class File:
    """A file that pages are made with, as it was read at the start."""

    content: bytes
    kind: str

    @property
    def hash(self) -> str:
        """A short hash of what is in it."""
        return hashlib.sha256(self.content).hexdigest()[:12]


FILES: Mapping[str, File] = {
    path.name: File(path.read_bytes(), _KINDS[path.suffix]) for path in sorted((HERE / "static").iterdir())
}


@dataclass(frozen=True, slots=True)
class Shown:
    """Which page is to be drawn: its view, how often it is drawn anew, the menu, and what was asked for.

    With `fragment` only what changes, for a page that is open.
    """

    name: str
    title: str
    every: int
    csv: bool
    menu: Sequence[str]
    query: str
    fragment: bool

    @property
    def address(self) -> str:
        """The address of this page."""
        return f"/{self.name}?{self.query}" if self.query else f"/{self.name}"

    def form(self, form: str) -> str:
        """The address of the same as JSON or CSV."""
        return f"/{self.name}.{form}?{self.query}" if self.query else f"/{self.name}.{form}"

    def but(self, **changes: Any) -> str:
        """The address of this view with other values behind the question mark; an empty one is left out."""
        values = (
            dict(parse_qsl(self.query)) | {"page": ""} | {name: str(one) for name, one in changes.items()}
        )
        query = urlencode({name: one for name, one in values.items() if one})
        return f"/{self.name}?{query}" if query else f"/{self.name}"


def page_of(shown: Shown, document: Row, look: Look) -> Response:
    """The page of a document, or of what changes of it."""
    template = TEMPLATES.get_template(f"{shown.name}.html")
    text = template.render(
        shown=shown,
        doc=document,
        visitor=look.visitor,
        now=look.now,
        status=look.picture.status,
        read=look.picture.at,
    )
    return Response(text, media_type="text/html", headers={"vary": "hx-request"})


def said(status: int, title: str, text: str, where: str) -> Response:
    """A page that says one thing, and where to go from there ("" for nowhere)."""
    page = TEMPLATES.get_template("said.html").render(title=title, text=text, where=where)
    return Response(page, status, media_type="text/html")


def json_of(document: Row) -> Response:
    """The document with the version of its form first."""
    text = json.dumps({"version": JSON_VERSION, **document}, default=list)
    return Response(text, media_type="application/json")


def csv_of(name: str, rows: Sequence[Row], columns: Sequence[str]) -> Response:
    """Rows as a table for a spreadsheet; of a list, its texts."""
    out = io.StringIO()
    flat = (
        {key: "; ".join(map(str, value)) if isinstance(value, list) else value for key, value in row.items()}
        for row in rows
    )
    write_csv(flat, columns, out)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


# ---------------------------------------------------------------------------------------------- templates


def _shown(value: Any) -> Any:
    """What stands for a value in a page: unknown is not zero, and no text is obeyed."""
    if value is None:
        return "–"
    return value if isinstance(value, Markup) or not isinstance(value, str) else words.printable(value)


def _number(value: float | None) -> str:
    """A number as a person reads it: with separators, and no more digits than say something."""
    if value is None:
        return "–"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _money(value: float | None) -> str:
    return "?" if value is None else f"{value:,.2f}"


def _of_kind(value: float | None, what: str) -> str:
    """A number of machines or cores, an amount of memory (MiB), or money, by what it is of."""
    if value is None:
        return "–"
    if what == "memory":
        return words.megabytes(int(value))
    return _money(value) if what.startswith("cost") else _number(value)


_CODED = re.compile(r"`([^`]{1,200})`")


def _coded(text: str) -> Markup:
    """A sentence with what stands in backticks as code; it is made safe before anything is made of it."""
    return Markup(_CODED.sub(r"<code>\1</code>", str(escape(words.printable(text)))))  # noqa: S704 (escaped)


def _price(value: float) -> str:
    """What an hour of something costs: all with as many digits, so that they stand under each other."""
    return f"{value:,.4f}"


def _offer(key: str) -> str:
    """An offer as a person says it: `class@cloud/zone/flavor/market`, as its key is."""
    place, _, _ = key.partition("?")
    parts = place.partition("@")[2].split("/")
    if len(parts) < 4:
        return key
    where, flavor, market = "/".join(parts[:-2]), parts[-2], parts[-1]
    return f"{flavor} ({market}) in {where}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _exact(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _clock(at: float, now: float) -> str:
    """The time of day of UTC, with the date where it isn't today's."""
    today = datetime.fromtimestamp(now, UTC).date()
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%Y-%m-%d %H:%M:%S")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _address(name: str, **values: Any) -> str:
    """The address of a view with these values behind the question mark."""
    query = urlencode({key: value for key, value in values.items() if value})
    return f"/{name}?{query}" if query else f"/{name}"


def _static(name: str) -> str:
    return f"/static/{name}?{FILES[name].hash}"


def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": words.ago,
        "clock": _clock,
        "coded": _coded,
        "exact": _exact,
        "iso": _iso,
        "memory": words.megabytes,
        "money": _money,
        "number": _number,
        "of_kind": _of_kind,
        "offer": _offer,
        "percent": _percent,
        "price": _price,
        "visible": words.printable,
    }
    made.globals |= {
        "address": _address,
        "cost_words": cost_words,
        "count": words.count,
        "of_most": of_most,
        "static": _static,
    }
    return made


TEMPLATES = _templates()
