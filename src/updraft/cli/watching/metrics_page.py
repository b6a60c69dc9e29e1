"""The parts of the reference's page of metrics, from the table of them."""

from collections.abc import Callable, Iterator

from updraft.metrics.families import GROUPS

INTRO = """What `updraft metrics` tells Prometheus, from the daemon's last look and from what the ledger has
counted. Counters and histograms outlive the daemon: they begin with the ledger. Money is in the currency of
the site's prices. A value that isn't known is absent, not 0. How to set it up, and the alarms:
[monitoring](../howto/monitoring.md)."""


def metrics_parts(table: Callable[[list[str], list[list[str]]], str]) -> Iterator[str]:
    """An introduction, then a table for each group of metrics, which `table` makes of titles and rows."""
    yield " ".join(INTRO.split())
    for title, families in GROUPS.items():
        rows = [
            [f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help]
            for one in families
        ]
        yield f"## {title}\n\n{table(['metric', 'type', 'labels', 'meaning'], rows)}"
