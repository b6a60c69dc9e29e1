"""`updraft userdata`: what a worker or a head is told at its first boot, to look at, to paste, or to send."""

import gzip
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.heads.options import head_options
from updraft.cli.output import ago
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.bootstrap import Layer
    from updraft.config.model import Settings
    from updraft.core.model import Launch

NO_TOKEN = "HERE-GOES-THE-TOKEN"  # noqa: S105  # what stands where a token would

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
    care.
    """
    from updraft.app.wiring import access, asker, token_life, with_broker_token, worker_spec
    from updraft.bootstrap.worker.userdata import worker_layers
    from updraft.condor.pool import HTCondorPool

    settings = call.settings
    launch = _launch(settings, worker_class, (cloud, zone, flavor, market or ""))
    if with_token and not launch.offer.flavor:
        raise UsageError("say which flavor it will have with --flavor: that is how updraft knows its price")
    spec = worker_spec(settings, asker(settings), launch, NO_TOKEN)
    spec = replace(spec, reach=replace(spec.reach, token=NO_TOKEN))
    if with_token:
        pool = HTCondorPool(access(settings))
        try:
            spec = replace(spec, token=pool.mint_token(launch.key, token_life(spec)))
            _note(settings, launch, spec.token)
            spec = with_broker_token(spec, pool)
        finally:
            pool.close()
    _show(worker_layers(spec), form, cernvm=spec.cernvm)
    for line in _about_token(launch, with_token, token_life(spec)):
        click.echo(f"updraft: {line}", err=True)


def _note(settings: "Settings", launch: "Launch", token: str) -> None:
    """In the ledger, where there is one: `updraft tokens` knows this token too, then."""
    from updraft.act.launching import note_token
    from updraft.ledger import Ledger

    if settings.pool.ledger.exists():
        with Ledger(settings.pool.ledger) as ledger:
            note_token(ledger, launch.key, launch.offer.worker_class, token)


def _launch(settings: "Settings", asked: str | None, choices: tuple[str, str, str, str]) -> "Launch":
    """The launch of one machine of this class, by hand; what was not chosen is the class's first."""
    from updraft.core.machines.unneeded import BY_HAND
    from updraft.core.model import Launch, Offer, Reason, Resources

    name = _class_named(asked, tuple(settings.classes))
    found = settings.classes[name]
    if found.owner_only:
        raise UsageError(f"class {name} has owner_only: each machine is made for one user, and none by hand")
    clouds = settings.clouds_of(found)
    cloud, zone, flavor, market = choices
    if cloud and cloud not in clouds:
        raise UsageError(f"class {name} is not for a cloud {cloud}; it is for {', '.join(clouds)}")
    cloud = cloud or clouds[0]
    plain = [one for one in found.flavors if not set(one) & set("*?[!")]
    offer = Offer(
        worker_class=name,
        cloud=cloud,
        zone=zone,
        flavor=flavor or (plain[0] if plain else ""),
        market=market or found.markets[0],
        image=settings.images_of(found)[cloud],
        generation=settings.generation(name),
        resources=Resources(),
        kind="",
    )
    return Launch(f"{BY_HAND}{secrets.token_hex(5)}", offer, 1, Reason("by-hand", "asked for by hand"))


def _class_named(asked: str | None, names: tuple[str, ...]) -> str:
    if asked is None and len(names) == 1:
        return names[0]
    if asked not in names:
        what = f"there is no class {asked}" if asked else "there is more than one class"
        raise UsageError(f"{what}; say one of {', '.join(names)}")
    return asked


def _about_token(launch: "Launch", made: bool, lifetime: float) -> Iterator[str]:
    if not made:
        yield f"the token is left out; where {NO_TOKEN} stands, --with-token puts one that it makes"
        return
    yield f"a token was made and is in there, good for {ago(lifetime)}: its reader can pretend to be a worker"
    yield f"when the machine has joined: updraft adopt INSTANCE-ID --class {launch.offer.worker_class}"


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
