"""`replay`: recorded decisions, made again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from updraft.app.call import Call
from updraft.cli.output import Column, clock, console, count, json_option, say_json, table
from updraft.documents import Document
from updraft.errors import ProblemFound

if TYPE_CHECKING:
    from updraft.recording import Replayed


class ReplayedAction(Document):
    """An action of the plan made now."""

    what: Annotated[str, "Its kind."]
    code: Annotated[str, "The reason's code."]
    text: Annotated[str, "The reason."]


class DecisionRow(Document):
    """One decision."""

    number: Annotated[int, "Its place in the file, from 1."]
    at: Annotated[float, "When it was made."]
    same: Annotated[bool, "Whether the plan is the recorded one, byte for byte."]
    differs: Annotated[Sequence[str], "What differs."]
    actions: Annotated[Sequence[ReplayedAction], "What it does."]


class Replay(Document):
    """The decisions of a recording, made again."""

    decisions: Annotated[Sequence[DecisionRow], "In the order of the file."]


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
        say_json(Replay(list(map(_decision, found))))
    else:
        _show(found, every)
    different = [one.number for one in found if one.differs]
    if different:
        raise ProblemFound(
            f"{len(different)} of {len(found)} decisions are not as recorded, "
            f"the first is number {different[0]}"
        )


def _decision(one: "Replayed") -> DecisionRow:
    actions = [
        ReplayedAction(type(action).__name__.lower(), action.reason.code, action.reason.text)
        for action in one.made.actions
    ]
    return DecisionRow(one.number, one.at, not one.differs, one.differs, actions)


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
