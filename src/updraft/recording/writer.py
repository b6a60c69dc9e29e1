"""Writing decisions down, one line each, into compressed files of a bounded size."""

import gzip
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from updraft import __version__
from updraft.core.matching.verdicts import VerdictTable, table_of
from updraft.core.model import Known, Plan, Prepared, Snapshot, Verdict
from updraft.core.settings import Policy
from updraft.errors import UsageError
from updraft.recording.codec import Encoder, canonical

FORMAT = 2
SUFFIX = ".jsonl.gz"
FILE_SIZE = 32 * 1024 * 1024
FILES_KEPT = 20

Planner = Callable[[Snapshot, Policy], Plan]


@dataclass(slots=True)
class _VerdictWitness:
    """Remembers which whole verdicts a plan asked for."""

    table: VerdictTable
    seen: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    def watched(self) -> VerdictTable:
        return replace(self.table, explain=self._explain)

    def _explain(self, group: int, kind: int) -> Verdict:
        verdict = self.table.explain(group, kind)
        self.seen[self.table.groups[group], self.table.kinds[kind]] = verdict
        return verdict


class Recorder:
    """Writes decisions down in `folder`, each with what was seen and learned.

    A file is closed at `file_size` bytes (compressed) and the next begun; `files_kept` of them stay, the
    oldest go. A full disk ends the recording with a word to `warn`, never the plan.
    """

    def __init__(
        self,
        folder: Path,
        *,
        file_size: int = FILE_SIZE,
        files_kept: int = FILES_KEPT,
        warn: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._folder = folder
        self._file_size = file_size
        self._files_kept = max(1, files_kept)
        self._warn = warn
        self._stream: gzip.GzipFile | None = None
        self._open_files = ExitStack()
        self._path = folder
        self._encoder = Encoder()
        self._failed = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: can't be made: {error.strerror}; name a folder of yours") from error
        if not os.access(folder, os.W_OK):
            raise UsageError(f"{folder}: can't be written; name a folder of yours with --record")

    def decided(self, prepared: Prepared, policy: Policy, plan: Planner) -> Plan:
        """What `plan` makes of this, which is written down before it is returned."""
        witness = _VerdictWitness(_table(prepared.snapshot))
        made = plan(replace(prepared.snapshot, verdicts=witness.watched()), policy)
        if not self._failed:
            try:
                self._write(prepared, policy, made, witness)
            except OSError as error:
                self._failed = True
                with suppress(OSError):
                    self.close()
                self._warn(f"{self._path}: decisions are no longer recorded: {error.strerror}")
        return made

    def close(self) -> None:
        """Finish the file that is open."""
        self._stream = None
        self._open_files.close()

    def _write(self, prepared: Prepared, policy: Policy, made: Plan, witness: _VerdictWitness) -> None:
        seen, learned = prepared.observation, prepared.learned
        stream = self._stream or self._open(learned.at, seen.pool)
        seen = replace(seen, templates=_without_ads(seen.templates))
        learned = replace(learned, templates=_without_ads(learned.templates), verdicts=witness.table)
        entry = {
            "policy": self._encoder.encode(policy),
            "observation": self._encoder.encode(seen),
            "learned": self._encoder.encode(learned),
            "verdicts": [[*pair, self._encoder.encode(verdict)] for pair, verdict in witness.seen.items()],
            "plan": Encoder(share=False).encode(made),
        }
        stream.write(canonical(entry).encode() + b"\n")
        stream.flush()
        if self._path.stat().st_size >= self._file_size:
            self.close()

    def _open(self, now: float, pool: str) -> gzip.GzipFile:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._path = self._folder / f"{pool}-{stamp}{SUFFIX}"
        self._encoder = Encoder()
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        file = self._open_files.enter_context(os.fdopen(handle, "wb"))
        stream = self._open_files.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        self._stream = stream
        header = {"recording": FORMAT, "updraft": __version__, "pool": pool, "from": now}
        stream.write(json.dumps(header).encode() + b"\n")
        self._forget_old(pool)
        return stream

    def _forget_old(self, pool: str) -> None:
        files = sorted(self._folder.glob(f"{pool}-*{SUFFIX}"))
        for old in files[: -self._files_kept]:
            old.unlink(missing_ok=True)


def _without_ads(templates: Mapping[str, str]) -> dict[str, str]:
    return dict.fromkeys(templates, "")


def _table(snapshot: Snapshot) -> VerdictTable:
    if isinstance(snapshot.verdicts, VerdictTable):
        return snapshot.verdicts
    answers = (source if isinstance(source, Known) else source.last for source in snapshot.schedds.values())
    groups = {group.key: group for answer in answers if answer for group in answer.value.groups}
    groups |= {group.key: group for group in snapshot.spare}
    return table_of(snapshot.verdicts, list(groups.values()), list(snapshot.kinds.values()))
