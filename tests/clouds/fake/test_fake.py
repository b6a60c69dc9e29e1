"""What the fake cloud does beyond the contract: it can be broken on purpose, and it keeps count."""

import pytest

from tests.clouds.fake.test_fake_conformance import FakeHarness
from tests.rigs.clouds.made import made
from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.fake import Fault
from updraft.core.model import CloudState, Resources
from updraft.errors import CloudUnavailable, ConfigError, NoCapacity, QuotaExceeded, Throttled


def asked(key: str, count: int = 1, zone: str = "a", flavor: str = "small") -> LaunchRequest:
    return LaunchRequest(key, count, "worker", flavor, zone, "on-demand", b"")


def test_settings_have_defaults_and_units() -> None:
    cloud = made("fake", "f", "p", {"flavors": {"one": {"cpus": 1, "memory": "2GiB", "disk": "10GiB"}}})
    (offer, _) = cloud.offers()
    assert offer.resources == Resources(1, 2048, 10 * 2**20)
    assert offer.price is None


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"quota_machine": 3}, "clouds.f.quota_machine"),
        ({"boots": [{"start": 3}]}, r"clouds\.f\.boots\[0\]\.start"),
        ({"faults": [{"error": "bad-luck"}]}, r"clouds\.f\.faults\[0\]"),
        ({"zones": []}, "clouds.f.zones"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        made("fake", "f", "p", settings)


def test_capacity_gives_what_there_is_then_nothing() -> None:
    harness = FakeHarness(capacity={"a/small": 4})
    driver = harness.driver("p")
    assert len(driver.launch(asked("k1", 10))) == 4
    with pytest.raises(NoCapacity):
        driver.launch(asked("k2"))
    assert len(driver.launch(asked("k3", zone="b"))) == 1


def test_without_partial_fulfilment_it_is_all_or_nothing() -> None:
    harness = FakeHarness(partial=False, quota_cores=5)
    driver = harness.driver("p")
    with pytest.raises(QuotaExceeded):
        driver.launch(asked("k1", 3))
    assert len(driver.launch(asked("k2", 2))) == 2
    assert driver.quota().cores == 1


def test_a_refused_launch_may_be_asked_again_under_its_key() -> None:
    harness = FakeHarness(quota_machines=0)
    driver = harness.driver("p")
    with pytest.raises(QuotaExceeded):
        driver.launch(asked("k"))
    harness.set_quota(1)
    assert len(driver.launch(asked("k"))) == 1


def test_faults_strike_where_when_and_as_often_as_told() -> None:
    harness = FakeHarness()
    harness.site.faults.add(Fault("throttled", zone="a", times=2, retry_after=9.0))
    harness.site.faults.add(Fault("cloud-unavailable", call="machines", until=harness.now + 100))
    driver = harness.driver("p")
    for _ in range(2):
        with pytest.raises(Throttled) as raised:
            driver.launch(asked("k"))
        assert raised.value.retry_after == 9.0
    assert driver.launch(asked("other", zone="b"))
    assert driver.launch(asked("k"))
    with pytest.raises(CloudUnavailable):
        driver.machines()
    harness.now += 100
    assert len(driver.machines()) == 2


def test_the_listing_lags_behind_as_long_as_told() -> None:
    harness = FakeHarness(shows_after="20s", hides_after="30s", stop_takes="5s")
    driver = harness.driver("p")
    (made,) = driver.launch(asked("k"))
    assert driver.machines() == ()
    assert driver.quota().machines is None
    harness.now += 20
    assert len(driver.machines()) == 1
    driver.terminate([made.id])
    harness.now += 29
    assert driver.machines()[0].state is CloudState.RUNNING
    harness.now += 6
    assert driver.machines()[0].state is CloudState.TERMINATED
    harness.now += 61
    assert driver.machines() == ()


def test_broken_boots_show_the_clouds_own_words() -> None:
    harness = FakeHarness(boots=[{"flavor": "small", "breaks": 1.0, "fault": "no host"}])
    driver = harness.driver("p")
    driver.launch(asked("k"))
    driver.launch(asked("k2", flavor="medium"))
    harness.now += 30
    states = {one.flavor: (one.state, one.fault) for one in driver.machines()}
    assert states == {"small": (CloudState.ERROR, "no host"), "medium": (CloudState.RUNNING, "")}
    assert harness.site.occupied() == 2


def test_a_machine_that_never_joins_says_why_on_its_console() -> None:
    harness = FakeHarness(boots=[{"never_joins": 1.0}])
    driver = harness.driver("p")
    (made,) = driver.launch(asked("k"))
    harness.now += 60
    assert harness.site.instances[made.id].joins_at == float("inf")
    assert "cannot start" in driver.console(made.id)


def test_sudden_death_and_power_off() -> None:
    harness = FakeHarness()
    driver = harness.driver("p")
    first, second = driver.launch(asked("k", 2))
    harness.now += 30
    harness.site.kill(first.id)
    harness.site.power_off(second.id)
    states = {one.id: one.state for one in driver.machines()}
    assert states == {first.id: CloudState.TERMINATED, second.id: CloudState.STOPPED}
    driver.terminate([first.id, second.id])
    harness.now += 30
    assert harness.site.alive("p") == ()


def test_the_same_seed_boots_the_same_way() -> None:
    def boots(seed: int) -> list[float]:
        harness = FakeHarness(seed=seed)
        harness.driver("p").launch(asked("k", 5))
        return [one.joins_at for one in harness.site.instances.values()]

    assert boots(1) == boots(1) != boots(2)


def test_the_bill_counts_seconds_from_request_to_end_of_our_machines_only() -> None:
    harness = FakeHarness()
    driver = harness.driver("p")
    harness.site.add_foreign()
    (made,) = driver.launch(asked("k"))
    harness.now += 3600
    driver.terminate([made.id])
    harness.now += 3600
    bill = harness.site.bill("p")
    assert (bill.machines, bill.seconds) == (1, 3600.0)
    assert bill.cost == pytest.approx(0.05)


def test_every_call_is_counted_pages_and_failures_too() -> None:
    harness = FakeHarness(page_size=10)
    driver = harness.driver("p")
    driver.launch(asked("k", 25))
    harness.site.faults.add(Fault("throttled", times=1))
    with pytest.raises(Throttled):
        driver.launch(asked("k2"))
    driver.machines()
    driver.terminate(one.id for one in driver.machines())
    assert harness.site.calls_by_name() == {"launch": 2, "machines": 6, "terminate": 1}
    assert [call.error for call in harness.site.calls if call.name == "launch"] == ["", "throttled"]


def test_what_it_is_told_to_end_ends_even_if_it_is_foreign() -> None:
    """The fake is as dangerous as a real cloud: who ends a stranger's machine must be seen to."""
    harness = FakeHarness()
    foreign = harness.site.add_foreign(tags={TAG_POOL: "theirs"})
    harness.driver("p").terminate([foreign])
    assert not harness.exists(foreign)


def test_the_cloud_forgets_machines_that_ended_long_ago() -> None:
    harness = FakeHarness()
    driver = harness.driver("p")
    for number in range(5):
        (made,) = driver.launch(asked(f"k{number}"))
        driver.terminate([made.id])
        harness.now += 100
    assert len(harness.site.current()) <= 1
    assert harness.site.bill("p").machines == 5
