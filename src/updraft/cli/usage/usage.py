"""`usage`: who used what, what it cost, and how much of what was paid was used. From the ledger alone."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft import config
from updraft.app.call import Call
from updraft.cli.output import Column, console, is_narrow, json_document, json_option, table
from updraft.documents import plain
from updraft.errors import ProblemFound, UsageError
from updraft.usage.report import BY, BillImport

if TYPE_CHECKING:
    from rich.console import RenderableType

    from updraft.ledger.usage_reading import Records
    from updraft.usage.bills import CloudBill
    from updraft.usage.period import ReportPeriod
    from updraft.usage.report import By, UsageReport

FORMATS = ("table", "csv", "json", "jsonl", "parquet", "focus", "apel", "auditor")
OF_RECORDS = ("focus", "apel", "auditor")  # of which --by says nothing
Row = dict[str, Any]


@click.group(invoke_without_command=True)
@click.option("--by", type=click.Choice(BY), default="user", show_default=True, help="What the rows are by.")
@click.option("--month", metavar="YYYY-MM", help="A month. Without any of these: this one.")
@click.option("--from", "first", metavar="DAY", help="The first UTC day, as in 2026-11-01.")
@click.option("--to", "last", metavar="DAY", help="The last one, included. Default: today.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="The form."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it into this file.",
)
@json_option
@click.pass_context
def usage(
    context: click.Context,
    by: "By",
    month: str | None,
    first: str | None,
    last: str | None,
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show who used what, what it cost at list prices, and how much of what was paid was used.

    Every figure is an estimate, not the bill. Days are UTC days. docs/howto/usage.md says what is counted.
    """
    if context.invoked_subcommand is not None:
        return
    from updraft.usage.period import period

    call: Call = context.obj
    days = period(month, first, last, datetime.now(UTC).date())
    form = "json" if as_json else form
    if form in OF_RECORDS:
        _write_records(call, days, form, output)
    else:
        _write(_document(call, days, by), form, output)


@contextmanager
def _records(place: config.PoolPlace, days: "ReportPeriod") -> Iterator["Records"]:
    """The records of these days. Raises ProblemFound where there are none yet: that isn't nothing."""
    from updraft.ledger import Reader
    from updraft.ledger.usage_reading import records

    with Reader(place.ledger) as reader, records(reader, *days.days) as found:
        if found is None or found.at is None:
            raise ProblemFound(
                f"{place.ledger} has no records of what was used yet: they begin when the daemon of this "
                "updraft is started"
            )
        yield found


def _document(call: Call, days: "ReportPeriod", by: "By") -> "UsageReport":
    from updraft.usage.report import document

    place, settings = call.place, config.usage(call.file)
    with _records(place, days) as found:
        return document(found, place.pool, days, by, settings)


def _write_records(call: Call, days: "ReportPeriod", form: str, output: Path | None) -> None:
    from updraft.cli.usage import writing

    place, settings = call.place, config.usage(call.file)
    with _records(place, days) as found, writing.opened(output) as out:
        writing.OF_RECORDS[form](found, place.pool, settings, out)


def _write(doc: "UsageReport", form: str, output: Path | None) -> None:
    from updraft.cli.usage.writing import opened, opened_binary
    from updraft.usage.formats import parquet, text
    from updraft.usage.report import columns, lines

    kinds = columns(doc.by)
    if form == "table":
        if output is not None:
            raise UsageError("a table is for people: say another --format for a file")
        shown = console()
        for part in picture(doc, narrow=is_narrow(shown)):
            shown.print(part)
        return
    if form == "parquet":
        with opened_binary(output) as file:
            parquet.write(lines(doc), kinds, file)
        return
    with opened(output) as out:
        if form == "csv":
            text.write_csv(lines(doc), kinds, out)
        elif form == "jsonl":
            text.write_jsonl(lines(doc), out)
        else:
            click.echo(json_document(doc), file=out)


@usage.command(name="import")
@json_option
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="BILL.csv")
@click.pass_obj
def import_(call: Call, as_json: bool, files: tuple[Path, ...]) -> None:
    """Put what a cloud has billed beside the estimates.

    BILL.csv is the cloud's cost and usage report in FOCUS form. All files of one report go into one call: a
    later import takes the place of what an earlier one said of the same machines and days.
    """
    bill = _imported(call.place, files)
    doc = BillImport(
        bill.rows,
        len(bill.billed),
        _by_currency(bill.billed),
        bill.others,
        bill.unread,
        bill.why or None,
    )
    if as_json:
        click.echo(json_document(doc))
        return
    for currency, amount in doc.billed.items():
        click.echo(f"{amount:.2f} {currency} of {len(bill.billed)} machine-days imported")
    click.echo(f"{bill.others} of {bill.rows} rows are of no machine of this pool, and are left out")
    if bill.unread:
        raise ProblemFound(f"{bill.unread} rows can't be read and are left out, the first one: {bill.why}")


