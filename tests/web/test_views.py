"""What the views say, without a browser: pages, JSON and CSV of the same documents."""

import csv
import io
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.rigs import ledgers
from tests.rigs.pages import PLACES, Page, Read, page_over
from tests.rigs.web.troubled import AT, LAUNCHED, troubled
from updraft.ledger import Ledger
from updraft.ledger.reader import Reader
from updraft.web.drawing import TEMPLATES
from updraft.web.site import VIEWS
from updraft.web.views import lives


@pytest.fixture
def trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of a pool with trouble, to an operator."""
    monkeypatch.setattr(time, "time", lambda: AT)
    page = page_over(troubled(tmp_path / "ledger.sqlite")).enter()
    yield page
    page.pictures.close()


def rows(page: Page, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(page.ask(address).text)))


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_a_page_and_json(page: Page, name: str) -> None:
    page.enter()
    answer = page.ask(f"/{name}{PLACES.get(name, '')}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    read = Read(answer.text)
    assert len(read.all("h1")) == 1
    assert read.all("html") == [{"lang": "en"}]
    document = json.loads(page.ask(f"/{name}.json{PLACES.get(name, '')}").text)
    assert document["version"] == 1
    assert document["looked_at"] == pytest.approx(time.time(), abs=600)


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.csv])
def test_a_table_has_the_rows_of_the_document(page: Page, name: str) -> None:
    page.enter()
    query = PLACES.get(name, "")
    document = json.loads(page.ask(f"/{name}.json{query}").text)
    assert len(rows(page, f"/{name}.csv{query}")) == len(document["rows"])


@pytest.mark.parametrize("name", VIEWS)
def test_an_open_page_is_drawn_anew_without_its_frame(page: Page, name: str) -> None:
    page.enter()
    part = page.ask(f"/{name}{PLACES.get(name, '')}", [("HX-Request", "true")])
    assert part.status == 200
    assert "<html" not in part.text
    assert len(Read(part.text).all("h1")) == 1


@pytest.mark.parametrize("name", VIEWS)
def test_headings_labels_and_ids_are_in_order(page: Page, name: str) -> None:
    read = Read(page.enter().ask(f"/{name}{PLACES.get(name, '')}").text)
    levels = [int(tag[1]) for tag, _ in read.tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in read.tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
    assert all("scope" in attributes for attributes in read.all("th"))
    for attributes in read.all("svg"):
        assert attributes.get("role") == "img" or attributes.get("aria-hidden") == "true"


def test_the_overview_says_what_needs_a_person(page: Page) -> None:
    document = json.loads(page.enter().ask("/overview.json").text)
    said = {row["text"] for row in document["rows"]}
    assert any("may cost 900 per hour" in text for text in said)
    assert not any("more machines are bought as those on their way join" in text for text in said)
    assert document["machines"]["failed_today"] > 0
    assert document["sums"][0]["month"] > 0


def test_a_budget_is_a_cap_where_it_is_known_what_was_spent(page: Page) -> None:
    caps = json.loads(page.enter().ask("/overview.json").text)["limits"]
    assert [(one["of"], one["used"], one["most"]) for one in caps if one["what"].startswith("cost this")] == [
        ("the pool", 950.0, 1000.0)
    ]
    assert caps[0]["part"] == 0.95


def test_a_daemon_that_is_gone_is_said_with_the_age_of_the_picture(tmp_path: Path) -> None:
    now = time.time()
    page = page_over(ledgers.made(tmp_path / "ledger.sqlite", now=now - 7200)).enter()
    text = page.ask("/overview").text
    assert "No daemon is at work: this is what was seen" in text
    assert "2h ago" in text
    page.pictures.close()


def test_waiting_jobs_have_their_reasons_and_remedies(page: Page) -> None:
    page.enter()
    every = json.loads(page.ask("/waiting.json").text)
    assert sum(one["jobs"] for one in every["lengths"]) == every["jobs"]["idle"]
    assert sum(one["jobs"] for one in every["reasons"]) == every["jobs"]["idle"]
    some = rows(page, "/waiting.csv?reason=limit-cost")
    assert some
    assert {row["code"] for row in some} == {"limit-cost"}
    assert all("cost_per_hour" in row["remedy"] for row in some)
    assert {row["owner"] for row in rows(page, "/waiting.csv?owner=u001")} == {"u001"}


def test_a_job_is_found_by_its_number(page: Page) -> None:
    page.enter()
    exact = json.loads(page.ask("/search.json?what=1020.0").text)
    assert exact["exact"]
    assert [group["first_job"] for group in exact["groups"]] == ["1020.0"]
    near = json.loads(page.ask("/search.json?what=1023.4").text)
    assert not near["exact"]
    assert near["groups"][0]["first_job"] == "1020.0"
    assert "updraft explain 1023.4" in page.ask("/search?what=1023.4").text
    assert "condor_history 7" in page.ask("/search?what=7").text


def test_a_user_finds_his_own_jobs_and_machines_only(page: Page) -> None:
    page.enter("u003")
    mine = json.loads(page.ask("/mine.json?user=u001").text)
    assert mine["user"] == "u003"
    assert {row["owner"] for row in mine["rows"]} == {"u003"}
    assert mine["machines"]
    assert mine["cost"]["cost"] > 0
    assert [row["name"] for row in mine["annexes"]] == ["night"]
    searched = json.loads(page.ask("/search.json?what=1040").text)  # of u004
    assert {group["owner"] for group in searched["groups"]} <= {"u003"}
    assert json.loads(page.ask("/search.json?what=i-0000").text)["machines"] == []
    assert page.ask("/group?key=0000000000000004").status == 404
    assert page.ask(f"/machine?id={mine['machines'][0]['id']}").status == 200
    others = {row["id"] for row in mine["machines"]}
    some = next(f"i-{number:08x}" for number in range(40) if f"i-{number:08x}" not in others)
    assert page.ask(f"/machine?id={some}").status == 404


def test_machines_are_filtered_and_a_failed_one_shows_its_console(page: Page) -> None:
    page.enter()
    assert {row["cloud"] for row in rows(page, "/machines.csv?cloud=uni&gone=1")} == {"uni"}
    failed = rows(page, "/machines.csv?failed=1")
    assert failed
    assert all(row["joined_at"] == "" for row in failed)
    texts = [page.ask(f"/machine?id={row['id']}").text for row in failed]
    assert any("no route to head" in text for text in texts)


def test_a_life_is_drawn_from_its_request_to_its_end() -> None:
    machine = {
        "requested_at": 100.0, "joined_at": 200.0, "busy_at": 500.0, "ended_at": None, "phase": "joined",
        "reason": {"code": "idle", "text": ""}, "drain": None,
    }  # fmt: skip
    assert list(lives.parts(machine, 1100.0)) == [
        ("booting", 100.0, 200.0), ("busy", 200.0, 500.0), ("idle", 500.0, 1100.0),
        ("draining", 1100.0, 1100.0),
    ]  # fmt: skip
    assert [one["kind"] for one in lives.drawn(machine, 400.0, 1100.0)] == ["busy", "idle"]
    failed = {**machine, "joined_at": None, "ended_at": 700.0, "phase": "gone"}
    assert list(lives.parts(failed, 1100.0)) == [("failed", 100.0, 700.0)]


def test_the_log_is_read_back_page_by_page(page: Page) -> None:
    page.enter()
    first = json.loads(page.ask("/log.json").text)
    second = json.loads(page.ask(f"/log.json?before={first['older']}").text)
    assert [row["id"] for row in first["rows"]] == sorted((row["id"] for row in first["rows"]), reverse=True)
    assert second["rows"][0]["id"] == first["rows"][-1]["id"] - 1
    assert {row["kind"] for row in json.loads(page.ask("/log.json?kind=joined").text)["rows"]} == {"joined"}


def test_the_sums_of_cost_are_those_of_usage(page: Page) -> None:
    document = json.loads(page.enter().ask("/cost.json?by=cloud").text)
    total = sum(row["cost"] or 0.0 for row in document["rows"])
    assert document["sums"][0]["month"] == pytest.approx(total, rel=1e-6)
    assert document["sums"][0]["projected"] >= document["sums"][0]["month"]
    assert document["sums"][0]["today"] <= document["sums"][0]["month"]


def test_budgets_are_told_with_what_they_come_to(trouble: Page) -> None:
    cost = json.loads(trouble.ask("/cost.json").text)
    pool, bob, aws = cost["budgets"]
    assert (pool["whose"], bob["whose"], aws["whose"]) == ("the pool", "user bob", "cloud aws")
    assert pool["projected"] == pytest.approx(
        pool["spent"] + pool["cost_per_hour"] * (pool["ends"] - AT) / 3600
    )
    assert (pool["exceeds"], bob["exceeds"]) == (True, False)
    assert cost["sums"][0]["budget"] == pool["most"]
    assert [one["budget"] for one in json.loads(trouble.ask("/users.json").text)["rows"]].count(
        bob["most"]
    ) == 1
    clouds = {one["name"]: one for one in json.loads(trouble.ask("/clouds.json").text)["rows"]}
    assert [one["whose"] for one in clouds["aws"]["budgets"]] == ["cloud aws"]
    assert clouds["hpc"]["budgets"] == []
    assert [one["whose"] for one in json.loads(trouble.ask("/mine.json?user=bob").text)["budgets"]] == [
        "user bob"
    ]
    needs = json.loads(trouble.ask("/overview.json").text)["rows"]
    assert [one["what"] for one in needs if one["view"] == "cost"] == [
        "this month's budget of the pool will be spent before its end"
    ]


def test_a_budget_of_which_nobody_knows_what_was_spent_comes_to_nothing(page: Page) -> None:
    budgets = json.loads(page.enter().ask("/cost.json").text)["budgets"]
    [unknown] = [one for one in budgets if one["spent"] is None]
    assert (unknown["projected"], unknown["part"], unknown["exceeds"]) == (None, None, False)
    assert "nobody knows" in page.ask("/cost").text


def test_a_cloud_in_trouble_comes_first_and_is_told_once(trouble: Page) -> None:
    clouds = json.loads(trouble.ask("/clouds.json").text)
    assert [one["name"] for one in clouds["rows"]] == ["uni", "aws", "hpc"]
    [silent] = clouds["sources"]
    assert (silent["name"], silent["what"]) == ("cloud uni", ["machines", "offers", "quota"])
    needs = json.loads(trouble.ask("/overview.json").text)["rows"]
    assert [one["what"] for one in needs if one["view"] == "clouds"] == ["cloud uni: silent for 40m"]


def test_offers_are_shown_with_prices_and_what_rests(trouble: Page) -> None:
    [aws] = [one for one in json.loads(trouble.ask("/clouds.json").text)["rows"] if one["name"] == "aws"]
    assert aws["offers"]["rows"][0]["price"] == 0.34
    resting = [row for row in aws["offers"]["rows"] if row["rests"]]
    assert [(row["zone"], row["flavor"]) for row in resting] == [("eu-west-1b", "c5.4xlarge")]
    assert [(one["what"], one["ours"], one["others"], one["left"], one["most"]) for one in aws["quotas"]] == [
        ("machines", 56, 5, 14, 75),
        ("cores", 792, 40, 112, 944),
    ]


def test_the_list_of_failed_machines_has_the_ends_of_their_consoles(trouble: Page) -> None:
    shown = json.loads(trouble.ask("/machines.json?failed=1&cloud=uni").text)["shown"]
    assert len(shown) == 6
    assert all("No route to host" in one["console_end"] for one in shown)
    assert "No route to host" in trouble.ask("/machines?failed=1").text


def test_the_log_goes_back_to_a_moment(trouble: Page) -> None:
    first = json.loads(trouble.ask("/log.json?at=14:05").text)["rows"][0]
    assert (first["kind"], first["at"]) == ("launch", LAUNCHED)
    whole = json.loads(trouble.ask("/log.json?at=2026-11-25T14:05").text)["rows"]
    assert whole[0] == first
    yesterday = json.loads(trouble.ask("/log.json?at=14:21").text)["rows"]
    assert all(row["at"] < AT - 86000 for row in yesterday)
    assert trouble.ask("/log?at=noon").status == 400


def test_joins_that_follow_each_other_are_one_line_of_the_overview(trouble: Page) -> None:
    events = json.loads(trouble.ask("/overview.json").text)["events"]
    assert [(one["kind"], one["times"]) for one in events[:3]] == [
        ("launch", 1),
        ("joined", 12),
        ("launch", 1),
    ]


def test_a_reason_names_whose_jobs_it_holds_back(trouble: Page) -> None:
    reasons = json.loads(trouble.ask("/waiting.json").text)["reasons"]
    assert {one["code"]: one["owners"] for one in reasons}["user-limit"] == ["alice"]


def test_code_in_a_sentence_is_shown_as_code_and_nothing_else_is() -> None:
    template = TEMPLATES.from_string("{{ text|coded }}")
    assert template.render(text="see `a <b>`, <i>&") == "see <code>a &lt;b&gt;</code>, &lt;i&gt;&amp;"


def test_an_offer_is_said_in_words() -> None:
    template = TEMPLATES.from_string("{{ key|offer }}")
    assert template.render(key="c@aws/eu/a/m5/spot?image=x/y") == "m5 (spot) in aws/eu/a"
    assert template.render(key="odd") == "odd"


def test_what_is_written_meanwhile_is_seen_at_the_next_look(tmp_path: Path) -> None:
    path = ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    page = page_over(path).enter()
    before = json.loads(page.ask("/overview.json").text)["looked_at"]
    kept = page.pictures._picture
    assert kept is not None
    with Ledger(path) as ledger:
        ledger.note("controller", ledgers.controller(before + 5), before + 5)
    page.pictures._picture = kept[0], replace(kept[1], at=kept[1].at - 10)
    assert json.loads(page.ask("/overview.json").text)["looked_at"] == before + 5
    page.pictures.close()


def test_a_daemon_that_ends_meanwhile_is_missed_although_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_over(ledgers.made(tmp_path / "ledger.sqlite", now=time.time())).enter()
    assert json.loads(page.ask("/overview.json").text)["daemon"]["alive"]
    later = time.time() + 90
    monkeypatch.setattr(time, "time", lambda: later)
    overview = json.loads(page.ask("/overview.json").text)
    assert not overview["daemon"]["alive"]
    assert overview["daemon"]["age"] == pytest.approx(90, abs=30)
    page.pictures.close()


def test_a_ledger_that_is_away_is_said_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    page = page_over(path).enter()
    away = page.ask("/overview")
    assert away.status == 503
    assert "start the daemon with `updraft run`" in away.text
    ledgers.made(path, now=time.time())
    assert page.ask("/overview").status == 200
    page.pictures.close()


def test_an_empty_pool_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path):
        pass
    page = page_over(path).enter()
    for name in ("overview", "waiting", "machines", "cost", "clouds", "users", "annexes", "log", "mine"):
        assert page.ask(f"/{name}").status == 200, name
    assert "updraft annex create" in page.ask("/annexes").text
    assert "condor_submit" in page.ask("/waiting").text
    page.pictures.close()


def test_events_before_one_are_the_latest_of_those(ledger: Path) -> None:
    with Reader(ledger) as reader:
        assert [one.id for one in reader.events(before=50, limit=3)] == [47, 48, 49]
        assert [one.id for one in reader.events(after=10, before=13)] == [11, 12]
        moment = reader.events(after=29, limit=1)[0].at
        assert [one.id for one in reader.events(until=moment, limit=2)] == [29, 30]
