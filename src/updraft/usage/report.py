"""A report of what was used: by user, group, annex, cloud, class, flavor or machine, and in all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Annotated, Any, Literal, get_args

from updraft.config.tables.usage import Usage
from updraft.documents import IN_PLACE, Document, plain, schema
from updraft.ledger.usage_reading import Records, Row
from updraft.usage import NOT_THE_BILL
from updraft.usage.figures import ToldFigures, UsageFigures, person, place, rest, told
from updraft.usage.period import ReportPeriod, date_of, moment

By = Literal["user", "group", "annex", "cloud", "class", "flavor", "machine"]
BY = get_args(By)
_PEOPLE = ("user", "group")
Key = tuple[Any, str, str]  # what sort of row it is, its name, its currency


class MachineAbout(Document):
    """What the latest record of a machine says of it."""

    cloud: Annotated[str, "Its cloud."]
    region: Annotated[str, "Where that is, as the cloud's settings say it; or empty."]
    zone: Annotated[str, "Its zone."]
    instance: Annotated[str, "Its id."]
    flavor: Annotated[str, "Its flavor."]
    market: Annotated[str, "on-demand or spot."]
    image: Annotated[str, "Its image."]
    class_: Annotated[str, "Its worker class."]
    annex: Annotated[str, "The annex that it was launched for, or empty."]
    owner: Annotated[str, "Whose annex that is, or empty."]
    cores: Annotated[int, "Its cores."]
    memory: Annotated[int, "Its memory, MiB."]
    gpus: Annotated[int, "Its GPUs."]
    price: Annotated[float | None, "Per hour, when it was last seen; null where it isn't known."]
    source: Annotated[str, "Where the price is from: site (updraft.toml) or cloud; empty without one."]
    benchmark: Annotated[str, "What `score` is measured by, or empty."]
    score: Annotated[float | None, "The benchmark of one core, where the site says it; or null."]
    requested: Annotated[str, "When it was asked for (UTC)."]
    seen_until: Annotated[str, "The last moment of it that is in the report (UTC)."]
    ended: Annotated[str | None, "Why it ended (a reason's code); null of one that hasn't."]
    why: Annotated[str | None, "The same in words, or null."]


class UsageRow(Document):
    """One row."""

    kind: Annotated[By | Literal["unknown", "pool"], "`unknown`: of nobody known; `pool`: charged to nobody."]
    name: Annotated[str, "Whose, or of what; of a machine CLOUD/ID. Empty: without a group or an annex."]
    figures: ToldFigures = field(metadata=IN_PLACE)
    machine: Annotated[MachineAbout | None, "With `--by machine`: of which; or null."]


class UsageReport(Document):
    """What was used and paid."""

    estimate: Annotated[bool, "Always true."]
    note: Annotated[str, f"What its figures are: {NOT_THE_BILL}."]
    pool: Annotated[str, "The pool."]
    from_: Annotated[str, "The first UTC day."]
    to: Annotated[str, "The last UTC day, included."]
    by: Annotated[By, "What the rows are by."]
    since: Annotated[str | None, "The first day of which there are any records, or null."]
    until: Annotated[str | None, "The last look that is in it (UTC), or null."]
    idle_paid_by: Annotated[Literal["users", "pool"], "Who is charged for idle cores."]
    rows: Annotated[Sequence[UsageRow], "The dearest first."]
    totals: Annotated[Sequence[ToldFigures], "By currency."]


class BillImport(Document):
    """What was read of a bill."""

    rows: Annotated[int, "Rows of the files."]
    machine_days: Annotated[int, "Machines and days that it says something of."]
    billed: Annotated[Mapping[str, float], "What was billed for these, by currency."]
    others: Annotated[int, "Rows of resources that are no machines of this pool."]
    unread: Annotated[int, "Rows that can't be read, and are left out."]
    why: Annotated[str | None, "What is wrong with the first of them, or null."]


def document(records: Records, pool: str, period: ReportPeriod, by: By, settings: Usage) -> UsageReport:
    """The report."""
    totals = _totals(records, settings)
    machines: dict[str, Row] = {}
    found = _found(records, by, settings, totals, machines)
    return UsageReport(
        estimate=True,
        note=NOT_THE_BILL,
        pool=pool,
        from_=period.first.isoformat(),
        to=period.last.isoformat(),
        by=by,
        since=None if records.since is None else date_of(records.since).isoformat(),
        until=None if records.at is None else moment(records.at),
        idle_paid_by=settings.idle_paid_by,
        rows=[_row(key, figures, machines.get(key[1])) for key, figures in sorted(found.items(), key=_order)],
        totals=[told(one, key[-1]) for key, one in sorted(totals.items())],
    )


def daily(records: Records, settings: Usage) -> list[dict[str, Any]]:
    """The figures of each day and currency, as JSON values, the oldest first, without days that have none."""
    found = _added(
        (("day", date_of(row["name"]).isoformat(), row["currency"]), place(row, settings))
        for row in records.places("day")
    )
    return [{"day": day, **plain(told(one, currency))} for (_, day, currency), one in sorted(found.items())]


def _found(
    records: Records, by: str, settings: Usage, totals: Mapping[Key, UsageFigures], machines: dict[str, Row]
) -> dict[Key, UsageFigures]:
    """The figures by what was asked for; of machines the latest record of each goes into `machines`."""
    if by == "machine":
        alone = ((_noted(row, machines), _alone(row)) for row in records.machine_days())
        found = _added((("machine", name, row["currency"]), place(row, settings)) for name, row in alone)
    elif by in _PEOPLE:
        found = _added((_person(by, row), person(row, settings)) for row in records.people(by))
    else:
        found = _added(
            ((by, row["name"], row["currency"]), place(row, settings)) for row in records.places(by)
        )
    for row in records.bills(by, idle=settings.idle_paid_by == "users"):
        found.setdefault(_person(by, row), UsageFigures()).bill(row["billed"])
    if by in _PEOPLE:
        _add_rest(found, totals)
    return found


def _add_rest(found: dict[Key, UsageFigures], totals: Mapping[Key, UsageFigures]) -> None:
    """What nobody used, or is charged with, by currency."""
    parts: dict[str, UsageFigures] = {}
    for (_, _, currency), figures in found.items():
        parts.setdefault(currency, UsageFigures()).add(figures)
    for (_, _, currency), whole in totals.items():
        left = rest(whole, parts.get(currency, UsageFigures()))
        if left.paid or left.cost or left.doubtful or left.billed:
            found["pool", "", currency] = left


def _noted(row: Row, machines: dict[str, Row]) -> str:
    """The name of a record's machine, once the record is noted as the latest one of it."""
    name = f"{row['cloud']}/{row['instance']}"
    machines[name] = row
    return name


