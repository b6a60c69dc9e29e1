"""What is shipped in monitoring/: rules whose tests pass, and panels, about metrics that there are."""

import configparser
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rigs.monitoring.prometheus import ROOT, tool
from updraft.metrics.families import FAMILIES, PREFIX, FamilyKind

FOLDER = ROOT / "monitoring"
NAME = re.compile(rf"\b{PREFIX}[a-z_]+")
KNOWN = {
    *(name for name, one in FAMILIES.items() if one.kind is not FamilyKind.HISTOGRAM),
    *(f"{name}_{end}" for name, one in FAMILIES.items() if one.kind is FamilyKind.HISTOGRAM
      for end in ("bucket", "sum", "count")),
}  # fmt: skip


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [
        one for one in json.loads((FOLDER / "dashboard.json").read_text())["panels"] if one["type"] != "row"
    ]


def queries() -> Iterator[tuple[str, str]]:
    """The title of each panel with each of its queries."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.slow
def test_prometheus_takes_the_rules_and_their_tests_pass() -> None:
    for call in (["check", "rules", "rules.yml"], ["test", "rules", "tests.yml"]):
        done = subprocess.run(
            [tool("promtool"), *call], cwd=FOLDER, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_prometheus_takes_the_configuration() -> None:
    call = [tool("promtool"), "check", "config", "prometheus.yml"]
    done = subprocess.run(call, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test_of_when_it_calls() -> None:
    tests = yaml.safe_load((FOLDER / "tests.yml").read_text())["tests"]
    called = {
        one["alertname"] for test in tests for one in test.get("alert_rule_test", ()) if one.get("exp_alerts")
    }
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert alerts == called
    assert all(
        rule["annotations"].keys() == {"summary", "description"} for rule in rules() if "alert" in rule
    )


def test_rules_and_panels_ask_for_metrics_that_there_are() -> None:
    asked = {name for rule in rules() for name in NAME.findall(rule["expr"])}
    asked |= {name for _, query in queries() for name in NAME.findall(query)}
    assert len(asked) > 25
    assert asked <= KNOWN


def test_alerts_do_not_go_by_other_rules() -> None:
    """The groups of a file are evaluated in no order: what another has recorded may be of the time before."""
    assert not [rule for rule in rules() if "alert" in rule and "updraft:" in rule["expr"]]


def test_each_panel_says_what_it_shows() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(titles) == len(set(titles)) > 15
    assert all(panel["description"].endswith(".") and panel["targets"] for panel in panels())
    assert all('job=~"$job",instance=~"$instance"' in query for _, query in queries())


def test_the_unit_is_bound_to_nothing_that_it_watches() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(Path(FOLDER / "updraft-metrics.service").read_text())
    assert unit["Service"]["ExecStart"].startswith("/usr/local/bin/updraft metrics")
    assert "updraft.service" not in {
        unit["Unit"].get(key) for key in ("After", "Requires", "BindsTo", "PartOf")
    }
