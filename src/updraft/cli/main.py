"""`updraft`: finds the verb, and turns whatever goes wrong into one sentence and an exit code."""

import os
import sys
import traceback

import click

from updraft import __version__, config
from updraft.app.call import Call
from updraft.app.terminal import plain_streams
from updraft.cli.verbs import Verbs
from updraft.errors import UpdraftError

INTERRUPTED = 130
UNEXPECTED = 1


@click.group(
    name="updraft",
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option(
    "--config",
    "config_file",
    metavar="PATH",
    help="The configuration. Default: $UPDRAFT_CONFIG, ./updraft.toml, /etc/updraft/updraft.toml.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def updraft(context: click.Context, config_file: str | None) -> None:
    """Give an HTCondor pool the machines its jobs need, and take them away without losing a job."""
    context.obj = Call(config_file)


def main() -> None:
    """The entry point: run the verb and leave with its exit code."""
    sys.exit(call(sys.argv[1:]))


def call(arguments: list[str]) -> int:
    """Run one call; its exit code. Every error ends here: one sentence on stderr, never a traceback."""
    with plain_streams():
        return _call(arguments)


def _call(arguments: list[str]) -> int:
    try:
        result = updraft.main(args=arguments, prog_name="updraft", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _say(_click_sentence(error), error.exit_code)
    except UpdraftError as error:
        return _say(str(error), error.exit_code)
    except Exception as error:  # the last resort: a bug must not look like a crash
        if config.wants_traceback():
            traceback.print_exc()
        return _say(_bug(error), UNEXPECTED)


def _click_sentence(error: click.ClickException) -> str:
    sentence = error.format_message().rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None:  # click's own, about one verb
        return f"{sentence}; see `{error.ctx.command_path} --help`"
    return sentence


def _bug(error: Exception) -> str:
    return (
        f"this should not have happened ({type(error).__name__}: {error}); please report it, "
        "with what UPDRAFT_DEBUG=1 shows when it is set"
    )


def _say(sentence: str, code: int) -> int:
    for line in sentence.splitlines() or [""]:
        click.echo(f"updraft: {line}", err=True)
    return code


def _silence_stdout() -> None:
    """Whoever read us has gone: what is still in the buffer must not be written at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
