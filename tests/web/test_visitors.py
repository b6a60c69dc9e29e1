"""Who may look: links that are good once, sessions, operators and the others."""

import stat
import time
from pathlib import Path

import pytest

from tests.rigs.pages import Page
from updraft.errors import LedgerError
from updraft.web.site import VIEWS
from updraft.web.visitors import LINK_LIVES, Visitor, Visitors, kept_key, known_key, link

KEY = bytes(range(32))


def visitors(started: float = 0.0) -> Visitors:
    return Visitors(KEY, ("root", "ops"), 3600.0, started)


def test_a_link_opens_once() -> None:
    door, text = visitors(), link(KEY, "alice", 1000.0)
    session = door.opened(text, 1001.0)
    assert session is not None
    assert door.of_session(session, 1002.0) == Visitor("alice", operator=False)
    assert door.opened(text, 1003.0) is None


def test_a_link_is_over_in_minutes_and_with_the_process() -> None:
    text = link(KEY, "", 1000.0)
    assert visitors().opened(text, 1000.0 + LINK_LIVES + 1) is None
    assert visitors(started=1001.0).opened(text, 1002.0) is None


def test_a_session_is_over_in_time_and_outlives_the_process() -> None:
    session = visitors().opened(link(KEY, "ops", 1000.0), 1000.0) or ""
    later = visitors(started=2000.0)
    assert later.of_session(session, 4599.0) == Visitor("ops", operator=True)
    assert later.of_session(session, 4601.0) is None


def test_a_link_is_no_session_and_nobody_makes_either_without_the_key() -> None:
    text = link(KEY, "", 1000.0)
    session = visitors().opened(text, 1000.0) or ""
    assert visitors().of_session(text, 1001.0) is None
    assert visitors().opened(session, 1001.0) is None
    assert visitors().opened(link(bytes(32), "", 1000.0), 1001.0) is None
    body, _, seal = session.partition(".")
    for forged in ("", ".", body, f"{body}.", f"{body}x.{seal}", f"{body}.{seal[:-1]}", "é.é", "x" * 5000):
        assert visitors().of_session(forged, 1001.0) is None


@pytest.mark.parametrize("name", ["", "a b", "alice@elsewhere", "../x", "<b>", "-x", "a" * 65, "root\n"])
def test_what_is_no_bare_name_is_nobody(name: str) -> None:
    assert visitors().called(name) is None


def test_the_key_is_its_owners_alone_and_made_once(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="updraft web"):
        known_key(tmp_path)
    key = kept_key(tmp_path)
    assert kept_key(tmp_path) == key == known_key(tmp_path)
    assert stat.S_IMODE((tmp_path / "web.key").stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["web.key"]
    (tmp_path / "web.key").write_text("abc")
    with pytest.raises(LedgerError, match="damaged"):
        known_key(tmp_path)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("form", ["", ".json", ".csv"])
def test_nobody_sees_anything_without_a_session(page: Page, name: str, form: str) -> None:
    answer = page.ask(f"/{name}{form}")
    assert answer.status in (401, 404)  # of some views there is no CSV
    assert "updraft web open" in answer.text or answer.status == 404
    assert "u003" not in answer.text


def test_an_operator_begins_at_the_overview_and_a_user_at_his_own(page: Page) -> None:
    assert page.enter().ask("/").headers["location"] == "/overview"
    page.cookie = ""
    assert page.enter("u003").ask("/").headers["location"] == "/mine"


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if not view.of_users])
@pytest.mark.parametrize("form", ["", ".json", ".csv"])
def test_what_is_for_operators_is_for_no_user(page: Page, name: str, form: str) -> None:
    answer = page.enter("u003").ask(f"/{name}{form}")
    assert answer.status == 403
    assert "u004" not in answer.text


def test_the_cookie_is_for_this_site_and_no_script(page: Page) -> None:
    opened = page.ask(f"/open?key={link(page.key, '', time.time())}")
    said = opened.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=lax" in said
    assert "path=/" in said
