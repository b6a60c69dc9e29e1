"""What machines have printed: kept of one that never joined, with the line that says why its boot failed."""

from collections.abc import Callable, Iterable, Mapping

from updraft.act.launching import why
from updraft.clouds.base import Machines
from updraft.core.model import Reason
from updraft.ledger import Ledger

AT_ONCE = 5  # of a broken image's machines: one console tells as much as a hundred
BOOT_FAILED = "updraft-boot: FAILED: "
LONGEST = 300  # characters of a line that come from a machine, and go into a sentence of ours


def boot_failure(console: str) -> str:
    """Why the boot failed, as the machine's own boot script said it last; nothing where it didn't.

    Control characters are taken out: what an image prints is not ours to trust.
    """
    for line in reversed(console.splitlines()):
        _, found, why = line.partition(BOOT_FAILED)
        if found:
            return "".join(letter if letter.isprintable() else " " for letter in why).strip()[:LONGEST]
    return ""


def keep_consoles(
    machines: Machines, cloud: str, ids: Iterable[str], ledger: Ledger, clock: Callable[[], float]
) -> Mapping[str, Reason]:
    """What machines that never joined have printed is lost with them; to fail at that stops nothing.

    Returns why they end, in the words of their own boots, of those that said what failed.
    """
    said: dict[str, Reason] = {}
    records = [ledger.record(cloud, machine) for machine in ids]
    silent = [r.id for r in records if r and r.joined_at is None and r.terminate_asked_at is None]
    for machine in silent[:AT_ONCE]:
        try:
            text = machines.console(machine)
        except Exception as error:
            ledger.event(clock(), "failed", machine, why(error), {"wanted": "its console output"})
            continue
        if text:
            ledger.keep_console(cloud, machine, text, clock())
        record, line = ledger.record(cloud, machine), boot_failure(text)
        if line and record is not None and record.end is not None:
            said[machine] = Reason(record.end.code, f"{record.end.text}; its boot said: {line}")
            ledger.change(cloud, (machine,), end=said[machine])
    return said
