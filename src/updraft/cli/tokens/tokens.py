"""`tokens`: which tokens let machines into the pool, and how they end before their time."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.output import Column, ago, clock, console, count, is_narrow, json_option, say_json, table
from updraft.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.app.tokens import KeyRow, Keys, KnownTokens, Revocation, Rotation, TokenRow


@click.group()
def tokens() -> None:
    """List, revoke and rotate the tokens by which workers advertise themselves.

    Each launch has a token of its own, and an identity of its own at the collector. No token is ever renewed:
    a machine ends before its token does. Tokens themselves are never shown.
    """


@tokens.command("list", short_help="Every launch's token: since when, until when, for how many machines.")
@json_option
@click.pass_obj
def list_(call: Call, as_json: bool) -> None:
    """List tokens that may still be in use: not ended, or with machines that live."""
    from updraft.app.tokens import TokenList, facts, rows_of

    rows, keys = rows_of(facts(call), time.time()), _keys(call)
    if as_json:
        say_json(TokenList(rows, _key_rows(keys)))
        return
    if not rows:
        click.echo("no token is in use")
        return
    out = console()
    chosen = [(column, cell) for column, always, cell in COLUMNS if always or not is_narrow(out)]
    out.print(table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows]))
    if keys is not None and len(keys.names) > 1:
        click.echo(f"keys: {', '.join(keys.names)}; {keys.names[-1]} signs now")


def _until(row: "TokenRow") -> str:
    if row.expires is None:
        return "?"
    left = row.expires - time.time()
    return f"in {ago(left)}" if left > 0 else "over"


COLUMNS: Sequence[tuple[Column, bool, Any]] = (  # column, in a narrow table too, its text
    (Column("launch", wide=True), True, lambda row: row.launch),
    (Column("class"), True, lambda row: row.class_),
    (Column("machines", right=True), True, lambda row: str(row.machines)),
    (Column("issued"), False, lambda row: "?" if row.issued is None else clock(row.issued)),
    (Column("ends"), True, _until),
    (Column("key"), False, lambda row: row.key or "?"),
    (Column("identity", wide=True), False, lambda row: row.identity),
    (Column("state"), True, lambda row: row.state),
)


@tokens.command(short_help="End a launch's token now, and the sessions that it opened.")
@click.argument("launches", nargs=-1, metavar="[LAUNCH…]")
@click.option("--all", "everything", is_flag=True, help="Every worker's token that was issued until now.")
@json_option
@click.pass_obj
def revoke(call: Call, launches: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """End tokens before their time, as root on the head; what it does can be seen in its file.

    LAUNCH+INSTANCE ends the own token of one machine, and leaves the rest of its launch alone.

    The collector takes nothing more from these launches, also on sessions that are open; their ads go at
    once. Jobs that run on their machines run on. The machines get no new ones, are given up when their last
    job is done, and others are launched in their place.
    """
    if everything == bool(launches):
        raise UsageError("name launches, or say --all; `updraft tokens list` names them")
    _root()
    from updraft.app.tokens import facts, revoke_now

    known = facts(call)
    chosen = list(known.identities) if everything else [known.named(one) for one in launches]
    done = revoke_now(call, known, chosen, everything=everything)
    _tell(known, done, as_json)


@tokens.command(short_help="A new signing key; the old ones go with their machines, or now.")
@click.option("--now", "at_once", is_flag=True, help="Remove the old keys and revoke every token at once.")
@click.option("--finish", is_flag=True, help="Remove old keys of which no living machine has a token.")
@json_option
@click.pass_obj
def rotate(call: Call, at_once: bool, finish: bool, as_json: bool) -> None:
    """Make a new key for workers' tokens, as root on the head. Launches from now on are signed with it.

    The old key stays until the machines that have its tokens are gone: `--finish` removes it then. A key that
    was stolen must go at once: `--now`.
    """
    if at_once and finish:
        raise UsageError("--now leaves no old key that --finish could remove")
    _root()
    from updraft.app.tokens import Rotation, facts, finished, renewed, revoke_now

    known, keys = facts(call), _keys(call)
    if keys is None:
        raise ProblemFound("this machine has no folder of signing keys: rotate on the head")
    if finish:
        gone, needed = finished(call, known, keys)
        _show_keys(call, as_json, Rotation(removed=gone, needed=needed))
        return
    new = renewed(call, keys)
    if not at_once:
        _show_keys(call, as_json, Rotation(new))
        return
    done = revoke_now(call, known, list(known.identities), everything=True, drop=keys)
    _show_keys(call, as_json, Rotation(new, keys.names, revoked=done.launches))


def _root() -> None:
    if os.geteuid() != 0:
        raise UsageError("this is for root on the head: it changes HTCondor's configuration and keys there")


def _keys(call: Call) -> "Keys | None":
    from updraft.app.tokens import keys_of

    return keys_of(call)


def _key_rows(keys: "Keys | None") -> "list[KeyRow]":
    from updraft.app.tokens import KeyRow

    return [] if keys is None else [KeyRow(name, name == keys.names[-1]) for name in keys.names]


def _show_keys(call: Call, as_json: bool, document: "Rotation") -> None:
    if as_json:
        say_json(replace(document, keys=_key_rows(_keys(call))))
        return
    if document.new:
        click.echo(f"{document.new} signs from now on")
    for name in document.removed:
        click.echo(f"{name} is removed: what it has signed is good no more")
    for name, machines in document.needed.items():
        click.echo(f"{name} stays: {count(machines, 'machine')} may have a token of it")
    if document.revoked:
        click.echo(f"revoked: the tokens of {count(len(document.revoked), 'launch', 'launches')}")
    elif document.new and not document.removed:
        click.echo("when the machines of now are gone: `updraft tokens rotate --finish` removes the older")
    elif not document.removed and not document.needed:
        click.echo("there is no older key")


def _tell(known: "KnownTokens", done: "Revocation", as_json: bool) -> None:
    if as_json:
        say_json(done)
        return
    single = [one for one in done.launches if known.is_of_one(one)]
    machines = sum(known.machines.get(one, 0) for one in done.launches)
    what = count(len(done.launches) - len(single), "launch", "launches")
    if single:
        click.echo(f"revoked: the own token of {', '.join(single)}; the collector takes nothing of it")
    if len(single) == len(done.launches):
        return
    click.echo(f"revoked: {what} with {count(machines, 'machine')}; the collector takes nothing of them")
