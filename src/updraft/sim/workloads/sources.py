"""A workload and where it comes from: files are opened, recognised by what they hold, and read once."""

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from updraft.core.model import Resources, of_amounts
from updraft.errors import UsageError
from updraft.sim.workloads.workload import DISK, GIB, Arrival

DAY = 86400.0
LATEST = 1e10  # seconds, three centuries: no clock has run that long, and floats count no finer things
MOST_PARTS = 100_000  # cores of one job: it is a slip of the pen that asks for more
_GZIP = b"\x1f\x8b"


NAMED = 20  # bad lines are named, further ones only counted


@dataclass(frozen=True, slots=True)
class Reading:
    """How a workload's file is read.

    `memory` (MiB for each core of a job) and `disk` (KiB for a whole job) are for jobs that say nothing of
    theirs. A trace tells memory in units of `unit` bytes, for each core or, where `per_job`, for the whole
    job; the default is the format's. `skip_bad_lines` leaves lines out that can't be read.
    """

    memory: int = GIB
    disk: int = DISK
    unit: int = 1024
    per_job: bool = False
    skip_bad_lines: bool = False


class BadLines:
    """What can't be read in a file: an error at once, or, where it is skipped, counted and named."""

    def __init__(self, name: str, *, skip: bool) -> None:
        self.skip = skip
        self.count = 0
        self._name = name
        self._named: list[str] = []

    def met(self, where: str, why: str) -> None:
        """This is wrong there ("line 8"). Raises UsageError unless it is skipped."""
        if not self.skip:
            raise UsageError(
                f"{self._name}, {where}: {why}; mend it or take it out, or leave out all that can't be read "
                "with --skip-bad-lines"
            )
        self.count += 1
        if self.count <= NAMED:
            self._named.append(f"{where} was skipped: {why}")

    def left_out(self, others: Mapping[str, int]) -> dict[str, int]:
        """These records that are left out, and the bad ones."""
        return {**others, **({"can't be read": self.count} if self.count else {})}

    def notes(self) -> list[str]:
        """A sentence for each, up to a number of them."""
        more = self.count - len(self._named)
        return [*self._named, *([f"{more} more were skipped"] if more else [])]


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs as they arrive, the first at 0, and where they come from.

    `notes` are sentences about what was done to them on the way; `left_out` counts records that are not among
    `arrivals`, by the reason. `begins` is the POSIX time of the first arrival, None where nobody knows.
    `sha256` is that of the file, empty where there is none.
    """

    name: str
    arrivals: tuple[Arrival, ...]
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    begins: float | None = None
    sha256: str = ""

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last."""
        return self.arrivals[-1].at if self.arrivals else 0.0

    @property
    def core_seconds(self) -> float:
        """The work in it: cores times seconds, of all jobs together."""
        return sum(one.request.cpus * one.seconds for one in self.arrivals)


def made(
    name: str,
    arrivals: Iterable[Arrival],
    *,
    left_out: Mapping[str, int] = Counter(),
    notes: Sequence[str] = (),
    begins: float | None = None,
    sha256: str = "",
) -> Workload:
    """A workload of these jobs in the order of their arrival, the first moved to 0; `begins` goes with it.

    Raises UsageError where there is no job.
    """
    ordered = sorted(arrivals, key=lambda one: one.at)
    if not ordered:
        reasons = ", ".join(f"{count} {why}" for why, count in sorted(left_out.items()))
        raise UsageError(f"{name} has no job that could be simulated{f' ({reasons})' if reasons else ''}")
    first = ordered[0].at
    moved = tuple(replace(one, at=one.at - first) for one in ordered) if first else tuple(ordered)
    return Workload(
        name, moved, tuple(notes), dict(left_out), None if begins is None else begins + first, sha256
    )


