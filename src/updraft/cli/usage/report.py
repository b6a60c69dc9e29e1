"""`report`: what was in some days, beside what updraft would have done; at a terminal, or as a page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.output import Column, console, count, json_option, say_json, table, waiting

if TYPE_CHECKING:
    from rich.console import RenderableType

ROWS_SHOWN = 15
Document = Mapping[str, Any]


@click.command()
@click.option("--month", metavar="YYYY-MM", help="A month. Without any of these: this one.")
@click.option("--from", "first", metavar="DAY", help="The first UTC day, as in 2026-11-01.")
@click.option("--to", "last", metavar="DAY", help="The last one, included. Default: today.")
@click.option("--html", metavar="FILE", help="Write a page with plots, which loads nothing from anywhere.")
@click.option("--boot", metavar="TIME", help="How long machines would take to join. Default: 90s.")
@click.option("--replay", is_flag=True, help="Simulate what updraft would do also where it really acted.")
@json_option
@click.pass_obj
def report(
    call: Call,
    /,
    month: str | None,
    first: str | None,
    last: str | None,
    html: str | None,
    boot: str | None,
    replay: bool,
    as_json: bool,
) -> None:
    """Tell what was in these days: jobs and waits, machines, users, what waited and why, what failed.

    Where updraft only watched ([pool] act = false), it says beside it what updraft would have done, what that
    would have cost and how long jobs would have waited: their real arrivals and run times, in simulated time.
    That is an estimate. docs/howto/watch-only.md says what it goes by.
    """
    from updraft.app.watching.reporting import ReportAsked, found
    from updraft.documents import plain
    from updraft.sim.reports.month import document

    page = None
    if html is not None:
        from updraft.sim.reports.page import place_for

        page = place_for(html, {call.file.resolve()})
    asked = ReportAsked(month, first, last, boot, replay)
    with waiting("reading what was, and simulating what would have been"):
        made = found(call, asked)
        told = plain(document(made))
    if page is not None:
        from updraft.sim.reports.month_page import page as drawn
        from updraft.sim.reports.page import write

        write(drawn(told, made), page)
    if as_json:
        say_json(told)
        return
    out = console()
    for part in picture(told):
        out.print(part)
    if page is not None:
        click.echo(f"\nreport: {page}")


def picture(told: Document) -> Iterator["RenderableType"]:
    """The report for people at a terminal."""
    from updraft.sim.reports.month_words import at, figures

    jobs = told["jobs"]
    yield f"{told['pool']}, {at(told['since'])} to {at(told['until'])}"
    yield (
        f"{count(jobs['arrived'], 'job')} arrived: {jobs['ended']} ended ({jobs['failed']} failed), "
        f"{jobs['running']} run, {jobs['waiting']} wait, {jobs['held']} on hold, {jobs['removed']} removed"
    )
    if told["watched"]:
        yield "updraft only watched, and touched nothing"
    yield ""
    both = told["would"] is not None
    columns = [Column(""), Column("really", right=True)]
    columns += [Column("updraft would have (estimate)", right=True)] if both else []
    yield table(columns, [[one.title, one.really, *([one.would] if both else [])] for one in figures(told)])
    if told["why_not"]:
        yield f"what updraft would have done isn't known: {told['why_not']}"
    if told["unfit"]:
        yield f"{count(told['unfit'], 'job')} in neither column: no machine that updraft may buy holds them"
    for title, rows in (
        ("users", told["users"]),
        ("what waited", told["waits"]),
        ("failures", told["failures"]),
    ):
        if rows:
            yield ""
            yield _TABLES[title](rows[:ROWS_SHOWN], both)
            if len(rows) > ROWS_SHOWN:
                yield f"and {len(rows) - ROWS_SHOWN} more: --json and --html have them"
    for note in told["notes"]:
        yield f"note: {note}"


def _users(rows: Sequence[Document], both: bool) -> "RenderableType":
    from updraft.sim.reports.month_words import wait

    columns = [Column("user", wide=True)]
    columns += [Column(name, right=True) for name in ("jobs", "failed", "core-hours", "mean wait")]
    columns += [Column("would have waited", right=True)] if both else []
    return table(
        columns,
        [
            [
                row["name"],
                *(f"{row[key]:,}" for key in ("jobs", "failed")),
                f"{row['core_hours']:,.1f}",
                wait(row["mean_wait"]),
                *([wait(row["would_mean_wait"])] if both else []),
            ]
            for row in rows
        ],
    )


def _waits(rows: Sequence[Document], _both: bool) -> "RenderableType":
    columns = [Column("job-hours waited", right=True), Column("user"), Column("why", wide=True)]
    return table(
        columns, [[f"{row['job_hours']:,.1f}", row["user"] or "(others)", row["text"]] for row in rows]
    )


def _failures(rows: Sequence[Document], _both: bool) -> "RenderableType":
    columns = [Column("failed", right=True), Column("last"), Column("what", wide=True)]
    return table(columns, [[f"{row['number']:,}", row["last"], row["text"]] for row in rows])


_TABLES = {"users": _users, "what waited": _waits, "failures": _failures}
