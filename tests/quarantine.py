"""`quarantined(reason)`: a test that fails now and then, for a cause that isn't found yet.

It runs, its failure doesn't fail the run, and the run's last lines name it, with the reason and its outcome.
"""

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quarantined(reason): fails now and then; what is known about it")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    if mark := item.get_closest_marker("quarantined"):
        if report.when == "call" or report.failed:
            report.quarantined = (f"{item.nodeid}: {mark.args[0]}", report.outcome)
        if report.failed:
            report.outcome, report.wasxfail = "skipped", "quarantined"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    said = {tuple(report.quarantined) for report in reports if hasattr(report, "quarantined")}
    for test, outcome in dict(sorted(said, reverse=True)).items():  # what failed at its end has failed
        terminalreporter.write_line(f"QUARANTINED, {outcome} {test}")
