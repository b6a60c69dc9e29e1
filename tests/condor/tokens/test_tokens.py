"""Whose tokens are, which are revoked, what a machine may say of itself, and the keys that sign."""

import base64
import json
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import classad2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rigs.bindings import htcondor2  # noqa: F401 (what it adds to the language of ads)
from updraft.bootstrap.head import identities
from updraft.condor import base
from updraft.condor.access import PoolAccess
from updraft.condor.collector.views import slot
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.tools import Tools
from updraft.condor.tokens.revoked import SESSION, Revoked, more, read, text, write
from updraft.condor.tokens.revoking import _any_of
from updraft.condor.tokens.workers import (
    claims,
    drop_keys,
    is_of,
    key_names,
    launch_of,
    make_key,
    newest_key,
    user_of,
)
from updraft.errors import PoolError

DOMAIN = "pool.test"
WORKER = f"worker-batch_1-18f-0@{DOMAIN}"


def token(**payload: Any) -> str:
    parts = ({"alg": "HS256", "kid": "updraft-workers"}, payload)
    text = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*text, "c2lnbmF0dXJl"])


def test_both_rooms_spell_workers_alike() -> None:
    assert base.WORKER_USER == identities.WORKER_USER


def test_a_token_says_whose_it_is_and_until_when() -> None:
    found = claims(token(sub=WORKER, jti="ab12", iat=100, exp=700) + "\n")
    assert found is not None
    assert (found.identity, found.id, found.issued, found.expires) == (WORKER, "ab12", 100.0, 700.0)
    assert found.key == "updraft-workers"


@pytest.mark.parametrize("odd", ["", "token-k", "a.b.c", "..", token(jti="x"), "e30.W10.x", "é.é.é"])
def test_what_is_no_token_has_no_claims(odd: str) -> None:
    assert claims(odd) is None


def test_the_launch_of_an_identity_and_back() -> None:
    assert launch_of(WORKER) == "batch_1-18f-0"
    assert launch_of(f"condor@{DOMAIN}") == ""
    assert user_of("worker-{launch}", "a b/c") == "worker-a-b-c"
    assert is_of(WORKER, "batch_1-18f-0")
    assert is_of(f"worker-a-b@{DOMAIN}", "a b")
    assert not is_of(WORKER, "batch_1-18f-1")
    assert not is_of(WORKER, "")
    own = f"worker-a-b+i-1@{DOMAIN}"
    assert launch_of(own) == "a-b"
    assert is_of(own, "a b", "i-1")
    assert not is_of(own, "a b", "i-2")
    assert not is_of(own, "a b")
    assert not is_of(own, "a", "i-1")
    assert is_of(f"condor@{DOMAIN}", "anything"), "a parent collector sees its child's identity only"


# ------------------------------------------------------------------------------------------------ revoked


def setting(written: str, name: str) -> str:
    """A setting as HTCondor has it where nothing else was set."""
    [line] = [line for line in written.splitlines() if line.startswith(f"{name} = ")]
    value = line.partition(" = ")[2].replace("$(SEC_TOKEN_REVOCATION_EXPR:False)", "False")
    return value.partition("))) ")[2] or value


def is_revoked(revoked: Revoked, **payload: Any) -> Any:
    """What the collector makes of a token: anything but a truth value is revoked there."""
    return classad2.ExprTree(setting(text(revoked), "SEC_TOKEN_REVOCATION_EXPR")).eval(
        classad2.ClassAd(payload)
    )


def test_a_revoked_launch_and_no_other() -> None:
    revoked = Revoked({WORKER: 5.0, f"worker-x@{DOMAIN}": None})
    assert is_revoked(revoked, sub=WORKER, iat=1) is True
    assert is_revoked(revoked, sub=f"worker-x@{DOMAIN}", iat=1) is True
    for other in (f"worker-batch_1-18f@{DOMAIN}", f"worker-batch_1-18f-01@{DOMAIN}", f"condor@{DOMAIN}", ""):
        assert is_revoked(revoked, sub=other, iat=1) is False
    assert is_revoked(revoked, iat=1) is False, "a token that names nobody is the site's own matter"


