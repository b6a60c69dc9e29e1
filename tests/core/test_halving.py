"""What fails is found by halves."""

from updraft.core.halving import failing


def test_halves_tell_apart_what_fails() -> None:
    def those(*bad: int) -> list[int]:
        return sorted(failing(range(100), lambda part: bool(set(part) & set(bad))))

    for bad in ((), (0,), (99,), (3, 4), (1, 30, 60, 90)):
        assert those(*bad) == list(bad)
    many = tuple(range(0, 100, 5))
    assert set(many) <= set(those(*many)), "what is not told apart in time is taken together"
    assert len(those(*many)) < 60
