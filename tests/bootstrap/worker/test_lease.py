"""A machine ends with its lease, learns of a later one, and is told nothing of leases where it has none."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rigs.agents import agent, lease_told
from tests.rigs.reading import cloud_config, worker, written
from tests.waiting import until
from updraft.bootstrap import worker_user_data
from updraft.bootstrap.files.agent.watchers.lease import KEPT, Lease, tag
from updraft.bootstrap.files.agent.watchers.machine import load, save
from updraft.bootstrap.files.agent.watchers.metadata import Metadata
from updraft.bootstrap.worker.agent import CLOSING, CONFIG, GRACE
from updraft.core.model import Variant
from updraft.errors import BootstrapError

NOW = 1_800_000_000.0
LATEST = 1800.0
TOLD = {
    "asked": NOW - 30, "latest": LATEST, "end": NOW + 3600, "interval": 15.0, "closing": 60.0, "grace": 25.0,
}  # fmt: skip
BOOT = "5b1f"
SETTINGS = "/etc/condor/config.d/90-updraft.conf"
PROGRAMS = {f"/usr/local/lib/updraft/agent/watchers/{name}.py" for name in ("lease", "metadata")}


def test_a_plain_machine_is_told_nothing_of_leases_and_one_with_a_lease_nothing_else() -> None:
    without, leased = (cloud_config(worker_user_data(worker(lease=one))) for one in (None, (NOW - 60, NOW)))
    assert not [one for one in without["write_files"] if "lease" in one["path"]]
    told = []
    for one in (without, leased):
        (config,) = [entry for entry in one["write_files"] if entry["path"] == CONFIG]
        told.append(json.loads(config.pop("content")))
    assert told[0] == {name: one for name, one in told[1].items() if name != "lease"}
    assert "lease" in told[1]
    assert {one["path"] for one in leased["write_files"]} >= PROGRAMS
    leased["write_files"] = [one for one in leased["write_files"] if one["path"] not in PROGRAMS]
    assert leased == without
    assert "AnnexName" not in written(worker_user_data(worker()))[SETTINGS]["content"]


def test_a_machine_with_a_lease_is_told_its_end_and_how_the_pool_may_know_it() -> None:
    data = worker_user_data(worker(lease=(NOW - 60.4, NOW + 0.9), variant=Variant(user="eve", annex="burst")))
    found = written(data)
    told = json.loads(found[CONFIG]["content"])["lease"]
    assert told["settings"] == {
        "asked": NOW - 61, "latest": worker().boot_deadline, "end": NOW,
        "interval": 15.0, "closing": CLOSING, "grace": GRACE,
    }  # fmt: skip
    config = found[SETTINGS]["content"]
    assert 'AnnexName = "burst"' in config
    assert "MASTER_ATTRS = $(MASTER_ATTRS) AnnexName IsAnnex" in config
    (line,) = [line for line in config.splitlines() if line.startswith("STARTD_ATTRS")]
    assert {"AnnexName", "IsAnnex", "UpdraftUser"} <= set(line.split())
    assert len(data) < 16384


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_time_is_no_lease(wrong: float) -> None:
    for one in ((NOW, wrong), (wrong, NOW)):
        with pytest.raises(BootstrapError, match="a lease is from one time to another"):
            worker_user_data(worker(lease=one))


def look(lease: Any, wall: float, *, busy: bool = True) -> str:
    """One look at that time of the wall clock, and what is done."""
    what: str = lease.due(wall, busy)
    lease.note(what)
    return what


def follow(
    lease: Any,
    seconds: int,
    *,
    busy: bool = True,
    start: float = NOW,
    skew: Callable[[int], float] = lambda _: 0,
) -> list[tuple[int, str]]:
    """What is done second by second from `start` on, the machine's wall clock being `skew` off."""
    done = []
    for second in range(seconds):
        what = look(lease, start + second + skew(second), busy=busy)
        if what:
            done.append((second, what))
        if what == "off":
            break
        lease.age += 1
    return done


def first(now: float = NOW, up: float = 1e6, new: bool = True, **changes: float) -> Any:
    """A lease at its very first look, `up` being what the boot clock says."""
    return Lease({**TOLD, **changes}, {}, now, up, BOOT, new)


def again(lease: Any, now: float, up: float, boot: str = BOOT) -> Any:
    """The lease as a program that has just been started takes it up."""
    return Lease(lease.told, json.loads(json.dumps(lease.state())), now, up, boot, False)


def test_jobs_run_to_the_end_of_the_lease_and_the_machine_is_off_soon_after() -> None:
    assert follow(first(), 4000) == [(3540, "close"), (3601, "vacate"), (3626, "off")]


