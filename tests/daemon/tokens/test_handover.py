"""Machines that ask for their own tokens, and a controller that answers: many of them, in virtual time."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import Rig
from tests.rigs.rig import policy as small
from tests.rigs.snapshots import NOW, instance, policy, record, snapshot, worker
from updraft.condor.base import PoolSlots
from updraft.condor.collector.handover import SignedRequest, few_of_each, question
from updraft.core.machines.handover import UNSHOWN, TokenRequest
from updraft.core.model import CloudView, Instance, Known, Quota
from updraft.core.settings import Limits
from updraft.daemon.handover import AGAIN, CALL_AGAIN, CALLS, READ_AGAIN, Handover, KeyPlace
from updraft.errors import CloudUnavailable, PoolError, PoolTimeout
from updraft.ledger import Ledger
from updraft.ledger.tokens import HandedToken, Issued, all_noted, note

MANY = 100
LAUNCH = "l1"


class Collector:
    """What machines ask and are answered, as long as the collector remembers it."""

    def __init__(self) -> None:
        self.asked: dict[str, SignedRequest] = {}
        self.answers: dict[str, Mapping[str, str]] = {}
        self.minted: Counter[str] = Counter()
        self.loses = False
        self.broken = False
        self.brokers: Counter[str] = Counter()

    def questions(self, deadline: float) -> tuple[SignedRequest, ...]:
        if self.broken:
            raise PoolTimeout("the collector does not answer")
        return tuple(self.asked.values())

    def answer(self, answers: Sequence[Mapping[str, str]], lifetime: float, deadline: float) -> None:
        if not self.loses:
            self.answers |= {one["key"]: one for one in answers}

    def mint_own_token(self, launch_key: str, instance: str, lifetime: float) -> str:
        self.minted[instance] += 1
        return f"token-of-{instance}"

    def mint_broker_token(self, launch_key: str, lifetime: float, instance: str = "") -> str:
        self.brokers[instance] += 1
        return f"broker-of-{instance}"

    def restart(self) -> None:
        self.asked.clear()
        self.answers.clear()


def asks(machine: str, secret: str = "", launch: str = LAUNCH) -> SignedRequest:
    key = hashlib.sha256(f"{machine}{secret}".encode()).hexdigest()
    return SignedRequest(TokenRequest(key, machine, launch, launch), key.encode())


class Site:
    """A controller's half, machines of one launch that boot, and whatever is at their addresses."""

    def __init__(self, path: Path, count: int) -> None:
        self.ledger = Ledger(path)
        self.collector = Collector()
        self.now = NOW
        self.names = [f"i-{n}" for n in range(count)]
        self.shown = [
            instance(name, launch_key=LAUNCH, address=f"10.0.{n >> 8}.{n & 255}")
            for n, name in enumerate(self.names)
        ]
        self.at = {one.address: asks(one.id).asked.key for one in self.shown}
        self.called: Counter[str] = Counter()
        self.consoles: dict[str, str] = {}
        self.reads: Counter[str] = Counter()
        self.silent = False
        self.kind = KeyPlace()
        self.began = NOW
        note(self.ledger, Issued(LAUNCH, "default", "worker-l1@d", "id", "k", NOW, NOW + 9000))
        self.ledger.remember([record(one, launch_key=LAUNCH, requested_at=NOW) for one in self.names])
        self.handover = self.started()

    def started(self) -> Handover:
        def call(address: str) -> str:
            self.called[address] += 1
            return self.at.get(address, "")

        made = Handover(
            self.ledger, call=call, seal=lambda token, cert: f"{token} for {cert.decode()}", whose=str
        )
        made.reconfigure(self.collector, {"default": self.kind})
        return made

    def console(self, machine: str) -> str:
        """As a cloud's driver: what the machine has printed."""
        self.reads[machine] += 1
        if self.silent:
            raise CloudUnavailable("it does not answer")
        return self.consoles.get(machine, "")

    def turn(self, seconds: float = 1.0) -> None:
        self.now += seconds
        listing: tuple[Instance, ...] = tuple(self.shown)
        view = CloudView(Known(listing, self.now), Known((), self.now), Known(Quota(), self.now))
        seen = snapshot(
            now=self.now, clouds={"c1": view}, ledger=self.ledger.view(self.now), awake_since=self.began
        )
        self.handover.turn(seen, policy(worker("default", boot_deadline=600.0)), {"c1": self}, self.now)

    def ask(self, *questions: SignedRequest) -> None:
        self.collector.asked |= {one.asked.key: one for one in questions}

    def said(self, one: SignedRequest) -> Mapping[str, str]:
        return self.collector.answers.get(one.asked.key, {})

    def codes(self) -> Counter[str]:
        return Counter(event.code for event in self.ledger.events(limit=2000))


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path / "ledger.db", 1)
    with closing(site.ledger):
        yield site


