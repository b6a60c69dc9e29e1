"""The annexes that stand, as documents and as a table: for `annex list`, `annex status` and `status`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from updraft.cli.output import Column, ago, clock, table
from updraft.core.model import Annex
from updraft.core.slots.variants import annex_of
from updraft.ledger.reader import Reader

if TYPE_CHECKING:
    from rich.console import RenderableType

Row = dict[str, Any]


def rows_of(reader: Reader) -> list[Row]:
    """Every annex as a document: what was asked for, how it stood at the last look, its machines."""
    there = reader.annexes()
    if not there:
        return []
    cycle = reader.last_cycle() or {}
    looks = {one["name"]: one for one in cycle.get("annexes", ())}
    said = {(one["cloud"], one["machine"]): one for one in cycle.get("machines", ())}
    machines: dict[str, list[Row]] = {}
    for record in reader.view(time.time()).machines:
        if record.ended_at is None and (name := annex_of(record.variant)):
            look = said.get((record.cloud, record.id))
            text = "just asked for" if look is None else f"{look['phase']}: {look['reason']['text']}"
            about = {"id": record.id, "cloud": record.cloud, "flavor": record.flavor, "text": text}
            machines.setdefault(name, []).append({**about, "phase": look["phase"] if look else "requested"})
    return [
        {**described(one), "look": looks.get(one.name), "instances": machines.get(one.name, [])}
        for one in there
    ]


def described(one: Annex) -> Row:
    """What was asked for; of the user-data only whether there is some."""
    return {**asdict(one), "layer": bool(one.layer)}


def size(row: Row) -> str:
    """What there is of what is wanted, on its way included; of one that is ended nothing is wanted."""
    look: Row = row["look"] or {"machines": 0, "cores": 0}
    unit, there, wanted = "", look["machines"], row["machines"] - row["left"]
    if not row["machines"]:
        unit, there, wanted = " cores", look["cores"], row["cores"] - row["left_cores"]
    return f"{there}{unit}" if row["stopped"] else f"{there}/{wanted}{unit}"


def stands(row: Row) -> str:
    """How it stands and why. What was asked for since the last look is known before the next."""
    look, stopped = row["look"], row["stopped"]
    if stopped and (look is None or look["state"] not in ("leaving", "over")):
        return f"leaving: {stopped['text']}"
    return "the daemon hasn't looked yet" if look is None else f"{look['state']}: {look['reason']['text']}"


def lease(row: Row) -> str:
    """When its lease ends, on the clock and from now."""
    left = row["until"] - time.time()
    return f"{clock(row['until'])} ({'in ' + ago(left) if left > 0 else 'over'})"


COLUMNS: Sequence[tuple[Column, bool, Callable[[Row], str]]] = (  # in a narrow table too, its text
    (Column("annex"), True, lambda row: str(row["name"])),
    (Column("for"), True, lambda row: "all" if row["for_all"] else str(row["owner"])),
    (Column("class"), False, lambda row: str(row["worker_class"])),
    (Column("machines", right=True), True, size),
    (Column("joined", right=True), True, lambda row: str(row["look"]["joined"] if row["look"] else 0)),
    (Column("lease ends"), True, lease),
    (Column("state", wide=True), True, stands),
)


def annex_table(rows: Sequence[Row], *, narrow: bool) -> "RenderableType":
    """Annexes for people."""
    chosen = [(column, cell) for column, always, cell in COLUMNS if always or not narrow]
    return table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