def test_a_revoked_launch_ends_its_machines_own_tokens_and_a_revoked_machine_no_other() -> None:
    own, sibling = (f"worker-batch_1-18f-0+{one}@{DOMAIN}" for one in ("i-1", "i-2"))
    whole, one = Revoked({WORKER: 5.0}), Revoked({own: 5.0})
    assert is_revoked(whole, sub=own, iat=1) is is_revoked(whole, sub=sibling, iat=1) is True
    assert is_revoked(one, sub=own, iat=1) is True
    for other in (sibling, WORKER, f"worker-batch_1-18f-01+i-1@{DOMAIN}", f"condor@{DOMAIN}"):
        assert is_revoked(one, sub=other, iat=1) is False
    assert is_revoked(whole, sub=f"worker-batch_1-18f-01+i-1@{DOMAIN}", iat=1) is False
    assert is_revoked(whole, iat=1) is False
    name = "COLLECTOR.DENY_ADVERTISE_STARTD"
    assert setting(text(whole), name).split() == [WORKER, f"worker-batch_1-18f-0+*@{DOMAIN}"]
    assert setting(text(one), name).split() == [own]


def test_all_that_were_issued_until_then_and_none_of_others() -> None:
    revoked = Revoked({}, before=1000)
    assert is_revoked(revoked, sub=WORKER, iat=1000) is True
    assert is_revoked(revoked, sub=WORKER) is True, "of unknown age"
    assert is_revoked(revoked, sub=WORKER, iat=1001) is False
    assert is_revoked(revoked, sub=f"condor@{DOMAIN}", iat=1) is False


def test_open_sessions_are_denied_by_identity() -> None:
    written = text(Revoked({WORKER: 5.0, f"worker-x@{DOMAIN}": None}))
    rights = ("ADVERTISE_STARTD", "ADVERTISE_MASTER", "READ")
    at_broker = ("DAEMON", "ADVERTISE_MASTER", "READ")  # to register (before, now) and ask
    lists = [f"COLLECTOR.DENY_{one}" for one in rights] + [f"BROKER.DENY_{one}" for one in at_broker]
    for name in lists:
        assert setting(written, name).split() == [
            WORKER, f"worker-batch_1-18f-0+*@{DOMAIN}", f"worker-x@{DOMAIN}", f"worker-x+*@{DOMAIN}"
        ]  # fmt: skip
        assert f"{name} = $({name}:$(" in written, "who is denied already, is denied still"


@pytest.mark.parametrize("bad", ['a"b@d', "a b@d", "a,b@d", "a$(X)@d", "a\nX = 1@d"])
def test_what_is_no_identity_reaches_no_configuration(bad: str) -> None:
    with pytest.raises(PoolError, match="no identity"):
        text(Revoked({bad: None}))


def test_the_file_is_read_back_and_is_open_to_all(tmp_path: Path) -> None:
    file = tmp_path / "93-updraft-revoked.conf"
    assert read(file) == Revoked()
    revoked = Revoked({WORKER: 5.5, f"worker-x@{DOMAIN}": None}, 77)
    write(file, revoked)
    assert read(file) == revoked
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]
    for odd in ("ALLOW_WRITE = *\n", "# updraft: {]\n", '# updraft: {"before": 1}\n'):
        file.write_text(odd)
        with pytest.raises(PoolError):
            read(file)


def test_entries_stay_as_long_as_a_session_could_and_no_longer() -> None:
    known = Revoked({"worker-a@d": 100.0, "worker-b@d": 200.0, "worker-c@d": None}, before=50)
    now = 100.0 + SESSION + 1
    grown = more(known, {"worker-d@d": now}, 40, now)
    assert dict(grown.identities) == {"worker-b@d": 200.0, "worker-c@d": None, "worker-d@d": now}
    assert grown.before == 50
    assert grown.has("worker-b@d")
    assert grown.has("worker-z@d", 50.0)
    assert not grown.has("worker-z@d", 51.0)


# ------------------------------------------------------------------------------------------ whose a slot is


class Written(str):
    """An expression, as an ad says it."""


