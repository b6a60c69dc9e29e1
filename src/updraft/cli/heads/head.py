"""`updraft head`: the machine with the pool's central manager and its submit node, here or in a cloud."""

import click

from updraft.cli.heads.image import image
from updraft.cli.heads.init import init
from updraft.cli.heads.launch import launch, list_, terminate
from updraft.cli.heads.undo import undo
from updraft.errors import UsageError


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
    from updraft.bootstrap.head.userdata import sample_files
    from updraft.provision.setup.host import Host
    from updraft.provision.setup.tree import Tree

    account = Host().account(user)
    if account is None:
        raise UsageError(f"there is no user {user} here: make the account first")
    tree = Tree()
    for entry in sample_files(user, account.pw_dir):
        path = entry["path"]
        try:
            if not tree.is_free(path):
                click.echo(f"{path} is there already, and stays")
                continue
            tree.put(path, entry["content"].encode(), int(entry["permissions"], 8), user)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        click.echo(path)


for verb in (init, undo, launch, list_, terminate, image, samples):
    head.add_command(verb)
