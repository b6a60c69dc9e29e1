"""`leftovers`: two clouds in memory, and what is left in them of this pool and of others."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.app import wiring
from updraft.app.operating.leftovers import left_over, look
from updraft.checks import State
from updraft.checks.asking import Answer
from updraft.checks.leftovers import judge
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL, LaunchRequest
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.clouds.networking import TAG_ROLE, Rule, group_source
from updraft.config import load
from updraft.config.model import CloudTable, Settings
from updraft.core.leftovers import Kind
from updraft.errors import ProblemFound
from updraft.ledger import Ledger
from updraft.ledger.identity import Host, kept
from updraft.ledger.made import note_made

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
images = ["debian"]

[clouds.there]
driver = "fake"
images = ["debian"]

[classes.default]
image = { here = "named", there = "debian" }
"""
Capture = pytest.CaptureFixture[str]
DAY = 86400.0


class Lab:
    """Two clouds, an identity, and what is put into them."""

    def __init__(self, folder: Path) -> None:
        self.now = 1e9
        self.folder = folder
        self.file = folder / "updraft.toml"
        self.identity = kept(folder / "state", Host()).pool
        self.sites = {
            name: Site(name, site_settings(name, {"images": ["debian"]}), lambda: self.now)
            for name in ("here", "there")
        }

    def driver(self, settings: Settings, name: str, _cloud: CloudTable | None = None) -> Cloud:
        return FakeCloud(self.sites[name], settings.pool.name).cloud

    def cloud(self, name: str = "here", pool: str = "demo") -> FakeCloud:
        return FakeCloud(self.sites[name], pool)

    @property
    def tags(self) -> dict[str, str]:
        return {TAG_POOL: "demo", TAG_IDENTITY: self.identity}

    def image(self, name: str, tags: dict[str, str] | None = None) -> str:
        return self.cloud().imaging._keep(name, "raw", b"x", self.tags if tags is None else tags)

    def broken(self, name: str) -> str:
        """An image that is in the making since two days ago."""
        one = self.image(name)
        self.sites["here"].made[one].ready_at = self.now + 1000 * DAY  # type: ignore[attr-defined]
        return one

    def builder(self) -> str:
        driver = self.cloud(pool="demo.images")
        tags = {TAG_IDENTITY: self.identity}
        (made,) = driver.launch(
            LaunchRequest(f"k-{self.now}", 1, "debian", "small", "a", "on-demand", b"", tags)
        )
        return made.id


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    found = Lab(tmp_path)
    found.file.write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(found.file))
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.setattr(wiring, "make_cloud", found.driver)
    monkeypatch.setattr("updraft.app.operating.leftovers.time.time", lambda: found.now)
    return found


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["leftovers", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def rows(capsys: Capture, *words: str) -> dict[str, Any]:
    code, out, _ = run(capsys, "--json", *words)
    document = json.loads(out)
    validate(document, FORMS["leftovers"])
    assert code == (1 if document["errors"] else 0)
    return {row["id"]: row for row in document["leftovers"]}


def test_an_empty_cloud_has_nothing_left(lab: Lab, capsys: Capture) -> None:
    assert run(capsys) == (0, "nothing is left over\n", "")


def test_each_thing_is_listed_with_its_fate(lab: Lab, capsys: Capture) -> None:
    half, builder = lab.broken("half"), lab.builder()
    named, spare = lab.image("named"), lab.image("spare")
    strange, theirs = lab.image("strange", {TAG_POOL: "demo"}), lab.image("theirs", {TAG_POOL: "other"})
    lab.now += 2 * DAY
    young = lab.builder()
    found = {one: row["fate"] for one, row in rows(capsys, "--all").items()}
    assert found == {
        half: "left", builder: "left", named: "kept", spare: "unused", strange: "refused", young: "kept",
    }  # fmt: skip
    assert theirs not in found
    assert named not in rows(capsys)


def test_only_what_is_left_is_removed(lab: Lab, capsys: Capture) -> None:
    half, builder, spare, strange = (
        lab.broken("half"),
        lab.builder(),
        lab.image("spare"),
        lab.image("s", {TAG_POOL: "demo"}),
    )
    lab.now += 2 * DAY
    code, out, _ = run(capsys, "--remove", "--yes")
    assert code == 0
    assert half in out
    assert builder in out
    assert set(lab.sites["here"].made) == {spare, strange}
    assert lab.cloud(pool="demo.images").site.instances[builder].stop_asked_at <= lab.now
    assert run(capsys, "--remove", "--yes")[1] == "nothing to remove\n"


def test_an_unused_image_goes_where_it_is_named_and_nothing_else(lab: Lab, capsys: Capture) -> None:
    half, spare = lab.broken("half"), lab.image("spare")
    lab.now += 2 * DAY
    assert run(capsys, "spare", "--remove", "--yes")[0] == 0
    assert set(lab.sites["here"].made) == {half}
    assert spare not in lab.sites["here"].made


@pytest.mark.parametrize("which", ["named", "strange", "booted"])
def test_what_is_in_use_or_not_proven_is_refused_with_its_reason(
    lab: Lab, capsys: Capture, which: str
) -> None:
    lab.image("named")
    lab.image("strange", {TAG_POOL: "demo"})
    booted = lab.image("booted")
    lab.cloud().launch(LaunchRequest("k", 1, booted, "small", "a", "on-demand", b""))
    before = set(lab.sites["here"].made)
    code, _, err = run(capsys, which, "--remove", "--yes")
    assert code == 1
    assert "stays" in err
    assert {"named": "class default", "strange": "not its identity", "booted": "machine"}[which] in err
    assert set(lab.sites["here"].made) == before


def test_nobody_answers_and_nothing_goes(lab: Lab, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    lab.broken("half")
    lab.now += 2 * DAY
    code, _, err = run(capsys, "--remove")
    assert code == 2
    assert "--yes" in err
    assert len(lab.sites["here"].made) == 1


def test_an_unknown_id_is_a_wrong_call(lab: Lab, capsys: Capture) -> None:
    code, _, err = run(capsys, "nobody", "--remove", "--yes")
    assert code == 2
    assert "nobody" in err


def test_one_that_cannot_be_removed_costs_itself(lab: Lab, capsys: Capture) -> None:
    lab.broken("half")
    builder = lab.builder()
    lab.now += 2 * DAY
    lab.sites["here"].faults.add(Fault("cloud-unavailable", call="delete_image"))
    code, out, err = run(capsys, "--remove", "--yes")
    assert code == 1
    assert "stays" in err
    assert builder in out
    assert len(lab.sites["here"].made) == 1


def test_a_question_without_an_answer_costs_itself_and_frees_nothing(lab: Lab, capsys: Capture) -> None:
    lab.broken("half")
    builder = lab.builder()
    lab.now += 2 * DAY
    lab.sites["here"].faults.add(Fault("cloud-unavailable", call="images"))
    found = rows(capsys)
    assert set(found) == {builder}
    code, _, err = run(capsys)
    assert code == 1
    assert "here doesn't tell of images" in err


def test_a_silent_listing_of_machines_keeps_every_image(lab: Lab, capsys: Capture) -> None:
    lab.broken("half")
    lab.now += 2 * DAY
    lab.sites["here"].faults.add(Fault("cloud-unavailable", call="machines"))
    assert run(capsys, "--remove", "--yes")[0] == 1
    assert len(lab.sites["here"].made) == 1


def test_groups_that_name_each_other_go_together(lab: Lab, capsys: Capture) -> None:
    groups = lab.cloud().networking
    head = groups.make("demo-head", {**lab.tags, TAG_ROLE: "head"})
    worker = groups.make("demo-worker", {**lab.tags, TAG_ROLE: "worker"})
    for one, other in ((head, worker), (worker, head)):
        groups.allow(one.id, [Rule("in", "tcp", (9618, 9618), group_source(other.id))])
    # Alone it is refused, with all its rules there as before.
    before = dict(lab.sites["here"].groups)
    code, _, err = run(capsys, "demo-head", "--remove", "--yes")
    assert (code, lab.sites["here"].groups) == (1, before)
    assert "in use" in err
    assert run(capsys, "demo-head", "demo-worker", "--remove", "--yes")[0] == 0
    assert not lab.sites["here"].groups


def test_a_group_stays_while_machines_are_there(lab: Lab, capsys: Capture) -> None:
    lab.cloud().networking.make("demo-worker", {**lab.tags, TAG_ROLE: "worker"})
    lab.cloud().launch(LaunchRequest("k", 1, "debian", "small", "a", "on-demand", b""))
    assert rows(capsys, "--all")["here-group-1"]["fate"] == "kept"


def test_key_pairs_are_known_by_the_ledger_alone(lab: Lab, capsys: Capture) -> None:
    for one in ("mine", "theirs"):
        lab.cloud().create_key_pair(one)
    ledger = load(lab.file).pool.ledger
    assert not note_made(ledger, "here", Kind.KEY_PAIR, "mine")
    assert {one: row["fate"] for one, row in rows(capsys).items()} == {"mine": "unused"}
    assert run(capsys, "mine", "--remove", "--yes")[0] == 0
    assert lab.sites["here"].key_pairs == {"theirs"}
    lab.cloud().create_key_pair("mine")  # by somebody else, later
    assert rows(capsys) == {}


def test_check_warns_of_what_is_left_and_says_what_it_does_not_know(lab: Lab) -> None:
    lab.broken("half")
    lab.image("spare")
    lab.now += 2 * DAY
    found = look(load(lab.file)).found
    said = list(judge(Answer(found)))
    assert [one.state for one in said] == [State.WARNING, State.OK]
    assert "half" in said[0].text
    assert "leftovers --remove" in said[0].remedy
    assert [one.state for one in judge(Answer(()))] == [State.OK]
    assert [one.state for one in judge(Answer(error=ProblemFound("not known: images")))] == [State.SKIPPED]


def test_destroy_says_what_else_is_left(lab: Lab) -> None:
    settings = load(lab.file)
    assert "nothing else" in left_over(settings)
    one = lab.image("spare")
    assert one in left_over(settings)
    lab.sites["there"].faults.add(Fault("cloud-unavailable", call="images"))
    assert "there" in left_over(settings)


def test_a_note_of_what_was_made_outlives_the_ledger_being_opened_anew(tmp_path: Path) -> None:
    from updraft.ledger.made import forget_made, made

    path = tmp_path / "ledger.db"
    assert not note_made(path, "here", "key-pair", "a")
    with Ledger(path) as ledger:
        assert made(ledger) == {("here", "key-pair", "a")}
    forget_made(path, "here", "key-pair", "a")
    with Ledger(path) as ledger:
        assert made(ledger) == frozenset()
