"""What the verbs show, as the documents that `--json` prints (docs/reference/json.md).

Tables are made of the same documents. All of it comes from the ledger: the last cycle that the daemon kept,
and its records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from updraft.core.model import AtWork, DrainRecord, MachineRecord, Phase, Reason
from updraft.documents import IN_PLACE, As, Document, Rows
from updraft.documents.annexes import AnnexRow
from updraft.documents.cycle import (
    SOURCES,
    ActionRow,
    Cooldowns,
    DaemonState,
    Groups,
    JobCounts,
    SourceState,
    Tallies,
)
from updraft.ledger.reader import Reader, Request
from updraft.watching.annexes import rows_of
from updraft.watching.known import daemon_state

EMPTY_CYCLE: Mapping[str, Any] = {
    **dict.fromkeys(
        ("groups", "actions", "cooldowns", "warnings", "spending", "clouds", "classes", "users"), ()
    ),
    "sources": {},
    "jobs": {"idle": 0, "running": 0},
}


class Machine(Document):
    """A machine."""

    id: Annotated[str, "The cloud's own name of it."]
    cloud: Annotated[str, "The cloud, as updraft.toml names it."]
    class_: Annotated[str, "Its worker class."]
    flavor: Annotated[str, "Its flavor."]
    zone: Annotated[str, "Its zone."]
    market: Annotated[str, '"on-demand" or "spot".']
    image: Annotated[str, "Its image."]
    variant: Annotated[str, 'How it differs from plain ones of its class (`image=…&user=…`), or "".']
    generation: Annotated[str, "The hash of what it was launched with."]
    launch: Annotated[str, "The launch key."]
    price: Annotated[float | None, "Per hour; null where it isn't known."]
    phase: Annotated[str, As(Phase), "Where it is in its life."]
    reason: Reason
    deadline: Annotated[float | None, "Until when it may stay as it is."]
    requested_at: Annotated[float, "When it was asked for."]
    joined_at: Annotated[float | None, "When it joined the pool."]
    busy_at: Annotated[float | None, "When it last had a claim."]
    ended_at: Annotated[float | None, "When it was gone."]
    age: Annotated[float, "Seconds since it was asked for, up to its end."]
    drain: Annotated[DrainRecord | None, "The drain that was begun, or null."]


class MachineList(Document):
    """The machines."""

    machines: Annotated[Sequence[Machine], "Oldest first."]


class MachineCounts(Document):
    """All machines together."""

    total: Annotated[int, "How many."]
    phases: Annotated[Mapping[str, int], "How many in each phase."]
    cost_per_hour: Annotated[float, "What those of known price cost."]
    unknown_prices: Annotated[int, "How many have a price that isn't known."]


class Status(Document):
    """The daemon's last look.

    What of it the daemon has written down is made in `documents.cycle`, and shown as it was written.
    """

    pool: Annotated[str, "The pool's name."]
    daemon: DaemonState
    jobs: Annotated[Mapping[str, int], As(JobCounts), "All jobs of the pool."]
    machines: MachineCounts
    sources: Annotated[Mapping[str, Any], As(Mapping[str, SourceState]), SOURCES]
    groups: Groups
    actions: Annotated[Rows, As(tuple[ActionRow, ...]), "What was decided."]
    cooldowns: Cooldowns
    warnings: Annotated[Rows, As(tuple[Reason, ...]), "What is reported."]
    tallies: Tallies = field(metadata=IN_PLACE)
    annexes: Annotated[Rows, As(tuple[AnnexRow, ...]), "Those that stand, as in `annex list`."]
    requests: Annotated[Sequence[Request], "Wishes that aren't done."]


def status_document(
    reader: Reader, pool: str, now: float, machines: Sequence[Machine] | None = None
) -> Status:
    """The pool at the daemon's last look, and how old that look is; `machines` are its rows, if known."""
    cycle = {**EMPTY_CYCLE, **(reader.last_cycle() or {})}
    machines = machine_rows(reader, cycle, now) if machines is None else machines
    prices = [machine.price for machine in machines]
    return Status(
        pool=pool,
        daemon=daemon_state(reader, now),
        jobs=cycle["jobs"],
        machines=MachineCounts(
            total=len(machines),
            phases=dict(sorted(Counter(machine.phase for machine in machines).items())),
            cost_per_hour=sum(price for price in prices if price is not None),
            unknown_prices=prices.count(None),
        ),
        **{part: cycle[part] for part in ("sources", "groups", "actions", "cooldowns", "warnings")},
        tallies=Tallies(cycle["clouds"], cycle["classes"], cycle["spending"], cycle["users"]),
        annexes=rows_of(reader),
        requests=reader.requests(),
    )


def machine_rows(reader: Reader, cycle: Mapping[str, Any], now: float) -> list[Machine]:
    """Every machine that isn't gone: the ledger's record with the outlook of the last cycle."""
    outlooks = {(row["cloud"], row["machine"]): row for row in cycle.get("machines", [])}
    view = reader.view(now)
    return [
        machine_row(record, outlooks.get(record.key), now, view.at_work)
        for record in view.machines
        if record.ended_at is None
    ]


def machine_row(
    record: MachineRecord, outlook: Mapping[str, Any] | None, now: float, at_work: AtWork | None = None
) -> Machine:
    """One machine: what was bought, where it is in its life, and why; `at_work` as the ledger has it."""
    phase, reason = _phase(record, outlook)
    return Machine.of(
        record,
        class_=record.worker_class,
        variant=record.variant.text,
        launch=record.launch_key,
        phase=phase,
        reason=reason,
        deadline=None if outlook is None else outlook.get("deadline"),
        busy_at=_last_claimed(record, at_work),
        age=max(0.0, (record.ended_at or now) - record.requested_at),
    )


def _last_claimed(record: MachineRecord, at_work: AtWork | None) -> float | None:
    """When it last had a claim: that it still has one isn't in its record."""
    if at_work is None or record.key not in at_work.machines:
        return record.last_claimed_at
    return max(at_work.at, record.last_claimed_at or 0.0)


def _phase(record: MachineRecord, outlook: Mapping[str, Any] | None) -> tuple[str, Reason]:
    if record.ended_at is not None:
        return "gone", record.end or Reason("ended", "it ended, and nobody wrote down why")
    if outlook is not None:
        return str(outlook["phase"]), Reason(outlook["reason"]["code"], outlook["reason"]["text"])
    return "requested", Reason("not-looked-at", "the daemon hasn't looked at it since it was written down")
