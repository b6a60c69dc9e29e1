"""`status` and `machines`: the daemon's last look, from the ledger alone, so that they answer at once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.app.terminal import plain_streams
from updraft.cli.annexes.rows import annex_table
from updraft.cli.output import Column, ago, clock, console, count, is_narrow, json_option, say_json, table
from updraft.cli.watching.budgets import budget_lines
from updraft.documents import Rows, plain
from updraft.ledger.reader import Reader
from updraft.watching.documents import (
    Machine,
    MachineCounts,
    MachineList,
    Status,
    machine_row,
    machine_rows,
    status_document,
)
from updraft.watching.sentences import cloud_line, cost_words, daemon_line, why_waiting

if TYPE_CHECKING:
    from rich.console import RenderableType

WATCH_EVERY = 1.0
GROUPS_SHOWN = 40  # more are nobody's reading, and a table of hundreds takes longer to draw than all the rest


@click.command()
@json_option
@click.option("--watch", is_flag=True, help="Stay, and show it anew every second; Ctrl-C ends it.")
@click.option("--clouds", is_flag=True, help="Each cloud: state, what is in use of what, the last error.")
@click.option("--classes", is_flag=True, help="Each worker class: machines, cores, jobs that wait for it.")
@click.option("--users", is_flag=True, help="Each user: cores of what, share, jobs that wait.")
@click.pass_obj
def status(call: Call, as_json: bool, watch: bool, clouds: bool, classes: bool, users: bool) -> None:
    """Show the pool at the daemon's last look.

    Jobs that wait and why, machines by phase, annexes, rests after failures, and what doesn't answer; or
    tables of clouds, classes and users. It asks neither pool nor clouds: where no daemon is at work it says
    so, and how old the picture is.
    """
    place, wanted = call.place, {"clouds": clouds, "classes": classes, "users": users}
    tables = [name for name, shown in wanted.items() if shown]
    with Reader(place.ledger) as reader:
        if watch and not as_json:
            _watch(reader, place.pool, tables)
            return
        document = status_document(reader, place.pool, time.time())
    if as_json:
        say_json(document)
        return
    out = console()
    for part in picture(document, tables):
        out.print(part)


def _watch(reader: Reader, pool: str, tables: Sequence[str]) -> None:
    from rich.console import Group
    from rich.live import Live

    def now() -> Group:
        return Group(*picture(status_document(reader, pool, time.time()), tables))

    with Live(now(), console=console(), auto_refresh=False, screen=False) as live, plain_streams():
        while True:
            time.sleep(WATCH_EVERY)
            live.update(now(), refresh=True)


def picture(document: Status, tables: Sequence[str] = ()) -> Iterator["RenderableType"]:
    """The status document for people: all that goes on, or these tables (clouds, classes, users)."""
    yield from _headlines(document)
    if tables:
        yield from _tables(document, tables)
        return
    silent = source_table(document.sources, document.daemon.looked_at or 0.0)
    if silent is not None:
        yield ""
        yield silent
    waiting = [group for group in document.groups if group["idle"]]
    if waiting:
        # Those who find no room first: sorting keeps the order otherwise.
        waiting.sort(key=lambda group: not group["unmet"])
        yield ""
        yield group_table(waiting[:GROUPS_SHOWN])
        more = waiting[GROUPS_SHOWN:]
        if more:
            jobs = count(sum(group["idle"] for group in more), "waiting job")
            yield f"and {count(len(more), 'more group')} of {jobs}: `updraft status --json` has them all"
    if document.annexes:
        yield ""
        yield annex_table(document.annexes, narrow=is_narrow(console()))
    if document.cooldowns:
        yield ""
        yield _cooldowns(document.cooldowns, document.daemon.looked_at or 0.0)
    for warning in document.warnings:
        yield f"\nwarning: {warning['text']}"


def _tables(document: Status, names: Sequence[str]) -> Iterator["RenderableType"]:
    from updraft.cli.watching import tallies

    for name in names:
        yield ""
        rows: Rows = getattr(document.tallies, name)
        if not rows:
            yield f"nothing is known of {name} yet"
        elif name == "clouds":
            yield tallies.cloud_table(rows, time.time(), narrow=is_narrow(console()))
        elif name == "classes":
            yield tallies.class_table(rows)
        else:
            yield from tallies.user_table(rows)


def source_table(sources: Mapping[str, Mapping[str, Any]], now: float) -> "RenderableType | None":
    """The sources that didn't answer, since when and why; None where all did."""
    rows = [
        (name, ago(now - source["since"]), _why(source.get("error")))
        for name, source in sources.items()
        if source["state"] == "unknown"
    ]
    if not rows:
        return None
    return table([Column("does not answer"), Column("for", right=True), Column("why", wide=True)], rows)


