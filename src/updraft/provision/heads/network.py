"""The security groups of one pool in one cloud: what they are to let through, how they differ, the change."""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.networking import TAG_ROLE, Group, Networking, Rule, group_source
from updraft.clouds.rules import Difference, Parties, Wanted, change, difference, for_head, for_workers
from updraft.config.model import Settings
from updraft.errors import CloudError, UsageError

Role = Literal["head", "worker"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """The groups of one cloud's heads or workers: `groups` is empty where there is none yet.

    `name` is the one that is looked for, or made. `notes` are sentences on what can't be told, or isn't used.
    """

    cloud: str
    role: Role
    name: str
    groups: tuple[Group, ...]
    wanted: Wanted
    notes: tuple[str, ...] = ()

    @property
    def rules(self) -> frozenset[Rule]:
        """What all of them let through together: a machine has them all."""
        return frozenset(rule for group in self.groups for rule in group.rules)

    @property
    def difference(self) -> Difference:
        """What is missing, and what is too open."""
        return difference(self.wanted, self.rules)

    @property
    def amiss(self) -> bool:
        """Whether anything is to be done, or to be said."""
        return bool(not self.groups or self.difference or self.notes)


@dataclass(slots=True)
class Done:
    """A change as far as it got: which groups are new, and the rules by the id of their group."""

    made: list[Group] = field(default_factory=list)
    added: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    removed: dict[str, tuple[Rule, ...]] = field(default_factory=dict)


def head_group(pool: str) -> str:
    """The name of the group of a pool's heads."""
    return f"{pool}-head"


class Network:
    """Looks at one cloud's groups, and changes them."""

    def __init__(self, settings: Settings, cloud: str, groups: Networking, identity: str = "") -> None:
        self._settings = settings
        self._cloud = cloud
        self._groups = groups
        self._labels = {TAG_POOL: settings.pool.name, **({TAG_IDENTITY: identity} if identity else {})}
        own = settings.clouds[cloud].settings.get("security_groups") or ()
        self._configured = (own,) if isinstance(own, str) else tuple(map(str, own))  # type: ignore[call-overload]
        self._workers = self._configured or (f"{settings.pool.name}-worker",)
        self._classes = [one for one in settings.classes.values() if cloud in settings.clouds_of(one)]

    def roles(self, *, head: bool) -> tuple[Role, ...]:
        """Whose groups there are to look at: workers' where a class may run here, and the head's.

        The head's where there is one, or `head` says that it is to be here.
        """
        there = head or self._groups.show(head_group(self._settings.pool.name)) is not None
        return (*(("head",) if there else ()), *(("worker",) if self._classes else ()))

    def look(self, roles: Sequence[Role]) -> tuple[Side, ...]:
        """How the groups of these roles stand. Raises CloudError."""
        name = head_group(self._settings.pool.name)
        head = self._groups.show(name)
        workers = {one: self._groups.show(one) for one in self._workers}
        coming = head is not None or "head" in roles
        parties = self._parties(_source(name, head) if coming else "", next(iter(workers.items())))
        found = []
        if "head" in roles:
            there = () if head is None else (head,)
            found.append(Side(self._cloud, "head", name, there, for_head(parties), self._unsaid()))
        if "worker" in roles:
            found.append(self._of_workers(parties, workers))
        return tuple(found)

    def ensure(self, roles: Sequence[Role], *, close: bool, foreign: bool, say: Say) -> Done:
        """Make what isn't there, add what is missing, and with `close` take out what is too open.

        Groups that this pool's updraft didn't make are changed only with `foreign`. When it fails, groups
        that it made are gone again, and rules that it added too; what can't be taken back is said.
        """
        before = self.look(roles)
        self.check(before, close=close, foreign=foreign)
        done = Done()
        try:
            for side in before:
                if not side.groups:
                    done.made.append(self._made(side, say))
            for side in self.look(roles):
                self._changed(side, done, close=close, say=say)
        except BaseException:
            self.undo(done, say)
            raise
        return done

    def check(self, sides: Sequence[Side], *, close: bool, foreign: bool) -> None:
        """Raises UsageError where a group that would be changed is somebody else's."""
        pool = self._settings.pool.name
        for side in sides:
            what = change(side.wanted, side.rules, close=close)
            target = side.groups[:1] if what.add else ()
            losing = [group for group in side.groups if group.rules & set(what.remove)]
            for group in () if foreign else (*target, *losing):
                if group.pool != pool:
                    raise UsageError(
                        f"the security group {group.name} ({group.id}) wasn't made by this pool's updraft; "
                        "say --force to change it all the same"
                    )

    def undo(self, done: Done, say: Say) -> None:
        """Take a change back, as far as the cloud lets us; what stays is said, and nothing is raised."""
        # What was closed is opened first: nobody is to be locked out on the way back.
        for group, rules in done.removed.items():
            with _said(say, f"rules taken out of the security group {group} aren't back"):
                self._groups.allow(group, rules)
        for group, rules in done.added.items():
            with _said(say, f"rules added to the security group {group} stay"):
                self._groups.revoke(group, rules)
        for one in done.made:
            with _said(say, f"the security group {one.name} ({one.id}) stays"):
                self._groups.remove(one.id)
                say(f"the security group {one.name} is removed again")

    def ours(self) -> tuple[Group, ...]:
        """The groups here that this pool's updraft made. Raises CloudError."""
        names = (head_group(self._settings.pool.name), *self._workers)
        found = {group.id: group for group in map(self._groups.show, names) if group is not None}
        return tuple(group for group in found.values() if group.pool == self._settings.pool.name)

    def remove(self, say: Say) -> None:
        """Remove `ours`. Raises CloudError where one is in use: those that stay have all their rules then.

        Only the rules by which they name each other are taken out before, since a cloud keeps what is named.
        """
        ours = self.ours()
        left = {group.id: group for group in ours}
        taken: dict[str, list[Rule]] = {}
        try:
            for group in ours:
                others = {group_source(one.id) for one in ours if one is not group}
                naming = [rule for rule in group.rules if rule.source in others]
                if naming:
                    taken[group.id] = naming
                    self._groups.revoke(group.id, naming)
            for group in ours:
                self._groups.remove(group.id)
                del left[group.id]
                say(f"the security group {group.name} is removed")
        except BaseException:
            self._put_back(taken, left, say)
            raise

    def remove_one(self, group: str, going: Collection[str]) -> None:
        """Remove one of `ours`. Raises CloudError where it is in use: all rules are there then.

        Rules of others that are `going` too are taken out before where they name it; no one else's are.
        """
        others = [one for one in self.ours() if one.id in going and one.id != group]
        naming = {
            one.id: [rule for rule in one.rules if rule.source == group_source(group)] for one in others
        }
        try:
            for one, rules in naming.items():
                if rules:
                    self._groups.revoke(one, rules)
            self._groups.remove(group)
        except BaseException:
            for one, rules in naming.items():
                with contextlib.suppress(CloudError):
                    self._groups.allow(one, rules)
            raise

    def _put_back(self, taken: Mapping[str, Sequence[Rule]], left: Mapping[str, Group], say: Say) -> None:
        sources = {group_source(one) for one in left}
        for group in left.values():
            rules = [rule for rule in taken.get(group.id, ()) if rule.source in sources]
            names = ", ".join(map(str, rules))
            with _said(say, f"taken out of the security group {group.name}, and not back: {names}"):
                if rules:
                    self._groups.allow(group.id, rules)

    # ------------------------------------------------------------------------------------------- inside

    def _parties(self, head: str, worker: tuple[str, Group | None]) -> Parties:
        said = self._settings.network
        workers = (_source(*worker),) if self._classes else ()
        heads = (*((head,) if head else ()), *said.head)
        return Parties(said.admins, (*workers, *said.workers), heads, ipv6=self._ipv6)

    @functools.cached_property
    def _ipv6(self) -> bool:
        """Whether machines here or the head have IPv6 (only such an address has brackets)."""
        return self._settings.pool.collector.startswith("[") or self._groups.ipv6()

    def _of_workers(self, parties: Parties, workers: Mapping[str, Group | None]) -> Side:
        entered = any(one.reach != "ccb" for one in self._classes)
        there = tuple(group for group in workers.values() if group is not None)
        notes = []
        if not self._configured:
            notes.append(
                f"workers are launched in the cloud's default group: write security_groups = [\""
                f'{there[0].id if there else self._workers[0]}"] into [clouds.{self._cloud}]'
            )
        notes += [
            f"the cloud has no security group {name}"
            for name, group in workers.items()
            if there and not group
        ]
        if entered and not parties.head:
            notes.append("nothing says where the head is: write [network] head")
        wanted = for_workers(parties, entered=entered)
        return Side(self._cloud, "worker", self._workers[0], there, wanted, tuple(notes))

    def _unsaid(self) -> tuple[str, ...]:
        if self._settings.network.admins:
            return ()
        return ("nothing says from where people log in: write [network] admins",)

    def _made(self, side: Side, say: Say) -> Group:
        made = self._groups.make(side.name, {**self._labels, TAG_ROLE: side.role})
        say(f"made the security group {made.name} ({made.id})")
        return made

    def _changed(self, side: Side, done: Done, *, close: bool, say: Say) -> None:
        what = change(side.wanted, side.rules, close=close)
        if what.add:
            target = side.groups[0]
            done.added[target.id] = what.add
            self._groups.allow(target.id, what.add)
            say(f"{target.name}: added {', '.join(map(str, what.add))}")
        for group in side.groups:
            gone = tuple(sorted(group.rules & set(what.remove), key=str))
            if gone:
                done.removed[group.id] = gone
                self._groups.revoke(group.id, gone)
                say(f"{group.name}: took out {', '.join(map(str, gone))}")


def _source(name: str, group: Group | None) -> str:
    """The group as a source; one that isn't there yet goes by its name until it is."""
    return group_source(name if group is None else group.id)


@contextlib.contextmanager
def _said(say: Say, what: str) -> Iterator[None]:
    try:
        yield
    except CloudError as error:
        say(f"{what}: {error}")
