"""What is decided of clouds while the daemon runs: written into the ledger, and shown with what is known."""

import time
from collections.abc import Callable, Sequence
from typing import Annotated

from updraft import config
from updraft.app.call import Call, who
from updraft.core.model import Reason
from updraft.core.slots.choice import near
from updraft.documents import As, Document, Row
from updraft.documents.cycle import Ceilings, CloudTally
from updraft.errors import LedgerError, UsageError
from updraft.ledger.clouds import AS_THE_FILE_SAYS, Override, Said, in_force, overrides
from updraft.ledger.clouds import decide as write
from updraft.ledger.reader import Reader
from updraft.ledger.store import Ledger

LIMITS = ("machines", "cores", "memory", "cost_per_hour")


def decide(
    call: Call, names: Sequence[str], change: Callable[[Said, Override], Override], code: str, what: str
) -> list[str]:
    """Write what is decided of these clouds; the names, each once. UsageError for one that isn't there."""
    known = known_clouds(call, names)
    said = Said(who(), time.time())
    with Ledger(call.place.ledger) as ledger:
        for name in known:
            reason = Reason(code, f"cloud {name} is {what}, says {said.who}")
            write(ledger, name, lambda old: change(said, old), reason, said.at)
    return known


def known_clouds(call: Call, names: Sequence[str]) -> list[str]:
    """These clouds, each once. Raises UsageError for one that the file doesn't have."""
    clouds = config.parse(call.file).get("clouds")
    there = list(clouds) if isinstance(clouds, dict) else []
    for name in names:
        if name not in there:
            close = near(name, there)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(there)}"
            raise UsageError(f"there is no cloud {name} in {call.file}; {hint}")
    return list(dict.fromkeys(names))


class OfTheFile(Document):
    """What updraft.toml says."""

    enabled: Annotated[bool, "Whether it is enabled there."]
    limits: Ceilings


class DecidedCloud(Document):
    """A cloud of the file, and what is decided of it."""

    name: Annotated[str, "Its name."]
    driver: Annotated[str, "Its driver."]
    priority: Annotated[int, "Where it is lower is bought sooner."]
    disabled: Annotated[Reason | None, "Why nothing is bought there, or null."]
    leaving: Annotated[bool, "Whether its machines leave as their jobs end."]
    limits: Annotated[Ceilings, "The ceilings in force; null is none."]
    file: OfTheFile
    switched: Annotated[Said | None, "`who` enabled or disabled it at run time, and `at` what time; or null."]
    limited: Annotated[Said | None, "`who` set limits at run time, and `at` what time; or null."]
    look: Annotated[Row | None, As(CloudTally | None), "As `status` has it; null before the first look."]


class DecidedClouds(Document):
    """What is decided of clouds."""

    clouds: Annotated[Sequence[DecidedCloud], "Each cloud."]


class ShownCloud(Document):
    """One cloud."""

    cloud: DecidedCloud


def rows_of(call: Call) -> list[DecidedCloud]:
    """Every cloud of the file: what the file says, what is in force, by whom, and the daemon's last look."""
    settings = call.settings
    decided, looks = _remembered(call)
    of_file = settings.policy()
    now = in_force(of_file, decided)
    rows = []
    for name, about in settings.clouds.items():
        said, rule, limits = decided.get(name, AS_THE_FILE_SAYS), now.rule(name), now.cloud_limits[name]
        rows.append(
            DecidedCloud(
                name=name,
                driver=about.driver,
                priority=rule.priority,
                disabled=rule.closed,
                leaving=rule.leaving is not None,
                limits=Ceilings.of(limits),
                file=OfTheFile(about.enabled, Ceilings.of(of_file.cloud_limits[name])),
                switched=said.switched if said.enabled is not None else None,
                limited=said.limited if said.limits else None,
                look=looks.get(name),
            )
        )
    return rows


def _remembered(call: Call) -> tuple[dict[str, Override], dict[str, Row]]:
    """What was decided, and each cloud as of the daemon's last look; nothing where there is no ledger yet."""
    path = call.place.ledger
    try:
        reader = Reader(path)
    except LedgerError:
        if path.exists():
            raise
        return {}, {}
    with reader:
        cycle = reader.last_cycle() or {}
        return overrides(reader), {row["name"]: row for row in cycle.get("clouds", ())}
