"""The annexes that stand, as documents: for `annex list`, `annex status`, `status` and the page."""

import time
from dataclasses import asdict
from typing import Any

from updraft.core.model import Annex
from updraft.core.slots.variants import annex_of
from updraft.ledger.reader import Reader

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
