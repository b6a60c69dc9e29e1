"""`updraft report`: what the record says really was, and beside it what updraft would have done."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.rigs.sim.pastweeks import BEGIN, OFFERS, fields, job, write
from tests.rigs.usage import ALICE, FACTS, book, busy, over
from tests.sim.reports.test_report import Page
from updraft.cli.main import call
from updraft.condor.support.history import RECORDED
from updraft.core.model import Reason, Resources
from updraft.ledger import Ledger
from updraft.recording.pool_record import PoolLook, PoolRecord, RecordReader, Waited
from updraft.sim.reports import really
from updraft.sim.reports.metrics import metrics
from updraft.sim.reports.really import Fate

SETTINGS = """
[pool]
name = "physics"
state_dir = "{state}"
act = {act}
[clouds.c1]
driver = "fake"
[classes.default]
image = "img"
[limits]
cores = 64
[usage]
currency = "EUR"
"""
DAYS = ("--from", "2026-09-04", "--to", "2026-09-06")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "updraft.toml"
    path.write_text(SETTINGS.format(state=tmp_path, act="false"))
    return path


def look(record: PoolRecord, at: float, **changes: int) -> None:
    values = {"idle": 1, "running": 1, "wanted": 2, "claimed": 1, "cores": 8, "machines": 1, "others": 1}
    record.add_look(PoolLook(at, False, **{**values, **changes}), [], [], {})


def called(site: Path, *words: str) -> tuple[int, str]:
    """What the program answers: its exit code, and all that it says."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = call(["--config", str(site), "report", *words])
    return code, said.getvalue()


def report(site: Path, *words: str) -> str:
    code, said = called(site, *words)
    assert code == 0, said
    return said


def told(site: Path, *words: str) -> dict:  # type: ignore[type-arg]
    return json.loads(report(site, *DAYS, "--json", *words))  # type: ignore[no-any-return]


def past(path: Path, *ads: dict, queued: tuple = ()) -> really.Past:  # type: ignore[type-arg]
    with PoolRecord(path) as record:
        look(record, BEGIN)
        look(record, BEGIN + 3600)
        record.add_jobs("head", RECORDED, [fields(ad) for ad in ads], [fields(ad) for ad in queued], BEGIN)
    with RecordReader(path) as reader:
        found = really.read(reader, BEGIN, BEGIN + 7200)
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------- what was


def test_waits_and_run_times_are_those_that_really_were(tmp_path: Path) -> None:
    at = BEGIN + 100
    found = past(
        tmp_path / "r",
        job(1, at, at + 60, at + 360, RequestCpus=4),
        job(2, at, at + 180, at + 240, ExitCode=3),
        job(3, at, None, at + 50, JobStatus=3),
        queued=(job(4, at, at + 500, None), job(5, at, None, None), job(6, at, None, None, JobStatus=5)),
    )
    fates = {one.arrival.owner + str(one.arrival.request.cpus): one.fate for one in found.jobs}
    assert len(fates) == 5
    assert [one.fate for one in found.jobs] == [
        *(Fate.RUNNING, Fate.WAITING, Fate.HELD, Fate.ENDED, Fate.ENDED, Fate.REMOVED),
    ]
    assert sum(one.failed for one in found.jobs) == 1
    both, unfit = really.comparable(found.jobs, [Resources(4, 10**6, 10**9, 0)])
    assert (len(both), unfit) == (4, 0), "what is on hold, or was removed, is nobody's wait"
    made = really.outcome(found, both)
    waits = sorted(float(one) for one in made.jobs.first_start - made.jobs.submitted if one == one)
    assert waits == [60, 180, 500]
    assert metrics(made).wait_max == 3500, "who never began has waited until the last look"
    [big] = [one for one in found.jobs if one.arrival.request.cpus == 4]
    assert big.arrival.seconds == 300


def test_a_job_that_comes_twice_counts_once_and_its_end_goes_first(tmp_path: Path) -> None:
    at = BEGIN + 100
    over = job(1, at, at + 60, at + 360)
    found = past(tmp_path / "r", over, over, queued=(job(1, at, at + 60, None),))
    assert [one.fate for one in found.jobs] == [Fate.ENDED]


def test_what_came_before_the_first_look_or_after_the_last_is_not_of_it(tmp_path: Path) -> None:
    found = past(
        tmp_path / "r",
        job(1, BEGIN - 50, BEGIN + 10, BEGIN + 20),
        job(2, BEGIN + 100, BEGIN + 3700, BEGIN + 3800),
        job(3, BEGIN + 3700, BEGIN + 3701, BEGIN + 3800),
    )
    [one] = found.jobs
    assert (one.fate, one.started, one.ended) == (Fate.WAITING, None, None), "it began after the last look"
    assert one.arrival.seconds == 100, "how long it ran is known all the same"
    assert found.left_out == {"arrived before the record begins": 1}


