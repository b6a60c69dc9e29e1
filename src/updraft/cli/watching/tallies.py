"""What there is by cloud, class and user, for people: lines and tables of 80 columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from updraft.cli.output import Column, ago, count, table
from updraft.watching.sentences import memory_of, of_most, state_words

if TYPE_CHECKING:
    from rich.console import RenderableType

Row = Mapping[str, Any]
USERS_IN_A_TABLE = 40


Cell = Callable[[Row, float], str]
CLOUD_COLUMNS: Sequence[tuple[Column, bool, Cell]] = (  # column, in a narrow table too, its text
    (Column("cloud"), True, lambda row, _: str(row["name"])),
    (Column("prio", right=True), False, lambda row, _: str(row["priority"])),
    (Column("state", wide=True), True, lambda row, now: state_words(row, row["disabled"], now)),
    (Column("machines", right=True), True, lambda row, _: _limited(row, "machines")),
    (Column("cores", right=True), True, lambda row, _: _limited(row, "cores")),
    (Column("memory", right=True), False, lambda row, _: memory_of(row, row["limits"].get("memory"))),
    (Column("per hour", right=True), False, lambda row, _: _limited(row, "cost_per_hour")),
    (Column("left", right=True), True, lambda row, _: _pair(row["quota_left"])),
    (Column("others", right=True), True, lambda row, _: _pair(row["foreign"])),
    (Column("last error", wide=True), True, lambda row, now: _error(row["last_error"], now)),
)


def cloud_table(clouds: Sequence[Row], now: float, *, narrow: bool) -> "RenderableType":
    """The clouds: state, what is in use of which limit, what the quota leaves, what others have, last error.

    A narrow table leaves out what is least asked for.
    """
    chosen = [(column, cell) for column, always, cell in CLOUD_COLUMNS if always or not narrow]
    return table([column for column, _ in chosen], [[cell(row, now) for _, cell in chosen] for row in clouds])


def _limited(row: Row, what: str) -> str:
    return of_most(row[what], row["limits"][what])


def _pair(numbers: Mapping[str, int | None]) -> str:
    """Machines and cores, each "?" where nobody knows."""
    if all(number is None for number in numbers.values()):
        return "–"
    return "+".join(
        "?" if numbers[name] is None else f"{numbers[name]}{name[0]}" for name in ("machines", "cores")
    )


def _error(error: Row | None, now: float) -> str:
    return "" if error is None else f"{error['code']} {ago(now - error['at'])} ago"


def class_table(classes: Sequence[Row]) -> "RenderableType":
    """The worker classes: machines of what maximum, cores, and the jobs that wait for them."""
    columns = [
        Column("class"),
        *(Column(title, right=True) for title in ("machines", "min", "cores", "per hour", "waiting")),
        Column("phases", wide=True),
    ]
    rows = [
        (
            row["name"],
            of_most(row["machines"], row["max"]),
            str(row["min"] if row["min"] is not None else "–"),
            of_most(row["cores"], row.get("max_cores")),
            f"{row['cost_per_hour']:.4g}" + ("+?" if row["unknown_prices"] else ""),
            str(row["waiting"]),
            ", ".join(f"{number} {phase}" for phase, number in row["phases"].items()),
        )
        for row in classes
    ]
    return table(columns, rows)


def user_table(users: Sequence[Row]) -> Iterator["RenderableType"]:
    """The users: cores of what maximum, their part of all claimed ones, the negotiator's share, and waits."""
    columns = [
        Column("user"),
        *(Column(title, right=True) for title in ("cores", "part", "share", "machines", "waiting")),
    ]
    rows = [
        (
            row["user"],
            of_most(row["cores"], row.get("max_cores")),
            _percent(row["part"]),
            _percent(row["share"]),
            of_most(row["machines"], row.get("max_machines")),
            str(row["waiting"]),
        )
        for row in users[:USERS_IN_A_TABLE]
    ]
    yield table(columns, rows)
    if users[USERS_IN_A_TABLE:]:
        yield f"and {count(len(users) - USERS_IN_A_TABLE, 'more user')}: `updraft status --json` has them all"


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.0%}"
