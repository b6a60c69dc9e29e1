"""The metrics in the form that Prometheus reads: over HTTP, or as a file for node_exporter."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import start_http_server
from prometheus_client.registry import Collector

from updraft.errors import UsageError
from updraft.metrics.families import FAMILIES, Family, FamilyKind
from updraft.metrics.reading import FiguresRead
from updraft.metrics.samples import Sample, histograms, samples

Sent = Mapping[tuple[str, str], float]
"""How many messages were sent to people, by receiver and outcome."""


class LedgerCollector(Collector):
    """Reads the ledger anew at each scrape. `sent` says what this process has sent to people."""

    def __init__(self, read: Callable[[], FiguresRead], sent: Callable[[], Sent] = dict) -> None:
        self._read, self._sent = read, sent

    def describe(self) -> Iterator[Metric]:
        """Every metric, without values: the ledger isn't read for it."""
        return iter(_made(one) for one in FAMILIES.values())

    def collect(self) -> Iterator[Metric]:
        """Every metric with its values."""
        picture = self._read()
        found: dict[str, list[Sample]] = {}
        for sample in samples(picture):
            found.setdefault(sample[0], []).append(sample)
        for (receiver, outcome), number in self._sent().items():
            labels = {"receiver": receiver, "outcome": outcome}
            found.setdefault("updraft_notifications_total", []).append(("", labels, number))
        for family in FAMILIES.values():
            yield _filled(family, found.get(family.name, []), picture)


def _made(family: Family) -> Metric:
    if family.kind is FamilyKind.GAUGE:
        return GaugeMetricFamily(family.name, family.help, labels=family.labels)
    if family.kind is FamilyKind.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=family.labels)
    return HistogramMetricFamily(family.name, family.help, labels=family.labels)


def _filled(family: Family, values: list[Sample], picture: FiguresRead) -> Metric:
    metric = _made(family)
    if isinstance(metric, HistogramMetricFamily):
        for labels, buckets, total in histograms(picture, family.counted):
            metric.add_metric([labels[name] for name in family.labels], buckets, total)
    elif isinstance(metric, CounterMetricFamily | GaugeMetricFamily):
        for _, labels, value in values:
            metric.add_metric([labels[name] for name in family.labels], value)
    return metric


def registry(collector: LedgerCollector) -> CollectorRegistry:
    """A registry that has these metrics and no others."""
    made = CollectorRegistry(auto_describe=False)
    made.register(collector)
    return made


def text(collector: LedgerCollector) -> bytes:
    """All metrics as text, once."""
    return generate_latest(registry(collector))


def serve(collector: LedgerCollector, host: str, port: int) -> tuple[int, Callable[[], None]]:
    """Serve them over HTTP in threads of their own; returns the port, and what ends that.

    Port 0 is any that is free.

    Raises UsageError where the address can't be had.
    """
    try:
        server, thread = start_http_server(port, host, registry(collector))
    except OSError as error:
        where = f"{host}:{port}"
        raise UsageError(
            f"{where} can't be listened on ({error.strerror}); name another with --listen"
        ) from error

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

    return server.server_port, end


def write(collector: LedgerCollector, file: Path) -> None:
    """Write them into a file for node_exporter's textfile collector, whole or not at all, for all to read.

    Raises UsageError where that can't be.
    """
    made = ""
    try:
        handle, made = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "wb") as opened:
            opened.write(text(collector))
            os.fchmod(opened.fileno(), 0o644)
        Path(made).replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            if made:
                Path(made).unlink()
        raise UsageError(
            f"{file} can't be written ({error.strerror}); name another with --textfile"
        ) from error
