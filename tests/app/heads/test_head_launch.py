"""`head launch`, `list` and `terminate` on a cloud in memory; whatever fails leaves nothing behind."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.app import wiring
from updraft.bootstrap.head import source
from updraft.bootstrap.head.source import WHEEL
from updraft.cli import main
from updraft.cli.heads import launch as headlaunch
from updraft.cli.schemas import FORMS
from updraft.clouds.base import TAG_CLASS, TAG_POOL
from updraft.clouds.cloud import Cloud
from updraft.clouds.ec2.settings import EC2Heads
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.clouds.fake.networking import FakeNetworking
from updraft.clouds.heads import HeadPlace, PlainHeads
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, LocalHeads
from updraft.clouds.networking import Group, Rule, group_source
from updraft.clouds.openstack.settings import OpenStackHeads
from updraft.config.model import CloudTable, Settings
from updraft.errors import BadRequest, UsageError
from updraft.provision.heads.machines import Patience

SETTINGS = """\
[pool]
name = "demo"

[clouds.here]
driver = "fake"
security_groups = ["demo-worker"]

[classes.default]
image = "debian"

[network]
admins = ["203.0.113.0/24"]
"""
WHEEL_AT = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"
BOOTED = "cloud-init …\nupdraft-boot: ok\n"
Capture = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]


class World:
    """A cloud whose time passes when somebody waits, and what its machines' consoles say."""

    def __init__(self) -> None:
        self.now = 1e9
        self.console = BOOTED
        self.site = Site(
            "here",
            site_settings("here", {"images": ["debian"], "boots": [{"start": "4s", "join": "4s"}]}),
            lambda: self.now,
        )
        self.given: list[CloudTable] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def breaks(self) -> None:
        self.console = ""
        self.site.change(boots=[{"breaks": 1.0, "fault": "no host"}])

    def heads(self) -> list[Any]:
        return [one for one in self.site.alive("demo.heads") if one.stop_asked_at > self.now]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "200")
    # The fake driver has no setting `security_groups`; its settings aren't what is tried here.
    monkeypatch.setattr("updraft.config.drivers.settings_model", lambda _entry: None)

    def driver(settings: Settings, _name: str, cloud: CloudTable) -> Cloud:
        found = FakeCloud(made.site, settings.pool.name)
        made.given.append(cloud)
        found.console = lambda _machine: made.console  # type: ignore[method-assign]
        return found.cloud

    monkeypatch.setattr(wiring, "make_cloud", driver)
    monkeypatch.setattr(source, "own_source", lambda: WHEEL_AT)
    monkeypatch.setattr(
        headlaunch, "patience", lambda: Patience(headlaunch.say, lambda: made.now, made.sleep, 2.0)
    )
    return made


