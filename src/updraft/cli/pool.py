"""`updraft pool`: a pool of a size, before there is one."""

import click

from updraft.cli.pool_config import config


@click.group()
def pool() -> None:
    """What a pool of a size needs."""


pool.add_command(config)
