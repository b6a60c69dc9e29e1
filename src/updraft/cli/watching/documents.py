"""What the verbs show, as the documents that `--json` prints (docs/reference/json.md).

Tables are made of the same documents. All of it comes from the ledger: the last cycle that the daemon kept,
and its records.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from updraft.app.operating.known import daemon_state
from updraft.cli.annexes.rows import rows_of
from updraft.core.model import AtWork, MachineRecord, Reason
from updraft.ledger.reader import Event, Reader

Document = dict[str, Any]
CYCLE_PARTS: Mapping[str, Any] = {
    "sources": {},
    "groups": [],
    "actions": [],
    "cooldowns": [],
    "warnings": [],
    "spending": [],
    "clouds": [],
    "classes": [],
    "users": [],
}


def status_document(reader: Reader, pool: str, now: float) -> Document:
    """The pool at the daemon's last look, and how old that look is."""
    cycle = reader.last_cycle() or {}
    machines = machine_rows(reader, cycle, now)
    phases = Counter(machine["phase"] for machine in machines)
    prices = [machine["price"] for machine in machines]
    return {
        "pool": pool,
        "daemon": daemon_state(reader, now),
        "jobs": cycle.get("jobs", {"idle": 0, "running": 0}),
        "machines": {
            "total": len(machines),
            "phases": dict(sorted(phases.items())),
            "cost_per_hour": sum(price for price in prices if price is not None),
            "unknown_prices": prices.count(None),
        },
        **{part: cycle.get(part, empty) for part, empty in CYCLE_PARTS.items()},
        "annexes": rows_of(reader),
        "requests": [asdict(request) for request in reader.requests()],
    }


def machine_rows(reader: Reader, cycle: Mapping[str, Any], now: float) -> list[Document]:
    """Every machine that isn't gone: the ledger's record with the outlook of the last cycle."""
    outlooks = {(row["cloud"], row["machine"]): row for row in cycle.get("machines", [])}
    view = reader.view(now)
    return [
        machine_row(record, outlooks.get((record.cloud, record.id)), now, view.at_work)
        for record in view.machines
        if record.ended_at is None
    ]


def machine_row(
    record: MachineRecord, outlook: Mapping[str, Any] | None, now: float, at_work: AtWork | None = None
) -> Document:
    """One machine: what was bought, where it is in its life, and why; `at_work` as the ledger has it."""
    phase, reason = _phase(record, outlook)
    return {
        "id": record.id,
        "cloud": record.cloud,
        "class": record.worker_class,
        "flavor": record.flavor,
        "zone": record.zone,
        "market": record.market,
        "image": record.image,
        "variant": record.variant,
        "generation": record.generation,
        "launch": record.launch_key,
        "price": record.price,
        "phase": phase,
        "reason": reason,
        "deadline": None if outlook is None else outlook.get("deadline"),
        "requested_at": record.requested_at,
        "joined_at": record.joined_at,
        "busy_at": _busy_at(record, at_work),
        "ended_at": record.ended_at,
        "age": max(0.0, (record.ended_at or now) - record.requested_at),
        "drain": None if record.drain is None else asdict(record.drain),
    }


def _busy_at(record: MachineRecord, at_work: AtWork | None) -> float | None:
    """When it last had a claim: that it still has one isn't in its record."""
    if at_work is None or (record.cloud, record.id) not in at_work.machines:
        return record.busy_at
    return max(at_work.at, record.busy_at or 0.0)


def _phase(record: MachineRecord, outlook: Mapping[str, Any] | None) -> tuple[str, Document]:
    if record.ended_at is not None:
        end = record.end or Reason("ended", "it ended, and nobody wrote down why")
        return "gone", asdict(end)
    if outlook is not None:
        return str(outlook["phase"]), dict(outlook["reason"])
    return "requested", asdict(
        Reason("not-looked-at", "the daemon hasn't looked at it since it was written down")
    )


def event_row(event: Event) -> Document:
    """One event."""
    return asdict(event)
