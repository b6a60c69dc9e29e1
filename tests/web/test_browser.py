"""Every view in a real browser, over a large pool with a year behind it: how soon, how wide, who is kept out.

The pool has 5,000 machines, 100,000 waiting jobs and 366 days of use. The times hold on a quiet machine of
two cores, where `make test-browser` runs one test at a time; beside other work they are longer.
"""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs import ledgers
from tests.rigs.pages import PLACES
from tests.rigs.web import browser as browsers
from tests.rigs.web.browser import Browser
from tests.rigs.web.serving import LEDGER, opening, served
from tests.waiting import patience
from updraft.ledger import Ledger
from updraft.web.site import VIEWS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE, NARROW = 1280, 390
FIRST_PAINT = 1.0
REFRESH = 0.3
AXE = {  # from axe-core 4.14.1 on npm, as docs/explanation/dependencies.md says
    "axe.LICENSE": "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e",
    "axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the ledger of a large pool."""
    folder = tmp_path_factory.mktemp("large")
    ledgers.made(folder / LEDGER, ledgers.LARGE, time.time())
    return folder


@pytest.fixture(scope="module")
def shown(large: Path) -> Iterator[Browser]:
    """A browser that has come by a link, as an operator."""
    with served(large) as base, browsers.browser(base) as made:
        made.size(WIDE)
        made.go(opening(large))
        made.said()
        yield made


def looked(large: Path) -> None:
    """The daemon looks again: what was read of the ledger is no longer the newest."""
    now = time.time()
    with Ledger(large / LEDGER) as ledger:
        ledger.note("controller", ledgers.controller(now), now)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_view_is_there_at_once_fits_and_keeps_nobody_out(
    shown: Browser, large: Path, width: int, scheme: str, name: str
) -> None:
    looked(large)
    shown.size(width)
    shown.colours(scheme)
    shown.go(f"/{name}{PLACES.get(name, '')}")
    painted = shown.first_paint()
    assert shown.overflow() <= 0
    assert not shown.faults()
    assert not shown.said()
    assert painted <= FIRST_PAINT * patience()


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.every])
def test_an_open_view_is_drawn_anew_at_once(shown: Browser, large: Path, name: str) -> None:
    shown.size(WIDE)
    shown.go(f"/{name}{PLACES.get(name, '')}")
    shown.first_paint()
    looked(large)
    took = shown.refresh()
    assert not shown.said()
    assert took <= REFRESH * patience()


def test_what_looks_for_faults_is_as_it_was_published() -> None:
    folder = browsers.AXE.parent
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == AXE


def test_a_fault_is_found(shown: Browser) -> None:
    shown.size(WIDE)
    shown.go("/overview")
    shown.run(
        "document.getElementById('view').insertAdjacentHTML('beforeend', '<img src=\"/static/icon.svg\">')"
    )
    shown.run("document.body.style.width = '3000px'")
    assert any("image-alt" in fault for fault in shown.faults())
    assert shown.overflow() > 0
