"""Tokens that are shown to see what they are good for."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import deadline
from updraft.condor.access import PoolAccess
from updraft.condor.collector.views import read_schedds
from updraft.condor.support.probe import PoolProbe, ScheddSeen


def test_a_token_that_is_shown_is_not_taken_for_the_next_ones(tmp_path: Path) -> None:
    """The collector and the brokers are asked at the same time."""
    probe = PoolProbe(PoolAccess("p", "cm.test", tmp_path, "dom"))
    try:
        folders = [
            Path(probe._as_worker(text)["_CONDOR_SEC_TOKEN_DIRECTORY"]) for text in ("first", "second")
        ]
        assert [(folder / "worker").read_text() for folder in folders] == ["first\n", "second\n"]
        assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]
    finally:
        probe.close()
    assert not any(folder.exists() for folder in folders)


class Slow:
    """In place of the children: the collector's answer, and a schedd that gives none in time."""

    def __init__(self, names: list[str], hangs: str) -> None:
        self.names = names
        self.hangs = hangs
        self.over = threading.Event()

    def begin(self, _source: str) -> None:
        """They need no time to begin."""

    def call(self, _source: str, _deadline: float, function: object, *arguments: Any) -> Any:
        if function is read_schedds:
            return self.names
        if arguments[1] == self.hangs:
            self.over.wait(30)  # as a child that is slow to begin, which counts for no deadline
        return ScheddSeen(arguments[1], "25.14.1", "", None)

    def close(self) -> None:
        self.over.set()


@pytest.mark.slow
def test_a_schedd_whose_child_is_late_is_named_and_the_others_answers_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = PoolProbe(PoolAccess("p", "cm.test", tmp_path, "dom"))
    slow = Slow(["a", "b", "c"], hangs="b")
    monkeypatch.setattr(probe, "_children", slow)
    try:
        found = probe.schedds(deadline(0.5))
    finally:
        probe.close()
    assert found["b"] == f"no answer within {deadline(0.5):g} s"
    assert [one.name for one in found.values() if isinstance(one, ScheddSeen)] == ["a", "c"]
