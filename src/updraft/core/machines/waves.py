"""Whether an idle machine will be wanted again soon, from how long machines of its class were idle before.

A machine that is ended and wanted again has cost a boot, in which it is paid for and of no use; one that is
kept costs its price meanwhile. So beyond the idle limit it is kept for another boot's length B, if that costs
less than it is expected to save: with P the share of earlier idle times, of those as long as this one, that
ended within B, and w the mean of what of B they waited, if P B > w.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from updraft.core.model import LedgerView, MachineRecord, Reason

IDLE_LIMIT = "idle-limit"
_FEWEST = 4
_LATEST = 60
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Waves:
    """How long machines of a class were idle until they were wanted again, endless where they were not."""

    gaps: tuple[float, ...]
    boot: float

    def keep(self, idle: float) -> Reason | None:
        """Why a machine that has been idle for so many seconds is kept a little longer; None: it isn't."""
        alike = [gap for gap in self.gaps if gap > idle]
        if len(alike) < _FEWEST or self.boot <= 0:
            return None
        soon = sum(1 for gap in alike if gap <= idle + self.boot)
        wait = sum(min(gap - idle, self.boot) for gap in alike)
        if soon * self.boot <= wait:
            return None
        text = (
            f"{soon} of {len(alike)} machines that were idle as long were wanted again within "
            f"{self.boot:.0f} s, as long as a boot takes: it stays for that time"
        )
        return Reason("wave-expected", text)


def waves(worker_class: str, ledger: LedgerView) -> Waves | None:
    """The waves that the last day's machines of this class tell of; None where no boot was seen or
    nothing came back.
    """
    mine = list(islice(_tellers(worker_class, ledger), _LATEST))
    kinds = sorted({(record.image, record.flavor) for record in mine})
    boots = sorted(boot for kind in kinds for boot in ledger.boots.get(kind, ())[-10:])
    if not boots:
        return None
    asked = sorted(launch.asked_at for launch in ledger.launches if launch.worker_class == worker_class)
    gaps = [gap for record in mine for gap in (*record.gaps, *_ended_gap(record, asked))]
    return Waves(tuple(gaps[:_LATEST]), boots[len(boots) // 2]) if gaps else None


def _tellers(worker_class: str, ledger: LedgerView) -> Iterable[MachineRecord]:
    """Machines of a class that have been idle and then not, or left: the latest first."""
    for record in reversed(ledger.machines):
        if record.worker_class == worker_class and (record.gaps or record.drain is not None):
            yield record


def _ended_gap(record: MachineRecord, asked: Sequence[float]) -> Iterable[float]:
    """How long a machine that left for want of work would have been idle until its class was wanted again."""
    if record.last_claimed_at is None or record.drain is None or record.drain.reason.code != IDLE_LIMIT:
        return
    at = bisect_left(asked, record.drain.asked_at)
    yield asked[at] - record.last_claimed_at if at < len(asked) else _NEVER
