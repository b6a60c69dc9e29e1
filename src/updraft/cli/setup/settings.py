"""`config check` and `version`."""

import platform
from pathlib import Path
from typing import Any

import click

from updraft import __version__
from updraft.app.call import Call
from updraft.cli.output import Column, console, count, json_option, say_json, table


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
    click.echo(f"{file} is right: pool {document['pool']}, {count(len(document['clouds']), 'cloud')}")
    titles = ("class", "generation", "clouds", "machines")
    rows = [
        (
            one["name"],
            one["generation"],
            ", ".join(one["clouds"]),
            f"{one['min']} to {'any' if one['max'] is None else one['max']}",
            ", ".join(sorted(set(one["images"].values()))),
        )
        for one in document["classes"]
    ]
    console().print(table([*map(Column, titles), Column("image", wide=True)], rows))


def checked(file: Path) -> dict[str, Any]:
    """What a configuration comes to. Raises ConfigError with every fault of it."""
    from updraft.config import load

    settings = load(file)
    policy = settings.policy()
    classes = [
        {
            "name": one.name,
            "generation": one.generation,
            "clouds": list(one.clouds),
            "images": dict(one.images),
            "min": one.min_machines,
            "max": one.max_machines,
        }
        for one in policy.classes.values()
    ]
    return {"file": str(file), "pool": policy.pool, "clouds": list(settings.clouds), "classes": classes}


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
    if as_json:
        say_json({"updraft": __version__, "python": platform.python_version(), "htcondor": bindings})
    else:
        click.echo(f"updraft {__version__}, Python {platform.python_version()}, HTCondor bindings {bindings}")
