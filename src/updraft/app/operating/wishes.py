"""An operator's wishes, written into the ledger for the daemon; what it says, and what becomes of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from updraft.app.call import Call, who
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.model import MachineRecord
from updraft.daemon.lock import StateLock
from updraft.documents import Document
from updraft.documents.cycle import DaemonState
from updraft.errors import UsageError
from updraft.ledger.identity import Identity, take_over, this_host, well_formed
from updraft.ledger.reader import Reader, RequestKind
from updraft.ledger.store import Ledger
from updraft.watching.known import daemon_state, machine_named

POLL = 0.2
ANSWER_WITHIN = 5.0  # seconds in which a daemon that looks every two has said what it thinks of a wish
REFUSED = "refused"
FOLLOWED = (RequestKind.DRAIN, RequestKind.TERMINATE, RequestKind.DISOWN)  # done when the machine's record is
Wish = tuple[RequestKind, str]


class WishRow(Document):
    """A wish that was written down."""

    id: Annotated[int, "Its number."]
    kind: Annotated[str, "What."]
    machine: Annotated[str, "Which machine; empty for all."]
    kill_jobs: Annotated[bool, "Whether jobs may be killed for it."]
    outcome: Annotated[str | None, "What became of it; null while that is open."]


class Wishes(Document):
    """What was asked of the daemon."""

    daemon: DaemonState
    requests: Annotated[Sequence[WishRow], "Each wish."]


@dataclass(frozen=True, slots=True)
class Asked:
    """Wishes by the number that each has in the ledger, and how the daemon was when they were written."""

    daemon: DaemonState
    wishes: Mapping[int, Wish]


def ask(
    path: Path,
    kind: RequestKind,
    machines: Sequence[str],
    *,
    kill_jobs: bool,
    detail: Mapping[str, str] | None = None,
) -> Asked:
    """Write a wish for each of these machines into the ledger. Raises UsageError for one that isn't known."""
    with Reader(path) as reader:
        known = kind is not RequestKind.ADOPT  # of one that isn't ours yet only its whole id is known
        ids = [machine_named(reader, name).id if name and known else name for name in machines]
        daemon = daemon_state(reader, time.time())
    with Ledger(path) as ledger:
        wishes = {
            ledger.request(time.time(), who(), kind, one, kill_jobs=kill_jobs, detail=detail): (kind, one)
            for one in dict.fromkeys(ids)
        }
    return Asked(daemon, wishes)


def taken_over(call: Call, identity: str, sure: Callable[[str], None]) -> Identity:
    """Make this host the head of the pool, once `sure` of that name. UsageError for what is no identity.

    Raises what says that a daemon runs on this host.
    """
    if identity and not well_formed(identity):
        raise UsageError(
            f"{identity!r} is no pool's identity: twelve digits from 0 to f, as the machines' tags say"
        )
    place = call.place
    with StateLock(place.state_dir):
        sure(place.pool)
        return take_over(place.state_dir, this_host(), identity)


def named(wish: Wish) -> str:
    """What a wish is called in a sentence."""
    kind, machine = wish
    return f"{kind.value} {machine or 'everything'}"


def answers(path: Path, wishes: Mapping[int, Wish]) -> dict[int, str | None]:
    """What the daemon said to each wish; None where it takes its time."""
    with Reader(path) as reader:
        for _ in range(round(ANSWER_WITHIN / POLL)):
            if all(map(reader.request_outcome, wishes)):
                break
            time.sleep(POLL)
        return {number: reader.request_outcome(number) for number in wishes}


def follow(path: Path, wishes: Mapping[int, Wish]) -> tuple[dict[int, str | None], float | None]:
    """What became of each wish: the daemon's answer, and of a machine that is to go, that it is gone.

    Where the daemon falls silent meanwhile, for how many seconds it has been; else None.
    """
    outcomes: dict[int, str | None] = dict.fromkeys(wishes, None)
    with Reader(path) as reader:
        while None in outcomes.values():
            for number, wish in wishes.items():
                outcomes[number] = outcomes[number] or _outcome(reader, number, wish)
            silent = _silent(reader, wishes)
            if silent is not None:
                return outcomes, silent
            time.sleep(POLL)
    return outcomes, None


def _outcome(reader: Reader, number: int, wish: Wish) -> str | None:
    """What became of a wish; None while that is open."""
    said = reader.request_outcome(number)
    kind, machine = wish
    if said is None or said.startswith(REFUSED) or kind not in FOLLOWED:
        return said
    record = reader.machine(machine)
    if kind is RequestKind.DISOWN:
        return _let_go(record)
    if record is None or record.ended_at is None:
        stays = record is not None and record.wanted_drain is None
        return _stays(reader, kind, machine) if stays else None
    return f"gone: {record.end.text}" if record.end else "gone"


def _stays(reader: Reader, kind: RequestKind, machine: str) -> str | None:
    """Why a machine that was to go stays: a job began there meanwhile, or the wish was taken back by hand."""
    latest = reader.events(limit=1, kinds=("busy-again", "request"), subject=machine)
    if latest and latest[-1].kind == "busy-again":
        return f"{REFUSED}: {latest[-1].text}; drain it, or end its jobs with --kill-jobs"
    # The wish itself is the latest that is told of it: what became of it is about to be written.
    return None if latest and latest[-1].code == f"request-{kind}" else "taken back"


def _let_go(record: MachineRecord | None) -> str | None:
    if record is None or record.ended_at is None or record.end is None:
        return None
    return "let go: it stays" if record.end.code == LET_GO else f"gone: {record.end.text}"


def _silent(reader: Reader, wishes: Mapping[int, Wish]) -> float | None:
    daemon = daemon_state(reader, time.time())
    destroying = any(kind is RequestKind.DESTROY for kind, _ in wishes.values())
    if not daemon.alive and not (destroying and all(map(reader.request_outcome, wishes))):
        return daemon.age or 0.0
    return None
