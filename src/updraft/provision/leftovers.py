"""What updraft has made in one cloud: asked for by kinds, so that what doesn't answer costs itself alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from updraft.clouds.base import TAG_IDENTITY, Machines
from updraft.clouds.cloud import Cloud
from updraft.clouds.imaging import MachineImage
from updraft.clouds.networking import TAG_ROLE, Group
from updraft.config.model import Settings
from updraft.core.leftovers import Belonging, Kind
from updraft.core.model import CloudState, Instance
from updraft.core.slots.choice import chosen
from updraft.provision.heads.network import Network

Asked = Mapping[str, Callable[[], tuple[Belonging, ...]]]
_KEY_SETTING = "key_name"
_OVER = (CloudState.TERMINATED, CloudState.STOPPING)


@dataclass(frozen=True, slots=True)
class Place:
    """One cloud of the configuration: as it is for the pool, its heads and its images.

    `network` is None where the cloud has no groups; `keys` are the names of key pairs that the ledger notes.
    """

    settings: Settings
    cloud: str
    workers: Cloud
    heads: Cloud
    builders: Cloud
    network: Network | None
    keys: frozenset[str]

    def questions(self) -> Asked:
        """What to ask of the cloud, by what it is; each raises CloudError."""
        asked: dict[str, Callable[[], tuple[Belonging, ...]]] = {"machines": self.machines}
        if self.workers.images is not None:
            asked["images"] = self.images
        if self.network is not None:
            asked["security groups"] = self.groups
        if self.keys and self.workers.catalogue is not None:
            asked["key pairs"] = self.key_pairs
        further = self.workers.leavings
        if further is not None:
            asked |= {f"{kind}s": partial(self.further, kind) for kind in further.kinds}
        return asked

    def named(self) -> Mapping[tuple[str, str], str]:
        """Where the configuration names what, by cloud and id or name.

        Raises CloudError: which image a name means is the cloud's to say.
        """
        own = self.settings.clouds[self.cloud].settings
        found = {str(own[_KEY_SETTING]): f"[clouds.{self.cloud}]"} if own.get(_KEY_SETTING) else {}
        groups = own.get("security_groups") or ()
        for group in (groups,) if isinstance(groups, str) else groups:  # type: ignore[attr-defined]
            found[str(group)] = f"[clouds.{self.cloud}]"
        finder = self.workers.finder
        for name, worker in self.settings.classes.items():
            image = self.settings.images_of(worker).get(self.cloud)
            if image is None:
                continue
            found[image] = f"class {name}"
            meant = None if finder is None else finder.image(image)
            if meant is not None:
                found[meant.id] = f"class {name}"
        return {(self.cloud, word): where for word, where in found.items()}

    def remove(self, thing: Belonging, going: Iterable[Belonging] = ()) -> None:
        """Remove it. Raises CloudError, BadRequest while something uses it; `going` are to go as well."""
        imaging, catalogue = self.workers.images, self.workers.catalogue
        further = self.workers.leavings
        if thing.kind is Kind.MACHINE:
            self.builders.machines.terminate([thing.id])
        elif thing.kind is Kind.IMAGE and imaging is not None:
            imaging.delete(thing.id)
        elif thing.kind is Kind.GROUP and self.network is not None:
            self.network.remove_one(thing.id, {one.id for one in going if one.kind is Kind.GROUP})
        elif thing.kind is Kind.KEY_PAIR and catalogue is not None:
            catalogue.delete_key_pair(thing.id)
        elif further is not None and thing.kind in further.kinds:
            further.remove(thing.kind, thing.id)

    # ------------------------------------------------------------------------------------------- by kind

    def machines(self) -> tuple[Belonging, ...]:
        """Somebody looks after those of the pool and its heads; nobody after those that make images."""
        pool = self.settings.pool.name
        whose = (
            (self.workers, "the pool (`updraft destroy` ends its machines)"),
            (self.heads, "somebody (it is a head: `updraft head terminate` ends it)"),
            (self.builders, ""),
        )
        return tuple(
            Belonging(
                cloud=self.cloud, kind=Kind.MACHINE, id=one.id, name=one.worker_class, pool=pool,
                identity=one.identity, used_by=user, made_at=one.launched_at,
            )
            for cloud, user in whose
            for one in _alive(cloud.machines)
        )  # fmt: skip

    def images(self) -> tuple[Belonging, ...]:
        """With the machines that boot them, this pool's of any kind."""
        imaging = self.workers.images
        booting = {one.image: one.id for cloud in self._each for one in _alive(cloud.machines)}
        return tuple(self._image(one, booting) for one in (() if imaging is None else imaging.all()))

    def groups(self) -> tuple[Belonging, ...]:
        """Security groups by the names that they have; where machines of their role are, they are in use."""
        by_role = {"head": self.heads, "worker": self.workers}
        found = self.network.ours() if self.network is not None else ()
        return tuple(self._group(one, by_role.get(one.tags.get(TAG_ROLE, ""), self.workers)) for one in found)

    def key_pairs(self) -> tuple[Belonging, ...]:
        """Those that the ledger notes, where they are still there."""
        catalogue = self.workers.catalogue
        there = frozenset(() if catalogue is None else catalogue.key_pairs())
        return tuple(Belonging(self.cloud, Kind.KEY_PAIR, one, one) for one in sorted(self.keys & there))

    def further(self, kind: Kind) -> tuple[Belonging, ...]:
        """What there is beside these; that of heads and image builds is the pool's, by names of their own."""
        pool = self.settings.pool.name
        each = (cloud.leavings for cloud in self._each)
        return tuple(replace(one, pool=pool) for some in each if some is not None for one in some.of(kind))

    # ------------------------------------------------------------------------------------------- inside

    @property
    def _each(self) -> Sequence[Cloud]:
        return (self.workers, self.heads, self.builders)

    def _image(self, one: MachineImage, booting: Mapping[str, str]) -> Belonging:
        machine = booting.get(one.info.id) or booting.get(one.info.name) or ""
        offered = [
            name
            for name, worker in self.settings.classes.items()
            if chosen(one.info.id, worker.images_allowed) or chosen(one.info.name, worker.images_allowed)
        ]
        user = f"machine {machine}" if machine else f"images_allowed of class {offered[0]}" if offered else ""
        return Belonging(
            cloud=self.cloud, kind=Kind.IMAGE, id=one.info.id, name=one.info.name, pool=one.pool,
            identity=one.tags.get(TAG_IDENTITY, ""), used_by=user, made_at=one.info.created,
            unfinished=one.state == "making", broken=one.state == "failed",
        )  # fmt: skip

    def _group(self, one: Group, cloud: Cloud) -> Belonging:
        users = [machine.id for machine in _alive(cloud.machines)]
        return Belonging(
            cloud=self.cloud, kind=Kind.GROUP, id=one.id, name=one.name, pool=one.pool,
            identity=one.tags.get(TAG_IDENTITY, ""), used_by=f"machine {users[0]}" if users else "",
        )  # fmt: skip


def _alive(machines: Machines) -> list[Instance]:
    return [one for one in machines.machines() if one.state not in _OVER]
