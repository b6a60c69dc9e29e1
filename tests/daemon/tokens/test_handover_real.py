"""A machine's own token on a real collector: who gets it, who doesn't, and what the other one is good for."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, Node, live_pool, wait_for
from tests.rigs.snapshots import NOW, instance, policy, record, snapshot, worker
from tests.waiting import deadline, until
from updraft.bootstrap.condor_config import lines
from updraft.bootstrap.head.identities import ended_lines, identity_rule
from updraft.bootstrap.head.userdata import worker_rights
from updraft.bootstrap.lean import lean
from updraft.bootstrap.worker.handover import PORT
from updraft.checks import tokens
from updraft.condor.collector.handover import key_at, seal
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.probe import PoolProbe
from updraft.condor.tokens.revoking import EndedTokens
from updraft.condor.tokens.workers import whose
from updraft.core.model import CloudView, Instance, Known, Quota
from updraft.daemon.handover import Handover, KeyPlace
from updraft.ledger import Ledger
from updraft.ledger.tokens import Issued, note

pytestmark = pytest.mark.integration

HEAD = lines(
    {
        **{name: f"$(ALLOW_DAEMON) {who}" for name, who in worker_rights(TRUST_DOMAIN).items()},
        **identity_rule(TRUST_DOMAIN),
    }
)
# Its own port is HTCondor's only once HTCondor runs, which here it does from the start.
MACHINE = "DAEMON_LIST = MASTER\nUSE_SHARED_PORT = False\n"
LAUNCH = "l1"
TOKEN_FILE = "/etc/condor/tokens.d/worker"  # noqa: S105
CLASS = "default"


@dataclass
class Site:
    """A pool, its controller's half of the exchange, and machines of one launch."""

    live: LivePool
    pool: HTCondorPool
    ledger: Ledger
    handover: Handover
    machines: dict[str, Node]
    boot_token: str
    shown: list[Instance]
    begun: float = field(default_factory=time.monotonic)
    consoles: dict[str, str] = field(default_factory=dict)

    def turn(self) -> None:
        now = NOW + time.monotonic() - self.begun
        seen = {"c1": CloudView(Known(tuple(self.shown), now), Known((), now), Known(Quota(), now))}
        with self.live.network():
            look = snapshot(now=now, clouds=seen, ledger=self.ledger.view(now))
            self.handover.turn(look, policy(worker(CLASS, boot_deadline=600.0)), {"c1": self}, now)

    def console(self, machine: str) -> str:
        """As a cloud's driver: what a machine has printed."""
        return self.consoles.get(machine, "")

    def ask(self, node: str, machine: str, patience: float = 30.0, port: int = PORT) -> "Asking":
        """The script as at a boot, on a node, that says to be this machine."""
        return Asking(self.machines[node], machine, patience, port)

    def said(self, asking: "Asking") -> tuple[int, str]:
        def over() -> bool:
            self.turn()
            return asking.process.poll() is not None

        wait_for("an answer", over, 60)
        return asking.process.returncode, asking.process.communicate()[0].decode().strip()


class Asking:
    def __init__(self, node: Node, machine: str, patience: float, port: int) -> None:
        self.node = node
        self.token = f"/root/{machine}-token"
        told = {
            "pool": "test", "launch": LAUNCH, "port": port, "patience": patience, "silence": 0.0,
            "room": "/tmp", "instance": "/tmp/id", "token": self.token, "broker": "",
            "done": f"/root/{machine}-done",
        }  # fmt: skip
        node.run("sh", "-c", "cat >/tmp/handover", text=lean("handover.py"))
        node.run(
            "sh",
            "-c",
            f"mkdir -p /root; rm -f /root/{machine}-*; echo {machine} >/tmp/id; cat >/tmp/told",
            text=json.dumps(told),
        )
        self.process = subprocess.Popen(
            [*node.enter(), "python3", "-I", "/tmp/handover", "/tmp/told"], stdout=subprocess.PIPE
        )

    def got(self) -> str:
        return self.node.run("sh", "-c", f"cat {self.token} 2>/dev/null || :").strip()


