"""`updraft usage` in the forms of other programs, read back by these where there is one, else by rules."""

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_usage import MONTH
from tests.cli.test_verbs import SETTINGS, Capture, ledger_of, run
from tests.rigs.usage import FACTS, FIRST, THIRD, november
from updraft.usage.formats import focus
from updraft.usage.period import moment


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "updraft.toml").write_text(f"{SETTINGS}\n[usage]\ncurrency = 'EUR'\nsite = 'SITE-LCG2'\n")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    with ledger_of(tmp_path) as ledger:
        november(ledger)
    return tmp_path


def written(site: Path, capsys: Capture, form: str, *more: str) -> Path:
    file = site / f"out.{form}"
    code, out, err = run(capsys, "usage", *(more or MONTH), "--format", form, "--output", str(file))
    assert (code, out) == (0, ""), err
    assert [one.name for one in site.iterdir() if one.name.startswith(".")] == []
    return file


# ------------------------------------------------------------------------------------------------ FOCUS

# Of FOCUS 1.0: what may not be empty, and the values that a column may have.
NEVER_NULL = (
    *("BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart"),
    *("ChargeCategory", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost"),
    *("InvoiceIssuerName", "ListCost", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
)
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other", ""},
    "ServiceCategory": {"Compute"},
}


def test_finops_tools_take_machine_days(site: Path, capsys: Capture) -> None:
    code, out, err = run(capsys, "usage", *MONTH, "--format", "focus")
    assert code == 0
    assert "1 machine-days of unknown price are left out" in err
    found = list(csv.DictReader(io.StringIO(out)))
    assert [row["ResourceId"] for row in found] == ["i-1", "i-3"]
    assert sum(float(row["EffectiveCost"]) for row in found) == pytest.approx(1.44)
    for row in found:
        assert tuple(row) == focus.COLUMNS
        assert all(row[name] for name in NEVER_NULL)
        assert all(row[name] in values for name, values in ALLOWED.items())
        assert float(row["BilledCost"]) == 0, "nobody was billed by an estimate"
        assert (row["x_Estimate"], row["ChargeDescription"][:22]) == ("true", "estimate, not the bill")
        assert float(row["ListUnitPrice"]) * float(row["PricingQuantity"]) == pytest.approx(
            float(row["ListCost"])
        )
        assert isinstance(json.loads(row["Tags"]), dict)
        for name in (name for name in row if name.endswith(("Start", "End"))):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", row[name])
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        own = {name for name in row if name[:1].islower()}
        assert all(name.startswith("x_") for name in own)


def test_focus_wants_a_currency(site: Path, capsys: Capture) -> None:
    settings = site / "updraft.toml"
    settings.write_text(settings.read_text().replace("currency = 'EUR'\n", ""))
    file = site / "out.csv"
    file.write_text("as it was")
    with ledger_of(site) as ledger, ledger._writing() as rows:
        rows.execute("UPDATE usage_days SET currency = ''")
        rows.execute("DELETE FROM usage_meters")
    code, _, err = run(capsys, "usage", *MONTH, "--format", "focus", "--output", str(file))
    assert (code, len(err.splitlines())) == (2, 1)
    assert file.read_text() == "as it was", "nothing half done"


# ------------------------------------------------------------------------------------------------- APEL

FIELDS = {
    *("RecordCreateTime", "VMUUID", "SiteName", "CloudComputeService", "MachineName", "LocalUserId"),
    *("LocalGroupId", "GlobalUserName", "FQAN", "Status", "StartTime", "EndTime", "SuspendDuration"),
    *("WallDuration", "CpuDuration", "CpuCount", "NetworkType", "NetworkInbound", "NetworkOutbound"),
    *("PublicIPCount", "Memory", "Disk", "BenchmarkType", "Benchmark", "StorageRecordId", "ImageId"),
    "CloudType",
}
NUMBERS = ("RecordCreateTime", "StartTime", "EndTime", "WallDuration", "CpuDuration", "CpuCount", "Memory")


def apel_records(text: str) -> list[dict[str, str]]:
    """A message as EGI's page on cloud accounting has it: a header, then records that end with %%."""
    header, _, rest = text.partition("\n")
    assert header == "APEL-cloud-message: v0.4"
    assert rest.endswith("%%\n")
    blocks = [block.strip() for block in rest.split("%%\n")[:-1]]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_apel_takes_machines(site: Path, capsys: Capture) -> None:
    found = {one["VMUUID"]: one for one in apel_records(written(site, capsys, "apel").read_text())}
    assert found.keys() == {"i-1", "i-2", "i-3"}
    for one in found.values():
        assert one.keys() <= FIELDS
        assert {"VMUUID", "SiteName", "StartTime"} <= one.keys()
        assert all(one[name].isdecimal() for name in NUMBERS if name in one)
        assert ("EndTime" in one) == (one["Status"] == "completed")
        assert int(one["WallDuration"]) * int(one["CpuCount"]) >= int(one["CpuDuration"])
        assert one["SiteName"] == "SITE-LCG2"
    assert (found["i-1"]["WallDuration"], found["i-1"]["CpuDuration"]) == ("7200", str(3 * 3599))
    assert (found["i-1"]["BenchmarkType"], found["i-1"]["Benchmark"]) == ("hepscore23", "12.5")
    assert (found["i-3"]["Status"], found["i-3"]["LocalUserId"]) == ("started", "alice")
    assert int(found["i-3"]["RecordCreateTime"]) == THIRD.begin + 7200


def test_apels_record_is_of_a_whole_life(site: Path, capsys: Capture) -> None:
    """Of a later month it has what was before, and what has ended before isn't in it."""
    with ledger_of(site) as ledger, ledger._writing() as rows:
        rows.execute("UPDATE usage_days SET day = day - 1 WHERE machine = 1 OR machine = 2")
        rows.execute(
            "INSERT INTO usage_days SELECT day - 3, machine, began, until, alive, joined, claimed, unseen, "
            "doubtful, core_seconds, gpu_seconds, cost, unpriced, jobs, lost, price, currency, source, "
            "benchmark, score, ended, why FROM usage_days WHERE machine = 1"
        )
    found = apel_records(
        written(site, capsys, "apel", "--from", "2026-10-31", "--to", "2026-10-31").read_text()
    )
    assert {one["VMUUID"]: one["WallDuration"] for one in found} == {"i-1": "14400", "i-2": "3600"}


def test_no_name_makes_a_line_of_its_own(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger, ledger._writing() as rows:
        rows.execute("UPDATE usage_machines SET owner = ?", ("eve\n%%\nVMUUID: other",))
    assert len(apel_records(written(site, capsys, "apel").read_text())) == 3


# ---------------------------------------------------------------------------------------------- AUDITOR


def auditor_records(site: Path, capsys: Capture) -> list[dict[str, Any]]:
    return list(json.loads(written(site, capsys, "auditor").read_text()))


def test_auditor_takes_what_users_had(site: Path, capsys: Capture) -> None:
    found = auditor_records(site, capsys)
    assert len({one["record_id"] for one in found}) == len(found) == 3
    by = {(one["meta"]["user_id"][0], one["meta"]["group_id"][0]): one for one in found[:2]}
    alice = by["alice@pool", "physics"]
    (cores,) = [one for one in alice["components"] if one["name"] == "Cores"]
    assert cores["amount"] * alice["runtime"] == pytest.approx(2 * 3599, abs=cores["amount"])
    assert cores["scores"] == [{"name": "hepscore23", "value": 12.5}]
    assert alice["start_time"] == moment(FIRST)
    assert alice["meta"]["site_id"] == ["SITE-LCG2"]
    assert by["bob@pool", "none"]["runtime"] == round(3599 / 4)
    texts = [one["record_id"] for one in found] + [text for one in found for text in one["meta"]["user_id"]]
    assert not any(sign in text for text in texts for sign in '/()"<>\\{}')


def test_auditors_own_client_makes_the_same_of_them(site: Path, capsys: Capture) -> None:
    pyauditor = pytest.importorskip("pyauditor")
    for one in auditor_records(site, capsys):
        start, stop = (datetime.fromisoformat(one[name]) for name in ("start_time", "stop_time"))
        record = pyauditor.Record(one["record_id"], start).with_stop_time(stop)
        meta = pyauditor.Meta()
        for name, values in one["meta"].items():
            meta = meta.insert(name, values)
        record = record.with_meta(meta)
        for part in one["components"]:
            component = pyauditor.Component(part["name"], part["amount"])
            for score in part["scores"]:
                component = component.with_score(pyauditor.Score(score["name"], score["value"]))
            record = record.with_component(component)
        assert json.loads(record.to_json()) == one


# ---------------------------------------------------------------------------------------------- Parquet


def test_parquet_is_read_by_pandas(site: Path, capsys: Capture) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(written(site, capsys, "parquet"))
    assert list(frame["name"]) == ["alice@pool", "bob@pool", ""]
    assert set(frame["note"]) == {"estimate, not the bill"}
    assert frame["cost"].sum() == pytest.approx(1.44)
    assert frame["cost"].isna().sum() == 1, "unknown is not zero"


def test_without_pyarrow_it_says_what_to_install(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    file = site / "out.parquet"
    code, _, err = run(capsys, "usage", *MONTH, "--format", "parquet", "--output", str(file))
    assert (code, file.exists()) == (2, False)
    assert "install the extra `parquet`" in err


def test_a_file_that_cannot_be_written_is_named(site: Path, capsys: Capture) -> None:
    for form in ("csv", "focus"):
        code, _, err = run(capsys, "usage", *MONTH, "--format", form, "--output", str(site / "none" / "x"))
        assert (code, len(err.splitlines())) == (2, 1)
    code, _, err = run(capsys, "usage", *MONTH, "--output", str(site / "x"))
    assert (code, (site / "x").exists()) == (2, False)


def test_a_spreadsheet_takes_no_name_for_a_formula(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger, ledger._writing() as rows:
        rows.execute("UPDATE usage_users SET user = '=HYPERLINK(\"evil\")' WHERE user = 'bob@pool'")
    names = [row["name"] for row in csv.DictReader(io.StringIO(written(site, capsys, "csv").read_text()))]
    assert '\'=HYPERLINK("evil")' in names
    assert FACTS.id == "i-1"
