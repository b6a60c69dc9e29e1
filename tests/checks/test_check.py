"""`check`: each thing that can be amiss is found, in its own line, with what to do."""

import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.clouds.made import finding
from tests.rigs.forms import validate
from tests.waiting import patience
from updraft import config
from updraft.bootstrap.condor_config import NO_FS
from updraft.bootstrap.head.identities import ENDED, ENDED_SETTING, OWN_SETTING, REQUIREMENTS, identity_rule
from updraft.checks import asking, host, proxies
from updraft.checks.asking import Answer
from updraft.checks.pool import PoolFacts, groups
from updraft.checks.tokens import lines
from updraft.cli import main
from updraft.cli.schemas import FORMS
from updraft.clouds.base import Finding, ImageInfo
from updraft.clouds.fake import FakeCloud
from updraft.condor.support.probe import RIGHTS, WORKER_RIGHTS, CollectorSeen, ScheddSeen, plain_version
from updraft.core.model import MachineRecord, Reason
from updraft.errors import PoolDenied, PoolError, PoolTimeout
from updraft.ledger import Ledger
from updraft.ledger.identity import Host, kept
from updraft.ledger.tokens import HandedToken, note

SETTINGS = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
images = ["worker"]
{cloud}
[classes.default]
image = "{image}"
flavors = "{flavors}"
{worker}
[limits]
{limits}
"""
ME = "condor@demo"
Capture = pytest.CaptureFixture[str]


class StubProbe:
    """A pool in which everything is in order, until a test changes it."""

    def __init__(self) -> None:
        self.seen = CollectorSeen(
            "head.demo",
            "25.14.1",
            0.0,
            dict.fromkeys(RIGHTS, ME),
            ("POOL", "updraft-workers"),
            1,
            time.time(),
            {
                REQUIREMENTS: identity_rule("demo")[REQUIREMENTS],
                OWN_SETTING: "True",
                ENDED_SETTING: ENDED,
                "NEGOTIATOR.SEC_CLIENT_AUTHENTICATION_METHODS": NO_FS,
            },
        )
        self.found: Mapping[str, ScheddSeen | str] = {
            "head": ScheddSeen("head", "25.14.1", ME, ("root", "condor"))
        }
        self.token: Mapping[str, str] | Exception = dict.fromkeys(WORKER_RIGHTS, "worker-check@demo")
        self.silence: Exception | None = None
        self.nobody = ""
        self.version = "25.14.1"
        self.closed = False

    def collector(self, deadline: float, settings: tuple[str, ...] = ()) -> CollectorSeen:
        assert set(self.seen.settings or ()) <= set(settings)
        if self.silence is not None:
            raise self.silence
        return self.seen

    def schedds(self, deadline: float) -> Mapping[str, ScheddSeen | str]:
        return self.found

    def tools_version(self) -> str:
        if not self.version:
            raise PoolError("condor_version cannot be run; install HTCondor's tools on this host")
        return self.version

    def tool(self, name: str) -> str:
        return f"/usr/bin/{name}"

    def worker_token(self, deadline: float) -> Mapping[str, str]:
        if isinstance(self.token, Exception):
            raise self.token
        return self.token

    def stranger(self, deadline: float) -> str:
        return self.nobody

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> StubProbe:
    stub = StubProbe()
    monkeypatch.setattr("updraft.checks.role.role_of_machine", lambda *_: "")
    monkeypatch.setattr("updraft.condor.support.probe.PoolProbe", lambda access: stub)
    return stub


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: StubProbe) -> Path:
    """A site where all is well, with a daemon that looked just now."""
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("UPDRAFT_DEBUG", raising=False)
    write(tmp_path)
    with ledger_of(tmp_path) as ledger:
        alive(ledger)
        ledger.note("schedds", {"seen": {"head": time.time()}}, time.time())
    return tmp_path


def write(site: Path, **changes: str) -> None:
    known = {"cloud": "", "image": "worker", "flavors": "*", "worker": "", "limits": "machines = 10"}
    (site / "updraft.toml").write_text(SETTINGS.format(**{**known, **changes}))
    (site / "updraft.toml").chmod(0o644)


def ledger_of(site: Path) -> Ledger:
    return Ledger(config.place(site / "updraft.toml").ledger)


def alive(ledger: Ledger, at: float | None = None, **changes: Any) -> None:
    at = time.time() if at is None else at
    note = {"pid": os.getpid(), "host": socket.getfqdn(), "started": at, "last_cycle": at, "acting": True}
    ledger.note("controller", {**note, **changes}, at)
    ledger.save_cycle({"at": at, "pool": "demo", "standing": changes.get("standing")}, at)


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(["check", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def found(capsys: Capture) -> tuple[int, dict[str, tuple[str, str, str]]]:
    """The exit code, and state, text and remedy of each thing that was looked at, by "area: what"."""
    code, out, _ = run(capsys, "--json")
    document = json.loads(out)
    validate(document, FORMS["check"])
    rows = document["findings"]
    assert all(bool(row["remedy"]) for row in rows if row["state"] in ("warning", "problem")), "no remedy"
    return code, {f"{row['area']}: {row['what']}": (row["state"], row["text"], row["remedy"]) for row in rows}


def amiss(capsys: Capture, what: str, state: str = "problem") -> str:
    """Text and remedy of the one thing that is amiss; nothing else may be."""
    code, rows = found(capsys)
    odd = [key for key, row in rows.items() if row[0] in ("problem", "warning")]
    assert odd == [what]
    assert rows[what][0] == state
    assert code == (1 if state == "problem" else 0)
    return f"{rows[what][1]} → {rows[what][2]}"


def test_a_proxy_of_the_settings_is_asked_for_metadata(
    site: Path, probe: StubProbe, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "fetches", lambda proxy: proxy.endswith(":3128"))
    write(site, worker='cvmfs = ["sft.cern.ch"]\ncvmfs_proxy = "http://squid.test:3128;DIRECT"')
    assert "any job can read" in amiss(capsys, "here: proxy http://squid.test:3128", "warning")


def test_all_is_ok_and_the_exit_code_is_0(site: Path, probe: StubProbe, capsys: Capture) -> None:
    code, rows = found(capsys)
    assert code == 0
    assert {row[0] for row in rows.values()} == {"ok"}
    assert {"here: configuration", "here: daemon", "pool: clock", "pool: workers' tokens"} <= set(rows)
    assert {"cloud here: credentials", "cloud here: image of class default"} <= set(rows)
    assert probe.closed


@pytest.mark.parametrize("columns", [80, 120])
def test_the_report_fits_the_terminal(
    site: Path, probe: StubProbe, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    probe.found = {"a-schedd-of-a-long-name@a.host.with.an.even.longer.name.example.org": "no answer"}
    code, out, err = run(capsys)
    assert code == 1
    assert max(len(line) for line in out.splitlines()) <= columns
    assert "→ look at SchedLog" in " ".join(out.split())
    assert err == "updraft: 2 problems: see what to do above\n"
    assert "ok" not in run(capsys, "--brief")[1].split("2 problems")[0].split()


# --------------------------------------------------------------------------------------------------- here


def test_a_wrong_configuration_is_named_by_its_line_and_is_2(site: Path, capsys: Capture) -> None:
    write(site, worker="idle_limit = 10")
    code, rows = found(capsys)
    assert code == 2
    assert "line 12" in rows["here: configuration"][1]


def test_a_file_that_others_may_write(site: Path, capsys: Capture) -> None:
    (site / "updraft.toml").chmod(0o666)
    assert "chmod go-w" in amiss(capsys, "here: configuration", "warning")


def test_no_limit_at_all(site: Path, capsys: Capture) -> None:
    write(site, limits="")
    assert "cost_per_hour" in amiss(capsys, "here: limits", "warning")


def test_no_daemon_ever_and_none_any_more(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        alive(ledger, time.time() - 7200)
    assert "2h ago → start it" in amiss(capsys, "here: daemon")
    for left in (site / "state").glob("ledger*"):
        left.unlink()
    _, rows = found(capsys)
    assert rows["here: daemon"][0] == "problem"
    assert rows["here: boots"][0] == "skipped"


def test_a_daemon_that_waits_for_another(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        alive(ledger, acting=False, standing={"code": "second-controller", "text": "other acts"})
    assert "other acts" in amiss(capsys, "here: daemon", "warning")


def test_a_daemon_that_only_watches_is_as_it_should_be(site: Path, capsys: Capture) -> None:
    with ledger_of(site) as ledger:
        alive(ledger, acting=False, standing={"code": "watching", "text": "it only watches"})
    _, rows = found(capsys)
    assert rows["here: daemon"][0] == "ok"
    assert "only watches" in rows["here: daemon"][1]


def test_a_damaged_ledger(site: Path, capsys: Capture) -> None:
    (site / "state" / "ledger.sqlite").write_bytes(b"no ledger" * 1000)
    _, rows = found(capsys)
    assert rows["here: ledger"][0] == "problem"
    assert rows["here: daemon"][0] == "skipped"


def test_little_room(site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = host.shutil.disk_usage
    monkeypatch.setattr(host.shutil, "disk_usage", lambda path: real(path)._replace(free=50 << 20))
    assert "make room" in amiss(capsys, "here: disk")


def test_machines_that_never_joined_with_the_end_of_their_console(site: Path, capsys: Capture) -> None:
    now = time.time()
    dead = MachineRecord(
        "i-dead", "here", "k0", "default", "small", "g", now - 900, image="worker", ended_at=now - 300,
        end=Reason("never-joined", "it has not joined the pool in 600 s"),
    )  # fmt: skip
    with ledger_of(site) as ledger:
        ledger.remember([dead, replace(dead, id="i-worn", end=Reason("lifetime", "it was old"))])
        ledger.keep_console("here", "i-dead", "hello\nupdraft-boot: FAILED: no\x1b[2J HTCondor\nlogin:", now)
    said = amiss(capsys, "here: boot of i-dead", "warning")
    assert "it has not joined the pool in 600 s (worker, small)" in said
    assert "updraft-boot: FAILED: no[2J HTCondor →" in said
    assert "updraft explain i-dead" in said


def test_the_last_words_of_a_console_without_a_line_of_ours() -> None:
    assert host.last_words("a\n\nb\nc\nd\n") == "b | c | d"
    assert host.last_words("") == ""


# --------------------------------------------------------------------------------------------------- pool


def test_a_silent_collector_leaves_the_rest_skipped(site: Path, probe: StubProbe, capsys: Capture) -> None:
    probe.silence = PoolTimeout("the collector gave no answer within 7 s")
    assert "9618" in amiss(capsys, "pool: collector")
    _, rows = found(capsys)
    assert rows["pool: schedds, negotiator, rights, clock, workers' tokens"][0] == "skipped"
    probe.silence = PoolDenied("HTCondor refused: no READ")
    assert "--pool-lines" in amiss(capsys, "pool: collector")


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_that_is_refused(site: Path, probe: StubProbe, capsys: Capture, right: str) -> None:
    probe.seen = replace(probe.seen, rights={**probe.seen.rights, right: ""})
    assert "--pool-lines" in amiss(capsys, f"pool: right {right}")


def test_who_has_the_rights_is_said(site: Path, probe: StubProbe, capsys: Capture) -> None:
    nobody, ours = "unauthenticated@unmapped", ("ok", f"{ME} may read, drain and advertise", "")
    assert found(capsys)[1]["pool: rights at the collector"] == ours
    probe.seen = replace(probe.seen, rights={**probe.seen.rights, "READ": nobody})
    assert found(capsys)[1]["pool: rights at the collector"] == ours
    probe.seen = replace(probe.seen, rights=dict.fromkeys(RIGHTS, nobody))
    assert "whoever reaches" in amiss(capsys, "pool: rights at the collector", "warning")


def test_a_pool_that_tells_everybody_is_warned_of(site: Path, probe: StubProbe, capsys: Capture) -> None:
    what = "pool: reading without a token"
    assert found(capsys)[1][what][0] == "ok"
    probe.nobody = "unauthenticated@unmapped"
    said = amiss(capsys, what, "warning")
    assert "whoever reaches it (unauthenticated@unmapped)" in said
    assert "SEC_READ_AUTHENTICATION = REQUIRED and DENY_READ = $(DENY_READ) *@unmapped" in said


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({}, "warning"),
        ({"SEC_DEFAULT_AUTHENTICATION_METHODS": "FS,IDTOKENS,KERBEROS"}, "warning"),
        ({"SEC_CLIENT_AUTHENTICATION_METHODS": "idtokens, fs"}, "warning"),
        ({"NEGOTIATOR.SEC_CLIENT_AUTHENTICATION_METHODS": NO_FS}, "ok"),
        (
            {
                "NEGOTIATOR.SEC_CLIENT_AUTHENTICATION_METHODS": "SSL",
                "SEC_DEFAULT_AUTHENTICATION_METHODS": "FS,IDTOKENS",
            },
            "ok",
        ),
    ],
)
def test_daemons_whose_proofs_can_be_shown_on_are_warned_of(
    site: Path, probe: StubProbe, capsys: Capture, said: dict[str, str], state: str
) -> None:
    assert probe.seen.settings is not None
    kept = {name: text for name, text in probe.seen.settings.items() if "AUTHENTICATION_METHODS" not in name}
    probe.seen = replace(probe.seen, settings={**kept, **said})
    assert found(capsys)[1]["pool: proofs of the head's daemons"][0] == state


@pytest.mark.parametrize(
    ("version", "state"), [("23.9.6", "warning"), ("25.11.0", "warning"), ("25.11.1", "ok"), ("", "warning")]
)
def test_a_head_with_a_broker_is_not_told_to_do_what_changes_nothing_there(
    site: Path, probe: StubProbe, capsys: Capture, version: str, state: str
) -> None:
    assert probe.seen.settings is not None
    kept = {name: text for name, text in probe.seen.settings.items() if "AUTHENTICATION_METHODS" not in name}
    probe.seen = replace(
        probe.seen, version=version, settings={**kept, "DAEMON_LIST": "MASTER, COLLECTOR SCHEDD BROKER"}
    )
    found_state, text, remedy = found(capsys)[1]["pool: proofs of the head's daemons"]
    assert found_state == state
    assert "the broker here takes no other proof" in text
    assert "head init" not in remedy
    assert ("HTCondor on the head to 25.11.1 or later" in remedy) == (state == "warning")


@pytest.mark.parametrize(("skew", "state"), [(30.0, "warning"), (-300.0, "problem")])
def test_clocks_that_disagree(site: Path, probe: StubProbe, capsys: Capture, skew: float, state: str) -> None:
    probe.seen = replace(probe.seen, skew=skew)
    said = amiss(capsys, "pool: clock", state)
    assert ("30s ahead of" in said) or ("5m behind" in said)


def test_no_negotiator_and_one_that_sleeps(site: Path, probe: StubProbe, capsys: Capture) -> None:
    probe.seen = replace(probe.seen, cycle_ended=time.time() - 7200)
    assert "ended 2h ago" in amiss(capsys, "pool: negotiator", "warning")
    probe.seen = replace(probe.seen, negotiators=0, cycle_ended=None)
    assert "no job starts" in amiss(capsys, "pool: negotiator")


def test_no_tools_or_those_of_another_release(site: Path, probe: StubProbe, capsys: Capture) -> None:
    probe.version = ""
    assert "can't drain" in amiss(capsys, "pool: HTCondor's tools")
    probe.version = "23.9.6"
    assert "the pool is 25.14.1" in amiss(capsys, "pool: HTCondor's versions", "warning")
    probe.version = "10.0.2"
    assert "older" in amiss(capsys, "pool: HTCondor's versions", "warning")


def test_a_schedd_that_is_gone_silent_or_grants_too_little(
    site: Path, probe: StubProbe, capsys: Capture
) -> None:
    head = probe.found["head"]
    assert isinstance(head, ScheddSeen)
    probe.found = {"head": "no answer within 7 s"}
    assert "no answer" in amiss(capsys, "pool: schedd head")
    probe.found = {"head": replace(head, identity="")}
    assert "WRITE" in amiss(capsys, "pool: schedd head")
    probe.found = {"head": replace(head, superusers=("root",))}
    assert "QUEUE_SUPER_USERS" in amiss(capsys, "pool: schedd head")
    probe.found = {"other": replace(head, name="other")}
    assert "its jobs are frozen" in amiss(capsys, "pool: schedd head")
    probe.found = {"head": replace(head, superusers=None)}
    assert found(capsys)[1]["pool: schedd head"][0] == "skipped"


def test_workers_tokens_that_cannot_be_made_or_are_not_taken(
    site: Path, probe: StubProbe, capsys: Capture
) -> None:
    probe.token = PoolError("condor_token_create failed (1): no such key")
    assert "no such key" in amiss(capsys, "pool: workers' tokens")
    probe.seen = replace(probe.seen, issuers=("POOL",))
    assert "has no key updraft-workers" in amiss(capsys, "pool: workers' tokens")
    probe.token = {"ADVERTISE_STARTD": "", "ADVERTISE_MASTER": "worker-check@demo"}
    assert "doesn't take it (ADVERTISE_STARTD)" in amiss(capsys, "pool: workers' tokens")


def test_the_version_in_what_htcondor_says() -> None:
    assert plain_version("$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $") == "25.14.1"
    assert plain_version("nothing") == ""


# ------------------------------------------------------------------------------------------------- clouds


@pytest.mark.parametrize("error", ["auth-failed", "cloud-unavailable"])
def test_a_cloud_that_refuses_or_is_silent_is_one_problem_and_the_rest_skipped(
    site: Path, capsys: Capture, error: str
) -> None:
    write(site, cloud=f'faults = [{{ error = "{error}", call = "*" }}]')
    amiss(capsys, "cloud here: credentials")
    _, rows = found(capsys)
    assert rows["cloud here: images, flavors, key pair, quota, endpoint"][0] == "skipped"


def test_one_call_that_fails_leaves_only_its_check_skipped(site: Path, capsys: Capture) -> None:
    write(site, cloud='faults = [{ error = "throttled", call = "quota" }]')
    code, rows = found(capsys)
    assert code == 0
    assert rows["cloud here: quota"][0] == "skipped"
    assert rows["cloud here: flavors of class default"][0] == "ok"


def test_an_image_that_is_not_there(site: Path, capsys: Capture) -> None:
    write(site, image="worxer")
    assert 'no image "worxer" → name another; there is worker' in amiss(
        capsys, "cloud here: image of class default"
    )


@pytest.mark.parametrize(
    ("listed", "state", "said"),
    [
        ([("i1", "worker", "pending", "x86_64")], "problem", "is pending"),
        ([("i1", "worker", "available", "arm64")], "problem", "is for arm64, the flavors are for x86_64"),
        ([("i1", "worker", "available", ""), ("i2", "worker", "available", "")], "warning", "2 images"),
        ([("i1", "worker", "ACTIVE", ""), ("i2", "worker", "deleted", "")], "ok", "is ACTIVE"),
        ([("worker", "x", "available", "X86_64"), ("i2", "worker", "pending", "")], "ok", "is available"),
    ],
)
def test_images_that_cannot_be_booted_or_are_not_the_only_one(
    site: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    listed: list[tuple[str, str, str, str]],
    state: str,
    said: str,
) -> None:
    infos = tuple(ImageInfo(*one, owner="me") for one in listed)
    monkeypatch.setattr(FakeCloud, "images", lambda self: infos)
    row = found(capsys)[1]["cloud here: image of class default"]
    assert row[0] == state
    assert said in row[1]


def test_an_image_that_is_not_listed_is_looked_for(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    strangers = ImageInfo("ami-2", "debian", "available", "x86_64", "another")
    finding(monkeypatch, strangers)
    write(site, image="ami-2")
    assert found(capsys)[0] == 0
    write(site, image="ami-3")
    assert "there is worker" in amiss(capsys, "cloud here: image of class default")


def test_flavors_that_no_offer_has(site: Path, capsys: Capture) -> None:
    write(site, flavors="smal")
    assert "there is small" in amiss(capsys, "cloud here: flavors of class default")
    write(site, worker='markets = ["spot"]')
    assert "(spot)" in amiss(capsys, "cloud here: flavors of class default")


def test_a_price_that_is_not_known_under_a_ceiling_on_cost(site: Path, capsys: Capture) -> None:
    both = 'flavors = { a = { cpus = 1, memory = "1GiB" }, b = { cpus = 1, memory = "1GiB", price = 1 } }'
    write(site, cloud=both, limits="cost_per_hour = 3")
    assert "prices = { a = …" in amiss(capsys, "cloud here: flavors of class default", "warning")
    write(site, cloud=both, limits="cost_per_hour = 3", flavors="a")
    amiss(capsys, "cloud here: flavors of class default")
    write(site, cloud=both, flavors="a")
    assert found(capsys)[0] == 0


def test_the_sites_own_prices_are_prices(site: Path, capsys: Capture) -> None:
    two = 'flavors = { a = { cpus = 1, memory = "1GiB" }, b = { cpus = 1, memory = "1GiB" } }'
    write(site, cloud=two)
    text = amiss(capsys, "cloud here: prices", "warning")
    assert "2 of 2" in text
    assert "prices = { a = …" in text
    write(site, cloud=f"{two}\nprices = {{ a = 0.1 }}")
    text = amiss(capsys, "cloud here: prices", "warning")
    assert "1 of 2" in text
    assert "prices = { b = …" in text
    write(site, cloud=f"{two}\nprices = {{ a = 0.1 }}", flavors="a")
    assert found(capsys)[1]["cloud here: prices"][0] == "ok", "what no class takes needs no price"


def test_offers_that_are_sold_out(site: Path, capsys: Capture) -> None:
    write(site, cloud='zones = ["a"]\ntells_left = true\ncapacity = { "a/small" = 0 }', flavors="small")
    assert "sold out" in amiss(capsys, "cloud here: flavors of class default", "warning")


def test_a_key_pair_that_is_not_there(site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, cloud='key_name = "mine"')
    assert found(capsys)[1]["cloud here: key pair"][1] == "mine is there"
    monkeypatch.setattr(FakeCloud, "key_pairs", lambda self: ("main", "other"))
    assert "there is main" in amiss(capsys, "cloud here: key pair")


def test_a_quota_that_is_used_up(site: Path, capsys: Capture) -> None:
    write(site, cloud="quota_machines = 0\nquota_cores = 10")
    assert "quota of machines" in amiss(capsys, "cloud here: quota")


def test_what_a_driver_says_of_its_endpoint_is_shown(
    site: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = Finding("client tokens", "warning", "this endpoint has none", "nothing: launches are looked up")
    monkeypatch.setattr(FakeCloud, "findings", lambda self: (lacks,))
    assert "has none" in amiss(capsys, "cloud here: client tokens", "warning")


# ---------------------------------------------------------------------------------------------- deadlines


def test_a_question_without_an_answer_ends_with_the_deadline() -> None:
    gate = threading.Event()
    begun = time.monotonic()
    answers = asking.ask({"slow": gate.wait, "quick": lambda: 7}, 0.3)
    assert time.monotonic() - begun < 5 * patience()
    assert answers["quick"].value == 7
    assert "no answer within 0.3 s" in str(answers["slow"].error)
    gate.set()


def test_questions_are_put_at_the_same_time() -> None:
    together = threading.Barrier(3)  # each waits for the others
    answers = asking.ask({name: lambda: together.wait(20) for name in "abc"}, 20)
    assert all(answer.error is None for answer in answers.values())


def test_a_bug_in_a_question_is_raised() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asking.ask({"broken": broken}, 5)


def test_what_several_need_is_made_once() -> None:
    made: list[int] = []
    once = asking.Once(lambda: made.append(1) or "thing")
    answers = asking.ask(dict.fromkeys("abcd", once), 5)
    assert {answer.value for answer in answers.values()} == {"thing"}
    assert made == [1]


def test_what_was_left_out_at_the_last_look_is_named(capsys: Capture, site: Path) -> None:
    job = "left out: job 7.0 of eve at schedd head: the attribute Foo refers to itself, and has no value"
    slot = "slot slot1@odd: its ad says that Memory is 1e+308, which no machine has; it counts as none"
    odd = "cloud here shows i-1 in a way of which nothing can be made (KeyError): it is left out"
    offer = "cloud here sells big in a way of which nothing can be made (KeyError): it is left out"
    warnings = [
        {"code": "left-out", "text": job},
        {"code": "odd-slot", "text": slot},
        {"code": "odd-instance", "text": odd},
        {"code": "odd-offer", "text": offer},
        {"code": "room-in-doubt", "text": "machine i-2 says that it has room"},
    ]
    with ledger_of(site) as ledger:
        ledger.save_cycle(
            {"at": time.time(), "pool": "demo", "standing": None, "warnings": warnings}, time.time()
        )
    code, rows = found(capsys)
    assert code == 0, "a warning is no problem"
    assert rows["pool: jobs left out"][:2] == ("warning", job)
    assert rows["pool: odd slot"][:2] == ("warning", slot)
    assert rows["pool: odd instance"][:2] == ("warning", odd)
    assert rows["pool: odd offer"][:2] == ("warning", offer)
    assert rows["pool: room in doubt"][:2] == ("warning", "machine i-2 says that it has room")
    assert "condor_qedit" in rows["pool: jobs left out"][2]


def test_a_boot_that_cannot_read_its_user_data_is_a_problem(capsys: Capture, site: Path) -> None:
    text = "machine i-1 of cloud here can't read its user-data: it says so"
    told = {
        "at": time.time(),
        "pool": "demo",
        "standing": None,
        "warnings": [{"code": "unread-boot", "text": text}],
    }
    with ledger_of(site) as ledger:
        ledger.save_cycle(told, time.time())
    code, rows = found(capsys)
    assert code != 0
    assert rows["pool: boots"][:2] == ("problem", text)


@pytest.mark.parametrize(
    ("sort", "whose", "remedy"),
    [
        ("offer", "offer c1/z1/small/spot", "report"),
        ("class", "class odd", "[classes."),
        ("annex", "annex mine of eve", "updraft annex delete"),
        ("cloud", "cloud c1", "report"),
    ],
)
def test_what_else_was_left_out_is_named_with_the_remedy_for_its_sort(
    capsys: Capture, site: Path, sort: str, whose: str, remedy: str
) -> None:
    said = f"left out: {whose}: planning for it fails (ValueError)"
    warnings = [{"code": f"left-out-{sort}", "text": said}]
    with ledger_of(site) as ledger:
        ledger.save_cycle(
            {"at": time.time(), "pool": "demo", "standing": None, "warnings": warnings}, time.time()
        )
    found = amiss(capsys, f"pool: {sort} left out", "warning")
    assert said in found
    assert remedy in found
    assert "condor_qedit" not in found


def test_machines_whose_clouds_do_not_end_them_are_named(capsys: Capture, site: Path) -> None:
    now = time.time()
    stays = MachineRecord(
        "i-stays", "here", "k0", "default", "small", "g", now - 9000, terminate_asked_at=now - 20,
        end=Reason("idle-limit", "nothing ran on it"), end_failed_at=now - 7200,
        end_failed=Reason("auth-failed", "UnauthorizedOperation"),
    )  # fmt: skip
    with ledger_of(site) as ledger:
        ledger.remember([stays, replace(stays, id="i-gone", ended_at=now - 300)])
        ledger.remember([replace(stays, id="i-well", end_failed=None, end_failed_at=None)])
        ledger.remember([replace(stays, id="i-old", cloud="no-more", end_failed_at=None)])
    code, rows = found(capsys)
    assert code == 1
    state, text, remedy = rows["cloud here: end of i-stays"]
    assert state == "problem"
    assert "UnauthorizedOperation" in text
    assert "2h" in text
    assert "credentials" in remedy
    assert "cloud no-more: end of i-old" in rows, "also on a cloud that the file has no more"
    assert not [key for key in rows if "i-gone" in key or "i-well" in key]


def test_a_copy_of_the_head_is_told_that_it_is_one(site: Path, capsys: Capture) -> None:
    assert "none yet" in found(capsys)[1]["here: identity"][1]
    kept(config.place(site / "updraft.toml").state_dir, Host("i-1", "elsewhere"))
    assert "is not the pool's head" in amiss(capsys, "here: identity")


def test_whether_groups_may_be_believed_is_said(site: Path, probe: StubProbe, capsys: Capture) -> None:
    head = probe.found["head"]
    assert not isinstance(head, str)
    free = replace(head, requirements=(), immutable=())
    kept = replace(head, requirements=("UpdraftGroups",), immutable=("acctgroup", "accountinggroup"))
    own = replace(head, requirements=("AssignAccountingGroup",), immutable=("AccountingGroup",))
    half = replace(head, requirements=("UpdraftGroups",), immutable=())
    for trusts, seen, level, part in (
        (False, free, "warning", "a job at head may name any group"),
        (False, kept, "ok", "every schedd that answers refuses"),
        (True, kept, "ok", "every schedd that answers refuses"),
        (True, own, "ok", "every schedd that answers refuses"),
        (True, free, "problem", "a job at head may name any group"),
        (True, half, "problem", "a job at head may name any group"),
        (True, head, "skipped", "whether head refuses"),
    ):
        facts = PoolFacts(
            now=time.time(),
            collector=Answer(probe.seen),
            schedds=Answer({"head": seen, "mute": "no answer"}),
            tools=Answer("25.14.1"),
            drain_tool=True,
            token=Answer(probe.token),
            signing_key="updraft-workers",
            trust_groups=trusts,
        )
        (found,) = groups(facts)
        assert found.state.value == level, (trusts, seen)
        assert part in found.text
        assert ("--groups" in found.remedy) == (found.state.value in ("warning", "problem"))
    silent = replace(facts, schedds=Answer({"head": head}), trust_groups=False)
    assert list(groups(silent)) == []


RULE = identity_rule("demo")[REQUIREMENTS]
# It went by what an ad says of itself.
BEFORE = 'TARGET.AuthenticatedIdentity =?= strcat("worker-", TARGET.UpdraftLaunch, "@demo")'


@pytest.mark.parametrize(
    ("lacks", "parts"),
    [
        ({}, []),
        ({REQUIREMENTS: ""}, ["COLLECTOR_REQUIREMENTS"]),
        ({REQUIREMENTS: BEFORE}, ["COLLECTOR_REQUIREMENTS"]),
        ({REQUIREMENTS: RULE.replace('MyType =?= "Machine" && ', "")}, ["COLLECTOR_REQUIREMENTS"]),
        ({REQUIREMENTS: RULE.replace("ClassAdLifetime <= 3600", "true")}, ["COLLECTOR_REQUIREMENTS"]),
        ({REQUIREMENTS: RULE.replace(', " ", unparse(JobUniverse)', "")}, ["COLLECTOR_REQUIREMENTS"]),
        ({REQUIREMENTS: "", "COLLECTOR_REQUIREMENTS": RULE}, []),
        ({OWN_SETTING: "False"}, [OWN_SETTING]),
        ({ENDED_SETTING: ""}, [ENDED_SETTING]),
        (
            {REQUIREMENTS: "", OWN_SETTING: "", ENDED_SETTING: ""},
            ["REQUIREMENTS", OWN_SETTING, ENDED_SETTING],
        ),
    ],
)
def test_a_head_that_lacks_what_came_later_is_told_which_lines_and_how_to_get_them(
    probe: StubProbe, lacks: Mapping[str, str], parts: list[str]
) -> None:
    assert probe.seen.settings is not None
    seen = replace(probe.seen, settings={**probe.seen.settings, **lacks})
    said = list(lines(seen, on_head=True))
    if not parts:
        assert [one.state.value for one in said] == ["ok"]
        return
    assert [one.state.value for one in said] == ["warning"] * len(parts)
    for one, part in zip(said, parts, strict=True):
        assert part in one.text
        assert "`updraft head init`" in one.remedy
        assert "`updraft init --pool-lines`" in one.remedy


def test_a_controller_that_is_not_on_the_head_is_told_what_tokens_are_good_for_there(
    probe: StubProbe,
) -> None:
    (one,) = lines(probe.seen, on_head=False)
    assert one.state.value == "warning"
    assert "all of a launch" in one.text
    assert "updraft tokens revoke" in one.remedy
    (one,) = lines(replace(probe.seen, settings=None), on_head=True)
    assert one.state.value == "skipped"


def test_check_says_of_a_head_of_before_that_it_lacks_lines(
    capsys: Capture, site: Path, probe: StubProbe
) -> None:
    assert "ok" in found(capsys)[1]["pool: lines about tokens"]
    probe.seen = replace(probe.seen, settings={})
    code, rows = found(capsys)
    assert code == 0, "it works as it did"
    assert rows["pool: lines about tokens"][0] == "warning"


def test_machines_that_were_believed_without_a_sign_are_told_of(capsys: Capture, site: Path) -> None:
    now = time.time()
    with ledger_of(site) as ledger:
        for machine, cloud, at, unseen in (
            ("i-1", "here", now - 9, True),
            ("i-2", "here", now - 9, False),
            ("i-3", "there", now - 9, False),
            ("i-4", "there", now - 90_000, True),
        ):
            note(ledger, HandedToken(cloud, machine, "l1", "k", f"worker-l1+{machine}@d", at, now, unseen))
    rows = found(capsys)[1]
    assert "1 machine" in rows["pool: tokens on here"][1]
    assert "consoles" in rows["pool: tokens on here"][2]
    assert "pool: tokens on there" not in rows
