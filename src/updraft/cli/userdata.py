"""`updraft userdata`: what a worker or a head is told at its first boot, to look at, to paste, or to send."""

import gzip
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.cli.main import Call
from updraft.cli.output import ago
from updraft.cli.service import UNWRITABLE
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.bootstrap import HeadSpec, Install, Layer
    from updraft.config.model import Settings
    from updraft.core.model import Launch

NO_TOKEN = "HERE-GOES-THE-TOKEN"  # noqa: S105  # what stands where a token would
HEAD_DIR = Path("/etc/updraft")

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
    from updraft.bootstrap.worker import worker_layers
    from updraft.cli.wiring import access, asker, with_broker_token, worker_spec
    from updraft.condor.pool import HTCondorPool
    from updraft.config import load

    settings = load(call.file)
    launch = _launch(settings, worker_class, (cloud, zone, flavor, market or ""))
    if with_token and not launch.offer.flavor:
        raise UsageError("say which flavor it will have with --flavor: that is how updraft knows its price")
    spec = worker_spec(settings, asker(settings), launch, NO_TOKEN)
    spec = replace(spec, reach=replace(spec.reach, token=NO_TOKEN))
    if with_token:
        pool = HTCondorPool(access(settings))
        try:
            spec = replace(spec, token=pool.mint_token(launch.key, spec.lifetime + spec.drain_deadline))
            spec = with_broker_token(spec, pool)
        finally:
            pool.close()
    _show(worker_layers(spec), form, cernvm=spec.cernvm)
    for line in _about_token(launch, with_token, spec.lifetime + spec.drain_deadline):
        click.echo(f"updraft: {line}", err=True)


def _launch(settings: "Settings", asked: str | None, choices: tuple[str, str, str, str]) -> "Launch":
    """The launch of one machine of this class, by hand; what was not chosen is the class's first."""
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
    plain = [one for one in found.flavors if not set(one) & set("*?[")]
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
    return Launch(f"by-hand-{secrets.token_hex(5)}", offer, 1, Reason("by-hand", "asked for by hand"))


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
def schedd() -> None:
    """HTCondor's configuration of a schedd (not user-data): jobs that say what they want (+UpdraftImage,
    +VMAMI and the like) get requirements that say so, too. A head of updraft's has it.

    \b
        updraft userdata schedd > /etc/condor/config.d/91-updraft-terms.conf
        condor_reconfig -schedd
    """
    from updraft.bootstrap.transforms import schedd_config

    click.echo(schedd_config(), nl=False)


@userdata.command(short_help="What a head is told: a whole pool, with updraft on it.")
@click.option(
    "--user", default="user", show_default=True, help="The first user, who finds sample jobs at home."
)
@click.option(
    "--ssh-key",
    "ssh_key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the public key that lets the first user in. The image's own user has the cloud's key.",
)
@click.option("--domain", default="", help="Trust and UID domain of the pool. Default: POOL.pool.")
@click.option(
    "--source",
    default="",
    help="What pip installs where the image has no updraft: a name with a version, or a wheel's address. "
    "Default: this version, by name.",
)
@click.option("--index", default="", help="The package index that pip asks. Default: pip's own.")
@click.option(
    "--condor",
    default="25.x",
    show_default=True,
    help='The HTCondor to install where the image has none, or "image" to leave that away.',
)
@click.option(
    "--large",
    is_flag=True,
    help="HTCondor's own intervals, for a large pool; else those that suit its number of machines.",
)
@click.option(
    "--machines",
    type=click.IntRange(min=1),
    help="Most machines that the pool will have: what the head is tuned for. Default: what the file allows.",
)
@raw_option
@paste_option
@click.pass_obj
def head(
    call: Call,
    user: str,
    ssh_key: Path | None,
    domain: str,
    source: str,
    index: str,
    condor: str,
    large: bool,
    machines: int | None,
    form: str | None,
) -> None:
    """The user-data of a head: a whole pool, with updraft as its service and your updraft.toml in it.

    It holds no credentials of a cloud. They come from the role that the machine is launched with; without one
    updraft says what it lacks, waits, and goes on when it is there.
    """
    from updraft.bootstrap import HeadSpec
    from updraft.bootstrap.head import head_layers
    from updraft.cli.poolsize import largest
    from updraft.config import load

    settings = load(call.file)
    check_for_head(settings, call.file)
    name = domain or settings.pool.trust_domain or f"{settings.pool.name}.pool"
    spec = HeadSpec(
        trust_domain=name,
        uid_domain=domain or settings.pool.uid_domain or name,
        users=(user,),
        ssh_keys=() if ssh_key is None else tuple(ssh_key.read_text(encoding="utf-8").split("\n", 1)[:1]),
        samples=True,
        controller_config=call.file.read_text(encoding="utf-8"),
        files=dict(_named_files(settings)),
        source=source or _own_source(tuple(cloud.driver for cloud in settings.clouds.values())),
        index=index,
        install=_install(condor),
        job_lease=settings.pool.job_lease,
        machines=machines or largest(settings),
        broker=any(one.reach == "ccb" and not one.ccb for one in settings.classes.values()),
    )
    _show(head_layers(_paced(spec, large)), form)
    for line in _left_behind(settings):
        click.echo(f"updraft: {line}", err=True)


def _paced(spec: "HeadSpec", large: bool) -> "HeadSpec":
    from updraft.bootstrap.head import paced

    return spec if large else paced(spec)


def _install(condor: str) -> "Install":
    from updraft.bootstrap import Install

    return Install(version="" if condor == "image" else condor)


def check_for_head(settings: "Settings", file: Path) -> None:
    """Raises UsageError where the configuration is for another place than the pool's own head."""
    from updraft.config import DEFAULT_STATE_DIR, parse

    pool = settings.pool
    for key, value in (
        ("collector", pool.collector),
        ("token", pool.token),
        ("condor_config", pool.condor_config),
    ):
        if value:
            raise UsageError(
                f"pool.{key} is for a pool that is there already: on its own head there is none; remove it"
            )
    state_dir = Path(_table(parse(file), "pool").get("state_dir", DEFAULT_STATE_DIR))
    if not state_dir.is_absolute() or any(state_dir.is_relative_to(place) for place in UNWRITABLE):
        raise UsageError(
            "pool.state_dir must be an absolute path that the service may write to on the head; leave it "
            "away for /var/lib/updraft"
        )


def _table(tables: Mapping[str, object], name: str) -> dict[str, str]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def _named_files(settings: "Settings") -> Iterator[tuple[str, str]]:
    """The files of layers and keys that the configuration names, at the place where it will look for them."""
    for found in settings.classes.values():
        files = [(layer.name, layer.text) for layer in (*found.layers, *found.offered_layers.values())]
        files += [(one.key.name, one.key.text) for one in found.cvmfs if one.key is not None]
        for name, text in files:
            if name != "inline":
                yield str(HEAD_DIR / name), text


def _own_source(drivers: Sequence[str]) -> str:
    """This version, with what the drivers need of it."""
    from importlib.metadata import metadata

    about = metadata("updraft")
    extras = sorted({driver for driver in drivers if driver in (about.get_all("Provides-Extra") or [])})
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"updraft{wanted}=={about['Version']}"


def _left_behind(settings: "Settings") -> Iterator[str]:
    """Files that the clouds' settings name: they are not taken along, least of all credentials."""
    for name, cloud in settings.clouds.items():
        for key, value in cloud.settings.items():
            if isinstance(value, str) and value.startswith("/"):
                yield f"clouds.{name}.{key}: {value} is not in the user-data; it has to be there on the head"


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
