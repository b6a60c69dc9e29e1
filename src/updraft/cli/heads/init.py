"""`updraft head init`: this machine becomes a head, in one step or not at all. `head undo` takes it back."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from updraft.app.call import Call
from updraft.bootstrap.head.roles import CENTRAL_MANAGER, ROLES, SUBMIT
from updraft.cli.output import ago, count, waiting
from updraft.errors import BootstrapError, UsageError

if TYPE_CHECKING:
    from updraft.app.heads.here import Here
    from updraft.provision.setup.steps import Intent

MACHINES = 100


@click.command(short_help="Turn this machine into a head, and see a job run.")
@click.option(
    "--roles",
    default=",".join(ROLES),
    show_default=True,
    help="What it is to be: the pool's central manager (with updraft), a submit node, or both.",
)
@click.option(
    "--address",
    default="",
    metavar="NAME",
    help="The name by which all others find this machine, whatever its address. Default: its address now.",
)
@click.option(
    "--public-address",
    "public",
    default="",
    metavar="ADDRESS",
    help='The address that is forwarded to this machine, or "metadata": what the cloud tells at each start.',
)
@click.option("--domain", default="", help="Trust and UID domain of the pool. Default: POOL.pool.")
@click.option(
    "--user", default="", help="The first user, with sample jobs at home. Default: sudo's, or user."
)
@click.option(
    "--machines", default=MACHINES, show_default=True, type=click.IntRange(min=1), help="The pool's size."
)
@click.option(
    "--central-manager", "manager", default="", metavar="HOST", help="Of a submit node alone: its pool's."
)
@click.option(
    "--join",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Of a submit node alone: the file with the token that the central manager made for it.",
)
@click.option(
    "--anonymous-read/--no-anonymous-read",
    help="Whoever reaches this machine may read the pool's ads and jobs, jobs on workers too. Default: who "
    "has an account here or a token.",
)
@click.option("--install", "installs", is_flag=True, help="Install HTCondor, where it isn't.")
@click.option("--condor", default="25.x", show_default=True, help="The HTCondor that --install installs.")
@click.option("--replace", "replaces", is_flag=True, help="Replace what is in the way; undo restores it.")
@click.option(
    "--disturb", is_flag=True, help="Even where HTCondor is at work here, with other daemons or with jobs."
)
@click.option(
    "--self-test/--no-self-test", "tests", default=None, help="Run a job. Default: if anything is done."
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and do nothing.")
@click.pass_obj
def init(call: Call, /, **given: Any) -> None:
    """Turn this machine into a head: HTCondor's configuration and keys, updraft's service with the
    updraft.toml that is in force here, a first user with sample jobs; then run a job. Takes root.

    It shows what it writes as a diff, and replaces nothing that it didn't write. Run again, it does what is
    missing; `updraft head undo` takes all of it back.

    A submit node alone (--roles submit) joins the pool of --central-manager with a token made there.
    """
    try:
        _init(call, given)
    except BootstrapError as error:  # a value that can't be what it should be
        raise UsageError(str(error)) from error


def _init(call: Call, given: Mapping[str, Any]) -> None:
    from updraft.app.heads import here

    context = click.get_current_context()
    silent = [
        name for name in here.REMEMBERED if context.get_parameter_source(name) is ParameterSource.DEFAULT
    ]
    found = here.intended(call, given, silent, waiting, click.echo)
    _show(found.intent)
    if not given["replaces"]:
        found.refuse_conflicts()
    if given["dry_run"]:
        return
    tests = given["tests"]
    if found.nothing_to_do():
        click.echo("Nothing to do: this machine is that head already, and at work.")
        tests = bool(tests)
    else:
        found.carry_out(click.echo, disturb=given["disturb"])
        _farewell(found)
    if (tests is None or tests) and SUBMIT in found.intent.spec.roles:
        _self_test(found)


def _show(intent: "Intent") -> None:
    from updraft.provision.setup.tree import State, shown

    for change in intent.changes:
        click.echo(shown(change), nl=False)
    if intent.new_account:
        click.echo(f"# the account {intent.spec.users[0]}: new\n+ a home, no password")
    same = sum(one.state is State.SAME for one in intent.changes)
    if same:
        click.echo(f"# {count(same, 'file')} as it is" if same == 1 else f"# {same} files as they are")


def _farewell(found: "Here") -> None:
    from updraft.provision.setup.files import token_command
    from updraft.provision.setup.steps import start_command

    spec = found.intent.spec
    click.echo(f"This machine is a head ({', '.join(spec.roles)}); `updraft head undo` takes it back.")
    if not found.services.managed:
        click.echo(f"No service manager is at work here: have `{start_command()}` run at each start.")
    if CENTRAL_MANAGER in spec.roles:
        if "$" in spec.condor_host:
            click.echo("Its address has to stay: workers know it by that. --address takes a name instead.")
        click.echo(f"A further submit node needs a token: {token_command(spec.trust_domain)}")


def _self_test(found: "Here") -> None:
    job = found.self_test()
    where = "for which a worker boots" if found.workers else "on this machine itself"
    click.echo(f"Self-test: one job, {where}.")
    with waiting("the self-test's job runs"):
        ran = job()
    click.echo(f"Job {ran.job} is done, after {ago(ran.seconds)}, on {ran.where}.")


@click.command(short_help="Take back what `head init` did to this machine.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and do nothing.")
@click.option(
    "--leave-machines",
    is_flag=True,
    help="Even while machines are there, or nobody can tell: they end by themselves.",
)
@click.pass_obj
def undo(call: Call, dry_run: bool, leave_machines: bool) -> None:
    """Take back what `head init` did: its services end, files that are as it wrote them go, and what was
    there before is there again. Files that were changed since are named, and stay; so do the queue, the
    ledger and updraft.toml. Takes root.

    Refused while the pool has machines, or where the ledger can't say whether it has.
    """
    from updraft.app.heads.undoing import Undoing

    undoing = Undoing(call)
    if undoing.empty:
        click.echo("Nothing to undo: `updraft head init` has written nothing here.")
        return
    for path, as_written in undoing.files():
        click.echo(f"- {path}" if as_written else f"  {path} was changed since, and stays")
    if dry_run:
        return
    if not leave_machines:
        undoing.check_no_machines()
    for line in undoing.carry_out(click.echo):
        click.echo(line)
    click.echo("This machine is no head any more; the queue, the ledger and updraft.toml stay.")
