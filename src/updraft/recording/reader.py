"""Reading recorded decisions, and deciding them again."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from updraft import __version__
from updraft.core.model import Learned, Observation, Plan, Snapshot
from updraft.core.prepare import prepare
from updraft.core.settings import Policy
from updraft.errors import UsageError
from updraft.recording.codec import Decoder, Encoder, UnreadableError, canonical, explained
from updraft.recording.writer import FORMAT

LONGEST_LINE = 256 * 1024 * 1024

Planner = Callable[[Snapshot, Policy], Plan]


@dataclass(frozen=True, slots=True)
class Decision:
    """One recorded decision: what was seen and learned, the policy, and the plan as it was written."""

    number: int
    observation: Observation
    learned: Learned
    policy: Policy
    plan: Any

    def prepared(self) -> Snapshot:
        """The snapshot that it was made about."""
        return prepare(self.observation, self.learned, self.policy)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A decision made again. `differs` is empty where the plan is the recorded one, byte for byte."""

    number: int
    at: float
    made: Plan
    differs: tuple[str, ...]


def decisions(path: Path) -> Iterator[Decision]:
    """The decisions in a file, in their order.

    UsageError where the file isn't a recording, is of another version of updraft, or is damaged; a file whose
    last line was cut off (the daemon was killed) ends before that line.
    """
    try:
        with gzip.open(path, "rb") as stream:
            _check(path, stream)
            yield from _rows(path, stream)
    except OSError as error:
        why = error.strerror or "it is no recording of `updraft run --record`"
        raise UsageError(f"{path}: can't be read: {why}") from error


def replay(path: Path, plan: Planner) -> Iterator[Replayed]:
    """Each snapshot of a file prepared again, and decided about by `plan`, and what of the plan differs.

    UsageError as for `decisions`, and where a decision can't be made again.
    """
    for found in decisions(path):
        try:
            made = plan(found.prepared(), found.policy)
            encoded = json.loads(canonical(Encoder(share=False).encode(made)))
        except UnreadableError as error:
            raise UsageError(f"{path}, decision {found.number}: {error}") from error
        except Exception as error:
            # A plan is written down once it is made: what can't be decided now is not what was seen then.
            what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UsageError(
                f"{path}, decision {found.number}: it can't be made again, the file is damaged ({what})"
            ) from error
        yield Replayed(found.number, found.learned.at, made, _differences(found.plan, encoded))


def _check(path: Path, stream: gzip.GzipFile) -> None:
    header = _line(path, 0, stream)
    if header is None or not isinstance(header.get("recording"), int):
        raise UsageError(f"{path}: this is no recording of `updraft run --record`")
    if header["recording"] != FORMAT or header.get("updraft") != __version__:
        raise UsageError(
            f"{path}: it was recorded by updraft {header.get('updraft')} (format {header['recording']}), and "
            f"this is {__version__} (format {FORMAT}); replay it with that version"
        )


def _rows(path: Path, stream: gzip.GzipFile) -> Iterator[Decision]:
    decoder, number = Decoder(), 1
    while (row := _line(path, number, stream)) is not None:
        try:
            yield _decision(row, number, decoder)
        except (UnreadableError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"{path}, decision {number}: the file is damaged: {error}") from error
        number += 1


def _decision(row: dict[str, Any], number: int, decoder: Decoder) -> Decision:
    policy, seen, learned = (decoder.decode(row[part]) for part in ("policy", "observation", "learned"))
    known = {(group, kind): decoder.decode(verdict) for group, kind, verdict in row["verdicts"]}
    parts = ((policy, Policy), (seen, Observation), (learned, Learned))
    if not all(isinstance(part, kind) for part, kind in parts):
        raise UnreadableError("there is no policy or no observation in it")
    if not isinstance(row["plan"], dict):
        raise UnreadableError("there is no plan in it")
    learned = replace(learned, verdicts=explained(learned.verdicts, known))
    return Decision(number, seen, learned, policy, row["plan"])


def _line(path: Path, number: int, stream: gzip.GzipFile) -> dict[str, Any] | None:
    """The next line; None at the end, which may be in the middle of a line."""
    try:
        text = stream.readline(LONGEST_LINE)
    except EOFError:
        return None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path}: the file is damaged, or no recording of `updraft run --record`") from error
    if not text.endswith(b"\n"):
        return None
    try:
        row = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}, decision {number}: the file is damaged: {error}") from error
    if not isinstance(row, dict):
        raise UsageError(f"{path}, decision {number}: the file is damaged: a line is no table")
    return row


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _differences(before: Any, after: Any) -> tuple[str, ...]:
    """The parts of a plan that are not the same, by name."""
    if canonical(before) == canonical(after):
        return ()
    names = sorted((set(before) | set(after)) - {"="})
    return tuple(name for name in names if before.get(name) != after.get(name)) or ("order",)
