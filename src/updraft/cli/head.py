"""`head`: the machine with the pool's central manager and submit node. Each family of verbs has a module."""

from importlib import import_module
from importlib.util import find_spec

import click

MODULES = ("updraft.cli.headinit", "updraft.cli.headlaunch")


@click.group()
def head() -> None:
    """Make, launch, list and end heads: a pool's central manager and submit node, with updraft."""


def _add_verbs() -> None:
    for name in MODULES:
        if find_spec(name) is not None:
            for command in import_module(name).VERBS:
                head.add_command(command)


_add_verbs()
