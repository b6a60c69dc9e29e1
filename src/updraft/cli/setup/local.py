"""`updraft local`: start, look at and stop the cloud on one machine."""

import os
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from updraft.cli.output import count, json_option, say_json
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.images import image as images
from updraft.clouds.local.images.layers import DEFAULT_STORE, STORE_VARIABLE
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, STATE, TOKEN_VARIABLE
from updraft.errors import ProblemFound

_SUITES = ("forky", "trixie")


_state_option = click.option(
    "--state",
    "state_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=process.usual_state,
    help="Where the cloud keeps its socket, credentials and log. "
    f"Default: that of {ENDPOINT_VARIABLE}, else {STATE}.",
)
_store_option = click.option(
    "--store",
    envvar=STORE_VARIABLE,
    show_envvar=True,
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STORE,
    show_default=True,
    help="Where machine images are kept.",
)
_suite_option = click.option(
    "--suite", type=click.Choice(_SUITES), default="forky", show_default=True, help="Which Debian."
)


@click.group(name="local")
def local() -> None:
    """The cloud on one machine: start, look, stop."""


@local.command()
@_state_option
@_store_option
@_suite_option
@click.option("--network", default=None, metavar="ADDRESS/LENGTH", help="The bridge's address.")
def up(state_dir: Path, store: Path, suite: str, network: str | None) -> None:
    """Start a cloud, which goes on until `down`. Builds its image if there is none."""
    image = images.build(store, suite=suite, progress=_progress)
    config = LocalCloudConfig(images={image.name: tuple(str(layer) for layer in image.layers)})
    config = replace(config, network=network) if network else config
    cloud = process.start(config, state_dir)
    click.echo(f"The cloud runs (process {cloud.pid}). In updraft.toml, for a daemon on this host:")
    click.echo(f'  endpoint = "{cloud.endpoint}"')
    click.echo(f'  credential_file = "{cloud.credential_file}"')
    click.echo("For a head in this cloud: its address as its machines see it, and what the shell here needs:")
    click.echo(f'  endpoint = "{config.endpoint}"')
    click.echo(f"  export {ENDPOINT_VARIABLE}={shlex.quote(cloud.endpoint)}")
    click.echo(f'  export {TOKEN_VARIABLE}="$(cat {shlex.quote(str(cloud.credential_file))})"')


@local.command()
@_state_option
def down(state_dir: Path) -> None:
    """End the cloud with all its machines. Their jobs end with them."""
    cloud = process.find(state_dir)
    if cloud is None:
        click.echo(f"No cloud runs in {state_dir}.")
        return
    cloud.stop()
    process.tidy(state_dir)
    click.echo("The cloud has ended, and all its machines with it.")


@local.command()
@_state_option
@json_option
def status(state_dir: Path, as_json: bool) -> None:
    """Show the cloud's machines."""
    cloud = _running(state_dir)
    machines = cloud.client().machines()
    if as_json:
        say_json({"pid": cloud.pid, "endpoint": cloud.endpoint, "machines": machines})
        return
    ended = sum(one["state"] == "terminated" for one in machines)
    also = f"; {ended} ended lately" if ended else ""
    click.echo(
        f"The cloud runs (process {cloud.pid}) and has {count(len(machines) - ended, 'machine')}{also}."
    )
    for one in sorted(machines, key=lambda machine: machine["times"]["pending"]):
        since = datetime.fromtimestamp(max(one["times"].values())).strftime("%H:%M:%S")
        line = (
            f"{one['id']}  {one['state']:10} {since}  {one['flavor']:8} {one['zone']:8} {one['address']:15}"
        )
        click.echo(f"{line} {one['why_ended']}".rstrip())


@local.command()
@_store_option
@_suite_option
@click.option("--without", type=click.Choice(["condor"]), default=None, help="Leave HTCondor out, for tests.")
def image(store: Path, suite: str, without: str | None) -> None:
    """Build a machine image, and say where it is."""
    built = images.build(store, suite=suite, condor=without is None, progress=_progress)
    click.echo(f"{built.name}: {built.rootfs}")


@local.command(
    context_settings={"ignore_unknown_options": True},
    short_help="Open a shell in MACHINE, or run COMMAND there.",
)
@_state_option
@click.option("--user", default="root", show_default=True, help="As whom.")
@click.argument("machine")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(state_dir: Path, user: str, machine: str, command: tuple[str, ...]) -> None:
    """Open a shell in MACHINE (an id, an address or a host name), or run COMMAND there."""
    cloud = _running(state_dir)
    found = [one for one in cloud.client().machines() if machine in (one["id"], one["address"], one["name"])]
    alive = [one["id"] for one in found if one["state"] != "terminated"]
    if not alive:
        raise ProblemFound(f"No machine {machine} runs; `updraft local status` shows those that do.")
    argv = process.enter_command(cloud, alive[0], command or ("bash",), user=user)
    os.execvp(argv[0], argv)  # noqa: S606  # the terminal is the command's


def _running(state_dir: Path) -> process.LocalCloud:
    cloud = process.find(state_dir)
    if cloud is None:
        raise ProblemFound(f"No cloud runs in {state_dir}; start one with `updraft local up`.")
    return cloud


def _progress(line: str) -> None:
    click.echo(line, err=True)
