"""The watcher of a spot machine: what it takes for a notice, and when it does what."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.agents import LOG, agent, guard_state, guard_told, notice_told
from tests.rigs.reading import worker, written
from tests.waiting import until
from updraft.bootstrap import worker_user_data
from updraft.bootstrap.files.agent.watchers.metadata import Metadata
from updraft.bootstrap.files.agent.watchers.notice import Leaving, Notices, end_of
from updraft.bootstrap.worker.agent import CONFIG

NOTICE = '{"action": "terminate", "time": "2026-11-21T07:08:54Z"}'
AT = 1795244934.0  # the same time


class Service(http.server.ThreadingHTTPServer):
    """A metadata service: `notice` is what it tells, `token` what it hands out and wants to see."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.notice, self.token, self.tokens = "", "one", 0
        self.refuses = False


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Service

    def do_PUT(self) -> None:
        self.server.tokens += 1
        right = self.headers["X-aws-ec2-metadata-token-ttl-seconds"].isdigit()
        self._answer(200 if right and not self.server.refuses else 403, self.server.token)

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != self.server.token:
            self._answer(401, "")
        elif self.path == "/latest/meta-data/spot/instance-action" and self.server.notice:
            self._answer(200, self.server.notice)
        else:
            self._answer(404, "<html>not found</html>")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def at(port: int) -> Notices:
    return Notices(Metadata(f"127.0.0.1:{port}", 5))


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_notice_is_seen_with_one_token_and_a_new_one_where_that_has_ended(service: Service) -> None:
    notices = at(service.server_port)
    assert notices.ask() == ""
    assert notices.ask() == ""
    service.notice, service.token = NOTICE, "two"
    assert notices.ask() == NOTICE
    assert service.tokens == 2


def test_a_service_that_refuses_or_is_away_is_no_notice(service: Service) -> None:
    service.refuses = True
    with pytest.raises(OSError, match="no token"):
        at(service.server_port).ask()
    with pytest.raises(OSError):  # noqa: PT011 (whatever the network says)
        at(1).ask()
    service.refuses, service.token = False, "<html>\n<body>"
    with pytest.raises(OSError, match="no answer"):
        at(service.server_port).ask()


def test_the_end_is_when_the_notice_says() -> None:
    assert end_of(NOTICE, AT - 120, 30) == AT


@pytest.mark.parametrize(
    "notice", ["", "{}", "[]", "null", "[" * 4096, '{"time": 5}', '{"time": "soon"}', "<html>"]
)
def test_a_notice_that_does_not_say_when_means_soon(notice: str) -> None:
    assert end_of(notice, 100.0, 30.0) == 130.0


def test_each_step_comes_at_its_time_and_once() -> None:
    leaving = Leaving(0.0, 120.0)
    assert leaving.due(0.0) == ["close"]
    assert leaving.due(59.0) == []
    assert leaving.due(60.0) == ["vacate"]
    assert leaving.due(89.0) == []
    assert not leaving.done
    assert leaving.due(90.0) == ["end"]
    assert leaving.done


@given(st.floats(-100, 200), st.lists(st.floats(0, 300)))
def test_every_step_comes_in_order_before_the_end_whenever_one_looks(left: float, looks: list[float]) -> None:
    leaving, done = Leaving(0.0, left), []
    for now in [*sorted(looks), max(left, 0.0)]:
        done += leaving.due(now)
    assert done == ["close", "vacate", "end"]


def test_only_spot_machines_watch() -> None:
    plain, spot = (written(worker_user_data(worker(**how))) for how in ({}, {"market": "spot"}))
    assert not [path for path in plain if "notice" in path]
    assert "notice" not in json.loads(plain[CONFIG]["content"])
    told = json.loads(spot[CONFIG]["content"])["notice"]
    assert told["interval"] == 5.0
    # The controller knows a drain of its own house, and its code, by how the reason begins.
    for step in ("close", "vacate"):
        assert "-reason 'updraft spot-notice: " in told["commands"][step][2]
    assert {path.rpartition("/")[2] for path in set(spot) - set(plain)} == {"notice.py", "metadata.py"}


def test_the_program_leaves_at_the_notice_and_the_guard_stays(service: Service, tmp_path: Path) -> None:
    service.notice = NOTICE.replace("2026", "2001")  # that is over: all steps are due
    told = notice_told(tmp_path, service.server_port, startd=Path("/proc/self/comm").read_text().strip())
    with agent(tmp_path, notice=told, guard=guard_told(tmp_path)) as run:
        said = lambda: (tmp_path / LOG).read_text().splitlines()  # noqa: E731
        until(lambda: "updraft-agent: end" in said(), 30, "it has left", every=0.05)
        tokens, age = service.tokens, guard_state(tmp_path)["age"]
        until(lambda: guard_state(tmp_path)["age"] > age + 0.5, 30, "the guard goes on", every=0.05)
        assert run.poll() is None
    first = "updraft-agent: the cloud takes this machine back at 07:08:54Z: no new jobs"
    assert said() == [first, "updraft-agent: vacate", "updraft-agent: end"]
    assert (tmp_path / "done").read_text().splitlines() == ["close 07:08:54Z", "vacate 07:08:54Z"]
    assert service.tokens == tokens, "it asks no more"


def test_nobody_asks_for_a_notice_before_htcondor_runs(service: Service, tmp_path: Path) -> None:
    """What leaves then would be done with leaving before the first job comes."""
    told = notice_told(tmp_path, service.server_port, startd="no-such-process")
    with agent(tmp_path, notice=told, guard=guard_told(tmp_path)):
        until(lambda: guard_state(tmp_path).get("age", 0) > 1.5, 30, "time has passed", every=0.05)
    assert service.tokens == 0
