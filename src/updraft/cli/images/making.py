"""`image build` and `image make`: a worker image of a base image and layers, or of a running machine."""

from pathlib import Path
from typing import Any

import click

from updraft.app.call import Call
from updraft.cli.endings import ended_by_term
from updraft.cli.images.image import cloud_option, name_option, tell, watch

flavor_option = click.option(
    "--flavor", default="", help="Its machine's flavor. Default: the class's cheapest."
)
user_option = click.option(
    "--as",
    "user",
    default="",
    help="Who submits the trial job. Default: who called sudo, else the first user.",
)
trial_option = click.option(
    "--trial",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A script that the trial job runs; it must end with 0. Default: one that says where it is.",
)
untried_option = click.option("--no-test", "untried", is_flag=True, help="No trial job.")


@click.command(short_help="A worker image of a base image and layers.")
@click.argument("worker_class", metavar="[CLASS]", required=False)
@name_option
@cloud_option
@click.option("--from", "base", default="", metavar="IMAGE", help="The base. Default: the class's image.")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What to do to it, as a class's layer; several in their order. Default: the class's layers.",
)
@flavor_option
@trial_option
@user_option
@untried_option
@click.pass_obj
def build(call: Call, /, **wish: Any) -> None:
    """Build a worker image: launch a machine, prepare it as CLASS says, try it by a job, clean it, keep it.

    On the pool's head, as root. The machine runs no other job, is ended in any case, and its image is made
    only when it holds no key, token or credential any more.
    """
    from updraft.app.images import making

    with ended_by_term():
        tell(*making.build(call.settings, making.ImageRequest(**wish), watch()))
    click.echo('  condor = "image"')


@click.command(short_help="An image of a running machine.")
@click.argument("machine")
@name_option
@cloud_option
@click.option("--class", "worker_class", default=None, metavar="CLASS", help="The class that it will be for.")
@click.option("--busy", is_flag=True, help="Also where jobs run; what they have written is taken out again.")
@flavor_option
@trial_option
@user_option
@untried_option
@click.pass_obj
def make(call: Call, /, machine: str, busy: bool, **wish: Any) -> None:
    """Make a worker image of MACHINE, an instance id of the cloud: one that you have made as you want it.

    MACHINE goes on as it is: its disk is copied, and a second machine is booted from the copy, tried by a
    job, cleaned and kept; the copy is deleted. Write what is in memory to the disk first (`sync`). Jobs must
    not run there meanwhile: refused where they do, so `updraft drain` it first.
    """
    from updraft.app.images import making

    with ended_by_term():
        tell(*making.make(call.settings, machine, making.ImageRequest(**wish), watch(), busy=busy))
    click.echo('  condor = "image"')
