"""`updraft head`: the machine with the pool's central manager and its submit node, here or in a cloud."""

import click

from updraft.cli.heads.image import image
from updraft.cli.heads.init import init, undo
from updraft.cli.heads.launch import launch, list_, terminate


@click.group()
def head() -> None:
    """Make a head: the machine with the pool's central manager, its submit node, and updraft."""


@click.command(short_help="Give USER the sample jobs.")
@click.argument("user")
def samples(user: str) -> None:
    """Put the sample jobs (README.txt, test.sub and what they use) into USER's home on this machine.

    What is there of these names stays. Takes root for anybody else's home, and writes there with no other
    rights than theirs.
    """
    from updraft.provision.setup.steps import give_samples

    for path, is_new in give_samples(user):
        click.echo(path if is_new else f"{path} is there already, and stays")


for verb in (init, undo, launch, list_, terminate, image, samples):
    head.add_command(verb)
