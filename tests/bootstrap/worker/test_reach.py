"""How a worker is reached: what it and the head are told, and what asks the metadata for an address."""

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.rigs.reading import TOKEN, shipped, worker, written
from updraft.bootstrap import HeadSpec, head_user_data, worker_user_data
from updraft.bootstrap.head.userdata import workers_of
from updraft.bootstrap.worker.reach import BROKER_KEYS, Reach, broker_settings
from updraft.errors import BootstrapError

CONFIG = "/etc/condor/config.d/90-updraft.conf"
BEHIND = Reach(broker="head.test:9618?sock=broker", token=TOKEN)


def told(reach: Reach) -> dict[str, str]:
    """HTCondor's settings of such a worker."""
    lines = written(worker_user_data(worker(reach=reach)))[CONFIG]["content"].replace("\\\n", "").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(" =") for line in lines)}


def test_a_worker_that_is_reached_directly_is_told_nothing() -> None:
    assert not {"CCB_ADDRESS", "TCP_FORWARDING_HOST"} & set(told(Reach()))
    assert not [path for path in written(worker_user_data(worker())) if "broker" in path or "address" in path]


def test_behind_a_broker_a_worker_has_a_token_for_it_that_only_root_reads() -> None:
    assert told(BEHIND)["CCB_ADDRESS"] == "head.test:9618?sock=broker"
    files = written(worker_user_data(worker(reach=BEHIND)))
    assert files["/etc/condor/tokens.d/updraft-broker"]["permissions"] == "0600"
    assert files["/etc/condor/tokens.d/updraft-broker"]["content"] == TOKEN + "\n"
    assert TOKEN not in repr(BEHIND)


def test_a_forwarded_worker_advertises_the_address_or_asks_for_it() -> None:
    assert told(Reach(host="192.0.2.7"))["TCP_FORWARDING_HOST"] == "192.0.2.7"
    assert "TCP_FORWARDING_HOST" not in told(Reach(host="metadata"))
    files = written(worker_user_data(worker(reach=Reach(host="metadata"))))
    assert files["/usr/local/lib/updraft/public-address"]["permissions"] == "0755"


@pytest.mark.parametrize(
    ("reach", "words"),
    [
        (Reach(broker="head.test:9618"), "needs the broker's token"),
        (Reach(broker="head test", token=TOKEN), "no address of a broker"),
        (Reach(broker="h\nALLOW_DAEMON=*", token=TOKEN), "no address of a broker"),
        (Reach(host="$(HOME)"), "neither an address"),
    ],
)
def test_what_is_no_address_is_refused(reach: Reach, words: str) -> None:
    with pytest.raises(BootstrapError, match=words):
        worker_user_data(worker(reach=reach))


def head(broker: bool) -> Mapping[str, Mapping[str, str]]:
    return written(head_user_data(HeadSpec(trust_domain="pool.test", uid_domain="pool.test", broker=broker)))


def test_workers_only_register_at_the_broker_and_its_key_is_apart_from_the_others() -> None:
    files = head(broker=True)
    config = files[CONFIG]["content"].replace("\\\n", "").splitlines()
    lines = dict(line.split(" = ", 1) for line in config if " = " in line)
    assert lines["DAEMON_LIST"].split()[-1] == "BROKER"
    assert lines["BROKER.ALLOW_ADVERTISE_MASTER"] == "worker-*@pool.test"
    assert lines["BROKER.ALLOW_DAEMON"] == "condor@pool.test", "which gives more than to register"
    assert lines["BROKER.SEC_PASSWORD_DIRECTORY"] == BROKER_KEYS
    assert not [name for name in lines if "ALLOW_DAEMON" in name and not name.startswith("BROKER.")]
    keys = files["/etc/updraft/boot.conf"]["content"]
    assert f"KEYS='/etc/condor/passwords.d/updraft-workers {BROKER_KEYS}/updraft-broker'\n" in keys


def test_a_head_without_such_workers_has_no_broker() -> None:
    files = head(broker=False)
    assert "BROKER" not in files[CONFIG]["content"]
    assert "KEYS=/etc/condor/passwords.d/updraft-workers\n" in files["/etc/updraft/boot.conf"]["content"]


def test_the_lines_for_a_head_that_is_there_are_those_of_a_new_one() -> None:
    page = (Path(__file__).parents[3] / "docs/howto/nat.md").read_text(encoding="utf-8")
    lines = page.partition("```\nDAEMON_LIST")[2].partition("```")[0].splitlines()[1:]
    domain = "$(TRUST_DOMAIN)"
    assert dict(line.split(" = ", 1) for line in lines) == broker_settings(domain, workers_of(domain))


# ---------------------------------------------------------------------------------- the metadata's address


class Metadata(BaseHTTPRequestHandler):
    """A metadata service; `address` is what it tells, `tokens` whether it wants session tokens."""

    address = ""
    tokens = True

    def do_PUT(self) -> None:
        wanted = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self._answer("t0k3n" if self.tokens and self.path == "/latest/api/token" and wanted else "")

    def do_GET(self) -> None:
        let_in = not self.tokens or self.headers.get("X-aws-ec2-metadata-token") == "t0k3n"
        self._answer(self.address if let_in and self.path == "/latest/meta-data/public-ipv4" else "")

    def log_message(self, *_words: object) -> None:
        """Nothing of it is to be seen."""

    def _answer(self, text: str) -> None:
        self.send_response(200 if text else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def metadata() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("tokens", [True, False])
def test_the_public_address_of_the_metadata_is_advertised(
    metadata: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: bool
) -> None:
    monkeypatch.setattr(Metadata, "address", "203.0.113.9\n")
    monkeypatch.setattr(Metadata, "tokens", tokens)
    config = tmp_path / "address.conf"
    assert shipped("public_address").main(metadata, str(config)) == 0
    assert config.read_text() == "TCP_FORWARDING_HOST = 203.0.113.9\n"


@pytest.mark.parametrize("said", ["", "none\nALLOW_DAEMON = *"])
def test_without_a_public_address_nothing_is_advertised(
    metadata: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(Metadata, "address", said)
    (tmp_path / "address.conf").write_text("TCP_FORWARDING_HOST = 192.0.2.1\n")  # of an earlier boot
    assert shipped("public_address").main(metadata, str(tmp_path / "address.conf")) == 1
    assert not (tmp_path / "address.conf").exists()
