"""`updraft usage`: who used what and what it cost, by whatever a site goes by, in forms that others read."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_verbs import SETTINGS, Capture, ledger_of, run
from tests.rigs.forms import validate
from tests.rigs.usage import FIRST, november
from updraft.cli.schemas import FORMS
from updraft.ledger.usage_sums import sum_up
from updraft.usage.report import BY

MONTH = ("--month", "2026-11")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "updraft.toml").write_text(f"{SETTINGS}\n[usage]\ncurrency = 'EUR'\n")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "140")
    with ledger_of(tmp_path) as ledger:
        november(ledger)
    return tmp_path


def report(capsys: Capture, *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, "usage", *arguments, "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    validate(document, FORMS["usage"])
    assert document["estimate"] is True
    return dict(document)


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"] or row["kind"]: row for row in document["rows"]}


def test_users_pay_for_what_idles_by_their_shares(site: Path, capsys: Capture) -> None:
    found = report(capsys, *MONTH)
    by = rows(found)
    hour = 3599 / 3600
    alice, bob, pool = by["alice@pool"], by["bob@pool"], by["pool"]
    assert (alice["used_core_hours"], bob["used_core_hours"]) == pytest.approx((2 * hour + 4, hour), abs=1e-5)
    # i-1: 8 core-hours, of which 3 were used; two thirds of the others are alice's. i-3: 4 idle ones.
    assert alice["idle_core_hours"] == pytest.approx((8 - 3 * hour) * 2 / 3 + 4, abs=1e-5)
    assert alice["cost"] == pytest.approx(0.72 * 2 / 3 + 0.72, abs=1e-5)
    assert bob["cost"] == pytest.approx(0.72 / 3, abs=1e-5)
    assert (alice["jobs"], bob["jobs"]) == (2, 1)
    assert (pool["paid_core_hours"], pool["used_core_hours"], pool["cost"]) == (8, 0, None)
    (total,) = found["totals"]
    assert (total["cost"], total["unpriced_machine_hours"], total["currency"]) == (1.44, 1.0, "EUR")
    assert total["paid_core_hours"] == pytest.approx(8 + 8 + 8)
    assert total["paid_core_hours"] == pytest.approx(sum(row["paid_core_hours"] for row in found["rows"]))
    assert total["efficiency"] == pytest.approx((3 * hour + 4) / 24, abs=1e-5)
    assert found["until"] == "2026-11-03T02:00:00Z"


def test_or_the_pool_does(site: Path, capsys: Capture) -> None:
    with (site / "updraft.toml").open("a") as file:
        file.write("idle_paid_by = 'pool'\n")
    by = rows(report(capsys, *MONTH))
    hour = 3599 / 3600
    assert by["alice@pool"]["cost"] == pytest.approx(0.72 / 8 * 2 * hour + 0.36, abs=1e-5)
    assert by["alice@pool"]["efficiency"] == 1
    assert by["pool"]["cost"] == pytest.approx(0.72 / 8 * (8 - 3 * hour) + 0.36, abs=1e-5)


@pytest.mark.parametrize("by", BY)
def test_whatever_it_goes_by_it_comes_to_the_same(site: Path, capsys: Capture, by: str) -> None:
    found = report(capsys, *MONTH, "--by", by)
    (total,) = found["totals"]
    for name in ("paid_core_hours", "used_core_hours", "idle_core_hours", "unpriced_machine_hours", "jobs"):
        assert sum(row[name] for row in found["rows"]) == pytest.approx(total[name], abs=1e-4), name
    assert sum(row["cost"] or 0 for row in found["rows"]) == pytest.approx(total["cost"], abs=1e-4)
    expected = {
        "user": {"alice@pool", "bob@pool", "pool"},
        "group": {"physics", "group", "pool"},
        "annex": {"big", "annex"},
        "cloud": {"here", "there"},
        "class": {"default"},
        "flavor": {"small", "large"},
        "machine": {"here/i-1", "there/i-2", "here/i-3"},
    }
    assert rows(found).keys() == expected[by]


def test_a_day_that_is_summed_up_says_the_same(site: Path, capsys: Capture) -> None:
    before = report(capsys, *MONTH)
    with ledger_of(site) as ledger, ledger._writing() as changed:
        assert changed.execute("SELECT count(*) FROM usage_summed").fetchone() == (0,)
        sum_up(changed, int(FIRST // 86400), over=True)
    assert report(capsys, *MONTH) == before
    assert report(capsys, *MONTH, "--by", "machine")["totals"] == before["totals"]


def test_days_and_months(site: Path, capsys: Capture) -> None:
    first = report(capsys, "--from", "2026-11-01", "--to", "2026-11-01")
    assert {row["name"] for row in first["rows"]} == {"alice@pool", "bob@pool", ""}
    assert report(capsys, "--month", "2026-10")["rows"] == []
    assert report(capsys, "--to", "2026-11-30")["from"] == "2026-11-01"
    for wrong in (
        ("--month", "2026-13"),
        ("--month", "11"),
        ("--from", "soon"),
        ("--from", "2026-11-02", "--to", "2026-11-01"),
        ("--month", "2026-11", "--to", "2026-11-01"),
        ("--from", "1969-12-31"),
    ):
        code, out, err = run(capsys, "usage", *wrong)
        assert (code, out, len(err.splitlines())) == (2, "", 1), wrong


def test_energy_where_the_site_says_what_it_takes(site: Path, capsys: Capture) -> None:
    with (site / "updraft.toml").open("a") as file:
        file.write("watts_per_core = 5.0\nco2_per_kwh = 400\n")
    (total,) = report(capsys, *MONTH)["totals"]
    assert (total["kwh"], total["co2_kg"]) == (0.12, 0.048)
    assert sum(row["kwh"] for row in report(capsys, *MONTH)["rows"]) == pytest.approx(0.12)
    with (site / "updraft.toml").open("a") as file:
        file.write("[usage.clouds.here]\nco2_per_kwh = 0\n[clouds.there]\ndriver = 'fake'\n")
    by = rows(report(capsys, *MONTH, "--by", "cloud"))
    assert (by["here"]["co2_kg"], by["there"]["co2_kg"]) == (0, 0.016)


def test_a_table_for_people(site: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "usage", *MONTH)
    assert code == 0
    assert "estimate, not the bill" in out
    assert "alice@pool" in out
    assert "(used by nobody)" in out
    assert "1.20 EUR" in out
    assert "the price of 1 machine-hours isn't known" in out
    _, out, _ = run(capsys, "usage", "--month", "2026-10")
    assert out.splitlines()[-2:] == ["there are no records of before 2026-11-01", "nothing was used"]


def test_a_spreadsheets_csv_and_lines_of_json(site: Path, capsys: Capture) -> None:
    _, out, _ = run(capsys, "usage", *MONTH, "--format", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    assert [row["name"] for row in found] == ["alice@pool", "bob@pool", ""]
    assert {row["note"] for row in found} == {"estimate, not the bill"}
    assert float(found[0]["cost"]) == pytest.approx(1.2, abs=1e-3)
    assert found[-1]["cost"] == "", "unknown is not zero"
    _, out, _ = run(capsys, "usage", *MONTH, "--format", "jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["name"] for line in lines] == ["alice@pool", "bob@pool", ""]
    assert all(line["note"] == "estimate, not the bill" for line in lines)


def test_a_machine_says_what_it_was_and_why_it_ended(site: Path, capsys: Capture) -> None:
    by = rows(report(capsys, *MONTH, "--by", "machine"))
    gone, there = by["here/i-1"]["machine"], by["here/i-3"]["machine"]
    assert (gone["flavor"], gone["market"], gone["cores"], gone["region"]) == ("small", "spot", 4, "north")
    assert (gone["price"], gone["source"], gone["score"]) == (0.36, "site", 12.5)
    assert (gone["requested"], gone["seen_until"]) == ("2026-11-01T00:00:00Z", "2026-11-01T02:00:00Z")
    assert (gone["ended"], gone["why"]) == ("idle-limit", "nothing to do")
    assert (there["annex"], there["owner"], there["ended"]) == ("big", "alice", None)
    assert by["there/i-2"]["machine"]["price"] is None
    assert all(row["machine"] is None for row in report(capsys, *MONTH)["rows"])
    _, out, _ = run(capsys, "usage", *MONTH, "--by", "machine", "--format", "csv")
    found = {row["instance"]: row for row in csv.DictReader(io.StringIO(out))}
    assert (found["i-1"]["why"], found["i-3"]["why"], found["i-2"]["price"]) == ("nothing to do", "", "")


def test_a_site_without_records_is_told_so(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger, ledger._writing() as rows:
        rows.execute("DELETE FROM notes")
    for more in ((), ("--format", "apel")):
        code, out, err = run(capsys, "usage", *MONTH, *more)
        assert (code, out, len(err.splitlines())) == (1, "", 1)
        assert "no records of what was used yet" in err
    for file in (site / "state").iterdir():
        file.unlink()
    code, _, err = run(capsys, "usage", *MONTH)
    assert (code, len(err.splitlines())) == (1, 1)


def test_wrong_settings_are_named_with_their_line(site: Path, capsys: Capture) -> None:
    file = site / "updraft.toml"
    file.write_text(file.read_text().replace("'EUR'", "'euro'"))
    code, _, err = run(capsys, "usage", *MONTH)
    assert code == 2
    assert 'usage.currency: "euro" is no currency; write its three letters, as in "EUR"' in err