def test_an_idle_machine_goes_at_once() -> None:
    assert follow(first(), 4000, busy=False)[-1] == (3602, "off")


@pytest.mark.parametrize("skew", [-7200.0, -90.0, -1.0])
def test_a_clock_that_is_set_back_gains_a_minute_at_most(skew: float) -> None:
    second, last = follow(first(end=NOW + 300), 9000, skew=lambda _: skew)[-1]
    assert last == "off"
    assert 300 < second <= 300 + 60 + GRACE + 2


@pytest.mark.parametrize("skew", [86400.0, 4000.0, -86400.0, -4000.0])
def test_a_clock_that_is_wrong_at_the_first_look_and_right_later_costs_nothing(skew: float) -> None:
    done = follow(first(NOW + skew), 4000, skew=lambda second: skew if second < 200 else 0.0)
    assert [what for second, what in done if second < 3540] == []
    assert done[-2:] == [(3601, "vacate"), (3626, "off")]


@pytest.mark.parametrize("wrong", [range(100, 101), range(100, 900), range(3500, 3530)])
def test_a_clock_that_is_ahead_for_a_while_evicts_nothing(wrong: range) -> None:
    done = follow(first(), 4000, skew=lambda second: 100_000.0 if second in wrong else 0.0)
    assert [second for second, what in done if what in ("vacate", "off")] == [3601, 3626]
    assert done[-1] == (3626, "off")


def test_one_look_is_not_enough_even_where_the_boot_clock_cannot_tell() -> None:
    """The machine has been off, for nobody knows how long."""
    lease = again(first(), NOW + 10_000, 20.0, "another boot")
    assert look(lease, NOW + 10_000) in ("", "close")
    lease.age += 1
    assert look(lease, NOW + 10_001) == ""
    lease.age += 1
    assert look(lease, NOW + 100) in ("", "open")
    lease.age += TOLD["interval"]
    assert look(lease, NOW + 10_020) in ("", "close"), "the clock was right in between"
    lease.age += TOLD["interval"]
    assert look(lease, NOW + 10_035) == "vacate"


def test_what_a_wrong_clock_has_ended_begins_again_when_it_is_right() -> None:
    lease = again(first(), NOW + 10_000, 20.0, "another boot")
    assert follow(lease, 20, start=NOW + 10_000)[-1] == (15, "vacate")
    assert look(lease, NOW + 60) == "open"
    assert look(lease, NOW + 61) == ""


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 2000), st.floats(-1e6, 1e6)), max_size=4),
    st.booleans(),
)
@example([(0, 4000, 1e6)], True)
@example([(0, 4000, -1e6)], False)
def test_no_clock_ends_it_early_or_keeps_it_long(wrong: list[tuple[int, int, float]], at_first: bool) -> None:
    """Whatever the wall clock says, at any time after a first look that was right or was not."""

    def skew(second: int) -> float:
        return next((off for begin, long, off in wrong if begin <= second < begin + long), 0.0)

    lease = first(NOW + (skew(0) if at_first else 0.0))
    ended = {what: second for second, what in follow(lease, 8000, skew=skew)}
    doubt = LATEST if at_first and skew(0) else 0.0
    assert ended["vacate"] >= 3600 - 60 - doubt
    assert ended["off"] <= 3600 + 60 + GRACE + 2 + (30 + 60 if at_first else 0)


def test_a_later_lease_is_taken_and_new_jobs_begin_again() -> None:
    lease = first()
    assert follow(lease, 3560) == [(3540, "close")]
    assert lease.hear(str(int(NOW + 7200)))
    assert follow(lease, 100, start=NOW + 3560)[0] == (0, "open")
    done = follow(lease, 4000, start=NOW + 3660)
    assert done == [(3480, "close"), (3541, "vacate"), (3566, "off")]


def test_it_goes_on_after_a_reboot_with_what_it_had_heard() -> None:
    lease = first()
    lease.hear(str(int(NOW + 60)))
    assert follow(again(lease, NOW + 70, 5.0, "another boot"), 60, start=NOW + 70)[-2:] == [
        (15, "vacate"),
        (40, "off"),
    ]


def test_a_program_that_is_started_again_counts_what_it_was_away_for() -> None:
    lease = first(up=10.0)
    lease.tick(30.0)
    assert again(lease, NOW + 30, 50.0).remaining(NOW - 10_000) == pytest.approx(3600 - 40 + 60)
    assert again(lease, NOW + 500, 5.0, "another boot").age == pytest.approx(20.0)


