"""A boot that can't read its user-data is told of by its console."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, instance, record
from updraft.core.demand.left_out import UNREAD_BOOT
from updraft.core.model import Reason
from updraft.observe.boots import AGAIN, FIRST, Boots, unread
from updraft.observe.sources import VIRTUAL

META = "http://169.254.169.254/2009-04-04/meta-data/instance-id"
WARNING = f"2026-11-25 00:03:18,179 - url_helper.py[WARNING]: Calling '{META}' failed"
REFUSED = f"{WARNING} [0/30s]: 401 Client Error: Unauthorized for url: {META}"  # cloud-init 26.2
OLDER = f"{WARNING} [0/120s]: bad status code [401]"
SLOW = f"url_helper.py[WARNING]: Calling '{META}' failed [5/30s]: request error [timed out]"


@pytest.mark.parametrize(
    ("console", "part"),
    [
        (REFUSED, "instance-id answers 401"),
        (OLDER, "instance-id answers 401"),
        (f"{SLOW}\n{REFUSED}\n", "metadata_tokens"),
        (
            f"{SLOW}\nDataSourceEc2.py[CRITICAL]: Giving up on md from ['{META}'] after 30 seconds",
            "Giving up on md",
        ),
        ("DataSourceEc2.py[ERROR]: Unable to get metadata", "Unable to get metadata"),
        ("cc_final_message.py[WARNING]: Used fallback datasource", "Used fallback datasource"),
    ],
)
def test_what_cloud_init_says_when_it_has_no_user_data(console: str, part: str) -> None:
    assert part in unread(console)


@pytest.mark.parametrize(
    "console",
    ["", SLOW, "Cloud-init finished", f"{REFUSED}\nupdraft-boot: HTCondor is up\n", "bad status code [401]"],
)
def test_what_is_no_such_boot(console: str) -> None:
    """A network that is slow to come up, and a boot that has got on all the same."""
    assert unread(console) == ""


@given(st.text() | st.binary().map(lambda some: some.decode("latin-1")))
def test_9_whatever_an_image_prints_is_told_in_one_short_line(text: str) -> None:
    said = unread(f"{text} Used fallback datasource {text}")
    assert len(said) < 500
    assert said.isprintable()


class Cloud:
    """Consoles, and which of them were asked for."""

    def __init__(self, **consoles: str) -> None:
        self.consoles = consoles
        self.asked: list[str] = []

    def console(self, machine: str) -> str:
        self.asked.append(machine)
        if machine not in self.consoles:
            raise OSError("no such console")
        return self.consoles[machine]


def told(
    boots: Boots, cloud: Cloud, now: float, *names: str, joined: tuple[str, ...] = ()
) -> tuple[Reason, ...]:
    records = [
        replace(record(name), requested_at=NOW, joined_at=NOW + 5 if name in joined else None)
        for name in names
    ]
    return boots.look(cloud, [instance(name) for name in names], records, lambda: now)


def test_it_is_told_within_a_minute_of_the_launch_and_one_console_is_read_at_a_time() -> None:
    boots, cloud = Boots("c1", 60.0, VIRTUAL), Cloud(a=REFUSED, b=REFUSED)
    assert told(boots, cloud, NOW + FIRST - 1, "a", "b") == ()
    assert cloud.asked == []
    (one,) = told(boots, cloud, NOW + FIRST, "a", "b")
    assert (one.code, one.text[:9]) == (UNREAD_BOOT, "machine a")
    assert told(boots, cloud, NOW + FIRST + 1, "a", "b") == (one,)
    both = told(boots, cloud, NOW + FIRST + AGAIN, "a", "b")
    assert (len(both), cloud.asked) == (2, ["a", "b"])
    assert NOW + FIRST + AGAIN <= NOW + 60
    assert told(boots, cloud, NOW + FIRST + AGAIN + 1, "b", joined=("b",)) == ()


def test_a_boot_that_says_nothing_yet_is_asked_again_and_one_that_has_joined_is_not() -> None:
    boots, cloud = Boots("c1", 60.0, VIRTUAL), Cloud(a="")
    for number in range(3):
        assert told(boots, cloud, NOW + FIRST + number * AGAIN, "a", "z", joined=("z",)) == ()
    assert cloud.asked == ["a", "a", "a"]
    cloud.consoles["a"] = REFUSED
    assert len(told(boots, cloud, NOW + FIRST + 3 * AGAIN, "a")) == 1


def test_a_boot_that_gets_on_all_the_same_is_told_of_no_more() -> None:
    boots, cloud = Boots("c1", 60.0, VIRTUAL), Cloud(a=REFUSED)
    assert len(told(boots, cloud, NOW + FIRST, "a")) == 1
    cloud.consoles["a"] += "\nupdraft-boot: HTCondor is up"
    assert told(boots, cloud, NOW + FIRST + AGAIN, "a") == ()


def test_a_console_that_cannot_be_had_costs_nothing() -> None:
    boots, cloud = Boots("c1", 60.0, VIRTUAL), Cloud()
    assert told(boots, cloud, NOW + FIRST, "a") == ()
    cloud.consoles["a"] = REFUSED
    assert len(told(boots, cloud, NOW + FIRST + AGAIN, "a")) == 1