def _headlines(document: Status) -> Iterator["RenderableType"]:
    from rich.text import Text

    jobs, machines = document.jobs, document.machines
    yield Text.assemble(
        (document.pool, "bold"),
        f": {count(jobs['idle'], 'job')} waiting, {jobs['running']} running; ",
        f"{count(machines.total, 'machine')}{_phases(machines.phases)}{_cost(machines)}",
    )
    yield Text(daemon_line(plain(document.daemon)), style="" if document.daemon.alive else "bold red")
    if document.tallies.clouds:
        yield Text(f"clouds: {cloud_line(document.tallies.clouds, time.time())}")
    for line in budget_lines(document.tallies.spending):
        yield Text(line)
    for request in document.requests:
        what = f"{request.kind} {request.machine or 'everything'}"
        yield Text(f"asked for by {request.who}, not done yet: {what}")


def _phases(phases: Mapping[str, int]) -> str:
    parts = [f"{number} {phase}" for phase, number in phases.items()]
    return f" ({', '.join(parts)})" if parts else ""


def _cost(machines: MachineCounts) -> str:
    if not machines.total:
        return ""
    return f"; {cost_words(machines.total, machines.cost_per_hour, machines.unknown_prices)}"


def group_table(groups: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """Jobs that wait, by group: what room there is for them, and why the rest has none."""
    columns = [
        Column("waiting", right=True),
        Column("owner"),
        Column("first job"),
        Column("room", right=True),
        Column("coming", right=True),
        Column("new", right=True),
        Column("unmet", right=True),
        Column("why", wide=True),
    ]
    rows = [
        (
            str(group["idle"]),
            str(group.get("owner") or group["key"]),
            str(group.get("first_id") or ""),
            *(str(group[key]) for key in ("joined", "coming", "new", "unmet")),
            "; ".join(why_waiting(group)),
        )
        for group in groups
    ]
    return table(columns, rows)


def _cooldowns(cooldowns: Sequence[Mapping[str, Any]], now: float) -> "RenderableType":
    columns = [
        Column("rests", wide=True),
        Column("until"),
        Column("failed", right=True),
        Column("why", wide=True),
    ]
    rows = [
        (
            f"{rest['scope']} {rest['key']}",
            clock(rest["until"]) if rest["until"] > now else "probing",
            str(rest["failures"]),
            _why(rest["reason"]),
        )
        for rest in cooldowns
    ]
    return table(columns, rows)


def _why(reason: Mapping[str, str] | None) -> str:
    return "" if reason is None else reason["text"]


# --------------------------------------------------------------------------------------------- machines


@click.command()
@json_option
@click.option("--all", "with_gone", is_flag=True, help="Those of the last day that are gone as well.")
@click.pass_obj
def machines(call: Call, as_json: bool, with_gone: bool) -> None:
    """List the machines, each with its phase and the reason for it."""
    now = time.time()
    with Reader(call.place.ledger) as reader:
        rows = machine_rows(reader, reader.last_cycle() or {}, now)
        if with_gone:
            gone = [record for record in reader.view(now).machines if record.ended_at is not None]
            rows += [machine_row(record, None, now) for record in gone]
    rows.sort(key=lambda row: row.requested_at)
    if as_json:
        say_json(MachineList(rows))
    elif not rows:
        click.echo("no machines")
    else:
        out = console()
        out.print(machine_table(rows, narrow=is_narrow(out)))


Cell = Callable[[Machine], str]
MACHINE_COLUMNS: Sequence[tuple[Column, bool, Cell]] = (  # column, in a narrow table too, its text
    (Column("machine"), True, lambda row: str(row.id)),
    (Column("class"), False, lambda row: str(row.class_)),
    (Column("where"), False, lambda row: f"{row.cloud}/{row.zone}" if row.zone else row.cloud),
    (Column("flavor"), True, lambda row: str(row.flavor)),
    (Column("phase"), True, lambda row: str(row.phase)),
    (Column("age", right=True), True, lambda row: ago(row.age)),
    (Column("price", right=True), False, lambda row: "?" if row.price is None else f"{row.price:.4g}"),
    (Column("why", wide=True), True, lambda row: str(row.reason.text)),
)


def machine_table(rows: Sequence[Machine], *, narrow: bool) -> "RenderableType":
    """Machines for people; a narrow table leaves out what is least asked for."""
    chosen = [(column, cell) for column, always, cell in MACHINE_COLUMNS if always or not narrow]
    return table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
