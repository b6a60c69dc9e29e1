"""A cloud's own bill, read to stand beside the estimates: cost and usage reports in FOCUS form, as CSV.

Of each row it takes what was billed for which resource in which time, and whose currency that is. Rows of
resources that aren't machines of the pool are counted and left; a row that can't be read costs itself.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from updraft.core.settings import DAY
from updraft.core.usage.days import day_of, days
from updraft.errors import UsageError

NEEDED = ("ResourceId", "BilledCost", "BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd")
LONGEST = 400 * DAY
"""How long a charge's period may be."""
Line = tuple[int, str, str, str]  # a day, a cloud, an instance id, a currency


@dataclass(slots=True)
class CloudBill:
    """What was billed for machines of the pool, by day, and how many rows of what it was read from.

    `others` are rows of other resources, `unread` those that nothing could be made of; `why` is of the first.
    """

    billed: dict[Line, float] = field(default_factory=dict)
    rows: int = 0
    others: int = 0
    unread: int = 0
    why: str = ""


def read(files: Iterable[Path], machines: Mapping[str, str]) -> CloudBill:
    """The bill in these files together; `machines` are the clouds of the pool's machines, by their ids.

    Raises UsageError for a file that is no such report.
    """
    bill = CloudBill()
    for file in files:
        try:
            with file.open(encoding="utf-8-sig", newline="") as text:
                _read(file, csv.DictReader(text), machines, bill)
        except UnicodeDecodeError as error:
            raise UsageError(f"{file} is no CSV in UTF-8: export it as text, unpacked") from error
        except (OSError, csv.Error) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(f"{file} can't be read: {why}") from error
    return bill


def _read(file: Path, rows: "csv.DictReader[str]", machines: Mapping[str, str], bill: CloudBill) -> None:
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise UsageError(
            f"{file} has no column {missing[0]}: this takes a cost and usage report in FOCUS form, as CSV"
        )
    for row in rows:
        bill.rows += 1
        machine = _machine(row["ResourceId"] or "", machines)
        if machine is None:
            bill.others += 1
            continue
        try:
            _count(row, machine, machines[machine], bill)
        except (ValueError, TypeError) as error:
            bill.unread += 1
            bill.why = bill.why or f"{file}, row {bill.rows}: {error}"


def _machine(resource: str, machines: Mapping[str, str]) -> str | None:
    """The machine that a resource is: clouds write an id, or a path or name with the id as its last part."""
    for part in (resource, resource.rpartition("/")[2], resource.rpartition(":")[2]):
        if part in machines:
            return part
    return None


def _count(row: Mapping[str, str], machine: str, cloud: str, bill: CloudBill) -> None:
    cost = float(row["BilledCost"])
    begin, end = _moment(row["ChargePeriodStart"]), _moment(row["ChargePeriodEnd"])
    currency = row["BillingCurrency"].strip()
    if not math.isfinite(cost) or not len(currency) == 3 or not 0 <= end - begin <= LONGEST:
        raise ValueError("its cost, currency or period makes no sense")
    parts = list(days(begin, end)) or [(day_of(begin), begin, begin + 1)]
    whole = sum(last - first for _, first, last in parts)
    for day, first, last in parts:
        line = (day, cloud, machine, currency)
        bill.billed[line] = bill.billed.get(line, 0.0) + cost * (last - first) / whole


def _moment(text: str) -> float:
    """A moment as such reports have it, in UTC unless it says otherwise."""
    found = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
