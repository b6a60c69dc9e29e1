"""`updraft head`: a pool's central manager and submit node, made in a cloud."""

import click

from updraft.cli.headimage import image
from updraft.cli.headlaunch import launch, list_, terminate


@click.group()
def head() -> None:
    """Make a head: the machine with the pool's central manager, its submit node, and updraft."""


head.add_command(launch)
head.add_command(list_)
head.add_command(terminate)
head.add_command(image)
