"""`updraft pool config`: HTCondor's configuration for a pool of a size, with reasons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from updraft.app.call import Call
from updraft.bootstrap.sizing import PARTS, ROLES, PoolSize, configuration, rendered
from updraft.bootstrap.sizing.setting import Setting
from updraft.bootstrap.sizing.system import Least
from updraft.cli.output import json_option, say_json
from updraft.documents import Document
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.bootstrap.sizing import Configuration

AT_LEAST_1 = click.IntRange(min=1)


@click.command(short_help="HTCondor's configuration for a pool of a size, with reasons.")
@click.option("--machines", type=AT_LEAST_1, help="Most machines at once. Default: what updraft.toml allows.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the machine is to be.")
@click.option("--slots", type=AT_LEAST_1, default=8, show_default=True, help="Jobs on a machine at once.")
@click.option("--jobs", type=AT_LEAST_1, help="Jobs that run at once. Default: all slots.")
@click.option("--schedds", type=AT_LEAST_1, help="Submit nodes. Default: one per 10,000 running jobs.")
@click.option(
    "--reach",
    type=click.Choice(["direct", "ccb", "forwarded"]),
    default="direct",
    show_default=True,
    help="How workers are connected to: as `reach` of a worker class.",
)
@click.option(
    "--job-lease", default="20m", show_default=True, help="How long a vanished machine's job waits."
)
@click.option(
    "--htcondor",
    default="feature",
    show_default=True,
    metavar="VERSION",
    help="The HTCondor that it is for: 23.0, 24.0, 25.0 or any from 23.0 on; feature is the newest known.",
)
@click.option("--machine", default="", metavar="ID", help="The worker that it is for: fixes its collector.")
@click.option("--part", type=click.Choice(PARTS), default="all", show_default=True, help="Only this file.")
@json_option
@click.pass_obj
def config(call: Call, /, machines: int | None, role: str, as_json: bool, part: str, **options: Any) -> None:
    """Print HTCondor's configuration for a pool of this size, with the reason above each setting.

    What HTCondor does by itself is left out, and so is what that version doesn't know. Limits of the system
    (systemd, sysctl) follow as comments; --part prints one of them as a file.
    """
    version, machine = options.pop("htcondor"), options.pop("machine")
    if machine and role != "worker":
        raise UsageError(f"--machine is for a worker: a {role} chooses no collector")
    lease = _seconds(options.pop("job_lease"))
    size = PoolSize(_machines(call) if machines is None else machines, job_lease=lease, **options)
    found = configuration(size, role, version=version, machine=machine)
    if as_json:
        say_json(document(size, found))
    else:
        click.echo(rendered(found, part), nl=False)


def _machines(call: Call) -> int:
    from updraft.app.poolsize import largest

    found = largest(call.settings)
    if not found:
        raise UsageError("updraft.toml limits no number of machines: say how many with --machines")
    return found


def _seconds(text: str) -> int:
    from updraft.config.values.units import seconds

    try:
        return round(seconds(text))
    except ValueError as error:
        raise UsageError(f"--job-lease {error}") from error


class PoolConfig(Document):
    """The configuration for a pool of a size."""

    role: Annotated[str, '"head", "submit" or "worker".']
    htcondor: Annotated[str, "The release whose settings they are."]
    machines: Annotated[int, "Machines of the pool at most."]
    running_jobs: Annotated[int, "Jobs that run at once."]
    schedds: Annotated[int, "Submit nodes that share them."]
    settings: Annotated[Sequence[Setting], "What is to be written, in this order."]
    unit: Annotated[Least | None, "HTCondor's unit, where it must be changed."]
    kernel: Annotated[Sequence[Least], "Settings of the kernel."]
    needs: Annotated[Sequence[Least], "Memory, disk and ports."]
    left_out: Annotated[Sequence[Setting], "What HTCondor does by itself, with its default."]
    notes: Annotated[Sequence[str], "What can't be a setting."]


def document(size: PoolSize, found: "Configuration") -> PoolConfig:
    """The same as it is printed as JSON."""
    return PoolConfig.of(
        found, size, htcondor=found.version, running_jobs=size.running, schedds=size.submit_nodes
    )
