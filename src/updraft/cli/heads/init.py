"""`updraft head init`: this machine becomes a head, in one step or not at all."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from updraft.app.call import Call
from updraft.bootstrap.head.roles import CENTRAL_MANAGER, ROLES, SUBMIT
from updraft.cli.output import ago, count, waiting
from updraft.errors import BootstrapError, ProblemFound, UsageError
from updraft.provision.setup.service import check_roots_own

if TYPE_CHECKING:
    from updraft.bootstrap import HeadSpec
    from updraft.config.model import Settings
    from updraft.provision.setup.files import Place
    from updraft.provision.setup.host import Host, Services
    from updraft.provision.setup.steps import Intent
    from updraft.provision.setup.tree import Tree

TEST_DEADLINE = 900.0
MACHINES = 100
REMEMBERED = ("roles", "address", "public", "domain", "user", "machines", "manager", "anonymous_read")


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
    from updraft.provision.setup import steps
    from updraft.provision.setup.atwork import check_undisturbed
    from updraft.provision.setup.files import START
    from updraft.provision.setup.host import Host, Services
    from updraft.provision.setup.tree import Tree

    host, tree = Host(), Tree()
    given = _with_what_was_said(given, tree)
    roles = _roles(given["roles"])
    settings, file = _configuration(call, roles, given["config"])
    spec = _spec(host, given, roles, settings)
    place = _place(host, tree, given, spec, file if settings else None)
    if settings is not None and host.is_root() and not given["dry_run"]:
        check_roots_own(settings, file)
    _needs(host, tree, spec, dry_run=given["dry_run"])
    told = {**{name: given[name] for name in REMEMBERED}, "config": str(file) if settings else ""}
    intent = replace(steps.intend(host, tree, spec, place), told=told)
    _show(intent)
    if not given["replaces"]:
        steps.refuse_conflicts(intent.changes)
    if given["dry_run"]:
        return
    services = Services(host, START)
    tests = given["tests"]
    if steps.nothing_to_do(services, intent):
        click.echo("Nothing to do: this machine is that head already, and at work.")
        tests = bool(tests)
    else:
        if intent.condor_changed and not given["disturb"]:
            check_undisturbed(host, tree, services, spec, intent.book)
        steps.carry_out(host, tree, services, intent, click.echo)
        _farewell(services, intent)
    if (tests is None or tests) and SUBMIT in roles:
        _self_test(host, intent, workers=bool(settings) or CENTRAL_MANAGER not in roles)


def _with_what_was_said(given: Mapping[str, Any], tree: "Tree") -> dict[str, Any]:
    """What was said now, and of the rest what was said the last time: without it, nothing changes."""
    context = click.get_current_context()
    known = tree.book().facts.get("told", {})
    silent = [name for name in REMEMBERED if context.get_parameter_source(name) is ParameterSource.DEFAULT]
    said = {name: known[name] for name in silent if name in known}
    return {**given, **said, "config": known.get("config", "")}


def _roles(text: str) -> tuple[str, ...]:
    asked = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in asked if word not in ROLES]
    if unknown or not asked:
        raise UsageError(f'--roles: "{text}" is not {CENTRAL_MANAGER}, {SUBMIT}, or both with a comma')
    return tuple(role for role in ROLES if role in asked)


def _configuration(call: Call, roles: tuple[str, ...], last: str) -> tuple["Settings | None", Path]:
    """updraft.toml, where there is one and this is a central manager: that of the `last` time, if any."""
    from updraft.app.heads.spec import check_for_head
    from updraft.config import load

    if CENTRAL_MANAGER not in roles:
        return None, Path()
    try:
        file = _known_file(call, last).resolve()
    except UsageError:
        if call.asked is not None or last:
            raise
        click.echo("No updraft.toml yet, so no updraft: write one with `updraft init`, then run this again.")
        return None, Path()
    settings = load(file)
    check_for_head(settings, file)
    return settings, file


def _known_file(call: Call, last: str) -> Path:
    """The configuration that was asked for; else that of the `last` time; else the one that is found."""
    if call.asked is not None or os.environ.get("UPDRAFT_CONFIG") or not last:
        return call.file
    if not Path(last).is_file():
        raise UsageError(f"{last}, which this head was made with, is not there; name it with --config")
    return Path(last)


def _spec(
    host: "Host", given: Mapping[str, Any], roles: tuple[str, ...], settings: "Settings | None"
) -> "HeadSpec":
    from updraft.bootstrap import HeadSpec, Install
    from updraft.bootstrap.worker.install import series
    from updraft.bootstrap.worker.reach import METADATA, Reach, reach_settings
    from updraft.provision.setup.condor import sized
    from updraft.provision.setup.host import is_address

    series(given["condor"])  # refuses what is no version
    domain, uid_domain = _domains(given["domain"], settings)
    address = _address(host, given, roles)
    public = {} if given["public"] == METADATA else reach_settings(Reach(host=given["public"]))
    # A stable name is the machine's for HTCondor: so its daemons keep theirs where the host's own changes.
    stable = {"NETWORK_HOSTNAME": address} if address and not is_address(address) else {}
    classes = settings.classes.values() if settings else ()
    spec = HeadSpec(
        trust_domain=domain,
        uid_domain=uid_domain,
        condor_host=address or given["manager"] or "$(IP_ADDRESS)",
        users=(_user(given["user"]),) if SUBMIT in roles else (),
        install=Install(version=given["condor"]),
        broker=any(one.reach == "ccb" and not one.ccb for one in classes),
        settings={**stable, **{name: str(value) for name, value in public.items()}},
        roles=roles,
        anonymous_read=given["anonymous_read"],
    )
    if settings is not None:
        spec = replace(spec, job_lease=settings.pool.job_lease)
    return sized(spec, given["machines"])


def _domains(asked: str, settings: "Settings | None") -> tuple[str, str]:
    """Trust and UID domain, as `userdata head` chooses them."""
    pool = settings.pool if settings else None
    trust = asked or (pool.trust_domain or f"{pool.name}.pool" if pool else "")
    if not trust:
        raise UsageError("--domain: say the pool's trust domain, as there is no updraft.toml that does")
    return trust, asked or (pool.uid_domain if pool else None) or trust


def _user(asked: str) -> str:
    behind = os.environ.get("SUDO_USER", "")
    return asked or (behind if behind != "root" else "") or "user"


def _address(host: "Host", given: Mapping[str, Any], roles: tuple[str, ...]) -> str:
    """The name of this machine, checked; of a submit node alone its central manager's."""
    from updraft.bootstrap.condor_config import split_address
    from updraft.provision.setup.host import check_name

    alone = CENTRAL_MANAGER not in roles
    for flag, value, wanted in (
        ("--central-manager", given["manager"], alone),
        ("--join", given["join"], alone),
        ("--address", given["address"], not alone),
    ):
        if value and not wanted:
            raise UsageError(f"{flag} is not for --roles {','.join(roles)}")
    if alone:
        if not given["manager"]:
            raise UsageError("--central-manager: a submit node alone has to be told where its pool is")
        split_address(given["manager"])
        return ""
    if given["address"]:
        split_address(given["address"])
        check_name(host, given["address"])
    return str(given["address"])