def test_a_job_of_the_second_of_the_first_look_is_of_the_record(tmp_path: Path) -> None:
    """A queue tells whole seconds."""
    with PoolRecord(tmp_path / "r") as record:
        look(record, BEGIN + 0.4)
        look(record, BEGIN + 3600)
        record.add_jobs("head", RECORDED, [fields(job(1, BEGIN, BEGIN, BEGIN + 90))], [], BEGIN + 3600)
    with RecordReader(tmp_path / "r") as reader:
        found = really.read(reader, BEGIN, BEGIN + 7200)
    assert found is not None
    assert [(one.fate, one.arrival.at, one.started) for one in found.jobs] == [
        (Fate.ENDED, BEGIN + 0.4, BEGIN + 0.4)
    ]


def test_jobs_that_have_not_ended_run_as_long_as_such_jobs_usually_do(tmp_path: Path) -> None:
    at = BEGIN + 100
    found = past(
        tmp_path / "r",
        *(job(4 * number, at, at + 1, at + 1 + 60 * number) for number in (1, 2, 3)),
        queued=(job(16, at, None, None), job(20, at, at + 1000, None), job(17, at, None, None)),
    )
    assumed = {one.arrival.owner: one.arrival.seconds for one in found.jobs if one.fate is Fate.WAITING}
    assert assumed == {"ada": 120, "grace": 120}
    [running] = [one for one in found.jobs if one.fate is Fate.RUNNING]
    assert running.arrival.seconds == 2500, "at least as long as it has run"


def test_nonsense_in_ads_costs_only_itself(tmp_path: Path) -> None:
    at = BEGIN + 100
    wrong = [
        {**job(2, at, at + 1, at + 2), "QDate": "soon"},
        {**job(3, at, at + 1, at + 2), "RequestCpus": "/Expr(1/0)/"},
        {**job(4, at, at + 1, at + 2), "JobStartDate": float("nan"), "JobCurrentStartDate": 1e300},
        {**job(5, at, at + 1, at + 2), "RemoteWallClockTime": -5, "JobCurrentStartDate": at + 99},
        {**job(6, at, at + 1, at + 2), "Owner": 7, "Cmd": [1]},
        {},
    ]
    found = past(tmp_path / "r", job(1, at, at + 60, at + 360), *wrong)
    assert any(one.arrival.seconds == 300 for one in found.jobs)
    both, _ = really.comparable(found.jobs, [Resources(4, 10**6, 10**9, 0)])
    metrics(really.outcome(found, both))


# ---------------------------------------------------------------------------------- what would have been


def test_beside_what_was_stands_what_updraft_would_have_done(site: Path, tmp_path: Path) -> None:
    number = write(tmp_path / "record.sqlite")
    doc = told(site)
    assert doc["watched"]
    assert doc["jobs"]["arrived"] == number
    really_was, would = doc["really"], doc["would"]
    assert really_was["jobs"] == would["jobs"]
    assert would["cost"] > 0
    assert would["currency"] == "EUR"
    assert really_was["cost"] is None, "nobody knows what others' machines cost"
    assert 0 < would["most_cores"] <= 64, "its limits hold"
    assert would["core_hours_claimed"] <= would["core_hours_there"]
    assert doc["estimate"].startswith("an estimate")
    assert sum(user["jobs"] for user in doc["users"]) == number
    assert all(user["would_mean_wait"] is not None for user in doc["users"])
    assert doc["waits"][0]["code"] == "would-launch"
    again = told(site)
    assert again["would"] == would


def test_slower_boots_make_longer_waits(site: Path, tmp_path: Path) -> None:
    write(tmp_path / "record.sqlite", days=0.3)
    assert told(site, "--boot", "10m")["would"]["mean_wait"] > told(site)["would"]["mean_wait"] + 60


def test_jobs_that_no_offer_holds_are_in_neither_column(site: Path, tmp_path: Path) -> None:
    at = BEGIN + 100
    path = tmp_path / "record.sqlite"
    past(path, job(1, at, at + 60, at + 360), job(2, at, at + 60, at + 99, RequestCpus=17))
    with PoolRecord(path) as record:
        offers = json.dumps([asdict(one) for one in OFFERS])
        record.add_look(PoolLook(BEGIN + 3660, False, 0, 0, 0, 0, 8, 1, 1), [], [], {"c1": offers})
    doc = told(site)
    assert (doc["really"]["jobs"], doc["would"]["jobs"], doc["unfit"]) == (1, 1, 1)