def days_of(workload: Workload, first: float, last: float) -> Workload:
    """The jobs that arrive from the day `first` up to the day `last`, counted from 0 at the first arrival.

    Raises UsageError where no job does.
    """
    if not 0 <= first < last:
        raise UsageError(f"--days {first:g}:{last:g} is no stretch of time; write it as in --days 0:7")
    inside = [one for one in workload.arrivals if first * DAY <= one.at < last * DAY]
    if not inside:
        whole = workload.span / DAY
        raise UsageError(
            f"--days {first:g}:{last:g} has no job in it: {workload.name} is {whole:.1f} days long"
        )
    note = f"only days {first:g} to {last:g}: {len(inside)} of {len(workload.arrivals)} jobs"
    return made(
        workload.name,
        inside,
        left_out=workload.left_out,
        notes=(*workload.notes, note),
        begins=workload.begins,
        sha256=workload.sha256,
    )


def first_of(workload: Workload, count: int) -> Workload:
    """The first `count` jobs."""
    if count >= len(workload.arrivals):
        return workload
    note = f"only the first {count} of {len(workload.arrivals)} jobs"
    return replace(workload, arrivals=workload.arrivals[:count], notes=(*workload.notes, note))


def fitted(workload: Workload, largest: Sequence[Resources], *, split: bool = True) -> Workload:
    """The same with every job one that some machine holds; `largest` are whole, empty slots of all offers.

    A job of many cores that none of them holds (a parallel job of a cluster, say) becomes as many jobs of one
    core, with its memory, disk and GPUs in equal parts (rounded up), if `split` and those fit; else it is
    left out. Both are noted. Raises UsageError where nothing is left.
    """
    known: dict[Resources, int] = {}
    kept: list[Arrival] = []
    split_up = left = 0
    for one in workload.arrivals:
        parts = known.get(one.request)
        if parts is None:
            parts = known[one.request] = _parts(one.request, largest, split=split)
        if parts == 1:
            kept.append(one)
        elif parts:
            split_up += 1
            kept += [replace(one, request=_part(one.request, parts))] * parts
        else:
            left += 1
    if not split_up and not left:
        return workload
    notes = list(workload.notes)
    if split_up:
        pieces = len(kept) - (len(workload.arrivals) - split_up - left)
        notes.append(f"{split_up} jobs that fit no machine became {pieces} jobs of one core each")
    left_out = Counter(workload.left_out)
    if left:
        left_out["fit no machine"] += left
    return made(
        workload.name, kept, left_out=left_out, notes=notes, begins=workload.begins, sha256=workload.sha256
    )


def _parts(request: Resources, largest: Sequence[Resources], *, split: bool) -> int:
    suiting = [slot for slot in largest if set(request.names) <= set(slot.names)]
    for parts in (1, request.cpus):
        if parts > MOST_PARTS:
            break
        if (parts == 1 or split) and any(slot.holds(_part(request, parts)) for slot in suiting):
            return parts
    return 0


def _part(request: Resources, parts: int) -> Resources:
    if parts == 1:
        return request
    _, *more = request.amounts(request.names)
    return of_amounts([1, *(-(-amount // parts) for amount in more)], request.names)


# ------------------------------------------------------------------------------------------------- files


def lines_of(path: Path, bad: BadLines | None = None) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file, unpacked where it is gzip. Or UsageError that says what is wrong.

    Lines with bytes that no text has are left out where `bad` skips them.
    """
    number = 0
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            for number, line in enumerate(file, 1):
                if b"\0" in line:
                    if bad is not None and bad.skip:
                        bad.met(f"line {number}", "it is no text")
                        continue
                    raise UsageError(
                        f"{path.name} is no text (line {number}): it isn't a workload, or it is packed with "
                        "something else than gzip"
                    )
                yield number, line.decode("utf-8", "replace")
    except EOFError as error:
        raise UsageError(
            f"{path.name} is cut off after line {number}: it isn't a whole gzip file; get it again"
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(
            f"{path.name} is damaged after line {number}: it can't be unpacked; get it again"
        ) from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error


def quoted(line: str) -> str:
    """The beginning of a line that is wrong, fit to be shown: what can't be printed is a question mark."""
    shown = "".join(one if one.isprintable() else "?" for one in line.strip()[:40])
    return f'"{shown}"'


def checksum(path: Path) -> str:
    """The SHA-256 of a file as it is on disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
