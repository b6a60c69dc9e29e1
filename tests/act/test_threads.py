"""The threads of a controller at work at once: several slow clouds, real lanes, and nobody waits for ever."""

import faulthandler
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rigs.lockorder import LockOrder, lock_order
from tests.rigs.manyclouds import ManyClouds
from tests.rigs.pools.virtualpool import KINDS, Everything
from tests.rigs.rig import POOL
from tests.waiting import deadline
from updraft.act import Actor, Lanes
from updraft.clouds.base import LaunchRequest, Pace
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site
from updraft.clouds.paced import Paced
from updraft.core.model import (
    Action,
    Drain,
    DrainMode,
    Instance,
    Known,
    Launch,
    LaunchState,
    Plan,
    Reason,
    Snapshot,
    Terminate,
)
from updraft.daemon.preparing import Preparer
from updraft.ledger import Ledger, clouds
from updraft.observe import Observer

WHY = Reason("test", "because")
CLOUDS = ("c1", "c2", "c3", "c4")
LAUNCHES = 24  # at a cloud in each cycle
CYCLES = 8
PATIENCE = 60.0


class SlowCloud(FakeCloud):
    """Takes a moment for each call, every time another one."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, POOL)
        self._random = random.Random(site.name)
        self._one = threading.Lock()

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        self._take()
        with self._one:
            return super().launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        self._take()
        with self._one:
            super().terminate(ids)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        self._take()
        with self._one:
            super().tag(ids, tags)

    def _take(self) -> None:
        time.sleep(self._random.uniform(0, 0.002))


@dataclass
class World:
    """Clouds, a pool, a ledger, and one actor with real lanes over them."""

    many: ManyClouds
    ledger: Ledger
    observer: Observer
    preparer: Preparer
    actor: Actor
    order: LockOrder
    hangs: bool = False

    def watch(self, run: Callable[[], None]) -> None:
        """Run it in a thread. Where no cycle ends any more, fail with the stacks of all threads."""
        raised: list[BaseException] = []

        def guarded() -> None:
            try:
                run()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        cycle = 0.0
        while thread.is_alive() and self.many.clock() > cycle:
            cycle = self.many.clock()
            thread.join(deadline(PATIENCE))
        self.hangs = thread.is_alive()
        if self.hangs:
            with tempfile.TemporaryFile("w+") as file:
                faulthandler.dump_traceback(file, all_threads=True)
                file.seek(0)
                pytest.fail(f"it stands still:\n{file.read()}", pytrace=False)
        if raised:
            raise raised[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with lock_order() as order:
        many = ManyClouds(tmp_path, {name: {"quota_machines": None} for name in CLOUDS})
        ledger = many.ledger
        assert ledger is not None
        # What a power cut would leave isn't looked at here, and the disk would be most of the time.
        ledger._connection.execute("PRAGMA synchronous = OFF")
        pace = Pace(machines=10.0, offers=60.0, quota=60.0)
        clouds = {name: Cloud(name, Paced(SlowCloud(site), pace)) for name, site in many.sites.items()}
        observer = Observer(
            policy=many.policy, pool=many.pool, clouds=clouds, ledger=ledger
        )  # fmt: skip
        preparer = Preparer(ledger=ledger, matcher=Everything(), kinds=KINDS)
        actor = Actor(
            policy=many.policy, pool=many.pool, clouds=clouds,
            user_data=lambda launch, _: launch.key.encode(), ledger=ledger, clock=many.clock,
            lanes=Lanes(deadline=2 * PATIENCE),
        )  # fmt: skip
        made = World(many, ledger, observer, preparer, actor, order)
        yield made
        if not made.hangs:  # to close it would hang too
            many.close()


def wanted(snapshot: Snapshot, cycle: int) -> Plan:
    """Launches at every cloud, an end for what has drained, and a drain for every other machine."""
    offers = {offer.cloud: offer for offer in snapshot.offers}
    actions: list[Action] = [
        Launch(f"k{cycle}-{name}-{number}", offers[name], 1, WHY)
        for name in CLOUDS
        for number in range(LAUNCHES)
    ]
    assert isinstance(snapshot.collector, Known)
    listed = {slot.instance_id for slot in snapshot.collector.value.slots}
    for record in snapshot.ledger.machines:
        if record.drain is not None and record.terminate_asked_at is None:
            actions.append(Terminate((record.id,), record.cloud, WHY))
        elif record.drain is None and record.id in listed:
            actions.append(Drain(record.id, record.cloud, DrainMode.EMPTY, WHY))
    return Plan(tuple(actions))


@pytest.mark.slow
def test_thousands_of_launches_drains_and_ends_at_once_wait_for_nobody(world: World) -> None:
    over = threading.Event()

    def operator() -> None:
        """Someone who asks and decides all the while."""
        while not over.wait(0.005):
            clouds.decide(world.ledger, "c1", lambda old: old, WHY, world.many.clock())
            world.ledger.events(limit=1)

    def run() -> None:
        for cycle in range(CYCLES):
            seen = world.observer.look(world.many.clock())
            snapshot = world.preparer.at_once(seen, world.many.policy).snapshot
            assert world.actor.carry_out(wanted(snapshot, cycle), snapshot) == ()
            world.many.clock.forward(10)

    asks = threading.Thread(target=operator, daemon=True)
    asks.start()
    try:
        world.watch(run)
    finally:
        over.set()
    asks.join()  # or it would ask a ledger that is closed
    view = world.ledger.view(world.many.clock())
    assert {launch.state for launch in view.launches} == {LaunchState.ACCEPTED}
    assert len(view.machines) == CYCLES * LAUNCHES * len(CLOUDS)
    # All but those of the last two cycles went their way to the end.
    ended = [one for one in view.machines if one.drain and one.drain.accepted_at and one.terminate_asked_at]
    assert len(ended) == (CYCLES - 2) * LAUNCHES * len(CLOUDS)
    assert world.order.circles() == set()
    assert world.order.under("ledger/store.py") == set(), "who holds the ledger waits for nothing else"
