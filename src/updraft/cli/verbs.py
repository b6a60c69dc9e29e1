"""Every verb with the place of its code, so that `updraft status` loads nothing of the other verbs."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

import click

# verb: (module of this folder:command, what `updraft --help` says of it). A person meets them in this order.
VERBS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo.demo:demo", "See it all work on this machine alone, then clean up."),
    "init": ("setup.init:init", "Write an updraft.toml: asks at a terminal, else takes flags."),
    "check": ("setup.check:check", "Look at all that a pool needs; say what is amiss and what to do."),
    "images": ("images.catalogue:images", "List the images that the clouds have."),
    "offers": ("images.catalogue:offers", "List what the clouds sell, with prices and what is left."),
    "network": (
        "setup.network:network",
        "Compare security groups with what the pool needs; change them.",
    ),
    "image": ("images.image:image", "Build, make, move, share and delete machine images."),
    "config": ("setup.settings:config", "Check updraft.toml."),
    "import": ("setup.importing:import_", "Turn an earlier system's configuration into updraft.toml."),
    "plan": ("running.look:plan", "Look once, and show what would be done and why. Does nothing."),
    "run": ("running.look:run", "Run the daemon, in the foreground."),
    "replay": ("running.replay:replay", "Make recorded decisions again, and compare them."),
    "status": ("watching.status:status", "Show the pool: jobs, machines, what is going on."),
    "machines": ("watching.status:machines", "List the machines, each with its phase and the reason."),
    "cloud": ("operating.cloud:cloud", "Disable, enable and limit clouds, without a restart."),
    "annex": ("annexes.annex:annex", "Ask for machines by hand, with a lease, apart from the queue."),
    "usage": ("usage.usage:usage", "Who used what, what it cost, and how much of it was used."),
    "metrics": ("watching.metrics:metrics", "Figures for Prometheus, and alarms to people."),
    "report": ("usage.report:report", "What was, and what updraft would have done; as a page, too."),
    "web": ("web.web:web", "The pool in a browser: read only, and a link that opens it."),
    "events": ("watching.events:events", "Show what happened, and why."),
    "simulate": ("simulating.simulate:simulate", "What jobs would cost and how long they would wait."),
    "explain": ("watching.explain:explain", "Why a job waits; what will become of a machine."),
    "drain": ("operating.wishes:drain", "Close machines to new jobs; they go when their jobs are done."),
    "undrain": ("operating.wishes:undrain", "Take a drain back."),
    "terminate": ("operating.wishes:terminate", "End machines now; busy ones only with --kill-jobs."),
    "userdata": ("running.userdata:userdata", "Show what a worker or a head is told at its first boot."),
    "pool": ("pools.pool:pool", "HTCondor's configuration for a pool of a size, and its proof."),
    "head": ("heads.head:head", "Make this machine a head, or launch one in a cloud; bake images."),
    "service": ("setup.service:service", "The systemd unit: install it, look at it, read its log."),
    "tokens": ("tokens.tokens:tokens", "The tokens of workers: list, revoke, rotate their key."),
    "adopt": ("operating.wishes:adopt", "Take an instance into the pool's care."),
    "disown": ("operating.wishes:disown", "Let go of a machine: it stays, and is yours to end."),
    "destroy": ("operating.wishes:destroy", "Drain and remove every machine of the pool."),
    "leftovers": (
        "operating.leftovers:leftovers",
        "What updraft has made in the clouds and nobody uses any more: list it, remove it.",
    ),
    "local": ("setup.local:local", "The cloud on one machine: start, look, stop."),
    "version": ("setup.settings:version", "Say which updraft this is."),
}

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Set up": ("demo", "init", "import", "config", "check", "head", "service", "userdata"),
    "Watch": ("status", "machines", "explain", "events", "plan", "usage", "report", "metrics", "web"),
    "Operate": (
        *("run", "drain", "undrain", "terminate", "annex", "cloud", "adopt", "disown", "tokens"),
        *("destroy", "leftovers"),
    ),
    "Clouds": ("offers", "images", "image", "network", "local"),
    "Try and measure": ("simulate", "pool", "replay", "version"),
}


class Verbs(click.Group):
    """A group that knows its verbs by name and loads one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, loaded now; None where there is no such verb."""
        return load_verb(cmd_name) if cmd_name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that was called. Raises UsageError with the nearest verb where there is none such."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], VERBS, n=1)
            hint = f'did you mean "{close[0]}"?' if close else "`updraft --help` lists them"
            raise click.UsageError(f'there is no verb "{args[0]}"; {hint}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs for `--help`, by what they are for; from the tables alone."""
        widest = max(map(len, VERBS))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), VERBS[name][1]) for name in names])
        formatter.write_paragraph()
        formatter.write_text(
            "To begin: `updraft demo --fake`, then `updraft init`. More of each: `updraft VERB --help`."
        )


def load_verb(name: str) -> click.Command:
    """The command of a verb of the table."""
    module, _, attribute = VERBS[name][0].partition(":")
    command = getattr(import_module(f"updraft.cli.{module}"), attribute)
    assert isinstance(command, click.Command)  # noqa: S101 (the table above is ours; a test loads all of it)
    return command


def installed(name: str) -> bool:
    """True where the code of this verb is there."""
    module = VERBS[name][0].partition(":")[0]
    return find_spec(f"updraft.cli.{module}") is not None
