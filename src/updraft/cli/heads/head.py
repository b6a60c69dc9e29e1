"""`updraft head`: the machine with the pool's central manager and its submit node, here or in a cloud."""

import click

from updraft.cli.heads.image import image
from updraft.cli.heads.init import init
from updraft.cli.heads.launch import launch, list_, terminate
from updraft.cli.heads.samples import samples
from updraft.cli.heads.undo import undo


@click.group()
def head() -> None:
    """Make a head: the machine with the pool's central manager, its submit node, and updraft."""


for verb in (init, undo, launch, list_, terminate, image, samples):
    head.add_command(verb)
