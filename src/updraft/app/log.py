"""The log of a process that stays: lines on stderr, which nobody can give orders by, without secrets."""

import sys
from typing import Any

import structlog

from updraft.app.terminal import printable, raw
from updraft.ledger.secrets import scrubbed


def _plain(_logger: object, _method: str, event: Any) -> Any:
    # The colours are the log's own; what it says of others isn't.
    return {key: printable(said) if isinstance(said, str) else said for key, said in event.items()}


def _scrubbed(_logger: object, _method: str, event: Any) -> Any:
    # Errors quote what a cloud or a daemon has said, and that may be anything. Before the line is made: what
    # is taken out of a text of JSON could take its quotes along.
    return scrubbed({key: said if isinstance(said, _PLAIN) else str(said) for key, said in event.items()})


_PLAIN = (str, int, float, bool, type(None), dict, list, tuple)


def start_log(form: str) -> None:
    """Log lines to stderr: for people, or one JSON object a line. What looks like a secret is left out."""
    shape: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _scrubbed,
            _plain,
            shape,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.PrintLoggerFactory(raw(sys.stderr)),
    )
