"""`check`: everything that troubleshooting would look at by hand, each with what to do about it."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.app.operating.known import daemon_state
from updraft.cli.output import console, count, is_narrow, json_option, say_json, waiting
from updraft.cli.watching.documents import Document
from updraft.core.settings import DAY
from updraft.errors import ConfigError, LedgerError, ProblemFound

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from updraft.checks import Finding, LedgerFacts
    from updraft.config.model import Settings

STYLES: Mapping[str, str] = {"ok": "green", "warning": "yellow", "problem": "bold red", "skipped": "cyan"}
LONGEST_WHAT = 32


@click.command()
@json_option
@click.option("--all/--brief", "everything", default=True, help="Also what is ok, or only what isn't.")
@click.pass_obj
def check(call: Call, as_json: bool, everything: bool) -> None:
    """Look at everything that a working pool needs, and say what to do about what is amiss.

    Configuration, daemon, pool, rights, tokens, clouds, images, flavors, keys, quotas, boots that failed.
    Each line is ok, a warning, a problem, or skipped with the reason. All is asked at the same time, and
    nothing is waited for longer than 8 s. The exit code is 1 where there is a problem. Nothing is changed.
    """
    file, begun = call.file, time.monotonic()
    with waiting("looking at this machine, the pool and the clouds"):
        found = findings(file)
    document = checked(found, file, time.monotonic() - begun)
    if as_json:
        say_json(document)
    else:
        out = console()
        out.print(picture(found if everything else [one for one in found if one.state != "ok"], out))
        click.echo(_summary(document))
    problems = document["counts"]["problem"]
    if any(one.what == "configuration" and one.state == "problem" for one in found):
        raise ConfigError(f"{file} is wrong, so that nothing else was looked at")
    if problems:
        raise ProblemFound(f"{count(problems, 'problem')}: see what to do above")


def checked(found: Sequence["Finding"], file: Path, seconds: float) -> Document:
    """The findings as a document."""
    counts = Counter(str(one.state) for one in found)
    return {
        "file": str(file),
        "seconds": round(seconds, 2),
        "counts": {state: counts.get(state, 0) for state in STYLES},
        "findings": [{**asdict(one), "state": str(one.state)} for one in found],
    }


def findings(file: Path) -> list["Finding"]:
    """Everything that was found; of a wrong configuration each fault, and nothing else."""
    from updraft.app.operating.leftovers import found_within as leftovers_of
    from updraft.app.wiring import access, brokers, groups_trusted, make_driver
    from updraft.checks import Finding, Site, State, look
    from updraft.checks.role import held, people
    from updraft.condor.support.probe import PoolProbe
    from updraft.config import load

    try:
        settings = load(file)
    except ConfigError as error:
        remedy = "correct that line; docs/reference/settings.md has every key"
        return [
            Finding("here", "configuration", State.PROBLEM, line, remedy) for line in str(error).splitlines()
        ]
    reach = access(settings)
    probe = PoolProbe(reach)
    facts, schedds = ledger_facts(settings)
    try:
        site = Site(
            file=file,
            settings=settings,
            drivers={
                name: partial(make_driver, settings, name, cloud) for name, cloud in settings.clouds.items()
            },
            probe=probe,
            signing_key=reach.signing_key,
            ledger=facts,
            known_schedds=schedds,
            brokers=brokers(settings),
            held=held,
            people=people(),
            left=partial(leftovers_of, settings),
            groups_trusted=groups_trusted(settings),
            now=time.time(),
        )
        return list(look(site))
    finally:
        probe.close()


def ledger_facts(settings: "Settings") -> tuple["LedgerFacts", tuple[str, ...]]:
    """What the ledger says of the daemon and of boots that failed, and the schedds that it has seen."""
    from updraft.checks import LedgerFacts
    from updraft.checks.host import never_joined, not_ended
    from updraft.ledger.reader import Reader
    from updraft.ledger.tokens import HandedToken, all_noted

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


def picture(found: Iterable["Finding"], out: "Console") -> "RenderableType":
    """The findings for people, by area: state, what it is, how it stands, and below it what to do."""
    from rich.table import Table
    from rich.text import Text

    narrow = is_narrow(out)
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(overflow="fold", max_width=LONGEST_WHAT)
    if not narrow:
        made.add_column(overflow="fold", max_width=LONGEST_WHAT)
    made.add_column(overflow="fold", ratio=1)
    area = ""
    for one in found:
        if one.area != area:
            made.add_row(Text(f"\n{one.area}" if area else one.area, style="bold"))
            area = one.area
        text = Text(one.text)
        if one.remedy:
            text.append(f"\n→ {one.remedy}", style="italic")
        state = Text(str(one.state), style=STYLES[one.state])
        if narrow:
            made.add_row(state, Text.assemble((f"{one.what}: ", "bold"), text))
        else:
            made.add_row(state, Text(one.what), text)
    return made


def _summary(document: Document) -> str:
    counts: Mapping[str, int] = document["counts"]
    plural = {"warning": "warnings", "problem": "problems"}
    parts = [
        f"{number} {plural.get(state, state) if number > 1 else state}"
        for state, number in counts.items()
        if number
    ]
    return f"\n{', '.join(parts)}; {document['seconds']:.1f} s"