def test_many_get_one_token_each_though_the_collector_is_started_anew_meanwhile(tmp_path: Path) -> None:
    site = Site(tmp_path / "ledger.db", MANY)
    got: dict[str, str] = {}
    with closing(site.ledger):
        for second in range(40):
            if second in (3, 4, 9):
                site.collector.restart()
            site.collector.loses = second < 2  # nothing is heard of the first answers
            if second == 6:
                site.handover = site.started()
            if second % 5 == 0:  # as machines do that have no answer
                site.ask(*(asks(name) for name in site.names if name not in got))
            site.turn()
            for name in site.names:
                sealed = site.said(asks(name)).get("UpdraftSealed")
                if sealed:
                    got[name] = sealed
        assert got == {name: f"token-of-{name} for {asks(name).asked.key}" for name in site.names}
        assert site.codes() == {"token-handed": MANY}
        assert max(site.collector.minted.values()) <= 2, "once for each start of the controller"
        assert set(all_noted(site.ledger, HandedToken)) == set(site.names)
        assert max(site.called.values()) <= 2


def test_who_asks_first_with_a_stolen_token_gets_nothing_and_the_machine_does(one: Site) -> None:
    thief, machine = asks("i-0", "thief"), asks("i-0")
    one.ask(thief)
    one.turn()
    assert "another key" in one.said(thief)["UpdraftRefused"]
    one.ask(machine)
    one.turn()
    assert "UpdraftSealed" in one.said(machine)
    one.turn(AGAIN + 1)
    assert "another key" in one.said(thief)["UpdraftRefused"]
    assert one.codes()["token-handed"] == 1
    assert {event.subject for event in one.ledger.events(limit=9)} == {"i-0"}


def test_a_thief_who_asks_with_many_keys_and_names_fills_nothing_and_keeps_no_other_launch_out(
    one: Site,
) -> None:
    one.ask(*(asks("i-0", f"thief{n}") for n in range(700)))
    one.ask(*(asks(f"i-thiefs-{n}", launch=LAUNCH) for n in range(100)))
    one.ask(*(SignedRequest(TokenRequest(f"k{n}", f"j-{n}", "other", LAUNCH), b"") for n in range(100)))
    one.turn()
    one.turn(AGAIN)
    assert one.codes() == {"elsewhere": 1}
    flood = [asks(f"i-{n}") for n in range(2000)] + [asks("j-1", launch="other")]
    kept = list(few_of_each(flood))
    assert len(kept) == 501
    assert kept[-1].asked.instance == "j-1"
    assert list(few_of_each([SignedRequest(TokenRequest("k", "i", "l", ""), b"")])) == [], (
        "no token of ours was shown"
    )


def test_one_key_opens_no_other_machine_than_the_one_that_shows_it(tmp_path: Path) -> None:
    """Whoever has taken one machine's address asks for all of them, in whatever order, with one key."""
    site = Site(tmp_path / "ledger.db", 3)
    with closing(site.ledger):
        thief = replace(asks("i-0").asked, key="k" * 64)
        site.at[site.shown[0].address] = thief.key
        for name in ("i-1", "i-0", "i-1", "i-2"):
            site.collector.asked = {"thief": SignedRequest(replace(thief, instance=name), b"thief")}
            site.turn()
            site.turn(AGAIN)
        assert set(all_noted(site.ledger, HandedToken)) <= {"i-0"}
        site.ask(asks("i-1"), asks("i-2"))
        site.turn()
        assert set(all_noted(site.ledger, HandedToken)) == {"i-0", "i-1", "i-2"}
        assert all_noted(site.ledger, HandedToken)["i-1"].key == asks("i-1").asked.key


def test_what_was_found_at_an_address_holds_for_a_moment(one: Site) -> None:
    one.ask(asks("i-0"))
    there, one.at = one.at, dict.fromkeys(one.at, "another")
    one.turn()
    assert "another key" in one.said(asks("i-0"))["UpdraftRefused"]
    one.at = there
    one.turn(AGAIN)
    assert "UpdraftSealed" in one.said(asks("i-0")), "the machine's script was started anew"


def test_a_machine_is_called_once_however_many_keys_ask_for_it(one: Site) -> None:
    one.ask(*(asks("i-0", f"thief{n}") for n in range(300)))
    one.turn()
    assert sum(one.called.values()) == 1


def test_machines_that_are_silent_where_they_are_called_hold_up_no_other(tmp_path: Path) -> None:
    site = Site(tmp_path / "ledger.db", MANY)
    honest = asks(site.names[-1])
    site.at = {address: key for address, key in site.at.items() if key == honest.asked.key}
    site.ask(*(asks(name) for name in site.names))
    with closing(site.ledger):
        for _ in range(2):
            before = sum(site.called.values())
            site.turn()
            assert sum(site.called.values()) - before <= CALLS
        assert "UpdraftSealed" in site.said(honest)
        for _ in range(10):
            site.turn()
    assert all(site.called[one.address] > 1 for one in site.shown[:-1]), "each is called again"


