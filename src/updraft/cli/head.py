"""`updraft head`: the machine with the pool's central manager and its submit node, here or in a cloud."""

import click

from updraft.cli.headimage import image
from updraft.cli.headinit import init
from updraft.cli.headlaunch import launch, list_, terminate
from updraft.cli.headundo import undo


@click.group()
def head() -> None:
    """Make a head: the machine with the pool's central manager, its submit node, and updraft."""


for verb in (init, undo, launch, list_, terminate, image):
    head.add_command(verb)
