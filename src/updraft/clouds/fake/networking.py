"""Security groups of the fake cloud: values in memory, with the manners of a real one."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from updraft.clouds.fake.site import Site
from updraft.clouds.networking import ANY, EVERYWHERE, Group, Rule, group_source
from updraft.errors import BadRequest

Calls = Callable[[str, int], AbstractContextManager[None]]


class FakeNetworking:
    """Keeps the contract of `updraft.clouds.networking.Networking` on a `Site`."""

    def __init__(self, site: Site, calls: Calls) -> None:
        self._site = site
        self._call = calls

    def show(self, wanted: str) -> Group | None:
        """By id or name."""
        with self._call("show_group", 0):
            return next((one for one in self._site.groups.values() if wanted in (one.id, one.name)), None)

    def make(self, name: str, tags: Mapping[str, str]) -> Group:
        """With a rule by which everything goes out."""
        with self._call("make_group", 1):
            if any(one.name == name for one in self._site.groups.values()):
                raise BadRequest(f"{self._site.name}: there is a security group {name} already")
            out = frozenset({Rule("out", ANY, None, EVERYWHERE[0])})
            made = Group(f"{self._site.name}-group-{next(self._site.group_numbers)}", name, out, dict(tags))
            self._site.groups[made.id] = made
            return made

    def allow(self, group: str, rules: Iterable[Rule]) -> None:
        """All or none."""
        with self._call("allow", 1):
            found = self._found(group)
            self._site.groups[group] = replace(found, rules=found.rules | frozenset(rules))

    def revoke(self, group: str, rules: Iterable[Rule]) -> None:
        """All or none."""
        with self._call("revoke", 1):
            found = self._found(group)
            self._site.groups[group] = replace(found, rules=found.rules - frozenset(rules))

    def remove(self, group: str) -> None:
        """Refused while another group's rule names it."""
        with self._call("remove_group", 1):
            others = (one for one in self._site.groups.values() if one.id != group)
            if any(rule.source == group_source(group) for one in others for rule in one.rules):
                raise BadRequest(f"{self._site.name}: the security group {group} is in use")
            self._site.groups.pop(group, None)

    def ipv6(self) -> bool:
        """As the site says."""
        return self._site.ipv6

    def address(self, machine: str) -> str:
        """The machine's only one."""
        found = self._site.instances.get(machine)
        return "" if found is None else found.address

    def _found(self, group: str) -> Group:
        if group not in self._site.groups:
            raise BadRequest(f"{self._site.name}: there is no security group {group}")
        return self._site.groups[group]
