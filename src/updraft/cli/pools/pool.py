"""`updraft pool`: a pool of a size, before there is one: its configuration, and the proof of it."""

import click

from updraft.cli.pools.config import config
from updraft.cli.pools.load import load


@click.group()
def pool() -> None:
    """What a pool of a size needs: its configuration, and that under load."""


pool.add_command(config)
pool.add_command(load)
