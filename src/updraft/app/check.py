"""What `updraft check` finds: the site by its settings, and what the ledger says of it, looked at at once."""

import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from updraft import config
from updraft.app import wiring
from updraft.app.operating.leftovers import found_within
from updraft.checks import Finding, LedgerFacts, Site, State, look
from updraft.checks.host import never_joined, not_ended
from updraft.checks.role import held, people
from updraft.condor.support import probe as probes
from updraft.config.model import Settings
from updraft.core.settings import DAY
from updraft.errors import ConfigError, LedgerError
from updraft.ledger.reader import Reader
from updraft.ledger.tokens import HandedToken, all_noted
from updraft.watching.known import daemon_state


def findings(file: Path) -> list[Finding]:
    """Everything that was found; of a wrong configuration each fault, and nothing else."""
    try:
        settings = config.load(file)
    except ConfigError as error:
        remedy = "correct that line; docs/reference/settings.md has every key"
        return [
            Finding("here", "configuration", State.PROBLEM, line, remedy) for line in str(error).splitlines()
        ]
    reach = wiring.access(settings)
    probe = probes.PoolProbe(reach)
    facts, schedds = ledger_facts(settings)
    try:
        site = Site(
            file=file,
            settings=settings,
            clouds={
                name: partial(wiring.make_cloud, settings, name, cloud)
                for name, cloud in settings.clouds.items()
            },
            probe=probe,
            signing_key=reach.signing_key,
            ledger=facts,
            known_schedds=schedds,
            brokers=wiring.brokers(settings),
            held=held,
            people=people(),
            left=partial(found_within, settings),
            groups_trusted=wiring.groups_trusted(settings),
            now=time.time(),
        )
        return list(look(site))
    finally:
        probe.close()


def ledger_facts(settings: Settings) -> tuple[LedgerFacts, tuple[str, ...]]:
    """What the ledger says of the daemon and of boots that failed, and the schedds that it has seen."""
    path, now = settings.pool.ledger, time.time()
    if not path.exists():
        return LedgerFacts(), ()
    try:
        with Reader(path) as reader:
            machines = reader.view(now).machines
            failed = never_joined(machines)
            facts = LedgerFacts(
                daemon=daemon_state(reader, now),
                failed=[(one, reader.console(one.id, one.cloud) or "") for one in failed],
                warnings=[
                    (one["code"], one["text"]) for one in (reader.last_cycle() or {}).get("warnings", ())
                ],
                not_ending=not_ended(machines),
                unseen=Counter(
                    one.cloud
                    for one in all_noted(reader, HandedToken).values()
                    if one.unseen and now - one.at < DAY
                ),
            )
            seen: Mapping[str, Any] = (reader.noted("schedds") or {}).get("seen", {})
            return facts, tuple(name for name, last in seen.items() if now - last < DAY)
    except LedgerError as error:
        return LedgerFacts(error=str(error)), ()