def taken(**ad: Any) -> bool:
    """Does the collector of a head of ours take this ad?"""
    rule = identities.identity_rule(DOMAIN)[identities.REQUIREMENTS]
    rule = rule.replace(f"$({identities.REQUIREMENTS}:$(COLLECTOR_REQUIREMENTS:True))", "True")
    assert "$(" not in rule
    target = classad2.ClassAd({k: v for k, v in ad.items() if not isinstance(v, Written)})
    for name, said in ad.items():
        if isinstance(said, Written):
            target[name] = classad2.ExprTree(said)
    answer = classad2.ExprTree(rule).eval(scope=classad2.ClassAd(), target=target)
    assert isinstance(answer, bool), "the collector refuses what gives no truth value"
    return answer


KINDS = ("Machine", "DaemonMaster", "StartD")
OTHERS = ("Submitter", "Scheduler", "Negotiator", "Slot", "machine", "Odd", "")
OURS = {"MyType": "Machine", "AuthenticatedIdentity": WORKER, "UpdraftLaunch": "batch_1-18f-0",
        "UpdraftInstance": "i-1", "UpdraftPool": "main", "Name": "slot1@i-1@host"}  # fmt: skip


def test_the_collector_takes_a_machine_of_its_own_launch_only() -> None:
    assert taken(**OURS)
    for change in ({"UpdraftLaunch": "batch_1-18f-1"}, {"UpdraftLaunch": "BATCH_1-18f-0"}):
        assert not taken(**{**OURS, **change})
    for missing in ("UpdraftLaunch", "UpdraftInstance", "UpdraftPool", "MyType"):
        assert not taken(**{k: v for k, v in OURS.items() if k != missing})
    assert not taken(**{**OURS, "AuthenticatedIdentity": "worker-batch_1-18f-0@elsewhere.test"})


def test_with_its_own_token_a_machine_speaks_for_itself_alone() -> None:
    own = {**OURS, "AuthenticatedIdentity": f"worker-batch_1-18f-0+i-1@{DOMAIN}"}
    assert taken(**own)
    assert taken(**{**own, "Name": "slot1_2@i-1@host"})
    lies = [{"UpdraftInstance": "i-2"}, {"UpdraftLaunch": "other"}, {"Name": "slot1@i-2@host"}]
    lies += [{"UpdraftInstance": "i-2", "Name": "slot1@i-2@host"}, {"Name": "i-10@host"}]
    for lie in lies:
        assert not taken(**{**own, **lie}), lie
    for missing in ("UpdraftLaunch", "UpdraftInstance", "UpdraftPool", "Name"):
        assert not taken(**{k: v for k, v in own.items() if k != missing})
    assert seen(AuthenticatedIdentity=own["AuthenticatedIdentity"]) == ("i-1", "batch_1-18f-0")
    liar = seen(AuthenticatedIdentity=own["AuthenticatedIdentity"], UpdraftInstance="i-2")
    assert liar == ("i-2", f"batch_1-18f-0+i-1@{DOMAIN}"), "no machine has such a launch"


def own_submitter(name: str) -> str:
    """Whose submitter's ad the collector takes it for, at a command (UPDATE_OWN_...) that wants no right."""
    return name.partition("@")[0].rpartition(".")[2] + "@"


WORDS = st.text('ab+@-.i1" \\\n', max_size=6)
LAUNCH, MINE, ELSES = "a-1", "i-1", "i-2"
JOINED = st.lists(
    st.sampled_from([LAUNCH, MINE, ELSES, "+", "@", DOMAIN, "slot1", "slot1_2@", ".worker-", ""]), max_size=6
).map("".join)
TEXTS = st.none() | JOINED | WORDS


