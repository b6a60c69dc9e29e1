"""`updraft userdata`: what a worker or a head is told at its first boot, to look at, to paste, or to send."""

import gzip
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.heads.options import head_options
from updraft.cli.output import ago

if TYPE_CHECKING:
    from updraft.app.by_hand import WorkerFacts
    from updraft.bootstrap import Layer

raw_option = click.option(
    "--raw", "form", flag_value="raw", help="The bytes as they are sent to the cloud, compressed."
)
paste_option = click.option(
    "--paste", "form", flag_value="paste", help="Compressed, and still text, for a dashboard's form."
)


@click.group()
def userdata() -> None:
    """Show what a machine is told at its first boot (cloud-init user-data)."""


@userdata.command(short_help="What a worker of CLASS is told.")
@click.argument("worker_class", metavar="[CLASS]", required=False)
@click.option("--cloud", default="", help="The cloud that it is for. Default: the first of the class.")
@click.option("--zone", default="", help="The zone that it will say it is in.")
@click.option("--flavor", default="", help="The flavor that it will say it has.")
@click.option("--market", type=click.Choice(["on-demand", "spot"]), help="Default: the first of the class.")
@click.option("--with-token", is_flag=True, help="Make a token for it: a machine so started joins the pool.")
@raw_option
@paste_option
@click.pass_obj
def worker(
    call: Call,
    worker_class: str | None,
    cloud: str,
    zone: str,
    flavor: str,
    market: str | None,
    with_token: bool,
    form: str | None,
) -> None:
    """The user-data of a worker of CLASS (which may be left out where there is only one).

    As a launch would send it, but without the token that lets it into the pool: that is made with
    --with-token, on the head. A machine started with it joins, and `updraft adopt` takes it into the pool's
    care. Elsewhere, what only the head knows is left out in the same way, and named.
    """
    from updraft.app.by_hand import STAND_INS, worker_told

    told = worker_told(call.settings, worker_class, (cloud, zone, flavor, market or ""), made=with_token)
    _show(told.layers, form, cernvm=told.cernvm)
    for line in _about_token(told, with_token):
        click.echo(f"updraft: {line}", err=True)
    if told.unknown:
        named = ", ".join(f"{STAND_INS[name]} for {name}" for name in told.unknown)
        click.echo(f"updraft: for reading only: HTCondor can't be asked here; it has {named}", err=True)


def _about_token(told: "WorkerFacts", made: bool) -> Iterator[str]:
    from updraft.app.by_hand import NO_TOKEN

    if not made:
        yield f"the token is left out; where {NO_TOKEN} stands, --with-token puts one that it makes"
        return
    good = ago(told.lifetime)
    yield f"a token was made and is in there, good for {good}: its reader can pretend to be a worker"
    yield f"when the machine has joined: updraft adopt INSTANCE-ID --class {told.worker_class}"


@userdata.command(short_help="What the schedd of a pool that is there already is told.")
@click.option(
    "--groups", is_flag=True, help="What refuses accounting groups that aren't their user's, instead."
)
def schedd(groups: bool) -> None:
    """HTCondor's configuration of a schedd (not user-data): jobs that say what they want (+UpdraftImage,
    +VMAMI and the like) get requirements that say so, too. A head of updraft's has it.

    \b
        updraft userdata schedd > /etc/condor/config.d/91-updraft-terms.conf
        updraft userdata schedd --groups > /etc/condor/config.d/91-updraft-groups.conf
        condor_reconfig -schedd
    """
    from updraft.bootstrap.head.transforms import groups_config, schedd_config

    click.echo(groups_config() if groups else schedd_config(), nl=False)


@userdata.command(short_help="What a head is told: a whole pool, with updraft on it.")
@head_options
@raw_option
@paste_option
@click.pass_obj
def head(call: Call, /, form: str | None, **wish: Any) -> None:
    """The user-data of a head: a whole pool, with updraft as its service and your updraft.toml in it.

    It holds no credentials of a cloud. They come from the role that the machine is launched with; without one
    updraft says what it lacks, waits, and goes on when it is there.
    """
    from updraft.app.heads.spec import HeadWish, head_told, left_behind

    settings = call.settings
    _show(head_told(settings, call.file, HeadWish(**wish)), form)
    for line in left_behind(settings):
        click.echo(f"updraft: {line}", err=True)


def _show(layers: Sequence["Layer"], form: str | None, *, cernvm: bool = False) -> None:
    """Print it: as text that a person can read (the default), or in a form that a cloud takes."""
    from updraft.bootstrap import EC2_LIMIT, compose

    data = compose(layers, cernvm=cernvm or form == "paste")
    plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    sys.stdout.flush()
    sys.stdout.buffer.write(data if form else plain)
    sys.stdout.buffer.flush()
    if not form and len(plain) > EC2_LIMIT:
        click.echo(
            f"updraft: this is for reading: it has {len(plain)} bytes, and many clouds take {EC2_LIMIT}; "
            "send what --raw prints, or paste what --paste prints",
            err=True,
        )
