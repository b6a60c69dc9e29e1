"""`config check` and `version`."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import click

from updraft import __version__
from updraft.app.call import Call
from updraft.cli.output import Column, console, count, json_option, say_json, table
from updraft.documents import Document


@click.group()
def config() -> None:
    """Look after updraft.toml."""


@config.command()
@json_option
@click.pass_obj
def check(call: Call, as_json: bool) -> None:
    """Check the configuration, and show what it comes to.

    Every fault is named with its line, and the exit code is 2. Neither pool nor clouds are asked.
    """
    file = call.file
    document = checked(file)
    if as_json:
        say_json(document)
        return
    click.echo(f"{file} is right: pool {document.pool}, {count(len(document.clouds), 'cloud')}")
    titles = ("class", "generation", "clouds", "machines")
    rows = [
        (
            one.name,
            one.generation,
            ", ".join(one.clouds),
            f"{one.min} to {'any' if one.max is None else one.max}",
            ", ".join(sorted(set(one.images.values()))),
        )
        for one in document.classes
    ]
    console().print(table([*map(Column, titles), Column("image", wide=True)], rows))


class ClassChecked(Document):
    """A class."""

    name: str
    generation: str
    clouds: Sequence[str]
    images: Mapping[str, str]
    min: int
    max: int | None


class ConfigChecked(Document):
    """A configuration that is right."""

    file: Annotated[str, "The file."]
    pool: Annotated[str, "The pool's name."]
    clouds: Annotated[Sequence[str], "Its clouds."]
    classes: Annotated[Sequence[ClassChecked], "Its classes, each with its generation."]


def checked(file: Path) -> ConfigChecked:
    """What a configuration comes to. Raises ConfigError with every fault of it."""
    from updraft.config import load

    settings = load(file)
    policy = settings.policy()
    classes = [
        ClassChecked(
            one.name, one.generation, one.clouds, dict(one.images), one.min_machines, one.max_machines
        )
        for one in policy.classes.values()
    ]
    return ConfigChecked(str(file), policy.pool, list(settings.clouds), classes)


class Versions(Document):
    """What this is."""

    updraft: Annotated[str, "updraft's version."]
    python: Annotated[str, "Python's."]
    htcondor: Annotated[str, "That of HTCondor's bindings."]


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Say which updraft this is, and what it runs on."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        bindings = installed("htcondor")
    except PackageNotFoundError:  # Debian's own bindings are no Python distribution
        bindings = "of the system"
    found = Versions(__version__, platform.python_version(), bindings)
    if as_json:
        say_json(found)
    else:
        click.echo(f"updraft {found.updraft}, Python {found.python}, HTCondor bindings {bindings}")
