"""`updraft web`: the pool in a browser, and the link that opens it."""

import click

from updraft.app.call import Call


@click.group(invoke_without_command=True)
@click.pass_context
def web(context: click.Context) -> None:
    """Show the pool in a browser: a process of its own, which reads the ledger and changes nothing.

    It is served at 127.0.0.1:8642, and to a proxy at a unix socket, as [web] says; Ctrl-C ends it. `updraft
    web open` lets one in.
    """
    if context.invoked_subcommand is not None:
        return
    from updraft.app.watching.web import serve

    serve(context.obj, lambda text: click.echo(text, err=True))


@web.command(name="open", short_help="Print a link that opens the page once.")
@click.option("--user", default="", metavar="NAME", help="For this user, who sees what is that one's own.")
@click.pass_obj
def open_(call: Call, user: str) -> None:
    """Print a link that opens the page once, within five minutes. Takes the ledger's owner, which is root.

    Without --user it opens all of it, as for an operator. From elsewhere, let ssh carry the port:
    `ssh -L 8642:127.0.0.1:8642 HEAD`.
    """
    from updraft.app.watching.web import link

    click.echo(link(call, user))
