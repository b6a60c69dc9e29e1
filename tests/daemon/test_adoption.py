"""Adopt and disown by hand: what is taken into the pool's care, what is let go, and what is refused."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import POOL, Rig
from updraft.clouds.base import TAG_CLASS, TAG_POOL, TAG_RETIRING
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.model import Annex, DrainMode, Snapshot
from updraft.daemon import requests
from updraft.errors import CloudUnavailable, UsageError
from updraft.ledger import Ledger, Request, RequestKind, annexes


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def ask(rig: Rig, kind: RequestKind, machine: str, **detail: str) -> int:
    assert rig.ledger is not None
    return rig.ledger.request(rig.clock(), "root", kind, machine, detail=detail)


def outcome(rig: Rig, request: int) -> str:
    assert rig.ledger is not None
    return rig.ledger.request_outcome(request) or ""


def tags(rig: Rig, machine: str) -> dict[str, str]:
    return rig.site.instances[machine].tags


def test_a_machine_let_go_stays_with_its_jobs_and_nothing_is_done_to_it_any_more(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    request = ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    assert outcome(rig, request) == "taken up"
    assert TAG_POOL not in tags(rig, machine)
    assert TAG_CLASS not in tags(rig, machine)
    assert not rig.pool.queues["schedd"].asked_running[-1], "nobody is suspected of having lost its jobs"
    rig.pool.finish()
    rig.turn(daemon, 200)  # idle for far longer than its limit
    assert rig.site.instances[machine].up(rig.clock())
    assert (rig.pool.forgotten, rig.pool.requeued, rig.pool.killed_jobs) == ([], [], 0)
    assert rig.ledger is not None
    record = rig.ledger.machine(machine)
    assert record is not None
    assert record.ended_at is not None
    assert record.end is not None
    assert record.end.code == LET_GO


def test_the_room_of_a_machine_let_go_is_still_room(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    rig.pool.finish()
    rig.pool.queues["schedd"].idle = 1
    cycle = daemon.cycle()
    assert not cycle.plan.actions, "its free core would have been bought again"


def test_let_go_and_taken_back_it_is_as_before(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    before = dict(tags(rig, machine))
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 10)
    request = ask(rig, RequestKind.ADOPT, machine)
    rig.turn(daemon, 6)
    assert outcome(rig, request).startswith("done"), outcome(rig, request)
    assert tags(rig, machine) == before
    assert rig.alive() == [machine]
    assert rig.ledger is not None
    assert not rig.ledger.view(rig.clock()).boots.get(("img", "small"), ())[1:], (
        "no boot of hours was learned"
    )
    rig.pool.finish()
    rig.turn(daemon, 120)
    assert rig.alive() == [], "idle for its limit, it goes like any other"
    assert rig.pool.killed_jobs == 0


def test_an_instance_that_the_pool_does_not_know_is_refused_and_not_touched(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    rig.pool.workers[machine].closed = DrainMode.EMPTY  # its startd has gone
    known = ask(rig, RequestKind.ADOPT, machine, **{"class": "default"})
    nobody = ask(rig, RequestKind.ADOPT, "i-nobody", **{"class": "default"})
    rig.turn(daemon, 6)
    for request in (known, nobody):
        assert "no slot of this pool" in outcome(rig, request)
    assert TAG_POOL not in tags(rig, machine)


@pytest.mark.parametrize(
    ("detail", "why"),
    [({"class": "big"}, "class big is not configured"), ({"cloud": "c2"}, "on cloud c2")],
)
def test_a_wrong_class_or_cloud_is_refused(rig: Rig, detail: dict[str, str], why: str) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    request = ask(rig, RequestKind.ADOPT, machine, **detail)
    rig.turn(daemon, 6)
    assert outcome(rig, request).startswith("refused")
    assert why in outcome(rig, request)
    assert TAG_POOL not in tags(rig, machine)


def test_what_is_ours_already_is_done(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    request = ask(rig, RequestKind.ADOPT, machine)
    rig.turn(daemon, 4)
    assert outcome(rig, request) == "done: it is a machine of this pool"


def test_tagged_and_not_listed_is_said(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    monkeypatch.setattr(rig.driver, "tag", lambda ids, tags: None)
    request = ask(rig, RequestKind.ADOPT, machine)
    rig.turn(daemon, 10)
    assert outcome(rig, request) == "", "the cloud may be slow to show it"
    rig.turn(daemon, 30)
    assert "does not list it" in outcome(rig, request)


def test_a_drain_by_hand_is_taken_back_before_the_machine_is_let_go(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DRAIN, machine)
    rig.turn(daemon, 6)
    assert rig.pool.workers[machine].closed is DrainMode.BUSY
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 10)
    assert rig.pool.workers[machine].closed is None
    assert not {TAG_POOL, TAG_RETIRING} & set(tags(rig, machine))


def test_a_machine_that_the_pool_has_closed_for_good_is_not_let_go(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    rig.pool.finish()
    while rig.pool.workers[machine].closed is None:
        rig.turn(daemon, 2)
    request = ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 4)
    assert outcome(rig, request).startswith("refused")


class PowerCut(BaseException):
    """The process ends here."""


DISOWNED = ("disown: half", "disown: untagged")
STEPS = (*DISOWNED, "adopt: tagged")


@pytest.mark.parametrize("step", DISOWNED)
def test_killed_between_its_tags_and_its_record_it_is_still_only_let_go(
    rig: Rig, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, machine = rig.one_busy()
    write_tags = rig.driver.tag

    def cut(name: str) -> None:
        if name == step:
            raise PowerCut

    dying = rig.start(cut)
    request = ask(rig, RequestKind.DISOWN, machine)
    with pytest.raises(PowerCut):
        rig.turn(dying, 10)
    born_again = rig.clock()

    def tag(ids: Iterable[str], wanted: Mapping[str, str | None]) -> None:
        if rig.clock() < born_again + 30:  # long enough to take what isn't listed for gone
            raise CloudUnavailable("no answer")
        write_tags(ids, wanted)

    monkeypatch.setattr(rig.driver, "tag", tag)
    rig.turn(rig.start(), 60)
    assert outcome(rig, request) == "taken up"
    assert TAG_POOL not in tags(rig, machine)
    assert rig.site.instances[machine].up(rig.clock())
    assert (rig.pool.forgotten, rig.pool.requeued, rig.pool.killed_jobs) == ([], [], 0)


def test_killed_after_tagging_the_adoption_is_finished_by_the_next(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)

    def cut(name: str) -> None:
        if name == "adopt: tagged":
            raise PowerCut

    dying = rig.start(cut)
    request = ask(rig, RequestKind.ADOPT, machine)
    with pytest.raises(PowerCut):
        rig.turn(dying, 10)
    rig.turn(rig.start(), 10)
    assert outcome(rig, request).startswith("done")
    assert tags(rig, machine)[TAG_POOL] == POOL


def test_what_was_asked_while_no_controller_was_there_is_not_late_by_that(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DISOWN, machine)
    rig.turn(daemon, 6)
    request = ask(rig, RequestKind.ADOPT, machine)
    rig.clock.forward(300)  # longer than a cloud may take to show a tag
    rig.pool.negotiate()
    rig.turn(rig.start(), 8)
    assert outcome(rig, request) == "done: it is a machine of class default"
    assert TAG_POOL in tags(rig, machine)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RequestKind.ADOPT, RequestKind.DESTROY])
@pytest.mark.parametrize("error", [ZeroDivisionError("asked"), UsageError("there is no such thing")])
def test_a_request_that_cannot_be_taken_up_is_refused_and_holds_up_nobody_else(
    rig: Rig, kind: RequestKind, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, machine = rig.one_busy()

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("updraft.daemon.requests.adoption", broken)
    monkeypatch.setattr("updraft.daemon.requests._all_go", broken)
    odd, sane = ask(rig, kind, "i-odd"), ask(rig, RequestKind.DRAIN, machine)
    rig.turn(daemon, 4)
    said = "fails (ZeroDivisionError)" if isinstance(error, ZeroDivisionError) else str(error)
    assert outcome(rig, odd).startswith("refused: ")
    assert said in outcome(rig, odd)
    assert outcome(rig, sane) == "taken up"
    assert rig.ledger is not None
    told = [one.text for one in rig.ledger.events(kinds=("request",)) if one.code == f"request-{kind}"]
    assert [said in text for text in told] == [True], "once"
    assert not rig.ledger.requests()


@pytest.mark.slow
def test_what_a_refused_request_had_begun_is_taken_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon, machine = rig.one_busy()
    wish = requests._wish

    def half(request: Request, ledger: Ledger, snapshot: Snapshot) -> None:
        record = ledger.machine(machine)
        assert record is not None
        ledger.remember((replace(record, wanted_drain=wish(request, snapshot.now)),))
        raise ZeroDivisionError("halfway")

    monkeypatch.setattr("updraft.daemon.requests._all_go", half)
    ask(rig, RequestKind.DESTROY, "")
    rig.turn(daemon, 4)
    assert rig.ledger is not None
    record = rig.ledger.machine(machine)
    assert record is not None
    assert record.wanted_drain is None


@pytest.mark.parametrize("change", ["kind = 'nonsense'", "detail = '{\"half'", "detail = '[]'"])
def test_a_request_whose_row_cannot_be_read_is_refused_and_holds_up_nobody_else(
    rig: Rig, change: str
) -> None:
    daemon, machine = rig.one_busy()
    odd, sane = ask(rig, RequestKind.ADOPT, "i-odd"), ask(rig, RequestKind.DRAIN, machine)
    assert rig.ledger is not None
    with sqlite3.connect(rig.ledger.path) as raw:
        raw.execute(f"UPDATE requests SET {change} WHERE id = ?", (odd,))  # noqa: S608 - of our own
    raw.close()
    rig.turn(daemon, 4)
    assert "its row in the ledger can't be read" in outcome(rig, odd)
    assert outcome(rig, odd).startswith("refused: ")
    assert outcome(rig, sane) == "taken up"
    told = [one for one in rig.ledger.events(kinds=("request",)) if one.subject == "i-odd"]
    assert [one.code for one in told] == ["request-unread"], "once"


def test_an_annex_whose_row_cannot_be_read_is_named_and_everything_else_goes_on(rig: Rig) -> None:
    daemon, _ = rig.one_busy()
    assert rig.ledger is not None
    rig.ledger.put_annex(Annex("odd", "eve", "default", 1, 0, rig.clock() + 3600, 600.0))
    with sqlite3.connect(rig.ledger.path) as raw:
        raw.execute("UPDATE annexes SET doc = 'nonsense'")
    raw.close()
    cycle = daemon.cycle()
    (said,) = [one.text for one in cycle.plan.warnings if one.code == "unread-annex"]
    assert said.startswith("left out: annex odd: its row in the ledger can't be read")
    assert [one.code for one in rig.ledger.events(kinds=("warning",))] == ["unread-annex"]
    annexes.create(rig.ledger, Annex("odd", "eve", "default", 1, 0, rig.clock() + 3600, 600.0), "eve")
    assert "unread-annex" not in {one.code for one in daemon.cycle().plan.warnings}
