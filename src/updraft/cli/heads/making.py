"""How `head launch` goes about it: groups, machine, address, and all of it taken back when it fails."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.cli.heads.spec import HeadWish, head_told, left_behind
from updraft.cli.output import waiting
from updraft.cli.setup.network import network_of, say, say_sides
from updraft.errors import CloudError, ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.clouds.base import Driver
    from updraft.clouds.heads import HeadPlace, HeadTraits
    from updraft.config.model import Settings
    from updraft.core.model import Instance
    from updraft.provision.heads.machines import HeadOrder, Heads, Patience
    from updraft.provision.heads.network import Done, Network, Side


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for beyond what the head is told."""

    name: str
    image: str
    flavor: str
    zone: str
    place: "HeadPlace"
    wait: float
    keep: bool


class Launching:
    """One launch of a head: what is asked of the cloud is here, and each step says what it does."""

    def __init__(self, settings: "Settings", file: Path, cloud: str, wish: Wish, told: HeadWish) -> None:
        self._settings, self._cloud, self._wish, self._told = settings, cloud, wish, told
        self._layers = head_told(settings, file, told)
        found = network_of(settings, cloud)
        self._network: Network | None = None if isinstance(found, str) else found
        self._traits = _traits(settings, cloud)
        self._traits.settings(settings.clouds[cloud].settings, wish.place)  # what can't be is said at once
        self._check_network()

    def show(self) -> None:
        """What would be made."""
        there = heads_of(self._settings, self._cloud, self._wish.place).named(self._wish.name)
        order = self._order()
        if self._network is not None:
            say_sides(self._network.look(self._network.roles(head=True)))
        if there is not None:
            click.echo(f"head {self._wish.name} is there already: {there.id}; nothing would be launched")
            return
        click.echo(
            f"head {order.name}: {order.flavor} in {order.zone or 'any zone'} of cloud {self._cloud}, image "
            f"{order.image}, {len(order.user_data)} bytes of user-data"
        )

    def go(self) -> None:
        """Make it, or find it again."""
        there = heads_of(self._settings, self._cloud, self._wish.place).named(self._wish.name)
        order = None if there is not None else self._order()
        done = self._ensure()
        failed = ""
        try:
            if there is not None:
                machine, booted = self._there(there)
            else:
                assert order is not None  # noqa: S101  # it is made where there is no head
                machine, booted, failed = self._made(order)
        except BaseException:
            if done is not None and self._network is not None and there is None:
                self._network.undo(done, say)
            raise
        self._tell(machine, booted=booted)
        if failed:
            raise ProblemFound(f"{failed}; it is kept")

    # ------------------------------------------------------------------------------------------- steps

    def _check_network(self) -> None:
        if self._network is None:
            return
        if not self._settings.network.admins:
            raise UsageError(
                'say from where you log in, in updraft.toml: [network] admins = ["192.0.2.0/24"]'
            )
        if not self._settings.clouds[self._cloud].settings.get("security_groups"):
            raise UsageError(
                f"[clouds.{self._cloud}] has no security_groups for its workers, and the head must know whom "
                f"to let in: `updraft network ensure {self._cloud} --role worker` makes a group"
            )

    def _order(self) -> "HeadOrder":
        from updraft.app.wiring import make_driver
        from updraft.bootstrap import compose
        from updraft.provision.heads.machines import HeadOrder, fitting

        wish, cloud = self._wish, self._settings.clouds[self._cloud]
        offer = fitting(make_driver(self._settings, self._cloud, cloud).offers(), wish.flavor, wish.zone)
        image = wish.image or usual_image(self._settings, self._cloud)
        return HeadOrder(wish.name, image, offer.flavor, offer.zone, compose(self._layers))

    def _ensure(self) -> "Done | None":
        if self._network is None:
            return None
        roles = self._network.roles(head=True)
        # The site's own groups are the site's to change.
        theirs = [side for side in self._network.look(roles) if side.groups and not self._ours(side)]
        for side in theirs if theirs and theirs[0].role == "worker" else ():
            for rule in side.difference.missing:
                say(f"{side.groups[0].name}, which updraft didn't make, lacks: {rule}")
            roles = tuple(role for role in roles if role != side.role)
        return self._network.ensure(roles, close=False, foreign=False, say=say)

    def _ours(self, side: "Side") -> bool:
        return all(group.pool == self._settings.pool.name for group in side.groups)

    def _made(self, order: "HeadOrder") -> "tuple[Instance, bool, str]":
        """The machine, whether it has booted, and why it never will where it is kept all the same."""
        heads = self._heads()
        with heads.launched(order) as made:
            say(f"machine {made.id} ({order.flavor}) boots {order.image}")
            try:
                return made, self._waited(heads, made.id), ""
            except ProblemFound as error:
                if not self._wish.keep:
                    raise
                return made, False, str(error)

    def _there(self, found: "Instance") -> "tuple[Instance, bool]":
        say(f"head {self._wish.name} is there already: {found.id}")
        return found, self._waited(self._heads(), found.id)

    def _waited(self, heads: "Heads", machine: str) -> bool:
        if not self._wish.wait:
            return False
        with waiting("waiting until the head has booted"):
            return heads.up(machine, self._wish.wait)

    def _heads(self) -> "Heads":
        """With the id of the group, which is there by now."""
        group = ""
        if self._network is not None:
            (side, *_) = self._network.look(("head",))
            group = side.groups[0].id
        return heads_of(self._settings, self._cloud, replace(self._wish.place, group=group))

    def _tell(self, machine: "Instance", *, booted: bool) -> None:
        address = address_of(self._settings, self._cloud, machine)
        where = f" at {address}" if address else ", which has no address yet: see `updraft head list`"
        click.echo(f"head {self._wish.name} is machine {machine.id}{where}")
        login = self._traits.login(machine.id, address or "ADDRESS", self._told.user)
        click.echo(f"  {login}")
        if booted:
            click.echo(
                "its pool answers: as that user, condor_submit test.sub; as root there, updraft status"
            )
        else:
            click.echo(
                "it still boots: there, `cloud-init status --wait` and `condor_status -any` say how it is"
            )
        for line in left_behind(self._settings):
            say(line)


