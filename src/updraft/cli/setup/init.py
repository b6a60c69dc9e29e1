"""`init`: writes the first updraft.toml, and says what a pool that is already there needs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.verbs import VERBS
from updraft.config import USUAL_PLACES
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.cli.setup.answers import Answered

MACHINES = "10"
FLAGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--pool-name", {"metavar": "NAME", "help": "The pool's name: a tag on every machine."}),
    ("--driver", {"metavar": "NAME", "help": "The kind of cloud: ec2, openstack, local, fake."}),
    ("--cloud", {"metavar": "NAME", "help": "What the file calls this cloud. Default: as its driver."}),
    ("--endpoint", {"metavar": "ADDRESS", "help": "The cloud's address."}),
    ("--region", {"metavar": "NAME", "help": "The cloud's region."}),
    ("--profile", {"metavar": "NAME", "help": "The profile that has the credentials."}),
    ("--os-cloud", {"metavar": "NAME", "help": "The cloud's name in clouds.yaml (driver openstack)."}),
    ("--credential-file", {"metavar": "PATH", "help": "The file that has the credential (driver local)."}),
    ("--set", {"metavar": "KEY=VALUE", "multiple": True, "help": "Any other setting of the driver."}),
    ("--image", {"metavar": "IMAGE", "help": "The workers' image, by name or id."}),
    ("--flavor", {"metavar": "NAME", "multiple": True, "help": "A flavor or pattern; may be repeated."}),
    ("--market", {"type": click.Choice(["on-demand", "spot"]), "multiple": True,
                  "help": "What to buy; both are fine."}),
    ("--key", {"metavar": "NAME", "help": "The key pair; made if it isn't there. `none`: no key pair."}),
    ("--key-file", {"metavar": "PATH", "help": "Where a private key that is made is saved. ~/.ssh/NAME.pem"}),
    ("--machines", {"metavar": "N", "help": f"Machines at one time; none: no limit. Default: {MACHINES}."}),
    ("--cores", {"metavar": "N", "help": "Cores at one time. Default: no limit."}),
    ("--cost-per-hour", {"metavar": "X", "help": "Cost of all machines together. Default: no limit."}),
    ("--min", {"metavar": "N", "type": click.IntRange(0), "help": "Machines that are always kept."}),
    ("--max", {"metavar": "N", "type": click.IntRange(0), "help": "Machines of the class at one time."}),
    ("--idle-limit", {"metavar": "TIME", "help": "How long a machine may be idle, as in 40m. Default: 10m."}),
    ("--collector", {"metavar": "HOST", "help": "The collector, where updraft doesn't run on the head."}),
    ("--trust-domain", {"metavar": "NAME", "help": "The TRUST_DOMAIN of the pool. Default: this machine's."}),
    ("--token", {"metavar": "PATH", "help": "The controller's token, where updraft isn't on the head."}),
    ("--state-dir", {"metavar": "PATH", "help": "Where the ledger is kept. Default: /var/lib/updraft."}),
    ("--pool", {"type": click.Choice(["new", "existing"]), "help": "Is the pool there already?"}),
)  # fmt: skip


def _flags(command: Callable[..., None]) -> Callable[..., None]:
    for flag, how in reversed(FLAGS):
        command = click.option(flag, **how)(command)
    return command


@click.command()
@_flags
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--pool-lines", is_flag=True, help="Only print what an existing pool needs; write nothing.")
@click.pass_obj
def init(call: Call, /, force: bool, pool_lines: bool, **given: Any) -> None:
    """Write a commented updraft.toml: ask at a terminal, take flags elsewhere.

    What a flag says isn't asked. Lists to choose from come from the cloud itself. The key pair is made if
    there is none. Credentials are never asked for nor written: they stay in the cloud's standard places.
    `--pool existing` prints the exact lines for a pool that is already there, and how to undo them.
    """
    from updraft.app.first_cloud import write
    from updraft.cli.setup.answers import answers, pool_lines_of
    from updraft.cli.setup.asking import Asker, somebody_is_there

    asker = Asker(person=somebody_is_there())
    if pool_lines:
        click.echo(pool_lines_of(asker, given), nl=False)
        return
    path = call.target
    if path.exists() and not force:
        raise UsageError(f"{path} is there already; write over it with --force, or name another by --config")
    answered = answers(asker, given)
    key_file = Path(given["key_file"] or f"~/.ssh/{answered.key}.pem")
    write(path, answered.wanted, answered.seen, answered.key, key_file, asker.say)
    _farewell(path, answered, new_pool=given["pool"] == "new" or asker.person)


def _farewell(path: Path, answered: "Answered", *, new_pool: bool) -> None:
    """What to do next."""
    click.echo(f"{path} is written.")
    if answered.pool_lines:
        click.echo(f"\nWhat the pool needs, to be followed in order:\n\n{answered.pool_lines}", nl=False)
        return
    named = "" if str(path) in USUAL_PLACES else f" --config {path}"
    steps = [
        (f"updraft{named} check", "is all of it right?"),
        (f"updraft{named} plan", "what would be done now?"),
    ]
    if new_pool and "userdata" in VERBS:
        steps.insert(0, (f"updraft{named} head launch NAME", "a head there, with HTCondor and updraft on it"))
        steps.insert(1, (f"updraft{named} userdata head", "or its user-data, to launch it yourself"))
    started = "updraft service install --now" if "service" in VERBS else f"updraft{named} run"
    steps.append((started, "let it work"))
    width = max(len(command) for command, _ in steps)
    click.echo("\nNext:")
    for command, why in steps:
        click.echo(f"  {command:<{width}}   {why}")
