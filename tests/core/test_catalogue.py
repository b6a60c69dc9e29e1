"""What is imagined of a machine that nobody has seen yet."""

import pytest

from updraft.core.catalogue import usable
from updraft.core.model import Resources

GIB = 1024 * 1024


@pytest.mark.parametrize("gib", [1, 4, 8, 100])
def test_a_small_disk_is_not_taken_for_none(gib: int) -> None:
    """What can't be imagined is never bought, and what is never bought is never learned."""
    found = usable(Resources(1, 1024, gib * GIB)).disk
    assert gib * GIB // 2 <= found < gib * GIB
    assert found >= (gib - 4) * GIB
