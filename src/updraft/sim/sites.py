"""Fake clouds in a simulated pool: what they sell, how machines live, how these join the pool and go down."""

import math
import random
from collections.abc import Callable

from updraft.clouds.base import TAG_POOL
from updraft.clouds.fake import FakeInstance, Settings, Site
from updraft.core.model import Kind
from updraft.core.settings import Policy
from updraft.sim.conditions import Conditions, SimCloud
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import Bought, bought_as, brings
from updraft.sim.world.fleet import Worker
from updraft.sim.world.pool import SimPool

RUNS_AFTER = 0.4  # the part of a boot after which the cloud calls the machine running
TERMINATED_SHOWN = 60.0


def site_of(name: str, sold: SimCloud, conditions: Conditions, clock: Callable[[], float]) -> Site:
    """A cloud that sells this under these conditions."""
    settings = Settings().model_copy(
        update={
            "quota_machines": sold.machines,
            "quota_cores": sold.cores,
            "tells_left": sold.tells_left,
            "shows_after": conditions.shows_after,
            "stop_takes": conditions.stop_takes,
            "keeps_terminated": max(TERMINATED_SHOWN, 2 * conditions.cycle),
        }
    )
    boots = sold.boots or conditions.boots

    def draw(instance: FakeInstance, serial: int) -> None:
        """The same seed and serial number give the same life."""
        chance = random.Random(f"{conditions.seed}/{name}/{serial}")  # noqa: S311 - no secret
        took, now = chance.lognormvariate(math.log(boots.median), boots.spread), instance.launched_at
        instance.runs_at = now + RUNS_AFTER * took
        if chance.random() >= boots.failures:
            instance.joins_at = now + took
        if instance.market == "spot" and conditions.interruptions > 0:
            instance.dies_at = now + chance.expovariate(conditions.interruptions / 3600)

    return Site(name, settings, clock, offers=sold.offers, draw=draw)


class Joining:
    """Watches one fake cloud for machines of the pool `name`; `imagine` says what slots they bring.

    `workers` are all of its machines that ever were, by their ids.
    """

    def __init__(
        self, site: Site, name: str, pool: SimPool, agenda: Agenda, imagine: Callable[[Bought], Kind]
    ) -> None:
        self.workers: dict[str, Worker] = {}
        self._name = name
        self._pool = pool
        self._agenda = agenda
        self._imagine = imagine
        site.watchers.append(self._hears)

    def _hears(self, instance: FakeInstance) -> None:
        now = self._agenda.now
        if instance.tags.get(TAG_POOL) != self._name:
            return
        if instance.launched_at == now and instance.id not in self.workers:
            bought = bought_of(instance)
            made = Worker(instance.id, bought, self._imagine(bought), now, f"<{instance.address}:9618>")
            self.workers[instance.id] = made
            if instance.joins_at < math.inf:
                self._agenda.at(instance.joins_at, self._knocks, instance)
            if instance.dies_at < math.inf:
                self._agenda.at(instance.dies_at, self._down, instance)
        elif instance.id in self.workers:
            self._down(instance)

    def _knocks(self, instance: FakeInstance) -> None:
        self._pool.knocks(self.workers[instance.id], lambda: instance.up(self._agenda.now))

    def _down(self, instance: FakeInstance) -> None:
        now, worker = self._agenda.now, self.workers[instance.id]
        if worker.died_at is None and not instance.up(now):
            worker.stop_asked_at = instance.stop_asked_at if instance.stop_asked_at <= now else None
            self._pool.life.down(worker)


def bought_of(instance: FakeInstance) -> Bought:
    """What an instance was bought as."""
    return bought_as(instance.sold, instance.image, instance.tags)


def real_kind(policy: Policy, instance: FakeInstance) -> Kind:
    """The kind of slot that an instance brings, of the tags that it was launched with."""
    return brings(policy, bought_of(instance))
