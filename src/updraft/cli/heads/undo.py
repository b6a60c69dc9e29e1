"""`updraft head undo`: what `head init` did to this machine is taken back."""

import click

from updraft.app.call import Call


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
