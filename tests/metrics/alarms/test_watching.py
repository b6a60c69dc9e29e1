"""What is told, when, and how often: alarms that stand long enough, each once, few of a kind."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from updraft.metrics.alarms.conditions import Alarm, AlarmKind, alarms
from updraft.metrics.alarms.watching import FILE, AlarmWatch, Message
from updraft.metrics.reading import FiguresRead

ACTS = {"alive": True, "acting": True, "standing": None, "looked_at": 1000.0}
WELL = FiguresRead(1000.0, "lab", ACTS, {"warnings": [], "cooldowns": [], "clouds": []})
DEAD = replace(WELL, state={**ACTS, "alive": False})
Watch = Callable[[], tuple[AlarmWatch, list[Message]]]


def with_cycle(**parts: Any) -> FiguresRead:
    return replace(WELL, cycle={**WELL.cycle, **parts})


def standing(code: str) -> FiguresRead:
    return replace(WELL, state={**ACTS, "acting": False, "standing": {"code": code, "text": "so it is"}})


def rest(failures: int, code: str, key: str = "work:img@a") -> dict[str, Any]:
    return {
        "scope": "image",
        "key": key,
        "failures": failures,
        "reason": {"code": code, "text": f"{key} fails"},
    }


def refusing(code: str) -> FiguresRead:
    silent = {"since": 1.0, "reason": {"code": code, "text": "401"}}
    return with_cycle(clouds=[{"name": "a", "silent": silent}])


LOST = replace(WELL, counters={"jobs_lost": {(): 2.0}})
TOLD: dict[str, tuple[FiguresRead, AlarmKind]] = {
    "dead": (DEAD, AlarmKind.NOT_ACTING),
    "never": (replace(WELL, state={}), AlarmKind.NOT_ACTING),
    "no ledger": (replace(WELL, state={}, unread="there is none"), AlarmKind.NOT_ACTING),
    "no collector": (standing("no-collector"), AlarmKind.NOT_ACTING),
    "boots": (with_cycle(cooldowns=[rest(3, "never-joined")]), AlarmKind.BOOTS_FAIL),
    "broken": (with_cycle(cooldowns=[rest(5, "cloud-error")]), AlarmKind.BOOTS_FAIL),
    "spent": (with_cycle(warnings=[{"code": "budget-spent", "text": "the pool …"}]), AlarmKind.BUDGET),
    "nearly": (with_cycle(warnings=[{"code": "budget-nearly-spent", "text": "so …"}]), AlarmKind.BUDGET),
    "unpriced": (with_cycle(warnings=[{"code": "price-unknown", "text": "so …"}]), AlarmKind.BUDGET),
    "token": (replace(WELL, expiries={"pool-token": 1000.0 + 6 * 86400}), AlarmKind.CREDENTIALS),
    "ended": (replace(WELL, expiries={"pool-token": 999.0}), AlarmKind.CREDENTIALS),
    "cloud": (replace(WELL, expiries={"cloud a": 1000.0 + 86400}), AlarmKind.CREDENTIALS),
    "refused": (refusing("auth-failed"), AlarmKind.CREDENTIALS),
    "lost": (LOST, AlarmKind.JOB_LOST),
}
SILENT: dict[str, FiguresRead] = {
    "well": WELL,
    "standby": standing("second-controller"),
    "two boots": with_cycle(cooldowns=[rest(2, "never-joined")]),
    "no room": with_cycle(cooldowns=[rest(9, "no-capacity")]),
    "a slot": with_cycle(warnings=[{"code": "unexplained-slot", "text": "slot"}]),
    "a good token": replace(WELL, expiries={"pool-token": 1000.0 + 30 * 86400}),
    "silent": refusing("cloud-unavailable"),
}


@pytest.mark.parametrize("which", TOLD)
def test_what_is_an_alarm(which: str) -> None:
    picture, kind = TOLD[which]
    [found] = alarms(picture)
    assert found.kind is kind
    assert found.text


@pytest.mark.parametrize("which", SILENT)
def test_what_is_none(which: str) -> None:
    assert alarms(SILENT[which]) == []


def test_lost_jobs_are_told_once() -> None:
    assert isinstance(alarms(LOST)[0], Alarm)
    assert alarms(LOST, lost_before=2.0) == []


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    def make() -> tuple[AlarmWatch, list[Message]]:
        sent: list[Message] = []
        return AlarmWatch(sent.append, tmp_path, pause=600.0, again=86400.0), sent

    return make


def turn(watching: AlarmWatch, picture: FiguresRead, begin: float, end: float) -> None:
    """Looks every 15 s at what stays as it is."""
    now = begin
    while now < end:
        watching.look(replace(picture, now=now))
        now += 15


def test_a_dead_controller_is_told_once_a_day(watch: Watch) -> None:
    watching, sent = watch()
    turn(watching, DEAD, 2000, 2075)
    assert not sent, "one that is started again is back by then"
    turn(watching, DEAD, 2075, 40_000)
    assert [one.kind for one in sent] == [AlarmKind.NOT_ACTING]
    turn(watching, DEAD, 40_000, 100_000)
    assert len(sent) == 2


def test_what_comes_back_is_told_again_but_not_at_once(watch: Watch) -> None:
    watching, sent = watch()
    flaps = with_cycle(cooldowns=[rest(3, "never-joined")])
    for minute in range(60):
        turn(watching, flaps if minute % 2 else WELL, 2000 + 60 * minute, 2060 + 60 * minute)
    assert len(sent) == 6, "one in ten minutes"


def test_a_restart_tells_nothing_twice(watch: Watch, tmp_path: Path) -> None:
    watching, sent = watch()
    turn(watching, LOST, 2000, 2100)
    assert len(sent) == 1
    for _ in range(3):
        watching, again = watch()
        turn(watching, LOST, 2100, 2200)
        assert not again
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    more = replace(LOST, counters={"jobs_lost": {(): 3.0}})
    turn(watching, more, 5000, 5100)
    assert again[0].texts[0].startswith("1 job ended")


@pytest.mark.parametrize(
    "damage", ["", "no json", "[]", '{"told": 7, "sent": {}, "lost": 0}', '{"told": []}']
)
def test_what_is_remembered_may_be_damaged(watch: Watch, tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(damage)
    watching, sent = watch()
    turn(watching, LOST, 2000, 2100)
    assert len(sent) == 1
    assert json.loads((tmp_path / FILE).read_text())["lost"] == 2


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    sent: list[Message] = []
    watching = AlarmWatch(sent.append, tmp_path / "nowhere", pause=600.0, again=86400.0)
    turn(watching, LOST, 2000, 4000)
    assert len(sent) == 1


def test_many_of_a_kind_are_one_message_that_nobody_can_make_long(watch: Watch) -> None:
    watching, sent = watch()
    many = [rest(3, "never-joined", f"work:img?network={n}\x1b[2J\n{'x' * 2000}@a") for n in range(5000)]
    turn(watching, with_cycle(cooldowns=many), 2000, 2030)
    [message] = sent
    assert len(message.texts) == 11
    assert message.texts[-1] == "and 4990 more"
    assert all(text.isprintable() and len(text) <= 500 for text in message.texts)


def test_a_clock_that_is_set_back_silences_nobody_for_ever(watch: Watch) -> None:
    watching, sent = watch()
    turn(watching, LOST, 90_000, 90_100)
    turn(watching, DEAD, 80_000, 80_200)
    assert [one.kind for one in sent] == [AlarmKind.JOB_LOST, AlarmKind.NOT_ACTING]
