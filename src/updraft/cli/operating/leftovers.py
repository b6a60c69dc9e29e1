"""`leftovers`: what updraft has made in the clouds, what is left over of it, and its removal."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.operating.wishes import confirm
from updraft.cli.output import Column, ago, console, count, json_option, say_json, table, waiting
from updraft.cli.watching.documents import Document
from updraft.core.leftovers import Belonging, Fate, Judged, Kind, Site, chosen, judged, unknown
from updraft.errors import CloudError, LedgerError, ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.config.model import Settings
    from updraft.provision.leftovers import Place

_LOOK = 60.0
REMEDY = "`updraft leftovers` lists it, `updraft leftovers --remove` removes it"


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found, and by cloud and what was asked the errors in place of an answer."""

    found: tuple[Judged, ...]
    errors: Mapping[tuple[str, str], str] = field(default_factory=dict)


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
    settings = call.settings
    if removing and as_json and not yes:
        raise UsageError("--remove with --json doesn't ask: say --yes as well")
    looked = look(settings, clouds)
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
            going = _still(going, look(settings, clouds).found)
        with waiting("removing"):
            done = remove(settings, going)
    _tell(looked, done, ids, everything=everything, removing=removing, as_json=as_json)
    _fail(looked, done, refused if removing else (), strangers)


def look(settings: "Settings", clouds: Sequence[str] = (), deadline: float = _LOOK) -> Looked:
    """What updraft has made in these clouds, or all, each judged; a question that fails costs itself."""
    from updraft.app.clouds import named_clouds
    from updraft.checks.asking import ask

    names = named_clouds(settings, clouds)
    places = _places(settings, names)
    questions: dict[str, Callable[[], Any]] = {
        f"{name}\0{what}": put for name in names for what, put in places[name].questions().items()
    }
    questions |= {f"{name}\0the images that classes name": places[name].named for name in names}
    with waiting(f"asking {', '.join(names)}"):
        answers = ask(questions, deadline)
    errors = {
        (cloud, what): " ".join(str(answer.error).split())
        for key, answer in answers.items()
        if answer.error is not None
        for cloud, _, what in [key.partition("\0")]
    }
    things: list[Belonging] = []
    named: dict[tuple[str, str], str] = {}
    for key, answer in answers.items():
        cloud = key.partition("\0")[0]
        if isinstance(answer.value, Mapping):
            named |= answer.value
        # Where it isn't known what the configuration names, nothing of that cloud is known to be unused.
        elif answer.value is not None and (cloud, "the images that classes name") not in errors:
            things += answer.value
    return Looked(judged(things, _site(settings, named)), errors)


def remove(settings: "Settings", going: Sequence[Judged]) -> dict[tuple[str, str, str], str]:
    """Remove each; by its key what went wrong, "" where it is gone. One that fails costs itself."""
    from updraft.ledger.made import forget_made

    places = _places(settings, sorted({one.thing.cloud for one in going}))
    done: dict[tuple[str, str, str], str] = {}
    for one in sorted(going, key=lambda one: _ORDER.index(one.thing.kind)):
        thing = one.thing
        try:
            places[thing.cloud].remove(thing, [other.thing for other in going])
            if thing.kind is Kind.KEY_PAIR:
                forget_made(settings.pool.ledger, *thing.key)
            done[thing.key] = ""
        except (CloudError, LedgerError) as error:
            done[thing.key] = " ".join(str(error).split())
    return done


# Machines first: they use the others. Snapshots go with their images, or after them.
_ORDER = (
    Kind.MACHINE, Kind.IMAGE, Kind.SNAPSHOT, Kind.VOLUME, Kind.ADDRESS, Kind.PORT, Kind.GROUP, Kind.KEY_PAIR,
)  # fmt: skip

# ------------------------------------------------------------------------------------------------ inside


def _places(settings: "Settings", clouds: Sequence[str]) -> dict[str, "Place"]:
    from updraft.app.clouds import network_of
    from updraft.app.wiring import make_driver
    from updraft.provision.heads.machines import heads_pool
    from updraft.provision.images.making import pool_name
    from updraft.provision.leftovers import Place

    pool, noted = settings.pool.name, _noted(settings)
    found = {}
    for name in clouds:
        workers, heads, builders = (
            make_driver(
                settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})}),
                name,
                settings.clouds[name],
            )
            for own in (pool, heads_pool(pool), pool_name(pool))
        )
        network = network_of(settings, name)
        keys = frozenset(one for cloud, kind, one in noted if cloud == name and kind == Kind.KEY_PAIR)
        groups = None if isinstance(network, str) else network
        found[name] = Place(settings, name, workers, heads, builders, groups, keys)
    return found


def _noted(settings: "Settings") -> frozenset[tuple[str, str, str]]:
    from updraft.ledger.made import made
    from updraft.ledger.reader import Reader

    if not settings.pool.ledger.exists():
        return frozenset()
    with Reader(settings.pool.ledger) as reader:
        return made(reader)


def _site(settings: "Settings", named: Mapping[tuple[str, str], str]) -> Site:
    from updraft.app.wiring import identity

    return Site(settings.pool.name, identity(settings), time.time(), _noted(settings), named)


def _still(going: Sequence[Judged], found: Sequence[Judged]) -> tuple[Judged, ...]:
    """Those that may go as well after a person has thought about it: another may use one by now."""
    now = {one.thing.key: one.fate for one in found}
    return tuple(one for one in going if now.get(one.thing.key) is one.fate)


def _tell(
    looked: Looked,
    done: Mapping[tuple[str, str, str], str],
    ids: Sequence[str],
    *,
    everything: bool,
    removing: bool,
    as_json: bool,
) -> None:
    shown = [one for one in looked.found if everything or one.fate is not Fate.KEPT or one.thing.id in ids]
    if as_json:
        told = [{"cloud": cloud, "what": what, "text": text} for (cloud, what), text in looked.errors.items()]
        say_json({"leftovers": [_row(one, done) for one in shown], "errors": told})
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
    looked: Looked,
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
    thing = one.thing
    name = f"{thing.name} ({thing.id})" if thing.name not in ("", thing.id) else thing.id
    return f"{thing.kind} {name} in {thing.cloud}"


def _row(one: Judged, done: Mapping[tuple[str, str, str], str]) -> Document:
    thing = one.thing
    return {
        "cloud": thing.cloud,
        "kind": str(thing.kind),
        "id": thing.id,
        "name": thing.name,
        "made": thing.made_at,
        "fate": str(one.fate),
        "reason": {"code": one.reason.code, "text": one.reason.text},
        "removed": done.get(thing.key) == "",
        "error": done.get(thing.key, ""),
    }


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


def found_within(settings: "Settings", deadline: float = 6.0) -> tuple[Judged, ...]:
    """What was found, for `check`. Raises ProblemFound where a cloud didn't tell all."""
    looked = look(settings, (), deadline)
    if looked.errors:
        silent = ", ".join(f"{what} in {cloud}" for cloud, what in looked.errors)
        raise ProblemFound(f"not known: {silent}")
    return looked.found


def left_over(settings: "Settings") -> str:
    """A sentence on what else of the pool's is in the clouds; what isn't known is said."""
    looked = look(settings)
    said = [_called(one) for one in looked.found if one.fate in (Fate.LEFT, Fate.UNUSED, Fate.REFUSED)]
    said += [f"perhaps {what} in {cloud}, which doesn't answer" for cloud, what in looked.errors]
    if not said:
        return "nothing else that updraft made is left in the clouds"
    return f"left in the clouds: {'; '.join(said)}; {REMEDY}"
