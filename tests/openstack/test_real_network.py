"""Security groups of a real Neutron come back as they were asked for, and go."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.clouds.network_conformance import KINDS
from tests.rigs.clouds.realcloud import RealHarness
from updraft.clouds.base import TAG_POOL
from updraft.clouds.networking import TAG_ROLE, Group, Networking, Rule, group_source, networking_of
from updraft.clouds.rules import Parties, change, difference, for_head, for_workers
from updraft.errors import BadRequest, CloudError

pytestmark = pytest.mark.openstack


@pytest.fixture
def groups(harness: RealHarness) -> Networking:
    found = networking_of(harness.driver("conformance"))
    assert found is not None
    return found


@pytest.fixture
def made(harness: RealHarness, groups: Networking) -> Iterator[dict[str, Group]]:
    """A head's group and its workers', of this run alone."""
    pool = harness.pool("conformance")
    found = {
        role: groups.make(f"{pool}-{role}", {TAG_POOL: pool, TAG_ROLE: role}) for role in ("head", "worker")
    }
    yield found
    for one in found.values():
        shown = groups.show(one.id)
        groups.revoke(one.id, [] if shown is None else [r for r in shown.rules if r.direction == "in"])
    for one in found.values():
        groups.remove(one.id)
        groups.remove(one.id)
        assert groups.show(one.id) is None


def test_rules_of_every_kind_come_back_as_they_were(groups: Networking, made: dict[str, Group]) -> None:
    head = made["head"]
    assert {rule.direction for rule in head.rules} == {"out"}
    workers = group_source(made["worker"].id)
    asked = {*KINDS, *(Rule("in", "tcp", (9618, 9618), workers, family) for family in (4, 6))}
    groups.allow(head.id, asked)
    groups.allow(head.id, asked)
    found = groups.show(head.name)
    assert found is not None
    assert found.rules - head.rules == asked
    assert found.tags == head.tags
    groups.revoke(head.id, asked)
    assert groups.show(head.id) == head


def test_what_is_missing_is_added_and_what_is_too_open_closed(
    groups: Networking, made: dict[str, Group]
) -> None:
    parties = Parties(
        ("203.0.113.0/24",), (group_source(made["worker"].id),), (group_source(made["head"].id),), ipv6=True
    )
    groups.allow(made["head"].id, [Rule("in", "tcp", (1, 65000), "0.0.0.0/0")])
    for role, wanted in (("head", for_head(parties)), ("worker", for_workers(parties, entered=True))):
        seen = groups.show(made[role].id)
        assert seen is not None
        what = change(wanted, seen.rules, close=True)
        groups.allow(seen.id, what.add)
        groups.revoke(seen.id, what.remove)
        after = groups.show(seen.id)
        assert after is not None
        assert not difference(wanted, after.rules)


def test_a_group_that_is_not_there(groups: Networking) -> None:
    assert groups.show("nothing-of-this-name") is None
    with contextlib.suppress(CloudError):  # whatever it says, it is one of the house's errors
        groups.revoke("nothing-of-this-name", KINDS)
    with pytest.raises(BadRequest):
        groups.allow("00000000-0000-4000-8000-000000000000", KINDS[:1])