def _person(by: str, row: Row) -> Key:
    known = row["name"] or by != "user"
    return (by if known else "unknown", row["name"], row["currency"])


def _totals(records: Records, settings: Usage) -> dict[Key, UsageFigures]:
    found = _added((("all", "", row["currency"]), place(row, settings)) for row in records.places(""))
    for row in records.bills("", idle=False):
        found.setdefault(("all", "", row["currency"]), UsageFigures()).bill(row["billed"])
    return found


def _alone(row: Row) -> Row:
    """A single record, as a sum of records is."""
    cores = row["cores"]
    return {
        **row,
        "machines": 1,
        "room": cores * row["alive"],
        "unseen_room": cores * row["unseen"],
        "doubtful_room": cores * row["doubtful"],
        "gpu_room": row["gpus"] * row["alive"],
    }


def _added(some: Iterable[tuple[Key, UsageFigures]]) -> dict[Key, UsageFigures]:
    found: dict[Key, UsageFigures] = {}
    for key, figures in some:
        if key in found:
            found[key].add(figures)
        else:
            found[key] = figures
    return found


def _order(item: tuple[Key, UsageFigures]) -> tuple[Any, ...]:
    """The dearest first, then who used most; what is nobody's comes last."""
    (sort, name, currency), figures = item
    return (sort == "pool", -figures.cost, -figures.paid, name, currency)


def _row(key: Key, figures: UsageFigures, machine: Row | None) -> UsageRow:
    kind, name, currency = key
    return UsageRow(kind, name, told(figures, currency), None if machine is None else _about(machine))


def _about(row: Row) -> MachineAbout:
    """What a record says of its machine, beside figures."""
    told_later = {"requested", "seen_until", "ended", "why"}
    plainly = {
        one.name: row[one.name.rstrip("_")] for one in fields(MachineAbout) if one.name not in told_later
    }
    return MachineAbout(
        **plainly,
        requested=moment(row["asked"]),
        seen_until=moment(row["until"]),
        ended=row["ended"] or None,
        why=row["why"] or None,
    )


def lines(doc: UsageReport) -> Iterator[dict[str, Any]]:
    """The rows of a report, each with what it is a row of: for forms that have nothing around their rows.

    What is said of a machine stands in the row itself.
    """
    about = {"note": doc.note, "pool": doc.pool, "from": doc.from_, "to": doc.to}
    for row in doc.rows:
        yield {**about, **plain(replace(row, machine=None)), **plain(row.machine or {})}


def columns(by: str) -> dict[str, str]:
    """The columns of a report that is written row by row, with the kind of each."""
    kinds = dict.fromkeys(("note", "pool", "from", "to"), "string")
    for form in (UsageRow, MachineAbout) if by == "machine" else (UsageRow,):
        for name, one in schema(form)["properties"].items():
            kind = one.get("type", "string")
            kinds[name] = kind if isinstance(kind, str) else kind[0]
    kinds.pop("machine")
    return kinds