@example(own=True, launch=f"{LAUNCH}+{MINE}", instance=ELSES, name=f"slot1@{ELSES}@x", kind="Machine")
@example(own=True, launch=f"{LAUNCH}+{MINE}", instance="", name="node1.site", kind="Machine")
@example(own=True, launch=LAUNCH, instance=MINE, name=f"slot1@{MINE}@x", kind="Machine")
@example(own=True, launch=None, instance=None, name="slot1@i-2@x", kind="DaemonMaster")
@example(own=False, launch=LAUNCH, instance="head.site", name="head.site", kind="DaemonMaster")
@example(own=False, launch=LAUNCH, instance=MINE, name=f"worker-{LAUNCH}@{MINE}", kind="Submitter")
@example(own=False, launch=None, instance=None, name=f"x.worker-{LAUNCH}@x", kind="DaemonMaster")
@given(own=st.booleans(), launch=TEXTS, instance=TEXTS, name=TEXTS, kind=st.sampled_from([*KINDS, *OTHERS]))
def test_no_joining_of_words_lets_a_machine_speak_for_another(
    own: bool, launch: str | None, instance: str | None, name: str | None, kind: str
) -> None:
    said = {"UpdraftLaunch": launch, "UpdraftInstance": instance, "Name": name, "UpdraftPool": "main"}
    ad = {key: text for key, text in said.items() if text is not None}
    who = f"worker-{LAUNCH}+{MINE}@{DOMAIN}" if own else f"worker-{LAUNCH}@{DOMAIN}"
    if not taken(MyType=kind, AuthenticatedIdentity=who, **ad):
        return
    parts = [part.strip() for part in (name or "").split("@")]
    assert kind in KINDS, "which table takes it is the command's word: no ad is of another type"
    assert parts == (name or "").split("@"), "and it goes by the name that was compared"
    assert own_submitter(name or "") not in who, "nor by a submitter's"
    if own:
        assert parts[-2] == MINE, "before the host is the machine's own id, whatever it is an ad of"
    if kind == "Machine":
        assert (launch, len(parts)) == (LAUNCH, 3)
        assert instance == parts[1]


LADDER = {"A0": "", **{f"A{n}": Written(f"strcat({', '.join([f'A{n - 1}'] * 30)})") for n in range(1, 10)}}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("kind", [*KINDS, "Odd"])
def test_a_ladder_of_references_is_refused_by_its_text(own: bool, kind: str) -> None:
    """Worked out, one of these takes longer than the test may: nothing of an ad is, before all is plain."""
    who = f"worker-batch_1-18f-0+i-1@{DOMAIN}" if own else WORKER
    ad = {**OURS, "AuthenticatedIdentity": who, "MyType": kind}
    plain: dict[str, Any] = {
        "UpdraftPool": "main", "UpdraftLaunch": "batch_1-18f-0", "UpdraftInstance": "i-1", "MyType": kind,
        "Name": "slot1@i-1@x", "MyAddress": "<10.0.0.1:9618>",
    }  # fmt: skip
    for name, said in plain.items():
        for odd in (Written(f'strcat("{said}", A9)'), Written("A9"), Written(f'strcat("{said}", "")')):
            assert not taken(**{**ad, **LADDER, name: odd}), (name, odd)
    for odd in (Written("A9 + 1"), Written("A9"), Written("-A9"), Written("{A9}"), Written("[a = A9]")):
        assert not taken(**{**ad, **LADDER, "ClassAdLifetime": odd})
        assert not taken(**{**ad, **LADDER, "JobUniverse": odd}), "the collector counts jobs by it"
    plain |= {"ClassAdLifetime": 30, "UpdateSequenceNumber": -1, "Offline": False, "JobUniverse": 5}
    plain["Name"] = plain["Name"] if kind == "Machine" else "i-1@x"
    assert taken(**{**ad, **plain}) is (kind in KINDS)
    assert taken(**{**ad, **LADDER, **plain}) is (kind in KINDS), "of what nobody reads nothing is asked"


def test_the_collector_takes_what_has_no_workers_token_as_before() -> None:
    assert taken(MyType="Machine", AuthenticatedIdentity=f"condor@{DOMAIN}", Name="slot1@site")
    assert taken(MyType="Scheduler", AuthenticatedIdentity=f"condor@{DOMAIN}")
    assert taken(MyType="Machine")
    assert taken(**{**OURS, "AuthenticatedIdentity": f"condor@{DOMAIN}"}), "handed on by a child collector"


