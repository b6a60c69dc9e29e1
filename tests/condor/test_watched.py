"""Where updraft only watches, a pool answers and changes nothing, whatever it is asked."""

import inspect
from typing import Any

import pytest

from updraft.condor.base import Pool
from updraft.condor.pool import HTCondorPool
from updraft.condor.watched import WatchedPool
from updraft.errors import WatchOnly

ANSWERS = {"schedds", "demand", "slots", "controllers"}
CHANGES = {
    *("drain", "undrain", "requeue", "forget", "announce", "retract", "mint_token", "mint_boot_token"),
}


class Recorded:
    """A pool of every method that there is, which says what reached it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: self.reached.append(name) or ()


def methods_of(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def called(pool: WatchedPool, name: str) -> Any:
    method = getattr(pool, name)
    parameters = inspect.signature(method).parameters.values()
    named = {one.name: True for one in parameters if one.kind is one.KEYWORD_ONLY}
    return method(*[()] * (len(parameters) - len(named)), **named)


def test_every_method_of_the_contract_answers_or_is_refused() -> None:
    assert methods_of(Pool) == ANSWERS | CHANGES, "a method that is new: does it change anything?"
    inner = Recorded()
    pool = WatchedPool(inner)  # type: ignore[arg-type]
    for name in sorted(CHANGES):
        with pytest.raises(WatchOnly, match="only watches"):
            called(pool, name)
    assert inner.reached == []
    for name in sorted(ANSWERS):
        called(pool, name)
    assert inner.reached == sorted(ANSWERS)


def test_what_the_pool_has_besides_is_out_of_reach() -> None:
    pool = WatchedPool(Recorded())  # type: ignore[arg-type]
    for name in methods_of(HTCondorPool) - ANSWERS - CHANGES - {"close"}:
        assert not hasattr(pool, name), name
