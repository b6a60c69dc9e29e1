"""A cloud's own bill beside the estimates: of this pool's machines, each once, whatever else is in it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_usage import MONTH, report, rows, site
from tests.cli.test_verbs import Capture, ledger_of, run
from tests.rigs.forms import validate
from updraft.cli.schemas import FORMS
from updraft.ledger.usage_sums import sum_up

__all__ = ["site"]

LINE = {
    "ResourceId": "arn:aws:ec2:eu-west-1:123456789012:instance/i-1",
    "BilledCost": "0.60",
    "BillingCurrency": "EUR",
    "ChargePeriodStart": "2026-11-01T00:00:00Z",
    "ChargePeriodEnd": "2026-11-02T00:00:00Z",
    "ServiceName": "Compute",
}


def bill(site: Path, *lines: dict[str, str], name: str = "bill.csv", without: str = "") -> str:
    with (site / name).open("w", newline="") as file:
        names = [name for name in LINE if name != without]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(LINE | line for line in lines)
    return str(site / name)


def imported(capsys: Capture, *files: str) -> dict[str, Any]:
    code, out, err = run(capsys, "usage", "import", *files, "--json")
    assert code == 0, err
    document = json.loads(out)
    validate(document, FORMS["usage import"])
    return dict(document)


def test_the_bill_stands_beside_the_estimate(site: Path, capsys: Capture) -> None:
    disk, other = {"BilledCost": "0.12"}, {"ResourceId": "i-9", "BilledCost": "99"}
    third = {
        "ResourceId": "i-3",
        "ChargePeriodStart": "2026-11-03 00:00:00 UTC",
        "ChargePeriodEnd": "2026-11-03T12:00:00",
    }
    said = imported(capsys, bill(site, {}, disk, other, third))
    assert (said["rows"], said["others"], said["machine_days"], said["billed"]) == (4, 1, 2, {"EUR": 1.32})
    for by in ("machine", "class", "annex", "cloud", "flavor"):
        found = report(capsys, *MONTH, "--by", by)
        assert sum(row["billed"] or 0 for row in found["rows"]) == pytest.approx(1.32), by
        assert found["totals"][0]["billed"] == pytest.approx(1.32)
    by_machine = rows(report(capsys, *MONTH, "--by", "machine"))
    assert (by_machine["here/i-1"]["billed"], by_machine["here/i-1"]["cost"]) == (0.72, 0.72)
    assert by_machine["there/i-2"]["billed"] is None, "no bill says anything of it"
    _, out, _ = run(capsys, "usage", *MONTH)
    assert "billed" in out


def test_users_bear_what_was_billed_as_they_bear_the_estimate(site: Path, capsys: Capture) -> None:
    imported(capsys, bill(site, {"BilledCost": "1.44"}))
    with ledger_of(site) as ledger, ledger._writing() as changed:
        sum_up(changed, 20_758, over=True)
    by = rows(report(capsys, *MONTH))
    assert by["alice@pool"]["billed"] == pytest.approx(1.44 * 2 / 3, abs=1e-4)
    assert by["bob@pool"]["billed"] == pytest.approx(1.44 / 3, abs=1e-4)
    assert by["pool"]["billed"] == pytest.approx(0, abs=1e-4)
    with (site / "updraft.toml").open("a") as file:
        file.write("idle_paid_by = 'pool'\n")
    by = rows(report(capsys, *MONTH))
    assert by["bob@pool"]["billed"] == pytest.approx(1.44 / 8, abs=1e-3)
    assert by["pool"]["billed"] == pytest.approx(1.44 * 5 / 8, abs=1e-3)


def test_the_same_bill_twice_is_one_and_its_files_are_one_bill(site: Path, capsys: Capture) -> None:
    whole = bill(site, {}, {"BilledCost": "0.4"})
    for _ in range(2):
        imported(capsys, whole)
        assert report(capsys, *MONTH)["totals"][0]["billed"] == pytest.approx(1.0)
    imported(capsys, bill(site, {}), bill(site, {"BilledCost": "-0.1"}, name="more.csv"))
    assert report(capsys, *MONTH)["totals"][0]["billed"] == pytest.approx(0.5), "a later bill, with a credit"


def test_a_period_of_many_days_is_spread_over_them(site: Path, capsys: Capture) -> None:
    long = {"ChargePeriodStart": "2026-10-31T00:00:00Z", "ChargePeriodEnd": "2026-11-02T00:00:00Z"}
    assert imported(capsys, bill(site, long))["machine_days"] == 2
    assert report(capsys, *MONTH)["totals"][0]["billed"] == pytest.approx(0.3)


def test_one_bad_row_costs_itself(site: Path, capsys: Capture) -> None:
    bad = (
        {"BilledCost": "dear"},
        {"BilledCost": "nan"},
        {"BillingCurrency": ""},
        {"ChargePeriodStart": "soon"},
        {"ChargePeriodEnd": "2026-10-01T00:00:00Z"},
        {"ChargePeriodEnd": "2099-10-01T00:00:00Z"},
    )
    file = bill(site, *bad, {})
    code, out, err = run(capsys, "usage", "import", file)
    assert code == 1
    assert "0.60 EUR of 1 machine-days imported" in out
    assert f"6 rows can't be read and are left out, the first one: {file}, row 1" in err
    assert imported(capsys, file)["unread"] == 6


def test_what_is_no_bill_is_named(site: Path, capsys: Capture) -> None:
    packed = site / "bill.csv.gz"
    packed.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")
    empty = site / "empty.csv"
    empty.write_text("")
    for file in (
        str(packed),
        str(empty),
        str(site / "none"),
        str(site),
        bill(site, {}, without="BilledCost"),
    ):
        code, out, err = run(capsys, "usage", "import", file)
        assert (code, out, len(err.splitlines())) == (2, "", 1), file
    assert report(capsys, *MONTH)["totals"][0]["billed"] is None
