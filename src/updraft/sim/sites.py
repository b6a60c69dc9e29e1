"""Machines of fake clouds in a simulated pool: they join it when their boot is over, and go down with it."""

from collections.abc import Callable

from updraft.clouds.base import TAG_POOL
from updraft.clouds.fake import FakeInstance, Site
from updraft.core.model import CloudOffer, Kind
from updraft.core.settings import Policy
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import Bought, bought_as, brings
from updraft.sim.world.fleet import Worker
from updraft.sim.world.pool import SimPool

_FOREVER = 1e15


class Joining:
    """Watches one fake cloud for machines of the pool `name`; `imagine` says what slots they bring."""

    def __init__(
        self, site: Site, name: str, pool: SimPool, agenda: Agenda, imagine: Callable[[Bought], Kind]
    ) -> None:
        self._site = site
        self._name = name
        self._pool = pool
        self._agenda = agenda
        self._imagine = imagine
        self._workers: dict[str, Worker] = {}
        site.watchers.append(self._hears)

    def _hears(self, instance: FakeInstance) -> None:
        now = self._agenda.now
        if instance.tags.get(TAG_POOL) != self._name:
            return
        if instance.launched_at == now and instance.id not in self._workers:
            bought = bought_of(self._site.name, instance)
            made = Worker(instance.id, bought, self._imagine(bought), now, f"<{instance.address}:9618>")
            self._workers[instance.id] = made
            self._agenda.at(min(instance.joins_at, _FOREVER), self._knocks, instance)
            self._agenda.at(min(instance.dies_at, _FOREVER), self._down, instance)
        elif instance.id in self._workers:
            self._down(instance)

    def _knocks(self, instance: FakeInstance) -> None:
        self._pool.knocks(self._workers[instance.id], lambda: instance.up(self._agenda.now))

    def _down(self, instance: FakeInstance) -> None:
        now, worker = self._agenda.now, self._workers[instance.id]
        if worker.died_at is None and not instance.up(now) and worker.joined_at is not None:
            worker.stop_asked_at = instance.stop_asked_at if instance.stop_asked_at <= now else None
            self._pool.life.down(worker)


def bought_of(cloud: str, instance: FakeInstance) -> Bought:
    """What an instance of this cloud was bought as."""
    flavor = instance.flavor
    offer = CloudOffer(
        cloud, instance.zone, instance.flavor_name, instance.market, flavor.resources, arch=flavor.arch
    )
    return bought_as(offer, instance.image, instance.tags)


def real_kind(policy: Policy, cloud: str, instance: FakeInstance) -> Kind:
    """The kind of slot that an instance brings, of the tags that it was launched with."""
    return brings(policy, bought_of(cloud, instance))
