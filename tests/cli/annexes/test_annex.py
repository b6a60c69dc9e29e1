"""`updraft annex`: what it writes down, what it refuses before anything is paid for, what it shows."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.checks.test_check import StubProbe
from tests.rigs.annexworlds import with_annexes
from tests.rigs.forms import validate
from tests.rigs.snapshots import NOW, policy, snapshot
from updraft import config
from updraft.app import annexes as use_case
from updraft.app import wiring
from updraft.checks import reach
from updraft.checks.asking import Answer
from updraft.checks.finding import Finding, State
from updraft.cli import main
from updraft.cli.annexes import making as annex_making
from updraft.cli.schemas import FORMS
from updraft.core.model import Annex, Launch, MachineRecord, Plan, Reason, variant
from updraft.core.plan import plan
from updraft.core.settings import Limits
from updraft.core.slots.variants import LONGEST
from updraft.errors import PoolError
from updraft.ledger import Ledger, annexes
from updraft.ledger.tokens import Issued, note

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
lifetime = "2h"

[classes.own]
image = "worker"
owner_only = true
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A pool whose daemon looked just now, and whose machines can join."""
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(use_case, "check_reach", lambda _settings, _annex: [])
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    made = Ledger(config.place(tmp_path / "updraft.toml").ledger)
    made.note("controller", {"last_cycle": time.time(), "acting": True, "host": "elsewhere"}, time.time())
    return made


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(["annex", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def create(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    return run(capsys, "create", "big", "--class", "default", *arguments)


def shown(capsys: Capture, *arguments: str) -> Any:
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    document = json.loads(out)
    validate(document, FORMS[f"annex {arguments[0]}"])
    return document


def test_what_is_asked_for_is_written_down(ledger: Ledger, tmp_path: Path, capsys: Capture) -> None:
    layer = tmp_path / "more.sh"
    layer.write_text("#!/bin/sh\ntouch /there\n")
    begun = time.time()
    code, out, _ = create(
        capsys, "--count", "3", "--duration", "1h30m", "--idle", "5m", "--max-price", "0.5", "--tag", "a=b=c",
        "--user-data", str(layer),
    )  # fmt: skip
    assert code == 0
    assert out.startswith("annex big: asked for; its lease ends at ")
    [made] = ledger.annexes()
    assert (made.name, made.owner, made.worker_class, made.machines, made.cores) == (
        "big",
        "ann",
        "default",
        3,
        0,
    )
    assert begun + 5400 <= made.until <= time.time() + 5400
    assert (made.idle, made.for_all, made.spot, made.max_price) == (300.0, False, None, 0.5)
    assert made.tags == {"a": "b=c"}
    assert annexes.layer_text(ledger.path, made.layer) == layer.read_text()
    assert [event.code for event in ledger.events()] == ["annex-created"]


def test_type_image_region_and_group_are_an_annexs_own(ledger: Ledger, capsys: Capture) -> None:
    (config.place(ledger.path.parent.parent / "updraft.toml").file).write_text(
        SETTINGS.replace('lifetime = "2h"', 'lifetime = "2h"\nimages_allowed = "ami-*"')
    )
    words = ("--cloud", "here", "--flavor", "m5.*", "--flavor", "!m5.metal", "--image", "ami-1")
    document = shown(
        capsys, "create", "big", "--class", "default", "--count", "1", *words, "--security-group", "sg-1"
    )
    [made] = ledger.annexes()
    assert (made.clouds, made.flavors, made.image) == (("here",), ("m5.*", "!m5.metal"), "ami-1")
    assert made.security_groups == ("sg-1",)
    assert made.variant.image == "ami-1"
    assert document["annex"]["flavors"] == ["m5.*", "!m5.metal"]


def test_the_defaults_are_those_of_condor_annex(ledger: Ledger, capsys: Capture) -> None:
    document = shown(capsys, "create", "big", "--class", "default", "--cores", "8", "--owner", "all")
    [made] = ledger.annexes()
    assert (made.cores, made.idle, made.for_all) == (8, 900.0, True)
    assert round(made.until - made.since) == 3000
    assert document["annex"]["layer"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("big",), "--count so many machines, or with --cores"),
        (("big", "--count", "1", "--cores", "2"), "--count so many machines, or with --cores"),
        (("1big", "--count", "1"), "no name of an annex"),
        (("x" * 64, "--count", "1"), "no name of an annex"),
        (("big", "--count", "1", "--duration", "3h"), "live for 2h: no lease is longer"),
        (("big", "--count", "1", "--duration", "50"), "has no unit"),
        (("big", "--count", "1", "--class", "gone"), "there is no class gone; say one of default, own"),
        (("big", "--count", "1", "--class", ""), "there is more than one class"),
        (("big", "--count", "1", "--class", "own", "--owner", "all"), "can't be for all"),
        (("big", "--count", "1", "--spot"), "isn't bought spot"),
        (("big", "--count", "1", "--owner", "a b"), "no name of a user"),
        (("big", "--count", "1", "--tag", "x"), "--tag takes KEY=VALUE"),
        (("big", "--count", "1", "--tag", "Updraft:pool=x"), "updraft's own"),
        (("big", "--count", "1", "--max-price", "nan"), "highest price"),
        (("big", "--count", "0"), "0"),
        (("big", "--count", "1", "--cloud", "there"), "isn't on cloud 'there': say here"),
        (("big", "--count", "1", "--flavor", ""), "no name of a flavor"),
        (
            ("big", "--count", "1", "--image", "x"),
            "doesn't allow the image 'x': [classes.default] images_allowed",
        ),
    ],
)
def test_what_is_no_annex_is_refused_in_one_sentence(
    ledger: Ledger, capsys: Capture, arguments: tuple[str, ...], words: str
) -> None:
    given = arguments if "--class" in arguments else (*arguments, "--class", "default")
    code, _, err = run(capsys, "create", *given)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert ledger.annexes() == ()


def test_user_data_is_looked_at_as_that_of_the_configuration(
    ledger: Ledger, tmp_path: Path, capsys: Capture
) -> None:
    layer = tmp_path / "layer"
    for text, words in (
        ("hello\n", "first line"),
        ("#cloud-config\n- a: [\n", "no YAML"),
        (" \n", "not empty"),
    ):
        layer.write_text(text)
        code, _, err = create(capsys, "--count", "1", "--user-data", str(layer))
        assert (code, words in err) == (2, True), err
    layer.write_bytes(b"\xff\xfe")
    assert create(capsys, "--count", "1", "--user-data", str(layer))[0] == 2
    assert ledger.annexes() == ()
    assert not (ledger.path.parent / annexes.LAYERS).exists()


def test_nothing_is_asked_for_where_machines_could_not_join(
    ledger: Ledger, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Finding("pool", reach.WHAT, State.PROBLEM, "nothing answers there", "start it")
    doubt = Finding("pool", reach.WHAT, State.WARNING, "a private address", "look")
    monkeypatch.setattr(use_case, "check_reach", lambda _settings, _annex: [doubt, bad])
    code, _, err = create(capsys, "--count", "1")
    assert code == 1
    assert "a private address; look" in err
    assert "could not join: nothing answers there; start it; nothing was asked for (--unchecked" in err
    assert ledger.annexes() == ()
    assert create(capsys, "--count", "1", "--unchecked")[0] == 0
    assert len(ledger.annexes()) == 1


def test_a_name_is_taken_until_it_is_forgotten(ledger: Ledger, capsys: Capture) -> None:
    assert create(capsys, "--count", "1")[0] == 0
    code, _, err = create(capsys, "--count", "1")
    assert code == 2
    assert "there is an annex big already" in err


def test_a_lease_is_extended_and_not_beyond_the_life_of_its_machines(ledger: Ledger, capsys: Capture) -> None:
    create(capsys, "--count", "1", "--duration", "1h")
    code, _, err = run(capsys, "extend", "big", "--duration", "30m")
    assert (code, "ends later than that" in err) == (2, True)
    code, _, err = run(capsys, "extend", "big", "--duration", "121m")
    assert (code, "live for 2h" in err) == (2, True)
    document = shown(capsys, "extend", "big", "--duration", "90m")
    [made] = ledger.annexes()
    assert abs(made.until - time.time() - 5400) < 5
    assert document["annex"]["until"] == made.until
    code, _, err = run(capsys, "extend", "bigg", "--duration", "90m")
    assert (code, "did you mean big?" in err) == (2, True)


def test_a_lease_is_not_extended_beyond_a_token_of_its_machines(
    ledger: Ledger, capsys: Capture, tmp_path: Path
) -> None:
    create(capsys, "--count", "1", "--duration", "1h")
    [made], now = ledger.annexes(), time.time()
    row = MachineRecord("i-1", "here", "k", "default", "small", "g", now, variant=made.variant)
    ledger.remember([row])
    note(ledger, Issued("k", "default", "worker-k@pool", "id", "updraft-workers", now, now + 8000))
    # The class has machines live longer now than it did when this one was launched.
    settings = tmp_path / "updraft.toml"
    settings.write_text(settings.read_text().replace('"2h"', '"9h"'))
    code, _, err = run(capsys, "extend", "big", "--duration", "8100s")
    assert (code, "the first token of a machine of annex big ends in" in err) == (2, True)
    assert ledger.annexes() == (made,)
    assert run(capsys, "extend", "big", "--duration", "7900s")[0] == 0
    ledger.remember([replace(row, ended_at=now)])
    assert run(capsys, "extend", "big", "--duration", "8100s")[0] == 0


def test_a_lease_of_a_class_that_is_gone_is_not_extended(
    ledger: Ledger, capsys: Capture, tmp_path: Path
) -> None:
    create(capsys, "--count", "1", "--duration", "1h")
    settings = tmp_path / "updraft.toml"
    settings.write_text(settings.read_text().replace("[classes.default]", "[classes.other]"))
    code, _, err = run(capsys, "extend", "big", "--duration", "90m")
    assert (code, "class default of annex big is no longer in the settings" in err) == (2, True)


def test_stop_and_delete(ledger: Ledger, capsys: Capture) -> None:
    create(capsys, "--count", "1")
    assert shown(capsys, "stop", "big")["annex"]["kill_jobs"] is False
    [made] = ledger.annexes()
    assert made.stopped is not None
    assert "ann@" in made.stopped.text
    code, _, err = run(capsys, "extend", "big", "--duration", "1h")
    assert (code, "is over" in err) == (2, True)
    assert shown(capsys, "delete", "big", "--kill-jobs")["annex"]["deleted"] is True
    [made] = ledger.annexes()
    assert (made.deleted, made.kill_jobs) == (True, True)


def test_without_a_daemon_it_says_so(ledger: Ledger, capsys: Capture) -> None:
    ledger.note("controller", {"last_cycle": time.time() - 900}, time.time())
    code, out, err = create(capsys, "--count", "1")
    assert code == 1
    assert "asked for" in out
    assert "no daemon is at work" in err
    assert len(ledger.annexes()) == 1


HELD = {
    "name": "big", "state": "held", "machines": 1, "cores": 2, "joined": 1, "busy": 0, "coming": 0,
    "launching": 0, "missing": 1, "forget": False,
    "reason": {"code": "limit-machines", "text": "the pool may have 1 machines"},
}  # fmt: skip


def table_of(out: str) -> dict[str, str]:
    """The row of annex "big" by the titles above it."""
    lines = out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.split()[:2] == ["annex", "for"])
    row = next(line for line in lines[at:] if line.startswith("big "))
    cells = [re.split(r"  +", line.strip()) for line in (lines[at], row)]
    return dict(zip(*cells, strict=True))


@pytest.mark.parametrize("columns", [90, 160])
def test_the_pools_status_lists_the_annexes_that_stand(
    ledger: Ledger, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    now = time.time()
    ledger.save_cycle({"annexes": [HELD], "at": now}, now)

    def status(*words: str) -> str:
        assert main.call(["status", *words]) == 0
        return capsys.readouterr().out

    assert "annex" not in status()
    assert json.loads(status("--json"))["annexes"] == []
    annexes.create(ledger, Annex("big", "ann", "default", 3, 0, now + 600, 900.0, since=now), "ann@head")
    row = table_of(status())
    assert (row["for"], row["machines"], row["joined"]) == ("ann", "1/3", "1")
    assert re.search(r" \(in (9|10)m\)$", row["lease ends"])
    assert row["state"].startswith("held: the pool may")
    document = json.loads(status("--json"))
    validate(document, FORMS["status"])
    (one,) = document["annexes"]
    assert (one["owner"], one["machines"], one["until"], one["look"]["joined"]) == ("ann", 3, now + 600, 1)
    assert one == shown(capsys, "list")["annexes"][0]


def test_an_annex_that_was_just_deleted_is_shown_to_leave_before_the_daemon_has_looked(
    ledger: Ledger, capsys: Capture
) -> None:
    now = time.time()
    annexes.create(ledger, Annex("big", "ann", "default", 3, 0, now + 600, 900.0, since=now), "ann@head")
    ledger.save_cycle({"annexes": [HELD], "at": now}, now)
    run(capsys, "delete", "big")
    row = table_of(run(capsys, "list")[1])
    assert re.match(r"leaving: .* deleted annex big", row["state"])
    assert row["machines"] == "1", "of none that are wanted"


def test_list_and_status_show_how_it_stands_and_its_machines(ledger: Ledger, capsys: Capture) -> None:
    assert run(capsys, "list")[1] == "there is no annex\n"
    now = time.time()
    made = Annex("big", "ann", "default", 3, 0, now + 600, 900.0, since=now, left=1, left_cores=2)
    annexes.create(ledger, made, "ann@head")
    assert "the daemon hasn't looked yet" in run(capsys, "list")[1]
    kept = MachineRecord("i-1", "here", "k", "default", "small", "g", now, variant=made.variant)
    gone = MachineRecord("i-2", "here", "k", "default", "small", "g", now, ended_at=now, variant=made.variant)
    ledger.remember([kept, gone])
    look = {**HELD, "name": "big"}
    seen = {
        "machine": "i-1",
        "cloud": "here",
        "phase": "joined",
        "reason": {"code": "idle", "text": "idle since"},
    }
    ledger.save_cycle({"annexes": [look], "machines": [seen], "at": now}, now)
    for verb in ("list", "status"):
        [row] = shown(capsys, verb)["annexes"]
        assert (row["look"]["missing"], [one["id"] for one in row["instances"]]) == (1, ["i-1"])
    out = run(capsys, "list")[1]
    assert "1/2" in out
    assert "held: the pool may have 1 machines" in out
    out = run(capsys, "status", "big")[1]
    assert "the jobs of ann" in out
    assert "i-1 on here: small, joined: idle since" in out
    assert run(capsys, "status", "small")[0] == 2


def test_the_longest_names_fit_into_a_tag(ledger: Ledger, capsys: Capture) -> None:
    names = ("x" * 63, "--owner", "y" * 64 + "@" + "z" * 63)
    assert run(capsys, "create", *names, "--class", "default", "--count", "1")[0] == 0
    [made] = ledger.annexes()
    assert len(made.variant.text) <= LONGEST
    assert variant(made.variant.text) == made.variant


def test_the_owner_of_a_root_by_sudo_is_who_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    monkeypatch.setenv("SUDO_USER", "ben")
    assert annex_making.me() == "ben"
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert annex_making.me() == "ann"


# ---------------------------------------------------------------------------------- can its machines join


@pytest.mark.parametrize(
    ("address", "why", "state", "words"),
    [
        ("127.0.0.1", "", State.PROBLEM, "that means themselves"),
        ("::1", "", State.PROBLEM, "that means themselves"),
        ("169.254.1.1", "", State.PROBLEM, "that means themselves"),
        ("8.8.8.8", "Connection refused", State.PROBLEM, "nothing answers at head"),
        ("10.1.2.3", "", State.WARNING, "private address, and no machine has joined from c2 yet"),
        ("8.8.8.8", "", State.OK, "it answers"),
    ],
)
def test_the_address_that_machines_are_told(address: str, why: str, state: State, words: str) -> None:
    [found] = reach.judge(Answer([("head", address, why)]), {"c1": True, "c2": False})
    assert found.state is state
    assert words in found.text
    assert bool(found.remedy) == (state is not State.OK)


def test_an_address_without_a_name_is_said_once() -> None:
    [found] = reach.judge(Answer([("10.1.2.3", "10.1.2.3", "")]), {"c1": False})
    assert found.text.count("10.1.2.3") == 1


def test_a_machine_that_has_joined_from_there_proves_it() -> None:
    [found] = reach.judge(Answer(error=PoolError("no such name")), {"c1": True})
    assert found.state is State.OK
    [found] = reach.judge(Answer(error=PoolError("no such name")), {"c1": False})
    assert found.state is State.PROBLEM
    rows = [
        MachineRecord("i-1", "c1", "k", "default", "f", "g", 1.0, joined_at=2.0),
        MachineRecord("i-2", "c2", "k", "default", "f", "g", 1.0, end=Reason("never-joined", "")),
        MachineRecord("i-3", "c3", "k", "other", "f", "g", 1.0, joined_at=2.0),
    ]
    assert reach.joined_from(("c1", "c2", "c3"), "default", rows) == {"c1": True, "c2": False, "c3": False}


def test_a_pool_that_listens_here_is_tried(tmp_path: Path) -> None:
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        [(_, address, why)] = reach.questions(lambda: (f"127.0.0.1:{port}?sock=x",), 2.0)["reach"]()
        assert (address, why) == ("127.0.0.1", "")
    [(_, _, why)] = reach.questions(lambda: (f"127.0.0.1:{port}",), 2.0)["reach"]()
    assert why
    assert reach.split("[::1]:99") == ("::1", 99)
    assert reach.split("fe80::1") == ("fe80::1", 9618)
    assert reach.split("head?sock=c") == ("head", 9618)


# ------------------------------------------------------------------------------------------- what it buys


def test_a_dry_run_shows_what_would_be_launched_and_what_not(
    ledger: Ledger, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Annex] = []

    @contextmanager
    def looked(_call: Any, annex: Annex) -> Iterator[Plan]:
        asked.append(annex)
        seen = with_annexes(snapshot(), [replace(annex, until=NOW + 60)])
        yield plan(seen, policy(limits=Limits(machines=2)))

    monkeypatch.setattr(use_case, "imagined", looked)
    document = shown(capsys, "create", "big", "--class", "default", "--count", "3", "--dry-run")
    [launch] = document["launches"]
    assert (launch["count"], launch["cores"], launch["price"]) == (2, 4, 0.1)
    assert launch["offer"].startswith("default@c1/z1/small/on-demand?user=ann&")
    assert document["outlook"]["missing"] == 1
    code, out, _ = create(capsys, "--count", "3", "--dry-run")
    assert code == 0
    assert re.search(r"would launch 2 default@c1/z1/small/on-demand\S*: 4 cores, 0.2 per hour", out)
    assert "1 machine not now: the pool may have 2 machines" in out
    assert [one.machines for one in asked] == [3, 3]
    assert ledger.annexes() == ()


def test_a_dry_run_adds_the_annex_to_those_that_there_are(ledger: Ledger) -> None:
    there = annexes.create(ledger, Annex("one", "ann", "default", 1, 0, 9.0, 9.0), "ann")
    more = replace(there, name="two")
    over = use_case._With(ledger, more)
    assert over.annexes() == (there, more)
    assert over.view(0.0) == ledger.view(0.0)


def test_the_user_data_of_an_annex_is_the_last_layer_of_its_machines(ledger: Ledger, tmp_path: Path) -> None:
    made = annexes.create(
        ledger, Annex("big", "ann", "default", 1, 0, 9.0, 9.0), "ann", "#cloud-config\nruncmd: [ours]\n"
    )
    settings = config.load(tmp_path / "updraft.toml")
    offer = snapshot().offers[0]
    offer = replace(offer, cloud="here", variant=made.variant)
    ask = {"TRUST_DOMAIN": "pool.test", "UID_DOMAIN": "pool.test", "COLLECTOR_HOST": "head"}.get
    plain = Launch("k", offer, 1, Reason("annex", ""))
    for launch, names in ((plain, []), (replace(plain, annex=made), ["user-data of annex big"])):
        spec = wiring.worker_spec(settings, lambda name: ask(name) or "", launch, "token")
        spec = wiring.with_layer(spec, launch, ledger.path)
        assert [layer.name for layer in spec.layers] == names
    assert spec.layers[-1].content == {"runcmd": ["ours"]}


def test_a_pool_that_refuses_workers_is_looked_at_before_anything_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "updraft.toml").write_text(SETTINGS.replace('"demo"', '"demo"\ncollector = "127.0.0.1:1"'))
    probe = StubProbe()
    monkeypatch.setattr("updraft.condor.support.probe.PoolProbe", lambda _access: probe)
    settings = config.load(tmp_path / "updraft.toml")
    annex = Annex("big", "ann", "default", 1, 0, 9.0, 9.0)
    found = use_case.check_reach(settings, annex)
    assert [(one.what, str(one.state)) for one in found] == [(reach.WHAT, "problem")]
    probe.token = dict.fromkeys(probe.token, "")
    assert {one.what for one in use_case.check_reach(settings, annex)} == {reach.WHAT, "workers' tokens"}
