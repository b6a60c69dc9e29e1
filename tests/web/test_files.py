"""What is shipped with the page is what was vendored, with its licence; nothing comes from elsewhere."""

import hashlib
import re
from pathlib import Path

import pytest

from tests.rigs.pages import Page
from updraft.web.drawing import HERE

STATIC = HERE / "static"
VENDORED = {  # from htmx.org 4.0.1 and uplot 1.6.32 on npm, as docs/explanation/dependencies.md says
    "htmx.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "uplot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "uplot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
}
OURS = {"icon.svg", "page.css", "page.js"}


def test_what_is_vendored_is_as_it_was_published() -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in STATIC.iterdir()}
    assert {name: found[name] for name in found if name not in OURS} == VENDORED


def test_each_has_its_licence() -> None:
    assert "Zero-Clause BSD" in (STATIC / "htmx.LICENSE").read_text()
    assert "MIT License" in (STATIC / "uplot.LICENSE").read_text()


@pytest.mark.parametrize(
    "path", [*(STATIC / name for name in sorted(OURS)), *sorted((HERE / "templates").iterdir())]
)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|url\(|@import|//[a-z0-9-]+\.[a-z]", text)


def test_a_file_is_kept_by_browsers_under_an_address_of_its_own(page: Page) -> None:
    text = page.enter().ask("/cost").text
    for address in set(re.findall(r'"(/static/[^"]+)"', text)):
        answer = page.ask(address)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        assert hashlib.sha256(answer.body).hexdigest().startswith(address.partition("?")[2])
