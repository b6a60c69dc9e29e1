"""`network`: what security groups lack and leave open, as a diff and then as a change."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.forms import validate
from updraft.app import wiring
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.base import TAG_POOL
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.clouds.networking import Group, Rule, group_source
from updraft.config.model import CloudTable, Settings
from updraft.errors import CloudUnavailable

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
security_groups = ["demo-worker"]
%s
[classes.default]
image = "debian"

[network]
admins = ["203.0.113.0/24"]
"""
OUT = Rule("out", "any", None, "0.0.0.0/0")
TOO_BIG = Rule("in", "icmp", (3, 4), "0.0.0.0/0")
LOGIN = Rule("in", "tcp", (22, 22), "203.0.113.0/24")
Capture = pytest.CaptureFixture[str]
Write = Callable[[str], None]


def pool_port(source: str) -> Rule:
    return Rule("in", "tcp", (9618, 9618), source)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    return lambda text: (tmp_path / "updraft.toml").write_text(text) and None


@pytest.fixture
def site(write: Write, monkeypatch: pytest.MonkeyPatch) -> Site:
    write(SETTINGS % "")
    made = Site("here", site_settings("here", {}), lambda: 1e9)

    def driver(settings: Settings, _name: str, _cloud: CloudTable) -> Cloud:
        return FakeCloud(made, settings.pool.name).cloud

    monkeypatch.setattr(wiring, "make_cloud", driver)
    return made


