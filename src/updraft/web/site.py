"""The addresses: each view as a page, as JSON and as CSV; a link that opens; what the pages are made with.

Whatever a request says of itself is held against what there is, never turned into a path or a query: files
are those that were read at the start, views those of a table. Nothing is answered but GET and HEAD.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from updraft.documents import Row
from updraft.errors import LedgerError
from updraft.web import drawing
from updraft.web.guarding import Guard
from updraft.web.looking import BadQueryError, Look, NotThereError, Query
from updraft.web.pictures import Pictures, TooManyAskError
from updraft.web.views import (
    annexes,
    clouds,
    cost,
    log,
    machines,
    overview,
    own,
    search,
    users,
    waiting,
)
from updraft.web.visitors import COOKIE, Visitor, Visitors


@dataclass(frozen=True, slots=True)
class View:
    """One address: what makes its document, the columns of its CSV, and whether users may look, too."""

    make: Callable[[Look], Row]
    title: str
    csv: tuple[str, ...] = ()
    of_users: bool = False
    every: int = 10
    """How often a page that is open shows it anew, in seconds; 0 for never."""


VIEWS = {
    "overview": View(overview.view, "Overview", overview.CSV),
    "waiting": View(waiting.view, "Waiting", waiting.CSV),
    "machines": View(machines.view, "Machines", machines.CSV),
    "cost": View(cost.view, "Cost", cost.CSV, every=60),
    "clouds": View(clouds.view, "Clouds", clouds.CSV),
    "users": View(users.view, "Users", users.CSV),
    "annexes": View(annexes.view, "Annexes", annexes.CSV),
    "log": View(log.view, "Log", log.CSV, every=5),
    "mine": View(own.view, "Mine", own.CSV, of_users=True),
    "group": View(waiting.group_view, "Jobs alike", of_users=True),
    "machine": View(machines.machine_view, "Machine", of_users=True),
    "search": View(search.view, "Search", of_users=True, every=0),
}
MENU = ("overview", "waiting", "machines", "cost", "clouds", "users", "annexes", "log", "mine")
_GET = ["GET", "HEAD"]


class Site:
    """The application for one socket; what comes in `user_header` ("" for none) is who looks."""

    def __init__(self, pictures: Pictures, visitors: Visitors, user_header: str = "") -> None:
        self._pictures, self._visitors = pictures, visitors
        self._header = user_header.lower()
        routes = [
            Route("/", self._start, methods=_GET),
            Route("/open", self._open, methods=_GET),
            Route("/static/{name}", self._static, methods=_GET),
        ]
        for name, view in VIEWS.items():
            routes.append(Route(f"/{name}", self._page(name, view, "html"), methods=_GET))
            routes.append(Route(f"/{name}.json", self._page(name, view, "json"), methods=_GET))
            if view.csv:
                routes.append(Route(f"/{name}.csv", self._page(name, view, "csv"), methods=_GET))
        application = Starlette(routes=routes, exception_handlers={404: self._nowhere, 500: _broken})
        # It would send people to whatever host a request names.
        application.router.redirect_slashes = False
        self.application = Guard(application)

    async def _start(self, request: Request) -> Response:
        visitor = self._who(request)
        if visitor is None:
            return _nobody()
        return _to("/overview" if visitor.operator else "/mine")

    async def _open(self, request: Request) -> Response:
        now = time.time()
        session = self._visitors.opened(request.query_params.get("key", ""), now)
        if session is None:
            return _nobody("This link has been used, or is over.")
        answer = _to("/")
        lasts = self._visitors.session
        answer.set_cookie(COOKIE, session, max_age=lasts, httponly=True, samesite="lax", path="/")
        return answer

    async def _static(self, request: Request) -> Response:
        found = drawing.FILES.get(request.path_params["name"])
        if found is None:
            return await self._nowhere(request, None)
        # The address has the hash of what is in the file.
        headers = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(found.content, media_type=found.kind, headers=headers)

    def _page(self, name: str, view: View, form: str) -> Callable[[Request], Any]:
        async def page(request: Request) -> Response:
            visitor = self._who(request)
            if visitor is None:
                return _nobody()
            if not (visitor.operator or view.of_users):
                return _said(403, "This is for operators", "What is yours is on your own page.", "/mine")
            query = Query(dict(request.query_params))
            fragment = request.headers.get("hx-request") == "true"

            def make(pictures: Pictures) -> Response:
                look = Look(pictures, pictures.picture(), visitor, query, time.time())
                document = view.make(look)
                if form == "json":
                    return drawing.json_of(document)
                if form == "csv":
                    return drawing.csv_of(name, document["rows"], view.csv)
                shown = drawing.Shown(
                    name, view.title, view.every, bool(view.csv), MENU, request.url.query, fragment
                )
                return drawing.page_of(shown, document, look)

            return await self._answered(make)

        return page

    async def _answered(self, make: Callable[[Pictures], Response]) -> Response:
        try:
            return await self._pictures.ask(make)
        except BadQueryError as error:
            return _said(400, "That can't be asked", f"{error}.", "/")
        except NotThereError as error:
            return _said(404, "Not there", f"{error}.", "/")
        except TooManyAskError:
            answer = _said(503, "Too many ask", "Come again in a moment.", "/")
            answer.headers["retry-after"] = "5"
            return answer
        except LedgerError as error:
            return _said(503, "There is no picture", f"{error}.", "/")

    def _who(self, request: Request) -> Visitor | None:
        """Who looks: by the proxy's header where one is believed, else by a session."""
        if self._header:
            said = request.headers.getlist(self._header)
            if said:
                # Two of them: one is the client's own, and nobody knows which.
                return self._visitors.called(said[0]) if len(said) == 1 else None
        session = request.cookies.get(COOKIE)
        return self._visitors.of_session(session, time.time()) if session else None

    async def _nowhere(self, request: Request, _error: Exception | None) -> Response:
        return _said(404, "Not there", "There is no such address.", "/")


def _to(where: str) -> Response:
    return RedirectResponse(where, status_code=303)


def _nobody(why: str = "") -> Response:
    text = "`updraft web open`, on the head and as root, prints a link that opens this page once."
    return _said(401, "Who looks?", f"{why} {text}".strip(), "")


def _said(status: int, title: str, text: str, where: str) -> Response:
    return drawing.said(status, title, text, where)


async def _broken(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("this should not have happened: the log of `updraft web` says more\n", 500)
