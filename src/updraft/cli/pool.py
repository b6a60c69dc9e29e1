"""`updraft pool`: the pool's own configuration, and the proof of it."""

import click

from updraft.cli.pool_load import load


@click.group()
def pool() -> None:
    """The pool's own configuration: prove it under load."""


pool.add_command(load)
