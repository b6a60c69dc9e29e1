"""Names chosen by patterns, of which some leave out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.core.slots.choice import chosen


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["*"], "c1.small m1.small m1.large"),
        (["m1.*"], "m1.small m1.large"),
        (["*", "!m1.*"], "c1.small"),
        (["!m1.*"], "c1.small"),
        (["!m1.large", "m1.*"], "m1.small"),
        (["m1.small", "!m1.*"], ""),
        (["!*"], ""),
        ([], ""),
    ],
)
def test_what_is_left_out_is_left_out_in_whatever_order(patterns: list[str], names: str) -> None:
    assert [one for one in ("c1.small", "m1.small", "m1.large") if chosen(one, patterns)] == names.split()


@given(st.text("ab.", max_size=4), st.lists(st.text("ab.*?", max_size=3)), st.text("ab*", max_size=3))
def test_leaving_out_only_ever_takes_away(name: str, patterns: list[str], out: str) -> None:
    assert not (chosen(name, [*patterns, "*", f"!{out}"]) and not chosen(name, [*patterns, "*"]))
    assert not chosen(name, [*patterns, "!" + name]), "by its own name"
