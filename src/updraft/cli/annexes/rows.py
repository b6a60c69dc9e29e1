"""The annexes that stand, as documents and as a table: for `annex list`, `annex status` and `status`."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from updraft.cli.output import Column, ago, clock, table
from updraft.core.slots.variants import annex_of
from updraft.documents import Row, Rows
from updraft.documents.annexes import AnnexMachine, annex_row
from updraft.ledger.reader import Reader

if TYPE_CHECKING:
    from rich.console import RenderableType

UNSEEN = ("requested", "just asked for")  # phase and words of a machine that no look has seen


def rows_of(reader: Reader) -> list[Row]:
    """Every annex as a document: what was asked for, how it stood at the last look, its machines."""
    there = reader.annexes()
    if not there:
        return []
    cycle = reader.last_cycle() or {}
    looks = {one["name"]: one for one in cycle.get("annexes", ())}
    said = {(one["cloud"], one["machine"]): one for one in cycle.get("machines", ())}
    machines: dict[str, list[AnnexMachine]] = {}
    for record in reader.view(time.time()).machines:
        if record.ended_at is None and (name := annex_of(record.variant)):
            look = said.get((record.cloud, record.id))
            phase, text = (look["phase"], f"{look['phase']}: {look['reason']['text']}") if look else UNSEEN
            of = machines.setdefault(name, [])
            of.append(AnnexMachine(record.id, record.cloud, record.flavor, text, phase))
    return [annex_row(one, looks.get(one.name), machines.get(one.name, [])) for one in there]


def size(row: Mapping[str, Any]) -> str:
    """What there is of what is wanted, on its way included; of one that is ended nothing is wanted."""
    look = row["look"] or {"machines": 0, "cores": 0}
    unit, there, wanted = "", look["machines"], row["machines"] - row["left"]
    if not row["machines"]:
        unit, there, wanted = " cores", look["cores"], row["cores"] - row["left_cores"]
    return f"{there}{unit}" if row["stopped"] else f"{there}/{wanted}{unit}"


def stands(row: Mapping[str, Any]) -> str:
    """How it stands and why. What was asked for since the last look is known before the next."""
    look, stopped = row["look"], row["stopped"]
    if stopped and (look is None or look["state"] not in ("leaving", "over")):
        return f"leaving: {stopped['text']}"
    return "the daemon hasn't looked yet" if look is None else f"{look['state']}: {look['reason']['text']}"


def lease(row: Mapping[str, Any]) -> str:
    """When its lease ends, on the clock and from now."""
    left = row["until"] - time.time()
    return f"{clock(row['until'])} ({'in ' + ago(left) if left > 0 else 'over'})"


COLUMNS: Sequence[
    tuple[Column, bool, Callable[[Mapping[str, Any]], str]]
] = (  # in a narrow table too, its text
    (Column("annex"), True, lambda row: str(row["name"])),
    (Column("for"), True, lambda row: "all" if row["for_all"] else str(row["owner"])),
    (Column("class"), False, lambda row: str(row["worker_class"])),
    (Column("machines", right=True), True, size),
    (Column("joined", right=True), True, lambda row: str(row["look"]["joined"] if row["look"] else 0)),
    (Column("lease ends"), True, lease),
    (Column("state", wide=True), True, stands),
)


def annex_table(rows: Rows, *, narrow: bool) -> "RenderableType":
    """Annexes for people."""
    chosen = [(column, cell) for column, always, cell in COLUMNS if always or not narrow]
    return table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
