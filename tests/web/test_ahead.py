"""What is read ahead of who asks serves, is made anew while somebody looks, and is nobody's trouble else."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.rigs import ledgers
from tests.rigs.pages import small
from tests.waiting import until
from updraft.config.tables.usage import Usage
from updraft.ledger import Ledger
from updraft.web import ahead
from updraft.web.ahead import Ahead
from updraft.web.looking import this_month
from updraft.web.pictures import Picture, Pictures


def pictures(path: Path) -> Pictures:
    return Pictures(path, "demo", Usage())


def looked_at(shown: Pictures) -> float | None:
    return None if shown._given is None else shown._given.status["daemon"]["looked_at"]


def asked(shown: Pictures) -> Picture:
    return asyncio.run(shown.ask(Pictures.picture))


def test_what_the_daemon_writes_is_read_while_somebody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "EVERY", 0.05)
    path = small(tmp_path)
    shown = pictures(path)
    reading = Ahead(shown, pictures(path))
    try:
        first = asked(shown)
        now = first.status["daemon"]["looked_at"] + 5
        with Ledger(path) as ledger:
            ledger.note("controller", ledgers.controller(now), now)
        until(lambda: looked_at(shown) == now, 60, "what was written isn't read")
        assert asked(shown).status["daemon"]["looked_at"] == now
        assert shown._picture is None or shown._picture[1] is first  # no question has read it
    finally:
        reading.close()
        shown.close()


def test_reports_are_made_before_anybody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path)
    shown = pictures(path)
    reading = Ahead(shown, pictures(path))
    try:
        until(lambda: len(shown._reports) == 2, 60, "no report is made")
        monkeypatch.setattr(shown, "_make", None)
        report = asyncio.run(shown.ask(lambda one: one.report("user", this_month(time.time()))))
        assert report is not None
        assert report["rows"]
    finally:
        reading.close()
        shown.close()


def test_a_ledger_that_is_away_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "SELDOM", 0.05)
    shown = pictures(tmp_path / "ledger.sqlite")
    reading = Ahead(shown, pictures(tmp_path / "ledger.sqlite"))
    try:
        small(tmp_path)
        until(lambda: shown._given is not None, 60, "the ledger isn't found again")
    finally:
        reading.close()
        shown.close()
    assert not reading._thread.is_alive()
