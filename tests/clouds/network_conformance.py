"""What every driver that handles security groups must do; a harness is that of `conformance`."""

import pytest

from tests.rigs.clouds.harness import Harness, request
from updraft.clouds.base import TAG_POOL, Machines
from updraft.clouds.cloud import Cloud
from updraft.clouds.networking import BOTH, TAG_ROLE, Networking, Rule, group_source
from updraft.clouds.rules import Parties, change, covers, difference, for_head, for_workers
from updraft.errors import BadRequest, CloudUnavailable

TAGS = {TAG_POOL: "conformance", TAG_ROLE: "head"}
LOGIN = Rule("in", "tcp", (22, 22), "203.0.113.0/24")
KINDS = (
    LOGIN,
    Rule("in", "tcp", (9618, 9618), "0.0.0.0/0"),
    Rule("in", "tcp", (41000, 42000), "198.51.100.7/32"),
    Rule("in", "udp", None, "192.0.2.0/24"),
    Rule("in", "tcp", (22, 22), "2001:db8::/32"),
    Rule("in", "icmp", None, "0.0.0.0/0"),
    Rule("in", "icmp", (8, -1), "192.0.2.0/24"),
    Rule("in", "icmp", (3, 4), "0.0.0.0/0"),
    Rule("in", "icmpv6", (2, 0), "::/0"),
    Rule("in", "icmpv6", None, "2001:db8::/32"),
    Rule("in", "any", None, "192.0.2.0/24"),
    Rule("out", "tcp", (443, 443), "192.0.2.0/24"),
)


