"""Which machine a person means: a whole id, or the beginning of one that no other machine has."""

import time

from updraft.core.model import MachineRecord
from updraft.core.slots.choice import near
from updraft.errors import UsageError
from updraft.ledger.reader import Reader


def machine_named(reader: Reader, wanted: str, *, gone: bool = False) -> MachineRecord:
    """The machine of this id or unique beginning; with `gone`, also one that has ended.

    Raises UsageError that lists near names where there is none, or more than one.
    """
    exact = reader.machine(wanted)
    if exact is not None and (gone or exact.ended_at is None):
        return exact
    records = [one for one in reader.view(time.time()).machines if gone or one.ended_at is None]
    found = [one for one in records if one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{wanted} may be any of {_listed([one.id for one in found])}; write more of the name"
        )
    if exact is not None:
        raise UsageError(f"{wanted} is gone already; `updraft explain {wanted}` says why")
    close = near(wanted, [one.id for one in records])
    hint = f"did you mean {_listed(close)}?" if close else "`updraft machines` lists them"
    raise UsageError(f"there is no machine {wanted}; {hint}")


def _listed(names: list[str]) -> str:
    shown = sorted(names)[:5]
    return ", ".join(shown) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
