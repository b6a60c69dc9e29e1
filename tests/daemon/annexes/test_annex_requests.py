"""Users ask the daemon for annexes: who they are is the kernel's word, and what they send is a stranger's."""

import json
import os
import pwd
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, policy, snapshot, worker
from tests.waiting import patience
from updraft.core.model import AnnexOutlook, MachineRecord, Reason
from updraft.core.settings import AnnexAllowance
from updraft.daemon.annex_requests import wire
from updraft.daemon.annex_requests.client import ask
from updraft.daemon.annex_requests.desk import STALE, Desk, DeskView
from updraft.daemon.annex_requests.server import EACH, Server
from updraft.daemon.annexing import AnnexRequest, annex_of
from updraft.errors import LedgerError, ProblemFound, UsageError
from updraft.ledger import Ledger
from updraft.ledger.tokens import Issued, note

RULES = policy(annex_allowances={"ann": AnnexAllowance(machines=4), "ben": AnnexAllowance(machines=4)})
LOOK = DeskView(snapshot(), RULES, (AnnexOutlook("burst", "whole", Reason("annex-whole", "all there")),))
ME = pwd.getpwuid(os.geteuid()).pw_name
CREATE = {"verb": "create", "name": "burst", "machines": 2}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "state" / "ledger.db") as made:
        yield made


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    made = Desk(ledger, lambda: NOW)
    made.seen(LOOK)
    return made


@pytest.fixture
def place() -> Iterator[Path]:
    """Where everybody may go: what pytest makes is for one user."""
    folder = Path(tempfile.mkdtemp(prefix="updraft-"))
    folder.chmod(0o755)
    yield folder / "run" / "annex.sock"
    shutil.rmtree(folder)


# ---------------------------------------------------------------------------------------------- the desk


def test_a_user_asks_for_an_annex_and_it_is_that_users(desk: Desk, ledger: Ledger) -> None:
    answer = desk.answer("ann", CREATE | {"duration": 600, "spot": False, "max_price": 0.2})
    (annex,) = ledger.annexes()
    assert (annex.name, annex.owner, annex.machines, annex.for_all) == ("burst", "ann", 2, False)
    assert (annex.until, annex.spot, annex.max_price) == (NOW + 600, False, 0.2)
    assert answer["annex"]["until"] == NOW + 600
    assert answer["used"]["machines"] == 2
    (event,) = ledger.events()
    assert "user ann asked for annex burst" in event.text


def test_a_user_chooses_among_what_the_class_has(desk: Desk, ledger: Ledger) -> None:
    desk.answer("ann", CREATE | {"clouds": ["c1"], "flavors": ["small"], "image": "img"})
    (annex,) = ledger.annexes()
    assert (annex.clouds, annex.flavors, annex.image) == (("c1",), ("small",), ""), "the class's own"


def test_an_image_of_one_cloud_is_asked_for_in_no_other() -> None:
    rules = policy(worker(clouds=("c1", "c2"), images={"c1": "img", "c2": "img"}, images_allowed=("*",)))
    asked = AnnexRequest("burst", "ann", machines=1, image="ami-1")
    with pytest.raises(UsageError, match="say with --cloud in which cloud that image or group is: c1, c2"):
        annex_of(asked, rules, NOW)
    assert annex_of(replace(asked, clouds=("c2",)), rules, NOW).image == "ami-1"
    assert annex_of(replace(asked, clouds=("c1", "c2")), rules, NOW).image == "ami-1"
    assert annex_of(replace(asked, image="img"), rules, NOW).image == "", "it is the class's on both"


def test_a_dry_run_writes_nothing(desk: Desk, ledger: Ledger) -> None:
    assert desk.answer("ann", CREATE | {"dry_run": True})["dry_run"] is True
    assert ledger.annexes() == ()


def test_the_allowance_holds_over_all_annexes_of_a_user(desk: Desk, ledger: Ledger) -> None:
    desk.answer("ann", CREATE)
    with pytest.raises(UsageError, match="together to 5, and you may have 4"):
        desk.answer("ann", CREATE | {"name": "more", "machines": 3})
    desk.answer("ben", CREATE | {"name": "more", "machines": 3})
    assert {one.owner for one in ledger.annexes()} == {"ann", "ben"}


def test_a_user_sees_and_changes_own_annexes_only(desk: Desk, ledger: Ledger) -> None:
    desk.answer("ann", CREATE)
    assert desk.answer("ben", {"verb": "list"})["annexes"] == []
    for question in (
        {"verb": "status"},
        {"verb": "extend", "duration": 7200},
        {"verb": "stop"},
        {"verb": "delete"},
    ):
        with pytest.raises(UsageError, match="ben has no annex 'burst'"):
            desk.answer("ben", question | {"name": "burst"})
    with pytest.raises(UsageError, match="there is an annex burst already"):
        desk.answer("ben", CREATE)
    (row,) = desk.answer("ann", {"verb": "status", "name": "burst"})["annexes"]
    assert row["look"]["state"] == "whole"
    assert row["instances"] == []
    desk.answer("ann", {"verb": "extend", "name": "burst", "duration": 7200})
    assert ledger.annexes()[0].until == NOW + 7200
    desk.answer("ann", {"verb": "delete", "name": "burst", "kill_jobs": True})
    assert ledger.annexes()[0].deleted
    assert ledger.annexes()[0].kill_jobs


