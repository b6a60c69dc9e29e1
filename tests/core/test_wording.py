"""One machine is no machines: how sentences count."""

import pytest

from updraft.core.wording import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 machines"), (1, "1 machine"), (2, "2 machines"), (40, "40 machines")]
)
def test_numbers_have_their_noun(number: int, said: str) -> None:
    assert counted(number, "machine") == said