@pytest.fixture
def run(capsys: Capture) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main.call(["head", *words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


def test_a_head_has_its_group_its_tag_and_a_way_in(world: World, run: Run) -> None:
    code, out, err = run("launch", "main")
    assert code == 0, err
    (head,) = world.heads()
    assert head.tags[TAG_POOL] == "demo.heads"
    assert head.tags[TAG_CLASS] == "main"
    assert f"SOURCE='{WHEEL_AT}'".encode() in _plain(head.user_data)
    assert f"ssh user@{head.address}" in out
    assert "its pool answers" in out
    groups = {one.name: one for one in world.site.groups.values()}
    login = Rule("in", "tcp", (22, 22), "203.0.113.0/24")
    port = Rule("in", "tcp", (9618, 9618), group_source(groups["demo-worker"].id))
    coming = {rule for rule in groups["demo-head"].rules if rule.direction == "in"}
    assert coming == {login, port, Rule("in", "icmp", (3, 4), "0.0.0.0/0")}


def test_the_pools_own_controller_takes_it_for_somebody_elses(world: World, run: Run) -> None:
    run("launch", "main")
    assert FakeCloud(world.site, "demo").machines() == ()
    assert len(FakeCloud(world.site, "demo.heads").machines()) == 1


def test_a_second_call_finds_the_head_again(world: World, run: Run) -> None:
    run("launch", "main")
    world.site.groups.clear()
    code, out, err = run("launch", "main")
    assert code == 0
    (head,) = world.heads()
    assert "is there already" in err
    assert head.id in out
    assert {one.name for one in world.site.groups.values()} == {"demo-head", "demo-worker"}


def test_a_dry_run_makes_nothing(world: World, run: Run) -> None:
    code, out, _ = run("launch", "main", "--dry-run")
    assert code == 0
    assert "  + in tcp 22 from 203.0.113.0/24" in out
    assert "head main: small in a of cloud here, image debian" in out
    assert not world.site.groups
    assert not world.site.instances
    run("launch", "main")
    assert "is there already" in run("launch", "main", "--dry-run")[1]


@pytest.mark.parametrize(
    ("arrange", "why"),
    [
        (lambda w: w.site.faults.add(Fault("quota-exceeded", call="launch")), "told to answer"),
        (lambda w: w.site.faults.add(Fault("cloud-unavailable", call="launch", after=True)), ""),
        (lambda w: w.site.faults.add(Fault("no-capacity", call="launch")), ""),
        (lambda w: setattr(w, "console", "updraft-boot: FAILED: no package"), "no package"),
        (lambda w: w.breaks(), "no host"),
        (lambda w: w.site.faults.add(Fault("cloud-unavailable", call="allow")), ""),
    ],
    ids=["quota", "lost answer", "no room", "boot fails", "machine breaks", "group"],
)
def test_a_launch_that_fails_leaves_nothing(
    world: World, run: Run, arrange: Callable[[World], object], why: str
) -> None:
    arrange(world)
    code, _, err = run("launch", "main")
    assert code == 1
    assert why in err
    assert not world.heads()
    assert not world.site.groups


def test_what_was_there_before_a_launch_that_fails_is_as_it_was(world: World, run: Run) -> None:
    own = Rule("in", "tcp", (443, 443), "0.0.0.0/0")
    there = Group("g", "demo-head", frozenset({own}), {TAG_POOL: "demo"})
    world.site.groups["g"] = there
    world.console = "updraft-boot: FAILED: x"
    assert run("launch", "main")[0] == 1
    assert world.site.groups == {"g": there}


def test_what_cannot_be_removed_is_said(world: World, run: Run) -> None:
    world.console = "updraft-boot: FAILED: x"
    world.site.faults.add(Fault("cloud-unavailable", call="terminate"))
    code, _, err = run("launch", "main")
    assert code == 1
    assert "may be left, and is yours to end" in err


def test_a_failed_boot_can_be_kept(world: World, run: Run) -> None:
    world.console = "updraft-boot: FAILED: no package"
    code, out, err = run("launch", "main", "--keep")
    assert code == 1
    assert "no package; it is kept" in err
    assert len(world.heads()) == 1
    assert "ssh user@" in out
    assert len(world.site.groups) == 2  # or nobody could look at it


def test_a_boot_that_takes_long_is_left_alone(world: World, run: Run) -> None:
    world.console = "still at it"
    code, out, _ = run("launch", "main", "--wait", "30s")
    assert code == 0
    assert len(world.heads()) == 1
    assert "cloud-init status --wait" in out


def test_the_groups_of_the_site_are_the_sites_to_change(world: World, run: Run) -> None:
    theirs = Group("w", "demo-worker", frozenset(), {})
    world.site.groups["w"] = theirs
    code, _, err = run("launch", "main")
    assert code == 0
    assert "demo-worker, which updraft didn't make, lacks: in tcp 9618" in err
    assert world.site.groups["w"] == theirs


@pytest.mark.parametrize(
    ("change", "words", "why"),
    [
        (('admins = ["203.0.113.0/24"]', ""), (), "[network] admins"),
        (('security_groups = ["demo-worker"]', ""), (), "network ensure here --role worker"),
        (("", ""), ("--role", "admin"), "--role has no meaning"),
        (("", ""), ("--key", "mine"), "--key has no meaning"),
        (("", ""), ("--private",), "--private has no meaning"),
        (("", ""), ("--floating-network", "public"), "--floating-network has no meaning"),
        (("", ""), ("--flavor", "huge"), "no machine of flavor huge"),
        (("", ""), ("--zone", "z"), "in z now"),
        (("", ""), ("--cloud", "there"), "no cloud there"),
        (("", ""), ("--wait", "5"), "no unit"),
        (("", ""), ("--source", "updraft"), "no address of a wheel"),
        (("", ""), ("--source", WHEEL_AT.partition("#")[0]), "has no hash"),
        (("", ""), ("--index", "http://mirror.test/simple"), "package index"),
        (('name = "demo"', 'name = "demo"\ncollector = "cm.example.org"'), (), "pool.collector"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_is_said_before_anything_is_made(
    world: World, run: Run, change: tuple[str, str], words: tuple[str, ...], why: str
) -> None:
    Path("updraft.toml").write_text(SETTINGS.replace(*change) if change[0] else SETTINGS)
    code, _, err = run("launch", "main", *words)
    assert code == 2
    assert why in err
    assert not world.site.instances
    assert not world.site.groups


def test_without_a_wheel_nothing_is_made(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "own_source", lambda: "")
    for words in ((), ("--dry-run",)):
        code, _, err = run("launch", "main", *words)
        assert code == 2
        assert "--source 'https://" in err
        assert not world.site.calls
    assert not world.site.groups
    assert run("launch", "main", "--source", "image")[0] == 0


def test_a_name_is_one_that_a_tag_takes(world: World, run: Run) -> None:
    assert run("launch", "a b")[0] == 2
    assert run("launch", "x" * 50)[0] == 2


def test_heads_are_listed_and_workers_not(world: World, run: Run) -> None:
    assert run("list")[1] == "no heads\n"
    run("launch", "main")
    world.site.add_foreign(tags={TAG_POOL: "demo"})
    code, out, _ = run("list", "--json")
    found = json.loads(out)
    validate(found, FORMS["head list"])
    (head,) = world.heads()
    assert code == 0
    assert [(one["name"], one["id"], one["address"]) for one in found["heads"]] == [
        ("main", head.id, head.address)
    ]
    assert "main" in run("list")[1]


def test_a_narrow_list_cuts_nothing_off(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("launch", "main-of-the-group")
    monkeypatch.setenv("COLUMNS", "80")
    told = run("list")[1]
    (head,) = world.heads()
    assert all(text in told for text in ("main-of-the-group", head.id, head.address))
    assert "flavor" not in told


def test_a_head_is_ended_when_it_is_said(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("launch", "main")
    other = world.site.add_foreign(tags={TAG_POOL: "demo"})
    monkeypatch.setattr("sys.stdin", StringIO(""))
    assert run("terminate", "main")[0] == 2
    assert len(world.heads()) == 1
    assert run("terminate", "elsewhere", "--yes")[0] == 2
    code, out, _ = run("terminate", "main", "--yes")
    assert code == 0
    assert "is ended" in out
    assert not world.heads()
    assert [one.id for one in world.site.alive("demo")] == [other]
    assert len(world.site.groups) == 2


def test_the_groups_go_with_the_last_head_when_it_is_said(world: World, run: Run) -> None:
    run("launch", "main")
    world.site.groups["x"] = Group("x", "somebody's", frozenset(), {})
    assert run("terminate", "main", "--yes", "--groups")[0] == 0
    assert list(world.site.groups) == ["x"]


def test_groups_that_others_are_behind_stay_and_nothing_is_ended(world: World, run: Run) -> None:
    run("launch", "main")
    before = dict(world.site.groups)
    run("launch", "second")
    (second,) = [one for one in world.heads() if one.tags[TAG_CLASS] == "second"]
    code, _, err = run("terminate", "main", "--yes", "--groups")
    assert code == 2
    assert f"in use by head second ({second.id})" in err
    assert len(world.heads()) == 2
    assert run("terminate", "second", "--yes")[0] == 0

    worker = world.site.add_foreign(tags={TAG_POOL: "demo"})
    code, _, err = run("terminate", "main", "--yes", "--groups")
    assert code == 2
    assert f"worker {worker}" in err
    assert len(world.heads()) == 1
    assert world.site.groups == before

    world.site.terminate(worker)
    world.now += 60
    world.site.faults.add(Fault("cloud-unavailable", call="machines", times=1))
    assert run("terminate", "main", "--yes", "--groups")[0] == 1, "who can't be seen may be there"
    assert len(world.heads()) == 1


@pytest.mark.parametrize("removable", [0, 1])
def test_groups_that_cannot_be_removed_have_all_their_rules(world: World, run: Run, removable: int) -> None:
    run("launch", "main")
    by_hand = Rule("in", "tcp", (443, 443), "192.0.2.0/24")
    for one in dict(world.site.groups):
        world.site.groups[one] = replace(
            world.site.groups[one], rules=world.site.groups[one].rules | {by_hand}
        )
    before = dict(world.site.groups)
    remove, calls = FakeNetworking.remove, []

    def fails(self: FakeNetworking, group: str) -> None:
        calls.append(group)
        if len(calls) > removable:
            raise BadRequest("it is in use")
        remove(self, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeNetworking, "remove", fails)
        code, out, err = run("terminate", "main", "--yes", "--groups")
    assert (code, "is ended" in out) == (1, True)
    assert "it is in use" in err
    gone = {group_source(one) for one in before if one not in world.site.groups}
    assert len(gone) == removable
    for one, group in world.site.groups.items():
        assert group.rules == {rule for rule in before[one].rules if rule.source not in gone}

    code, out, _ = run("terminate", "main", "--yes", "--groups")
    assert code == 0, "the head is gone, and its groups may be removed yet"
    assert not world.site.groups


def test_of_two_heads_of_a_name_ids_say_which(world: World, run: Run) -> None:
    run("launch", "main")
    (first,) = world.heads()
    second = world.site.add_foreign(tags={TAG_POOL: "demo.heads", TAG_CLASS: "main"})
    code, _, err = run("terminate", "main", "--yes")
    assert code == 2
    assert first.id in err
    assert second in err
    assert run("terminate", second, "--yes")[0] == 0
    assert [one.id for one in world.heads()] == [first.id]


OWN = {"security_groups": ["w"], "instance_profile": "worker", "launch_template": "lt", "region": "r"}


def test_a_head_on_ec2_has_its_own_role_group_and_life() -> None:
    found = EC2Heads().settings(OWN, HeadPlace(group="sg-1", role="head-role", key_name="k"))
    assert found == {
        "region": "r", "security_groups": ["sg-1"], "instance_profile": "head-role", "key_name": "k",
        "public_address": True, "on_shutdown": "stop",
    }  # fmt: skip
    bare = EC2Heads().settings(OWN, HeadPlace(private=True))
    assert bare == {"region": "r", "public_address": False, "on_shutdown": "stop"}
    with pytest.raises(UsageError, match="floating"):
        EC2Heads().settings(OWN, HeadPlace(floating="x"))


def test_a_head_on_openstack_has_its_own_group_and_address() -> None:
    own = {"security_groups": ["w"], "server_group": "s", "networks": ["n"]}
    assert OpenStackHeads().settings(own, HeadPlace(group="g", floating="public")) == {
        "networks": ["n"], "security_groups": ["g"], "floating_network": "public",
    }  # fmt: skip
    private = OpenStackHeads().settings({**own, "floating_network": "public"}, HeadPlace(private=True))
    assert private == {"networks": ["n"]}
    with pytest.raises(UsageError, match="--role"):
        OpenStackHeads().settings(own, HeadPlace(role="x"))


def test_a_head_on_the_local_cloud_is_entered_from_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LocalHeads().settings({"endpoint": "e"}, HeadPlace(role="controller"))["role"] == "controller"
    usual = "updraft local shell --user ada i-1"
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    assert LocalHeads().login("i-1", "", "ada") == usual
    for endpoint in ("unix:/run/updraft/local/api.sock", "http://10.77.0.1:8774"):
        monkeypatch.setenv(ENDPOINT_VARIABLE, endpoint)
        assert LocalHeads().login("i-1", "", "ada") == usual
    monkeypatch.setenv(ENDPOINT_VARIABLE, "unix:/srv/my cloud/api.sock")
    told = "updraft local shell --state '/srv/my cloud' --user ada i-1"
    assert LocalHeads().login("i-1", "", "ada") == told, "a cloud elsewhere is not found without"
    assert PlainHeads().login("i-1", "192.0.2.1", "ada") == "ssh ada@192.0.2.1"


def _plain(user_data: bytes) -> bytes:
    import gzip

    return gzip.decompress(user_data) if user_data.startswith(b"\x1f\x8b") else user_data