def test_a_machine_that_has_lost_what_it_knew_goes_by_the_wall_clock() -> None:
    done = follow(first(NOW + 3000, new=False), 4000, start=NOW + 3000)
    assert done == [(540, "close"), (615, "vacate"), (640, "off")]


@pytest.mark.parametrize("text", ["{", "[]", '{"end": "x"}', '{"end": 1}', ""])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    assert load(tmp_path / "state", KEPT) == {}
    save(tmp_path / "state", first().state())
    assert load(tmp_path / "state", KEPT) == first().state()


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "0", "1e9", "1\n2", "9" * 400, "\u0661", "<html>", str(int(TOLD["end"]))]
)
def test_a_tag_that_is_no_other_time_changes_nothing(text: str) -> None:
    lease = first()
    assert not lease.hear(text)
    assert lease.end == TOLD["end"]


@given(st.floats(-100, 5000), st.booleans())
def test_it_looks_again_soon_enough(passed: float, closed: bool) -> None:
    lease = first()
    lease.age, lease.closed = max(0.0, passed), closed
    assert 0.2 <= lease.pause(NOW + passed) <= TOLD["interval"]


class _Metadata(BaseHTTPRequestHandler):
    shown: dict[tuple[str, str], str]

    def do_PUT(self) -> None:
        self._answer(self.shown.get(("PUT", self.path)))

    def do_GET(self) -> None:
        wanted = self.shown.get(("PUT", "/latest/api/token"))
        token = self.headers.get("X-aws-ec2-metadata-token")
        amazon = self.path.startswith("/latest/")
        self._answer(None if amazon and token != wanted else self.shown.get(("GET", self.path)))

    def _answer(self, text: str | None) -> None:
        self.send_response(200 if text is not None else 404)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def service() -> Iterator[ThreadingHTTPServer]:
    handler = type("Handler", (_Metadata,), {"shown": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


AMAZON = {("PUT", "/latest/api/token"): "t", ("GET", "/latest/meta-data/tags/instance/updraft:lease"): "42"}
NOVA = {("GET", "/openstack/latest/meta_data.json"): json.dumps({"meta": {"updraft:lease": "43"}})}
DEEP = {("GET", "/openstack/latest/meta_data.json"): "[" * 60_000}
OTHERS = {("GET", "/openstack/latest/meta_data.json"): json.dumps({"meta": ["updraft:lease"]})}


@pytest.mark.parametrize(
    ("shown", "text"), [(AMAZON, "42"), (NOVA, "43"), (OTHERS, ""), (DEEP, ""), ({}, "")]
)
def test_the_tag_is_read_as_the_clouds_show_it(
    service: ThreadingHTTPServer, shown: dict[tuple[str, str], str], text: str
) -> None:
    service.RequestHandlerClass.shown = shown  # type: ignore[attr-defined]
    assert tag(Metadata(f"127.0.0.1:{service.server_address[1]}", 3)) == text


def test_a_session_token_that_is_none_is_no_answer(service: ThreadingHTTPServer) -> None:
    """Some endpoint may answer every question with a page."""
    service.RequestHandlerClass.shown = {("PUT", "/latest/api/token"): "<html>\n<body>"}  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="no answer"):
        tag(Metadata(f"127.0.0.1:{service.server_address[1]}", 3))


@pytest.mark.slow
def test_the_program_vacates_and_powers_off_with_nobody_to_ask(tmp_path: Path) -> None:
    done, end = tmp_path / "done", time.time() + 0.5
    with agent(tmp_path, lease=lease_told(tmp_path, time.time() - 10, end)):
        until(lambda: done.exists() and "off" in done.read_text(), 30, "it powers off", every=0.05)
    assert [word for word in done.read_text().split() if word != "close"][:2] == ["vacate", "off"]
    assert json.loads((tmp_path / "state" / "lease.json").read_text())["end"] == end


@pytest.mark.slow
def test_the_program_goes_on_where_the_clock_is_a_day_ahead_at_its_first_look(tmp_path: Path) -> None:
    """The lease is of yesterday, as it looks to such a clock."""
    state = tmp_path / "state" / "lease.json"
    age = lambda: json.loads(state.read_text())["age"] if state.exists() else 0.0  # noqa: E731
    yesterday = time.time() - 86400
    with agent(tmp_path, lease=lease_told(tmp_path, yesterday, yesterday + 7200)):
        until(lambda: age() > 1.5, 30, "it has looked for more than a second", every=0.05)
    assert not (tmp_path / "done").exists()
