"""A page over a small ledger, made once: nobody writes to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.pages import Page, page_over, small


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("page"))


@pytest.fixture
def page(ledger: Path) -> Iterator[Page]:
    """To nobody yet: the socket for browsers."""
    made = page_over(ledger)
    yield made
    made.pictures.close()


@pytest.fixture
def proxied(ledger: Path) -> Iterator[Page]:
    """To nobody yet: the socket for a proxy, which says who looks in X-Remote-User."""
    made = page_over(ledger, header="X-Remote-User")
    yield made
    made.pictures.close()
