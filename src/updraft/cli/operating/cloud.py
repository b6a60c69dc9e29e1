"""`cloud`: what is decided of clouds while the daemon runs, without a restart.

It is written into the ledger, and in force from the daemon's next look, also of one that is started later.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import click

from updraft.app.call import Call
from updraft.app.operating import overrides
from updraft.app.operating.overrides import DecidedCloud
from updraft.cli.output import (
    Column,
    clock,
    console,
    is_narrow,
    json_option,
    megabytes,
    say_json,
    table,
)
from updraft.documents import Row
from updraft.errors import UsageError
from updraft.ledger.clouds import AS_THE_FILE_SAYS, Override, Said
from updraft.watching.sentences import cost_words, memory_of, of_most, state_words

LIMITS = {name.replace("_", "-"): name for name in overrides.LIMITS}  # by what options call them

names_argument = click.argument("names", nargs=-1, required=True, metavar="CLOUD…")


@click.group()
def cloud() -> None:
    """Disable and enable clouds and set their limits while the daemon runs."""


@cloud.command("list", short_help="Every cloud: its state, and what is decided of it.")
@json_option
@click.pass_obj
def list_(call: Call, as_json: bool) -> None:
    """List the clouds of updraft.toml: state, priority, machines and cores of what limit, who decided it."""
    rows = overrides.rows_of(call)
    if as_json:
        say_json(overrides.DecidedClouds(rows))
        return
    out = console()
    narrow = is_narrow(out)
    chosen = [(column, cell) for column, always, cell in COLUMNS if always or not narrow]
    out.print(table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows]))


def _of_limit(row: DecidedCloud, what: str) -> str:
    return of_most((row.look or {}).get(what), getattr(row.limits, what))


def _decided(row: DecidedCloud) -> str:
    parts = []
    if row.switched:
        what = "enabled" if row.disabled is None else "disabled"
        parts.append(f"{what} by {row.switched.who}, {clock(row.switched.at)}")
    if row.limited:
        parts.append(f"limits by {row.limited.who}, {clock(row.limited.at)}")
    return "; ".join(parts) or "as the file says"


Cell = Callable[[DecidedCloud], str]
COLUMNS: Sequence[tuple[Column, bool, Cell]] = (  # column, in a narrow table too, its text
    (Column("cloud"), True, lambda row: str(row.name)),
    (Column("prio", right=True), True, lambda row: str(row.priority)),
    (
        Column("state", wide=True),
        True,
        lambda row: state_words(row.look or {}, row.disabled, time.time()),
    ),
    (Column("machines", right=True), True, lambda row: _of_limit(row, "machines")),
    (Column("cores", right=True), True, lambda row: _of_limit(row, "cores")),
    (Column("memory", right=True), False, lambda row: memory_of(row.look or {}, row.limits.memory)),
    (Column("per hour", right=True), False, lambda row: _of_limit(row, "cost_per_hour")),
    (Column("decided", wide=True), True, lambda row: _decided(row)),
)


@cloud.command(short_help="All about one cloud.")
@click.argument("name", metavar="CLOUD")
@json_option
@click.pass_obj
def show(call: Call, name: str, as_json: bool) -> None:
    """Show all that is decided and known of one cloud."""
    rows = overrides.rows_of(call)
    (known,) = overrides.known_clouds(call, [name])
    row = next(row for row in rows if row.name == known)
    if as_json:
        say_json(overrides.ShownCloud(row))
        return
    for title, text in _story(row):
        click.echo(f"{title + ':':<12} {text}")


def _story(row: DecidedCloud) -> Iterator[tuple[str, str]]:
    look: Row = row.look or {}
    limits = {title: getattr(row.limits, name) for title, name in LIMITS.items()}
    in_file = {title: getattr(row.file.limits, name) for title, name in LIMITS.items()}
    other = "" if limits == in_file else f"; in the file {_limit_words(in_file)}"
    yield "cloud", f"{row.name} (driver {row.driver})"
    yield "state", state_words(look, row.disabled, time.time())
    yield "priority", f"{row.priority}; where it is lower is bought sooner"
    yield "limits", _limit_words(limits) + other
    yield "decided", _decided(row)
    if not look:
        yield "seen", "no daemon has looked at it yet"
        return
    phases = ", ".join(f"{number} {phase}" for phase, number in look["phases"].items())
    yield "machines", f"{look['machines']}{f' ({phases})' if phases else ''}, {look['cores']} cores"
    yield "cost", cost_words(look["machines"], look["cost_per_hour"], look["unknown_prices"])
    yield "quota left", _of_both(look["quota_left"])
    yield "others have", _of_both(look["foreign"])
    if look["rest"]:
        yield "rests", f"until {clock(look['rest']['until'])}: {look['rest']['reason']['text']}"
    if look["last_error"]:
        yield "last error", f"{clock(look['last_error']['at'])}: {look['last_error']['text']}"


def _limit_words(limits: Mapping[str, float | None]) -> str:
    parts = [_amount(title, most) + f" {title}" for title, most in limits.items() if most is not None]
    return ", ".join(parts) or "none"


def _amount(title: str, most: float) -> str:
    return megabytes(int(most)) if title == "memory" else format(most, "g")


def _of_both(numbers: Mapping[str, int | None]) -> str:
    return ", ".join(f"{'?' if number is None else number} {what}" for what, number in numbers.items())


# ---------------------------------------------------------------------------------------------- to decide


@cloud.command(short_help="Buy there again.")
@names_argument
@json_option
@click.pass_obj
def enable(call: Call, names: tuple[str, ...], as_json: bool) -> None:
    """Buy machines there again, whatever the file says; machines that were leaving may stay."""

    def change(said: Said, old: Override) -> Override:
        return replace(old, enabled=True, leaving=False, switched=said)

    _decide(call, names, change, "cloud-enabled", "enabled", as_json)


@cloud.command(short_help="Buy nothing there any more.")
@names_argument
@click.option("--drain", "leaving", is_flag=True, help="Its machines leave, each when its jobs have ended.")
@json_option
@click.pass_obj
def disable(call: Call, names: tuple[str, ...], leaving: bool, as_json: bool) -> None:
    """Buy no more machines there. Those that are there work on, and go when they are idle."""

    def change(said: Said, old: Override) -> Override:
        return replace(old, enabled=False, leaving=leaving, switched=said)

    what = "disabled, and its machines leave" if leaving else "disabled"
    _decide(call, names, change, "cloud-disabled", what, as_json)


@cloud.command(short_help="Set ceilings of one cloud.")
@click.argument("name", metavar="CLOUD")
@click.option("--machines", type=click.IntRange(min=0), help="So many machines at one time.")
@click.option("--cores", type=click.IntRange(min=0), help="So many cores.")
@click.option("--memory", metavar="SIZE", help="So much memory, as in 256GiB.")
@click.option("--cost-per-hour", type=click.FloatRange(min=0), help="So much per hour, all together.")
@click.option(
    "--none",
    "none",
    multiple=True,
    type=click.Choice(list(LIMITS)),
    help="Take this ceiling away. May be repeated.",
)
@json_option
@click.pass_obj
def limit(
    call: Call,
    name: str,
    machines: int | None,
    cores: int | None,
    memory: str | None,
    cost_per_hour: float | None,
    none: tuple[str, ...],
    as_json: bool,
) -> None:
    """Set ceilings of one cloud, in place of those in the file. [limits] of the whole pool hold as well.

    Machines beyond a lowered number are drained: those that are idle first, busy ones when their jobs end.
    """
    from updraft.config.values.units import size  # it loads pydantic

    mebibytes = None if memory is None else size("--memory", memory)
    given = {"machines": machines, "cores": cores, "memory": mebibytes, "cost_per_hour": cost_per_hour}
    new: dict[str, float | None] = {key: value for key, value in given.items() if value is not None}
    away = {LIMITS[one] for one in none}
    if cost_per_hour is not None and not math.isfinite(cost_per_hour):
        raise UsageError("--cost-per-hour takes a number; --none cost-per-hour takes the ceiling away")
    if away & new.keys():
        raise UsageError("a ceiling can't be set and be taken away in one call")
    new |= dict.fromkeys(sorted(away), None)
    if not new:
        raise UsageError("nothing is set: give --machines, --cores, --memory, --cost-per-hour or --none")

    def change(said: Said, old: Override) -> Override:
        return replace(old, limits={**old.limits, **new}, limited=said)

    words = {title: new[key] for title, key in LIMITS.items() if key in new}
    what = ", ".join(
        f"{title} {'without end' if most is None else _amount(title, most)}" for title, most in words.items()
    )
    _decide(call, [name], change, "cloud-limited", f"limited: {what}", as_json)


@cloud.command(short_help="Go back to what the file says.")
@names_argument
@json_option
@click.pass_obj
def reset(call: Call, names: tuple[str, ...], as_json: bool) -> None:
    """Forget what was decided at run time: the clouds are as updraft.toml says again."""
    _decide(
        call, names, lambda _said, _old: AS_THE_FILE_SAYS, "cloud-reset", "as the file says again", as_json
    )


def _decide(
    call: Call,
    names: Sequence[str],
    change: Callable[[Said, Override], Override],
    code: str,
    what: str,
    as_json: bool,
) -> None:
    call.acting()
    known = overrides.decide(call, names, change, code, what)
    if as_json:
        rows = [row for row in overrides.rows_of(call) if row.name in known]
        say_json(overrides.DecidedClouds(rows))
        return
    for name in known:
        click.echo(f"cloud {name}: {what}; in force from the daemon's next look")