def usual_image(settings: "Settings", cloud: str) -> str:
    """The image of the first class that is for this cloud. UsageError where there is none."""
    for worker in settings.classes.values():
        if cloud in settings.clouds_of(worker):
            return settings.images_of(worker)[cloud]
    raise UsageError(f"no class of updraft.toml names an image in cloud {cloud}; say one with --image")


def _traits(settings: "Settings", cloud: str) -> "HeadTraits":
    from importlib import import_module

    from updraft.clouds.heads import PlainHeads
    from updraft.config.drivers import driver_entry

    entry = driver_entry(settings.clouds[cloud].driver)
    found: HeadTraits = PlainHeads()
    if entry is not None:
        found = getattr(import_module(entry.module), "HEADS", found)
    return found


def heads_of(settings: "Settings", cloud: str, place: "HeadPlace") -> "Heads":
    """The heads of this pool there, with a driver that launches as heads need it."""
    from updraft.provision.heads.machines import Heads

    return Heads(_driver(settings, cloud, place), patience())


def patience() -> "Patience":
    """Real time, and a line on stderr for each step."""
    from updraft.provision.heads.machines import Patience

    return Patience(say=say)


def _driver(settings: "Settings", cloud: str, place: "HeadPlace") -> "Driver":
    from updraft.app.wiring import make_driver
    from updraft.config.model import Cloud
    from updraft.provision.heads.machines import heads_pool

    plain = settings.clouds[cloud]
    own: Mapping[str, object] = _traits(settings, cloud).settings(plain.settings, place)
    given = Cloud.model_validate({"driver": plain.driver, **own})
    pool = settings.pool.model_copy(update={"name": heads_pool(settings.pool.name)})
    return make_driver(settings.model_copy(update={"pool": pool}), cloud, given)


def address_of(settings: "Settings", cloud: str, machine: "Instance") -> str:
    from updraft.app.wiring import make_driver
    from updraft.clouds.networking import networking_of

    groups = networking_of(make_driver(settings, cloud, settings.clouds[cloud]))
    try:
        return machine.address if groups is None else groups.address(machine.id)
    except CloudError:
        return ""
