"""`replay`: recorded decisions, made again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.output import Column, clock, console, count, json_option, say_json, table
from updraft.errors import ProblemFound

if TYPE_CHECKING:
    from updraft.recording import Replayed


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Show decisions that do nothing, too.")
@json_option
@click.pass_obj
def replay(_call: Call, file: Path, every: bool, as_json: bool) -> None:
    """Make the decisions of a recording again, and compare each with what was decided then.

    FILE is one that `updraft run --record DIR` wrote. Nothing is looked at and nothing is done. The exit code
    is 1 where a plan differs from the recorded one.
    """
    from updraft.core.plan import plan
    from updraft.recording import replay as again

    found = list(again(file, plan))
    if as_json:
        say_json({"decisions": [_document(one) for one in found]})
    else:
        _show(found, every)
    different = [one.number for one in found if one.differs]
    if different:
        raise ProblemFound(
            f"{len(different)} of {len(found)} decisions are not as recorded, "
            f"the first is number {different[0]}"
        )


def _document(one: "Replayed") -> dict[str, Any]:
    return {
        "number": one.number,
        "at": one.at,
        "same": not one.differs,
        "differs": list(one.differs),
        "actions": [
            {"what": type(action).__name__.lower(), "code": action.reason.code, "text": action.reason.text}
            for action in one.made.actions
        ],
    }


def _show(found: list["Replayed"], every: bool) -> None:
    out = console()
    rows = []
    for one in found:
        verdict = "differs: " + ", ".join(one.differs) if one.differs else "same"
        for action in one.made.actions:
            words = f"{type(action).__name__.lower()}: {action.reason.text}"
            rows.append((str(one.number), clock(one.at), verdict, words))
        if not one.made.actions and (every or one.differs):
            rows.append((str(one.number), clock(one.at), verdict, "nothing to do"))
    if rows:
        columns = [Column("number"), Column("at"), Column("replayed"), Column("what and why", wide=True)]
        out.print(table(columns, rows))
    same = sum(1 for one in found if not one.differs)
    out.print(f"{count(len(found), 'decision')}, {same} of them the same again")
