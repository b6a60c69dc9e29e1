"""What the OpenStack driver says is left: with what Nova counts late, and while the sisters are silent."""

import pytest

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front, Trouble
from tests.rigs.clouds.osharness import CREATE, OpenStackHarness, refused
from updraft.clouds.openstack.counting import Uncounted
from updraft.clouds.openstack.reading import Raw
from updraft.core.model import Quota, Resources
from updraft.errors import CloudUnavailable, QuotaExceeded

SMALL = Resources(2, 4096, 0)
TOLD = Quota(machines=10, cores=40, memory=100_000)
LIMITS = r"^GET .*/limits$"
PORTS = "/details.json"


def server(id_: str, task: str | None = "scheduling", status: str = "BUILD") -> Raw:
    flavor = {"original_name": "small", "vcpus": 2, "ram": 4096}
    return {"id": id_, "status": status, "OS-EXT-STS:task_state": task, "flavor": flavor}


def left(uncounted: Uncounted, *shown: Raw) -> Quota:
    """By a look that shows these."""
    uncounted.look(lambda: shown)
    return uncounted.less(never, lambda: TOLD)


def never() -> tuple[Raw, ...]:
    raise AssertionError("nobody need look")


def test_without_a_launch_the_services_count_is_what_counts() -> None:
    assert Uncounted().less(never, lambda: TOLD) is TOLD


def test_what_is_being_asked_for_is_gone_already() -> None:
    uncounted = Uncounted()
    with uncounted.launching(3, SMALL):
        assert left(uncounted) == Quota(machines=7, cores=34, memory=100_000 - 3 * 4096)


def test_a_server_counts_here_until_a_part_of_the_cloud_has_taken_it() -> None:
    uncounted = Uncounted()
    with uncounted.launching(3, SMALL):
        pass
    assert left(uncounted, server("a"), server("b"), server("c", "spawning")).machines == 8
    assert left(uncounted, server("a"), server("b", None)).machines == 9
    assert left(uncounted, server("a", None, "ACTIVE")) == TOLD


def test_a_refused_launch_takes_nothing() -> None:
    uncounted = Uncounted()
    with pytest.raises(QuotaExceeded), uncounted.launching(3, SMALL):
        raise QuotaExceeded("no")
    assert left(uncounted) == TOLD


def test_a_launch_without_an_answer_counts_until_the_next_look() -> None:
    uncounted = Uncounted()
    with pytest.raises(CloudUnavailable), uncounted.launching(3, SMALL):
        raise CloudUnavailable("lost")
    assert left(uncounted, server("a")).machines == 9


def test_an_answer_that_comes_during_a_look_is_not_in_that_look() -> None:
    uncounted = Uncounted()
    launch = uncounted.launching(3, SMALL)
    launch.__enter__()

    def look() -> tuple[Raw, ...]:
        launch.__exit__(None, None, None)
        return ()

    uncounted.look(look)
    assert uncounted.less(tuple, lambda: TOLD) == TOLD, "it looks again"


def test_a_look_serves_for_ten_seconds() -> None:
    now, looks = [0.0], []
    uncounted = Uncounted(lambda: now[0])

    def look() -> tuple[Raw, ...]:
        looks.append(now[0])
        return (server("a"),)

    with uncounted.launching(1, SMALL):
        pass
    for _ in range(12):
        assert uncounted.less(look, lambda: TOLD).machines == 9
        now[0] += 1
    assert looks == [0, 10]


def test_what_is_unlimited_or_unknown_stays_so() -> None:
    uncounted = Uncounted()
    endless = Quota(unlimited=frozenset({"machines"}), cores=1)
    with uncounted.launching(3, SMALL):
        assert uncounted.less(tuple, lambda: endless) == Quota(unlimited=frozenset({"machines"}), cores=0)


def test_the_driver_counts_servers_that_nova_has_not_taken_up(
    harness: OpenStackHarness, front: Front
) -> None:
    harness.cloud.boot_takes = 1000.0
    driver = harness.driver()
    before = driver.quota().machines
    made = driver.launch(request(harness, 2))
    for one in made:
        harness.cloud.servers[one.id]["OS-EXT-STS:task_state"] = "scheduling"
    # This cloud counts them at once, Nova later: to count them twice for a while does no harm.
    assert driver.quota().machines == before - 4
    for one in made:
        harness.cloud.servers[one.id]["OS-EXT-STS:task_state"] = "spawning"
    driver.machines()
    assert driver.quota().machines == before - 2
    front.log.clear()
    driver.quota()
    assert [str(call) for call in front.calls("/servers")] == []


def test_a_refused_post_leaves_the_quota_as_it_was(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver()
    before = driver.quota()
    with front.trouble(Trouble(CREATE, refused(403, "Quota exceeded"))), pytest.raises(QuotaExceeded):
        driver.launch(request(harness, 2))
    assert driver.quota() == before


def test_a_sister_that_is_silent_hides_nothing_of_what_nova_tells(
    harness: OpenStackHarness, front: Front
) -> None:
    with front.trouble(Trouble(PORTS, refused(503, "Unexpected API Error."))):
        found = harness.driver().quota()
    assert (found.machines, found.cores, found.memory) == (25, 80, 409600)


def test_what_a_sister_said_serves_less_what_was_made_since(harness: OpenStackHarness, front: Front) -> None:
    harness.cloud.told["quota-details"]["quota"]["port"] = {"limit": 20, "used": 9, "reserved": 2}
    driver = harness.driver()
    assert driver.quota().machines == 9
    harness.foreign({})
    with front.trouble(Trouble(PORTS, refused(503, "Unexpected API Error."))):
        assert driver.quota().machines == 8
    assert len(front.calls(PORTS)) == 1
