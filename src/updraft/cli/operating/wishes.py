"""`drain`, `undrain`, `terminate`, `adopt`, `disown`, `destroy`: an operator's wishes, for the daemon.

They are written into the ledger. The command line never acts on a machine by itself: one controller acts for
a pool, and the rules that keep jobs alive are its own.
"""

import time
from collections.abc import Mapping, Sequence

import click

from updraft.app.call import Call
from updraft.app.operating.wishes import REFUSED, Wishes, WishRow, answers, ask, follow, named, taken_over
from updraft.cli.output import ago, confirm, count, json_option, say_json, waiting
from updraft.errors import ProblemFound, UpdraftError, UsageError
from updraft.ledger.reader import Reader, RequestKind
from updraft.watching.known import START

wait_option = click.option("--wait", is_flag=True, help="Stay until it is done, or refused.")
kill_option = click.option(
    "--kill-jobs", is_flag=True, help="Also where jobs run: they go back to the queue."
)
machines_argument = click.argument("machines", nargs=-1, required=True, metavar="MACHINE…")


@click.command()
@machines_argument
@wait_option
@json_option
@click.pass_obj
def drain(call: Call, machines: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Close machines to new jobs; each goes when its last job is done.

    A machine is named by its id or the beginning of it. Until it is empty, `updraft undrain` takes it back.
    """
    _ask(call, RequestKind.DRAIN, machines, kill_jobs=False, wait=wait, as_json=as_json)


@click.command()
@machines_argument
@wait_option
@json_option
@click.pass_obj
def undrain(call: Call, machines: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Take a drain back: the machines run jobs again."""
    _ask(call, RequestKind.UNDRAIN, machines, kill_jobs=False, wait=wait, as_json=as_json)


@click.command()
@machines_argument
@kill_option
@wait_option
@json_option
@click.pass_obj
def terminate(call: Call, machines: tuple[str, ...], kill_jobs: bool, wait: bool, as_json: bool) -> None:
    """End machines now. One that runs jobs is left alone, unless --kill-jobs says otherwise."""
    _ask(call, RequestKind.TERMINATE, machines, kill_jobs=kill_jobs, wait=wait, as_json=as_json)


@click.command()
@click.argument("machines", nargs=-1, metavar="[MACHINE…]")
@click.option("--class", "worker_class", default="", help="Its worker class. Default: the one it advertises.")
@click.option("--cloud", default="", help="The cloud it is on, where two have an instance of this id.")
@click.option("--take-over", is_flag=True, help="No machine: this host is the pool's head from now on.")
@click.option(
    "--identity", default="", help="With --take-over: the pool's, where its state directory is lost."
)
@click.option("--yes", is_flag=True, help="With --take-over: don't ask.")
@wait_option
@json_option
@click.pass_obj
def adopt(
    call: Call,
    machines: tuple[str, ...],
    worker_class: str,
    cloud: str,
    take_over: bool,
    identity: str,
    yes: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Take instances into the pool's care: they are tagged, counted, and go when they are idle.

    A machine is named by its whole id, and must have joined the pool as one of this pool's: one that was let
    go with `updraft disown`, or one started by hand with what `updraft userdata worker --with-token` prints.

    With --take-over it is the whole pool that this host takes into its care: after a move to another host, or
    where a copy of the head is to go on in its place. Only when the former head is gone for good.
    """
    call.acting()
    if take_over:
        if machines or worker_class or cloud or wait or as_json:
            raise UsageError("--take-over takes over the whole pool: it goes with --identity and --yes alone")
        _take_over(call, identity, yes=yes)
        return
    if identity or yes:
        raise UsageError("--identity and --yes go with --take-over")
    if not machines:
        raise UsageError("name the machines to adopt by their ids, or say --take-over")
    detail = {name: text for name, text in (("class", worker_class), ("cloud", cloud)) if text}
    _ask(call, RequestKind.ADOPT, machines, kill_jobs=False, wait=wait, as_json=as_json, detail=detail)


def _take_over(call: Call, identity: str, *, yes: bool) -> None:
    """Make this host the pool's head, where no daemon runs on it."""

    def sure(pool: str) -> None:
        if not yes:
            confirm(f"Make this host the head of pool {pool}? The former one must be gone for good.")

    taken = taken_over(call, identity, sure)
    click.echo(f"this host is the head of pool {call.place.pool} (identity {taken.pool}): start its daemon")


@click.command()
@machines_argument
@wait_option
@json_option
@click.pass_obj
def disown(call: Call, machines: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Let go of machines: their tags are removed, and they and their jobs stay as they are.

    From then on their end is yours to see to. A worker still powers itself off at the end of its lifetime, or
    when it is idle and its head is gone for long. `updraft adopt` takes one back.
    """
    _ask(call, RequestKind.DISOWN, machines, kill_jobs=False, wait=wait, as_json=as_json)


@click.command()
@click.option("--yes", is_flag=True, help="Don't ask.")
@kill_option
@wait_option
@json_option
@click.pass_obj
def destroy(call: Call, yes: bool, kill_jobs: bool, wait: bool, as_json: bool) -> None:
    """Drain and remove every machine that carries the pool's tag. Asks first.

    Nothing is launched any more until the daemon is started anew. Running jobs may finish, unless --kill-jobs
    says otherwise. With --wait it is said what else updraft made and is left: `updraft leftovers` removes it.
    """
    call.acting()
    place = call.place
    with Reader(place.ledger) as reader:
        alive = [one for one in reader.view(time.time()).machines if one.ended_at is None]
    if not yes:
        jobs = "jobs that run are killed" if kill_jobs else "jobs that run may finish"
        confirm(f"Remove all of pool {place.pool} ({count(len(alive), 'machine')}; {jobs})?")
    _ask(call, RequestKind.DESTROY, ("",), kill_jobs=kill_jobs, wait=wait, as_json=as_json)
    if not as_json:
        _tell_of_leftovers(call, wait=wait)


def _tell_of_leftovers(call: Call, *, wait: bool) -> None:
    """Machines aren't all that updraft makes: what else there is, once they are gone."""
    from updraft.app.operating.leftovers import left_over

    if not wait:
        click.echo(
            "once the machines are gone, `updraft leftovers` lists what else updraft made in the clouds"
        )
        return
    try:
        settings = call.settings
        with waiting(f"asking {', '.join(settings.clouds)}"):
            said = left_over(settings)
        click.echo(said)
    except UpdraftError as error:  # the machines are gone all the same
        click.echo(f"what else updraft made in the clouds isn't known: {error}; see `updraft leftovers`")


def _ask(
    call: Call,
    kind: RequestKind,
    machines: Sequence[str],
    *,
    kill_jobs: bool,
    wait: bool,
    as_json: bool,
    detail: Mapping[str, str] | None = None,
) -> None:
    """Write the wishes down, and say (or follow) what becomes of them."""
    call.acting()
    path = call.place.ledger
    asked = ask(path, kind, machines, kill_jobs=kill_jobs, detail=detail)
    outcomes: dict[int, str | None] = dict.fromkeys(asked.wishes, None)
    if asked.daemon.alive and wait:
        with waiting(f"waiting for {', '.join(map(named, asked.wishes.values()))}"):
            outcomes, silent = follow(path, asked.wishes)
        if silent is not None:
            raise ProblemFound(f"the daemon has been silent for {ago(silent)}; the wish stays; {START}")
    elif asked.daemon.alive and kind is not RequestKind.DESTROY:
        with waiting("asking the daemon"):
            outcomes = answers(path, asked.wishes)
    if as_json:
        rows = [
            WishRow(number, what, one, kill_jobs, outcomes[number])
            for number, (what, one) in asked.wishes.items()
        ]
        say_json(Wishes(asked.daemon, rows))
    else:
        for number, wish in asked.wishes.items():
            click.echo(f"{named(wish)}: {outcomes[number] or 'asked for'}")
    if not asked.daemon.alive:
        raise ProblemFound(f"written down, but no daemon is at work to do it; {START}")
    refused = [number for number, outcome in outcomes.items() if outcome and outcome.startswith(REFUSED)]
    if refused:
        raise ProblemFound(f"{count(len(refused), 'wish', 'wishes')} refused")
