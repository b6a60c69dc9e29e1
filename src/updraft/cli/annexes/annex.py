"""`annex`: machines asked for by hand, with a lease. Each wish is written into the ledger for the daemon."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call, who
from updraft.cli.annexes import asking
from updraft.cli.annexes.making import ALL, ME, SPAN, layer_of, me, tags_of
from updraft.cli.annexes.rows import annex_table
from updraft.cli.output import ago, clock, console, count, is_narrow, json_option, say_json, waiting
from updraft.core.model import Annex
from updraft.core.slots.choice import near
from updraft.documents import Row
from updraft.documents.annexes import (
    AnnexChanged,
    AnnexCreated,
    AnnexList,
    AnsweringDaemon,
    WouldBuy,
    annex_row,
)
from updraft.documents.cycle import DaemonState
from updraft.errors import LedgerError, ProblemFound, UsageError
from updraft.ledger import annexes
from updraft.ledger.reader import Reader
from updraft.ledger.store import Ledger
from updraft.ledger.tokens import expiries
from updraft.watching.annexes import rows_of
from updraft.watching.known import START, daemon_state
from updraft.watching.sentences import lease, size, stands

if TYPE_CHECKING:
    from updraft.daemon.annexing import AnnexRequest

name_argument = click.argument("name", metavar="NAME")
kill_option = click.option("--kill-jobs", is_flag=True, help="At once: jobs go back to the queue.")


@click.group()
def annex() -> None:
    """Ask for machines by hand: so many, for so long, apart from the queue."""


# ---------------------------------------------------------------------------------------------- to ask for


@annex.command(short_help="Ask for machines.")
@name_argument
@click.option("--count", "machines", type=click.IntRange(min=1), help="So many machines.")
@click.option("--cores", type=click.IntRange(min=1), help="Machines with so many cores in all.")
@click.option("--class", "worker_class", default="", help="Their worker class. Default: the only one.")
@click.option(
    "--duration", type=SPAN, default="50m", show_default=True, help="When the lease ends, from now."
)
@click.option(
    "--idle", type=SPAN, default="15m", show_default=True, help="An idle machine leaves after that."
)
@click.option(
    "--owner", default=ME, show_default=True, help="Whose jobs they run: me, all, or a user's name."
)
@click.option("--spot/--on-demand", default=None, help="Only that market. Default: the class's, by price.")
@click.option("--max-price", type=click.FloatRange(min=0), help="Per machine and hour; none that is dearer.")
@click.option("--cloud", "clouds", multiple=True, metavar="NAME", help="Only there. May be repeated.")
@click.option(
    "--flavor",
    "flavors",
    multiple=True,
    metavar="NAME",
    help="Only that; a pattern will do. May be repeated.",
)
@click.option("--image", default="", help="Booted instead of the class's; one that the class allows.")
@click.option(
    "--security-group", "security_groups", multiple=True, metavar="GROUP",
    help="Instead of the cloud's own. May be repeated.",
)  # fmt: skip
@click.option(
    "--user-data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a layer for their first boot: #cloud-config or a script.",
)
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag of theirs. May be repeated.")
@click.option("--dry-run", is_flag=True, help="Show what would be bought. Nothing is asked for.")
@click.option("--unchecked", is_flag=True, help="Don't look whether the machines will be able to join.")
@json_option
@click.pass_obj
def create(call: Call, /, as_json: bool, dry_run: bool, unchecked: bool, **said: Any) -> None:
    """Ask for machines: --count of them, or as many as have --cores.

    They are the cheapest of the class that may be had, take the jobs of one user (or of all, with --owner
    all), and end when the lease does, whatever happens. One that has been idle for --idle leaves before that,
    and isn't replaced.
    """
    from updraft.app.annexes import check_reach, imagined, would_buy
    from updraft.cli.annexes.making import refuse
    from updraft.daemon.annexing import annex_of as made_of

    if not dry_run:
        call.acting()
    if asking.needed(call):
        row = asking.create(said, dry_run=dry_run)["annex"]
        _answered(row, "within your allowance" if dry_run else "", as_json, created=True)
        return

    settings = call.settings
    asked = _asked(said)
    new = made_of(asked, settings.policy(), time.time())
    if any(one.name == new.name for one in _known(call)):
        raise UsageError(f"there is an annex {new.name} already; delete it, or give this one another name")
    if not unchecked:
        with waiting("looking whether its machines will be able to join"):
            found = check_reach(settings, new)
        refuse(found)
    if dry_run:
        with waiting("looking at the pool and the clouds"), imagined(call, new) as decided:
            _show_dry_run(would_buy(decided, new.name), new, as_json)
        return
    with Ledger(call.place.ledger) as ledger:
        annexes.create(ledger, new, who(), asked.layer)
    what = f"asked for; its lease ends at {clock(new.until)}"
    _told(call, new.name, what, as_json, created=True)


def _asked(said: Mapping[str, Any]) -> "AnnexRequest":
    from updraft.daemon.annexing import AnnexRequest

    owner = said["owner"]
    return AnnexRequest(
        name=said["name"],
        owner=me() if owner in (ME, ALL) else owner,
        worker_class=said["worker_class"],
        machines=said["machines"] or 0,
        cores=said["cores"] or 0,
        duration=said["duration"],
        idle=said["idle"],
        for_all=owner == ALL,
        spot=said["spot"],
        max_price=said["max_price"],
        clouds=said["clouds"],
        flavors=said["flavors"],
        image=said["image"],
        security_groups=said["security_groups"],
        layer=layer_of(said["user_data"]),
        tags=tags_of(said["tags"]),
    )


def _show_dry_run(document: WouldBuy, new: Annex, as_json: bool) -> None:
    if as_json:
        say_json(AnnexCreated(None, annex_row(new, None), document))
        return
    for one in document.launches:
        price = "price unknown" if one.price is None else f"{one.price * one.count:.4g} per hour"
        click.echo(f"would launch {one.count} {one.offer}: {one.cores} cores, {price}")
    outlook = document.outlook
    if outlook is not None and outlook.missing:
        what = count(outlook.missing, "machine" if new.machines else "core")
        click.echo(f"{what} not now: {outlook.reason.text}")


# ----------------------------------------------------------------------------------------------- to change


@annex.command(short_help="Move the end of the lease.")
@name_argument
@click.option("--duration", type=SPAN, required=True, help="When the lease ends, from now.")
@json_option
@click.pass_obj
def extend(call: Call, name: str, duration: float, as_json: bool) -> None:
    """Let the lease end later: --duration from now.

    The machines learn it from their cloud's metadata, where it tells a machine its tags. Where it doesn't,
    the lease can't be moved while machines are there: they end with the one that they were launched with.
    """
    from updraft.daemon.annex_requests.desk import TOLD
    from updraft.daemon.annexing import check_tokens, check_told, extended

    call.acting()
    if asking.needed(call):
        _answered(asking.change("extend", name, duration=duration), "", as_json)
        return
    now, policy = time.time(), call.settings.policy()
    old = _one(call, name)
    until = extended(old, duration, policy, now)
    with Ledger(call.place.ledger) as ledger:
        machines = ledger.view(now).machines
        check_told(old, machines, ledger.noted(TOLD) or {})
        check_tokens(old, until, now, machines, expiries(ledger))
        annexes.extend(ledger, name, until, who(), now)
    _told(call, name, f"extended; its lease ends at {clock(until)}", as_json)


@annex.command(short_help="End its machines now.")
@name_argument
@kill_option
@json_option
@click.pass_obj
def stop(call: Call, name: str, kill_jobs: bool, as_json: bool) -> None:
    """End its machines: each when its jobs have ended, at the end of the lease at the latest."""
    call.acting()
    if asking.needed(call):
        _answered(asking.change("stop", name, kill_jobs=kill_jobs), "stopped; its machines leave", as_json)
        return
    _one(call, name)
    with Ledger(call.place.ledger) as ledger:
        annexes.stop(ledger, name, who(), time.time(), kill_jobs=kill_jobs)
    _told(call, name, "stopped; its machines leave", as_json)


@annex.command(short_help="Stop it, and forget it.")
@name_argument
@kill_option
@json_option
@click.pass_obj
def delete(call: Call, name: str, kill_jobs: bool, as_json: bool) -> None:
    """Stop it, and forget it once its machines are gone."""
    call.acting()
    if asking.needed(call):
        _answered(asking.change("delete", name, kill_jobs=kill_jobs), "deleted; its machines leave", as_json)
        return
    _one(call, name)
    with Ledger(call.place.ledger) as ledger:
        annexes.delete(ledger, name, who(), time.time(), kill_jobs=kill_jobs)
    _told(call, name, "deleted; forgotten once its machines are gone", as_json)


def _answered(row: Row, what: str, as_json: bool, *, created: bool = False) -> None:
    """Say what the daemon has answered."""
    if as_json:
        _say_changed(AnsweringDaemon(), row, created)
    else:
        click.echo(f"annex {row['name']}: {what or 'its lease ends at ' + clock(row['until'])}")


def _told(call: Call, name: str, what: str, as_json: bool, *, created: bool = False) -> None:
    """Say what was written down. Raises ProblemFound where no daemon is at work to do it."""
    with Reader(call.place.ledger) as reader:
        daemon = daemon_state(reader, time.time())
        row = next(one for one in rows_of(reader) if one["name"] == name)
    if as_json:
        _say_changed(daemon, row, created)
    else:
        click.echo(f"annex {name}: {what}")
    if not daemon.alive:
        raise ProblemFound(f"written down, but no daemon is at work to do it; {START}")


def _say_changed(daemon: DaemonState | AnsweringDaemon, row: Row, created: bool) -> None:
    say_json(AnnexCreated(daemon, row, WouldBuy((), None)) if created else AnnexChanged(daemon, row))


# ------------------------------------------------------------------------------------------------- to show


@annex.command("list", short_help="Every annex.")
@json_option
@click.pass_obj
def list_(call: Call, as_json: bool) -> None:
    """List the annexes: how many machines of how many, until when, and how they stand."""
    rows = _rows(call)
    if as_json:
        say_json(AnnexList(rows))
        return
    if not rows:
        click.echo("there is no annex")
        return
    out = console()
    out.print(annex_table(rows, narrow=is_narrow(out)))


@annex.command(short_help="All about one annex, or about each.")
@click.argument("name", metavar="[NAME]", required=False)
@json_option
@click.pass_obj
def status(call: Call, name: str | None, as_json: bool) -> None:
    """Show all that is known of an annex, its machines with it."""
    if asking.needed(call):
        rows = asking.rows(name)
    else:
        if name is not None:
            _one(call, name)
        rows = [row for row in _rows(call) if name in (None, row["name"])]
    if as_json:
        say_json(AnnexList(rows))
        return
    for row in rows:
        for title, text in _story(row):
            click.echo(f"{title + ':':<12} {text}")
        for machine in row["instances"]:
            click.echo(f"  {machine['id']} on {machine['cloud']}: {machine['flavor']}, {machine['text']}")
    if not rows:
        click.echo("there is no annex")


def _story(row: Row) -> Sequence[tuple[str, str]]:
    market = {None: "", True: ", spot only", False: ", on demand only"}[row["spot"]]
    most = "" if row["max_price"] is None else f", at most {row['max_price']:g} per machine and hour"
    look = row["look"]
    there = (
        ""
        if look is None
        else f", {look['joined']} joined, {look['busy']} with jobs, {look['coming']} coming"
    )
    return (
        ("annex", f"{row['name']} of class {row['worker_class']}{market}{most}"),
        ("state", stands(row)),
        ("for", "the jobs of all users" if row["for_all"] else f"the jobs of {row['owner']}"),
        ("machines", f"{size(row)}{there}" + (f"; {row['left']} left" if row["left"] else "")),
        ("lease ends", lease(row)),
        ("idle limit", ago(row["idle"])),
    )


def _rows(call: Call) -> list[Row]:
    if asking.needed(call):
        return asking.rows()
    try:
        reader = Reader(call.place.ledger)
    except LedgerError:
        if call.place.ledger.exists():
            raise
        return []
    with reader:
        return rows_of(reader)


def _known(call: Call) -> Sequence[Annex]:
    try:
        with Reader(call.place.ledger) as reader:
            return reader.annexes()
    except LedgerError:
        if call.place.ledger.exists():
            raise
        return ()


def _one(call: Call, name: str) -> Annex:
    """The annex of this name. Raises UsageError where there is none."""
    there = {one.name: one for one in _known(call)}
    if name not in there:
        close = near(name, list(there))
        hint = f"did you mean {close[0]}?" if close else "`updraft annex list` shows those that there are"
        raise UsageError(f"there is no annex {name}; {hint}")
    return there[name]