class NetworkConformance:
    """The suite. Each test stands for one sentence of the contract in `updraft/clouds/networking.py`."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("a driver's test class brings its harness")

    @pytest.fixture
    def cloud(self, harness: Harness) -> Cloud:
        return harness.made("conformance")

    @pytest.fixture
    def driver(self, cloud: Cloud) -> Machines:
        return cloud.machines

    @pytest.fixture
    def groups(self, cloud: Cloud) -> Networking:
        assert cloud.network is not None
        return cloud.network

    def test_a_new_group_lets_everything_out_and_nothing_in(self, groups: Networking) -> None:
        made = groups.make("conformance-head", TAGS)
        assert (made.name, made.pool, made.tags[TAG_ROLE]) == ("conformance-head", "conformance", "head")
        assert {rule.direction for rule in made.rules} == {"out"}
        assert Rule("out", "any", None, "0.0.0.0/0") in made.rules
        assert groups.show("conformance-head") == groups.show(made.id) == made

    def test_a_name_is_given_once(self, groups: Networking) -> None:
        groups.make("conformance-head", TAGS)
        with pytest.raises(BadRequest):
            groups.make("conformance-head", TAGS)

    def test_what_is_not_there(self, groups: Networking) -> None:
        assert groups.show("nothing-of-this-name") is None
        assert groups.show("sg-00000000000000000") is None
        groups.remove(groups.make("soon-gone", TAGS).id)
        assert groups.show("soon-gone") is None

    @pytest.mark.parametrize("rule", KINDS, ids=str)
    def test_a_rule_comes_back_as_it_was_and_goes(self, groups: Networking, rule: Rule) -> None:
        made = groups.make("one-rule", TAGS)
        groups.allow(made.id, [rule])
        found = groups.show(made.id)
        assert found is not None
        assert found.rules - made.rules == {rule}
        groups.revoke(made.id, [rule])
        assert groups.show(made.id) == made

    def test_the_machines_of_a_group_are_a_source(self, groups: Networking) -> None:
        workers = groups.make("conformance-worker", TAGS)
        head = groups.make("conformance-head", TAGS)
        for family in (4, 6):
            rule = Rule("in", "tcp", (9618, 9618), group_source(workers.id), family)
            groups.allow(head.id, [rule])
            found = groups.show(head.id)
            assert found is not None
            assert any(covers(one, rule) for one in found.rules)

    def test_rules_of_a_group_for_both_families_come_and_go(self, groups: Networking) -> None:
        workers, head = groups.make("conformance-worker", TAGS), groups.make("conformance-head", TAGS)
        rules = [Rule("in", "tcp", (9618, 9618), group_source(workers.id), family) for family in (4, 6, BOTH)]
        for asked in (rules[:2], rules[2:], rules):
            groups.allow(head.id, asked)
            found = groups.show(head.id)
            assert found is not None
            assert all(any(covers(one, rule) for one in found.rules) for rule in rules[:2])
            groups.revoke(head.id, asked)
            assert groups.show(head.id) == head

    def test_machines_have_no_ipv6_where_nothing_gives_it(self, groups: Networking) -> None:
        assert groups.ipv6() is False

    def test_twice_is_once_and_does_the_rest(self, groups: Networking) -> None:
        made = groups.make("twice", TAGS)
        groups.allow(made.id, KINDS[:2])
        groups.allow(made.id, KINDS[:4])
        found = groups.show(made.id)
        assert found is not None
        assert set(KINDS[:4]) <= found.rules
        groups.revoke(made.id, KINDS[:2])
        groups.revoke(made.id, KINDS[:4])
        assert groups.show(made.id) == made

    def test_a_group_that_is_gone_is_removed_with_success(self, groups: Networking) -> None:
        made = groups.make("gone", TAGS)
        groups.remove(made.id)
        groups.remove(made.id)
        assert groups.show(made.id) is None

    def test_groups_that_named_each_other_can_be_removed(self, groups: Networking) -> None:
        head, workers = groups.make("n-head", TAGS), groups.make("n-worker", TAGS)
        rules = {
            one.id: Rule("in", "tcp", (9618, 9618), group_source(other.id))
            for one, other in ((head, workers), (workers, head))
        }
        for group, rule in rules.items():
            groups.allow(group, [rule, LOGIN])
        for group, rule in rules.items():
            groups.revoke(group, [rule])
        for group in rules:
            groups.remove(group)
        assert [groups.show(group) for group in rules] == [None, None]

    def test_a_group_that_is_not_there_takes_no_rule(self, groups: Networking) -> None:
        made = groups.make("gone", TAGS)
        groups.remove(made.id)
        with pytest.raises(BadRequest):
            groups.allow(made.id, [LOGIN])

    @pytest.mark.parametrize("ipv6", [False, True])
    def test_what_is_missing_is_added_and_what_is_too_open_closed(
        self, groups: Networking, ipv6: bool
    ) -> None:
        head, workers = groups.make("c-head", TAGS), groups.make("c-worker", TAGS)
        parties = Parties(("203.0.113.0/24",), (group_source(workers.id),), (group_source(head.id),), ipv6)
        groups.allow(head.id, [Rule("in", "tcp", (1, 65000), "0.0.0.0/0")])
        for group, wanted in ((head, for_head(parties)), (workers, for_workers(parties, entered=True))):
            seen = groups.show(group.id)
            assert seen is not None
            what = change(wanted, seen.rules, close=True)
            groups.allow(group.id, what.add)
            groups.revoke(group.id, what.remove)
            after = groups.show(group.id)
            assert after is not None
            assert not difference(wanted, after.rules)

    def test_a_machine_that_runs_has_an_address(
        self, harness: Harness, driver: Machines, groups: Networking
    ) -> None:
        (made,) = driver.launch(request(harness))
        harness.wait(lambda: any(one.state == "running" for one in driver.machines()), "it runs")
        assert groups.address(made.id)

    def test_a_cloud_that_is_away_is_unavailable(self, harness: Harness, groups: Networking) -> None:
        failing = harness.failing(CloudUnavailable)
        if failing is None:
            pytest.skip("can't be arranged")
        with failing, pytest.raises(CloudUnavailable):
            groups.make("never", TAGS)
        assert groups.show("never") is None
