"""`drain`, `undrain`, `terminate`, `adopt`, `disown`, `destroy`: an operator's wishes, for the daemon.

They are written into the ledger. The command line never acts on a machine by itself: one controller acts for
a pool, and the rules that keep jobs alive are its own.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from updraft.app.call import Call, who
from updraft.app.controller import START, daemon_state
from updraft.cli.operating.names import machine_named
from updraft.cli.output import ago, count, json_option, say_json, waiting
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.model import MachineRecord
from updraft.daemon.lock import StateLock
from updraft.errors import ProblemFound, UpdraftError, UsageError
from updraft.ledger.identity import take_over, this_host, well_formed
from updraft.ledger.reader import Reader, RequestKind
from updraft.ledger.store import Ledger

POLL = 0.2
ANSWER_WITHIN = 5.0  # seconds in which a daemon that looks every two has said what it thinks of a wish
REFUSED = "refused"
FOLLOWED = (RequestKind.DRAIN, RequestKind.TERMINATE, RequestKind.DISOWN)  # done when the machine's record is
Wish = tuple[RequestKind, str]

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
    if identity and not well_formed(identity):
        raise UsageError(
            f"{identity!r} is no pool's identity: twelve digits from 0 to f, as the machines' tags say"
        )
    place = call.place
    with StateLock(place.state_dir):
        if not yes:
            confirm(f"Make this host the head of pool {place.pool}? The former one must be gone for good.")
        taken = take_over(place.state_dir, this_host(), identity)
    click.echo(f"this host is the head of pool {place.pool} (identity {taken.pool}): start its daemon")


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
    from updraft.cli.operating.leftovers import left_over

    if not wait:
        click.echo(
            "once the machines are gone, `updraft leftovers` lists what else updraft made in the clouds"
        )
        return
    try:
        click.echo(left_over(call.settings))
    except UpdraftError as error:  # the machines are gone all the same
        click.echo(f"what else updraft made in the clouds isn't known: {error}; see `updraft leftovers`")


def confirm(question: str) -> None:
    """Go on when a person says yes; UsageError where nobody is there to ask."""
    try:
        sure = click.confirm(question, err=True)
    except click.Abort as error:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError("nobody answers here, and nothing was done; --yes says that it is meant") from error
    if not sure:
        raise click.Abort


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
    path = call.place.ledger
    with Reader(path) as reader:
        known = kind is not RequestKind.ADOPT  # of one that isn't ours yet only its whole id is known
        ids = [machine_named(reader, name).id if name and known else name for name in machines]
        daemon = daemon_state(reader, time.time())
    with Ledger(path) as ledger:
        wishes = {
            ledger.request(time.time(), who(), kind, one, kill_jobs=kill_jobs, detail=detail): (kind, one)
            for one in dict.fromkeys(ids)
        }
    outcomes: dict[int, str | None] = dict.fromkeys(wishes, None)
    if daemon["alive"] and (wait or kind is not RequestKind.DESTROY):
        outcomes = _follow(path, wishes) if wait else _answers(path, wishes)
    if as_json:
        rows = [
            {"id": number, "kind": what, "machine": one, "kill_jobs": kill_jobs, "outcome": outcomes[number]}
            for number, (what, one) in wishes.items()
        ]
        say_json({"daemon": daemon, "requests": rows})
    else:
        for number, wish in wishes.items():
            click.echo(f"{_named(wish)}: {outcomes[number] or 'asked for'}")
    if not daemon["alive"]:
        raise ProblemFound(f"written down, but no daemon is at work to do it; {START}")
    refused = [number for number, outcome in outcomes.items() if outcome and outcome.startswith(REFUSED)]
    if refused:
        raise ProblemFound(f"{count(len(refused), 'wish', 'wishes')} refused")


def _named(wish: Wish) -> str:
    kind, machine = wish
    return f"{kind.value} {machine or 'everything'}"


def _answers(path: Path, wishes: Mapping[int, Wish]) -> dict[int, str | None]:
    """What the daemon said to each wish; None where it takes its time."""
    with Reader(path) as reader, waiting("asking the daemon"):
        for _ in range(round(ANSWER_WITHIN / POLL)):
            if all(map(reader.request_outcome, wishes)):
                break
            time.sleep(POLL)
        return {number: reader.request_outcome(number) for number in wishes}


def _follow(path: Path, wishes: Mapping[int, Wish]) -> dict[int, str | None]:
    """What became of each wish: the daemon's answer, and of a machine that is to go, that it is gone."""
    outcomes: dict[int, str | None] = dict.fromkeys(wishes, None)
    with Reader(path) as reader, waiting(f"waiting for {', '.join(map(_named, wishes.values()))}"):
        while None in outcomes.values():
            for number, wish in wishes.items():
                outcomes[number] = outcomes[number] or _outcome(reader, number, wish)
            _stop_if_silent(reader, wishes)
            time.sleep(POLL)
    return outcomes


def _outcome(reader: Reader, number: int, wish: Wish) -> str | None:
    """What became of a wish; None while that is open."""
    said = reader.request_outcome(number)
    kind, machine = wish
    if said is None or said.startswith(REFUSED) or kind not in FOLLOWED:
        return said
    record = reader.machine(machine)
    if kind is RequestKind.DISOWN:
        return _let_go(record)
    if record is None or record.ended_at is None:
        stays = record is not None and record.wanted_drain is None
        return _stays(reader, kind, machine) if stays else None
    return f"gone: {record.end.text}" if record.end else "gone"


def _stays(reader: Reader, kind: RequestKind, machine: str) -> str | None:
    """Why a machine that was to go stays: a job began there meanwhile, or the wish was taken back by hand."""
    latest = reader.events(limit=1, kinds=("busy-again", "request"), subject=machine)
    if latest and latest[-1].kind == "busy-again":
        return f"{REFUSED}: {latest[-1].text}; drain it, or end its jobs with --kill-jobs"
    # The wish itself is the latest that is told of it: what became of it is about to be written.
    return None if latest and latest[-1].code == f"request-{kind}" else "taken back"


def _let_go(record: MachineRecord | None) -> str | None:
    if record is None or record.ended_at is None or record.end is None:
        return None
    return "let go: it stays" if record.end.code == LET_GO else f"gone: {record.end.text}"


def _stop_if_silent(reader: Reader, wishes: Mapping[int, Wish]) -> None:
    daemon = daemon_state(reader, time.time())
    destroying = any(kind is RequestKind.DESTROY for kind, _ in wishes.values())
    if not daemon["alive"] and not (destroying and all(map(reader.request_outcome, wishes))):
        raise ProblemFound(
            f"the daemon has been silent for {ago(daemon['age'] or 0.0)}; the wish stays; {START}"
        )
