"""The annexes that stand, as documents: for `annex list`, `annex status`, `status` and the page."""

import time

from updraft.documents import Row
from updraft.documents.annexes import AnnexMachine, annex_row
from updraft.ledger.reader import Reader

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
        if record.ended_at is None and (name := record.variant.annex):
            look = said.get(record.key)
            phase, text = (look["phase"], f"{look['phase']}: {look['reason']['text']}") if look else UNSEEN
            of = machines.setdefault(name, [])
            of.append(AnnexMachine(record.id, record.cloud, record.flavor, text, phase))
    return [annex_row(one, looks.get(one.name), machines.get(one.name, [])) for one in there]
