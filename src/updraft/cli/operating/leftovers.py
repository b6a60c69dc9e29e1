"""`leftovers`: what updraft has made in the clouds, what is left over of it, and its removal."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.output import Column, ago, confirm, console, count, json_option, say_json, table, waiting
from updraft.core.leftovers import Judged, LeftoverState, chosen, unknown
from updraft.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.app.operating.leftovers import LeftoverRow, Looked
    from updraft.config.model import Settings


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--remove", "removing", is_flag=True, help="Remove what is left over. Asks first.")
@click.option("--cloud", "clouds", multiple=True, metavar="NAME", help="Only there; several are fine.")
@click.option("--all", "everything", is_flag=True, help="List what is in use, too.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@json_option
@click.pass_obj
def leftovers(
    call: Call,
    ids: tuple[str, ...],
    removing: bool,
    clouds: tuple[str, ...],
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """List what updraft made in the clouds and nobody uses any more; remove it with --remove.

    Machines, images, snapshots, volumes, security groups, key pairs, ports, floating addresses. --remove
    takes what is "left", or with IDs (or names) these alone: also what is "unused", which is whole and might
    be wanted again. What is in use, named by the configuration, young, or not proven to be this pool's is
    never removed. The exit code is 1 where a cloud doesn't answer, or something can't be removed.
    """
    from updraft.app.operating.leftovers import remove, still

    settings = call.settings
    if removing and as_json and not yes:
        raise UsageError("--remove with --json doesn't ask: say --yes as well")
    looked = _looked(settings, clouds)
    strangers = unknown(looked.found, ids)
    if strangers and not looked.errors:
        raise UsageError(
            f"{', '.join(strangers)}: updraft made nothing of this id or name; see the list of --all"
        )
    going, refused = chosen(looked.found, ids)
    done: dict[tuple[str, str, str], str] = {}
    if removing and going:
        if not yes:
            _print(going)
            confirm(f"Remove {count(len(going), 'thing')} for good?")
            going = still(going, _looked(settings, clouds).found)
        with waiting("removing"):
            done = remove(settings, going)
    _tell(looked, done, ids, everything=everything, removing=removing, as_json=as_json)
    _fail(looked, done, refused if removing else (), strangers)


def _looked(settings: "Settings", clouds: Sequence[str]) -> "Looked":
    from updraft.app.clouds import named_clouds
    from updraft.app.operating.leftovers import look

    with waiting(f"asking {', '.join(named_clouds(settings, clouds))}"):
        return look(settings, clouds)


def _tell(
    looked: "Looked",
    done: Mapping[tuple[str, str, str], str],
    ids: Sequence[str],
    *,
    everything: bool,
    removing: bool,
    as_json: bool,
) -> None:
    shown = [
        one for one in looked.found if everything or one.fate is not LeftoverState.KEPT or one.thing.id in ids
    ]
    if as_json:
        from updraft.app.operating.leftovers import Leftovers, Unanswered

        silent = [Unanswered(cloud, what, text) for (cloud, what), text in looked.errors.items()]
        say_json(Leftovers([_row(one, done) for one in shown], silent))
    elif removing:
        for one in looked.found:
            if done.get(one.thing.key) == "":
                click.echo(f"removed {_called(one)}")
        if not done:
            click.echo("nothing to remove")
    elif shown:
        _print(shown)
    elif not looked.errors:
        click.echo("nothing is left over")


def _fail(
    looked: "Looked",
    done: Mapping[tuple[str, str, str], str],
    refused: Sequence[Judged],
    strangers: Sequence[str],
) -> None:
    """Raises ProblemFound that names what wasn't done."""
    said = [f"{_called(one)} stays: {one.reason.text}" for one in refused]
    said += [f"{kind} {one} in {cloud} stays: {text}" for (cloud, kind, one), text in done.items() if text]
    said += [f"{cloud} doesn't tell of {what}: {text}" for (cloud, what), text in looked.errors.items()]
    said += [f"{one} wasn't found" for one in strangers]
    if said:
        raise ProblemFound("; ".join(said))


def _called(one: Judged) -> str:
    from updraft.app.operating.leftovers import called

    return called(one)


def _row(one: Judged, done: Mapping[tuple[str, str, str], str]) -> "LeftoverRow":
    from updraft.app.operating.leftovers import LeftoverRow

    error = done.get(one.thing.key)
    return LeftoverRow.of(one.thing, one, made=one.thing.made_at, removed=error == "", error=error or "")


def _print(found: Sequence[Judged]) -> None:
    cells = [
        [
            one.thing.cloud,
            str(one.thing.kind),
            one.thing.id,
            one.thing.name,
            "" if one.thing.made_at is None else f"{ago(max(0.0, time.time() - one.thing.made_at))} ago",
            str(one.fate),
            one.reason.text,
        ]
        for one in found
    ]
    console().print(table(_COLUMNS, cells))


_COLUMNS = (
    Column("cloud"),
    Column("kind"),
    Column("id"),
    Column("name", wide=True),
    Column("made", right=True),
    Column("fate"),
    Column("why", wide=True),
)