def test_what_others_say_with_a_machines_key_is_no_answer_to_it(one: Site) -> None:
    honest = asks("i-0")
    lies = [replace(honest.asked, shown="l2"), replace(honest.asked, launch="l2", shown="l2")]
    lies += [replace(honest.asked, shown=""), replace(honest.asked, instance="i-9")]
    for lie in lies:
        one.collector.asked = {"lie": SignedRequest(lie, honest.cert)}
        one.turn()
        answer = one.said(honest)
        assert answer == {} or answer["UpdraftInstance"] == "i-9"
        one.collector.answers.clear()
    one.collector.asked = {"lie": SignedRequest(lies[0], honest.cert)}
    one.ask(honest)
    one.turn()
    assert "UpdraftSealed" in one.said(honest)
    assert one.said(honest)["UpdraftInstance"] == "i-0"
    one.turn(AGAIN)
    assert "UpdraftSealed" in one.said(honest)
    assert one.codes() == {"token-handed": 1, "other-launch": 1}


def test_a_machine_that_does_not_listen_yet_is_called_again(one: Site) -> None:
    there, one.at = one.at, {}
    one.ask(asks("i-0"))
    one.turn()
    one.turn()
    assert "nobody answers" in one.said(asks("i-0"))["UpdraftWaits"]
    assert sum(one.called.values()) == 1
    one.at = there
    one.turn(CALL_AGAIN)
    assert "UpdraftSealed" in one.said(asks("i-0"))


def test_after_a_crash_between_the_note_and_the_answer_it_is_told_to_that_key_alone(one: Site) -> None:
    one.ask(asks("i-0"))
    one.collector.loses = True
    one.turn()
    one.collector.loses = False
    one.handover = one.started()
    one.at = {address: asks("i-0", "thief").asked.key for address in one.at}
    one.ask(asks("i-0", "thief"))
    one.turn()
    assert "was given its token before" in one.said(asks("i-0", "thief"))["UpdraftRefused"]
    one.at = {address: asks("i-0").asked.key for address in one.at}
    one.handover = one.started()
    one.turn()
    assert "UpdraftSealed" in one.said(asks("i-0"))


def hidden(site: Site) -> None:
    """From now on its machines are behind a broker: only their consoles show their keys."""
    site.kind = KeyPlace(None, broker=True)
    site.handover = site.started()


def shows(site: Site, question: SignedRequest) -> None:
    site.consoles[question.asked.instance] = f"boots\nupdraft-handover: {question.asked.key}\r\nmore\n"


def test_a_thief_who_asks_for_a_machine_behind_a_broker_gets_nothing_and_the_machine_both_tokens(
    one: Site,
) -> None:
    hidden(one)
    thief, machine = asks("i-0", "thief"), asks("i-0")
    one.consoles["i-0"] = "it boots\n"
    one.ask(thief)
    one.turn()
    one.turn()
    assert "shows no key yet" in one.said(thief)["UpdraftWaits"]
    assert one.reads["i-0"] == 1, "a console is not read at each look"
    one.ask(machine)
    shows(one, machine)
    one.turn(READ_AGAIN)
    assert one.said(machine)["UpdraftSealed"].startswith("token-of-i-0 for ")
    assert one.said(machine)["UpdraftSealedBroker"].startswith("broker-of-i-0 for ")
    assert not one.called, "nobody can call it"
    one.turn(READ_AGAIN + 1)
    assert "another key" in one.said(thief)["UpdraftRefused"]
    assert not all_noted(one.ledger, HandedToken)["i-0"].unseen


def test_once_a_console_of_a_cloud_has_shown_a_key_nobody_is_believed_there_without(tmp_path: Path) -> None:
    site = Site(tmp_path / "ledger.db", 2)
    with closing(site.ledger):
        hidden(site)
        shows(site, asks("i-0"))
        site.ask(asks("i-0"), asks("i-1", "thief"))
        site.turn()
        assert "UpdraftSealed" in site.said(asks("i-0"))
        for _ in range(20):
            site.turn(READ_AGAIN)
        assert "doesn't show its key yet" in site.said(asks("i-1", "thief"))["UpdraftWaits"]
        shows(site, asks("i-1"))
        site.turn(READ_AGAIN)
        assert "another key than its console" in site.said(asks("i-1", "thief"))["UpdraftWaits"]
        assert site.codes() == {"token-handed": 1, "elsewhere": 1}
        site.ask(asks("i-1"))
        site.turn(READ_AGAIN)
        assert "UpdraftSealed" in site.said(asks("i-1"))


