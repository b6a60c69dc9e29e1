"""The list of attacks: forged headers, paths, whatever a user can write, questions without measure."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.rigs import ledgers
from tests.rigs.pages import Page, Read, page_over
from updraft.core.model import Reason
from updraft.ledger import Ledger
from updraft.ledger.reader import Reader
from updraft.web.drawing import HERE
from updraft.web.guarding import MOST_ADDRESS
from updraft.web.site import VIEWS

MARK = "zq9"
HOSTILE = (
    f'{MARK}"><script src=//evil.test/x.js></script>',
    f"{MARK}' onmouseover='alert(1)",
    f'{MARK}" hx-get="//evil.test" hx-trigger="load',
    f"{MARK}</title><img src=x onerror=alert(1)>",
    f"{MARK}{{{{ 7 * 7 }}}}{{% include 'page.html' %}}",
    f"{MARK}\u202egnp.exe\u2066\x1b[2J\x00",
    f"=cmd|' /C calc'!{MARK}",
    f"javascript:alert('{MARK}')",
    f"`{MARK}<img src=x onerror=alert(1)>` and `",
)
OURS = {"page.js", "htmx.min.js", "uplot.min.js"}
PLACES = (
    "?user=root",
    "?key=0000000000000001",
    "?id=i-00000001",
    "?what=1010",
    "?gone=1&hours=24",
    "?failed=1",
    "",
)


# ------------------------------------------------------------------------------------------ who looks


def test_a_users_header_is_believed_from_the_proxys_socket_only(page: Page, proxied: Page) -> None:
    assert page.ask("/overview", [("X-Remote-User", "root")]).status == 401
    assert proxied.ask("/overview", [("X-Remote-User", "root")]).status == 200
    assert proxied.ask("/overview", [("X-Remote-User", "u003")]).status == 403
    assert proxied.ask("/overview").status == 401


def test_a_header_beside_the_proxys_own_is_nobodys(proxied: Page) -> None:
    both = [("X-Remote-User", "root"), ("X-Remote-User", "u003")]
    assert proxied.ask("/mine", both).status == 401
    assert proxied.ask("/mine", [("X-Remote-User", "root, u003")]).status == 401


@pytest.mark.parametrize(
    "name", ["X_Remote_User", "X-Remote-User-", "Remote-User", "X-Forwarded-User", "Authorization"]
)
def test_no_other_header_says_who_looks(proxied: Page, name: str) -> None:
    assert proxied.ask("/mine", [(name, "root")]).status == 401


@pytest.mark.parametrize("name", ["root@evil.test", "root ", "ROOT", "roоt", "../root", "", "root\x00"])
def test_what_only_looks_like_an_operator_is_none(proxied: Page, name: str) -> None:
    sent = name.encode().decode("latin-1")
    assert proxied.ask("/overview", [("X-Remote-User", sent)]).status in (401, 403)


def test_a_session_does_not_outweigh_the_proxys_word(proxied: Page) -> None:
    proxied.enter()
    assert proxied.ask("/overview", [("X-Remote-User", "u003")]).status == 403


@pytest.mark.parametrize("name", ["Host", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded"])
def test_no_header_sends_anybody_elsewhere(page: Page, name: str) -> None:
    page.enter()
    for address in ("/", "/overview/", "//evil.test/overview", "/open?key=x"):
        answer = page.ask(address, [(name, "evil.test")])
        assert "evil.test" not in answer.headers.get("location", "")
        assert "evil.test" not in answer.text


# ---------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "path",
    [
        "/static/../site.py", "/static/..%2fsite.py", "/static/%2e%2e/%2e%2e/etc/passwd", "/%00", "/web.key",
        "/static//etc/passwd", "/static/page.css%00.js", "/static/", "/static/.", "/static/page.css/",
        "/static/PAGE.CSS", "/../../etc/passwd", "/overview.json/..", "/overview.py", "/machine.csv",
        "/overview%0d%0aX: y",
        "/templates/page.html", "/ledger.sqlite", "/group/..;/overview", "/.",
    ],
)  # fmt: skip
def test_a_path_is_one_of_ours_or_nothing(page: Page, path: str) -> None:
    answer = page.enter().ask(path)
    assert answer.status == 404
    assert page.key.hex() not in answer.text


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"]
)
def test_nothing_can_be_changed(page: Page, method: str) -> None:
    for path in ("/overview", "/open?key=x", "/static/page.css"):
        answer = page.enter().ask(path, method=method)
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD"


def test_a_look_writes_nothing(tmp_path: Path) -> None:
    path = ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    before = path.read_bytes()
    page = page_over(path).enter()
    for name in VIEWS:
        page.ask(f"/{name}?user=u003&key=0000000000000001&id=i-00000001&what=1010")
    with Reader(path) as reader:
        stamp = reader._connection.execute("PRAGMA data_version").fetchone()
        page.ask("/cost")
        assert reader._connection.execute("PRAGMA data_version").fetchone() == stamp
    assert path.read_bytes() == before
    page.pictures.close()


# ------------------------------------------------------------------------------- what a user can write


def hostile(path: Path, text: str, now: float) -> None:
    """Put a text into every field of the ledger that somebody outside has a say in."""
    with Ledger(path) as ledger:
        plain = text.replace("\x00", "")
        cycle = json.loads(json.dumps(ledger.last_cycle()))
        ledger.save_cycle(spoiled(cycle, text), now)
        view = ledger.view(now)
        wrong = Reason(plain, plain)
        ledger.remember(
            replace(
                one, flavor=plain, zone=plain, image=plain, worker_class=plain, end=wrong if one.end else None
            )
            for one in view.machines[:20]
        )
        ledger.event(now, plain, plain, wrong, {"asked": text, "offer": text})
        sold = dict.fromkeys(("flavor", "zone", "market"), text) | {"classes": [text]}
        figures = {"price": 1.5, "left": None, "cpus": 2, "memory": 4096, "gpus": 0}
        ledger.note(f"offers {text}", {"at": now, "rows": [sold | figures]}, now)
        for number, one in enumerate(view.machines):
            if number % 5 == 0:
                ledger.keep_console(one.cloud, one.id, text, now)


KEPT = {
    "key",
    "idle",
    "joined",
    "coming",
    "new",
    "unmet",
    "cloud",
    "machine",
    "phase",
    "state",
    "scope",
    "code",
}


def spoiled(value: object, text: str, key: str = "") -> object:
    """The same with every text replaced but for those that only updraft writes."""
    if isinstance(value, dict):
        return {name: spoiled(one, text, name) for name, one in value.items()}
    if isinstance(value, list):
        return [spoiled(one, text, key) for one in value]
    return text if isinstance(value, str) and key not in KEPT else value


@pytest.fixture(scope="module", params=HOSTILE, ids=range(len(HOSTILE)))
def spoilt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, str]:
    now = time.time()
    path = ledgers.made(tmp_path_factory.mktemp("hostile") / "ledger.sqlite", now=now)
    hostile(path, request.param, now)
    return page_over(path).enter(), request.param


def test_nothing_that_a_user_writes_is_more_than_a_text(spoilt: tuple[Page, str]) -> None:
    page, text = spoilt
    seen = 0
    for name in VIEWS:
        for query in (
            *PLACES,
            f"?what={quote(text)}",
            f"?kind={quote(text)}&subject={quote(text)}&owner={quote(text)}",
        ):
            answer = page.ask(f"/{name}{query}")
            if answer.status in (404, 400):
                continue
            assert answer.status == 200, (name, query, answer.text[:500])
            read = Read(answer.text)
            seen += MARK in answer.text
            harmless(read, answer.text)
    assert seen > 10


def harmless(read: Read, text: str) -> None:
    """No element, attribute or address is a stranger's, and no letter is obeyed."""
    for attributes in read.all("script"):
        assert re.sub(r"\?.*", "", attributes["src"] or "").removeprefix("/static/") in OURS
    for tag, attributes in read.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "style")
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "src", "action", "hx-get", "data-charts"):
                assert re.match(r"/(?!/)", value or "") or (value or "").startswith("#")
            if name.startswith("hx-"):
                assert tag in ("main", "div")
    assert "{{" not in text or "7 * 7" in text  # shown as it was written, not carried out
    assert not any(sign in text for sign in "\u202e\u2066\x1b\x00")