def _place(
    host: "Host", tree: "Tree", given: Mapping[str, Any], spec: "HeadSpec", file: Path | None
) -> "Place":
    from updraft.provision.setup.files import TOKEN, Place, checked_token, token_command
    from updraft.provision.setup.service import unit_text

    token = ""
    if CENTRAL_MANAGER not in spec.roles:
        there = tree.read(TOKEN)
        if given["join"] is None and there is None:
            raise UsageError(
                "--join: a submit node alone needs a token of its pool; on the central manager, as root: "
                f"`{token_command(spec.trust_domain)}` prints one; put it here into a file of mode 0600"
            )
        data = given["join"].read_bytes() if given["join"] is not None else there
        token = checked_token((data or b"").decode(errors="replace"), spec.trust_domain)
    unit = unit_text(file) if file else ""
    run = next((line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")), "")
    return Place(unit=unit, run=run, metadata=host.cloud_machine(), public=given["public"], token=token)


def _needs(host: "Host", tree: "Tree", spec: "HeadSpec", *, dry_run: bool) -> None:
    """Root, and HTCondor; with --install it is installed now."""
    from updraft.provision.setup.host import missing

    if dry_run:
        return
    if not host.is_root():
        raise UsageError("only root may make this machine a head; run it with sudo")
    why = missing(host)
    if not why:
        return
    if not click.get_current_context().params["installs"]:
        raise UsageError(why)
    from updraft.provision.setup.condor import install_condor

    with waiting("installing HTCondor"):
        install_condor(host, tree, spec)


def _show(intent: "Intent") -> None:
    from updraft.provision.setup.tree import State, shown

    for change in intent.changes:
        click.echo(shown(change), nl=False)
    if intent.new_account:
        click.echo(f"# the account {intent.spec.users[0]}: new\n+ a home, no password")
    same = sum(one.state is State.SAME for one in intent.changes)
    if same:
        click.echo(f"# {count(same, 'file')} as it is" if same == 1 else f"# {same} files as they are")


def _farewell(services: "Services", intent: "Intent") -> None:
    from updraft.provision.setup.files import token_command
    from updraft.provision.setup.steps import start_command

    spec = intent.spec
    click.echo(f"This machine is a head ({', '.join(spec.roles)}); `updraft head undo` takes it back.")
    if not services.managed:
        click.echo(f"No service manager is at work here: have `{start_command()}` run at each start.")
    if CENTRAL_MANAGER in spec.roles:
        if "$" in spec.condor_host:
            click.echo("Its address has to stay: workers know it by that. --address takes a name instead.")
        click.echo(f"A further submit node needs a token: {token_command(spec.trust_domain)}")


def _self_test(host: "Host", intent: "Intent", *, workers: bool) -> None:
    from updraft.provision.setup.files import SAMPLES
    from updraft.provision.setup.selftest import run_one

    account = host.account(intent.spec.users[0])
    if account is None:
        raise ProblemFound(f"there is no account {intent.spec.users[0]} to run the self-test as")
    program = f"{account.pw_dir}/{SAMPLES}/test.sh"
    click.echo(f"Self-test: one job, {'for which a worker boots' if workers else 'on this machine itself'}.")
    with waiting("the self-test's job runs"):
        ran = run_one(host, account.pw_name, program, here=not workers, deadline=TEST_DEADLINE)
    click.echo(f"Job {ran.job} is done, after {ago(ran.seconds)}, on {ran.where}.")
