"""`updraft head`: make this machine a pool's head, and take that back."""

import click

from updraft.cli.head_init import init, undo


@click.group()
def head() -> None:
    """Make a head: the machine with the pool's central manager, its submit node, and updraft."""


head.add_command(init)
head.add_command(undo)
