"""Whatever holds a purchase back, something is said of what would change it."""

import re
from pathlib import Path

import pytest

import updraft.core
from updraft.core.model import Reason
from updraft.core.reasons import REMEDIES, HeldBack, counted, held_back

HOLDING_BACK = (
    "buying/shopping",
    "buying/wanting",
    "demand/sequence",
    "demand/threshold",
    "limits/budget",
    "limits/pace",
    "outlooks",
    "placing",
    "sharing/shares",
)


def test_every_reason_that_holds_back_has_its_remedy() -> None:
    folder = Path(updraft.core.__file__).parent
    text = "\n".join((folder / f"{name}.py").read_text() for name in HOLDING_BACK)
    codes = set(re.findall(r'Reason\(\s*f?"([a-z-]+)"', text)) - {"not-allowed", "not-evaluated"}
    assert len(codes) > 12
    assert codes - REMEDIES.keys() == set()


def test_a_reason_is_told_with_its_remedy() -> None:
    assert held_back(Reason("user-limit", "x")).remedy.startswith("a larger `cores_per_user`")
    assert held_back(Reason("something-else", "x")) == HeldBack("something-else", "x", "")


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 machines"), (1, "1 machine"), (2, "2 machines"), (40, "40 machines")]
)
def test_numbers_have_their_noun(number: int, said: str) -> None:
    assert counted(number, "machine") == said
