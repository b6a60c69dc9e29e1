"""What is missing and what is too open, as values: cases that people meet, and what always holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.clouds.networking import BOTH, Group, Rule
from updraft.clouds.rules import (
    Parties,
    Wanted,
    change,
    covers,
    difference,
    for_head,
    for_workers,
    network,
)

OUT = Rule("out", "any", None, "0.0.0.0/0")
TOO_BIG = Rule("in", "icmp", (3, 4), "0.0.0.0/0")
HERE, WORLD, WORLD6 = "203.0.113.0/24", "0.0.0.0/0", "::/0"
OUT6 = Rule("out", "any", None, WORLD6)
TOO_BIG6 = Rule("in", "icmpv6", (2, 0), WORLD6)
PARTIES = Parties((HERE,), ("group:w", "198.51.100.0/24"), ("group:h",))
# As the guides of earlier systems have it for the master, and for its workers.
ECM_HEAD = (
    OUT,
    Rule("out", "any", None, "::/0"),
    Rule("in", "icmp", None, WORLD),
    Rule("in", "tcp", (22, 22), WORLD),
    Rule("in", "tcp", (9618, 9618), WORLD),
    Rule("in", "tcp", (41000, 42000), WORLD),
)
ECM_WORKER = (OUT, Rule("in", "any", None, "group:h"))


def tcp(port: int, source: str, family: int = 4) -> Rule:
    return Rule("in", "tcp", (port, port), source, family)


def test_a_head_is_open_for_logins_workers_and_nothing_else() -> None:
    assert set(for_head(PARTIES).needed) == {
        tcp(22, HERE), tcp(9618, "group:w"), tcp(9618, "198.51.100.0/24"), TOO_BIG, OUT,
    }  # fmt: skip


def test_workers_are_open_for_their_head_and_only_where_it_connects_to_them() -> None:
    assert set(for_workers(PARTIES, entered=True).needed) == {tcp(9618, "group:h"), TOO_BIG, OUT}
    assert set(for_workers(PARTIES, entered=False).needed) == {TOO_BIG, OUT}


def test_with_ipv6_groups_are_let_in_by_both_and_both_kinds_of_too_big() -> None:
    both = replace(PARTIES, ipv6=True)
    assert set(for_head(both).needed) - set(for_head(PARTIES).needed) == {
        tcp(9618, "group:w", 6), TOO_BIG6, OUT6,
    }  # fmt: skip
    assert set(for_workers(both, entered=True).needed) - set(for_workers(PARTIES, entered=True).needed) == {
        tcp(9618, "group:h", 6), TOO_BIG6, OUT6,
    }  # fmt: skip
    assert tcp(9618, "group:h", 6) not in for_workers(both, entered=False).needed


@pytest.mark.parametrize("who", ["admins", "workers", "head"])
def test_a_network_of_ipv6_says_that_there_is_ipv6(who: str) -> None:
    said = replace(PARTIES, **{who: (*getattr(PARTIES, who), "2001:db8::/32")})
    assert TOO_BIG6 in for_head(said).needed
    assert TOO_BIG6 in for_workers(said, entered=False).needed


def test_the_same_machines_by_ipv6_are_not_more_than_is_needed() -> None:
    for family in (6, BOTH):
        there = (*for_head(PARTIES).needed, tcp(9618, "group:w", family))
        assert not difference(for_head(PARTIES), there)
    there = (*for_head(PARTIES).needed, tcp(22, "group:w", 6))
    assert difference(for_head(PARTIES), there).open == (tcp(22, "group:w", 6),)


def test_a_rule_for_ipv6_is_none_for_ipv4() -> None:
    there = (tcp(9618, "group:w", 6), *(one for one in for_head(PARTIES).needed if one.source != "group:w"))
    assert difference(for_head(PARTIES), there).missing == (tcp(9618, "group:w"),)


def test_an_empty_group_lacks_all_of_it_and_a_right_one_nothing() -> None:
    wanted = for_head(PARTIES)
    assert set(difference(wanted, ()).missing) == set(wanted.needed)
    assert not difference(wanted, wanted.needed)


def test_what_earlier_guides_opened_does_and_is_too_open() -> None:
    found = difference(for_head(PARTIES), ECM_HEAD)
    assert found.missing == ()
    assert set(found.open) == set(ECM_HEAD[2:])
    workers = difference(for_workers(PARTIES, entered=True), ECM_WORKER)
    assert workers.missing == (TOO_BIG,)
    assert workers.open == (ECM_WORKER[1],)


def test_closing_puts_the_narrow_rule_where_the_wide_one_was() -> None:
    what = change(for_head(PARTIES), ECM_HEAD, close=True)
    assert set(what.remove) == set(ECM_HEAD[2:])
    assert set(what.add) == set(for_head(PARTIES).needed) - {OUT}
    assert change(for_head(PARTIES), ECM_HEAD, close=False).add == ()


def test_without_a_word_on_logins_any_network_does_but_everywhere() -> None:
    wanted = for_head(Parties((), ("group:w",)))
    there = (*wanted.needed, tcp(22, "192.0.2.7/32"), tcp(22, WORLD), tcp(22, "::/0"))
    assert set(difference(wanted, there).open) == {tcp(22, WORLD), tcp(22, "::/0")}


def test_admins_may_log_in_to_workers_and_need_not() -> None:
    wanted = for_workers(PARTIES, entered=False)
    assert not difference(wanted, (*wanted.needed, tcp(22, "203.0.113.9/32"), tcp(22, "group:h")))
    assert difference(wanted, (*wanted.needed, tcp(22, "192.0.2.0/24"))).open == (tcp(22, "192.0.2.0/24"),)


@pytest.mark.parametrize(
    ("wide", "narrow", "does"),
    [
        (Rule("in", "any", None, WORLD), tcp(22, HERE), True),
        (tcp(22, WORLD), tcp(22, "group:x"), True),
        (tcp(22, "::/0"), tcp(22, HERE), False),
        (tcp(22, "::/0"), tcp(22, "group:x"), False),
        (tcp(22, "::/0"), tcp(22, "group:x", 6), True),
        (tcp(22, WORLD), tcp(22, "group:x", 6), False),
        (tcp(22, WORLD), tcp(22, "group:x", BOTH), False),
        (tcp(22, "group:x"), tcp(22, "group:x", 6), False),
        (tcp(22, "group:x", BOTH), tcp(22, "group:x", 6), True),
        (tcp(22, "group:x", BOTH), tcp(22, "group:x"), True),
        (tcp(22, "group:x"), tcp(22, "group:x", BOTH), False),
        (Rule("in", "icmpv6", (2, -1), WORLD6), TOO_BIG6, True),
        (Rule("in", "icmpv6", None, WORLD), TOO_BIG6, False),
        (tcp(22, HERE), tcp(22, "group:x"), False),
        (tcp(22, "group:x"), tcp(22, "group:x"), True),
        (Rule("in", "tcp", (20, 30), HERE), tcp(22, "203.0.113.7/32"), True),
        (Rule("in", "tcp", (20, 21), HERE), tcp(22, HERE), False),
        (Rule("in", "udp", None, HERE), tcp(22, HERE), False),
        (Rule("out", "any", None, WORLD), tcp(22, HERE), False),
        (tcp(22, HERE), Rule("in", "tcp", None, HERE), False),
        (Rule("in", "icmp", (3, -1), WORLD), TOO_BIG, True),
        (Rule("in", "icmp", (8, -1), WORLD), TOO_BIG, False),
        (TOO_BIG, Rule("in", "icmp", (3, -1), WORLD), False),
        (Rule("in", "icmp", None, WORLD), TOO_BIG, True),
    ],
    ids=str,
)
def test_what_covers_what(wide: Rule, narrow: Rule, does: bool) -> None:
    assert covers(wide, narrow) is does


def test_rules_are_said_in_words() -> None:
    assert str(tcp(22, WORLD)) == "in tcp 22 from everywhere (0.0.0.0/0)"
    assert str(Rule("in", "tcp", (1, 9), "group:g")) == "in tcp 1-9 from group g"
    assert str(tcp(22, "group:g", 6)) == "in tcp 22 from group g (IPv6)"
    assert str(tcp(22, "group:g", BOTH)) == "in tcp 22 from group g"
    assert str(TOO_BIG6) == "in icmpv6 type 2 code 0 from everywhere (::/0)"
    assert str(TOO_BIG) == "in icmp type 3 code 4 from everywhere (0.0.0.0/0)"
    assert str(OUT) == "out any all to everywhere (0.0.0.0/0)"
    assert str(Rule("in", "udp", None, "list:l")) == "in udp all ports from list l"


def test_a_network_in_its_plain_form() -> None:
    assert network(" 203.0.113.7/24 ") == HERE
    assert network("203.0.113.7") == "203.0.113.7/32"
    assert network("2001:db8::1") == "2001:db8::1/128"
    with pytest.raises(ValueError, match="does not appear"):
        network("head.example.org")


def test_a_group_without_the_pools_tag_is_nobodys() -> None:
    assert Group("g", "n", frozenset()).pool == ""


SOURCES = st.sampled_from(
    [WORLD, "::/0", HERE, "203.0.113.7/32", "10.0.0.0/8", "10.1.0.0/16", "group:w", "group:h", "list:l"]
)
GROUPS = st.sampled_from(["group:w", "group:h", "list:l"])
PORTS = st.none() | st.tuples(st.integers(1, 9700), st.integers(0, 300)).map(lambda p: (p[0], sum(p)))
RULES = st.one_of(
    st.builds(Rule, st.sampled_from(["in", "out"]), st.sampled_from(["tcp", "udp"]), PORTS, SOURCES),
    st.builds(Rule, st.sampled_from(["in", "out"]), st.just("any"), st.none(), SOURCES),
    st.builds(
        Rule, st.just("in"), st.just("icmp"), st.sampled_from([None, (3, 4), (3, -1), (8, 0)]), SOURCES
    ),
    st.builds(tcp, st.sampled_from([22, 9618]), SOURCES),
    st.builds(tcp, st.sampled_from([22, 9618]), GROUPS, st.sampled_from([4, 6, BOTH])),
    st.builds(Rule, st.just("in"), st.just("any"), st.none(), GROUPS, st.sampled_from([4, 6, BOTH])),
    st.sampled_from([TOO_BIG6, OUT6, Rule("in", "icmpv6", None, WORLD6)]),
)
NETWORKS = st.lists(SOURCES, max_size=2).map(tuple)
WANTED = st.builds(Parties, NETWORKS, NETWORKS, NETWORKS, st.booleans()).flatmap(
    lambda p: st.sampled_from([for_head(p), for_workers(p, entered=True), for_workers(p, entered=False)])
)


@given(WANTED, st.frozensets(RULES, max_size=8))
def test_a_change_leaves_nothing_more_to_do(wanted: Wanted, there: frozenset[Rule]) -> None:
    closed = change(wanted, there, close=True)
    after = (there | set(closed.add)) - set(closed.remove)
    assert not difference(wanted, after)
    opened = change(wanted, there, close=False)
    assert opened.remove == ()
    assert not difference(wanted, there | set(opened.add)).missing


@given(WANTED, st.frozensets(RULES, max_size=8))
def test_what_is_added_is_wanted_and_what_goes_was_there(wanted: Wanted, there: frozenset[Rule]) -> None:
    what = change(wanted, there, close=True)
    assert set(what.add) <= set(wanted.needed)
    assert set(what.remove) <= there
    assert not set(what.add) & set(what.remove)
    assert not any(rule.direction == "out" for rule in what.remove)


@given(RULES, RULES, RULES)
def test_covering_is_an_order(one: Rule, two: Rule, three: Rule) -> None:
    assert covers(one, one)
    if covers(one, two) and covers(two, three):
        assert covers(one, three)
