"""A report of what was used: by user, group, annex, cloud, class, flavor or machine, and in all."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from updraft.config.tables.usage import Usage
from updraft.ledger.usage_reading import Records, Row
from updraft.usage import NOT_THE_BILL
from updraft.usage.figures import UsageFigures, person, place, rest, told
from updraft.usage.period import ReportPeriod, date_of, moment

BY = ("user", "group", "annex", "cloud", "class", "flavor", "machine")
_PEOPLE = ("user", "group")
ABOUT = (
    *("cloud", "region", "zone", "instance", "flavor", "market", "image", "class", "annex", "owner", "cores"),
    *("memory", "gpus", "price", "source", "benchmark", "score"),
)
Key = tuple[str, str, str]  # what sort of row it is, its name, its currency


def document(records: Records, pool: str, period: ReportPeriod, by: str, settings: Usage) -> dict[str, Any]:
    """The report as JSON values."""
    totals = _totals(records, settings)
    machines: dict[str, Row] = {}
    found = _found(records, by, settings, totals, machines)
    return {
        "estimate": True,
        "note": NOT_THE_BILL,
        "pool": pool,
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        "by": by,
        "since": None if records.since is None else date_of(records.since).isoformat(),
        "until": None if records.at is None else moment(records.at),
        "idle_paid_by": settings.idle_paid_by,
        "rows": [
            _row(key, figures, machines.get(key[1])) for key, figures in sorted(found.items(), key=_order)
        ],
        "totals": [{"currency": key[-1], **told(one)} for key, one in sorted(totals.items())],
    }


def daily(records: Records, settings: Usage) -> list[dict[str, Any]]:
    """The figures of each day and currency, as JSON values, the oldest first, without days that have none."""
    found = _added(
        (("day", date_of(row["name"]).isoformat(), row["currency"]), place(row, settings))
        for row in records.places("day")
    )
    return [
        {"day": day, "currency": currency, **told(one)} for (_, day, currency), one in sorted(found.items())
    ]


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


def _row(key: Key, figures: UsageFigures, machine: Row | None) -> dict[str, Any]:
    sort, name, currency = key
    about = None if machine is None else _about(machine)
    return {"kind": sort, "name": name, "currency": currency, **told(figures), "machine": about}


def _about(row: Row) -> dict[str, Any]:
    """What a record says of its machine, beside figures."""
    return {
        **{name: row[name] for name in ABOUT},
        "requested": moment(row["asked"]),
        "seen_until": moment(row["until"]),
        "ended": row["ended"] or None,
        "why": row["why"] or None,
    }


def lines(doc: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a report, each with what it is a row of: for forms that have nothing around their rows.

    What is said of a machine stands in the row itself.
    """
    for row in doc["rows"]:
        about = {name: doc[name] for name in ("note", "pool", "from", "to")}
        figures = {name: value for name, value in row.items() if name != "machine"}
        yield {**about, **figures, **(row["machine"] or {})}
