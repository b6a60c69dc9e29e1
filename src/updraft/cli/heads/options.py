"""The options that say what a head is told at its first boot: for `userdata head` and `head launch`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

anonymous_read_option = click.option(
    "--anonymous-read",
    is_flag=True,
    help="Whoever reaches the head may read the pool's ads and jobs, jobs on workers too. Default: who has "
    "an account on the head or a token.",
)
source_option = click.option(
    "--source",
    default="",
    metavar="WHEEL",
    help="Where the machine gets updraft: the address of its wheel with the hash, https://…#sha256=…, or "
    '"image" where the image has it. Default: the wheel that this updraft was installed from, if known.',
)
index_option = click.option(
    "--index",
    default="",
    help="The package index (https://) that pip asks for what updraft needs, by hash, or a folder of wheels "
    "on the machine (file:///). Default: pip's own.",
)
condor_option = click.option(
    "--condor",
    default="25.x",
    show_default=True,
    help='The HTCondor to install where the image has none, or "image" to install none.',
)
_OPTIONS = (
    click.option(
        "--user", default="user", show_default=True, help="The first user, who finds sample jobs at home."
    ),
    click.option(
        "--ssh-key",
        "ssh_key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the public key that lets the first user in. The image's own user has the cloud's "
        "key.",
    ),
    click.option("--domain", default="", help="Trust and UID domain of the pool. Default: POOL.pool."),
    source_option,
    index_option,
    condor_option,
    click.option(
        "--large",
        is_flag=True,
        help="HTCondor's own intervals, for a large pool; else those that suit its number of machines.",
    ),
    click.option(
        "--machines",
        type=click.IntRange(min=1),
        help="Most machines that the pool will have, for which it is tuned. Default: what the file allows.",
    ),
    anonymous_read_option,
)


def head_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a verb that makes a head's user-data; it is called with `HeadWish`'s fields."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
