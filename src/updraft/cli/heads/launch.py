"""`head launch`, `head list` and `head terminate`: heads in a cloud, apart from the pool's own machines."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.heads.making import Launching, Wish, address_of, heads_of
from updraft.cli.heads.spec import HeadWish, head_options
from updraft.cli.operating.wishes import confirm
from updraft.cli.output import Column, ago, console, is_narrow, json_option, say_json, table, waiting
from updraft.cli.setup.network import network_of, one_cloud, say
from updraft.cli.watching.documents import Document
from updraft.config.values.units import seconds
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.config.model import Settings

GONE_WITHIN = 300.0

name_argument = click.argument("name")
cloud_option = click.option("--cloud", default="", metavar="NAME", help="Which. Default: the only one.")
floating_option = click.option(
    "--floating-network",
    "floating",
    default="",
    metavar="NETWORK",
    help="OpenStack: the external network that its address is of. Default: the cloud's floating_network.",
)


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            return seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(short_help="Make a head called NAME in a cloud.")
@name_argument
@cloud_option
@click.option("--image", default="", help="What it boots. Default: the image of the first class there.")
@click.option("--flavor", default="", help="Default: the cheapest with 2 cpus and 2 GiB.")
@click.option("--zone", default="", help="Default: that of the cheapest.")
@click.option(
    "--role", default="", help="EC2: instance profile with its rights in the cloud; local: controller."
)
@click.option("--key", "key_name", default="", help="The cloud's key pair for the image's own user.")
@click.option("--private", is_flag=True, help="No address that is reached from outside.")
@floating_option
@head_options
@click.option(
    "--wait", type=_Duration(), default="15m", show_default=True, help="For how long; 0s: not at all."
)
@click.option("--keep", is_flag=True, help="Keep a machine whose boot fails, to look at it.")
@click.option("--dry-run", is_flag=True, help="Show what would be made, and make nothing.")
@click.pass_obj
def launch(call: Call, /, name: str, cloud: str, dry_run: bool, **options: Any) -> None:
    """Make a head in a cloud: its security groups, the machine, its address, and the commands to log in.

    It boots as `updraft userdata head` says, with your updraft.toml. A head of that name that is there is
    found again, and its groups are seen to. What this run has made is removed when it fails. A head is ended
    by `updraft head terminate` alone: the pool's controller doesn't touch it.
    """
    from updraft.clouds.heads import HeadPlace
    from updraft.provision.heads.machines import checked_head_name

    settings = call.settings
    found = one_cloud(settings, cloud)
    place = HeadPlace(
        role=options.pop("role"), key_name=options.pop("key_name"),
        private=options.pop("private"), floating=options.pop("floating"),
    )  # fmt: skip
    own = ("image", "flavor", "zone", "wait", "keep")
    wish = Wish(name=checked_head_name(name), place=place, **{key: options.pop(key) for key in own})
    told = HeadWish(**options)
    launching = Launching(settings, call.file, found, wish, told)
    if dry_run:
        launching.show()
    else:
        launching.go()


@click.command("list", short_help="The heads of this pool.")
@click.argument("clouds", nargs=-1, metavar="[CLOUD…]")
@json_option
@click.pass_obj
def list_(call: Call, clouds: tuple[str, ...], as_json: bool) -> None:
    """List the heads that `updraft head launch` made for this pool, with their addresses."""
    settings = call.settings
    names = [one_cloud(settings, name) for name in clouds] or list(settings.clouds)
    with waiting(f"asking {', '.join(names)}"):
        rows = [row for name in names for row in _rows(settings, name)]
    if as_json:
        say_json({"heads": rows})
    elif rows:
        out = console()
        chosen = [(column, cell) for column, always, cell in _COLUMNS if always or not is_narrow(out)]
        cells = [[cell(one) for _, cell in chosen] for one in rows]
        out.print(table([column for column, _ in chosen], cells))
    else:
        click.echo("no heads")


@click.command(short_help="End the head called NAME.")
@name_argument
@cloud_option
@floating_option
@click.option(
    "--groups",
    is_flag=True,
    help="Remove the security groups that updraft made there, too: once no other head nor worker is there.",
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.pass_obj
def terminate(call: Call, name: str, cloud: str, floating: str, groups: bool, yes: bool) -> None:
    """End a head with its pool: jobs in its queue are lost, and what its disk holds. Asks first.

    NAME is a head's name, or its id. The pool's workers are not touched: `updraft destroy`, on the head,
    removes them before; else each ends by itself once its head is gone for long.
    """
    from updraft.clouds.heads import HeadPlace

    settings = call.settings
    where = one_cloud(settings, cloud)
    place = HeadPlace(floating=floating)
    heads = heads_of(settings, where, place)
    found = heads.named(name)
    if found is None and not groups:
        raise UsageError(f"cloud {where} has no head {name}; `updraft head list` shows them")
    if groups:
        _check_unused(settings, where, "" if found is None else found.id)
    if found is not None:
        if not yes:
            confirm(
                f"End the head {found.worker_class} ({found.id}) with its queue and all that its disk holds?"
            )
        if not heads.end(found.id, GONE_WITHIN):
            click.echo(f"{found.worker_class} ({found.id}) is told to end; the cloud takes its time")
            if groups:
                say("the security groups stay while it is there: give this command again once it is gone")
            return
        click.echo(f"{found.worker_class} ({found.id}) is ended")
    network = network_of(settings, where)
    if groups and not isinstance(network, str):
        network.remove(say)


# ------------------------------------------------------------------------------------------------ inside


def _check_unused(settings: "Settings", cloud: str, leaving: str) -> None:
    """Raise UsageError while anybody but the head `leaving` is behind the groups that would be removed."""
    from updraft.app.wiring import make_driver
    from updraft.clouds.heads import HeadPlace
    from updraft.core.model import CloudState

    there: list[str] = []
    for name in _sharing(settings, cloud):
        others = [one for one in heads_of(settings, name, HeadPlace()).all() if one.id != leaving]
        workers = make_driver(settings, name, settings.clouds[name]).machines()
        there += [f"head {one.worker_class} ({one.id})" for one in others]
        there += [f"worker {one.id}" for one in workers if one.state is not CloudState.TERMINATED]
    if there:
        some = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        raise UsageError(
            f"the security groups are in use by {some}: end them first (workers by `updraft destroy --wait`, "
            "on the head), or leave --groups away; nothing was ended"
        )


def _sharing(settings: "Settings", cloud: str) -> list[str]:
    """This cloud, and those of the file that have the same groups: two names for one project."""
    driver = settings.clouds[cloud].driver
    ids: dict[str, set[str]] = {}
    for name, one in settings.clouds.items():
        network = network_of(settings, name) if one.driver == driver else ""
        ids[name] = set() if isinstance(network, str) else {group.id for group in network.ours()}
    return [name for name in ids if name == cloud or ids[name] & ids[cloud]]


def _rows(settings: "Settings", cloud: str) -> list[Document]:
    from updraft.clouds.heads import HeadPlace

    return [
        {
            "cloud": cloud,
            "name": one.worker_class,
            "id": one.id,
            "state": str(one.state),
            "address": address_of(settings, cloud, one),
            "flavor": one.flavor,
            "zone": one.zone,
            "image": one.image,
            "launched": one.launched_at,
        }
        for one in heads_of(settings, cloud, HeadPlace()).all()
    ]


_COLUMNS: tuple[tuple[Column, bool, Callable[[Document], str]], ...] = (  # in a narrow table too, its text
    (Column("cloud"), False, lambda row: row["cloud"]),
    (Column("name"), True, lambda row: row["name"]),
    (Column("id"), True, lambda row: row["id"]),
    (Column("state"), True, lambda row: row["state"]),
    (Column("address"), True, lambda row: row["address"]),
    (Column("flavor", wide=True), False, lambda row: row["flavor"]),
    (Column("launched", right=True), False, lambda row: f"{ago(time.time() - row['launched'])} ago"),
)
