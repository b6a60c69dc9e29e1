"""`events`: what happened, and why, from the ledger."""

import sys
import time
from collections.abc import Iterable

import click

from updraft.app.call import Call
from updraft.cli.output import JSON_VERSION, clock, json_option, json_text
from updraft.ledger.reader import Event, Reader
from updraft.watching.documents import event_row
from updraft.watching.sentences import told

POLL = 0.5
PAGE = 1000


@click.command()
@json_option
@click.option("--follow", "-f", is_flag=True, help="Stay, and show what happens from now on; Ctrl-C ends it.")
@click.option(
    "--last",
    "-n",
    default=50,
    show_default=True,
    type=click.IntRange(0, 50_000),
    metavar="N",
    help="How many of the latest.",
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be given again.")
@click.argument("subject", required=False)
@click.pass_obj
def events(
    call: Call, as_json: bool, follow: bool, last: int, kinds: tuple[str, ...], subject: str | None
) -> None:
    """Show what happened: launches, joins, drains, ends, failures, each with its reason.

    SUBJECT is a machine, a launch or a cloud; without it, all of them. With --json each line is one event.
    """
    with Reader(call.place.ledger) as reader:
        found = reader.events(limit=last, kinds=kinds, subject=subject) if last else ()
        _show(found, as_json)
        if not follow:
            if not found and not as_json:
                click.echo("no events")
            return
        seen = found[-1].id if found else _newest(reader)
        while True:
            time.sleep(POLL)
            new = reader.events(after=seen, limit=PAGE, kinds=kinds, subject=subject)
            _show(new, as_json)
            seen = new[-1].id if new else seen


def _newest(reader: Reader) -> int:
    newest = reader.events(limit=1)
    # Where there is none yet, -1 asks for all that come: 0 would mean the latest ones.
    return newest[-1].id if newest else -1


def _show(found: Iterable[Event], as_json: bool) -> None:
    import json

    for event in found:
        if as_json:
            line = json_text(json.dumps({"version": JSON_VERSION, **event_row(event)}, ensure_ascii=False))
        else:
            line = f"{clock(event.at)}  {told(event_row(event))} [{event.code}]"
        click.echo(line)
    sys.stdout.flush()