def test_of_daemons_ads_a_machine_sends_its_own_alone_and_no_slot_goes_by_their_type() -> None:
    own = f"worker-batch_1-18f-0+i-1@{DOMAIN}"
    for kind in KINDS[1:]:
        for who in (WORKER, own):
            assert taken(MyType=kind, AuthenticatedIdentity=who, Name="i-1@host")
            for odd in ("head.site", "", "i-10"):
                assert not taken(MyType=kind, AuthenticatedIdentity=who, Name=odd), "no daemon of the site's"
            slot = {"MyType": kind, "AuthenticatedIdentity": who, "Name": "slot1@i-1@host"}
            assert not taken(**slot, State="Unclaimed"), "it would be reported by nobody"
        assert not taken(MyType=kind, AuthenticatedIdentity=own, Name="i-2@host")
    asks = {"MyType": "DaemonMaster", "Name": "updraft-handover/0a"}
    assert taken(**asks, AuthenticatedIdentity=WORKER)
    assert not taken(**asks, AuthenticatedIdentity=own), "it has its own"


def test_a_name_is_the_slots_and_the_machines_and_its_hosts_and_no_other() -> None:
    own = f"worker-batch_1-18f-0+i-1@{DOMAIN}"
    for who in (WORKER, own):
        for name in ("slot1", "slot12_3", "backfill1_1"):
            assert taken(**{**OURS, "AuthenticatedIdentity": who, "Name": f"{name}@i-1@node.site"})
        for name in ("i-1", "i-1@host", "slot1@host@i-1", "alice@i-1@host", "@i-1@host", "slot1@i-1@",
                     "slot1@ i-1@host", "slot1@i-1@host@x", "i-1@i-1@host", "x.slot1@i-1@host"):  # fmt: skip
            assert not taken(**{**OURS, "AuthenticatedIdentity": who, "Name": name}), name
    for kind in KINDS[1:]:
        for name in ("slot1@i-1@host", "i-1", "i-1@", "i-1@a@b", " i-1@host", "host@i-1"):
            ad = {"MyType": kind, "AuthenticatedIdentity": own, "Name": name}
            assert not taken(**ad), name
    # Of a whole launch nobody knows the machines: what they call themselves is no submitter's name.
    for name in (f"{WORKER.partition('@')[0]}@x", f"a.{WORKER}", f"updraft-handover/a.{WORKER}"):
        ad = {**OURS, "MyType": "DaemonMaster", "AuthenticatedIdentity": WORKER, "Name": name}
        assert not taken(**ad), name
    assert taken(MyType="DaemonMaster", AuthenticatedIdentity=WORKER, Name="i-1@x.worker-1.site")


def test_no_ad_stays_longer_than_an_hour_or_was_heard_in_the_future() -> None:
    for kind, name in zip(KINDS, ("slot1@i-1@host", "i-1@host", "i-1@host"), strict=True):
        ad = {**OURS, "MyType": kind, "Name": name}
        now = int(time.time()) - 1  # HTCondor's clock is some milliseconds behind
        for said in ({"ClassAdLifetime": 3600}, {"LastHeardFrom": 1}, {"LastHeardFrom": now}):
            assert taken(**{**ad, **said}), said
        for said in ({"ClassAdLifetime": 3601}, {"ClassAdLifetime": "9"}, {"ClassAdLifetime": 2**32},
                     {"LastHeardFrom": int(time.time()) + 1000}, {"LastHeardFrom": "1"}):  # fmt: skip
            assert not taken(**{**ad, **said}), said
        for word in ("ClassAdLifetime", "LastHeardFrom"):
            for odd in ("undefined", "error", "3.6e9", "time()", "0 + 1"):
                assert not taken(**{**ad, word: Written(odd)}), (word, odd)


@pytest.mark.parametrize("odd", ["slot1@i-1@a\nb", "slot1@i-1@\x1b[2J", "slot1@i-1@\u202e", 'slot1@i-1@"'])
def test_no_name_is_taken_that_cannot_be_printed(odd: str) -> None:
    assert not taken(**{**OURS, "Name": odd})


def seen(**changes: Any) -> tuple[str, str]:
    found = slot(classad2.ClassAd({k: v for k, v in {**OURS, **changes}.items() if v is not None}), "main")
    return found.instance_id, found.launch_key