@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake driver has no setting `security_groups`; its settings aren't what is tried here."""
    monkeypatch.setattr("updraft.config.drivers.settings_model", lambda _entry: None)


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["network", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def group(site: Site, name: str) -> Group:
    return next(one for one in site.groups.values() if one.name == name)


def put(site: Site, name: str, *rules: Rule, pool: str = "demo") -> Group:
    made = Group(f"id-of-{name}", name, frozenset({OUT, *rules}), {TAG_POOL: pool} if pool else {})
    site.groups[made.id] = made
    return made


def test_a_check_shows_what_is_missing_and_changes_nothing(site: Site, capsys: Capture) -> None:
    code, out, err = run(capsys, "check")
    assert code == 1
    assert "2 groups not as the pool needs it" in err
    assert "  + in tcp 22 from 203.0.113.0/24" in out
    assert "  + in tcp 9618 from group demo-worker" in out
    assert "  + in tcp 9618 from group demo-head" in out
    assert not site.groups
    assert set(site.calls_by_name()) == {"show_group"}


def test_after_ensure_a_check_is_content(site: Site, capsys: Capture) -> None:
    assert run(capsys, "ensure", "--yes")[0] == 0
    head, worker = group(site, "demo-head"), group(site, "demo-worker")
    assert head.rules == {OUT, TOO_BIG, LOGIN, pool_port(group_source(worker.id))}
    assert worker.rules == {OUT, TOO_BIG, pool_port(group_source(head.id))}
    assert (head.tags["updraft:role"], head.pool) == ("head", "demo")
    code, out, _ = run(capsys, "check")
    assert code == 0
    assert out.count("as the pool needs it") == 2
    assert run(capsys, "ensure")[1].endswith("nothing to add\n")


def test_where_machines_have_ipv6_its_rules_are_shown_and_made(site: Site, capsys: Capture) -> None:
    assert run(capsys, "ensure", "--yes")[0] == 0
    before = {name: group(site, name).rules for name in ("demo-head", "demo-worker")}
    assert run(capsys, "check")[0] == 0
    site.ipv6 = True
    code, out, _ = run(capsys, "check")
    assert code == 1
    worker, head = group(site, "demo-worker"), group(site, "demo-head")
    assert f"  + in tcp 9618 from group {worker.id} (IPv6)" in out
    assert f"  + in tcp 9618 from group {head.id} (IPv6)" in out
    assert out.count("  + in icmpv6 type 2 code 0 from everywhere (::/0)") == 2
    assert "  - " not in out
    assert run(capsys, "ensure", "--yes")[0] == 0
    more = {Rule("in", "icmpv6", (2, 0), "::/0"), Rule("out", "any", None, "::/0")}
    for one, other in ((head, worker), (worker, head)):
        added = group(site, one.name).rules - before[one.name]
        assert added == {*more, replace(pool_port(group_source(other.id)), family=6)}
    assert run(capsys, "check")[0] == 0


@pytest.mark.parametrize(
    "said", [('["203.0.113.0/24"]', '["2001:db8::/32"]'), ('"state"', '"state"\ncollector = "[2001:db8::7]"')]
)
def test_what_the_configuration_says_of_ipv6_is_enough(
    site: Site, write: Write, capsys: Capture, said: tuple[str, str]
) -> None:
    write((SETTINGS % "").replace(*said))
    assert "in icmpv6 type 2 code 0" in run(capsys, "check")[1]


def test_the_document_tells_families_apart(site: Site, capsys: Capture) -> None:
    site.ipv6 = True
    found = json.loads(run(capsys, "check", "--json")[1])
    validate(found, FORMS["network check"])
    told = [(one["source"], one["families"]) for one in found["groups"][1]["missing"]]
    assert ("group:demo-head", [4]) in told
    assert ("group:demo-head", [6]) in told
    assert ("::/0", [6]) in told


def test_the_document_has_its_form(site: Site, capsys: Capture) -> None:
    put(site, "demo-head", Rule("in", "tcp", None, "0.0.0.0/0"))
    code, out, _ = run(capsys, "check", "--json")
    found = json.loads(out)
    validate(found, FORMS["network check"])
    (head, worker) = found["groups"]
    assert code == 1
    assert head["open"] == [
        {"direction": "in", "protocol": "tcp", "ports": None, "source": "0.0.0.0/0", "families": [4]}
    ]
    assert worker["ids"] == []


def test_what_is_too_open_goes_only_when_it_is_said(site: Site, capsys: Capture) -> None:
    wide = Rule("in", "tcp", (1, 65000), "0.0.0.0/0")
    put(site, "demo-head", wide)
    run(capsys, "ensure", "--yes")
    assert wide in group(site, "demo-head").rules
    assert run(capsys, "check")[0] == 1
    code, out, err = run(capsys, "ensure", "--yes", "--close")
    assert code == 0
    assert "  - in tcp 1-65000 from everywhere" in out
    assert "took out in tcp 1-65000" in err
    rules = group(site, "demo-head").rules
    assert wide not in rules
    assert LOGIN in rules  # that the wide one had let in


def test_nobody_there_to_ask_changes_nothing(
    site: Site, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(""))
    code, _, err = run(capsys, "ensure")
    assert code == 2
    assert "--yes" in err
    assert not site.groups


def test_somebody_elses_group_is_changed_by_force_only(site: Site, capsys: Capture) -> None:
    put(site, "demo-worker", pool="")
    code, _, err = run(capsys, "ensure", "--yes")
    assert code == 2
    assert "wasn't made by this pool's updraft" in err
    assert set(site.groups) == {"id-of-demo-worker"}
    assert group(site, "demo-worker").rules == {OUT}
    assert run(capsys, "ensure", "--yes", "--force")[0] == 0
    assert TOO_BIG in group(site, "demo-worker").rules


@pytest.mark.parametrize("call", ["make_group", "allow"])
def test_a_change_that_fails_is_taken_back(site: Site, capsys: Capture, call: str) -> None:
    site.faults.add(Fault("cloud-unavailable", call=call))
    code, _, _ = run(capsys, "ensure", "--yes")
    assert code == 1
    assert not site.groups


def test_a_half_closed_group_is_opened_again(
    site: Site, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from updraft.clouds.fake.networking import FakeNetworking

    wide = Rule("in", "tcp", None, "0.0.0.0/0")
    before = (put(site, "demo-head", wide), put(site, "demo-worker", wide))
    plain, calls = FakeNetworking.revoke, iter(range(9))

    def second_fails(self: FakeNetworking, group: str, rules: Any) -> None:
        if next(calls) == 1:
            raise CloudUnavailable("away")
        plain(self, group, rules)

    monkeypatch.setattr(FakeNetworking, "revoke", second_fails)
    assert run(capsys, "ensure", "--yes", "--close")[0] == 1
    assert tuple(site.groups.values()) == before


def test_what_cannot_be_taken_back_is_said(
    site: Site, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.faults.add(Fault("cloud-unavailable", call="allow"))
    site.faults.add(Fault("cloud-unavailable", call="remove_group"))
    code, _, err = run(capsys, "ensure", "--yes")
    assert code == 1
    assert "the security group demo-head (here-group-1) stays: " in err


def test_one_role_alone(site: Site, capsys: Capture) -> None:
    assert run(capsys, "ensure", "--yes", "--role", "worker")[0] == 0
    assert [one.name for one in site.groups.values()] == ["demo-worker"]


def test_workers_behind_a_broker_are_entered_by_nobody(site: Site, write: Write, capsys: Capture) -> None:
    write(SETTINGS.replace('image = "debian"', 'image = "debian"\nreach = "ccb"') % "")
    run(capsys, "ensure", "--yes")
    assert group(site, "demo-worker").rules == {OUT, TOO_BIG}


def test_a_head_elsewhere_is_let_in_by_its_address(site: Site, write: Write, capsys: Capture) -> None:
    write(SETTINGS % "" + 'head = ["198.51.100.7"]\n')
    assert run(capsys, "ensure", "--yes")[0] == 0
    assert [one.name for one in site.groups.values()] == ["demo-worker"]
    assert pool_port("198.51.100.7/32") in group(site, "demo-worker").rules


def test_workers_in_the_default_group_are_told_of(site: Site, write: Write, capsys: Capture) -> None:
    write((SETTINGS % "").replace('security_groups = ["demo-worker"]\n', ""))
    assert run(capsys, "ensure", "--yes")[0] == 0
    code, out, _ = run(capsys, "check")
    assert code == 1
    assert f'security_groups = ["{group(site, "demo-worker").id}"] into [clouds.here]' in out


def test_without_admins_it_is_said_that_nobody_can_log_in(site: Site, write: Write, capsys: Capture) -> None:
    write((SETTINGS % "").replace('admins = ["203.0.113.0/24"]', ""))
    code, out, _ = run(capsys, "check")
    assert code == 1
    assert "  ! nothing says from where people log in: write [network] admins" in out
    assert "tcp 22" not in out


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "1.0.0.0/7", "head.example.org"])
def test_half_the_world_is_no_network_to_be_let_in(
    site: Site, write: Write, capsys: Capture, network: str
) -> None:
    write((SETTINGS % "").replace("203.0.113.0/24", network))
    code, _, err = run(capsys, "check")
    assert code == 2
    assert "network" in err


def test_a_cloud_without_groups_is_left_out_with_its_reason(
    write: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPDRAFT_LOCAL_CLOUD_TOKEN", "t")
    write(
        (SETTINGS % "")
        .replace('driver = "fake"', 'driver = "local"\nendpoint = "unix:/nowhere"')
        .replace('security_groups = ["demo-worker"]\n', "")
    )
    code, out, _ = run(capsys, "check")
    assert code == 0
    assert "cloud here: nothing to compare: its machines are namespaces of one host" in out
    code, _, err = run(capsys, "ensure", "--yes")
    assert code == 2
    assert "namespaces" in err


def test_a_cloud_that_is_not_there(site: Site, capsys: Capture) -> None:
    assert run(capsys, "check", "nowhere")[0] == 2
    assert run(capsys, "ensure", "nowhere")[0] == 2
