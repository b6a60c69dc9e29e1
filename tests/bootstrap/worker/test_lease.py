"""A machine ends with its lease, learns of a later one, and is told nothing of leases where it has none."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.reading import cloud_config, shipped, worker, written
from tests.waiting import until
from updraft.bootstrap import worker_user_data
from updraft.bootstrap.worker.lease import CLOSING, GRACE
from updraft.core.model import Variant
from updraft.errors import BootstrapError

SCRIPT = Path(str(files("updraft.bootstrap").joinpath("files", "lease.py")))
NOW = 1_800_000_000.0
TOLD = {"end": NOW + 3600, "interval": 15.0, "closing": 60.0, "grace": 25.0}
MODULE = shipped("lease")
OURS = "/etc/updraft/lease.json"
SETTINGS = "/etc/condor/config.d/90-updraft.conf"
ENDING = {
    OURS,
    "/usr/local/lib/updraft/lease",
    "/etc/systemd/system/updraft-lease.service",
    "/var/lib/cloud/scripts/per-boot/updraft-lease",
}


def test_a_plain_machine_is_told_nothing_of_leases_and_one_with_a_lease_nothing_else() -> None:
    without, leased = (cloud_config(worker_user_data(worker(lease_end=end))) for end in (None, NOW))
    assert not [one for one in without["write_files"] if "lease" in one["path"]]
    assert {one["path"] for one in leased["write_files"]} >= ENDING
    leased["write_files"] = [one for one in leased["write_files"] if one["path"] not in ENDING]
    assert leased == without
    assert "AnnexName" not in written(worker_user_data(worker()))[SETTINGS]["content"]


def test_a_machine_with_a_lease_is_told_its_end_and_how_the_pool_may_know_it() -> None:
    data = worker_user_data(worker(lease_end=NOW + 0.9, variant=Variant(user="eve", annex="burst")))
    found = written(data)
    told = json.loads(found[OURS]["content"])
    assert told["settings"] == {"end": NOW, "interval": 15.0, "closing": CLOSING, "grace": GRACE}
    config = found[SETTINGS]["content"]
    assert 'AnnexName = "burst"' in config
    assert "MASTER_ATTRS = $(MASTER_ATTRS) AnnexName IsAnnex" in config
    (line,) = [line for line in config.splitlines() if line.startswith("STARTD_ATTRS")]
    assert {"AnnexName", "IsAnnex", "UpdraftUser"} <= set(line.split())
    assert len(data) < 16384
    assert "updraft-lease.service" in found["/var/lib/cloud/scripts/per-boot/updraft-lease"]["content"]


@pytest.mark.parametrize("end", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_time_is_no_lease(end: float) -> None:
    with pytest.raises(BootstrapError, match="a lease ends at a time"):
        worker_user_data(worker(lease_end=end))


def follow(
    lease: Any, seconds: int, *, busy: bool, start: float = NOW, skew: float = 0.0
) -> list[tuple[int, str]]:
    """What is done second by second, the machine's clock being `skew` off."""
    done = []
    for second in range(seconds):
        now = start + second + skew
        what = lease.due(now, busy)
        if what in ("close", "open"):
            lease.closed = what == "close"
        if what == "vacate":
            lease.vacated = now
        if what:
            done.append((second, what))
        if what == "off":
            break
        lease.age += 1
    return done


def test_jobs_run_to_the_end_of_the_lease_and_the_machine_is_off_soon_after() -> None:
    assert follow(MODULE.Lease(TOLD, {}, NOW), 4000, busy=True) == [
        (3540, "close"),
        (3600, "vacate"),
        (3625, "off"),
    ]


def test_an_idle_machine_goes_at_once() -> None:
    assert follow(MODULE.Lease(TOLD, {}, NOW), 4000, busy=False)[-1] == (3601, "off")


@pytest.mark.parametrize("skew", [-7200.0, -90.0, -1.0])
def test_a_clock_that_is_set_back_gains_a_minute_at_most(skew: float) -> None:
    lease = MODULE.Lease({**TOLD, "end": NOW + 300}, {}, NOW)
    second, last = follow(lease, 9000, busy=True, skew=skew)[-1]
    assert last == "off"
    assert 300 < second <= 300 + 60 + GRACE + 1


def test_a_later_lease_is_taken_and_new_jobs_begin_again() -> None:
    lease = MODULE.Lease(TOLD, {}, NOW)
    assert follow(lease, 3560, busy=True) == [(3540, "close")]
    assert lease.hear(str(int(NOW + 7200)))
    assert follow(lease, 100, busy=True, start=NOW + 3560)[0] == (0, "open")
    done = follow(lease, 4000, busy=True, start=NOW + 3660)
    assert done == [(3480, "close"), (3540, "vacate"), (3565, "off")]


def test_it_goes_on_after_a_reboot_with_what_it_had_heard() -> None:
    lease = MODULE.Lease(TOLD, {}, NOW)
    lease.hear(str(int(NOW + 60)))
    again = MODULE.Lease(TOLD, json.loads(json.dumps(lease.state())), NOW + 70)
    assert again.due(NOW + 70, False) == "vacate"


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "0", "1e9", "1\n2", "9" * 400, "\u0661", "<html>", str(int(TOLD["end"]))]
)
def test_a_tag_that_is_no_other_time_changes_nothing(text: str) -> None:
    lease = MODULE.Lease(TOLD, {}, NOW)
    assert not lease.hear(text)
    assert lease.end == TOLD["end"]


@given(st.floats(-100, 5000), st.booleans())
def test_it_looks_again_soon_enough(passed: float, closed: bool) -> None:
    lease = MODULE.Lease(TOLD, {}, NOW)
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
OTHERS = {("GET", "/openstack/latest/meta_data.json"): json.dumps({"meta": ["updraft:lease"]})}


@pytest.mark.parametrize(("shown", "text"), [(AMAZON, "42"), (NOVA, "43"), (OTHERS, ""), ({}, "")])
def test_the_tag_is_read_as_the_clouds_show_it(
    service: ThreadingHTTPServer, shown: dict[tuple[str, str], str], text: str
) -> None:
    service.RequestHandlerClass.shown = shown  # type: ignore[attr-defined]
    assert MODULE.Metadata("127.0.0.1", service.server_address[1]).lease() == text


@pytest.mark.slow
def test_the_program_vacates_and_powers_off_with_nobody_to_ask(tmp_path: Path) -> None:
    done = tmp_path / "done"
    told = {
        "metadata": "127.0.0.1:1",
        "state": str(tmp_path / "state" / "state.json"),
        "commands": {word: ["sh", "-c", f"echo {word} >>{done}"] for word in ("close", "open", "vacate")},
        "master": "no-such-process",  # there may be real ones on the machine that tests
        "power_off": [["false"], ["sh", "-c", f"echo off >>{done}"]],
        "patience": 0.1,
        "settings": {"end": time.time() + 0.5, "interval": 0.1, "closing": 60.0, "grace": 0.5},
    }
    (tmp_path / "lease.json").write_text(json.dumps(told))
    with subprocess.Popen(
        [sys.executable, "-I", str(SCRIPT), str(tmp_path / "lease.json")], stdout=subprocess.DEVNULL
    ) as run:
        try:
            until(lambda: done.exists() and "off" in done.read_text(), 30, "it powers off", every=0.05)
        finally:
            run.kill()
    assert [word for word in done.read_text().split() if word != "close"][:2] == ["vacate", "off"]
    assert json.loads((tmp_path / "state" / "state.json").read_text())["end"] == told["settings"]["end"]