def test_a_spreadsheet_takes_no_text_for_a_formula(spoilt: tuple[Page, str]) -> None:
    page, _ = spoilt
    for name, view in VIEWS.items():
        if view.csv and not view.of_users:
            for line in page.ask(f"/{name}.csv").text.splitlines():
                assert not re.search(r'(^|,)"?[=+@]', line)


def test_json_is_no_page(spoilt: tuple[Page, str]) -> None:
    page, _ = spoilt
    answer = page.ask("/overview.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_every_answer_forbids_what_pages_do_not_do(page: Page) -> None:
    for address in (
        "/",
        "/overview",
        "/nowhere",
        "/static/page.css",
        "/open?key=x",
        "/overview?" + "x" * 5000,
    ):
        headers = page.ask(address).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert page.enter().ask("/overview").headers["cache-control"] == "no-store"


def test_templates_switch_no_escaping_off_and_have_no_inline_code() -> None:
    for path in (HERE / "templates").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup", text), path.name
        assert not re.search(r"\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|javascript:", text), path.name
        assert not re.search(r"(?:href|src|action)=(?:\{\{|[^\"'\s>])", text), (
            f"{path.name}: an attribute without quotes"
        )


# ------------------------------------------------------------------------------------------ questions


def test_a_question_without_measure_is_refused(page: Page) -> None:
    page.enter()
    assert page.ask("/log?kind=" + "x" * MOST_ADDRESS).status == 414
    assert page.ask("/" + "x" * MOST_ADDRESS).status == 414
    assert page.ask("/log?kind=" + "x" * 201).status == 400
    assert page.ask("/overview", [("Content-Length", "10")]).status == 413
    assert page.ask("/overview", [("Transfer-Encoding", "chunked")]).status == 413


@pytest.mark.parametrize(
    "address",
    [
        "/machines?page=-1", "/machines?page=1e9", "/machines?page=٣", "/machines?hours=9999999",
        "/cost?days=100000", "/cost?by=nobody", "/cost?month=2026-13", "/cost?month=9999-12",
        "/cost?month=0000-01", "/log?before=-5", "/log?before=99999999999999999999", "/machines?gone=yes",
        "/waiting?length=forever", "/mine?user=../x",
    ],
)  # fmt: skip
def test_a_value_that_makes_no_sense_is_named(page: Page, address: str) -> None:
    answer = page.enter().ask(quote(address, safe="/?=&-"))
    assert answer.status == 400
    assert "That can&#39;t be asked" in answer.text or "That can't be asked" in answer.text


def test_sql_in_a_question_is_a_text(page: Page) -> None:
    page.enter()
    found = json.loads(page.ask("/log.json?kind=" + quote("joined' OR '1'='1")).text)
    assert found["rows"] == []


def test_the_page_of_many_rows_is_bounded(page: Page) -> None:
    read = Read(page.enter().ask("/machines?gone=1").text)
    assert len(read.all("tr")) <= 101
