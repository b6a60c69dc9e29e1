"""`head launch`, `head list` and `head terminate`: heads in a cloud, apart from the pool's own machines."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.heads.options import head_options
from updraft.cli.output import Column, ago, confirm, console, is_narrow, json_option, say_json, table, waiting
from updraft.cli.setup.network import say, say_sides
from updraft.config.values.units import seconds
from updraft.errors import ProblemFound

if TYPE_CHECKING:
    from updraft.app.heads.launching import Launched, Planned
    from updraft.app.heads.places import HeadRow
    from updraft.provision.heads.machines import Patience

name_argument = click.argument("name")
cloud_option = click.option("--cloud", default="", metavar="NAME", help="The cloud. Default: the only one.")
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
    from updraft.app.clouds import one_cloud
    from updraft.app.heads.launching import HeadRequest, Launching
    from updraft.app.heads.spec import HeadWish
    from updraft.clouds.heads import HeadPlace

    settings = call.settings
    found = one_cloud(settings, cloud)
    place = HeadPlace(
        role=options.pop("role"), key_name=options.pop("key_name"),
        private=options.pop("private"), floating=options.pop("floating"),
    )  # fmt: skip
    own = ("image", "flavor", "zone", "wait", "keep")
    wish = HeadRequest(name=name, place=place, **{key: options.pop(key) for key in own})
    told = HeadWish(**options)
    launching = Launching(settings, call.file, found, wish, told, patience())
    if dry_run:
        _show(name, found, launching.planned())
    else:
        _tell(name, launching.go())


def patience() -> "Patience":
    """Real time, and a line on stderr for each step."""
    from updraft.provision.heads.machines import Patience

    return Patience(say=say, shown=waiting)


def _show(name: str, cloud: str, planned: "Planned") -> None:
    say_sides(planned.sides)
    if planned.there is not None:
        click.echo(f"head {name} is there already: {planned.there.id}; nothing would be launched")
        return
    order = planned.order
    click.echo(
        f"head {order.name}: {order.flavor} in {order.zone or 'any zone'} of cloud {cloud}, image "
        f"{order.image}, {len(order.user_data)} bytes of user-data"
    )


def _tell(name: str, done: "Launched") -> None:
    """Say where the head is. Raises ProblemFound where it never boots, and is kept."""
    where = f" at {done.address}" if done.address else ", which has no address yet: see `updraft head list`"
    click.echo(f"head {name} is machine {done.machine.id}{where}")
    click.echo(f"  {done.login}")
    if done.booted:
        click.echo("its pool answers: as that user, condor_submit test.sub; as root there, updraft status")
    else:
        click.echo("it still boots: there, `cloud-init status --wait` and `condor_status -any` say how it is")
    for line in done.left:
        say(line)
    if done.failed:
        raise ProblemFound(f"{done.failed}; it is kept")


@click.command("list", short_help="The heads of this pool.")
@click.argument("clouds", nargs=-1, metavar="[CLOUD…]")
@json_option
@click.pass_obj
def list_(call: Call, clouds: tuple[str, ...], as_json: bool) -> None:
    """List the heads that `updraft head launch` made for this pool, with their addresses."""
    from updraft.app.clouds import one_cloud
    from updraft.app.heads.places import HeadList, rows_of

    settings = call.settings
    names = [one_cloud(settings, name) for name in clouds] or list(settings.clouds)
    with waiting(f"asking {', '.join(names)}"):
        rows = [row for name in names for row in rows_of(settings, name)]
    if as_json:
        say_json(HeadList(rows))
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
    from updraft.app.clouds import one_cloud
    from updraft.app.heads.ending import Ending

    settings = call.settings
    ending = Ending(settings, one_cloud(settings, cloud), name, floating, patience(), groups=groups)
    found = ending.head
    if found is not None:
        if not yes:
            confirm(
                f"End the head {found.worker_class} ({found.id}) with its queue and all that its disk holds?"
            )
        if not ending.end():
            click.echo(f"{found.worker_class} ({found.id}) is told to end; the cloud takes its time")
            if groups:
                say("the security groups stay while it is there: give this command again once it is gone")
            return
        click.echo(f"{found.worker_class} ({found.id}) is ended")
    if groups:
        ending.remove_groups(say)


_COLUMNS: tuple[tuple[Column, bool, Callable[["HeadRow"], str]], ...] = (  # in a narrow table too, its text
    (Column("cloud"), False, lambda row: row.cloud),
    (Column("name"), True, lambda row: row.name),
    (Column("id"), True, lambda row: row.id),
    (Column("state"), True, lambda row: row.state),
    (Column("address"), True, lambda row: row.address),
    (Column("flavor", wide=True), False, lambda row: row.flavor),
    (Column("launched", right=True), False, lambda row: f"{ago(time.time() - row.launched)} ago"),
)
