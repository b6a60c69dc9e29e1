"""The faults that a test can ask of the local cloud, and the log by which its users are judged."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clouds.local.test_local_api import serving
from tests.waiting import deadline
from updraft.clouds.local.client import Client
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.driver import LocalDriver
from updraft.clouds.local.faults import Fault, FaultKind, Faults, What
from updraft.clouds.local.process import _inside
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.events import EventLog
from updraft.clouds.local.service.instance import RUNNING, Machine
from updraft.clouds.local.service.server import Tokens, UnixApiServer
from updraft.core.model import CloudState
from updraft.errors import CloudUnavailable, NoCapacity, Throttled

SMALL = What("image", "small", "zone-a", "spot")


def armed(*faults: Fault, now: float = 0.0) -> Faults:
    made = Faults()
    made.set(faults, now)
    return made


# ------------------------------------------------------------------------------------ which occasions suffer


def test_a_fault_touches_what_it_names() -> None:
    made = armed(
        Fault(FaultKind.NO_CAPACITY, market="spot", zone="zone-a"), Fault(FaultKind.API_DOWN, call="list")
    )
    assert made.machine(FaultKind.NO_CAPACITY, SMALL, 1)
    assert not made.machine(FaultKind.NO_CAPACITY, What("image", "small", "zone-a", "on-demand"), 1)
    assert [fault.kind for fault in made.before("list", None, 1)] == [FaultKind.API_DOWN]
    assert made.before("run", SMALL, 1) == []


def test_a_refusal_may_be_of_one_flavor_and_market_only() -> None:
    made = armed(Fault(FaultKind.API_DOWN, call="run", flavor="large"))
    assert made.before("run", SMALL, 1) == []
    assert made.before("run", What("image", "large", "zone-a", "spot"), 1) != []


def test_a_chance_is_kept_to() -> None:
    made = armed(Fault(FaultKind.API_DOWN, chance=0.3))
    suffered = sum(bool(made.before("list", None, 1)) for _ in range(2000))
    assert 480 < suffered < 720


def test_a_bucket_lets_a_burst_pass_and_then_its_rate() -> None:
    made = armed(Fault(FaultKind.THROTTLED, rate=2.0, burst=5))
    passed = [not made.before("list", None, 100.0 + tenth / 10) for tenth in range(100)]
    assert passed[:5] == [True] * 5
    assert sum(passed) == 24, "five, and two for each of 9.9 seconds"


def test_one_more_leaves_the_others_as_they_are_and_ended_ones_go() -> None:
    made = armed(Fault(FaultKind.API_DOWN, times=1), now=0.0)
    made.add([Fault(FaultKind.NO_ANSWER, lasts=5)], 10.0)
    kinds = [[fault.kind for fault in made.before("list", None, now)] for now in (11.0, 12.0, 16.0)]
    assert kinds == [[FaultKind.API_DOWN, FaultKind.NO_ANSWER], [FaultKind.NO_ANSWER], []]


def test_a_listing_leaves_out_the_same_machines_for_as_long_as_it_lasts() -> None:
    made = armed(Fault(FaultKind.LEAVES_OUT, chance=0.5, lasts=60), now=3.0)
    names = [f"i-{n}" for n in range(200)]
    first = [made.listed_as(name, RUNNING, SMALL, 4.0) for name in names]
    assert first == [made.listed_as(name, RUNNING, SMALL, 50.0) for name in names]
    assert 60 < Counter(first)[""] < 140
    assert {made.listed_as(name, RUNNING, SMALL, 70.0) for name in names} == {RUNNING}


def test_a_state_may_be_wrong() -> None:
    made = armed(Fault(FaultKind.WRONG_STATE, state="error", flavor="small"))
    assert made.listed_as("i-1", RUNNING, SMALL, 1.0) == "error"
    assert made.listed_as("i-1", RUNNING, What(flavor="large"), 1.0) == RUNNING


# ------------------------------------------------------------------------------- at a cloud of paper machines


class PaperCloud(Cloud):
    """A cloud whose machines run as soon as they are asked for, and have no processes."""

    def _power_on(self, machine: Machine, fault: Fault | None) -> threading.Event | None:
        self._enter(machine, RUNNING)
        done = threading.Event()
        done.set()
        return done


@pytest.fixture
def cloud(tmp_path: Path) -> PaperCloud:
    config = LocalCloudConfig(images={"image": ("/",)})
    return PaperCloud(config, tmp_path, tmp_path, EventLog(tmp_path / "events.jsonl"))


@pytest.fixture
def user(cloud: PaperCloud, tmp_path: Path) -> Iterator[Client]:
    with serving(UnixApiServer(str(tmp_path / "api"), cloud, Tokens("admin", "controller"))):
        yield Client(f"unix:{tmp_path / 'api'}", "controller")


def run(user: Client, key: str = "k", **more: Any) -> list[dict[str, Any]]:
    return user.run(
        key=key,
        image="image",
        zone="zone-a",
        user_data=b"secret",
        **{"flavor": "small", "count": 1, "market": "on-demand", **more},
    )


def lines(tmp_path: Path, word: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    return [row for row in rows if word in row]


def test_a_lost_answer_is_of_a_call_that_was_done(user: Client, cloud: PaperCloud) -> None:
    cloud.set_faults([Fault(FaultKind.LOST_ANSWER, times=1, call="terminate")])
    (made,) = run(user)
    with pytest.raises(CloudUnavailable, match="lost, on request"):
        user.terminate([made["id"]])
    assert user.machines()[0]["state"] in ("stopping", "terminated")


@pytest.mark.parametrize(
    ("kind", "done"), [(FaultKind.NO_ANSWER, False), (FaultKind.LATE_ANSWER, True)], ids=["not done", "done"]
)
def test_an_answer_that_never_comes_may_be_of_a_call_that_was_done(
    user: Client, cloud: PaperCloud, tmp_path: Path, kind: FaultKind, done: bool
) -> None:
    hasty = Client(f"unix:{tmp_path / 'api'}", "controller", timeout=0.3)
    cloud.set_faults([Fault(kind, call="run", seconds=1.0, times=1)])
    with pytest.raises(CloudUnavailable):
        run(hasty)
    assert bool(user.machines()) is done
    assert len(run(user)) == 1, "asked again with its key"


def test_a_connection_that_ends_without_a_word_is_no_answer(user: Client, cloud: PaperCloud) -> None:
    cloud.set_faults([Fault(FaultKind.NO_ANSWER, times=1)])
    with pytest.raises(CloudUnavailable):
        user.machines()


def test_throttling_says_how_long_to_wait(user: Client, cloud: PaperCloud) -> None:
    cloud.set_faults([Fault(FaultKind.THROTTLED, rate=0.01, burst=2, seconds=7)])
    user.machines()
    user.quota()
    with pytest.raises(Throttled) as raised:
        user.machines()
    assert raised.value.retry_after == 7


def test_a_listing_lags(user: Client, cloud: PaperCloud) -> None:
    (made,) = run(user)
    end = time.monotonic() + deadline(10)
    while user.machines()[0]["state"] != "running":
        assert time.monotonic() < end
    cloud.set_faults([Fault(FaultKind.LAGS, seconds=3600)])
    assert user.machines() == []
    cloud.set_faults([Fault(FaultKind.LAGS, seconds=3600, chance=0.5)])
    assert {len(user.machines()) for _ in range(60)} == {0, 1}, "listings contradict one another"
    cloud.set_faults([])
    assert [one["id"] for one in user.machines()] == [made["id"]]


def test_who_is_asked_for_by_its_id_is_left_out_by_no_listing(user: Client, cloud: PaperCloud) -> None:
    made = sorted(one["id"] for one in run(user, count=2))
    cloud.set_faults([Fault(FaultKind.LEAVES_OUT)])
    assert user.machines() == []
    assert LocalDriver("here", "test", user).machines() == ()
    found = LocalDriver("here", "test", user).look_up([*made, "never"])
    assert [one and one.id for one in found.values()] == [*made, None]


class LeavesOut:
    """A client whose cloud lists nobody, and answers about ids."""

    def machines(self, *, ids: Sequence[str] = ()) -> list[dict[str, Any]]:
        return [{"id": one, "pid": 7, "state": "running"} for one in ids]


def test_who_is_listed_nowhere_can_be_entered() -> None:
    assert _inside(cast(Client, LeavesOut()), "i-1") == 7


def test_a_wrong_state_is_told_by_id_too(user: Client, cloud: PaperCloud) -> None:
    (made,) = run(user)
    cloud.set_faults([Fault(FaultKind.WRONG_STATE, state="terminated")])
    (found,) = LocalDriver("here", "test", user).look_up([made["id"]]).values()
    assert found is not None
    assert found.state is CloudState.TERMINATED


def test_an_address_may_be_used_again(user: Client, cloud: PaperCloud) -> None:
    (first,) = run(user, "first")
    cloud._enter(cloud._machines[first["id"]], "terminated")
    assert run(user, "other")[0]["address"] != first["address"]
    cloud.set_faults([Fault(FaultKind.SAME_ADDRESS)])
    assert run(user, "same")[0]["address"] == first["address"]


def test_the_log_has_machines_and_calls_and_no_secret(
    user: Client, cloud: PaperCloud, tmp_path: Path
) -> None:
    (made,) = run(user, "key", market="spot")
    cloud.set_faults([Fault(FaultKind.NO_CAPACITY)])
    with pytest.raises(NoCapacity):
        run(user, "none")
    user.terminate([made["id"]])
    states = [(row["state"], row["key"], row["market"]) for row in lines(tmp_path, "machine")]
    assert states[:1] == [("pending", "key", "spot")]
    calls = [(row["call"], row["who"], row["code"], row.get("made")) for row in lines(tmp_path, "call")]
    assert calls == [
        ("run", "controller", "", [made["id"]]),
        ("run", "controller", "no-capacity", []),
        ("terminate", "controller", "", []),
    ]
    assert "secret" not in (tmp_path / "events.jsonl").read_text()
    assert "c2VjcmV0" not in (tmp_path / "events.jsonl").read_text()