def test_a_slot_is_of_the_launch_whose_token_it_has_shown() -> None:
    assert seen() == ("i-1", "batch_1-18f-0")
    assert seen(AuthenticatedIdentity=None) == ("i-1", "batch_1-18f-0"), "where nobody says, its word counts"
    assert seen(UpdraftLaunch="other") == ("i-1", f"batch_1-18f-0@{DOMAIN}"), "no machine has such a launch"
    assert seen(UpdraftInstance=None) == ("slot1@i-1@host", f"batch_1-18f-0@{DOMAIN}")
    assert seen(UpdraftPool=None) == (
        "slot1@i-1@host".replace("slot1@i-1@host", "i-1"),
        f"batch_1-18f-0@{DOMAIN}",
    )
    assert seen(UpdraftPool="theirs") == ("", "batch_1-18f-0"), "a slot of another pool, with its launch"
    assert seen(AuthenticatedIdentity=f"condor@{DOMAIN}", UpdraftPool=None) == ("", "")


# ------------------------------------------------------------------------------------------------- keys


def test_keys_are_made_in_their_order_and_the_newest_signs(tmp_path: Path) -> None:
    folder = tmp_path / "passwords.d"
    assert newest_key(folder, "updraft-workers") == "updraft-workers"
    assert [make_key(folder, "updraft-workers") for _ in range(3)] == [
        "updraft-workers", "updraft-workers-2", "updraft-workers-3",
    ]  # fmt: skip
    for other in (
        "POOL",
        "updraft-workers-old",
        "updraft-workers-1",
        "updraft-workers-02",
        "updraft-workers2",
    ):
        (folder / other).write_text("x")
    assert key_names(folder, "updraft-workers") == [
        "updraft-workers", "updraft-workers-2", "updraft-workers-3",
    ]  # fmt: skip
    key = folder / "updraft-workers-3"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(base64.b64decode(key.read_bytes())) == 64
    assert b"\0" not in key.read_bytes()
    drop_keys(folder, ["updraft-workers", "updraft-workers-2"])
    assert make_key(folder, "updraft-workers") == "updraft-workers-4", "a name never comes back"


def test_a_launch_is_signed_with_the_newest_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []

    def run(_tools: Tools, words: Sequence[str], _deadline: float) -> str:
        calls.append(tuple(words))
        return token(sub=WORKER, iat=1) if "condor_token_create" in words else f"{tmp_path}\n"

    monkeypatch.setattr(Tools, "run", run)
    access = PoolAccess("main", trust_domain=DOMAIN, worker_identity="worker-{launch}")
    with HTCondorPool(access) as pool:
        pool.mint_token("batch_1-18f-0", 60)
        make_key(tmp_path, "updraft-workers")
        make_key(tmp_path, "updraft-workers")
        pool.mint_token("batch_1-18f-0", 60)
    first, second = [words for words in calls if "condor_token_create" in words]
    assert first[first.index("-key") + 1] == "updraft-workers"
    assert second[second.index("-key") + 1] == "updraft-workers-2", "while the daemon runs"
    assert second[second.index("-identity") + 1] == WORKER


def test_what_is_forgotten_is_named_by_identity() -> None:
    asked = classad2.ExprTree(_any_of([WORKER, "worker-x@d"]))
    for identity, gone in ((WORKER, True), ("worker-x@d", True), ("worker-y@d", False)):
        assert asked.eval(classad2.ClassAd({"AuthenticatedIdentity": identity})) is gone
    own = "worker-x+i-1@d"
    assert asked.eval(classad2.ClassAd({"AuthenticatedIdentity": own})) is True
    alone = classad2.ExprTree(_any_of([own]))
    assert alone.eval(classad2.ClassAd({"AuthenticatedIdentity": own})) is True
    other = classad2.ClassAd({"AuthenticatedIdentity": "worker-x+i-2@d", "UpdraftLaunch": "x"})
    assert alone.eval(other) is False
    handed_on = {"AuthenticatedIdentity": "condor@d", "UpdraftLaunch": "x"}
    assert asked.eval(classad2.ClassAd(handed_on)) is True, "a parent collector sees its child only"
    with pytest.raises(PoolError):
        _any_of(['x" || true || "'])