@pytest.fixture(scope="module", params=["", "trixie"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        live_pool(HEAD + ended_lines(), suite=request.param) as live,
        Ledger(tmp_path_factory.mktemp("state") / "ledger.db") as ledger,
    ):
        live.head_key("updraft-workers")
        access = replace(live.access(), worker_identity="worker-{launch}", own_tokens=True)
        with live.network():
            pool = HTCondorPool(access)
        with pool:
            token = pool.mint_boot_token(LAUNCH, 900.0, 9000.0)
            note(ledger, Issued(LAUNCH, CLASS, whose(token), "id", "k", NOW, NOW + 9000))
            machines = {name: live.start(name, 10 + n, MACHINE, token) for n, name in enumerate(("m1", "m2"))}
            rows = [record(name, launch_key=LAUNCH, requested_at=NOW - 5) for name in ("m1", "m2", "m3")]
            ledger.remember(rows)
            shown = [
                instance(name, launch_key=LAUNCH, address=node.address) for name, node in machines.items()
            ]
            handover = made(ledger, pool)
            made_here = Site(live, pool, ledger, handover, machines, token, shown)
            whole = pool.mint_token(LAUNCH, 600)
            # A collector looks for new keys now and then, 23.9 once a minute.
            wait_for("the key is known", lambda: advertised(made_here, "m1", "m1", whole), deadline(120))
            yield made_here


def made(ledger: Ledger, pool: HTCondorPool) -> Handover:
    handover = Handover(ledger, call=partial(key_at, port=PORT), seal=seal, whose=whose)
    handover.reconfigure(pool, {CLASS: KeyPlace()})
    return handover


SLOT = 'MyType = "Machine"\nName = "slot1@{0}@x"\nMyAddress = "<10.9.9.9:1>"\nStartdIpAddr = "<10.9.9.9:1>"\n'
SLOT += 'State = "Unclaimed"\nUpdraftInstance = "{0}"\nUpdraftLaunch = "l1"\nUpdraftPool = "test"\n'


def send(site: Site, node: str, ad: str, token: str, command: str = "UPDATE_STARTD_AD") -> None:
    """Advertise it from this node, with this token and no other."""
    script = (
        f"d=$(mktemp -d); umask 077; echo '{token}' >$d/t; cat >/tmp/ad; "
        "export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=$d _CONDOR_SEC_TOKEN_DIRECTORY=$d; "
        f"condor_advertise {command} /tmp/ad; rm -r $d"
    )
    site.machines[node].run("sh", "-c", script, text=ad, check=False)


def advertised(
    site: Site,
    node: str,
    machine: str,
    token: str,
    command: str = "UPDATE_STARTD_AD",
    within: float = 2.0,
) -> bool:
    """Does the collector take the slot of that machine from this node, with this token?

    Who sends it isn't told when the collector has read it: one that it takes is there in `within` seconds.
    """
    send(site, node, SLOT.format(machine), token, command)
    name, end = f"slot1@{machine}@x", time.monotonic() + within
    while not (there := name in site.live.status("-any", "-af", "Name")) and time.monotonic() < end:
        time.sleep(0.1)
    if there:
        with site.live.network():
            site.pool.forget([name], 10)
    return there


def taken(site: Site, node: str, machine: str, token: str) -> bool:
    """The same of a slot that the collector has to take."""
    return advertised(site, node, machine, token, within=deadline(30))


def test_a_boot_token_advertises_no_slot_and_answers_nobody(site: Site) -> None:
    for machine in ("m1", "m2", "m9"):
        assert not advertised(site, "m1", machine, site.boot_token)
    assert not advertised(site, "m1", "m1", site.boot_token, "UPDATE_AD_GENERIC")
    full = site.pool.mint_token(LAUNCH, 600)
    assert taken(site, "m1", "m1", full), "a machine of before has a token for all of its launch"


def test_a_machine_gets_its_own_token_and_a_thief_of_the_other_gets_none(site: Site) -> None:
    thief = site.ask("m2", "m1", patience=4.0)
    code, said = site.said(thief)
    assert code == 1, "before the machine itself has asked"
    assert "nobody answers at 10.9." in said
    assert thief.got() == ""

    thief, honest = site.ask("m2", "m1"), site.ask("m1", "m1")
    assert site.said(honest) == (0, "")
    code, said = site.said(thief)
    assert code == 1, "while the machine asks"
    assert "with another key than is at 10.9." in said or "for another key" in said
    assert thief.got() == ""
    own = honest.got()
    assert whose(own) == f"worker-l1+m1@{TRUST_DOMAIN}"
    assert taken(site, "m1", "m1", own)
    for other in ("m2", "m9"):
        assert not advertised(site, "m1", other, own), "no sibling"

    assert "updraft-handover" not in site.live.status("-master", "-af", "Name"), "no question is left"

    # After the machine has its token nobody else gets one, wherever he asks, and whoever decides.
    site.handover = made(site.ledger, site.pool)
    for node in ("m2", "m1"):
        code, said = site.said(site.ask(node, "m1"))
        assert (code, said) == (1, "m1 was given its token before, for another key")
    codes = [event.code for event in site.ledger.events(limit=50)]
    assert codes.count("token-handed") == 1


def test_nobody_gets_a_token_for_a_machine_that_no_cloud_lists(site: Site) -> None:
    for machine in ("m3", "nobody"):
        code, said = site.said(site.ask("m2", machine, patience=3.0))
        assert code == 1
        assert f"no cloud lists {machine} yet" in said


def test_an_answer_that_was_lost_is_told_again_to_the_same_key_by_a_controller_that_was_started_anew(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[Any] = []
    tell: Callable[..., None] = site.pool.answer
    monkeypatch.setattr(site.pool, "answer", lambda answers, *_: lost.extend(answers))
    asking = site.ask("m2", "m2")
    wait_for(
        "an answer that is lost", lambda: (site.turn(), [one for one in lost if "UpdraftSealed" in one])[1]
    )
    monkeypatch.setattr(site.pool, "answer", tell)
    site.handover = made(site.ledger, site.pool)
    assert site.said(asking) == (0, "")
    assert whose(asking.got()) == f"worker-l1+m2@{TRUST_DOMAIN}"


def test_the_token_of_a_machine_that_is_gone_is_refused_and_its_siblings_is_not(site: Site) -> None:
    tokens = {name: site.pool.mint_own_token(LAUNCH, name, 600) for name in ("m1", "m2")}
    assert all(advertised(site, "m2", name, token) for name, token in tokens.items())
    file = Path("/var/lib/updraft-tokens/ended.conf")
    assert str(file) in ended_lines()
    head = site.live.nodes["head"]
    on_head = Path(f"/proc/{head.init}/root{file}")
    with site.live.network():
        ended = EndedTokens(site.pool._access, on_head, alone=True)
        ended.revoke({whose(tokens["m1"]): NOW + 9000}, NOW)
    wait_for("it is refused", lambda: not advertised(site, "m2", "m1", tokens["m1"]), deadline(20))
    assert taken(site, "m2", "m2", tokens["m2"])


READER = """
import sys, classad2, htcondor2
for line in sys.stdin:
    try:
        found = htcondor2.Collector("{collector}").query(htcondor2.AdType.{kind}, "true", ["Name"])
        print("read", len(found), flush=True)
    except Exception as error:
        print("refused", repr(str(error)), flush=True)
"""


@contextmanager
def reader(site: Site, token: str, folder: Path, kind: str) -> Iterator[Callable[[], str]]:
    """A process with this token alone that asks the collector each time it is told, in one session."""
    folder.mkdir(mode=0o700)
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    environment = {
        "PATH": os.environ["PATH"], "CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_SEC_TOKEN_DIRECTORY": str(folder),
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY": str(folder), "_CONDOR_SEC_CLIENT_AUTHENTICATION": "REQUIRED",
        "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "TOKEN", "_CONDOR_TRUST_DOMAIN": TRUST_DOMAIN,
    }  # fmt: skip
    words = [sys.executable, "-c", READER.format(collector=COLLECTOR, kind=kind)]
    with (
        site.live.network(),
        subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as one,
    ):
        asks, says = one.stdin, one.stdout
        assert asks is not None
        assert says is not None

        def ask() -> str:
            asks.write("\n")
            asks.flush()
            return says.readline().strip()

        try:
            yield ask
        finally:
            one.kill()


@pytest.mark.parametrize("kind", ["Startd", "Any", "Collector"])
def test_a_session_that_is_open_reads_nothing_after_its_token_was_revoked(
    site: Site, tmp_path: Path, kind: str
) -> None:
    machine = f"r-{kind.lower()}"
    lost, kept = (site.pool.mint_own_token(LAUNCH, name, 600) for name in (machine, "m2"))
    with (
        reader(site, lost, tmp_path / "lost", kind) as its,
        reader(site, kept, tmp_path / "kept", kind) as others,
    ):
        assert its().startswith("read ")
        assert others().startswith("read ")
        head = site.live.nodes["head"]
        on_head = Path(f"/proc/{head.init}/root/var/lib/updraft-tokens/ended.conf")
        with site.live.network():
            EndedTokens(site.pool._access, on_head, alone=True).revoke({whose(lost): NOW + 9000}, NOW)
        wait_for("it is refused", lambda: its().startswith("refused "), deadline(20))
        assert its().startswith("refused ")
        assert others().startswith("read ")
    with reader(site, lost, tmp_path / "anew", kind) as its:
        assert its().startswith("refused "), "nor does a new one"


def test_which_lines_the_collector_has_it_says_itself(site: Site) -> None:
    with site.live.network(), closing(PoolProbe(site.pool._access)) as probe:
        seen = probe.collector(30, tokens.SETTINGS)
        shown = probe.worker_token(30, f"{LAUNCH}+m2")
    assert set(shown.values()) == {f"worker-l1+m2@{TRUST_DOMAIN}"}, "by which a revocation is seen to hold"
    said = [one.text for one in tokens.lines(seen, on_head=True)]
    assert len(said) == 1, "the rule and the file of what has ended are there"
    assert "UPDRAFT_OWN_TOKENS" in said[0]


def named(site: Site) -> set[str]:
    return set(site.live.status("-any", "-af", "Name").split())


def test_with_a_machines_token_nobody_speaks_for_another_however_words_are_joined(site: Site) -> None:
    own = site.pool.mint_own_token(LAUNCH, "m4", 600)
    before = named(site)
    joined = SLOT.replace('"l1"', '"l1+m4"')
    daemon = 'MyType = "{}"\nName = "{}"\nMyAddress = "<10.9.9.9:1>"\n'
    for ad in (
        joined.format("m2"),
        joined.replace("slot1@{0}@x", "node.site").format("m2"),
        joined.format("m4").replace("slot1@m4@x", "slot1@m2@x"),
        daemon.format("DaemonMaster", "head.site") + 'State = "Unclaimed"\n',
        daemon.format("StartD", "slot1@m4@x") + 'State = "Unclaimed"\n',
        daemon.format("StartD", "m2@x"),
    ):
        send(site, "m1", ad, own)
    send(site, "m1", daemon.format("DaemonMaster", "head.site"), own, "UPDATE_MASTER_AD")
    send(site, "m1", daemon.format("DaemonMaster", "head.site"), site.boot_token, "UPDATE_MASTER_AD")
    assert named(site) <= before
    send(site, "m1", daemon.format("StartD", "m4@x"), own)
    send(site, "m1", daemon.format("DaemonMaster", "m4@x"), own, "UPDATE_MASTER_AD")
    assert taken(site, "m1", "m4", own)


# All that was asked of an ad that isn't of a daemon's type.
OURS = 'UpdraftInstance = "{0}"\nUpdraftLaunch = "l1"\nUpdraftPool = "test"\nMyAddress = "<10.9.9.9:1>"\n'


def test_no_workers_ad_is_the_heads_master_or_a_submitter_under_attributes_of_ours(site: Site) -> None:
    heads = 'regexp("^head", Name)'
    head = wait_for(
        "the head's master", lambda: site.live.status("-master", "-const", heads, "-af", "Name")
    ).strip()
    own = site.pool.mint_own_token(LAUNCH, "m4", 600)
    whole = site.pool.mint_token(LAUNCH, 600)
    before = named(site)
    submitter = 'IdleJobs = 9\nRunningJobs = 0\nScheddIpAddr = "<10.9.9.9:1>"\nScheddName = "x"\n'
    for token in (site.boot_token, whole):
        for kind in ("DaemonMaster", "Machine", "Odd"):
            ad = f'MyType = "{kind}"\nName = "{head}"\n' + OURS.format(head)
            send(site, "m1", ad, token, "UPDATE_MASTER_AD")
        for kind in ("Submitter", "Machine", "DaemonMaster"):
            ad = (
                f'MyType = "{kind}"\nName = "worker-l1@{TRUST_DOMAIN}"\n'
                + OURS.format(TRUST_DOMAIN)
                + submitter
            )
            send(site, "m1", ad, token, "UPDATE_OWN_SUBMITTOR_AD")
    ad = f'MyType = "Submitter"\nName = "alice@m4@{TRUST_DOMAIN}"\n' + OURS.format("m4") + submitter
    send(site, "m1", ad, own)
    send(site, "m1", ad.replace("alice@m4", "worker-l1+m4@m4"), own, "UPDATE_OWN_SUBMITTOR_AD")
    assert "10.9.9.9" not in site.live.status("-any", "-af", "MyAddress")
    assert named(site) <= before


def test_no_workers_ad_outlasts_its_machine_by_more_than_an_hour(site: Site) -> None:
    own = site.pool.mint_own_token(LAUNCH, "m4", 600)
    before = named(site)
    later = int(time.time()) + 10**6
    for odd in ("ClassAdLifetime = 1000000000", f"LastHeardFrom = {later}"):
        send(site, "m1", SLOT.format("m4") + odd + "\n", own)
        assert named(site) <= before, odd


LADDER = 'A0 = ""\n' + "".join(f"A{n} = strcat({', '.join([f'A{n - 1}'] * 30)})\n" for n in range(1, 10))


def test_a_ladder_of_references_keeps_neither_collector_nor_controller_busy(site: Site) -> None:
    own = site.pool.mint_own_token(LAUNCH, "m4", 600)
    asks = 'MyType = "DaemonMaster"\nName = "updraft-handover/{}"\nMyAddress = "<10.9.9.9:1>"\n'
    asks += 'UpdraftInstance = "m4"\nUpdraftLaunch = "l1"\nUpdraftPool = "test"\nUpdraftKey = "QQ=="\n'
    before = named(site)
    for name, text in (("UpdraftPool", "test"), ("UpdraftLaunch", "l1"), ("Name", "slot1@m4@x")):
        odd = f'{LADDER}{name} = strcat("{text}", A9)\n'
        send(site, "m1", SLOT.format("m4") + odd, own)
        send(site, "m1", asks.format("o") + odd, site.boot_token, "UPDATE_MASTER_AD")
    assert named(site) <= before, "it answers, and took none of them"
    # One that comes without a worker's token, as at a collector without the rule: it is for the controller.
    for name in ("UpdraftPool", "UpdraftKey", "UpdraftInstance", "UpdraftLaunch"):
        odd = f'{LADDER}{name} = strcat("test", A9)\n'
        site.live.nodes["head"].run(
            "condor_advertise", "UPDATE_MASTER_AD", "-", text=asks.format(f"o-{name}") + odd
        )
    until(lambda: len(named(site) - before) == 4, 20, "it has read all four")
    site.turn()
    # One more for each question that has no answer yet, a negotiator's say; with such an ad it would stay.
    count = ("pgrep", "-c", "condor_collect")
    alone = lambda: site.live.nodes["head"].run(*count, check=False).split() == ["1"]  # noqa: E731
    until(alone, 20, "no process of the collector is busy with it")


def test_anybodys_token_takes_others_ads_away_and_the_rule_is_not_asked(site: Site) -> None:
    """What the page on security says of it: a release that is another's would be good news."""
    send(site, "m1", SLOT.format("m2"), site.pool.mint_own_token(LAUNCH, "m2", 600))
    until(lambda: "slot1@m2@x" in named(site), 20, "it is there")
    gone = 'MyType = "Query"\nTargetType = "Machine"\nRequirements = Name == "slot1@m2@x"\n'
    send(site, "m1", gone, site.pool.mint_own_token(LAUNCH, "m4", 600), "INVALIDATE_STARTD_ADS")
    until(lambda: "slot1@m2@x" not in named(site), 20, "it is gone")