def test_where_consoles_are_silent_one_who_asks_alone_is_believed_and_that_is_told(one: Site) -> None:
    hidden(one)
    one.silent = True
    one.ask(asks("i-0"))
    one.turn()
    assert "UpdraftWaits" in one.said(asks("i-0"))
    one.turn(UNSHOWN)
    one.turn(READ_AGAIN)
    assert "UpdraftSealed" in one.said(asks("i-0"))
    [event] = one.ledger.events(limit=9)
    assert "its console is silent" in event.text
    assert all_noted(one.ledger, HandedToken)["i-0"].unseen


def test_where_consoles_are_silent_and_two_ask_none_is_believed_and_that_is_told(one: Site) -> None:
    hidden(one)
    one.ask(asks("i-0", "thief"))
    one.turn()
    one.ask(asks("i-0"))
    for _ in range(20):
        one.turn(READ_AGAIN)
    assert not all_noted(one.ledger, HandedToken)
    assert one.codes() == {"contested": 1}


def test_one_at_an_address_that_is_forwarded_is_called_there(one: Site) -> None:
    one.kind = KeyPlace("192.0.2.7")
    one.handover = one.started()
    one.at = {"192.0.2.7": asks("i-0").asked.key}
    one.ask(asks("i-0"), asks("i-0", "thief"))
    one.turn()
    assert "UpdraftSealed" in one.said(asks("i-0"))
    assert "another key" in one.said(asks("i-0", "thief"))["UpdraftRefused"]


def test_a_controller_that_was_away_for_longer_than_a_boot_may_take_hands_tokens_all_the_same(
    one: Site,
) -> None:
    one.now = one.began = NOW + 900  # the class's boots may take ten minutes
    one.ask(asks("i-0"))
    one.turn()
    assert "UpdraftSealed" in one.said(asks("i-0"))


def test_nobody_is_heard_while_no_machine_boots(one: Site) -> None:
    one.ledger.change("c1", ("i-0",), joined_at=NOW)
    one.collector.broken = True
    one.turn()
    one.ledger.change("c1", ("i-0",), joined_at=None)
    with pytest.raises(PoolError):
        one.turn()


def test_what_a_machine_cannot_be_given_yet_is_told_to_it(one: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> str:
        raise PoolError("a token can't be sealed; is openssl there?")

    monkeypatch.setattr(one.handover, "_seal", fails)
    one.ask(asks("i-0"))
    one.turn()
    assert one.said(asks("i-0")) == {
        "UpdraftWaits": "a token can't be sealed; is openssl there?", "key": asks("i-0").asked.key,
        "UpdraftInstance": "i-0",
    }  # fmt: skip
    assert all_noted(one.ledger, HandedToken) == {}


NAME = "updraft-handover/" + hashlib.sha256(b"A").hexdigest()


def test_odd_questions_are_none() -> None:
    for odd in (
        ("", "l", "", "QQ=="),
        ("i", "", "", "QQ=="),
        ("i", "l", "", ""),
        ("i", "l", "", "no base64!"),
    ):
        assert question(NAME, *odd) is None
    assert question(NAME, "i", "l", "", "A" * 5000) is None
    shown = {
        who: question(NAME, "i", "l1", who, "QQ==")
        for who in ("worker-l1@d", "worker-l1+i@d", "condor@d", "")
    }
    assert [one.asked.shown for one in shown.values() if one] == ["l1", "", "", ""]
    for name in ("", "thief", NAME + "0", NAME.upper(), NAME.replace("/", "/x/")):
        assert question(name, "i", "l1", "worker-l1@d", "QQ==") is None, "the key of another's question"


def test_after_a_collectors_restart_all_of_many_machines_return_and_none_is_ended(tmp_path: Path) -> None:
    with closing(Rig(tmp_path)) as rig:
        rig.pool.queues["schedd"].idle = 2 * MANY
        daemon = rig.start(using=replace(small(), limits=Limits(machines=MANY)))
        rig.turn(daemon, 60)
        before = set(rig.alive())
        assert len(before) == MANY
        heard, slots = rig.clock(), rig.pool.slots
        rig.pool.started = heard

        def some(deadline: float) -> PoolSlots:
            # Their ads come back one after the other, the last with the next update of its master.
            seen = slots(deadline)
            back = int(MANY * (rig.clock() - heard) / 60)
            return PoolSlots(replace(seen.view, slots=seen.view.slots[:back]), seen.templates)

        rig.pool.slots = some  # type: ignore[method-assign]
        rig.turn(daemon, 300, 5)
        assert set(rig.alive()) == before
        assert rig.pool.killed_jobs == 0
        assert not rig.pool.drains
