"""Tokens that are shown to see what they are good for."""

from pathlib import Path

from updraft.condor.access import PoolAccess
from updraft.condor.probe import PoolProbe


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