def test_where_nobody_knows_what_is_on_sale_it_says_so(site: Path, tmp_path: Path) -> None:
    site.write_text(site.read_text().replace('driver = "fake"', 'driver = "ec2"\nregion = "eu-west-1"'))
    at = BEGIN + 100
    past(tmp_path / "record.sqlite", job(1, at, at + 60, at + 360))
    doc = told(site)
    assert doc["would"] is None
    assert "c1" in doc["why_not"]
    assert doc["really"]["mean_wait"] == 60


def test_who_acted_gets_what_was_and_with_replay_the_rest(site: Path, tmp_path: Path) -> None:
    write(tmp_path / "record.sqlite", days=0.2, acts=True)
    assert told(site)["would"] is None
    assert told(site, "--replay")["would"] is not None


@pytest.mark.parametrize("machines", [0, 2])
def test_what_failed_and_what_its_own_machines_cost_is_the_ledgers(
    site: Path, tmp_path: Path, machines: int
) -> None:
    write(tmp_path / "record.sqlite", days=0.2, acts=True)
    ada = replace(ALICE, user="ada@pool")
    some = [replace(FACTS, id=f"i-{number}", begin=BEGIN) for number in range(machines)]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        looks = {at: [busy(one, ada) for one in some] for at in (BEGIN, BEGIN + 1800)}
        book(ledger, {BEGIN - 1: (), **looks, BEGIN + 3600: [over(one, BEGIN + 3600) for one in some]})
        for at in (BEGIN + 60, BEGIN + 90):
            ledger.event(at, "failed", "i-9", Reason("boot-timeout", "it never joined"))
    doc = told(site)
    [failure] = doc["failures"]
    assert (failure["code"], failure["number"], failure["text"]) == ("boot-timeout", 2, "it never joined")
    costs = {user["name"]: user["cost"] for user in doc["users"]}
    if machines:
        assert doc["really"]["cost"] == pytest.approx(2 * 0.36)
        assert 0 < costs.pop("ada") <= doc["really"]["cost"]
    else:
        assert doc["really"]["cost"] is None
    assert set(costs.values()) == {None}


# ------------------------------------------------------------------------------------------- the page


def test_the_page_loads_nothing_and_escapes_everything(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path / "record.sqlite", days=0.3)
    evil = "<script>alert(1)</script>$\\frac$ \x1b[31m\x00"
    with PoolRecord(tmp_path / "record.sqlite") as record:
        odd = job(9_000, BEGIN + 900, BEGIN + 950, BEGIN + 990, Owner=evil)
        record.add_jobs("x", RECORDED, [fields(odd)], [], BEGIN)
        waits = [Waited(int(BEGIN // 86400), evil, evil, 1e7, evil)]
        record.add_look(PoolLook(BEGIN + 1, False, 1, 1, 1, 1, 1, 1, 1), [], waits, {})
    page = tmp_path / "report.html"
    said = report(site, *DAYS, "--html", str(page))
    assert "report:" in said
    text = page.read_text()
    parser = Page()
    parser.feed(text)
    assert parser.loads == []
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.used) <= set(parser.ids)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert "estimate" in text
    assert "\x1b" not in said


def test_the_terminal_says_the_same_in_words(site: Path, tmp_path: Path) -> None:
    write(tmp_path / "record.sqlite", days=0.3)
    said = report(site, *DAYS)
    for words in ("only watched", "really", "(estimate)", "mean wait", "ada", "EUR"):
        assert words in said


# ------------------------------------------------------------------------------------------ wrong calls


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--month", "soon"), 2, "no month"),
        (("--month", "2026-09", "--from", "2026-09-01"), 2, "--month"),
        ((*DAYS, "--boot", "fast"), 2, "--boot"),
        ((*DAYS, "--boot", "0s"), 2, "--boot"),
        ((*DAYS, "--html", "/no/such/folder/page.html"), 2, "no directory"),
        (
            ("--month", "2020-01"),
            1,
            "no record of 2020-01-01 to 2020-01-31; there is one of 2026-09-04",
        ),
    ],
)
def test_a_wrong_call_is_one_sentence(
    site: Path, tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    write(tmp_path / "record.sqlite", days=0.05)
    found, said = called(site, *words)
    assert found == code
    assert says in said
    assert "Traceback" not in said


def test_without_a_record_it_says_what_to_do(site: Path) -> None:
    code, said = called(site)
    assert code == 1
    assert "there is no record yet" in said