def test_a_lease_is_extended_within_the_allowance_only(desk: Desk) -> None:
    desk.answer("ann", CREATE)
    with pytest.raises(UsageError, match="may last 1d"):
        desk.answer("ann", {"verb": "extend", "name": "burst", "duration": 90_000})
    with pytest.raises(UsageError, match="how long"):
        desk.answer("ann", {"verb": "extend", "name": "burst"})


def test_a_lease_is_not_extended_beyond_a_token_of_its_machines(desk: Desk, ledger: Ledger) -> None:
    desk.answer("ann", CREATE)
    [made] = ledger.annexes()
    row = MachineRecord("i-1", "here", "k", made.worker_class, "small", "g", NOW, variant=made.variant)
    note(ledger, Issued("k", made.worker_class, "worker-k@pool", "id", "key", NOW, NOW + 7000))
    there = snapshot()
    desk.seen(replace(LOOK, snapshot=replace(there, ledger=replace(there.ledger, machines=(row,)))))
    with pytest.raises(UsageError, match="first token of a machine of annex burst ends in"):
        desk.answer("ann", {"verb": "extend", "name": "burst", "duration": 7200})
    desk.answer("ann", {"verb": "extend", "name": "burst", "duration": 6900})
    assert ledger.annexes()[0].until == NOW + 6900


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({}, "nothing that can be asked"),
        ({"verb": ["create"]}, "nothing that can be asked"),
        ({"verb": "create", "machines": 1}, "name has to be a text"),
        (CREATE | {"owner": "ben"}, "'owner' is nothing that a user may say"),
        (CREATE | {"for_all": True}, "'for_all' is nothing"),
        (CREATE | {"layer": "#!/bin/sh\nid"}, "'layer' is nothing"),
        (CREATE | {"tags": {"a": "b"}}, "'tags' is nothing"),
        (CREATE | {"security_groups": ["x"]}, "'security_groups' is nothing"),
        (CREATE | {"flavors": "small"}, "flavors has to be a list"),
        (CREATE | {"flavors": ["x"] * 9}, "flavors has to be a list of at most 8"),
        (CREATE | {"flavors": [["x"]]}, "flavors has to be a text"),
        (CREATE | {"clouds": ["moon"]}, "isn't on cloud 'moon'"),
        (CREATE | {"image": "evil", "clouds": ["c1"]}, "doesn't allow the image 'evil'"),
        (CREATE | {"machines": True}, "machines has to be a whole number"),
        (CREATE | {"machines": 1.0}, "machines has to be a whole number"),
        (CREATE | {"machines": -1}, "machines has to be a whole number"),
        (CREATE | {"machines": 10**30}, "machines has to be a whole number"),
        (CREATE | {"duration": "1h"}, "duration has to be a number"),
        (CREATE | {"duration": 1e300}, "duration has to be a number"),
        (CREATE | {"duration": 0}, "lease is a duration above"),
        (CREATE | {"max_price": float("nan")}, "max_price has to be a number"),
        (CREATE | {"spot": 1}, "spot has to be true or false"),
        (CREATE | {"name": "x" * 65}, "name has to be a text"),
        (CREATE | {"name": "a\x1b[2J"}, "name has to be a text"),
        (CREATE | {"name": "../x"}, "no name of an annex"),
        (CREATE | {"class": "nope"}, "there is no class nope"),
        (CREATE | {"cores": 4}, "how large"),
    ],
)
def test_what_may_not_be_said_is_refused_in_a_sentence(
    desk: Desk, ledger: Ledger, question: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        desk.answer("ann", question)
    assert len(str(refused.value)) < 300
    assert ledger.annexes() == ()


@pytest.mark.parametrize(
    "look", [replace(LOOK, acting=False), replace(LOOK, snapshot=snapshot(now=NOW - STALE - 1))]
)
def test_nobody_is_answered_by_a_daemon_that_does_not_see_or_act(ledger: Ledger, look: DeskView) -> None:
    desk = Desk(ledger, lambda: NOW)
    desk.seen(look)
    with pytest.raises(ProblemFound, match="at the moment"):
        desk.answer("ann", CREATE)


def test_who_asks_a_daemon_that_has_just_started_is_answered_once_it_acts(
    ledger: Ledger, place: Path
) -> None:
    desk = Desk(ledger, lambda: NOW)
    with Server(place, lambda _user, question: desk.answer("ann", question)):
        for look in (None, replace(LOOK, acting=False, starting=True)):
            if look is not None:
                desk.seen(look)
            with pytest.raises(ProblemFound, match="has just started"):
                ask("list", at=place, seconds=0.3)
        later = threading.Timer(0.5, desk.seen, (LOOK,))
        later.start()
        assert ask("list", at=place)["annexes"] == []
        later.join()


def test_who_is_not_named_may_nothing(desk: Desk) -> None:
    with pytest.raises(UsageError, match="eve may have no annexes here"):
        desk.answer("eve", {"verb": "list"})


def test_two_at_the_same_time_do_not_share_what_is_left(desk: Desk, ledger: Ledger) -> None:
    def create(name: str) -> None:
        try:
            desk.answer("ann", CREATE | {"name": name, "machines": 3})
        except UsageError:
            return

    threads = [threading.Thread(target=create, args=(f"a{number}",)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(ledger.annexes()) == 1


# -------------------------------------------------------------------------------------------- the socket


def echo(user: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    if question.get("verb") == "refuse":
        raise UsageError("because")
    if question.get("verb") == "secret":
        raise LedgerError("/var/lib/updraft/ledger.db is damaged")
    if question.get("verb") == "fault":
        raise ValueError("a secret")
    return {"user": user, "said": dict(question)}


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(place, echo, seconds=0.6) as made:
        yield made


def raw(place: Path, data: bytes, wait: float = 5.0, *, close: bool = False) -> dict[str, Any]:
    """What is answered to these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(wait)
        connection.connect(str(place))
        try:
            connection.sendall(data)
            if close:
                connection.shutdown(socket.SHUT_WR)
        except BrokenPipeError:
            pass
        return wire.receive(connection, wire.LONGEST_ANSWER, wait)


def test_who_asks_is_what_the_kernel_says(server: Server, place: Path) -> None:
    answer = ask("list", at=place, user="somebody else", uid=12345, absent=None)
    assert answer["user"] == ME
    assert answer["said"] == {"verb": "list", "user": "somebody else", "uid": 12345}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_another_user(server: Server, place: Path) -> None:
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(1, 1, 1)
        os.write(writes, json.dumps(raw(place, b'{"verb":"list","user":"root"}\n')).encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with os.fdopen(reads) as said:
        assert json.loads(said.read())["user"] == pwd.getpwuid(1).pw_name


def test_everybody_may_connect_and_nobody_else_may_write_beside_it(server: Server, place: Path) -> None:
    assert place.stat().st_mode & 0o777 == 0o666
    assert place.parent.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\n", "no JSON"),
        (b"[]\n", "no JSON object"),
        (b"null\n", "no JSON object"),
        (b'{"a": NaN}\n', "no JSON"),
        (b"\xff\xfe\n", "no JSON"),
        (b"[" * 4000 + b"\n", "no JSON"),
        (b"x" * 10_000, "longer than"),
        (b"{" + b" " * 4096, "longer than"),
    ],
)
def test_hostile_lines_get_a_sentence(server: Server, place: Path, data: bytes, words: str) -> None:
    answer = raw(place, data)
    assert (answer["ok"], answer["code"]) == (False, "malformed")
    assert words in answer["text"]
    assert ask("list", at=place)["ok"]


def test_a_line_without_an_end_and_one_that_drips_are_given_up(server: Server, place: Path) -> None:
    assert "no end" in raw(place, b'{"verb":', close=True)["text"]
    begun = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
        slow.connect(str(place))
        slow.settimeout(0.05)
        answer = b""
        while not answer and time.monotonic() - begun < 20 * patience():
            try:
                slow.sendall(b" ")
                answer = slow.recv(4096)
            except TimeoutError:
                continue
    assert b"in time" in answer
    assert time.monotonic() - begun < 10 * patience()


def test_one_user_takes_no_more_than_a_few_places(server: Server, place: Path) -> None:
    holding = []
    try:
        for _ in range(EACH):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.connect(str(place))
            holding.append(one)
        assert raw(place, b"{}\n")["code"] == "busy"
    finally:
        for one in holding:
            one.close()
    assert ask("list", at=place)["ok"], "it asks again for a while"


@pytest.mark.parametrize(
    ("verb", "words"), [("refuse", "because"), ("secret", "ask its operator"), ("fault", "ask its operator")]
)
def test_a_user_is_told_why_and_nothing_of_what_is_inside(
    server: Server, place: Path, verb: str, words: str
) -> None:
    with pytest.raises(UsageError if verb == "refuse" else ProblemFound, match=words) as refused:
        ask(verb, at=place)
    assert "ledger" not in str(refused.value)
    assert "a secret" not in str(refused.value)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_no_bytes_end_the_server(server: Server, place: Path, data: bytes) -> None:
    assert "ok" in raw(place, data + b"\n")


def test_a_socket_that_an_earlier_daemon_left_is_replaced_and_ours_goes_with_us(place: Path) -> None:
    place.parent.mkdir()
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(place))
    left.close()
    with Server(place, echo):
        assert ask("list", at=place)["ok"]
    assert not place.exists()
    with pytest.raises(ProblemFound, match="takes no requests"):
        ask("list", at=place)


def test_a_file_in_its_place_is_left_alone(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("mine")
    with pytest.raises(LedgerError, match="no socket"):
        Server(place, echo).start()
    assert place.read_text() == "mine"
