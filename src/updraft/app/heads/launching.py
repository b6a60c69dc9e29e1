"""How `head launch` goes about it: groups, machine, address, and all of it taken back when it fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from updraft.app import wiring
from updraft.app.clouds import network_of
from updraft.app.heads.places import address_of, heads_of, traits_of, usual_image
from updraft.app.heads.spec import HeadWish, head_told, left_behind
from updraft.bootstrap import compose
from updraft.clouds.heads import HeadPlace
from updraft.config.model import Settings
from updraft.core.model import Instance
from updraft.errors import ProblemFound, UsageError
from updraft.provision.heads.machines import HeadOrder, Heads, Patience, checked_head_name, fitting
from updraft.provision.heads.network import Done, Network, Side


@dataclass(frozen=True, slots=True)
class HeadRequest:
    """What is asked for beyond what the head is told."""

    name: str
    image: str
    flavor: str
    zone: str
    place: HeadPlace
    wait: float
    keep: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """What a launch would make: the groups' differences, the head that is there already, or the order."""

    sides: Sequence[Side]
    there: Instance | None
    order: HeadOrder


@dataclass(frozen=True, slots=True)
class Launched:
    """A head that is there, and how to log in; `failed` is why it never boots where it is kept all the same.

    `left` are sentences on what it doesn't have of the configuration.
    """

    machine: Instance
    address: str
    login: str
    booted: bool
    failed: str
    left: tuple[str, ...]


class Launching:
    """One launch of a head: what is asked of the cloud is here, and each step says what it does."""

    def __init__(
        self,
        settings: Settings,
        file: Path,
        cloud: str,
        wish: HeadRequest,
        told: HeadWish,
        patience: Patience,
    ) -> None:
        checked_head_name(wish.name)
        self._settings, self._cloud, self._wish, self._told = settings, cloud, wish, told
        self._patience, self._say = patience, patience.say
        self._layers = head_told(settings, file, told)
        found = network_of(settings, cloud)
        self._network: Network | None = None if isinstance(found, str) else found
        self._traits = traits_of(settings, cloud)
        self._traits.settings(settings.clouds[cloud].settings, wish.place)  # what can't be is said at once
        self._check_network()

    def planned(self) -> Planned:
        """What would be made."""
        there = heads_of(self._settings, self._cloud, self._wish.place).named(self._wish.name)
        order, network = self._order(), self._network
        sides = () if network is None else network.look(network.roles(head=True))
        return Planned(sides, there, order)

    def go(self) -> Launched:
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
                self._network.undo(done, self._say)
            raise
        address = address_of(self._settings, self._cloud, machine)
        login = self._traits.login(machine.id, address or "ADDRESS", self._told.user)
        return Launched(machine, address, login, booted, failed, tuple(left_behind(self._settings)))

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

    def _order(self) -> HeadOrder:
        wish, cloud = self._wish, self._settings.clouds[self._cloud]
        offer = fitting(
            wiring.make_cloud(self._settings, self._cloud, cloud).machines.offers(), wish.flavor, wish.zone
        )
        image = wish.image or usual_image(self._settings, self._cloud)
        return HeadOrder(wish.name, image, offer.flavor, offer.zone, compose(self._layers))

    def _ensure(self) -> Done | None:
        if self._network is None:
            return None
        roles = self._network.roles(head=True)
        # The site's own groups are the site's to change.
        theirs = [side for side in self._network.look(roles) if side.groups and not self._ours(side)]
        for side in theirs if theirs and theirs[0].role == "worker" else ():
            for rule in side.difference.missing:
                self._say(f"{side.groups[0].name}, which updraft didn't make, lacks: {rule}")
            roles = tuple(role for role in roles if role != side.role)
        return self._network.ensure(roles, close=False, foreign=False, say=self._say)

    def _ours(self, side: Side) -> bool:
        return all(group.pool == self._settings.pool.name for group in side.groups)

    def _made(self, order: HeadOrder) -> tuple[Instance, bool, str]:
        """The machine, whether it has booted, and why it never will where it is kept all the same."""
        heads = self._heads()
        with heads.launched(order) as made:
            self._say(f"machine {made.id} ({order.flavor}) boots {order.image}")
            try:
                return made, self._waited(heads, made.id), ""
            except ProblemFound as error:
                if not self._wish.keep:
                    raise
                return made, False, str(error)

    def _there(self, found: Instance) -> tuple[Instance, bool]:
        self._say(f"head {self._wish.name} is there already: {found.id}")
        return found, self._waited(self._heads(), found.id)

    def _waited(self, heads: Heads, machine: str) -> bool:
        if not self._wish.wait:
            return False
        with self._patience.shown("waiting until the head has booted"):
            return heads.up(machine, self._wish.wait)

    def _heads(self) -> Heads:
        """With the id of the group, which is there by now."""
        group = ""
        if self._network is not None:
            (side, *_) = self._network.look(("head",))
            group = side.groups[0].id
        return heads_of(self._settings, self._cloud, replace(self._wish.place, group=group), self._patience)