def _imported(place: config.PoolPlace, files: tuple[Path, ...]) -> "CloudBill":
    """What these files say of the pool's machines, once it is written down."""
    from updraft.app.call import who
    from updraft.core.model import Reason
    from updraft.ledger import Ledger, Reader
    from updraft.usage.bills import read

    with Reader(place.ledger) as reader:
        bill = read(files, reader.used_instances())
    if bill.billed:
        with Ledger(place.ledger) as ledger, ledger.together():
            ledger.put_bill(bill.billed)
            text = f"{who()} imported a bill of {len(bill.billed)} machine-days"
            ledger.event(time.time(), "bill", "", Reason("bill-imported", text))
    return bill


def _by_currency(billed: Mapping[tuple[int, str, str, str], float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for (_, _, _, currency), amount in billed.items():
        found[currency] = found.get(currency, 0.0) + amount
    return {currency: round(amount, 6) for currency, amount in sorted(found.items())}


# ----------------------------------------------------------------------------------------- for people


def picture(doc: "UsageReport", *, narrow: bool = False) -> Iterator["RenderableType"]:
    """The report as a table, and what is to be known of it."""
    yield f"{doc.pool}, {doc.from_} to {doc.to} (UTC): {doc.note}"
    if doc.since is None or doc.from_ < doc.since:
        yield f"there are no records of before {doc.since or doc.until}"
    if not doc.rows:
        yield "nothing was used"
        return
    yield ""
    chosen = [(column, cell) for column, cell, always in _columns(doc) if always or not narrow]
    rows: list[Row] = [*plain(doc.rows), *({"kind": "total", "name": "", **plain(one)} for one in doc.totals)]
    yield table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
    yield from _notes(doc)


def _columns(doc: "UsageReport") -> Sequence[tuple[Column, Callable[[Row], str], bool]]:
    def number(title: str, key: str, always: bool = True) -> tuple[Column, Callable[[Row], str], bool]:
        return Column(title, right=True), lambda row: _number(row[key]), always

    some = [
        (Column(doc.by, wide=True), _name, True),
        number("core-hours used", "used_core_hours"),
        number("paid", "paid_core_hours"),
        (Column("used of paid", right=True), _percent, True),
        number("jobs", "jobs", False),
        number("lost", "lost_core_hours", False),
        (Column("cost", right=True), _cost, True),
    ]
    for title, key in (("billed", "billed"), ("kWh", "kwh"), ("kg CO₂", "co2_kg")):
        if any(getattr(row, key) is not None for row in doc.totals):
            some.append(number(title, key))
    return some


_NAMES: Mapping[str, str] = {
    "unknown": "(nobody knows who)",
    "pool": "(used by nobody)",
    "total": "all",
    "group": "(no group)",
    "annex": "(no annex)",
}


def _name(row: Row) -> str:
    return str(row["name"] or _NAMES.get(row["kind"], "(none)"))


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return str(value) if isinstance(value, int) else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def _percent(row: Row) -> str:
    return "" if row["efficiency"] is None else f"{100 * row['efficiency']:.0f} %"


def _cost(row: Row) -> str:
    if row["cost"] is None:
        return "?"
    more = "+?" if row["unpriced_machine_hours"] else ""
    return f"{row['cost']:.2f}{more} {row['currency']}".rstrip()


def _notes(doc: "UsageReport") -> Iterator[str]:
    unknown = sum(one.unknown_core_hours for one in doc.totals)
    doubtful = sum(one.doubtful_core_hours for one in doc.totals)
    unpriced = sum(one.unpriced_machine_hours for one in doc.totals)
    if unknown:
        yield f"of {_number(unknown)} core-hours nobody knows what they did: no controller looked"
    if doubtful:
        yield f"up to {_number(doubtful)} core-hours more: nobody knows whether these machines were there"
    if unpriced:
        yield f"+?: the price of {_number(unpriced)} machine-hours isn't known"
    if doc.until:
        yield f"up to the look at {doc.until}"
