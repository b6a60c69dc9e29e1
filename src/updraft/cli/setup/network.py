"""`network`: what security groups let through, as a diff with what the pool needs, and then as a change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.output import confirm, count, json_option, say_json, waiting
from updraft.errors import ProblemFound, UsageError
from updraft.watching.documents import Document

if TYPE_CHECKING:
    from updraft.clouds.networking import Rule
    from updraft.config.model import Settings
    from updraft.provision.heads.network import Role, Side

clouds_argument = click.argument("clouds", nargs=-1, metavar="[CLOUD…]")
role_option = click.option(
    "--role",
    "roles",
    type=click.Choice(["head", "worker"]),
    multiple=True,
    help="Only the head's group, or the workers'. Default: workers', and the head's where it is.",
)


@click.group()
def network() -> None:
    """Compare the clouds' security groups with what the pool needs, and change them."""


@network.command(short_help="What is missing in security groups, and what is too open.")
@clouds_argument
@role_option
@json_option
@click.pass_obj
def check(call: Call, clouds: tuple[str, ...], roles: tuple["Role", ...], as_json: bool) -> None:
    """Compare the security groups of CLOUD, or of all, with what the pool needs: TCP 9618 and logins.

    A line with + is missing, one with - lets in more than is needed. Exit code 1 where there is any.
    Nothing is changed.
    """
    from updraft.app.clouds import named_clouds, network_of

    settings = call.settings
    names = named_clouds(settings, clouds)
    sides: list[Side] = []
    left_out: dict[str, str] = {}
    for name in names:
        with waiting(f"asking {name}"):
            found = network_of(settings, name)
            if isinstance(found, str):
                left_out[name] = found
            else:
                sides += found.look(roles or found.roles(head=_head_is_here(settings)))
    if as_json:
        told = [{"cloud": name, "text": text} for name, text in left_out.items()]
        say_json({"groups": [row(side) for side in sides], "left_out": told})
    else:
        say_sides(sides)
        for name, text in left_out.items():
            click.echo(f"cloud {name}: nothing to compare: {text}")
    amiss = [side for side in sides if side.amiss]
    if amiss:
        raise ProblemFound(
            f"{count(len(amiss), 'group')} not as the pool needs it; `updraft network ensure` adds what is "
            "missing, with --close it takes out what is too open"
        )


@network.command(short_help="Add what is missing to security groups; with --close, close them too.")
@click.argument("cloud", required=False, default="")
@role_option
@click.option("--close", is_flag=True, help="Take out rules that let in more than is needed, too.")
@click.option("--force", is_flag=True, help="Also in groups that this pool's updraft didn't make.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.pass_obj
def ensure(call: Call, cloud: str, roles: tuple["Role", ...], close: bool, force: bool, yes: bool) -> None:
    """Change the security groups of CLOUD as the pool needs them: shows the difference, and asks.

    Makes groups that aren't there, and adds rules that are missing; nothing is taken out without --close.
    When the cloud refuses a part of it, the rest is taken back.
    """
    from updraft.app.clouds import network_of, one_cloud

    settings = call.settings
    name = one_cloud(settings, cloud)
    found = network_of(settings, name)
    if isinstance(found, str):
        raise UsageError(f"cloud {name}: nothing to change: {found}")
    chosen = roles or found.roles(head=_head_is_here(settings))
    sides = found.look(chosen)
    say_sides(sides)
    if not any(
        not side.groups or side.difference.missing or (close and side.difference.open) for side in sides
    ):
        click.echo("nothing to add" + (" or to take out" if close else ""))
        return
    found.check(sides, close=close, foreign=force)
    if not yes:
        confirm(f"Change the security groups of cloud {name}?")
    found.ensure(chosen, close=close, foreign=force, say=say)
    for side in found.look(chosen):
        for note in side.notes:
            click.echo(f"updraft: {note}", err=True)


# ------------------------------------------------------------------------------------------------ inside


def say(line: str) -> None:
    """Progress, on stderr."""
    click.echo(f"updraft: {line}", err=True)


def say_sides(sides: Sequence["Side"]) -> None:
    """The differences, as people read them."""
    for side in sides:
        names = ", ".join(f"{group.name} ({group.id})" for group in side.groups)
        click.echo(f"cloud {side.cloud}, {side.role}: {names or f'{side.name}, which is not there'}")
        for rule in sorted(side.difference.missing, key=str):
            click.echo(f"  + {rule}")
        for rule in side.difference.open:
            click.echo(f"  - {rule}")
        for note in side.notes:
            click.echo(f"  ! {note}")
        if not side.amiss:
            click.echo("  as the pool needs it")


def row(side: "Side") -> Document:
    """One of them as a document."""
    found = side.difference
    return {
        "cloud": side.cloud,
        "role": side.role,
        "name": side.name,
        "ids": [group.id for group in side.groups],
        "missing": [_rule(one) for one in found.missing],
        "open": [_rule(one) for one in found.open],
        "notes": list(side.notes),
    }


def _rule(rule: "Rule") -> Document:
    return {
        "direction": rule.direction,
        "protocol": rule.protocol,
        "ports": None if rule.ports is None else list(rule.ports),
        "source": rule.source,
        "families": list(rule.families),
    }


def _head_is_here(settings: "Settings") -> bool:
    """Whether the head's group is to be looked at where there is none: in the only cloud, of a head in it."""
    return len(settings.clouds) == 1 and not settings.network.head
